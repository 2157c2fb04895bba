//! Arguments on their way to a plugin: checked, completed, and never run with where they are wrong.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

/// Gives back what it gets, and takes note of each run.
const WEATHER: &str = r#"
def text(description, **more):
    return {"type": "string", "description": description, **more}

FORECAST = {"type": "object", "properties": {
    "city": text("The city to look at"),
    "days": {"type": "integer", "minimum": 1, "maximum": 14, "description": "How many days"},
    "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius"}},
    "required": ["city"]}
TICKET = {"type": "object", "properties": {
    "ticket_id": text("The ticket's number", pattern="^TK-[0-9]{8}-[0-9]{3}$", examples=["TK-20241215-001"])},
    "required": ["ticket_id"]}
ORDERS = {"type": "object", "properties": {
    "order_id": text("The order's number"), "user_id": text("Whose orders")},
    "anyOf": [{"required": ["order_id"]}, {"required": ["user_id"]}]}
OPERATIONS = [{"name": "forecast", "input_schema": FORECAST}, {"name": "ticket", "input_schema": TICKET},
    {"name": "orders", "input_schema": ORDERS}, {"name": "now", "input_schema": {"type": "object"}}]

def handle(operation, arguments, params):
    mark("ran", operation)
    return {"data": arguments}
"#;

fn weather() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("weather", WEATHER));
    sandbox
}

fn runs(sandbox: &Sandbox) -> usize {
    sandbox.read("plugins/weather/ran").lines().count()
}

/// The error of a call that is refused for its arguments.
#[track_caller]
fn refused(daemon: &Daemon<'_>, words: &[&str]) -> Value {
    let result = daemon.plugd(&[&["--output", "json", "call"], words].concat()).expect(3).json();
    assert_eq!((&result["error"]["code"], &result["error"]["outcome"]), (&json!(2001), &json!("not_run")));
    result["error"].clone()
}

fn message(error: &Value) -> &str {
    error["message"].as_str().expect("text")
}

/// Rows A1 and A2.
#[test]
fn r_a1_r_a2_what_is_complete_runs_what_lacks_asks_and_what_is_wrong_is_refused() {
    let sandbox = weather();
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "weather.forecast", "city=Oslo"])["status"], "ok");
    assert_eq!(runs(&sandbox), 1);
    let lacks = daemon.plugd(&["--output", "json", "call", "weather.forecast"]).expect(8).json();
    assert_eq!(
        (&lacks["status"], &lacks["error"]["code"]),
        (&json!("needs_input"), &json!(3001)),
        "{lacks:#}"
    );
    assert_eq!(lacks["pending"]["questions"][0]["name"], "city", "{lacks:#}");
    // A model reads what is missing in the same form as any other problem.
    let missing = &lacks["error"]["details"][0];
    assert_eq!((&missing["path"], &missing["problem"]), (&json!("/city"), &json!("required")), "{lacks:#}");
    let error = refused(&daemon, &["weather.forecast", "city=Oslo", "days=soon"]);
    assert_eq!(error["details"][0]["path"], "/days", "{error:#}");
    assert_eq!(runs(&sandbox), 1, "neither touched the plugin");
    daemon.stop();
}

/// Rows A6, A7, A8, A9 and A11.
#[test]
fn r_a6_to_r_a11_a_refusal_names_the_parameter_what_is_expected_and_what_was_given() {
    let sandbox = weather();
    let daemon = sandbox.serve();
    let table: &[(&[&str], &[&str])] = &[
        (&["weather.forecast", "city=Oslo", "days=40"], &["days", "1", "14", "40"]),
        (&["weather.forecast", "city=Oslo", "unit=kelvin"], &["unit", "celsius", "fahrenheit", "kelvin"]),
        (&["weather.forecast", "citty=北京"], &["citty", "did you mean city?"]),
        (&["weather.forecast", "city:=5.5"], &["city", "string", "5.5"]),
        (&["weather.forecast", "city=Oslo", "days:=true"], &["days", "integer", "true"]),
        (&["weather.ticket", "ticket_id=001"], &["ticket_id", "TK-", "TK-20241215-001", "001"]),
        (&["weather.ticket", "ticket_id=张三"], &["ticket_id", "TK-20241215-001", "张三"]),
        // Nothing is said of other keys, and still a slip is one.
        (&["weather.forecast", "city=Oslo", "dayz=3"], &["dayz", "did you mean days?"]),
    ];
    for (words, parts) in table {
        let error = refused(&daemon, words);
        for part in *parts {
            assert!(message(&error).contains(part), "{words:?}: no {part} in {}", message(&error));
        }
    }
    assert_eq!(runs(&sandbox), 0);
    daemon.stop();
}

/// Row A12.
#[test]
fn r_a12_one_of_two_values_is_asked_for_as_a_choice() {
    let sandbox = weather();
    let daemon = sandbox.serve();
    let neither = daemon.plugd(&["--output", "json", "call", "weather.orders"]).expect(8).json();
    let prompt = neither["pending"]["prompt"].as_str().expect("a prompt");
    for part in ["order_id or user_id", "The order's number", "Whose orders"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let token = neither["pending"]["token"].as_str().expect("a token");
    daemon.plugd(&["answer", token, "user_id="]).expect(3);
    let one = daemon.plugd(&["--output", "json", "answer", token, "user_id=7"]).expect(0).json();
    assert_eq!((&one["status"], &one["data"]), (&json!("ok"), &json!({"user_id": "7"})), "{one:#}");
    assert_eq!(daemon.json(&["call", "weather.orders", "order_id=3"])["data"], json!({"order_id": "3"}));
    daemon.stop();
}

/// Rows A13 and A16: the record has what was given and what ran, defaults filled in.
#[test]
fn r_a13_r_a16_the_record_shows_what_was_given_and_what_ran() {
    let sandbox = weather();
    let daemon = sandbox.serve();
    let result = daemon.json(&["call", "weather.forecast", "city=Oslo", "days=三"]);
    let expected = json!({"city": "Oslo", "days": 3, "unit": "celsius"});
    assert_eq!(result["data"], expected, "{result:#}");
    assert!(result["meta"]["notes"][0].as_str().is_some_and(|note| note.contains("/days")), "{result:#}");
    let call_id = result["meta"]["call_id"].as_str().expect("an id");
    let detail = daemon.json(&["calls", "show", call_id]);
    let read = |key: &str| serde_json::from_str::<Value>(detail[key].as_str().expect(key)).expect("JSON");
    assert_eq!(read("given"), json!({"city": "Oslo", "days": "三"}), "{detail:#}");
    assert_eq!(read("run"), expected, "{detail:#}");

    // What runs as it came is there once.
    let whole = daemon.json(&["call", "weather.forecast", "city=Oslo", "days=3", "unit=celsius"]);
    let call_id = whole["meta"]["call_id"].as_str().expect("an id");
    let detail = daemon.json(&["calls", "show", call_id]);
    assert_eq!(detail["run"], Value::Null, "{detail:#}");
    assert!(detail["given"].as_str().is_some_and(|given| given.contains("celsius")), "{detail:#}");
    daemon.stop();
}

/// Row A14.
#[tokio::test]
async fn r_a14_an_operation_without_parameters_takes_nothing_an_empty_object_and_null() {
    let sandbox = weather();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    for arguments in [None, Some("{}"), Some("null")] {
        let mut params = plugd_protocol::control::CallParams::new("weather.now");
        if let Some(arguments) = arguments {
            params = params.arguments(arguments).expect("JSON");
        }
        let result = client.call(&params).await.expect("a result");
        assert_eq!(result.data.expect("data").get(), "{}", "{arguments:?}");
    }
    assert_eq!(daemon.json(&["call", "weather.now"])["data"], json!({}));
    daemon.stop();
}

/// What a plugin calls asks nobody: what is missing there is the plugin's mistake.
#[test]
fn a_plugin_that_leaves_out_a_value_is_told_so() {
    let sandbox = Sandbox::new("");
    let front = sandbox.python(
        "front",
        r#"
MANIFEST = {"requires": {"weather": "*"}}
def handle(operation, arguments, params):
    return {"data": host_call("weather.forecast", arguments, params["context"]["call_id"])}
"#,
    );
    sandbox.configure(&format!("{}\n{front}", sandbox.python("weather", WEATHER)));
    let daemon = sandbox.serve();
    let told = daemon.json(&["call", "front.echo"])["data"].clone();
    let error = &told["error"]["data"]["cause"]["error"];
    assert_eq!((&error["code"], &error["details"][0]["path"]), (&json!(2001), &json!("/city")), "{told:#}");
    let fits = daemon.json(&["call", "front.echo", "city=Oslo"])["data"].clone();
    assert_eq!(fits["result"]["data"]["unit"], "celsius", "{fits:#}");
    daemon.stop();
}
