//! What nobody could answer is not asked: a key that is required and that its schema refuses.

use plugd_tests::Sandbox;
use serde_json::json;

use crate::asking::Terminal;

/// Operations that want, for some calls, a key that they do not declare.
const MISSPELT: &str = r#"
CITY = {"city": {"type": "string"}, "zip": {"type": "string", "description": "The code of the place"}}
CTIY = {"type": "object", "properties": CITY, "required": ["ctiy"]}
OPERATIONS = [
    {"name": "inner", "input_schema": {"type": "object", "properties": {"to": CTIY}}},
    {"name": "either", "input_schema": {"type": "object", "properties": CITY,
        "anyOf": [{"required": ["ctiy"]}, {"required": ["zip"]}]}},
    {"name": "asks", "input_schema": {"type": "object"}}]

def handle(operation, arguments, params):
    if operation != "asks":
        return {"data": arguments}
    event, box = threading.Event(), []
    ANSWERS["q"] = (event, box)
    question = {"name": "it", "prompt": "Where?", "schema": CTIY}
    send({"jsonrpc": "2.0", "id": "q", "method": "host/ask",
        "params": {"questions": [question], "call_id": params["context"]["call_id"]}})
    event.wait(30)
    return {"data": box[0]["error"]["message"]}
"#;

fn misspelt() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("odd", MISSPELT));
    sandbox
}

#[test]
fn a_key_that_would_be_refused_is_told_of_and_not_asked_for() {
    let sandbox = misspelt();
    let daemon = sandbox.serve();
    let call = ["--output", "json", "call", "odd.inner", r#"to:={"city":"Rome"}"#];
    let (code, stdout) = Terminal::run(&sandbox, &call, &[]).end();
    let screen = sandbox.read("terminal/screen");
    assert_eq!(code, 3, "{screen}\n{stdout}");
    assert!(!screen.contains("asks"), "{screen}");
    let said = "to/ctiy: missing, expected what cannot be given: it is required and not declared";
    assert!(stdout.contains(said), "{stdout}");
    // Nor does a call without a terminal wait for it.
    let error = daemon.plugd(&call).expect(3).json()["error"].clone();
    assert_eq!(
        (&error["code"], &error["details"][0]["path"]),
        (&json!(2001), &json!("/to/ctiy")),
        "{error:#}"
    );
    daemon.stop();
}

#[test]
fn of_two_ways_only_the_one_that_leads_somewhere_is_asked_about() {
    let sandbox = misspelt();
    let steps = [("The code of the place", 0.0, "00184\n")];
    let call = ["--output", "data", "call", "odd.either", "city=Rome"];
    assert_eq!(Terminal::run(&sandbox, &call, &steps).data(), json!({"city": "Rome", "zip": "00184"}));
    let screen = sandbox.read("terminal/screen");
    assert!(!screen.contains("ctiy"), "{screen}");
}

#[test]
fn a_plugins_question_that_no_answer_fits_is_refused_and_asked_of_nobody() {
    let sandbox = misspelt();
    let daemon = sandbox.serve();
    let said = Terminal::run(&sandbox, &["--output", "data", "call", "odd.asks"], &[]).data();
    let said = said.as_str().expect("text");
    assert!(said.contains("the schema of it: \"ctiy\" is required and not declared"), "{said}");
    assert!(!sandbox.read("terminal/screen").contains("Where?"));
    daemon.stop();
}
