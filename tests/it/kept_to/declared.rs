//! What is declared is shown, and decides by itself alone what plugd does.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

use super::{ended, ids, operations};

/// Every operation does the same; only its declaration differs. Told to crash, it does so once.
const ANSWERS: &str = r#"
MANIFEST = {"features": {"concurrency": 4}}

def handle(operation, arguments, params):
    crashed = "crashed_" + operation
    if arguments.get("how") == "crash" and not os.path.exists(crashed):
        mark(crashed)
        os._exit(1)
    return {"data": "done"}
"#;

/// Any number of crashes, and back at once.
const RESTART: &str = "restart = { backoff = \"20ms\", backoff_cap = \"20ms\", max = 100 }\n";

/// A plain declaration with these members besides.
fn declare(name: &str, more: &Value) -> Value {
    let mut declared = json!({"name": name, "description": "Does its work. No more.", "input_schema":
        {"type": "object", "properties": {"how": {"type": "string", "description": "How it goes"}}}});
    let members = more.as_object().expect("an object").clone();
    declared.as_object_mut().expect("an object").extend(members);
    declared
}

fn shop(declared: &[Value]) -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("shop", &(operations(declared) + ANSWERS));
    sandbox.configure(&format!("{table}{RESTART}\n[callers.guest]\n"));
    sandbox
}

/// What a caller meets with that is not so of every operation.
fn met_with(daemon: &Daemon<'_>, name: &str) -> Vec<&'static str> {
    let id = format!("shop.{name}");
    let call = |words: &[&str]| {
        daemon.plugd(&[&["--output", "json", "call", &id, "--timeout", "60s"], words].concat()).json()
    };
    let agreed = |how: &str| call(&["--yes", "--wait", how]);
    let mut met = Vec::new();
    let mut note = |when: bool, what: &'static str| {
        if when {
            met.push(what);
        }
    };

    note(call(&["how=first", "--wait"])["status"] == "needs_confirmation", "asks");
    let started = call(&["how=second", "--yes"]);
    note(started["status"] == "pending", "in the background");
    if started["status"] == "pending" {
        let job = started["meta"]["call_id"].as_str().expect("an id");
        assert_eq!(ended(daemon, 0, &["jobs", "wait", job])["data"], "done");
    }
    let crashed = agreed("how=crash");
    note(crashed["status"] == "ok" && crashed["meta"]["attempt"] == 2, "tried again");
    assert!(crashed["status"] == "ok" || crashed["error"]["code"] == 6001, "{crashed:#}");
    let (once, again) = (agreed("how=third"), agreed("how=third"));
    assert_eq!((&once["data"], &again["data"]), (&json!("done"), &json!("done")), "{again:#}");
    note(again["meta"]["cached"] == true, "given again");
    note(!ids(&daemon.json(&["tools"])["tools"]).contains(&id.as_str()), "no tool");
    let guest = daemon.json(&["--as", "guest", "call", &id, "--wait"]);
    note(guest["error"]["code"] == 7005, "not for guests");
    met
}

/// Row D2: the fields that decide something, one at a time.
#[test]
fn r_d2_each_declared_field_changes_what_it_is_for_and_nothing_else() {
    let flips: [(&str, Value, &[&str]); 9] = [
        ("plain", json!({}), &[]),
        ("destructive", json!({"effects": {"destructive": true}}), &["asks"]),
        ("idempotent", json!({"effects": {"idempotent": true}}), &["tried again"]),
        ("long_running", json!({"long_running": true}), &["in the background"]),
        ("read_only", json!({"effects": {"read_only": true}}), &["tried again"]),
        // Only what changes nothing may be given again: the flip is from the line above.
        (
            "cached",
            json!({"effects": {"read_only": true}, "cache_ttl": 600}),
            &["tried again", "given again"],
        ),
        ("cached_in_vain", json!({"cache_ttl": 600}), &[]),
        ("audience", json!({"audience": "plugins"}), &["no tool"]),
        ("scope", json!({"scope": "deploy"}), &["not for guests"]),
    ];
    let declared: Vec<Value> = flips.iter().map(|(name, more, _)| declare(name, more)).collect();
    let sandbox = shop(&declared);
    let daemon = sandbox.serve();
    for (name, _, expected) in &flips {
        assert_eq!(met_with(&daemon, name), *expected, "{name}");
    }
    daemon.stop();
}

/// Row D2: everything that can be declared of an operation.
#[test]
fn r_d2_describe_shows_each_declared_field() {
    let whole = declare(
        "whole",
        &json!({
            "title": "The whole", "when_to_use": "All is wanted.", "when_not_to_use": "A part will do.",
            "examples": ["give me all of it"], "category": "shop", "audience": "plugins",
            "output_schema": {"type": "object", "properties": {"step": {"type": "string"}}},
            "effects": {"read_only": false, "destructive": true, "idempotent": true, "open_world": true},
            "timeout_ms": 7000, "stall_timeout_ms": 5000, "long_running": true, "cache_ttl": 60,
            "confirm": "always", "scope": "deploy", "result_limit": 4096,
        }),
    );
    let sandbox = shop(&[whole.clone(), declare("plain", &json!({}))]);
    let daemon = sandbox.serve();
    let described = ended(&daemon, 0, &["describe", "shop.whole"]);
    let shown = &described["operations"][0];
    for (member, value) in whole.as_object().expect("an object") {
        assert_eq!(&shown[member], value, "{member}: {shown:#}");
    }
    // What is not declared is not claimed.
    let plain = ended(&daemon, 0, &["describe", "shop.plain"]);
    let plain = &plain["operations"][0];
    for member in ["title", "category", "output_schema", "timeout_ms", "cache_ttl", "scope", "result_limit"] {
        assert_eq!(plain[member], Value::Null, "{member}: {plain:#}");
    }
    assert_eq!((&plain["effects"], &plain["long_running"]), (&json!({}), &json!(false)), "{plain:#}");
    daemon.stop();
}
