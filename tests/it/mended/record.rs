//! What is said where the record is lost, is not kept, or is asked for what is not there.

use std::fs;

use plugd_daemon::client::ClientError;
use plugd_protocol::control::CallsParams;
use plugd_tests::Sandbox;
use serde_json::{Value, json};

const SHOP: &str = r#"
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}}
OPERATIONS = [{"name": "order", "input_schema": COUNT},
    {"name": "count", "input_schema": {**COUNT, "required": ["count"]}}]
"#;

/// A shop, and what else the configuration says.
fn shop(more: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let plugin = sandbox.python("shop", SHOP);
    sandbox.configure(&format!("{plugin}{more}"));
    sandbox
}

fn ids(calls: &Value) -> Vec<String> {
    let calls = calls["calls"].as_array().unwrap_or_else(|| panic!("no list: {calls:#}")).iter();
    calls.map(|call| call["call_id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn status_says_that_the_record_was_deleted_under_the_daemon_and_goes_on_in_a_new_one() {
    let sandbox = shop("");
    let daemon = sandbox.serve();
    let before = daemon.json(&["call", "shop.order"])["meta"]["call_id"].clone();
    assert_eq!(ids(&daemon.json(&["calls"])).len(), 1);
    assert_eq!(daemon.json(&["status"])["daemon"]["record_begun_anew"], Value::Null);
    for end in ["", "-wal", "-shm"] {
        let _not_every_one_is_there = fs::remove_file(sandbox.path().join(format!("state/plugd.db{end}")));
    }
    // Nobody has called since: whoever looks is the first to notice.
    let status = daemon.json(&["status"])["daemon"].clone();
    let said = status["record_begun_anew"].as_str().unwrap_or_default();
    assert!(said.contains("was moved or deleted under plugd"), "{status:#}");
    assert_eq!(status["not_recorded"], Value::Null, "{status:#}");
    let text = daemon.plugd(&["status"]).expect(0).stdout;
    assert!(text.contains("the record was begun anew: "), "{text}");
    let after = daemon.json(&["call", "shop.order"])["meta"]["call_id"].clone();
    assert_eq!(ids(&daemon.json(&["calls"])), [after.as_str().expect("an id")]);
    let gone = daemon.plugd(&["--output", "json", "calls", "show", before.as_str().expect("an id")]);
    assert_eq!(gone.expect(4).json()["error"]["code"], 1005);
    daemon.stop();
}

#[test]
fn without_a_daemon_no_token_is_handed_out_that_nobody_could_answer() {
    let sandbox = shop("[record]\nenabled = false\n");
    let stopped = sandbox.plugd(&["--output", "json", "call", "shop.count"]).expect(8).json();
    let pending = &stopped["pending"];
    assert_eq!((&pending["token"], &pending["expires"]), (&Value::Null, &Value::Null), "{stopped:#}");
    assert_eq!(pending["questions"][0]["name"], "count", "{stopped:#}");
    let hint = stopped["error"]["hint"].as_str().unwrap_or_default();
    assert!(hint.starts_with("call again: `") && hint.ends_with("call shop.count count=…`"), "{stopped:#}");
    let text = sandbox.plugd(&["call", "shop.count"]).expect(8).stderr;
    assert!(text.contains("call shop.count count=…") && !text.contains("plugd answer"), "{text}");
    // A daemon is there for whoever answers, and says for how long.
    let daemon = sandbox.serve();
    let stopped = daemon.json(&["call", "shop.count"]);
    let token = stopped["pending"]["token"].as_str().unwrap_or_else(|| panic!("no token: {stopped:#}"));
    assert!(stopped["meta"]["warnings"].to_string().contains("good only while plugd runs"), "{stopped:#}");
    assert_eq!(daemon.json(&["answer", token, "count:=2"])["data"], json!({"count": 2}));
    daemon.stop();
}

#[tokio::test]
async fn as_many_calls_are_listed_as_are_asked_for_within_bounds() {
    let sandbox = shop("");
    let daemon = sandbox.serve();
    let made: Vec<String> = (0..3)
        .map(|_| daemon.json(&["call", "shop.order"])["meta"]["call_id"].as_str().expect("an id").to_owned())
        .collect();
    let client = daemon.client().await;
    for limit in [0, 1_001, u32::MAX] {
        let words = ["--output", "json", "calls", "--limit", &limit.to_string()];
        let refused = daemon.plugd(&words).expect(2).json()["error"].clone();
        assert_eq!(refused["code"], 1001, "{refused:#}");
        assert!(refused["message"].to_string().contains("1..=1000"), "{refused:#}");
        // Over the socket, too.
        match client.calls(&CallsParams { limit: Some(limit), ..CallsParams::default() }).await {
            Err(ClientError::Command(error)) => {
                let said = format!("limit: expected 1 to 1000, got {limit}");
                assert_eq!((error.code, error.message), (1001, said));
            }
            other => panic!("{limit}: {other:?}"),
        }
    }
    drop(client);
    assert_eq!(ids(&daemon.json(&["calls", "--limit", "2"])), [made[2].clone(), made[1].clone()]);
    assert_eq!(ids(&daemon.json(&["calls", "--limit", "1000"])).len(), 3);
    daemon.stop();
}

/// Who is asked for and has never called is a slip; who has called is known by that, whatever is configured.
#[test]
fn a_caller_that_is_none_is_an_error_and_one_that_was_there_is_listed() {
    let profile = "[callers.ci]\nallow = [\"shop.*\"]\n";
    let sandbox = shop(profile);
    let daemon = sandbox.serve();
    let by_ci = daemon.json(&["--as", "ci", "call", "shop.order"])["meta"]["call_id"].clone();
    let refused = daemon.plugd(&["--output", "json", "calls", "--caller", "cu"]).expect(4).json();
    assert_eq!(refused["error"]["code"], 1010, "{refused:#}");
    assert!(refused["error"].to_string().contains("did you mean ci?"), "{refused:#}");
    // A plugin is a caller, too, and none that a profile could be looked for.
    assert_eq!(ids(&daemon.json(&["calls", "--caller", "plugin:shop"])), [""; 0]);
    sandbox.configure(&sandbox.python("shop", SHOP));
    daemon.plugd(&["reload"]).expect(0);
    let listed = daemon.json(&["calls", "--caller", "ci"]);
    assert_eq!(ids(&listed), [by_ci.as_str().expect("an id")], "{listed:#}");
    daemon.plugd(&["--output", "json", "--as", "ci", "calls"]).expect(4);
    daemon.stop();
}
