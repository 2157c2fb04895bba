//! Rows of the requirements that concern calls between plugins, their time and what is told of them.

use std::sync::Arc;

use plugd_protocol::Status;
use plugd_protocol::control::CallParams;
use plugd_tests::{Daemon, Sandbox, plugd};
use serde_json::{Value, json};

use crate::reloading::{data, events_of, marks, text};

/// The table of an example plugin; those in Rust lie beside the program under test.
fn example(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../example-plugins").join(name);
    let folder = folder.canonicalize().expect("the example plugin is there");
    let command = match name {
        "weather" | "logs" => format!("[\"python3\", \"{name}.py\"]"),
        "clock" => "[\"sh\", \"clock.sh\"]".to_owned(),
        _ => {
            let program = plugd().with_file_name(name);
            assert!(program.exists(), "{} is missing: run `make test`, which builds it", program.display());
            format!("[{program:?}]")
        }
    };
    format!("[plugins.{name}]\ncommand = {command}\ncwd = {folder:?}\n")
}

#[test]
fn r_x5_every_example_declares_how_long_each_of_its_operations_may_take() {
    let names = ["clock", "logs", "tickets", "trip", "weather"];
    let sandbox = Sandbox::new(&names.map(example).concat());
    let daemon = sandbox.serve();
    for name in names {
        let described = daemon.json(&["describe", name]);
        let operations = described["operations"].as_array().expect("a list");
        assert!(!operations.is_empty(), "{described:#}");
        for operation in operations {
            let limit = operation["timeout_ms"].as_u64().unwrap_or_default();
            assert!((1_000..=10_000).contains(&limit), "{name}: {operation:#}");
        }
    }
    assert_eq!(daemon.json(&["describe", "weather.get_weather"])["operations"][0]["timeout_ms"], 5_000);
    let shown = daemon.plugd(&["describe", "weather.get_weather"]).expect(0).stdout;
    assert!(shown.contains("5 s") || shown.contains("5s"), "people see it, too: {shown}");
    daemon.stop();
}

#[test]
fn r_x6_a_plugin_knows_how_much_of_its_callers_time_is_left_and_can_pass_it_on() {
    let sandbox = Sandbox::new("");
    let outer = "
MANIFEST = {'requires': {'inner': '*'}}
def handle(operation, arguments, params):
    time.sleep(0.2)
    inner = host_call('inner.echo', {})
    return {'data': {'outer': params['context']['deadline_ms'], 'inner': inner['result']['data']}}
";
    let inner =
        "def handle(operation, arguments, params):\n    return {'data': params['context']['deadline_ms']}\n";
    let tables = [sandbox.python("outer", outer), sandbox.python("inner", inner)];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "inner", "outer"]).expect(0);
    let result = daemon.json(&["call", "outer.echo", "--timeout", "20s"]);
    let left = |name: &str| result["data"][name].as_u64().unwrap_or_else(|| panic!("{result:#}"));
    assert!(left("outer") <= 20_000, "below the caller's: {result:#}");
    assert!(left("inner") + 200 <= left("outer"), "and less for what it calls in turn: {result:#}");
    daemon.stop();
}

#[tokio::test]
async fn r_x13_two_hundred_parallel_calls_of_two_sessions_never_mix() {
    let sandbox = Sandbox::new("");
    let mixing = "
import random
MANIFEST = {'features': {'concurrency': 16}}
def handle(operation, arguments, params):
    time.sleep(random.random() / 50)
    return {'data': [arguments['token'], params['context']['session_id']]}
";
    let table = sandbox.python("fp", mixing);
    sandbox.configure(&format!("{table}queue_length = 250\nqueue_timeout = \"60s\"\n"));
    let daemon = sandbox.serve();
    let clients = [Arc::new(daemon.client().await), Arc::new(daemon.client().await)];
    let calls: Vec<_> = (0..200)
        .map(|number| {
            let client = Arc::clone(&clients[number % 2]);
            let session = ["alice", "bob"][number % 2];
            let token = format!("{session}-{number}");
            let arguments = json!({"token": token}).to_string();
            let params = CallParams::new("fp.echo").arguments(&arguments).expect("JSON");
            let params = CallParams { session: Some(session.to_owned()), ..params };
            let call = tokio::spawn(async move { client.call(&params).await.expect("a result") });
            (call, token, session)
        })
        .collect();
    for (call, token, session) in calls {
        let result = call.await.expect("it ends");
        assert_eq!(result.status, Status::Ok, "{:?}", result.error);
        let given: Value = serde_json::from_str(result.data.expect("data").get()).expect("JSON");
        assert_eq!(given, json!([token, session]));
    }
    drop(clients);
    daemon.stop();
}

/// The plugins in the order they became ready.
fn ready_order(daemon: &Daemon<'_>) -> Vec<String> {
    let ready = events_of(daemon, "plugin.ready");
    ready.iter().map(|event| text(&event["plugin"]).to_owned()).collect()
}

#[test]
fn r_s8_a_common_service_is_a_plugin_that_starts_before_those_that_use_it() {
    let sandbox = Sandbox::new("");
    let service = "
OPERATIONS = [{'name': 'fetch', 'audience': 'plugins', 'input_schema': {'type': 'object'}}]
def handle(operation, arguments, params):
    return {'data': {'from': params['context']['caller'], 'path': arguments['path']}}
";
    let user = "
MANIFEST = {'requires': {'http': '>=1.0'}}
def handle(operation, arguments, params):
    return {'data': host_call('http.fetch', {'path': '/' + arguments['id']})['result']['data']}
";
    let tables =
        [sandbox.python("tickets", user), sandbox.python("billing", user), sandbox.python("http", service)];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    for name in ["tickets", "billing"] {
        let result = daemon.json(&["call", &format!("{name}.echo"), "id=7"]);
        assert_eq!(result["data"], json!({"from": format!("plugin:{name}"), "path": "/7"}), "{result:#}");
    }
    assert_eq!(ready_order(&daemon), ["http", "tickets", "billing"], "one service, before its users");
    daemon.stop();
}

#[test]
fn r_s8_the_example_that_uses_another_has_it_started_first() {
    let sandbox = Sandbox::new(&[example("trip"), example("weather")].concat());
    let daemon = sandbox.serve();
    let result = daemon.json(&["call", "trip.recommend", "city=Beijing"]);
    assert_eq!(result["status"], "ok", "{result:#}");
    assert_eq!(ready_order(&daemon), ["weather", "trip"]);
    daemon.stop();
}

#[test]
fn r_s10_the_chain_of_calls_is_declared_shown_and_kept_to() {
    let sandbox = Sandbox::new("");
    let passes_on = |requires: &str, operation: &str| {
        format!(
            "MANIFEST = {{'requires': {requires}}}\n\
             def handle(operation, arguments, params):\n    \
             return {{'data': host_call(arguments.get('use', '{operation}'), {{}})}}\n"
        )
    };
    let tables = [
        sandbox.python("trip", &passes_on("{'weather': '*'}", "weather.echo")),
        sandbox.python("weather", &passes_on("{'cities': '*'}", "cities.echo")),
        sandbox.python(
            "cities",
            "def handle(operation, arguments, params):\n    return {'data': ['Beijing']}\n",
        ),
    ];
    sandbox.configure(&tables.concat());
    let daemon = sandbox.serve();
    let result = daemon.json(&["call", "trip.echo"]);
    let cities = &result["data"]["result"]["data"]["result"]["data"];
    assert_eq!(*cities, json!(["Beijing"]), "{result:#}");

    let refused = daemon.json(&["call", "trip.echo", "use=cities.echo"]);
    let error = &refused["data"]["error"]["data"]["cause"]["error"];
    assert_eq!(error["name"], "undeclared_dependency", "{refused:#}");

    let graph = daemon.json(&["graph"]);
    let edges = graph["edges"].as_array().expect("a list").iter();
    let edges: Vec<Value> = edges.map(|edge| json!([edge["from"], edge["to"]])).collect();
    assert_eq!(edges.len(), 2, "{graph:#}");
    assert!(edges.contains(&json!(["trip", "weather"])) && edges.contains(&json!(["weather", "cities"])));
    let shown = daemon.plugd(&["graph"]).expect(0).stdout;
    assert!(shown.contains("trip → weather → cities"), "{shown}");
    daemon.stop();
}

#[tokio::test]
async fn r_t5_the_log_of_a_call_has_the_plugins_lines_and_the_runtimes_with_session_and_trace() {
    let sandbox = Sandbox::new("");
    let telling = "
def handle(operation, arguments, params):
    call_id = params['context']['call_id']
    send({'jsonrpc': '2.0', 'method': 'log', 'params': {'level': 'warn', 'message': 'by log', 'call_id': call_id}})
    print('by stderr', file=sys.stderr, flush=True)
    # One that cannot be read: what the runtime has to say about it belongs to this call.
    send({'jsonrpc': '2.0', 'method': 'progress', 'params': {'call_id': call_id, 'done': 'half'}})
    while not os.path.exists('seen'): time.sleep(0.01)
    return {'data': call_id}
";
    let table = sandbox.python("fp", telling);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let params = CallParams {
        session: Some("s-1".to_owned()),
        traceparent: Some(format!("00-{trace}-b7ad6b7169203331-01")),
        ..CallParams::new("fp.echo")
    };
    let call = tokio::spawn(async move { client.call(&params).await.expect("a result") });
    // Polled here, for this thread drives the client, too.
    while daemon.json(&["logs", "fp"]).as_array().is_none_or(|lines| lines.len() < 3) {
        tokio::task::yield_now().await;
    }
    sandbox.write("plugins/fp/seen", "");
    let result = call.await.expect("it ends");
    let id = result.meta.call_id.as_ref().expect("an id").to_string();
    let lines = daemon.json(&["logs", "--call", &id]);
    let lines = lines.as_array().expect("a list");
    for (stream, part) in [("log", "by log"), ("stderr", "by stderr"), ("runtime", "progress")] {
        let line = lines.iter().find(|line| line["stream"] == stream && text(&line["text"]).contains(part));
        let line = line.unwrap_or_else(|| panic!("no line by {stream}: {lines:#?}"));
        assert_eq!((&line["plugin"], &line["call_id"]), (&json!("fp"), &json!(id)), "{line:#}");
        assert_eq!((&line["session_id"], &line["trace_id"]), (&json!("s-1"), &json!(trace)), "{line:#}");
        assert!(line["generation"].is_u64(), "{line:#}");
    }
    let shown = daemon.plugd(&["logs", "--call", &id]).expect(0).stdout;
    assert!(shown.contains("by log") && shown.contains("by stderr"), "{shown}");
    daemon.stop();
}

/// The plugin's own word for the trace counts where the call is over, and only where it is a trace.
#[test]
fn a_line_about_a_call_that_is_over_keeps_the_trace_that_the_plugin_names() {
    let sandbox = Sandbox::new("");
    let telling = r"
def handle(operation, arguments, params):
    for trace in ['0af7651916cd43dd8448eb211c80319c', 'no trace']:
        send({'jsonrpc': '2.0', 'method': 'log', 'params':
            {'message': trace, 'call_id': 'long over', 'trace_id': trace}})
    return {'data': None}
";
    let table = sandbox.python("late", telling);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "late.echo"]).expect(0);
    let lines = daemon.json(&["logs", "late"]);
    let trace_of = |text: &str| {
        let line = lines.as_array().into_iter().flatten().find(|line| line["text"] == text);
        line.map(|line| (line["call_id"].clone(), line["trace_id"].clone()))
    };
    let trace = "0af7651916cd43dd8448eb211c80319c";
    assert_eq!(trace_of(trace), Some((json!("long over"), json!(trace))), "{lines:#}");
    assert_eq!(trace_of("no trace"), Some((json!("long over"), Value::Null)), "{lines:#}");
    daemon.stop();
}

/// Notes how many of its calls run at once.
const COUNTING: &str = r#"
RUNNING = []


def handle(operation, arguments, params):
    RUNNING.append(1)
    mark("running", str(len(RUNNING)))
    time.sleep(0.02)
    RUNNING.pop()
    return {"data": None}
"#;

#[test]
fn r_s13_a_plugin_never_gets_more_calls_at_once_than_its_manifest_and_the_configuration_allow() {
    let declares = |lanes: u32| format!("MANIFEST = {{'features': {{'concurrency': {lanes}}}}}\n{COUNTING}");
    let sandbox = Sandbox::new("");
    let tables = [
        sandbox.python("one", COUNTING),
        sandbox.python("three", &declares(3)),
        format!("{}concurrency = 2\n", sandbox.python("lowered", &declares(3))),
        format!("{}concurrency = 9\n", sandbox.python("raised", &declares(3))),
    ];
    sandbox.configure(&format!("[limits]\nqueue_timeout = \"60s\"\n\n{}", tables.concat()));
    let daemon = sandbox.serve();
    for (name, most) in [("one", 1), ("three", 3), ("lowered", 2), ("raised", 3)] {
        let operation = format!("{name}.echo");
        data(&daemon, &operation);
        assert_eq!(daemon.status(name)["concurrency"], most);
        std::thread::scope(|scope| {
            let calls: Vec<_> = (0..12).map(|_| scope.spawn(|| data(&daemon, &operation))).collect();
            calls.into_iter().for_each(|call| drop(call.join().expect("it goes well")));
        });
        let running = marks(&sandbox, name, "running");
        let seen = running.iter().filter_map(|count| count.parse::<u64>().ok()).max();
        assert!(seen.is_some_and(|seen| seen <= most), "{name}: {running:?}");
        assert_eq!(running.len(), 13, "{name}: each ran once");
    }
    daemon.stop();
}
