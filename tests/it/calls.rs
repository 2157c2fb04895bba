//! Running calls: failure, deadlines, isolation, the one shape of a result.

mod arguments;
mod cancel;
mod chain;
mod envelope;
mod identity;
mod interrupted;
mod queue;

use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::control::CallParams;
use plugd_protocol::{CallResult, Status};
use plugd_tests::{Sandbox, alive, eventually};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

/// A plugin that can echo, tell its process, hang, raise and die; it notes what it is told.
const ODD: &str = r#"
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer", "maximum": 9}}}
OPERATIONS = [{"name": name, "input_schema": SCHEMA} for name in ("echo", "pid", "hang", "obey", "fail", "raise", "die")]
STOPPED = threading.Event()


def notified(method, params):
    mark(method, params["call_id"])
    STOPPED.set()


def handle(operation, arguments, params):
    if operation == "echo":
        return {"data": arguments}
    if operation == "pid":
        return {"data": os.getpid()}
    if operation == "fail":
        raise Failure("the disk is full", name="disk_full", hint="remove something")
    if operation == "raise":
        raise Failure("KeyError", code=2)
    if operation == "die":
        os._exit(3)
    STOPPED.clear()
    mark("running", params["context"]["call_id"])
    if operation == "hang":
        threading.Event().wait()
    STOPPED.wait()
    raise Failure("stopped", code=-32800)
"#;

/// The lines of a plugin's marker file.
fn marks(sandbox: &Sandbox, plugin: &str, name: &str) -> Vec<String> {
    sandbox.read(&format!("plugins/{plugin}/{name}")).lines().map(str::to_owned).collect()
}

/// A sandbox with the plugin `odd`, and more lines in its table.
fn odd(more: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("odd", ODD);
    sandbox.configure(&format!("{table}{more}"));
    sandbox
}

/// The table of an example plugin, built by `make`.
fn example(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../example-plugins").join(name);
    let folder = folder.canonicalize().expect("the example plugin is there");
    let program = match name {
        "weather" | "logs" => format!("[\"python3\", \"{name}.py\"]"),
        _ => {
            let program = folder.join("bin").join(name);
            assert!(program.exists(), "{} is missing: run `make test`, which builds it", program.display());
            format!("[\"./bin/{name}\"]")
        }
    };
    format!("[plugins.{name}]\ncommand = {program}\ncwd = \"{}\"\n", folder.display())
}

#[test]
fn x1_a_failure_inside_a_tool_becomes_a_result_and_the_plugin_lives() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let before = daemon.json(&["call", "odd.pid"])["data"].clone();
    let failed = daemon.plugd(&["--output", "json", "call", "odd.fail"]).expect(1).json();
    assert_eq!(failed["status"], "error", "{failed:#}");
    assert_eq!(failed["error"]["code"], 4001);
    assert_eq!(failed["error"]["name"], "disk_full");
    assert_eq!(failed["error"]["message"], "the disk is full");
    assert_eq!(failed["error"]["hint"], "remove something");
    assert_eq!(failed["error"]["outcome"], "completed");
    let raised = daemon.plugd(&["--output", "json", "call", "odd.raise"]).expect(1).json();
    assert_eq!((&raised["status"], &raised["error"]["code"]), (&json!("error"), &json!(4002)), "{raised:#}");
    assert_eq!(daemon.json(&["call", "odd.pid"])["data"], before, "the same process answers the next call");
    daemon.stop();
}

#[tokio::test]
async fn x2_a_crash_fails_its_own_call_at_once_and_no_other() {
    let sandbox = odd("timeout = \"30s\"\n\n");
    let other = sandbox.python("other", "");
    let text = sandbox.read("plugd.toml");
    sandbox.write("plugd.toml", &format!("{text}{other}"));
    let daemon = sandbox.serve();
    let client = Arc::new(daemon.client().await);
    let pid = daemon.json(&["call", "odd.pid"])["data"].as_u64().expect("a pid");

    let victim = tokio::spawn({
        let client = Arc::clone(&client);
        async move { client.call(&CallParams::new("odd.hang")).await.expect("a result") }
    });
    while marks(&sandbox, "odd", "running").is_empty() {
        // This thread drives the client, too.
        tokio::task::yield_now().await;
    }
    let others: Vec<_> = (0..50)
        .map(|n| {
            let client = Arc::clone(&client);
            let params = CallParams::new("other.echo").arguments(&format!("{{\"n\":{n}}}")).expect("JSON");
            tokio::spawn(async move { client.call(&params).await.expect("a result") })
        })
        .collect();
    let began = Instant::now();
    kill(pid, Signal::KILL);
    let failed = victim.await.expect("it ends");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "told at once, not at the deadline: {:?}",
        began.elapsed()
    );
    let error = failed.error.expect("an error");
    assert_eq!((error.code, error.name.as_str()), (6001, "plugin_died"), "{error:?}");
    assert!(error.message.contains("signal 9") || error.message.contains("SIGKILL"), "{}", error.message);
    for (n, other) in others.into_iter().enumerate() {
        let result: CallResult = other.await.expect("it ends");
        assert_eq!(result.status, Status::Ok, "{result:?}");
        assert_eq!(result.data.expect("data").get(), format!("{{\"n\": {n}}}"));
    }
    let back = daemon.json(&["call", "odd.pid"]);
    assert_eq!(back["status"], "ok", "{back:#}");
    assert_ne!(back["data"], json!(pid), "a new process answers");
    drop(client);
    daemon.stop();
}

#[test]
fn x4_a_deadline_ends_a_call_and_a_plugin_stuck_after_it_is_restarted() {
    let sandbox = odd("cancel_grace = \"200ms\"\n\n[plugins.odd.restart]\nbackoff = \"50ms\"\n");
    let daemon = sandbox.serve();
    let before = daemon.json(&["call", "odd.pid"])["data"].as_u64().expect("a pid");
    let result = daemon.plugd(&["--output", "json", "call", "odd.hang", "--timeout", "1s"]).expect(5).json();
    assert_eq!(result["error"]["code"], 5001, "{result:#}");
    assert_eq!(result["error"]["outcome"], "unknown");
    let run = result["meta"]["run_us"].as_u64().expect("a time");
    assert!((900_000..4_000_000).contains(&run), "at about a second: {run} us");
    let call_id = result["meta"]["call_id"].as_str().expect("an id");

    let next = daemon.json(&["call", "odd.pid"]);
    assert_eq!(next["status"], "ok", "{next:#}");
    assert_ne!(next["data"], json!(before), "the stuck process was replaced");
    assert_eq!(marks(&sandbox, "odd", "cancel"), [call_id], "one cancel, for that call");
    let pid = u32::try_from(before).expect("a pid");
    eventually("the stuck process is gone", || !alive(pid));
    daemon.stop();
}

#[test]
fn x4_a_plugin_that_obeys_a_cancel_goes_on_in_the_same_process() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let before = daemon.json(&["call", "odd.pid"])["data"].clone();
    let result =
        daemon.plugd(&["--output", "json", "call", "odd.obey", "--timeout", "300ms"]).expect(5).json();
    assert_eq!(result["error"]["code"], 5001, "{result:#}");
    assert_eq!(daemon.json(&["call", "odd.pid"])["data"], before);
    assert_eq!(marks(&sandbox, "odd", "cancel").len(), 1);
    assert_eq!(daemon.status("odd")["starts"], 1);
    daemon.stop();
}

#[test]
fn e3_the_callers_mistake_and_the_plugins_failure_are_told_apart() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let mistake = daemon.plugd(&["--output", "json", "call", "odd.echo", "n:=40"]).expect(3).json();
    assert_eq!(mistake["error"]["code"], 2001, "{mistake:#}");
    assert_eq!(mistake["error"]["outcome"], "not_run");
    assert_eq!(mistake["error"]["details"][0]["path"], "/n");
    let failure = daemon.plugd(&["--output", "json", "call", "odd.fail"]).expect(1).json();
    assert_eq!(failure["error"]["code"], 4001, "{failure:#}");
    daemon.stop();
}

#[tokio::test]
async fn s3_answers_do_not_depend_on_the_order_of_calls() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&example("weather"));
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let calls = [
        ("weather.get_weather", json!({"city": "Beijing"})),
        ("weather.get_weather", json!({"city": "北京", "unit": "fahrenheit"})),
        ("weather.get_weather", json!({"city": "Atlantis"})),
    ];
    let mut first: [Option<String>; 3] = [None, None, None];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for index in order {
            let (operation, arguments) = &calls[index];
            let params = CallParams::new(*operation).arguments(&arguments.to_string()).expect("JSON");
            let result = client.call(&params).await.expect("a result");
            let answer = format!("{:?} {:?} {:?}", result.data, result.summary, result.error);
            let known = first[index].get_or_insert_with(|| answer.clone());
            assert_eq!(*known, answer, "in the order {order:?}");
        }
    }
    let [beijing, _, atlantis] = first.map(Option::unwrap_or_default);
    assert!(beijing.contains("The weather in Beijing"), "{beijing}");
    assert!(atlantis.contains("city_not_found"), "{atlantis}");
    drop(client);
    daemon.stop();
}

#[test]
fn s1_every_log_line_and_event_of_a_call_carries_its_id_and_no_other() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "talker",
        r#"
MANIFEST = {"features": {"concurrency": 4}}


def handle(operation, arguments, params):
    call_id = params["context"]["call_id"]
    for _ in range(3):
        send({"jsonrpc": "2.0", "method": "log", "params": {"level": "info", "call_id": call_id, "message": "for " + call_id}})
    return {"data": arguments}
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| daemon.json(&["call", "talker.echo"]))).collect();
        let id = |result: Value| result["meta"]["call_id"].as_str().map(str::to_owned).expect("an id");
        calls.into_iter().map(|call| id(call.join().expect("it ends"))).collect()
    });
    for id in &ids {
        let lines = daemon.json(&["logs", "--call", id]);
        let texts: Vec<&str> =
            lines.as_array().expect("lines").iter().filter_map(|line| line["text"].as_str()).collect();
        assert_eq!(texts, vec![format!("for {id}"); 3], "{lines:#}");
    }
    let events = daemon.json(&["events", "talker"]);
    for id in &ids {
        let of_call = events.as_array().expect("events").iter().filter(|event| event["call_id"] == json!(id));
        let kinds: Vec<&str> = of_call.filter_map(|event| event["kind"].as_str()).collect();
        assert_eq!(kinds, ["call.started", "call.finished"], "{events:#}");
    }
    daemon.stop();
}

#[tokio::test]
async fn t6_a_line_on_stderr_carries_the_id_of_the_only_call_in_flight() {
    let sandbox = Sandbox::new("");
    let told = r#"
def handle(operation, arguments, params):
    print("for " + params["context"]["call_id"], file=sys.stderr, flush=True)
    return {"data": arguments}
"#;
    let table = sandbox.python("talker", told);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let mut expected = Vec::new();
    for _ in 0..50 {
        let result = client.call(&CallParams::new("talker.echo")).await.expect("a result");
        expected.push(format!("for {}", result.meta.call_id.expect("an id")));
    }
    let lines = daemon.json(&["logs", "talker"]);
    let lines: Vec<&Value> =
        lines.as_array().expect("lines").iter().filter(|line| line["stream"] == "stderr").collect();
    let texts: Vec<&str> = lines.iter().filter_map(|line| line["text"].as_str()).collect();
    assert_eq!(texts, expected);
    for line in lines {
        let id = line["call_id"].as_str().unwrap_or("no id");
        assert_eq!(line["text"].as_str(), Some(format!("for {id}").as_str()), "{line:#}");
    }
    drop(client);
    daemon.stop();
}

/// Sends a signal to one process that this test's daemon started.
fn kill(pid: u64, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("the process is alive");
}
