//! Values that are missing: asked at a terminal in their own words, elsewhere given with a token.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

use crate::asking::Terminal;

const DEPLOY: &str = r#"
def text(description, **more):
    return {"type": "string", "description": description, **more}

OPERATIONS = [{"name": "service", "input_schema": {"type": "object", "properties": {
    "svc_name": text("Which service to deploy"),
    "env_key": text("Which environment it goes to", enum=["test", "production"]),
    "n_copies": {"type": "integer", "description": "How many copies to run", "minimum": 1},
    "note": text("A note for the log")},
    "required": ["svc_name", "env_key", "n_copies"]}}]

def handle(operation, arguments, params):
    mark("ran", "x")
    return {"data": arguments}
"#;

fn deploy() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("deploy", DEPLOY));
    sandbox
}

fn all() -> Value {
    json!({"svc_name": "web", "env_key": "test", "n_copies": 2})
}

/// Rows A3 and A4, at a terminal: one question for all that is missing, in the descriptions' words.
#[test]
fn r_a3_r_a4_everything_missing_is_asked_at_once_in_the_words_of_its_description() {
    let sandbox = deploy();
    let daemon = sandbox.serve();
    let steps = [
        ("Which service to deploy", 0.0, "web\n"),
        ("Which environment it goes to", 0.0, "test\n"),
        ("How many copies to run", 0.0, "2\n"),
    ];
    let terminal = Terminal::run(&sandbox, &["--output", "data", "call", "deploy.service"], &steps);
    assert_eq!(terminal.data(), all());
    let screen = sandbox.read("terminal/screen");
    assert_eq!(screen.matches("deploy.service asks").count(), 1, "asked once: {screen}");
    for key in ["svc_name", "env_key", "n_copies", "A note for the log"] {
        assert!(!screen.contains(key), "{key}: {screen}");
    }
    daemon.stop();
}

#[test]
fn what_is_given_is_not_asked_and_an_answer_that_does_not_fit_is_asked_for_again() {
    let sandbox = deploy();
    let args = ["--output", "data", "call", "deploy.service", "svc_name=web", "env_key=test"];
    // Without a daemon, too.
    let steps = [("How many copies to run", 0.0, "none\n"), ("How many copies to run", 0.0, "2\n")];
    let terminal = Terminal::run(&sandbox, &args, &steps);
    assert_eq!(terminal.data(), all());
    assert!(!sandbox.read("terminal/screen").contains("Which service"));
    let (code, _) = Terminal::run(&sandbox, &args, &[("How many copies to run", 0.0, "\u{4}")]).end();
    assert_eq!(code, 7, "Ctrl-D is a no");
    assert_eq!(sandbox.read("plugins/deploy/ran").lines().count(), 1);
}

#[test]
fn a_script_gets_a_token_and_goes_on_with_it() {
    let sandbox = deploy();
    let daemon = sandbox.serve();
    let told = daemon.plugd(&["call", "deploy.service", "svc_name=web"]).expect(8);
    assert_eq!(told.stdout, "");
    for part in ["Which environment it goes to", "test/production", "integer", "env_key=…", "n_copies=…"]
    {
        assert!(told.stderr.contains(part), "{part}: {told:?}");
    }
    let result =
        daemon.plugd(&["--output", "json", "call", "deploy.service", "svc_name=web"]).expect(8).json();
    assert_eq!((&result["status"], &result["data"]), (&json!("needs_input"), &Value::Null), "{result:#}");
    let names: Vec<&Value> = result["pending"]["questions"]
        .as_array()
        .expect("questions")
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["env_key", "n_copies"]);
    let token = result["pending"]["token"].as_str().expect("a token");
    // An answer that does not fit leaves the token as it is.
    daemon.plugd(&["answer", token, "env_key=moon", "n_copies=2"]).expect(3);
    let answered =
        daemon.plugd(&["--output", "json", "answer", token, "env_key=test", "n_copies=2"]).expect(0).json();
    assert_eq!((&answered["status"], &answered["data"]), (&json!("ok"), &all()), "{answered:#}");
    assert_eq!(answered["meta"]["call_id"], result["meta"]["call_id"], "it is the same call");
    daemon.plugd(&["answer", token, "env_key=test", "n_copies=2"]).expect(4);
    assert_eq!(sandbox.read("plugins/deploy/ran").lines().count(), 1);
    daemon.stop();
}

/// Row E3: the caller's mistake and the plugin's failure are told apart.
#[test]
fn r_e3_a_wrong_argument_is_the_callers_and_a_failure_the_plugins() {
    let sandbox = Sandbox::new("");
    let definitions = r#"
OPERATIONS = [{"name": "sell", "input_schema": {"type": "object", "properties": {"count": {"type": "integer"}}}}]

def handle(operation, arguments, params):
    raise Failure("sold out", name="sold_out", hint="ask again in spring")
"#;
    sandbox.configure(&sandbox.python("shop", definitions));
    let daemon = sandbox.serve();
    let mistake = daemon.plugd(&["--output", "json", "call", "shop.sell", "count=many"]).expect(3).json();
    assert_eq!((&mistake["error"]["code"], &mistake["error"]["outcome"]), (&json!(2001), &json!("not_run")));
    let failure = daemon.plugd(&["--output", "json", "call", "shop.sell", "count=2"]).expect(1).json();
    assert_eq!(
        (&failure["error"]["code"], &failure["error"]["name"], &failure["error"]["outcome"]),
        (&json!(4001), &json!("sold_out"), &json!("completed")),
        "{failure:#}"
    );
    let (said, told) = (
        daemon.plugd(&["call", "shop.sell", "count=many"]).expect(3).stderr,
        daemon.plugd(&["call", "shop.sell", "count=2"]).expect(1).stderr,
    );
    assert!(said.starts_with("error 2001 invalid_arguments") && said.contains("hint: "), "{said}");
    assert!(
        told.starts_with("error 4001 sold_out: sold out") && told.contains("hint: ask again in spring"),
        "{told}"
    );
    daemon.stop();
}
