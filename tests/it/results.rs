//! The shape of results: summaries, pages, what is checked of what a plugin gives.

use plugd_daemon::client::ClientError;
use plugd_protocol::CallId;
use plugd_protocol::control::ResultParams;
use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("it is no text: {value}"))
}

/// Each operation gives the data it is named for.
const SHAPES: &str = r#"
SCHEMA = {"type": "object"}
DATA = {"text": "in review", "object": {"id": 1, "total": 2.50}, "array": [{"id": 1}, {"id": 2}], "null": None, "number": 12345678901234567890}
OPERATIONS = [{"name": name, "input_schema": SCHEMA} for name in [*DATA, "none", "own", "actions"]]
OPERATIONS.append({"name": "declared", "input_schema": SCHEMA,
                   "output_schema": {"type": "object", "properties": {"status": {"enum": ["open", "closed"]}}, "required": ["status"]}})
OPERATIONS.append({"name": "rows", "input_schema": SCHEMA, "result_limit": 2000})
OPERATIONS.append({"name": "orders", "input_schema": SCHEMA})

def handle(operation, arguments, params):
    if operation == "none":
        return {"summary": "it went well"}
    if operation == "own":
        return {"data": [1, 2], "summary": "two\nthings"}
    if operation == "actions":
        return {"data": 1, "next_actions": [{"operation": "shapes.own", "description": "see two"}, "see", {"arguments": {}}, {"operation": "shapes.nonsuch"}]}
    if operation == "declared":
        return {"data": arguments}
    if operation == "rows":
        return {"data": [{"id": number, "name": "三%d" % number} for number in range(1000)]}
    if operation == "orders":
        orders = [{"id": number, "price": 3200.0} for number in range(arguments.get("count", 5000))]
        return {"data": {"total": 16000000.0, "orders": orders}, "summary": "5000 orders, total 16000000"}
    return {"data": DATA[operation]}
"#;

fn shapes(more: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("shapes", SHAPES);
    sandbox.configure(&format!("{table}{more}"));
    sandbox
}

fn paged(daemon: &Daemon<'_>, operation: &str) -> Value {
    daemon.plugd(&["--output", "json", "call", operation, "--page"]).expect(0).json()
}

/// Rows O2 and O4.
#[test]
fn r_o2_any_data_is_a_result_and_none_is_a_fault_of_the_plugin() {
    let sandbox = shapes("");
    let daemon = sandbox.serve();
    for (operation, summary) in [
        ("text", "in review"),
        ("object", "an object with 2 keys: id, total"),
        ("array", "2 items: id"),
        ("null", "nothing"),
        ("number", "12345678901234567890"),
    ] {
        let result = daemon.json(&["call", &format!("shapes.{operation}")]);
        assert_eq!((&result["status"], &result["summary"]), (&json!("ok"), &json!(summary)), "{result:#}");
        assert!(result.as_object().is_some_and(|result| result.contains_key("data")), "{result:#}");
    }
    let own = daemon.json(&["call", "shapes.own"]);
    assert_eq!(own["summary"], "two things", "its own words, on one line: {own:#}");
    let none = daemon.plugd(&["--output", "json", "call", "shapes.none"]).expect(6).json();
    assert_eq!(none["error"]["code"], 8001, "{none:#}");
    assert!(text(&none["error"]["message"]).contains("\"data\""), "{none:#}");
    daemon.stop();
}

/// Row O1.
#[test]
fn suggestions_that_are_none_are_left_out_with_a_warning() {
    let sandbox = shapes("");
    let daemon = sandbox.serve();
    let result = daemon.json(&["call", "shapes.actions"]);
    assert_eq!(
        result["next_actions"],
        json!([{"operation": "shapes.own", "description": "see two"}, {"operation": "shapes.nonsuch"}]),
        "{result:#}"
    );
    let warning = text(&result["meta"]["warnings"][0]);
    assert!(warning.contains("some next_actions of shapes.actions are left out"), "{result:#}");
    let warning = text(&result["meta"]["warnings"][1]);
    assert!(warning.ends_with("shapes.actions name what is not offered: shapes.nonsuch"), "{result:#}");
    daemon.stop();
}

#[test]
fn r_o13_what_a_plugin_declares_of_its_data_is_checked() {
    let sandbox = shapes("");
    let daemon = sandbox.serve();
    let fits = daemon.json(&["call", "shapes.declared", "status=open", "more:=1"]);
    assert_eq!(fits["meta"]["warnings"], Value::Null, "{fits:#}");
    let differs = daemon.json(&["call", "shapes.declared", "status=lost"]);
    assert_eq!(
        (&differs["status"], &differs["data"]["status"]),
        (&json!("ok"), &json!("lost")),
        "{differs:#}"
    );
    let warning = text(&differs["meta"]["warnings"][0]);
    for part in ["shapes.declared", "output_schema", "status", "open"] {
        assert!(warning.contains(part), "{warning}");
    }
    daemon.stop();

    let sandbox = shapes("strict = true\n");
    let daemon = sandbox.serve();
    let refused =
        daemon.plugd(&["--output", "json", "call", "shapes.declared", "status=lost"]).expect(6).json();
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!(8005), &json!("completed")), "{refused:#}");
    assert_eq!(refused["data"], Value::Null, "{refused:#}");
    assert!(text(&error["message"]).contains("shapes.declared"), "{refused:#}");
    let row = daemon.json(&["calls", "show", text(&refused["meta"]["call_id"])]);
    assert_eq!(row["data"], r#"{"status": "lost"}"#, "the record has what was not handed on: {row:#}");
    assert_eq!(daemon.json(&["call", "shapes.declared", "status=open"])["status"], "ok");
    daemon.stop();
}

/// Rows O7 to O9.
#[test]
fn r_o8_a_large_result_comes_in_pages_and_all_of_it_can_be_read() {
    let sandbox = shapes("");
    let daemon = sandbox.serve();
    let whole = daemon.plugd(&["--output", "json", "call", "shapes.rows", "--whole"]).expect(0).json();
    assert_eq!(whole["page"], Value::Null);
    let first = paged(&daemon, "shapes.rows");
    let page = &first["page"];
    assert_eq!((&page["ref"], &page["unit"]), (&first["meta"]["call_id"], &json!("items")), "{page:#}");
    assert_eq!((&page["offset"], &page["total"]), (&json!(0), &json!(1000)), "{page:#}");
    assert_eq!(first["summary"], "1000 items: id, name", "the summary is of the whole");
    assert!(first["data"].to_string().len() <= 2000, "{page:#}");
    assert!(page["bytes"].as_u64().expect("a number") > 20_000, "{page:#}");

    let reference = text(&page["ref"]).to_owned();
    let mut items = first["data"].as_array().expect("items").clone();
    let mut next = page["next"].clone();
    while let Some(offset) = next.as_u64() {
        let args = ["--output", "json", "result", &reference, "--offset", &offset.to_string()];
        let report = daemon.plugd(&args).expect(0).json();
        items.extend(report["data"].as_array().expect("items").iter().cloned());
        next = report["page"]["next"].clone();
    }
    assert_eq!(Value::Array(items), whole["data"]);

    // The tool that models read with gives the same.
    let second = page["next"].as_u64().expect("there is more");
    let args = [&format!("ref={reference}"), &format!("offset={second}"), "limit=2"];
    let read = daemon.json(&[&["call", "plugd.read_result"], &args.map(|arg| arg as &str)[..]].concat());
    assert_eq!(read["data"]["data"].as_array().map(Vec::len), Some(2), "{read:#}");
    assert_eq!(read["data"]["data"][0]["id"], second, "{read:#}");
    assert_eq!(read["data"]["page"]["next"], second + 2, "{read:#}");
    let part = daemon.json(&["call", "plugd__read_result", &format!("ref={reference}"), "pointer=/7/name"]);
    assert_eq!(part["data"]["data"], "三7", "{part:#}");
    daemon.stop();

    let daemon = sandbox.serve();
    let later =
        daemon.plugd(&["--output", "json", "result", &reference, "--pointer", "/999"]).expect(0).json();
    assert_eq!(later["data"], json!({"id": 999, "name": "三999"}), "it outlives the daemon: {later:#}");
    for (args, said) in [
        (&["result", &reference, "--pointer", "/1000"][..], "leads nowhere"),
        (&["result", "nobody"], "nobody"),
    ] {
        let refused = daemon.plugd(&[&["--output", "json"], args].concat()).expect(4).json();
        assert_eq!(refused["error"]["code"], 1009, "{refused:#}");
        assert!(text(&refused["error"]["message"]).contains(said), "{refused:#}");
    }
    daemon.stop();
}

#[test]
fn what_cannot_be_kept_is_given_whole_with_a_warning() {
    let sandbox = shapes("\n[record]\nenabled = false\n");
    let daemon = sandbox.serve();
    let whole = paged(&daemon, "shapes.rows");
    assert_eq!((whole["data"].as_array().map(Vec::len), &whole["page"]), (Some(1000), &Value::Null));
    let warning = text(&whole["meta"]["warnings"][0]);
    assert!(warning.contains("given whole") && warning.contains("[record]"), "{warning}");
    for args in [&["calls"][..], &["result", text(&whole["meta"]["call_id"])]] {
        let refused = daemon.plugd(&[&["--output", "json"], args].concat()).expect(9).json();
        assert_eq!(refused["error"]["name"], "not_recorded", "{refused:#}");
    }
    daemon.stop();
}

#[test]
fn r_o7_an_object_around_one_large_list_keeps_its_facts_and_the_first_items() {
    let sandbox = shapes("");
    let daemon = sandbox.serve();
    let first = paged(&daemon, "shapes.orders");
    assert_eq!(first["summary"], "5000 orders, total 16000000", "{:#}", first["page"]);
    assert_eq!(first["data"]["total"], 16_000_000.0, "{:#}", first["page"]);
    let page = &first["page"];
    let shown = first["data"]["orders"].as_array().expect("a list").len();
    assert_eq!((&page["pointer"], &page["unit"]), (&json!("/orders"), &json!("items")), "{page:#}");
    assert_eq!(
        (&page["count"], &page["next"], &page["total"]),
        (&json!(shown), &json!(shown), &json!(5000)),
        "{page:#}"
    );
    assert!(first["data"].to_string().len() <= 64 * 1024, "{page:#}");
    let args = ["--output", "json", "result", text(&page["ref"]), "--pointer", "/orders", "--offset", "4999"];
    let last = daemon.plugd(&args).expect(0).json();
    assert_eq!(
        (&last["data"], &last["page"]["next"]),
        (&json!([{"id": 4999, "price": 3200.0}]), &Value::Null)
    );
    let small = daemon.json(&["call", "shapes.orders", "count:=3", "--page"]);
    assert_eq!(small["page"], Value::Null, "what fits is whole: {small:#}");
    // What the record has whole can be read, too.
    let small = daemon.json(&["result", text(&small["meta"]["call_id"]), "--pointer", "/orders/2/id"]);
    assert_eq!(small["data"], 2, "{small:#}");
    // So can what is neither small nor large.
    let middling = daemon.json(&["call", "shapes.orders", "count:=500", "--whole"]);
    let middling =
        daemon.json(&["result", text(&middling["meta"]["call_id"]), "--pointer", "/orders/499/id"]);
    assert_eq!(middling["data"], 499, "{middling:#}");
    let large = daemon.json(&["call", "shapes.orders", "--whole"]);
    let args = ["--output", "json", "result", text(&large["meta"]["call_id"])];
    let refused = daemon.plugd(&args).expect(4).json();
    assert!(text(&refused["error"]["hint"]).contains("--page"), "it says how to have it kept: {refused:#}");
    let keyed = daemon.json(&["call", "shapes.orders", "--whole", "--key", "march"]);
    let keyed = daemon.json(&["result", text(&keyed["meta"]["call_id"]), "--pointer", "/orders/4999/id"]);
    assert_eq!(keyed["data"], 4999, "a key is a promise: {keyed:#}");
    daemon.stop();
}

/// What was given whole is kept for whoever comes back for it, where the call has a key.
#[test]
fn a_large_result_of_a_call_with_a_key_can_be_read_later() {
    let sandbox = shapes("");
    let daemon = sandbox.serve();
    let whole = daemon.json(&["call", "shapes.orders", "count:=5000", "--key", "k", "--whole"]);
    assert_eq!((&whole["status"], &whole["page"]), (&json!("ok"), &Value::Null));
    let id = text(&whole["meta"]["call_id"]);
    let part = daemon.json(&["result", &format!("{id}/orders/4999")]);
    assert_eq!(part["data"]["id"], 4999, "{part:#}");
    daemon.stop();
}

#[tokio::test]
async fn a_page_of_nothing_is_refused() {
    let sandbox = shapes("");
    let daemon = sandbox.serve();
    let first = paged(&daemon, "shapes.rows");
    let client = daemon.client().await;
    let params = ResultParams {
        reference: CallId::new(text(&first["meta"]["call_id"])),
        pointer: None,
        offset: Some(10),
        limit: Some(0),
        whole: false,
        caller: None,
    };
    match client.result(&params).await {
        Err(ClientError::Command(error)) => assert_eq!(error.code, 1001, "{error:?}"),
        other => panic!("expected an error, got {other:?}"),
    }
    daemon.stop();
}
