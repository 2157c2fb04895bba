//! What is tried again, and what never is: by its declared effects alone.

use std::time::{Duration, Instant};

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

/// Each operation leaves a line for each run, then does what it is called.
const SHOP: &str = r#"
EFFECTS = {"order": {}, "query": {"read_only": True}, "put": {"idempotent": True}}
SCHEMA = {"type": "object", "properties": {"how": {"type": "string"}}}
OPERATIONS = [{"name": name, "input_schema": SCHEMA, "effects": effects} for name, effects in EFFECTS.items()]
MANIFEST = {"features": {"concurrency": 2}}

def runs(operation):
    try:
        with open(operation) as file:
            return len(file.read().splitlines())
    except FileNotFoundError:
        return 0

def handle(operation, arguments, params):
    mark(operation, str(params["context"]["attempt"]))
    how = arguments.get("how")
    first = runs(operation) == 1
    if how == "crash" or (how == "crash once" and first):
        os._exit(1)
    if how == "garbage once" and first:
        send({"jsonrpc": "2.0", "id": CALL.id, "error": "no such thing"})
        return None
    if how == "raves once" and first:
        raw(b"no message\n" * 100)
        threading.Event().wait()
    if how == "business":
        raise Failure("sold out", name="sold_out")
    if how == "params":
        raise Failure("no such item", code=-32602)
    if how == "retryable" or (how == "retryable once" and first):
        raise Failure("busy", name="busy", retryable=True)
    if how == "hang":
        threading.Event().wait()
    return {"data": operation}

CALL = threading.local()
answer = answer_call

def answer_call(message):
    CALL.id = message["id"]
    answer(message)
"#;

fn shop(more: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}{more}", sandbox.python("shop", SHOP)));
    sandbox
}

/// The result of a call, and the attempt of each of its runs.
fn call(sandbox: &Sandbox, daemon: &Daemon<'_>, operation: &str, how: &str) -> (Value, Vec<String>) {
    sandbox.write(&format!("plugins/shop/{operation}"), "");
    let result =
        daemon.json(&["call", &format!("shop.{operation}"), &format!("how={how}"), "--timeout", "30s"]);
    let runs = sandbox.read(&format!("plugins/shop/{operation}"));
    (result, runs.lines().map(str::to_owned).collect())
}

/// Row X10; case C153 has a test of its own.
#[test]
fn r_x10_only_what_does_no_harm_twice_is_run_again_and_told_that_it_is() {
    let sandbox = shop("");
    let daemon = sandbox.serve();
    let (order, runs) = call(&sandbox, &daemon, "order", "crash");
    let error = &order["error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!(6001), &json!("unknown")), "{order:#}");
    assert_eq!((runs, &order["meta"]["attempt"]), (vec!["1".to_owned()], &json!(1)));
    for operation in ["put", "query"] {
        let (result, runs) = call(&sandbox, &daemon, operation, "crash once");
        assert_eq!((&result["status"], &result["meta"]["attempt"]), (&json!("ok"), &json!(2)), "{result:#}");
        assert_eq!(runs, ["1", "2"], "the plugin is told that it is the second attempt");
    }
    daemon.stop();
}

/// Row X10; case C154 has a test of its own.
#[test]
fn r_x10_an_error_that_would_come_again_is_no_reason_and_once_is_all() {
    let sandbox = shop("");
    let daemon = sandbox.serve();
    for (how, name) in [("business", "sold_out"), ("params", "plugin_error")] {
        let (result, runs) = call(&sandbox, &daemon, "put", how);
        assert_eq!((&result["error"]["name"], runs.len()), (&json!(name), 1), "{how}: {result:#}");
    }
    // One that broke the protocol so that it had to be ended has died, too.
    for how in ["retryable once", "raves once", "crash once"] {
        let (result, runs) = call(&sandbox, &daemon, "put", how);
        assert_eq!((&result["status"], runs.len()), (&json!("ok"), 2), "{how}: {result:#}");
    }
    // What lives and answered with no message would do so again.
    let (result, runs) = call(&sandbox, &daemon, "put", "garbage once");
    assert_eq!((&result["error"]["code"], runs.len()), (&json!(8003), 1), "{result:#}");
    // Once is all.
    let (result, runs) = call(&sandbox, &daemon, "put", "retryable");
    assert_eq!(
        (&result["error"]["name"], &result["meta"]["attempt"]),
        (&json!("busy"), &json!(2)),
        "{result:#}"
    );
    assert_eq!(runs, ["1", "2"]);
    let (result, runs) = call(&sandbox, &daemon, "order", "retryable");
    assert_eq!((&result["error"]["name"], runs.len()), (&json!("busy"), 1), "{result:#}");
    daemon.stop();
}

#[test]
fn what_took_too_long_is_not_run_again() {
    let sandbox = shop("");
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "shop"]).expect(0);
    sandbox.write("plugins/shop/put", "");
    let result = daemon.json(&["call", "shop.put", "how=hang", "--timeout", "1s"]);
    assert_eq!(result["error"]["code"], 5001, "{result:#}");
    assert_eq!(sandbox.read("plugins/shop/put").lines().count(), 1);
    daemon.stop();
}

/// A second attempt has what is left of the first one's time, and no more.
#[test]
fn a_plugin_that_does_not_come_back_is_told_of_as_it_went() {
    let sandbox = shop("restart = { backoff = \"60s\", backoff_cap = \"60s\", jitter = 0.0 }\n");
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "shop"]).expect(0);
    let began = Instant::now();
    sandbox.write("plugins/shop/put", "");
    let result = daemon.json(&["call", "shop.put", "how=crash", "--timeout", "3s"]);
    let error = &result["error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!(6001), &json!("unknown")), "{result:#}");
    assert_eq!(sandbox.read("plugins/shop/put").lines().count(), 1);
    assert!(began.elapsed() < Duration::from_secs(20), "it did not wait for the restart beyond its time");
    daemon.stop();
}

/// A plugin in a dozen lines of sh; all that is asked of it here stands in its manifest.
const SH: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
  *'"describe"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":'"$(cat manifest.json)"'}' ;;
  *'"operation":"flaky"'*) echo x >>flaky; [ "$(wc -l <flaky)" -gt 1 ] || exit 1; echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"data":"up"}}' ;;
  *'"operation":"slow"'*) ;;
  *'"method":"call"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"data":"done"}}' ;;
  *'"id"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"unknown method"}}' ;;
  esac
done
"#;

/// Row X15.
#[test]
fn r_x15_policies_follow_from_the_manifest_and_the_author_writes_no_code_for_them() {
    let sandbox = Sandbox::new("[plugins.sh]\ncommand = [\"./main.sh\"]\ncwd = \"plugins/sh\"\n");
    sandbox.program("plugins/sh/main.sh", SH);
    let manifest = json!({"protocol": 1, "name": "sh", "version": "1.0.0", "features": {"concurrency": 4}, "operations": [
        {"name": "wipe", "input_schema": {"type": "object"}, "effects": {"destructive": true}},
        {"name": "flaky", "input_schema": {"type": "object"}, "effects": {"idempotent": true}},
        {"name": "slow", "input_schema": {"type": "object"}, "timeout_ms": 300},
        {"name": "long", "input_schema": {"type": "object"}, "long_running": true},
    ]});
    sandbox.write("plugins/sh/manifest.json", &manifest.to_string());
    let daemon = sandbox.serve();
    let wipe = daemon.plugd(&["--output", "json", "call", "sh.wipe"]).expect(8).json();
    assert_eq!(wipe["status"], "needs_confirmation", "{wipe:#}");
    assert_eq!(daemon.json(&["call", "sh.wipe", "--yes"])["data"], "done");
    let flaky = daemon.json(&["call", "sh.flaky"]);
    assert_eq!((&flaky["data"], &flaky["meta"]["attempt"]), (&json!("up"), &json!(2)), "{flaky:#}");
    assert_eq!(daemon.json(&["call", "sh.slow"])["error"]["name"], "timed_out");
    let job = daemon.json(&["call", "sh.long"]);
    assert_eq!(job["status"], "pending", "{job:#}");
    let id = job["meta"]["call_id"].as_str().expect("a job's id");
    assert_eq!(daemon.json(&["jobs", "wait", id])["data"], "done");
    daemon.stop();
}

#[test]
fn people_are_told_of_attempts_and_of_what_may_be_tried_again() {
    let sandbox = shop("");
    let daemon = sandbox.serve();
    let ran = daemon.plugd(&["call", "shop.query", "how=crash once"]).expect(0);
    assert!(ran.stderr.contains("note: attempt 2: those before failed"), "{ran:?}");
    let ran = daemon.plugd(&["call", "shop.order", "how=retryable"]).expect(1);
    assert!(ran.stderr.contains("\n  retryable: the same call may succeed later"), "{ran:?}");
    let ran = daemon.plugd(&["call", "shop.order", "how=business"]).expect(1);
    assert!(!ran.stderr.contains("retryable") && !ran.stderr.contains("attempt"), "{ran:?}");
    daemon.stop();
}
