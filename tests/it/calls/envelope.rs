//! The one result structure, whatever happened, checked against its published schema.

use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallResult};
use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

use super::ODD;

/// What is called, and the error's number; 0 where it is well.
const CALLS: &[(&[&str], u16)] = &[
    (&["odd.echo", "text=hello"], 0),
    (&["odd.pid"], 0),
    (&["rich.rich"], 0),
    (&["rich.null"], 0),
    (&["odd.nothing"], 1003),
    (&["nobody.echo"], 1002),
    (&["ech"], 1003),
    (&["odd.echo", "n:=40", "txt=x"], 2001),
    (&["odd.echo", "n:=nope"], 2002),
    (&["odd.fail"], 4001),
    (&["odd.raise"], 4002),
    (&["odd.obey", "--timeout", "200ms"], 5001),
    (&["odd.die"], 6001),
    (&["stopped.echo"], 6003),
    (&["blocked.echo"], 6004),
    (&["broken.echo"], 6005),
    (&["missing.echo"], 6006),
    (&["rich.wrong"], 8001),
    (&["rich.long"], 8002),
];

const RICH: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("rich", "null", "wrong", "long", "unimplemented")]


def handle(operation, arguments, params):
    if operation == "rich":
        return {"data": [1, {"a": "三"}], "summary": "two things",
                "next_actions": [{"operation": "rich.null", "description": "see nothing", "arguments": {}}]}
    if operation == "null":
        return {"data": None}
    if operation == "long":
        return {"data": "x" * 100000}
    return {"summary": "no data"}
"#;

fn everything() -> Sandbox {
    let sandbox = Sandbox::new("");
    let mut config = sandbox.python("odd", ODD) + "[plugins.odd.restart]\nbackoff = \"50ms\"\n\n";
    config += &sandbox.python("rich", RICH);
    config += "frame_limit = \"64KiB\"\n\n";
    config += &sandbox.python("stopped", "");
    config += &sandbox.python("blocked", "MANIFEST = {\"requires\": {\"absent\": \"*\"}}");
    config += &sandbox.python("broken", "def on_init(params):\n    raise Failure(\"no licence\")\n");
    config += "[plugins.missing]\ncommand = [\"./no-such-program\"]\n";
    sandbox.configure(&config);
    sandbox
}

fn answer(daemon: &Daemon<'_>, words: &[&str]) -> (Value, i32) {
    let ran = daemon.plugd(&[&["--output", "json", "call"], words].concat());
    (ran.json(), ran.code)
}

#[test]
fn o1_and_e1_one_schema_fits_every_result_and_every_error() {
    let schema = serde_json::to_value(schemars::schema_for!(CallResult)).expect("a schema");
    let validator = jsonschema::validator_for(&schema).expect("the published schema is one");
    assert!(!validator.is_valid(&json!({"status": "fine", "meta": {}})), "the schema can tell");
    let sandbox = everything();
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    daemon.plugd(&["stop", "stopped"]).expect(0);
    for (words, code) in CALLS {
        let (result, exit) = answer(&daemon, words);
        let problems: Vec<String> = validator.iter_errors(&result).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{words:?}: {problems:?}\n{result:#}");
        let members: Vec<&str> = result.as_object().expect("an object").keys().map(String::as_str).collect();
        let known = ["status", "data", "summary", "error", "next_actions", "meta"];
        assert!(members.iter().all(|member| known.contains(member)), "{members:?}");
        let read: CallResult = serde_json::from_value(result.clone()).expect("it reads back");
        assert_eq!(i32::from(read.exit_code()), exit, "the exit code follows from the result: {result:#}");
        match read.error {
            None => {
                assert_eq!((*code, &result["status"]), (0, &json!("ok")), "{words:?}: {result:#}");
                assert!(members.contains(&"data"), "null is data, too: {result:#}");
            }
            Some(error) => {
                assert_eq!(
                    (error.code, &result["status"]),
                    (*code, &json!("error")),
                    "{words:?}: {result:#}"
                );
                assert!(!members.contains(&"data"), "{result:#}");
                expect_whole(&error);
            }
        }
    }
    daemon.stop();
}

/// Every error says what, why and what to do, in one shape.
#[track_caller]
fn expect_whole(error: &CallError) {
    assert!(!error.message.is_empty() && !error.name.is_empty(), "{error:?}");
    assert!(error.hint.as_deref().is_some_and(|hint| !hint.is_empty()), "{error:?}");
    assert!(ErrorKind::ALL.iter().any(|kind| kind.code() == error.code), "{error:?}");
    let snake = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    assert!(snake(&error.name), "{error:?}");
    for secret in ["Traceback", "File \"", "main.py"] {
        assert!(!error.message.contains(secret), "{error:?}");
    }
}
