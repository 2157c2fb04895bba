//! What is said of a command line is said in its own words: its time, its lists, its names.

use std::process::Stdio;

use plugd_tests::{Ran, Sandbox};
use serde_json::Value;

const SHOP: &str = r#"
READS = {"read_only": True}
PLACE = {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}}}
TAGS = {"type": "array", "items": {"type": "string"}}
OPERATIONS = [
    {"name": "order", "description": "Orders.", "input_schema": {"type": "object", "properties": {
        "place": PLACE, "tags": TAGS, "days": {"type": "integer"}}}},
    {"name": "hang", "description": "Hangs.", "effects": READS,
     "input_schema": {"type": "object", "properties": {"days": {"type": "integer"}}}},
]

def on_init(params):
    time.sleep(0.1)
    return {}

def handle(operation, arguments, params):
    print("it is ordered", file=sys.stderr, flush=True)
    return None if operation == "hang" else {"data": arguments}
"#;

/// The shop, configured, and as an executable `./shop`.
fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("shop", SHOP));
    sandbox.program("shop", &sandbox.read("plugins/shop/main.py"));
    sandbox
}

/// Runs a command by path, whose state stays in the sandbox.
fn by_path(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut command = sandbox.command(args);
    command.env("XDG_STATE_HOME", sandbox.path().join("home")).stdin(Stdio::null());
    command.output().expect("plugd runs").into()
}

fn error(ran: &Ran) -> Value {
    ran.json()["error"].clone()
}

#[test]
fn a_time_is_told_as_it_was_given() {
    let sandbox = shop();
    // To know what `days` is it is described first, which takes a part of the time.
    let words = ["--output", "json", "call", "./shop", "hang", "days=3", "--timeout", "5s"];
    let error = error(&by_path(&sandbox, &words).expect(5));
    assert!(error["message"].to_string().contains(" within 5 s"), "{error:#}");
}

#[test]
fn a_member_of_an_object_hides_nothing_else_that_is_wrong() {
    let sandbox = shop();
    let words =
        ["--output", "json", "call", "shop.order", "place.city=Bern", "place.zip=x", "days=y", "tags=a"];
    let error = error(&sandbox.plugd(&words).expect(3));
    let paths: Vec<&str> =
        error["details"].as_array().expect("a list").iter().filter_map(|one| one["path"].as_str()).collect();
    for path in ["/place.city", "/place.zip", "/place/zip", "/days", "/tags"] {
        assert!(paths.contains(&path), "{path}: {error:#}");
    }
    let message = error["message"].to_string();
    assert!(
        message.contains("place is an object") && message.contains("days: expected an integer"),
        "{message}"
    );
    assert!(error["hint"].to_string().contains("place:="), "{error:#}");
}

#[test]
fn a_list_that_is_no_list_is_shown_as_it_is_written() {
    let sandbox = shop();
    let failed = sandbox.plugd(&["call", "shop.order", "tags=a,b"]).expect(3).stderr;
    let hint = r#"a list is given as JSON: write 'tags:=["a","b"]'"#;
    assert!(failed.contains(hint), "{failed}");
    let worked = sandbox.plugd(&["--output", "data", "call", "shop.order", r#"tags:=["a","b"]"#]).expect(0);
    assert_eq!(worked.stdout.trim(), r#"{"tags": ["a", "b"]}"#);
}

#[test]
fn a_path_has_one_name_whatever_it_is_called() {
    let sandbox = shop();
    let text = sandbox.read("shop");
    for (file, name) in [("./g.go.bin", "g_go"), ("./天气", "plugin"), ("./_x y.py", "x_y")] {
        sandbox.program(file, &text);
        let described = by_path(&sandbox, &["--output", "json", "describe", file]).expect(0).json();
        assert_eq!(described["plugin"]["name"], name, "{described:#}");
        let checked = by_path(&sandbox, &["--output", "json", "check", file, "--only", "starts_soon"]);
        assert_eq!(checked.json()["plugins"][0]["plugin"]["name"], name, "{checked:?}");
        by_path(&sandbox, &["call", file, "order"]).expect(0);
        let log = by_path(&sandbox, &["logs", file]).expect(0).stdout;
        assert!(log.contains(name) && log.contains("it is ordered"), "{log}");
        // What is added keeps its name, so that is for somebody to say.
        let refused = sandbox.plugd(&["add", file]).expect(2).stderr;
        assert!(refused.contains(&format!("such as --name {name}")), "{refused}");
    }
    std::os::unix::fs::symlink("shop", sandbox.path().join("store")).expect("a link");
    by_path(&sandbox, &["call", "./store", "order"]).expect(0);
    let log = by_path(&sandbox, &["logs", "./store"]).expect(0).stdout;
    assert!(log.contains("store#"), "it is called as it was typed: {log}");
}

#[test]
fn a_path_that_cannot_be_followed_says_what_can_be_typed() {
    let sandbox = shop();
    let error = error(&by_path(&sandbox, &["--output", "json", "logs", "-f", "./shop"]).expect(2));
    let hint = error["hint"].as_str().expect("a hint");
    let state = sandbox.path().join("home/plugd/logs/shop.log");
    assert!(hint.contains("`plugd logs ./shop`"), "{error:#}");
    assert!(hint.contains(&format!("tail -F {}", state.display())), "{error:#}");
    by_path(&sandbox, &["call", "./shop", "order"]).expect(0);
    assert!(state.exists(), "that is where it is written");
}

#[test]
fn a_check_says_what_it_left_out_and_keeps_to_its_time() {
    let sandbox = shop();
    let checked = sandbox.plugd(&["check", "shop", "--call", "--timeout", "1s"]).expect(6).stdout;
    // The time covers the start.
    let is_over = ["did not answer within 1 s", "was still starting when the time was over"];
    assert!(is_over.iter().any(|over| checked.contains(over)), "{checked}");
    let one = sandbox.plugd(&["check", "shop", "--call=order"]).expect(0).stdout;
    let left =
        "what was tried is well: 1 of 2 operations called; left out: 1 operation that was not called\n";
    assert!(one.ends_with(left), "{one}");
    let only = by_path(&sandbox, &["check", "./shop", "--only", "starts_soon"]).expect(0).stdout;
    assert!(
        only.contains("\nwhat was tried is well: ") && only.contains("that --only does not name"),
        "{only}"
    );
    let error = error(&sandbox.plugd(&["--output", "json", "check", "shop", "--timeout", "1s"]).expect(2));
    assert!(error["message"].to_string().contains("give --call with it"), "{error:#}");
}

#[test]
fn a_schema_under_another_protocols_name_is_recognised() {
    let sandbox = Sandbox::new("");
    let definitions = r#"OPERATIONS = [{"name": "order", "inputSchema": {"type": "object"}}]"#;
    sandbox.configure(&sandbox.python("shop", definitions));
    let meant = "did you mean input_schema?";
    for words in [&["check", "shop"][..], &["lint", "shop"], &["describe", "shop"]] {
        let shown = sandbox.plugd(words);
        assert!(shown.stdout.contains(meant), "{words:?}: {shown:?}");
    }
}
