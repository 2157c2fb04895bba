//! One call, one id: in its result, its events, its log lines and its row.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

const TALKER: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    for name in ("talk", "outer")]
MANIFEST = {"features": {"concurrency": 4}, "requires": {"inner": {"version": "*", "optional": True}}}

def handle(operation, arguments, params):
    call_id = params["context"]["call_id"]
    for text in ("begin", "end"):
        send({"jsonrpc": "2.0", "method": "log",
            "params": {"message": "%s %s" % (text, call_id), "call_id": call_id}})
    if operation == "outer":
        return {"data": host_call("inner.talk", {}, call_id)["result"]["call_id"]}
    return {"data": call_id}
"#;

/// Row S1.
#[test]
fn r_s1_every_line_event_and_row_of_a_call_has_its_id_and_no_other() {
    let sandbox = Sandbox::new("");
    let tables = format!("{}\n{}", sandbox.python("inner", TALKER), sandbox.python("talker", TALKER));
    sandbox.configure(&tables);
    let daemon = sandbox.serve();
    let results: Vec<Value> =
        (0..3).map(|n| daemon.json(&["call", "talker.talk", &format!("n={n}")])).collect();
    let outer = daemon.json(&["call", "talker.outer"]);
    let events = daemon.json(&["events"]);
    let ids: Vec<&str> =
        results.iter().map(|result| result["meta"]["call_id"].as_str().expect("an id")).collect();
    for (id, result) in ids.iter().zip(&results) {
        assert_eq!(&result["data"], id, "the plugin got it");
        let of_call = events.as_array().expect("a list").iter().filter(|event| event["call_id"] == **id);
        let kinds: Vec<&Value> = of_call.map(|event| &event["kind"]).collect();
        assert_eq!(kinds, ["call.started", "call.finished"], "{events:#}");
        let detail = daemon.json(&["calls", "show", id]);
        assert_eq!(detail["call"]["call_id"], **id);
        let log: Vec<&Value> = detail["log"].as_array().expect("lines").iter().collect();
        let texts: Vec<&Value> = log.iter().map(|line| &line["text"]).collect();
        assert_eq!(texts, [&json!(format!("begin {id}")), &json!(format!("end {id}"))], "{detail:#}");
        assert!(log.iter().all(|line| line["call_id"] == **id), "{detail:#}");
        let stages: Vec<&Value> =
            detail["stages"].as_array().expect("stages").iter().map(|stage| &stage["stage"]).collect();
        assert_eq!(
            stages,
            ["resolved", "checked", "confirmed", "queued", "started", "answered", "shaped"],
            "{detail:#}"
        );
        let times: Vec<u64> = detail["stages"]
            .as_array()
            .expect("stages")
            .iter()
            .filter_map(|stage| stage["at_us"].as_u64())
            .collect();
        assert!(times.is_sorted(), "{detail:#}");
    }
    // What is called within a call has an id of its own, and a row that names the outer one.
    let (outer_id, inner_id) = (outer["meta"]["call_id"].clone(), outer["data"].as_str().expect("an id"));
    assert_ne!(outer_id, inner_id);
    let detail = daemon.json(&["calls", "show", inner_id]);
    assert_eq!(
        (&detail["parent"], &detail["call"]["caller"]),
        (&outer_id, &json!("plugin:talker")),
        "{detail:#}"
    );
    daemon.stop();
}

/// A call that never came to run has its row, too: who called what, and why it did not run.
#[test]
fn what_was_refused_is_recorded_as_well() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("talker", TALKER));
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "talker.tlak"]).expect(4);
    daemon.plugd(&["call", "talker.talk", "n=many"]).expect(3);
    let calls = daemon.json(&["calls"]);
    let rows: Vec<(&Value, &Value)> = calls["calls"]
        .as_array()
        .expect("calls")
        .iter()
        .map(|row| (&row["operation"], &row["code"]))
        .collect();
    assert_eq!(
        rows,
        [(&json!("talker.talk"), &json!(2001)), (&json!("talker.tlak"), &json!(1003))],
        "{calls:#}"
    );
    daemon.stop();
}
