//! The record: what each call leaves behind, and what can be read off it.

use plugd_protocol::control::CallParams;
use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("it is no text: {value}"))
}

const SHOP: &str = r#"
PROPERTIES = {"count": {"type": "integer"}, "password": {"type": "string", "format": "password"}, "unit": {"type": "string", "default": "kg"}}
OUTPUT = {"type": "object", "properties": {"ordered": {}, "token": {"type": "string", "x-sensitive": True}}}
OPERATIONS = [{"name": "order", "input_schema": {"type": "object", "properties": PROPERTIES, "required": ["count"]}, "output_schema": OUTPUT},
              {"name": "slow", "input_schema": {"type": "object"}}]

def handle(operation, arguments, params):
    call_id = params["context"]["call_id"]
    send({"jsonrpc": "2.0", "method": "log", "params": {"message": "looking at the stock", "call_id": call_id}})
    if operation == "slow":
        time.sleep(0.3)
    if arguments.get("count") == 13:
        raise Failure("thirteen brings bad luck", name="bad_luck")
    return {"data": {"ordered": arguments.get("count"), "token": "t0ken-XYZ"}}
"#;

fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("shop", SHOP);
    sandbox.configure(&format!("{table}\n[callers.ci]\n"));
    sandbox
}

fn shown(daemon: &Daemon<'_>, result: &Value) -> Value {
    daemon.json(&["calls", "show", text(&result["meta"]["call_id"])])
}

/// Rows T1 and T3.
#[test]
fn r_t1_each_call_leaves_what_was_called_with_what_for_how_long_and_how_it_ended() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let result = daemon.json(&[
        "call",
        "shop.order",
        "count:=2",
        "password=hunter22",
        "--session",
        "s1",
        "--key",
        "k1",
    ]);
    assert_eq!(result["data"]["token"], "t0ken-XYZ", "the caller gets it: {result:#}");
    let row = shown(&daemon, &result);
    let call = &row["call"];
    assert_eq!((&call["operation"], &call["status"]), (&json!("shop.order"), &json!("ok")), "{row:#}");
    assert!(call["duration_us"].as_u64().is_some_and(|took| took > 0), "{row:#}");
    assert_eq!(call["summary"], "an object with 2 keys: ordered, token", "{row:#}");
    let given: Value = serde_json::from_str(text(&row["given"])).expect("JSON");
    assert_eq!(given, json!({"count": 2, "password": "***"}), "{row:#}");
    let data: Value = serde_json::from_str(text(&row["data"])).expect("JSON");
    assert_eq!(data, json!({"ordered": 2, "token": "***"}), "{row:#}");
    assert_eq!(
        (&row["session"], &row["key"], &row["plugin_version"]),
        (&json!("s1"), &json!("k1"), &json!("1.0.0"))
    );
    assert_eq!(
        (&row["argument_bytes"], &row["data_bytes"]),
        (&result["meta"]["argument_bytes"], &result["meta"]["data_bytes"])
    );
    assert!(row["data_bytes"].as_u64().is_some_and(|bytes| bytes > 20), "{row:#}");

    let failed = daemon.json(&["call", "shop.order", "count:=13", "--as", "ci"]);
    let row = shown(&daemon, &failed);
    assert_eq!((&row["call"]["code"], &row["call"]["caller"]), (&json!(4001), &json!("ci")), "{row:#}");
    assert_eq!(
        (&row["error"]["name"], &row["call"]["summary"]),
        (&json!("bad_luck"), &json!("thirteen brings bad luck"))
    );

    daemon.json(&["call", "shop.ordr", "count:=1"]);
    let calls = daemon.json(&["calls"]);
    let operations: Vec<&str> =
        calls["calls"].as_array().expect("a list").iter().map(|call| text(&call["operation"])).collect();
    assert_eq!(
        operations,
        ["shop.ordr", "shop.order", "shop.order"],
        "the latest first, the unknown one too: {calls:#}"
    );
    let failed = daemon.json(&["calls", "--status", "error", "--caller", "ci"]);
    assert_eq!(failed["calls"].as_array().map(Vec::len), Some(1), "{failed:#}");
    daemon.stop();

    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["calls"]), calls, "the record outlives the daemon");
    daemon.stop();
}

#[test]
fn r_t2_arguments_are_kept_as_they_came_and_as_they_ran() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let result = daemon.json(&["call", "shop.order", "--json", r#"{"count":"三","password":"hunter22"}"#]);
    let row = shown(&daemon, &result);
    let read = |member: &str| serde_json::from_str::<Value>(text(&row[member])).expect("JSON");
    assert_eq!(read("given"), json!({"count": "三", "password": "***"}), "{row:#}");
    assert_eq!(read("run"), json!({"count": 3, "password": "***", "unit": "kg"}), "{row:#}");
    daemon.stop();
}

/// Rows T7 and T11.
#[tokio::test]
async fn r_t7_the_time_line_tells_where_a_call_was_slow() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let params = CallParams { traceparent: Some(trace.to_owned()), ..CallParams::new("shop.slow") };
    let result = daemon.client().await.call(&params).await.expect("the daemon is there");
    let result = serde_json::to_value(result).expect("JSON");
    let row = shown(&daemon, &result);
    let stages: Vec<(&str, u64)> = row["stages"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|stage| (text(&stage["stage"]), stage["at_us"].as_u64().expect("a number")))
        .collect();
    let names: Vec<&str> = stages.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["resolved", "checked", "confirmed", "queued", "started", "answered", "shaped"],
        "{row:#}"
    );
    assert!(stages.iter().map(|(_, at)| at).is_sorted(), "{row:#}");
    let at = |name: &str| stages.iter().find(|(stage, _)| *stage == name).expect(name).1;
    assert!(at("answered") - at("started") >= 250_000, "it was the plugin: {row:#}");
    assert!(row["log"].to_string().contains("looking at the stock"), "{row:#}");
    assert_eq!(row["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736", "{row:#}");
    let meta = &result["meta"];
    assert_eq!(
        (&meta["operation"], &meta["plugin_version"], &meta["attempt"]),
        (&json!("shop.slow"), &json!("1.0.0"), &json!(1))
    );
    daemon.stop();
}

/// Rows T8 and T9.
#[test]
fn r_t8_statistics_tell_how_operations_do_and_which_arguments_are_wrong() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    for args in [
        &["count:=1"][..],
        &["count:=2"],
        &["count:=13"],
        &["count=many"],
        &["count=lots"],
        &["cuont:=1", "count:=1"],
    ] {
        daemon.json(&[&["call", "shop.order"], args].concat());
    }
    let stats = daemon.json(&["calls", "--stats"]);
    let order = &stats["operations"][0];
    assert_eq!((&order["operation"], &order["count"]), (&json!("shop.order"), &json!(6)), "{stats:#}");
    assert!(order["ok_percent"].as_f64().is_some_and(|percent| (percent - 33.3).abs() < 1.0), "{stats:#}");
    assert!(
        order["p50_us"].as_u64() <= order["p95_us"].as_u64() && order["p95_us"].as_u64() > Some(0),
        "{stats:#}"
    );
    let commonest = &order["argument_errors"][0];
    assert_eq!((&commonest["path"], &commonest["count"]), (&json!("/count"), &json!(2)), "{stats:#}");
    daemon.stop();
}

/// A slip in a filter is not mistaken for a plugin that was never called.
#[test]
fn a_filter_that_names_nothing_is_an_error_and_one_that_names_something_is_none() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["calls", "--plugin", "shop"])["calls"], json!([]), "it was not called yet");
    daemon.json(&["call", "shop.order", "count:=1"]);
    for (filter, name, code) in
        [("--plugin", "shpo", 1002), ("--operation", "shop.oder", 1003), ("--operation", "nothing", 1003)]
    {
        let refused = daemon.plugd(&["--output", "json", "calls", filter, name]).expect(4).json();
        assert_eq!(refused["error"]["code"], code, "{filter} {name}: {refused:#}");
    }
    for spelling in ["shop.order", "order", "shop__order"] {
        let listed = daemon.json(&["calls", "--operation", spelling]);
        assert_eq!(listed["calls"].as_array().map(Vec::len), Some(1), "{spelling}: {listed:#}");
    }
    daemon.stop();
}

/// Which of two values is meant is not guessed.
#[tokio::test]
async fn a_key_given_twice_over_the_socket_is_refused_by_name() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let twice = CallParams::new("shop.order").arguments(r#"{"count":1,"more":{"a":1},"count":2}"#);
    let result = client.call(&twice.expect("JSON")).await.expect("a result");
    let error = result.error.expect("it is refused");
    assert_eq!((error.code, error.message.contains("\"count\"")), (2002, true), "{error:?}");
    daemon.stop();
}
