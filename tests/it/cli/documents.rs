//! Under `--output json` stdout is one document of its published shape, whatever happens beside it.

use std::path::Path;

use plugd_tests::{Ran, Sandbox};
use serde_json::{Value, json};

/// Logs, prints and tells of progress while it works.
const NOISY: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "effects": {"destructive": name == "wipe"}, "long_running": name == "build",
    "description": "Does %s." % name} for name in ("echo", "wipe", "build", "fail")] + [
    {"name": "lacking", "input_schema": {"type": "object", "properties": {"n": {"type": "integer", "description": "How many"}},
        "required": ["n"]}}]

def handle(operation, arguments, params):
    print("Progress: 50%", file=sys.stderr, flush=True)
    raw(b"=== printed beside the protocol ===\n")
    ident = params["context"]["call_id"]
    send({"jsonrpc": "2.0", "method": "log", "params": {"level": "error", "message": "logged", "call_id": ident}})
    send({"jsonrpc": "2.0", "method": "progress", "params": {"call_id": ident, "done": 1, "total": 2}})
    if operation == "fail":
        raise Failure("no")
    return {"data": {"n": arguments.get("n")}, "summary": "done"}
"#;

/// The published shapes: `docs/output.schema.json`.
struct Shapes(jsonschema::Validator);

impl Shapes {
    fn read() -> Shapes {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/output.schema.json");
        let text = std::fs::read_to_string(path).expect("the shapes are published");
        let schema: Value = serde_json::from_str(&text).expect("JSON");
        assert!(jsonschema::meta::is_valid(&schema));
        Shapes(jsonschema::validator_for(&schema).expect("it compiles"))
    }

    /// Exactly one document on one line and nothing else on stdout, of the shape published under `command`.
    #[track_caller]
    fn expect(&self, command: &str, words: &[&str], ran: &Ran) -> Value {
        assert!(ran.stdout.ends_with('\n') && ran.stdout.lines().count() == 1, "{words:?}: {ran:?}");
        let document = ran.json();
        let wrapped = json!({ command: document });
        let problems: Vec<String> =
            self.0.iter_errors(&wrapped).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "{words:?}: {problems:?}\n{document:#}");
        document
    }
}

#[test]
fn c138_stdout_is_one_document_of_the_published_shape_also_on_error() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("fp", NOISY));
    let shapes = Shapes::read();
    let run = |words: &[&str]| sandbox.plugd(&[&["--output", "json"], words].concat());
    let good =
        |command: &str, words: &[&str], code: i32| shapes.expect(command, words, &run(words).expect(code));
    // A daemon that starts says so on one line, in the background, too.
    good("serve", &["serve", "--detach"], 0);
    let _daemon = plugd_tests::Detached::of(&sandbox);

    let call = good("call", &["call", "fp.echo", "n=1"], 0);
    let call = call["meta"]["call_id"].as_str().expect("an id").to_owned();
    good("call", &["call", "fp.fail"], 1);
    good("call", &["call", "fp.echo", "n=x"], 3);
    good("call", &["call", "fp.nothing"], 4);
    let input = good("call", &["call", "fp.lacking"], 8);
    let asked = good("call", &["call", "fp.wipe"], 8);
    let token = |result: &Value| result["pending"]["token"].as_str().expect("a token").to_owned();
    good("answer", &["answer", &token(&input), "n=2"], 0);
    good("answer", &["answer", &token(&asked), "--no"], 7);
    good("answer", &["answer", "none", "yes"], 4);
    let job = good("call", &["call", "fp.build"], 0);
    let job = job["meta"]["call_id"].as_str().expect("an id").to_owned();
    good("jobs wait", &["jobs", "wait", &job], 0);
    good("jobs", &["jobs"], 0);
    good("call --explain", &["call", "fp.echo", "--explain"], 0);
    good("calls", &["calls"], 0);
    good("calls show", &["calls", "show", &job], 0);
    good("calls --stats", &["calls", "--stats"], 0);
    good("result", &["result", &call], 0);
    good("result", &["result", &call, "--all"], 0);
    for (command, words) in [
        ("status", &["status"][..]),
        ("list", &["list"]),
        ("doctor", &["doctor"]),
        ("describe", &["describe", "fp"]),
        ("start", &["start", "fp"]),
        ("restart", &["restart", "fp"]),
        ("reload", &["reload"]),
        ("logs", &["logs"]),
        ("events", &["events"]),
        ("graph", &["graph"]),
        ("config check", &["config", "check"]),
        ("config show", &["config", "show"]),
        ("config schema", &["config", "schema"]),
        ("disable", &["disable", "fp"]),
        ("enable", &["enable", "fp"]),
        ("remove", &["remove", "fp"]),
        ("add", &["add", "fp"]),
        ("stop", &["stop", "fp"]),
    ] {
        good(command, words, 0);
    }
    for words in [
        &["calls", "show", "none"][..],
        &["result", "none"],
        &["cancel", "none"],
        &["jobs", "cancel", "none"],
        &["describe", "nobody"],
        &["calls", "--since", "soon"],
        &["jobs", "wait"],
        &["nonsense"],
    ] {
        let ran = run(words);
        assert!(ran.code != 0 && ran.stderr.is_empty(), "{words:?}: {ran:?}");
        shapes.expect("a command that fails", words, &ran);
    }
    good("shutdown", &["shutdown"], 0);
}

#[test]
fn c138_without_a_daemon_it_is_one_document_too() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("fp", NOISY));
    let shapes = Shapes::read();
    let run = |words: &[&str]| sandbox.plugd(&[&["--output", "json"], words].concat());
    for (command, words, code) in [
        ("call", &["call", "fp.echo", "n=1"][..], 0),
        ("call", &["call", "fp.fail"], 1),
        ("call", &["call", "fp.wipe"], 8),
        ("call", &["call", "fp.build"], 0),
        ("call --explain", &["call", "fp.echo", "--explain"], 0),
        ("calls", &["calls"], 0),
        ("calls --stats", &["calls", "--stats"], 0),
        ("jobs", &["jobs"], 0),
        ("list", &["list"], 0),
        ("doctor", &["doctor"], 0),
        ("a command that fails", &["status"], 9),
        ("a command that fails", &["jobs", "cancel", "x"], 9),
        ("a command that fails", &["result", "none"], 4),
    ] {
        shapes.expect(command, words, &run(words).expect(code));
    }
}
