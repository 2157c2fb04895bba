//! Waiting for a lane: bounded, timed; and what a call tells while it runs.

use std::thread::ScopedJoinHandle;

use plugd_tests::{Daemon, Ran, Sandbox, eventually};
use serde_json::json;

/// A one-lane plugin whose calls end when a file says so.
const GATE: &str = r#"
def handle(operation, arguments, params):
    mark("running")
    while not os.path.exists("open"):
        time.sleep(0.01)
    return {"data": arguments}
"#;

fn gate(limits: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("gate", GATE);
    sandbox.configure(&format!("{table}{limits}"));
    sandbox
}

fn open(sandbox: &Sandbox) {
    sandbox.write("plugins/gate/open", "");
}

/// Starts a call beside this thread and waits until `status` shows it.
fn begin<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    daemon: &'scope Daemon<'_>,
    (in_flight, queued): (u32, u32),
) -> ScopedJoinHandle<'scope, Ran> {
    let call = scope.spawn(|| daemon.plugd(&["--output", "json", "call", "gate.echo", "n:=1"]));
    let shown = || {
        let status = daemon.status("gate");
        status["in_flight"] == json!(in_flight) && status["queued"] == json!(queued)
    };
    eventually("the call is in flight or waits", shown);
    call
}

#[test]
fn a_call_beyond_the_queue_is_overloaded_at_once() {
    let sandbox = gate("queue_length = 1\n");
    let daemon = sandbox.serve();
    std::thread::scope(|scope| {
        let first = begin(scope, &daemon, (1, 0));
        let second = begin(scope, &daemon, (1, 1));
        // It would wait for ever if it was queued: the gate is opened only after it.
        let third = daemon.plugd(&["--output", "json", "call", "gate.echo"]);
        open(&sandbox);
        let third = third.expect(6).json();
        assert_eq!((&third["error"]["code"], &third["error"]["name"]), (&json!(6002), &json!("overloaded")));
        assert_eq!(
            (&third["error"]["outcome"], &third["error"]["retryable"]),
            (&json!("not_run"), &json!(true))
        );
        for call in [first, second] {
            let result = call.join().expect("it ends").expect(0).json();
            assert_eq!(result["data"], json!({"n": 1}), "{result:#}");
        }
    });
    daemon.stop();
}

#[test]
fn a_call_waits_for_a_lane_no_longer_than_it_may() {
    let sandbox = gate("queue_timeout = \"200ms\"\n");
    let daemon = sandbox.serve();
    std::thread::scope(|scope| {
        let first = begin(scope, &daemon, (1, 0));
        let second = daemon.plugd(&["--output", "json", "call", "gate.echo"]);
        open(&sandbox);
        let second = second.expect(5).json();
        assert_eq!(second["error"]["code"], 5002, "{second:#}");
        assert_eq!(second["error"]["outcome"], "not_run");
        first.join().expect("it ends").expect(0);
    });
    assert_eq!(
        sandbox.read("plugins/gate/running").lines().count(),
        1,
        "the second never reached the plugin"
    );
    daemon.stop();
}

#[test]
fn progress_of_a_call_is_an_event_with_its_id() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "steps",
        r#"
def handle(operation, arguments, params):
    call_id = params["context"]["call_id"]
    for told in (call_id, "of nobody"):
        send({"jsonrpc": "2.0", "method": "progress", "params": {"call_id": told, "done": 1, "total": 4, "message": "reading"}})
    return {"data": {}}
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let id = daemon.json(&["call", "steps.echo"])["meta"]["call_id"].clone();
    let events = daemon.json(&["events", "steps"]);
    let told: Vec<_> =
        events.as_array().expect("events").iter().filter(|event| event["kind"] == "call.progress").collect();
    assert_eq!(told.len(), 1, "only of a call in flight: {events:#}");
    assert_eq!(told[0]["call_id"], id);
    assert_eq!(
        (&told[0]["detail"]["done"], &told[0]["detail"]["total"]),
        (&json!(1), &json!(4)),
        "{events:#}"
    );
    assert_eq!(told[0]["detail"]["message"], "reading");
    daemon.stop();
}
