//! What is kept of calls, as `plugd calls` shows it.

use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

const SHOP: &str = r#"
COUNT = {"type": "object", "properties": {"count": {"type": "integer"},
    "card": {"type": "string", "writeOnly": True}}}
OPERATIONS = [{"name": name, "input_schema": COUNT} for name in ("sell", "count", "fail")]

def handle(operation, arguments, params):
    if operation == "fail":
        raise Failure("sold out", name="sold_out")
    if operation == "sell":
        time.sleep(0.05)
        print("asking the till", file=sys.stderr, flush=True)
        send({"jsonrpc": "2.0", "method": "log", "params": {"level": "warn", "message": "the till is slow",
            "call_id": params["context"]["call_id"]}})
        time.sleep(0.05)
    return {"data": {"sold": arguments.get("count", 1)}, "summary": "sold"}
"#;

fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("shop", SHOP));
    sandbox
}

/// The rows of `plugd calls`, once there are so many: they are written behind the calls.
#[track_caller]
fn rows(daemon: &Daemon<'_>, filters: &[&str], count: usize) -> Vec<Value> {
    let mut rows = Vec::new();
    eventually("the calls are recorded", || {
        let report = daemon.json(&[&["calls"], filters].concat());
        rows = report["calls"].as_array().unwrap_or_else(|| panic!("{report:#}")).clone();
        rows.len() == count
    });
    rows
}

fn id(result: &Value) -> String {
    result["meta"]["call_id"].as_str().unwrap_or_else(|| panic!("an id: {result:#}")).to_owned()
}

#[test]
fn calls_are_listed_the_latest_first_and_chosen_by_what_they_are() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let first = daemon.json(&["call", "shop.count", "--session", "s-1"]);
    daemon.json(&["call", "shop.fail"]);
    daemon.json(&["call", "shop.count", "count=many"]);
    daemon.json(&["call", "shop.nothing"]);
    let all = rows(&daemon, &[], 4);
    let operations: Vec<&Value> = all.iter().map(|row| &row["operation"]).collect();
    assert_eq!(operations, ["shop.nothing", "shop.count", "shop.fail", "shop.count"]);
    assert_eq!(all[3]["call_id"], id(&first), "{all:#?}");
    assert_eq!((&all[2]["status"], &all[2]["code"]), (&json!("error"), &json!(4001)));
    assert_eq!(rows(&daemon, &["--operation", "shop.count"], 2).len(), 2);
    assert_eq!(rows(&daemon, &["--status", "error"], 3).len(), 3);
    assert_eq!(rows(&daemon, &["--session", "s-1"], 1)[0]["call_id"], id(&first));
    assert_eq!(rows(&daemon, &["--plugin", "shop", "--limit", "2"], 2).len(), 2);
    assert_eq!(rows(&daemon, &["--since", "1h"], 4).len(), 4);
    assert_eq!(rows(&daemon, &["--until", "1h"], 0).len(), 0);
    assert_eq!(rows(&daemon, &["--since", "2001-01-01", "--status", "ok"], 1).len(), 1);
    let text = daemon.plugd(&["calls"]).expect(0).stdout;
    assert!(text.starts_with("AT ") && text.contains("shop.fail") && text.contains("error 4001"), "{text}");
    for wrong in [&["--since", "soon"][..], &["--status", "odd"], &["--limit", "0"], &["--plugin", "a b"]] {
        daemon.plugd(&[&["calls"], wrong].concat()).expect(2);
    }
    daemon.stop();
    // What is kept is read without a daemon, too.
    assert_eq!(sandbox.json(&["calls"])["calls"].as_array().map(Vec::len), Some(4));
}

/// Row T7, and of T1 and T2 what the command line shows.
#[test]
fn r_t7_a_call_is_followed_through_its_stages_with_what_its_plugin_logged() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let call = id(&daemon.json(&["call", "shop.sell", "count=三", "card=4711"]));
    let mut detail = Value::Null;
    eventually("it is recorded, with both lines", || {
        detail = daemon.json(&["calls", "show", &call]);
        detail["log"].as_array().is_some_and(|log| log.len() == 2)
    });
    let stages: Vec<(&str, u64)> = detail["stages"]
        .as_array()
        .expect("stages")
        .iter()
        .map(|stage| (stage["stage"].as_str().expect("a name"), stage["at_us"].as_u64().expect("a time")))
        .collect();
    let names: Vec<&str> = stages.iter().map(|(name, _)| *name).collect();
    for expected in ["resolved", "checked", "queued", "started", "answered", "shaped"] {
        assert!(names.contains(&expected), "{expected}: {detail:#}");
    }
    assert!(stages.is_sorted_by_key(|(_, at)| *at), "{detail:#}");
    let at = |wanted: &str| stages.iter().find(|(name, _)| *name == wanted).expect("it came to that").1;
    assert!(at("answered") - at("started") >= 100_000, "what the tool took is seen as that: {detail:#}");
    assert!(detail["given"].as_str().is_some_and(|given| given.contains('三')), "{detail:#}");
    assert!(detail["run"].as_str().is_some_and(|run| run.contains("\"count\":3")), "{detail:#}");
    assert!(!detail.to_string().contains("4711"), "a secret is masked: {detail:#}");

    let text = daemon.plugd(&["calls", "show", &call]).expect(0).stdout;
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
    let line = [
        "time line",
        "arrived",
        "resolved",
        "started",
        "asking the till",
        "the till is slow",
        "answered",
        "ended: ok",
    ];
    assert!(line.map(place).is_sorted(), "{text}");

    daemon.plugd(&["calls", "show", "0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10"]).expect(4);
    daemon.plugd(&["calls", "--stats", "show", &call]).expect(2);
    let failed = id(&daemon.json(&["call", "shop.fail"]));
    eventually("the failure is recorded", || daemon.plugd(&["calls", "show", &failed]).code == 0);
    let text = daemon.plugd(&["calls", "show", &failed]).expect(0).stdout;
    assert!(text.contains("error 4001 sold_out: sold out") && text.contains("ended: error"), "{text}");
    daemon.stop();
}

/// Rows T8 and T9.
#[test]
fn r_t8_how_often_how_well_and_how_fast_each_operation_is_called() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    for _ in 0..3 {
        daemon.json(&["call", "shop.count"]);
    }
    daemon.json(&["call", "shop.count", "count=many"]);
    daemon.json(&["call", "shop.fail"]);
    rows(&daemon, &[], 5);
    let report = daemon.json(&["calls", "--stats"]);
    let count = &report["operations"][0];
    assert_eq!((&count["operation"], &count["count"]), (&json!("shop.count"), &json!(4)), "{report:#}");
    assert_eq!(count["ok_percent"].as_f64(), Some(75.0), "{report:#}");
    let (p50, p95) = (count["p50_us"].as_u64().expect("a time"), count["p95_us"].as_u64().expect("a time"));
    assert!(p50 <= p95, "{report:#}");
    let wrong = &count["argument_errors"][0];
    assert_eq!((&wrong["path"], &wrong["count"]), (&json!("/count"), &json!(1)), "{report:#}");
    let fail = &report["operations"][1];
    assert_eq!(
        (&fail["operation"], fail["ok_percent"].as_f64()),
        (&json!("shop.fail"), Some(0.0)),
        "{report:#}"
    );
    let text = daemon.plugd(&["calls", "--stats", "--plugin", "shop", "--since", "1h"]).expect(0).stdout;
    assert!(text.starts_with("OPERATION") && text.contains("75.0 %") && text.contains("/count"), "{text}");
    daemon.stop();
}
