//! What a call would do, told without doing it; and calls as a caller of less rights.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

const MAIL: &str = r#"
OPERATIONS = [{"name": "send", "effects": {"destructive": True}, "timeout_ms": 7000, "input_schema": {"type": "object",
    "properties": {"count": {"type": "integer"}, "to": {"type": "string", "description": "Who gets it"},
        "how": {"type": "string", "default": "fast"}, "key": {"type": "string", "writeOnly": True}},
    "required": ["count", "to"]}},
    {"name": "read", "effects": {"read_only": True}, "cache_ttl": 60, "input_schema": {}}]

def handle(operation, arguments, params):
    mark("ran", operation)
    return {"data": arguments}
"#;

fn mail() -> Sandbox {
    let sandbox = Sandbox::new("");
    let callers = "[callers.ci]\nallow = [\"mail.read\"]\n";
    sandbox.configure(&format!("{}{callers}", sandbox.python("mail", MAIL)));
    sandbox
}

#[test]
fn a_masked_value_that_is_changed_is_not_told_to_be_as_it_is() {
    let sandbox = Sandbox::new("");
    let definitions = r#"
OPERATIONS = [{"name": "login", "input_schema": {"type": "object",
    "properties": {"code": {"type": "integer", "x-sensitive": True}, "user": {"type": "string"}},
    "required": ["code", "user"]}}]
"#;
    sandbox.configure(&sandbox.python("sec", definitions));
    let explained =
        |code: &str| sandbox.plugd(&["call", "sec.login", "user=a", code, "--explain"]).expect(0).stdout;
    let changed = explained("code=四千七百一十一");
    assert!(changed.contains("a masked value read as its declared type"), "{changed}");
    assert!(!changed.contains("as they are") && !changed.contains("4711"), "{changed}");
    let same = explained("code:=4711");
    assert!(same.contains("the plugin gets them as they are"), "{same}");
}

/// Row T11: which plugin would run, and why, before and after.
#[test]
fn r_t11_a_call_is_explained_and_not_run() {
    let sandbox = mail();
    for daemon in [None, Some(sandbox.serve())] {
        let words = ["call", "send", "count=三", "to=ada", "key=4711", "--key", "k-1", "--explain"];
        let told = sandbox.json(&words);
        assert_eq!(
            (&told["operation"], &told["asked_for"]),
            (&json!("mail.send"), &json!("send")),
            "{told:#}"
        );
        assert_eq!((&told["plugin_version"], &told["source"]["kind"]), (&json!("1.0.0"), &json!("config")));
        assert!(told["path"].as_str().is_some_and(|path| path.ends_with("plugins/mail/main.py")), "{told:#}");
        assert_eq!(told["given"]["count"], "三");
        assert_eq!(
            told["arguments"],
            json!({"count": 3, "to": "ada", "key": "***", "how": "fast"}),
            "{told:#}"
        );
        assert_eq!((&told["confirmation"], &told["key"]), (&json!("needed"), &json!("noted_before")));
        assert_eq!((&told["retried"], &told["timeout_ms"]), (&json!(false), &json!(7000)));

        let missing = sandbox.json(&["call", "mail.send", "count=1", "--explain"]);
        assert_eq!(
            (&missing["missing"][0]["name"], &missing["arguments"]),
            (&json!("to"), &Value::Null),
            "{missing:#}"
        );
        let wrong = sandbox.json(&["call", "mail.send", "count=many", "to=ada", "--explain"]);
        assert_eq!(wrong["problems"][0]["path"], "/count", "{wrong:#}");
        let read = sandbox.json(&["call", "mail.read", "--explain"]);
        assert_eq!(
            (&read["confirmation"], &read["cache_ttl"]),
            (&json!("not_needed"), &json!(60)),
            "{read:#}"
        );
        sandbox.plugd(&["call", "mail.sned", "--explain"]).expect(4);

        let text = sandbox.plugd(&words).expect(0).stdout;
        for part in ["mail.send\n", "configured in", "the plugin gets", "\"count\": 3"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("4711"), "{text}");
        assert_eq!(sandbox.read("plugins/mail/ran"), "", "nothing ran");
        if let Some(daemon) = daemon {
            let result = daemon.json(&["call", "mail.read"]);
            let meta = &result["meta"];
            assert_eq!(
                (&meta["operation"], &meta["plugin_version"], &meta["attempt"]),
                (&json!("mail.read"), &json!("1.0.0"), &json!(1))
            );
            daemon.stop();
        }
    }
}

#[test]
fn as_a_caller_only_what_its_profile_allows_is_there() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    daemon.plugd(&["--as", "ci", "call", "mail.read"]).expect(0);
    daemon.plugd(&["call", "mail.send", "count=1", "to=ada", "--yes", "--as", "ci"]).expect(7);
    daemon.plugd(&["call", "mail.send", "count=1", "to=ada", "--explain", "--as", "ci"]).expect(7);
    daemon.plugd(&["--as", "nobody", "call", "mail.read"]).expect(4);
    let list = daemon.plugd(&["--as", "ci", "list"]).expect(0).stdout;
    assert!(list.contains("mail.read") && !list.contains("mail.send"), "{list}");
    let mut command = sandbox.command(&["call", "mail.send", "count=1", "to=ada", "--yes"]);
    let by_environment = command.env("PLUGD_AS", "ci").output().expect("plugd runs");
    assert_eq!(by_environment.status.code(), Some(7), "{by_environment:?}");
    assert_eq!(sandbox.read("plugins/mail/ran"), "read\n");
    daemon.stop();
}
