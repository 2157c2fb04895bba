//! The control API: JSON-RPC 2.0 by POST and by WebSocket on the one socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use plugd_protocol::control::{CallParams, EventsParams, LogsParams};
use plugd_tests::Sandbox;
use serde_json::{Value, json};

/// Every method, as the documentation lists them.
const METHODS: &[&str] = &[
    "call",
    "call.explain",
    "calls",
    "calls.show",
    "calls.stats",
    "jobs",
    "jobs.wait",
    "result",
    "tools",
    "lint",
    "cancel",
    "cancel.mine",
    "status",
    "list",
    "describe",
    "start",
    "stop",
    "restart",
    "reload",
    "add",
    "remove",
    "enable",
    "disable",
    "doctor",
    "answer",
    "asks.subscribe",
    "asks.unsubscribe",
    "shutdown",
    "logs",
    "logs.subscribe",
    "logs.unsubscribe",
    "events",
    "events.subscribe",
    "events.unsubscribe",
    "graph",
    "rpc.discover",
];

fn echo() -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "def handle(operation, arguments, params):\n    print(\"noted\", file=sys.stderr, flush=True)\n    return {\"data\": arguments}\n");
    sandbox.configure(&table);
    sandbox
}

/// Posts a body, written by hand, and reads status line and answer.
pub(super) fn post(sandbox: &Sandbox, body: &str) -> (String, Value) {
    let mut stream = UnixStream::connect(sandbox.socket()).expect("the daemon is reachable");
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("the request is written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the answer is read");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("an HTTP answer: {answer}"));
    let status = head.lines().next().unwrap_or_default().to_owned();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

pub(super) fn request(sandbox: &Sandbox, method: &str, params: Value) -> Value {
    let (status, answer) =
        post(sandbox, &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string());
    assert!(status.contains(" 200 "), "{status}");
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{answer:#}");
    answer
}

#[test]
fn a_post_calls_an_operation() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let answer = request(&sandbox, "call", json!({"operation": "fp.echo", "arguments": {"n": 1}}));
    assert_eq!(
        (&answer["result"]["status"], &answer["result"]["data"]),
        (&json!("ok"), &json!({"n": 1})),
        "{answer:#}"
    );
    let failed = request(&sandbox, "call", json!({"operation": "fp.nothing"}));
    assert_eq!(failed["result"]["error"]["code"], 1003, "a failed call is a result: {failed:#}");
    let unknown = request(&sandbox, "status", json!({"plugin": "nobody"}));
    assert_eq!(unknown["error"]["data"]["code"], 1002, "{unknown:#}");
    // Of a call that has ended the command line makes an error, 1005.
    let ended = answer["result"]["meta"]["call_id"].as_str().expect("an id");
    let cancelled = request(&sandbox, "cancel", json!({"call_id": ended}));
    assert_eq!(cancelled["result"], json!({"call_id": ended, "cancelled": false}), "{cancelled:#}");
    assert_eq!(daemon.plugd(&["--output", "json", "cancel", ended]).expect(4).json()["error"]["code"], 1005);
    daemon.stop();
}

#[test]
fn curl_is_enough_of_a_client() {
    let Ok(version) = Command::new("curl").arg("--version").output() else {
        return eprintln!("skipped: curl is not installed");
    };
    assert!(version.status.success());
    let sandbox = echo();
    let daemon = sandbox.serve();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":"fp.echo","arguments":{"n":9007199254740993}}}"#;
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--max-time", "20", "--unix-socket"])
        .arg(sandbox.socket())
        .args(["http://localhost/", "-H", "content-type: application/json", "-d", body])
        .output()
        .expect("curl runs");
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && answer.contains(r#""data":{"n": 9007199254740993}"#), "{output:?}");
    daemon.stop();
}

#[test]
fn a_malformed_request_is_a_json_rpc_error_that_names_the_mistake() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let cases = [
        ("call", json!({"operation": "fp.echo", "arguments": [1]}), -32602, "arguments"),
        ("call", json!({"operation": "fp.echo", "argments": {}}), -32602, "argments"),
        ("call", json!({}), -32602, "operation"),
        ("call", json!(["fp.echo"]), -32602, "by name"),
        ("list", json!({"state": "odd"}), -32602, "state"),
        ("nothing", json!({}), -32601, ""),
    ];
    for (method, params, code, named) in cases {
        let answer = request(&sandbox, method, params);
        assert_eq!(answer["error"]["code"], code, "{answer:#}");
        assert!(
            answer["error"]["message"].as_str().is_some_and(|message| message.contains(named)),
            "{answer:#}"
        );
    }
    let (_, answer) = post(&sandbox, "{\"jsonrpc\":");
    assert_eq!(answer["error"]["code"], -32700, "{answer:#}");
    daemon.stop();
}

/// As the documentation says it: which bodies are none, by the HTTP status and the error's number.
#[test]
fn a_body_that_is_no_request_says_so_whatever_its_status() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    for (body, status, code) in [
        ("5", "400", -32700),
        ("\"x\"", "400", -32700),
        ("null", "400", -32700),
        ("", "400", -32700),
        ("{", "200", -32700),
        ("{\"a\":", "200", -32700),
        ("[1", "200", -32700),
        ("{\"id\":3}", "200", -32600),
    ] {
        let (line, answer) = post(&sandbox, body);
        assert!(line.contains(&format!(" {status} ")), "{body:?}: {line}");
        assert_eq!(answer["error"]["code"], code, "{body:?}: {answer:#}");
    }
    daemon.stop();
}

#[test]
fn null_is_an_id_and_what_is_no_id_makes_a_notification() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let ask = |id: &str| {
        let id = if id.is_empty() { String::new() } else { format!("\"id\":{id},") };
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",{id}\"method\":\"call\",\"params\":{{\"operation\":\"fp.echo\"}}}}"
        );
        post(&sandbox, &body).1
    };
    let answer = ask("null");
    assert_eq!((&answer["id"], &answer["result"]["status"]), (&Value::Null, &json!("ok")), "{answer:#}");
    for none in ["", "-1", "1.5", "18446744073709551616"] {
        assert_eq!(ask(none), Value::Null, "{none}");
    }
    // Beside the call with an id, nothing was carried out.
    let calls = || request(&sandbox, "calls", json!({}))["result"]["calls"].as_array().map_or(0, Vec::len);
    plugd_tests::eventually("it is recorded", || calls() == 1);
    // One request of many in a body.
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"graph"},{"jsonrpc":"2.0","id":2,"method":"nothing"}]"#;
    let (_, answers) = post(&sandbox, batch);
    assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers:#}");
    daemon.stop();
}

#[tokio::test]
async fn subscriptions_bring_the_past_that_was_asked_for_and_then_what_happens() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    client.call(&CallParams::new("fp.echo")).await.expect("a result");
    let mut from_now = client.follow_events(&EventsParams::default()).await.expect("a subscription");
    let mut with_past =
        client.follow_events(&EventsParams { plugin: None, tail: Some(1) }).await.expect("a subscription");
    let mut logs = client.follow_logs(&LogsParams::default()).await.expect("a subscription");
    let result = client.call(&CallParams::new("fp.echo")).await.expect("a result");

    let wait = Duration::from_secs(10);
    let first =
        tokio::time::timeout(wait, from_now.next()).await.expect("in time").expect("open").expect("an event");
    assert_eq!((first.kind.as_ref(), first.call_id.as_ref()), ("call.started", result.meta.call_id.as_ref()));
    let past = tokio::time::timeout(wait, with_past.next())
        .await
        .expect("in time")
        .expect("open")
        .expect("an event");
    assert_eq!(past.kind, "call.finished");
    assert_ne!(past.call_id.as_ref(), result.meta.call_id.as_ref(), "that of the call before");
    let line =
        tokio::time::timeout(wait, logs.next()).await.expect("in time").expect("open").expect("a line");
    assert_eq!((line.text.as_str(), line.call_id.as_ref()), ("noted", result.meta.call_id.as_ref()));
    let mut last = past.seq;
    while last < first.seq + 1 {
        let event = tokio::time::timeout(wait, with_past.next())
            .await
            .expect("in time")
            .expect("open")
            .expect("an event");
        assert!(event.seq > last, "each event once, in order");
        last = event.seq;
    }
    drop((from_now, with_past, logs, client));
    daemon.stop();
}

#[test]
fn the_document_about_the_api_names_every_method_and_each_is_there() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let document = request(&sandbox, "rpc.discover", json!({}))["result"].clone();
    assert!(document["openrpc"].as_str().is_some_and(|version| version.starts_with("1.")), "{document:#}");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let methods = document["methods"].as_array().expect("methods");
    let mut named: Vec<&str> = methods.iter().filter_map(|method| method["name"].as_str()).collect();
    named.sort_unstable();
    let mut known = METHODS.to_vec();
    known.sort_unstable();
    assert_eq!(named, known);
    for method in methods {
        assert!(method["params"].is_array() && !method["result"]["schema"].is_null(), "{method:#}");
    }
    // One that stops nothing: these params fit no method, so each is found and refuses them.
    for method in METHODS.iter().filter(|method| !method.contains("subscribe")) {
        let answer = request(&sandbox, method, json!({"no_such_param": 1}));
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer:#}");
    }
    daemon.stop();
}
