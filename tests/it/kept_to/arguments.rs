//! What reaches a plugin: numbers however they are written, formats that hold, and a summary back.

use plugd_tests::Sandbox;
use serde_json::json;

use super::ended;

/// Gives back how many it was asked for, with its type.
const SHOP: &str = r#"
COUNT = {"type": "object", "properties": {"count": {"type": "integer", "description": "How many"}}, "required": ["count"]}
OPERATIONS = [{"name": "order", "input_schema": COUNT}]

def handle(operation, arguments, params):
    mark("ran")
    return {"data": [arguments["count"], type(arguments["count"]).__name__]}
"#;

/// Row A5.
#[test]
fn r_a5_however_a_number_is_written_the_plugin_gets_the_number() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("shop", SHOP));
    let daemon = sandbox.serve();
    let ways: [&[&str]; 6] = [
        &["count=三"],
        &["count=3"],
        &["count=３"],
        &["count:=3"],
        &["--json", r#"{"count":"３"}"#],
        &["--json", r#"{"count":"三"}"#],
    ];
    for way in ways {
        let result = ended(&daemon, 0, &[&["call", "shop.order"], way].concat());
        assert_eq!(result["data"], json!([3, "int"]), "{way:?}: {result:#}");
    }
    let refused = ended(&daemon, 3, &["call", "shop.order", "count=几个"]);
    let (error, problem) = (&refused["error"], &refused["error"]["details"][0]);
    assert_eq!((&error["code"], &error["outcome"]), (&json!(2001), &json!("not_run")), "{refused:#}");
    assert_eq!(problem["path"], "/count", "{refused:#}");
    for text in [&problem["expected"], &error["message"]] {
        assert!(text.as_str().is_some_and(|text| text.contains("integer")), "{refused:#}");
    }
    assert!(error["message"].as_str().is_some_and(|text| text.contains("几个")), "{refused:#}");
    assert_eq!(sandbox.read("plugins/shop/ran").lines().count(), ways.len());
    daemon.stop();
}

/// Counts its own runs.
const WEB: &str = r#"
URL = {"type": "string", "format": "uri", "description": "What to fetch"}
OPERATIONS = [{"name": "fetch_json", "input_schema": {"type": "object", "properties": {"url": URL}, "required": ["url"]}},
              {"name": "fetched", "input_schema": {"type": "object"}}]
FETCHED = []

def handle(operation, arguments, params):
    if operation == "fetch_json":
        FETCHED.append(arguments["url"])
    return {"data": FETCHED}
"#;

/// Row A10.
#[test]
fn r_a10_a_text_that_is_no_uri_is_refused_without_a_run_of_the_plugin() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("web", WEB));
    let daemon = sandbox.serve();
    let refuse = || {
        let refused = ended(&daemon, 3, &["call", "web.fetch_json", "url=notaurl"]);
        let (error, problem) = (&refused["error"], &refused["error"]["details"][0]);
        assert_eq!((&error["code"], &error["outcome"]), (&json!(2001), &json!("not_run")), "{refused:#}");
        assert_eq!((&problem["path"], &problem["problem"]), (&json!("/url"), &json!("format")));
        assert!(error["message"].as_str().is_some_and(|text| text.contains("notaurl")), "{refused:#}");
    };
    refuse();
    assert_eq!(daemon.status("web")["starts"], 0, "it was not even started");
    assert_eq!(daemon.json(&["call", "web.fetched"])["data"], json!([]));
    let page = "https://example.org/a.json";
    assert_eq!(daemon.json(&["call", "web.fetch_json", &format!("url={page}")])["status"], "ok");
    refuse();
    assert_eq!(daemon.json(&["call", "web.fetched"])["data"], json!([page]), "its own count");
    daemon.stop();
}

/// Says what came out in a sentence, or does not.
const TICKETS: &str = r#"
OPERATIONS = [{"name": "told", "input_schema": {"type": "object"}}, {"name": "untold", "input_schema": {"type": "object"}},
              {"name": "later", "long_running": True, "input_schema": {"type": "object"}}]

def handle(operation, arguments, params):
    result = {"data": {"id": "TK-1", "step": "review"}}
    return result if operation == "untold" else {**result, "summary": "TK-1 is in review."}
"#;

/// Row O3.
#[test]
fn r_o3_a_sentence_about_the_data_stands_beside_it_and_comes_first_where_it_is_read() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("tickets", TICKETS));
    let daemon = sandbox.serve();
    let data = json!({"id": "TK-1", "step": "review"});
    let told = ended(&daemon, 0, &["call", "tickets.told"]);
    assert_eq!((&told["summary"], &told["data"]), (&json!("TK-1 is in review."), &data), "{told:#}");
    let untold = ended(&daemon, 0, &["call", "tickets.untold"]);
    // Where the plugin says nothing, what plugd says is of the data's form alone.
    assert_eq!((&untold["summary"], &untold["data"]), (&json!("an object with 2 keys: id, step"), &data));
    let job = ended(&daemon, 0, &["call", "tickets.later"]);
    let id = job["meta"]["call_id"].as_str().expect("a job's id");
    let ended_job = ended(&daemon, 0, &["jobs", "wait", id]);
    assert_eq!((&ended_job["summary"], &ended_job["data"]), (&told["summary"], &data), "{ended_job:#}");
    let shown = daemon.plugd(&["call", "tickets.told"]).expect(0).stdout;
    assert!(shown.starts_with("TK-1 is in review.\n") && shown.contains("review"), "{shown}");
    daemon.stop();
}
