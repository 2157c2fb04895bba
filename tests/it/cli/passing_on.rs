//! One call's data as the next one's arguments, without anything in between.

use plugd_tests::{Sandbox, shell};
use serde_json::{Value, json};

const SHOP: &str = r#"
ORDERS = [{"id": n, "price": 1.5, "to": "Ada"} for n in range(3)]
OPERATIONS = [
    {"name": "query", "input_schema": {"type": "object", "properties": {"customer": {"type": "string"}}}},
    {"name": "many", "input_schema": {}},
    {"name": "fail", "input_schema": {}}]

def handle(operation, arguments, params):
    if operation == "fail":
        raise Failure("no orders today")
    if operation == "many":
        return {"data": {"orders": [{"id": n, "text": "三" * 50} for n in range(5000)]}}
    return {"data": {"orders": ORDERS, "customer": "Ada"}, "summary": "3 orders"}
"#;

const REPORT: &str = r#"
OPERATIONS = [{"name": "make", "input_schema": {"type": "object", "properties": {
    "orders": {"type": "array"}, "customer": {"type": "string"}, "first": {"type": "integer"}}}}]

def handle(operation, arguments, params):
    mark("ran", "x")
    return {"data": {"lines": len(arguments.get("orders", [])), **{k: v for k, v in arguments.items() if k != "orders"}}}
"#;

fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}{}", sandbox.python("orders", SHOP), sandbox.python("report", REPORT)));
    sandbox
}

/// Row O11.
#[test]
fn r_o11_the_data_of_one_call_is_piped_into_the_next() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let pipe = |first: &str, second: &str| {
        let global = "--config plugd.toml --output data";
        shell(&sandbox, &format!("\"$0\" {global} call {first} | \"$0\" {global} call {second}"))
    };
    for second in ["report.make --json @-", "report.make --json -", "report.make @-"] {
        let made: Value = pipe("orders.query", second).expect(0).json();
        assert_eq!(made, json!({"lines": 3, "customer": "Ada"}), "{second}");
    }
    // Large data is passed on whole.
    assert_eq!(pipe("orders.many", "report.make --json @-").expect(0).json(), json!({"lines": 5000}));
    // Nothing comes from a call that failed, and the next one says so.
    let runs = sandbox.read("plugins/report/ran");
    pipe("orders.fail", "report.make --json @-").expect(3);
    assert_eq!(sandbox.read("plugins/report/ran"), runs);
    daemon.stop();
}

#[test]
fn a_part_of_an_earlier_calls_result_is_an_argument() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let id = |operation: &str| {
        let result = daemon.json(&["call", "--page", operation]);
        result["meta"]["call_id"].as_str().unwrap_or_else(|| panic!("{result:#}")).to_owned()
    };
    let (small, large) = (id("orders.query"), id("orders.many"));
    let make = |words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        daemon.plugd(&[&["--output", "json", "call", "report.make"][..], &words].concat())
    };
    let made = make(&[
        format!("orders:=@call:{small}/orders"),
        format!("customer=@call:{small}/customer"),
        format!("first:=@call:{small}/orders/2/id"),
    ]);
    assert_eq!(made.expect(0).json()["data"], json!({"lines": 3, "customer": "Ada", "first": 2}));
    assert_eq!(make(&[format!("@call:{small}")]).expect(0).json()["data"]["customer"], "Ada");
    let whole = make(&["--json".to_owned(), format!("@call:{large}")]);
    assert_eq!(whole.expect(0).json()["data"]["lines"], 5000, "all pages of it");
    assert_eq!(make(&[format!("orders:=@call:{large}/orders")]).expect(0).json()["data"]["lines"], 5000);

    for (word, named) in [
        (format!("orders:=@call:{small}/odrers"), "odrers"),
        ("orders:=@call:0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10".to_owned(), "0193d6f8"),
    ] {
        let refused = make(std::slice::from_ref(&word)).expect(4).json();
        assert_eq!(refused["error"]["name"], "unknown_result", "{refused:#}");
        assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains(named)), "{refused:#}");
    }
    make(&[format!("orders:=@call:{small}/orders"), "orders:=[]".to_owned()]).expect(2);
    daemon.stop();
}

#[test]
fn an_earlier_result_is_there_without_a_daemon_too() {
    let sandbox = shop();
    let first = sandbox.json(&["call", "orders.query"]);
    let id = first["meta"]["call_id"].as_str().expect("an id");
    let made = sandbox.json(&["call", "report.make", &format!("orders:=@call:{id}/orders")]);
    assert_eq!(made["data"], json!({"lines": 3}), "{made:#}");
}
