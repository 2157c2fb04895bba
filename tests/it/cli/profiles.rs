//! `--as` on every command that is about calls: what a profile may not use is not for it to read either.

use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

const SHOP: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object", "properties": {"text": {}}},
    "effects": {"destructive": name == "wipe"}, "long_running": name == "build"}
    for name in ("query", "show", "wipe", "build")]

def handle(operation, arguments, params):
    return {"data": {"secret": operation, **arguments}}
"#;

const CALLERS: &str = "[callers.guest]\nallow = [\"shop.show\"]\n\n[callers.ci]\n";

fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}{CALLERS}", sandbox.python("shop", SHOP)));
    sandbox
}

fn id(result: &Value) -> String {
    result["meta"]["call_id"].as_str().unwrap_or_else(|| panic!("an id: {result:#}")).to_owned()
}

/// How a command ends as this caller: the exit code, and the error's number.
fn ends(daemon: &Daemon<'_>, caller: &str, words: &[&str]) -> (i32, Value) {
    let ran = daemon.plugd(&[&["--output", "json", "--as", caller], words].concat());
    (ran.code, ran.json()["error"]["code"].clone())
}

#[test]
fn whose_calls_are_shown_is_one_thing_and_who_asks_another() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let own = id(&daemon.json(&["call", "shop.query"]));
    daemon.json(&["call", "shop.show", "--as", "ci"]);
    daemon.json(&["call", "shop.show", "--as", "guest"]);
    let callers = |words: &[&str]| {
        let report = daemon.json(&[&["calls"], words].concat());
        let rows = report["calls"].as_array().unwrap_or_else(|| panic!("{report:#}"));
        rows.iter().map(|row| row["caller"].clone()).collect::<Vec<_>>()
    };
    eventually("they are recorded", || callers(&[]).len() == 3);
    assert_eq!(callers(&["--as", "ci"]), [json!("guest"), json!("ci"), Value::Null]);
    assert_eq!(callers(&["--as", "guest"]), [json!("guest"), json!("ci")], "of what it may use");
    assert_eq!(callers(&["--as", "guest", "--caller", "ci"]), [json!("ci")]);
    assert_eq!(ends(&daemon, "nobody", &["calls"]), (4, json!(1010)));
    assert_eq!(ends(&daemon, "ci", &["calls", "show", &own]), (0, Value::Null));
    let by_environment = sandbox.command(&["calls", "show", &own]).env("PLUGD_AS", "ci").output();
    assert!(by_environment.expect("plugd runs").status.success());
    assert_eq!(ends(&daemon, "guest", &["calls", "show", &own]), (7, json!(7004)));
    daemon.stop();
}

#[test]
fn a_profile_reads_answers_and_waits_for_what_it_may_use_only() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let own = id(&daemon.json(&["call", "shop.query"]));
    let job = id(&daemon.json(&["call", "shop.build"]));
    daemon.json(&["jobs", "wait", &job]);
    let stopped = daemon.plugd(&["--output", "json", "call", "shop.wipe"]).expect(8).json();
    let token = stopped["pending"]["token"].as_str().expect("a token");
    let taken = format!("text:=@call:{own}/secret");
    let commands: [&[&str]; 6] = [
        &["result", &own],
        &["result", &own, "--all"],
        &["call", "shop.show", &taken],
        &["call", "shop.show", "--json", &format!("@call:{own}")],
        &["jobs", "wait", &job],
        &["answer", token, "--yes"],
    ];
    for words in commands {
        assert_eq!(ends(&daemon, "guest", words), (7, json!(7004)), "{words:?}");
        assert_eq!(ends(&daemon, "nobody", words), (4, json!(1010)), "{words:?}");
    }
    assert_eq!(daemon.json(&["jobs", "--as", "guest"])["jobs"], json!([]));
    assert_eq!(daemon.json(&["jobs", "--as", "ci"])["jobs"].as_array().map(Vec::len), Some(1));
    for words in commands {
        // The whole result is no object of this operation's arguments.
        let expected = if words.contains(&"--json") { (3, json!(2001)) } else { (0, Value::Null) };
        assert_eq!(ends(&daemon, "ci", words), expected, "{words:?}");
    }
    daemon.stop();
}
