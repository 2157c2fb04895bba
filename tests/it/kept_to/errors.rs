//! Errors: one shape from every source, with a hint, and never the end of anything.
//!
//! Row E2, that every code of the source stands in its class in `docs/errors.md`, is the test
//! `the_error_page_says_what_the_code_says` in `protocol/tests/errors_doc.rs`.

use std::path::Path;

use plugd_protocol::control::CallParams;
use plugd_protocol::error::{ErrorKind, Outcome};
use plugd_protocol::{CallError, CallResult, Status};
use plugd_tests::{Daemon, Sandbox};
use serde_json::{Map, Value, json};

use super::ended;

/// Fails in as many ways as a plugin can without being at fault for anything else.
const BAD: &str = r#"
SCHEMA = {"type": "object", "properties": {
    "count": {"type": "integer", "description": "How many", "maximum": 9},
    "unit": {"enum": ["kilometre", "mile"], "description": "In what"}}}
NAMES = ("echo", "own", "bare", "stack", "absent", "void", "long", "hang", "crash", "inner")
OPERATIONS = [{"name": name, "input_schema": SCHEMA} for name in NAMES] + [
    {"name": "lacking", "input_schema": {**SCHEMA, "required": ["count"]}},
    {"name": "wipe", "input_schema": SCHEMA, "effects": {"destructive": True}},
    {"name": "guarded", "input_schema": SCHEMA, "scope": "deploy"}]
MANIFEST = {"features": {"concurrency": 4}}

def handle(operation, arguments, params):
    if operation == "own":
        raise Failure("the disk is full", name="disk_full", hint="remove something", retryable=True)
    if operation == "bare":
        raise Failure("no")
    if operation == "stack":
        raise Failure("KeyError", code=2)
    if operation == "absent":
        raise Failure("unknown operation", code=-32601)
    if operation == "void":
        return {"summary": "no data"}
    if operation == "long":
        return {"data": "x" * 100000}
    if operation == "hang":
        threading.Event().wait(10)
    if operation == "crash":
        os._exit(3)
    if operation == "inner":
        inner = host_call("other.echo", {}, params["context"]["call_id"])
        raise Failure("it needs another one", cause=inner["error"]["data"]["cause"])
    return {"data": arguments}
"#;

/// A plugin that fails, and some that cannot be called.
fn house() -> Sandbox {
    let sandbox = Sandbox::new("");
    let bad = sandbox.python("bad", BAD);
    let restart = "restart = { backoff = \"20ms\", backoff_cap = \"20ms\", max = 100 }\n";
    let tables = [
        format!("{bad}frame_limit = \"64KiB\"\n{restart}"),
        sandbox.python("other", ""),
        sandbox.python("third", ""),
        sandbox.python("stopped", "OPERATIONS[0]['name'] = 'stands'"),
        sandbox.python("blocked", "MANIFEST = {'requires': {'nowhere': '*'}}"),
        sandbox.python("refuses", "def on_init(params):\n    raise Failure('no licence')"),
        "[plugins.missing]\ncommand = [\"./no-such-program\"]\n".to_owned(),
        "[callers.guest]\ndeny = [\"other.*\"]\n".to_owned(),
    ];
    sandbox.configure(&tables.join("\n"));
    sandbox
}

/// What is said, the exit code and the number of the error.
const FAILING: &[(&[&str], i32, u16)] = &[
    (&["call", "bad.echo", "--nonsense"], 2, 1001),
    (&["call", "nobody.echo"], 4, 1002),
    (&["describe", "nobody"], 4, 1002),
    (&["call", "bad.nothing"], 4, 1003),
    (&["call", "echo"], 4, 1004),
    (&["cancel", "none"], 4, 1005),
    (&["answer", "none", "--yes"], 4, 1007),
    (&["call", "other.echo", "n=2", "--key", "k"], 2, 1008),
    (&["result", "none"], 4, 1009),
    (&["--as", "nobody", "call", "bad.echo"], 4, 1010),
    (&["call", "bad.echo", "count=many", "uint=mile"], 3, 2001),
    (&["call", "bad.echo", "count:=many"], 3, 2002),
    (&["call", "bad.lacking"], 8, 3001),
    (&["call", "bad.wipe"], 8, 3002),
    (&["call", "bad.own"], 1, 4001),
    (&["call", "bad.bare"], 1, 4001),
    (&["call", "bad.inner"], 1, 4001),
    (&["call", "bad.stack"], 1, 4002),
    (&["call", "bad.hang", "--timeout", "300ms"], 5, 5001),
    (&["call", "bad.crash"], 6, 6001),
    (&["call", "stopped.stands"], 6, 6003),
    (&["call", "blocked.echo"], 6, 6004),
    (&["call", "refuses.echo"], 6, 6005),
    (&["call", "missing.echo"], 6, 6006),
    (&["--as", "guest", "call", "other.echo"], 7, 7004),
    (&["--as", "guest", "call", "bad.guarded"], 7, 7005),
    (&["call", "bad.void"], 6, 8001),
    (&["call", "bad.long"], 6, 8002),
    (&["call", "bad.absent"], 6, 8004),
];

/// Every failing document: of each line above, and of a call that somebody said no to.
fn failures(daemon: &Daemon<'_>) -> Vec<(String, u16, Value)> {
    daemon.plugd(&["stop", "stopped"]).expect(0);
    ended(daemon, 0, &["call", "other.echo", "n=1", "--key", "k"]);
    let mut all: Vec<(String, u16, Value)> = FAILING
        .iter()
        .map(|(words, exit, code)| (words.join(" "), *code, ended(daemon, *exit, words)))
        .collect();
    let asked = ended(daemon, 8, &["call", "bad.wipe"]);
    let token = asked["pending"]["token"].as_str().expect("a token");
    all.push(("answer --no".to_owned(), 3003, ended(daemon, 7, &["answer", token, "--no"])));
    all
}

/// The published shapes, that of a call's error first.
fn shapes() -> [jsonschema::Validator; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/output.schema.json");
    let text = std::fs::read_to_string(path).expect("the shapes are published");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let error = json!({"$defs": document["$defs"], "$ref": "#/$defs/CallError"});
    [error, document].map(|schema| jsonschema::validator_for(&schema).expect("it compiles"))
}

/// Rows E1 and E4.
#[test]
fn r_e1_r_e4_every_failure_is_of_the_one_published_shape_and_says_what_to_do() {
    let sandbox = house();
    let [shape, documents] = shapes();
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    for (words, code, document) in failures(&daemon) {
        let error = &document["error"];
        assert!(shape.is_valid(error), "{words}: {document:#}");
        let command = if document["status"].is_null() { "a command that fails" } else { "call" };
        assert!(documents.is_valid(&json!({ command: document })), "{words}: {document:#}");
        assert_eq!(error["code"], code, "{words}: {document:#}");
        for member in ["name", "message", "hint"] {
            assert!(error[member].as_str().is_some_and(|text| !text.trim().is_empty()), "{words}: {error:#}");
        }
        assert!(error["retryable"].is_boolean(), "{words}: {error:#}");
        let read: CallError = serde_json::from_value(error.clone()).expect("it reads back");
        let kind = ErrorKind::ALL.iter().find(|kind| kind.code() == code).expect("a known number");
        assert!(read.name == kind.name() || code == 4001, "a name but for the plugin's own: {error:#}");
        let ran = !matches!(read.outcome, Outcome::NotRun);
        assert_eq!(ran, plugin_got_it(code), "{words}: {error:#}");
    }
    daemon.stop();
}

/// Whether a failure of this number is of a call that reached the plugin.
fn plugin_got_it(code: u16) -> bool {
    matches!(code, 4001 | 4002 | 5001 | 6001 | 8001..=8004)
}

/// Row E4: what is known of each number has words of its own.
#[test]
fn r_e4_each_error_of_plugd_itself_has_a_hint() {
    for kind in ErrorKind::ALL {
        let error = CallError::new(*kind, "what happened");
        assert!(error.hint.is_some_and(|hint| !hint.trim().is_empty()), "{kind:?}");
        assert!(!kind.meaning().is_empty(), "{kind:?}");
    }
}

/// Row E4: who reads nothing but the error mends the call by it.
#[test]
fn r_e4_a_call_is_mended_by_what_its_error_says() {
    let sandbox = house();
    let daemon = sandbox.serve();
    let mut arguments =
        Map::from_iter([("unit".to_owned(), json!("kilometer")), ("cuont".to_owned(), json!("三"))]);
    let mut turns = 0;
    let result = loop {
        let text = Value::from(arguments.clone()).to_string();
        let result = daemon.json(&["call", "bad.echo", "--json", &text]);
        if result["status"] == "ok" {
            break result;
        }
        turns += 1;
        assert!(turns <= 2, "{result:#}");
        for problem in result["error"]["details"].as_array().expect("each problem") {
            let key = problem["path"].as_str().expect("a path").trim_start_matches('/');
            let better = problem["suggestion"].as_str().unwrap_or_else(|| panic!("{result:#}"));
            let value = arguments.remove(key).expect("it was given");
            if ["count", "unit"].contains(&key) {
                arguments.insert(key.to_owned(), better.trim_matches('"').into());
            } else {
                arguments.insert(better.to_owned(), value);
            }
        }
    };
    assert_eq!((&result["data"], turns > 0), (&json!({"unit": "kilometre", "count": 3}), true));
    daemon.stop();
}

/// Row E7.
#[tokio::test]
async fn r_e7_after_every_failure_the_session_goes_on_and_knows_whether_to_try_again() {
    let sandbox = house();
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    let client = daemon.client().await;
    let call = async |operation: &str, arguments: &str, timeout_ms: u64| -> CallResult {
        let params = CallParams::new(operation).arguments(arguments).expect("JSON");
        let params = CallParams { session: Some("s".to_owned()), timeout_ms: Some(timeout_ms), ..params };
        client.call(&params).await.expect("a result")
    };
    for (operation, arguments, code, retryable, outcome) in [
        ("bad.nothing", "{}", 1003, false, Outcome::NotRun),
        ("bad.echo", r#"{"count":"many"}"#, 2001, false, Outcome::NotRun),
        ("bad.own", "{}", 4001, true, Outcome::Completed),
        ("bad.bare", "{}", 4001, false, Outcome::Completed),
        ("bad.stack", "{}", 4002, false, Outcome::Completed),
        ("bad.hang", "{}", 5001, false, Outcome::Unknown),
        ("bad.crash", "{}", 6001, false, Outcome::Unknown),
        ("blocked.echo", "{}", 6004, true, Outcome::NotRun),
        ("bad.void", "{}", 8001, false, Outcome::Completed),
    ] {
        let limit = if operation == "bad.hang" || operation == "blocked.echo" { 500 } else { 60_000 };
        let failed = call(operation, arguments, limit).await;
        let error = failed.error.unwrap_or_else(|| panic!("{operation} fails"));
        assert_eq!((error.code, error.retryable, error.outcome), (code, retryable, outcome), "{error:?}");
        let next = call("bad.echo", r#"{"count":3}"#, 60_000).await;
        assert_eq!(next.status, Status::Ok, "after {operation}: {:?}", next.error);
        let other = call("other.echo", "{}", 60_000).await;
        assert_eq!(other.status, Status::Ok, "another tool: {:?}", other.error);
    }
    drop(client);
    daemon.stop();
}
