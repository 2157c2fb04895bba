//! Cases about pipes that fill, floods, and calls that come back to where they began.

use std::time::Duration;

use plugd_protocol::control::CallParams;
use plugd_protocol::{CallResult, Status};
use plugd_tests::{Neighbour, Sandbox};
use serde_json::{Value, json};

use super::framing::{data_of, logged, sandbox_of};

#[test]
fn c072_more_on_stderr_than_a_pipe_holds_stops_nobody() {
    let sandbox = Sandbox::new("");
    let table = sandbox.misbehaving("p", &[]);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    for _ in 0..3 {
        data_of(&daemon, &["p.stderr", "bytes:=262144"]);
    }
    let lines = logged(&daemon, "p", "stderr");
    assert!(lines.len() > 100, "the log holds its tail: {}", lines.len());
    assert!(sandbox.read("state/logs/p.log").contains(&"x".repeat(99)), "in the file, too");
    assert_eq!(daemon.status("p")["restarts"], 0);
    daemon.stop();
}

/// What the daemon may take for 50 MB that pass through it.
const GROWTH_MAX_KIB: u64 = 10 * 1024;

#[test]
fn c075_a_progress_bar_on_stderr_fills_neither_pipe_nor_memory() {
    let sandbox = Sandbox::new("");
    let table = sandbox.misbehaving("p", &[]);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.stderr", "bytes:=100000", "newline:=false"]);
    let before = daemon.proc_status("VmRSS");
    // Twelve million lines are much for a loaded machine.
    let fifty_mb = ["p.stderr", "bytes:=50000000", "newline:=false", "--timeout", "5m"];
    std::thread::scope(|scope| {
        let call = scope.spawn(|| data_of(&daemon, &fifty_mb));
        while !call.is_finished() {
            let now = daemon.proc_status("VmRSS");
            assert!(now < before + GROWTH_MAX_KIB, "{now} KiB resident, {before} before");
            std::thread::park_timeout(Duration::from_millis(5));
        }
        call.join().expect("it is answered");
    });
    let lines = logged(&daemon, "p", "stderr");
    let longest = lines.iter().filter_map(|line| line["text"].as_str().map(str::len)).max();
    assert!(longest <= Some(8 * 1024 + 3), "{longest:?}");
    daemon.stop();
}

/// Calls others: in init, in a call, through another plugin back to itself, and itself.
const CALLER: &str = r#"
MANIFEST = {"features": {"concurrency": 2}, "requires": {"service": "*", "friend": "*"}}
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("echo", "in_init", "out", "round", "itself")]

def on_init(params):
    global IN_INIT
    send({"jsonrpc": "2.0", "id": "init", "method": "host/call", "params": {"operation": "service.echo", "arguments": {"a": 1}}})
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("id") == "init":
            IN_INIT = message["result"]["data"]
            return {}

def handle(operation, arguments, params):
    call_id = params["context"]["call_id"]
    if operation == "echo":
        return {"data": arguments}
    if operation == "in_init":
        return {"data": IN_INIT}
    if operation == "out":
        return {"data": host_call("service.echo", {"b": 2}, call_id)["result"]["data"]}
    if operation == "round":
        return {"data": host_call("friend.back", {}, call_id)["result"]["data"]}
    mark("depth")
    return {"data": host_call("caller.itself", {}, call_id)}
"#;

/// Calls back whoever calls it; that it needs the caller is no condition for its start.
const FRIEND: &str = r#"
MANIFEST = {"requires": {"caller": {"version": "*", "optional": True}}}
OPERATIONS[0]["name"] = "back"

def handle(operation, arguments, params):
    answer = host_call("caller.echo", {"c": 3}, params["context"]["call_id"])
    return {"data": answer["result"]["data"]}
"#;

#[test]
fn c077_calls_back_into_the_host_from_anywhere_hang_nobody() {
    let sandbox = Sandbox::new("");
    let tables = [("service", ""), ("friend", FRIEND), ("caller", CALLER)];
    let tables: String = tables.iter().map(|(name, code)| sandbox.python(name, code)).collect();
    // Whatever waits for a timeout waits for longer than the test.
    sandbox.configure(&format!("[limits]\ntimeout = \"60s\"\nqueue_timeout = \"60s\"\n{tables}"));
    let daemon = sandbox.serve();
    let began = std::time::Instant::now();
    assert_eq!(data_of(&daemon, &["caller.in_init"]), json!({"a": 1}), "(a) from init");
    assert_eq!(data_of(&daemon, &["caller.out"]), json!({"b": 2}), "(b) from a call");
    assert_eq!(data_of(&daemon, &["caller.round"]), json!({"c": 3}), "(c) through a friend, and back");

    let mut deep = daemon.json(&["call", "caller.itself"]);
    assert_eq!(deep["status"], "ok", "{deep:#}");
    let mut answer = deep["data"].take();
    while let Some(inner) = answer.pointer_mut("/result/data") {
        answer = inner.take();
    }
    let error = &answer["error"]["data"]["cause"]["error"];
    assert_eq!(
        (&error["name"], &error["outcome"]),
        (&json!("reentrant_call"), &json!("not_run")),
        "(d) {answer:#}"
    );
    assert_eq!(sandbox.read("plugins/caller/depth").lines().count(), 2, "as often as it has lanes");
    assert!(began.elapsed() < Duration::from_secs(30), "no timeout was waited for: {:?}", began.elapsed());
    assert_eq!(data_of(&daemon, &["caller.echo", "d=4"]), json!({"d": "4"}), "its lanes are free again");
    daemon.stop();
}

#[tokio::test]
async fn x7_a_slow_tool_is_bounded_and_slows_no_other() {
    let sandbox = Sandbox::new("");
    let slow = sandbox.misbehaving("slow", &[]);
    let quick = sandbox.shell("quick");
    sandbox.configure(&format!("{slow}{quick}"));
    let daemon = sandbox.serve();
    let client = std::sync::Arc::new(daemon.client().await);
    data_of(&daemon, &["slow.pid"]);
    let neighbour = Neighbour::begin(&daemon, "quick.pid");
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let client = std::sync::Arc::clone(&client);
            let params = CallParams::new("slow.sleep").arguments("{\"ms\":50}").expect("JSON");
            tokio::spawn(async move { client.call(&params).await.expect("a result") })
        })
        .collect();
    let mut results: Vec<CallResult> = Vec::new();
    for call in calls {
        results.push(call.await.expect("it ends"));
    }
    let (well, refused): (Vec<_>, Vec<_>) = results.iter().partition(|result| result.status == Status::Ok);
    let names: Vec<&str> =
        refused.iter().filter_map(|result| Some(result.error.as_ref()?.name.as_str())).collect();
    // One lane and 64 places to wait in; as calls end, a few more get in.
    assert!(well.len() >= 65, "{}", well.len());
    assert!(!names.is_empty() && names.iter().all(|name| *name == "overloaded"), "{names:?}");

    let mut took = neighbour.end();
    took.sort();
    let p99 = took[took.len() * 99 / 100];
    assert!(p99 < Duration::from_secs(1), "of {} calls beside it: {p99:?}", took.len());
    drop(client);
    daemon.stop();
}

/// Notes how many calls it works on at once.
const COUNTING: &str = r#"
WORKING = []

def handle(operation, arguments, params):
    WORKING.append(1)
    most = len(WORKING)
    time.sleep(0.02)
    WORKING.pop()
    return {"data": most}
"#;

#[tokio::test]
async fn s13_a_plugin_that_declares_no_concurrency_never_gets_two_calls_at_once() {
    let sandbox = sandbox_of(&[("p", COUNTING)]);
    let daemon = sandbox.serve();
    let client = std::sync::Arc::new(daemon.client().await);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let client = std::sync::Arc::clone(&client);
        calls.spawn(async move { client.call(&CallParams::new("p.echo")).await.expect("a result") });
    }
    while let Some(call) = calls.join_next().await {
        let result = call.expect("it ends");
        assert_eq!(result.status, Status::Ok, "{:?}", result.error);
        let most: Value = serde_json::from_str(result.data.expect("data").get()).expect("JSON");
        assert_eq!(most, 1);
    }
    drop(client);
    daemon.stop();
}
