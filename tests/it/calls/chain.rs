//! One plugin using another: declared only, with its deadline, its session and its causes.

use plugd_tests::{Sandbox, eventually};
use serde_json::{Value, json};

use super::{example, marks};

/// Calls what its arguments say, and gives back what the host answered.
const OUTER: &str = r#"
def handle(operation, arguments, params):
    call_id = params["context"]["call_id"] if arguments.get("say_id") else None
    answer = host_call(arguments["operation"], {}, call_id)
    return {"data": {"context": params["context"], "answer": answer}}
"#;

/// Gives back the context it was called with.
const INNER: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("context", "hang")]


def notified(method, params):
    mark(method, params["call_id"])


def handle(operation, arguments, params):
    if operation == "hang":
        mark("running", params["context"]["call_id"])
        threading.Event().wait()
    return {"data": params["context"], "summary": "the context"}
"#;

fn chain(outer: &str, manifest: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let outer = sandbox.python("outer", &format!("{outer}\nMANIFEST = {manifest}\n"));
    let inner = sandbox.python("inner", INNER);
    sandbox.configure(&format!("{outer}\n{inner}"));
    sandbox
}

const REQUIRES: &str = r#"{"requires": {"inner": ">=1.0"}}"#;

/// The error behind the host's refusal, as the plugin got it.
fn refusal(result: &Value) -> &Value {
    &result["data"]["answer"]["error"]["data"]["cause"]["error"]
}

fn trip() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}\n{}", example("trip"), example("weather")));
    sandbox
}

#[test]
fn trip_answers_by_what_weather_says() {
    let sandbox = trip();
    let daemon = sandbox.serve();
    let result = daemon
        .plugd(&["--output", "json", "call", "trip.recommend", "city=Beijing", "days=2"])
        .expect(0)
        .json();
    assert_eq!(
        (&result["data"]["city"], &result["data"]["days"]),
        (&json!("Beijing"), &json!(2)),
        "{result:#}"
    );
    let events = daemon.json(&["events", "weather"]);
    let inner = events.as_array().expect("events").iter().find(|event| event["kind"] == "call.finished");
    let inner = inner.unwrap_or_else(|| panic!("weather ran a call of its own: {events:#}"));
    assert_eq!((&inner["operation"], &inner["status"]), (&json!("weather.get_weather"), &json!("ok")));
    assert_ne!(inner["call_id"], result["meta"]["call_id"]);
    daemon.stop();
}

#[test]
fn s2_a_line_logged_deep_in_a_handler_carries_the_id_of_its_call() {
    let sandbox = trip();
    let daemon = sandbox.serve();
    let logged = |city: &str| {
        let result = daemon.json(&["call", "trip.recommend", &format!("city={city}")]);
        let id = result["meta"]["call_id"].as_str().map(str::to_owned).expect("an id");
        let lines = daemon.json(&["logs", "--call", &id]);
        let lines = lines.as_array().expect("lines").iter();
        lines.filter_map(|line| line["text"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    for city in ["Beijing", "Hangzhou"] {
        let texts = logged(city);
        assert!(
            texts.iter().any(|text| text.starts_with("planning by:") && text.contains(city)),
            "{texts:?}"
        );
        assert_eq!(
            texts.iter().filter(|text| text.starts_with("planning by:")).count(),
            1,
            "no other call's: {texts:?}"
        );
    }
    daemon.stop();
}

#[test]
fn x18_a_failure_deep_in_a_chain_names_the_tool_it_comes_from() {
    let sandbox = trip();
    let daemon = sandbox.serve();
    let result =
        daemon.plugd(&["--output", "json", "call", "trip.recommend", "city=Atlantis"]).expect(1).json();
    let cause = &result["error"]["cause"];
    assert_eq!(cause["operation"], "weather.get_weather", "{result:#}");
    assert_eq!((&cause["error"]["code"], &cause["error"]["name"]), (&json!(4001), &json!("city_not_found")));
    let text = daemon.plugd(&["call", "trip.recommend", "city=Atlantis"]).expect(1).stderr;
    assert!(text.contains("because weather.get_weather failed: 4001 city_not_found: "), "{text}");

    daemon.plugd(&["stop", "weather"]).expect(0);
    let down = daemon.json(&["call", "trip.recommend", "city=Beijing"]);
    assert_eq!(down["status"], "error", "{down:#}");
    let named = down["error"]["cause"]["operation"] == "weather.get_weather"
        || down["error"]["message"].as_str().is_some_and(|message| message.contains("weather"));
    assert!(named, "{down:#}");
    daemon.plugd(&["start", "weather"]).expect(0);
    daemon.plugd(&["call", "trip.recommend", "city=Beijing"]).expect(0);
    daemon.stop();
}

#[test]
fn a_plugin_may_use_only_what_it_requires() {
    let sandbox = chain(OUTER, "{}");
    let daemon = sandbox.serve();
    let result = daemon.json(&["call", "outer.echo", "operation=inner.context"]);
    let error = refusal(&result);
    assert_eq!(
        (&error["code"], &error["name"]),
        (&json!(7001), &json!("undeclared_dependency")),
        "{result:#}"
    );
    assert_eq!(error["outcome"], "not_run");
    let inner = daemon.json(&["events", "inner"]);
    let started = inner.as_array().expect("events").iter().any(|event| event["kind"] == "plugin.ready");
    assert!(!started, "a refused call starts nothing: {inner:#}");
    daemon.stop();
}

#[test]
fn a_call_to_another_plugin_belongs_to_the_only_call_in_flight() {
    let sandbox = chain(OUTER, REQUIRES);
    let daemon = sandbox.serve();
    let args = ["call", "outer.echo", "operation=inner.context", "--session", "s-1", "--timeout", "20s"];
    let result = daemon.json(&args);
    let (outer, inner) = (&result["data"]["context"], &result["data"]["answer"]["result"]["data"]);
    assert_eq!(result["data"]["answer"]["result"]["summary"], "the context", "{result:#}");
    assert_eq!(
        (&inner["session_id"], &inner["caller"]),
        (&json!("s-1"), &json!("plugin:outer")),
        "{result:#}"
    );
    assert_ne!(inner["call_id"], outer["call_id"]);
    let left = |context: &Value| context["deadline_ms"].as_u64().expect("a deadline");
    assert!(left(inner) <= left(outer) && left(outer) <= 20_000, "the deadline is inherited: {result:#}");
    daemon.stop();
}

#[test]
fn a_call_to_another_plugin_must_say_its_own_where_several_are_in_flight() {
    let several = r#"
BOTH = threading.Barrier(2)
SAID = threading.Barrier(2)


def handle(operation, arguments, params):
    BOTH.wait(10)
    call_id = params["context"]["call_id"] if arguments.get("say_id") else None
    answer = host_call("inner.context", {}, call_id)
    SAID.wait(10)
    return {"data": answer}
"#;
    let sandbox = chain(several, r#"{"requires": {"inner": ">=1.0"}, "features": {"concurrency": 2}}"#);
    let daemon = sandbox.serve();
    let (silent, said) = std::thread::scope(|scope| {
        let silent = scope.spawn(|| daemon.json(&["call", "outer.echo"]));
        let said = daemon.json(&["call", "outer.echo", "say_id:=true"]);
        (silent.join().expect("it ends"), said)
    });
    assert_eq!(silent["data"]["error"]["code"], -32602, "{silent:#}");
    assert_eq!(said["data"]["result"]["data"]["caller"], "plugin:outer", "{said:#}");
    daemon.stop();
}

#[test]
fn a_one_lane_plugin_that_calls_itself_is_told_and_does_not_hang() {
    let sandbox = chain(OUTER, REQUIRES);
    let daemon = sandbox.serve();
    let result = daemon.json(&["call", "outer.echo", "operation=outer.echo"]);
    let error = refusal(&result);
    assert_eq!((&error["code"], &error["name"]), (&json!(7003), &json!("reentrant_call")), "{result:#}");
    assert_eq!(daemon.status("outer")["starts"], 1);
    daemon.stop();
}

#[test]
fn the_deadline_of_the_outer_call_ends_the_inner_one() {
    let sandbox = chain(OUTER, REQUIRES);
    let text = sandbox.read("plugd.toml");
    sandbox.write("plugd.toml", &text.replace("cwd =", "cancel_grace = \"100ms\"\ncwd ="));
    let daemon = sandbox.serve();
    // Both are up before the clock that counts is started.
    daemon.plugd(&["start", "inner", "outer"]).expect(0);
    let result = daemon.plugd(&[
        "--output",
        "json",
        "call",
        "outer.echo",
        "operation=inner.hang",
        "--timeout",
        "500ms",
    ]);
    let result = result.expect(5).json();
    assert_eq!(result["error"]["code"], 5001, "{result:#}");
    eventually("the inner plugin is told to stop", || !marks(&sandbox, "inner", "cancel").is_empty());
    assert_eq!(marks(&sandbox, "inner", "cancel"), marks(&sandbox, "inner", "running"), "that call, once");
    daemon.stop();
}

#[test]
fn a_cancel_of_the_outer_call_reaches_the_inner_one_at_once() {
    // With lanes to spare the outer plugin is not restarted, whatever it makes of the cancel.
    let sandbox = chain(OUTER, r#"{"requires": {"inner": ">=1.0"}, "features": {"concurrency": 4}}"#);
    let daemon = sandbox.serve();
    let result = std::thread::scope(|scope| {
        let call = scope.spawn(|| daemon.json(&["call", "outer.echo", "operation=inner.hang"]));
        eventually("the inner call runs", || !marks(&sandbox, "inner", "running").is_empty());
        let calls = daemon.json(&["status"])["daemon"]["calls"].clone();
        let calls = calls.as_array().expect("calls").iter();
        let id = |operation: &str| {
            let mut of = calls.clone().filter(|call| call["operation"] == operation);
            of.next().and_then(|call| call["call_id"].as_str()).expect("it is in flight").to_owned()
        };
        daemon.plugd(&["cancel", &id("outer.echo")]).expect(0);
        eventually("the inner plugin is told to stop", || !marks(&sandbox, "inner", "cancel").is_empty());
        assert_eq!(marks(&sandbox, "inner", "cancel"), [id("inner.hang")]);
        call.join().expect("it ends")
    });
    assert_eq!(result["status"], "cancelled", "{result:#}");
    assert_eq!(daemon.json(&["status"])["daemon"]["calls"], json!([]), "neither is in flight any more");
    daemon.stop();
}
