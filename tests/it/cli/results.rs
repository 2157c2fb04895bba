//! What a result looks like: in layers for people, whole for scripts, in pages where it is large.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

const SHOP: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {}} for name in ("ticket", "orders", "list", "text", "long", "word")]

def handle(operation, arguments, params):
    if operation == "ticket":
        return {"data": {"steps": [{"name": "step %d" % n} for n in range(12)], "status": "in review",
            "owner": {"name": "Ada", "room": 7}, "number": 9007199254740993},
            "summary": "the ticket is in review"}
    if operation == "orders":
        return {"data": {"orders": [{"id": n, "to": "三" * 20} for n in range(3000)], "total": 3000}}
    if operation == "list":
        return {"data": list(range(30000))}
    if operation == "long":
        return {"data": "三四" * 50000}
    if operation == "word":
        return {"data": "hello\nworld"}
    return {"data": "as it is"}
"#;

fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("shop", SHOP));
    sandbox
}

/// Row O6, its part about text output.
#[test]
fn r_o6_text_says_the_summary_then_single_facts_then_lists() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let text = daemon.plugd(&["call", "shop.ticket"]).expect(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..8],
        [
            "the ticket is in review",
            "status: in review",
            "number: 9007199254740993",
            "owner:",
            "  name: Ada",
            "  room: 7",
            "steps: 12 items",
            "  - {\"name\": \"step 0\"}"
        ]
    );
    assert!(text.contains("… 2 more") && !text.contains("step 10"), "{text}");
    assert!(
        lines.last().is_some_and(|last| last.contains("--output data")),
        "it says how to get all: {text}"
    );
    assert_eq!(daemon.plugd(&["call", "shop.word"]).expect(0).stdout.lines().last(), Some("world"));
    // Scripts get all of it, and no words about it.
    let data = daemon.plugd(&["--output", "data", "call", "shop.ticket"]).expect(0);
    assert_eq!(data.json()["steps"].as_array().map(Vec::len), Some(12));
    assert_eq!(data.stderr, "");
    daemon.stop();
}

/// The id that a result is kept under.
fn kept(daemon: &Daemon<'_>, operation: &str) -> String {
    let result = daemon.json(&["call", "--page", operation]);
    result["page"]["ref"].as_str().unwrap_or_else(|| panic!("a page: {result:#}")).to_owned()
}

/// Row O8: what is large is shown in part, and the rest is read by its reference.
#[test]
fn r_o8_a_large_result_is_read_on_by_its_reference() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let text = daemon.plugd(&["call", "shop.orders"]).expect(0).stdout;
    assert!(text.contains("total: 3000"), "the facts are all there: {text}");
    assert!(
        text.contains("of 3000") && text.contains("plugd result ") && text.contains("--pointer /orders"),
        "{text}"
    );
    let whole = daemon.json(&["call", "shop.orders"]);
    assert_eq!(
        (whole["data"]["orders"].as_array().map(Vec::len), &whole["page"]),
        (Some(3000), &Value::Null)
    );

    let id = kept(&daemon, "shop.orders");
    let page = daemon.json(&["result", &id, "--pointer", "/orders", "--offset", "2998"]);
    assert_eq!(page["data"].as_array().map(Vec::len), Some(2), "{page:#}");
    assert_eq!((&page["page"]["total"], &page["page"]["next"]), (&json!(3000), &Value::Null), "{page:#}");
    let first = daemon.json(&["result", &format!("{id}/orders"), "--limit", "3"]);
    assert_eq!((first["data"].as_array().map(Vec::len), &first["page"]["next"]), (Some(3), &json!(3)));
    let text = daemon.plugd(&["result", &format!("{id}/orders"), "--limit", "3"]).expect(0).stdout;
    assert!(text.contains(&format!("plugd result {id} --pointer /orders --offset 3")), "{text}");
    assert_eq!(
        daemon.plugd(&["--output", "data", "result", &format!("{id}/total")]).expect(0).stdout,
        "3000\n"
    );
    daemon.plugd(&["result", &format!("{id}/nothing")]).expect(4);
    daemon.plugd(&["result", &format!("{id}/orders"), "--pointer", "/orders"]).expect(2);
    daemon.plugd(&["result", "0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10"]).expect(4);
    daemon.stop();
}

#[test]
fn all_of_a_kept_result_comes_out_as_it_was_with_or_without_a_daemon() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let mut read = Vec::new();
    for operation in ["shop.orders", "shop.list", "shop.long"] {
        let data = daemon.plugd(&["--output", "data", "call", operation]).expect(0).stdout;
        let id = kept(&daemon, operation);
        let all = daemon.plugd(&["result", &id, "--all"]).expect(0).stdout;
        let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert!(value(&all) == value(&data), "{operation}");
        let document = daemon.json(&["result", &id, "--all"]);
        assert!(document["data"] == value(&data), "{operation}");
        assert_eq!(document["page"]["offset"], 0);
        read.push((id, all));
    }
    let text = daemon.plugd(&["call", "--whole", "shop.long"]).expect(0).stdout;
    assert!(text.chars().filter(|character| *character == '三').count() >= 50_000, "{}", text.len());
    daemon.stop();
    for (id, all) in read {
        assert!(sandbox.plugd(&["result", &id, "--all"]).expect(0).stdout == all);
    }
}
