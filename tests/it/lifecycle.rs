//! The life of a plugin from `describe` to its end, as it and those who watch it see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use plugd_daemon::client::ClientError;
use plugd_protocol::control::{CallParams, Event, EventsParams, PluginsParams, ReloadParams};
use plugd_protocol::error::ErrorClass;
use plugd_protocol::{PluginName, Status};
use plugd_tests::{Sandbox, eventually};
use serde_json::{Value, json};

/// Makes a Python fixture write down every line it gets (`> `) and every line it sends (`< `).
const RECORDED: &str = "
def recorded(lines):
    for line in lines:
        mark('transcript', '> ' + line.decode().rstrip('\\n'))
        yield line
    mark('transcript', '> end of stdin')

class Recorded:
    buffer = recorded(sys.stdin.buffer)

sys.stdin = Recorded
unrecorded = raw
def raw(data):
    mark('transcript', '< ' + data.decode().rstrip('\\n'))
    unrecorded(data)
";

/// The recorded lines, each with its direction.
fn transcript(text: &str) -> Vec<(char, Value)> {
    let line = |line: &str| {
        let (direction, message) = line.split_once(' ').expect("a direction");
        let message = serde_json::from_str(message).unwrap_or_else(|_| Value::from(message));
        (direction.chars().next().expect("a direction"), message)
    };
    text.lines().map(line).collect()
}

#[test]
fn l1_a_plugin_sees_the_whole_conversation_as_it_is_specified() {
    let sandbox = Sandbox::new("");
    let definitions = "
def handle(operation, arguments, params):
    call_id = params['context']['call_id']
    send({'jsonrpc': '2.0', 'method': 'progress', 'params': {'call_id': call_id, 'done': 1, 'total': 2}})
    return {'data': {'status': 'in review'}, 'summary': 'it is in review'}
";
    let table = sandbox.python("tickets", &format!("{RECORDED}{definitions}"));
    sandbox.configure(&format!("{table}start = \"eager\"\nconfig.depth = 3\n"));
    let daemon = sandbox.serve();
    let call = daemon.json(&["call", "tickets.echo", "ticket_id=TK-1"]);
    assert_eq!(call["summary"], "it is in review", "{call:#}");
    daemon.json(&["stop", "tickets"]);

    let mut lines = transcript(&sandbox.read("plugins/tickets/transcript"));
    let heard = |lines: &[(char, Value)], at: usize| {
        (lines[at].0, lines[at].1["id"].clone(), lines[at].1["method"].clone())
    };
    let methods: Vec<_> = (0..lines.len()).map(|at| heard(&lines, at)).collect();
    let expected = [
        ('>', json!(1), json!("describe")),
        ('<', json!(1), Value::Null),
        ('>', json!(2), json!("init")),
        ('<', json!(2), Value::Null),
        ('>', json!(3), json!("call")),
        ('<', Value::Null, json!("progress")),
        ('<', json!(3), Value::Null),
        ('>', json!(4), json!("shutdown")),
        ('<', json!(4), Value::Null),
    ];
    assert_eq!(methods, expected, "{lines:#?}");
    assert!(lines.iter().all(|(_, message)| message["jsonrpc"] == "2.0"), "{lines:#?}");
    let features = lines[0].1["params"]["protocol"]["features"].take();
    assert!(
        features.as_array().is_some_and(|features| features.contains(&json!("host_calls"))),
        "{features}"
    );
    assert_eq!(lines[0].1["params"]["protocol"]["versions"], json!([1]));
    assert_eq!(lines[0].1["params"]["host"]["name"], "plugd");
    let init = &lines[2].1["params"];
    assert_eq!(init["config"], json!({"depth": 3}), "{init:#}");
    let data_dir = init["data_dir"].as_str().expect("a folder");
    assert!(std::path::Path::new(data_dir).is_dir(), "{data_dir} is there to be written to");
    assert!(init["locale"].is_string(), "{init:#}");
    let params = &lines[4].1["params"];
    assert_eq!((&params["operation"], &params["arguments"]), (&json!("echo"), &json!({"ticket_id": "TK-1"})));
    assert_eq!(params["context"]["call_id"], call["meta"]["call_id"]);
    assert_eq!(params["context"]["attempt"], 1);
    let left = params["context"]["deadline_ms"].as_u64().expect("a number");
    assert!((1..=30_000).contains(&left), "{left}");
    assert_eq!(lines[7].1["params"], json!({"reason": "stop", "grace_ms": 5000}));
    daemon.stop();
}

#[test]
fn l1_describing_a_plugin_opens_nothing() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("tickets", RECORDED);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.json(&["list"]);
    let idle = daemon.wait_for_state("tickets", "idle");
    assert_eq!(idle["starts"], 0, "{idle:#}");
    let lines = transcript(&sandbox.read("plugins/tickets/transcript"));
    let requests: Vec<&Value> = lines
        .iter()
        .filter(|(direction, _)| *direction == '>')
        .map(|(_, message)| &message["method"])
        .collect();
    assert_eq!(requests.first(), Some(&&json!("describe")), "{lines:#?}");
    assert!(!requests.contains(&&json!("init")) && !requests.contains(&&json!("shutdown")), "{lines:#?}");
    daemon.stop();
}

#[test]
fn l2_a_plugin_that_knows_only_describe_and_call_works_in_full() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let first = daemon.json(&["call", "clock.pid"]);
    let second = daemon.json(&["call", "clock.pid"]);
    assert_eq!((&first["status"], &second["status"]), (&json!("ok"), &json!("ok")), "{first:#} {second:#}");
    assert_eq!(first["data"]["pid"], second["data"]["pid"]);
    assert_eq!(sandbox.read("plugins/inits"), "clock\n", "init was asked, and -32601 counts as done");

    let stop = daemon.json(&["stop", "clock"]);
    assert_eq!(stop["plugins"][0]["ended"], "exited", "-32601 to shutdown counts as done: {stop:#}");
    assert!(
        stop["plugins"][0]["took_ms"].as_u64().expect("a number") < 4_000,
        "no grace was waited out: {stop:#}"
    );
    daemon.stop();
}

#[test]
fn l3_resources_are_opened_once_used_by_many_calls_and_released_at_the_end() {
    let sandbox = Sandbox::new("");
    let definitions = "
def on_init(params):
    mark('opened', str(os.getpid()))
    return {}
def handle(operation, arguments, params):
    return {'data': os.getpid()}
def on_shutdown():
    mark('released', str(os.getpid()))
";
    let table = sandbox.python("store", definitions);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let pids: Vec<Value> = (0..5).map(|_| daemon.json(&["call", "store.echo"])["data"].clone()).collect();
    assert!(pids.iter().all(|pid| pid.is_u64() && *pid == pids[0]), "{pids:?}");
    let pid = format!("{}\n", pids[0]);
    assert_eq!(sandbox.read("plugins/store/opened"), pid, "init came once");
    assert_eq!(sandbox.read("plugins/store/released"), "");

    let stop = daemon.json(&["stop", "store"]);
    assert_eq!(stop["plugins"][0]["ended"], "exited", "{stop:#}");
    assert_eq!(sandbox.read("plugins/store/released"), pid);
    daemon.stop();
}

/// The states that may follow a state; calls are events of their own.
fn may_follow(state: &str) -> &'static [&'static str] {
    match state {
        "registered" => &["starting", "blocked", "disabled", "stopped"],
        "starting" => &["ready", "stopping", "idle", "backoff", "failed", "disabled", "blocked", "stopped"],
        "ready" => &["stopping", "starting", "backoff", "failed"],
        "idle" => &["starting", "blocked", "disabled", "stopped"],
        "backoff" => &["starting", "blocked", "disabled", "stopped", "idle"],
        "blocked" => &["starting", "idle", "disabled", "stopped"],
        "disabled" => &["starting", "idle", "blocked", "stopped"],
        "failed" => &["starting", "blocked", "disabled", "stopped"],
        "stopping" => &["stopped", "idle", "starting", "disabled", "failed", "backoff", "blocked"],
        "stopped" => &["starting", "blocked", "disabled", "idle"],
        other => panic!("there is no state {other}"),
    }
}

/// Checks every transition of every plugin; returns how many there were.
fn assert_legal(events: &[Event]) -> usize {
    let mut states: BTreeMap<&PluginName, (&str, u64)> = BTreeMap::new();
    let mut transitions = 0;
    for (event, next) in events.iter().zip(events.iter().skip(1)) {
        assert_eq!(event.seq + 1, next.seq, "the numbers of events grow by one");
    }
    for event in events {
        let state = event.kind.strip_prefix("plugin.").or_else(|| event.kind.strip_prefix("run."));
        let (Some(plugin), Some(state)) = (&event.plugin, state) else {
            continue;
        };
        if ["reconfigured", "refused"].contains(&state) {
            // What became of a change; the state stays what it was.
            continue;
        }
        let generation = event.generation.expect("a transition has a generation");
        if state == "replaced" {
            // Another run serves now, in the state that the one before it was in.
            let (before, run) = states.insert(plugin, ("ready", generation)).unwrap_or(("registered", 0));
            assert!(
                before == "ready" && generation > run,
                "{plugin}: {before} (run {run}) -> run {generation}"
            );
            transitions += 1;
            continue;
        }
        let (before, run) = states.insert(plugin, (state, generation)).unwrap_or(("registered", 0));
        let step =
            format!("{plugin}: {before} (run {run}) -> {state} (run {generation}): {:?}", event.reason);
        assert!(may_follow(before).contains(&state), "not legal: {step}");
        assert!(generation >= run, "a run does not come back: {step}");
        if state == "ready" {
            assert!(generation == run && before == "starting", "only what was starting gets ready: {step}");
        }
        if ["backoff", "failed", "disabled", "blocked"].contains(&state) {
            assert!(
                event.reason.as_ref().is_some_and(|reason| !reason.is_empty()),
                "without a reason: {step}"
            );
        }
        transitions += 1;
    }
    transitions
}

#[test]
fn l4_events_tell_each_step_of_a_life_in_order() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.json(&["list"]);
    daemon.wait_for_state("clock", "idle");
    eventually("the run that was only described is gone", || daemon.status("clock")["pid"].is_null());
    daemon.json(&["call", "clock.pid"]);
    daemon.json(&["stop", "clock"]);
    let events: Vec<Event> = serde_json::from_value(daemon.json(&["events", "clock"])).expect("events");
    let steps: Vec<(&str, Option<u64>)> = events
        .iter()
        .filter(|event| event.kind.starts_with("plugin.") || event.kind.starts_with("call."))
        .map(|event| (event.kind.as_ref(), event.generation))
        .collect();
    let plugin_steps: Vec<_> =
        steps.iter().filter(|(kind, _)| kind.starts_with("plugin.")).copied().collect();
    let expected = [
        ("plugin.starting", Some(1)),
        ("plugin.idle", Some(1)),
        ("plugin.starting", Some(2)),
        ("plugin.ready", Some(2)),
        ("plugin.stopping", Some(2)),
        ("plugin.stopped", Some(2)),
    ];
    assert_eq!(plugin_steps, expected, "{events:#?}");
    let at =
        |kind: &str| steps.iter().position(|(step, _)| *step == kind).unwrap_or_else(|| panic!("no {kind}"));
    assert!(at("call.started") < at("call.finished"), "{steps:?}");
    assert!(at("plugin.ready") < at("call.finished"), "{steps:?}");
    daemon.stop();
}

/// Numbers that look random and are the same in every run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

#[tokio::test]
async fn l4_whatever_operators_do_every_transition_is_legal() {
    let sandbox = Sandbox::new("");
    let restart = "restart = { backoff = \"10ms\", max = 2 }\n";
    let auth = format!("{}{restart}", sandbox.shell("auth"));
    let weather = format!("{}{restart}requires = {{ auth = \"*\" }}\n", sandbox.shell("weather"));
    let trip = format!("{}{restart}requires = {{ weather = \">=1.0\" }}\n", sandbox.shell("trip"));
    sandbox.configure(&format!("{auth}{weather}{trip}"));
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let names = ["auth", "weather", "trip"];
    let mut dice = Dice(20_241_215);
    for _ in 0..80 {
        let name = names[dice.below(names.len())];
        let plugins = PluginsParams { plugins: vec![PluginName::new(name).expect("a name")] };
        match dice.below(7) {
            0 => drop(client.stop(&plugins).await.expect("an answer")),
            1 | 2 => drop(client.start(&plugins).await.expect("an answer")),
            3 => drop(client.restart(&plugins).await.expect("an answer")),
            4 => match client.reload(&ReloadParams { plugin: plugins.plugins.first().cloned() }).await {
                // While what it requires is stopped, no new run can take over.
                Err(ClientError::Command(error)) => {
                    assert_eq!(error.class(), ErrorClass::Process, "{error:?}")
                }
                answer => drop(answer.expect("an answer")),
            },
            5 => drop(client.call(&CallParams::new(format!("{name}.crash"))).await.expect("a result")),
            _ => drop(client.call(&CallParams::new(format!("{name}.pid"))).await.expect("a result")),
        }
    }
    let events = client.events(&EventsParams { plugin: None, tail: Some(1_000) }).await.expect("events");
    assert_eq!(events.first().map(|event| event.seq), Some(1), "all of them are still there");
    let transitions = assert_legal(&events);
    assert!(transitions > 60, "the commands did something: {transitions}");
    drop(client);
    daemon.stop();
}

/// A plugin whose init takes three seconds and says so all the while.
const SLOW: &str = "
def on_init(params):
    mark('initialising')
    for done in range(15):
        time.sleep(0.2)
        send({'jsonrpc': '2.0', 'method': 'progress', 'params': {'done': done, 'total': 15, 'message': 'reading'}})
    mark('initialised')
    return {}
";

#[test]
fn l5_a_slow_init_costs_nothing_until_it_is_wanted_and_then_the_first_call_succeeds() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("vocabulary", SLOW);
    sandbox.configure(&format!("{table}init_timeout = \"1s\"\n"));
    let daemon = sandbox.serve();
    daemon.json(&["list"]);
    assert_eq!(sandbox.read("plugins/vocabulary/initialising"), "", "nobody wanted it yet");

    std::thread::scope(|scope| {
        let call = scope.spawn(|| daemon.json(&["call", "vocabulary.echo", "word=plugd"]));
        eventually("init is under way", || !sandbox.read("plugins/vocabulary/initialising").is_empty());
        let status = daemon.status("vocabulary");
        assert_eq!(status["state"], "starting", "{status:#}");
        let result = call.join().expect("the call ends");
        assert_eq!(
            (&result["status"], &result["data"]["word"]),
            (&json!("ok"), &json!("plugd")),
            "{result:#}"
        );
    });
    let status = daemon.status("vocabulary");
    assert_eq!(
        (&status["state"], &status["starts"], &status["restarts"]),
        (&json!("ready"), &json!(1), &json!(0))
    );
    assert!(status["init_ms"].as_u64().expect("a number") >= 3_000, "longer than its limit without progress");
    daemon.stop();
}

#[test]
fn l5_serve_does_not_wait_for_a_slow_init_even_if_it_is_wanted_at_once() {
    let sandbox = Sandbox::new("");
    let quick = sandbox.shell("quick");
    let table = sandbox.python("vocabulary", SLOW);
    sandbox.configure(&format!("{table}start = \"eager\"\n{quick}"));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "quick.pid"])["status"], "ok");
    assert_eq!(
        sandbox.read("plugins/vocabulary/initialised"),
        "",
        "the daemon and others were ready before it"
    );
    daemon.wait_for_state("vocabulary", "ready");
    daemon.stop();
}

#[test]
fn l5_an_init_that_says_nothing_for_too_long_is_ended_with_that_reason() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("silent", "def on_init(params):\n    time.sleep(600)\n");
    let limits = "init_timeout = \"200ms\"\nrestart = { max = 0 }\n";
    sandbox.configure(&format!("{table}{limits}"));
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "silent"]).expect(6);
    let status = daemon.wait_for_state("silent", "failed");
    let reason = status["reason"].as_str().expect("a reason");
    assert!(reason.contains("no init answer in 0.2 s"), "{reason}");
    assert_eq!(status["pid"], Value::Null, "its process is gone");
    daemon.stop();
}

#[tokio::test]
async fn x14_twenty_first_calls_at_once_make_one_process_and_one_init() {
    let sandbox = Sandbox::new("");
    let definitions = "
MANIFEST = {'features': {'concurrency': 4}}
def on_init(params):
    mark('init', str(os.getpid()))
    time.sleep(0.3)
    return {}
def handle(operation, arguments, params):
    return {'data': {'n': arguments['n'], 'pid': os.getpid()}}
";
    let table = sandbox.python("store", definitions);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let client = Arc::new(daemon.client().await);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..20 {
        let client = Arc::clone(&client);
        calls.spawn(async move {
            let params =
                CallParams::new("store.echo").arguments(&format!("{{\"n\":{number}}}")).expect("JSON");
            (number, client.call(&params).await.expect("a result"))
        });
    }
    let mut pids = Vec::new();
    while let Some(call) = calls.join_next().await {
        let (number, result) = call.expect("no panic");
        assert_eq!(result.status, Status::Ok, "{:?}", result.error);
        let data: Value = serde_json::from_str(result.data.expect("data").get()).expect("JSON");
        assert_eq!(data["n"], number);
        pids.push((data["pid"].clone(), result.meta.generation));
    }
    assert_eq!(pids.len(), 20);
    assert!(pids.iter().all(|pid| *pid == pids[0]), "one process and one run: {pids:?}");
    assert_eq!(sandbox.read("plugins/store/init"), format!("{}\n", pids[0].0), "one init");
    assert_eq!(daemon.status("store")["starts"], 1);
    drop(client);
    daemon.stop();
}
