//! What destroys something runs only where somebody agreed: at a terminal, beforehand, or by a token.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

use crate::asking::Terminal;

/// Takes note of each run; `wipe` says that it destroys, `greet` says nothing.
const FILES: &str = r#"
COUNT = {"type": "object", "properties": {"count": {"type": "integer", "description": "How many files"}},
    "required": ["count"]}
OPERATIONS = [
    {"name": "wipe", "input_schema": COUNT, "effects": {"destructive": True}},
    {"name": "ask_always", "input_schema": {}, "confirm": "always"},
    {"name": "greet", "input_schema": {}}]

def handle(operation, arguments, params):
    mark("ran", json.dumps([operation, arguments]))
    return {"data": {"done": operation}}
"#;

fn files() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("files", FILES));
    sandbox
}

/// Everything that ran so far, and forgets it.
fn ran(sandbox: &Sandbox) -> Vec<Value> {
    let lines = sandbox.read("plugins/files/ran");
    sandbox.write("plugins/files/ran", "");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn wiped() -> Vec<Value> {
    vec![json!(["wipe", { "count": 3 }])]
}

/// The token of a call that stopped.
#[track_caller]
fn stopped(sandbox: &Sandbox, words: &[&str]) -> String {
    let result = sandbox.plugd(&[&["--output", "json", "call"], words].concat()).expect(8).json();
    assert_eq!(result["status"], "needs_confirmation", "{result:#}");
    result["pending"]["token"].as_str().unwrap_or_else(|| panic!("a token: {result:#}")).to_owned()
}

#[test]
fn c140_nothing_is_destroyed_without_a_yes_that_somebody_gave() {
    let sandbox = files();
    let daemon = sandbox.serve();
    let call = ["call", "files.wipe", "count=三"];
    // Nothing on stdin, and something on it that is no person's.
    for told in [sandbox.plugd(&call).expect(8), sandbox.plugd_with_stdin(&call, b"y\n").expect(8)] {
        assert_eq!((told.stdout.as_str(), ran(&sandbox)), ("", vec![]), "{told:?}");
        assert!(told.stderr.contains("files.wipe") && told.stderr.contains("\"count\": 3"), "{told:?}");
        assert!(told.stderr.contains("answer ") && told.stderr.contains(" --yes"), "{told:?}");
    }
    sandbox.plugd(&[&call[..], &["--yes"]].concat()).expect(0);
    assert_eq!(ran(&sandbox), wiped());

    let at_terminal = |keys: &str| {
        let terminal = Terminal::run(&sandbox, &call, &[("[y/N]: ", 0.0, keys)]);
        let (code, _) = terminal.end();
        let screen = sandbox.read("terminal/screen");
        assert!(screen.contains("files.wipe") && screen.contains("\"count\": 3"), "{screen}");
        code
    };
    assert_eq!((at_terminal("no\n"), ran(&sandbox)), (7, vec![]));
    assert_eq!((at_terminal("\n"), ran(&sandbox)), (7, vec![]), "Enter alone is a no");
    assert_eq!((at_terminal("\u{4}"), ran(&sandbox)), (7, vec![]), "Ctrl-D is one, too");
    assert_eq!((at_terminal("yes\n"), ran(&sandbox)), (0, wiped()));
    daemon.stop();
}

/// The part at a terminal of row X9, and what needs none.
#[test]
fn r_x9_only_what_is_declared_so_is_confirmed() {
    let sandbox = files();
    sandbox.plugd(&["call", "files.greet"]).expect(0);
    assert_eq!(ran(&sandbox), [json!(["greet", {}])], "undeclared effects run from a script");
    stopped(&sandbox, &["files.ask_always"]);
    assert_eq!(ran(&sandbox), [] as [Value; 0]);
    let (code, _) = Terminal::run(&sandbox, &["call", "files.ask_always"], &[("[y/N]: ", 0.0, "y\n")]).end();
    assert_eq!((code, ran(&sandbox)), (0, vec![json!(["ask_always", {}])]));
    // A person who will not be asked is asked for by a token like a script.
    let (code, _) = Terminal::run(&sandbox, &["call", "files.wipe", "count=3", "--no-ask"], &[]).end();
    assert_eq!((code, ran(&sandbox)), (8, vec![]));
}

#[test]
fn a_token_carries_the_call_on_once_and_ends_as_the_call_would_have() {
    let sandbox = files();
    let daemon = sandbox.serve();
    let token = stopped(&sandbox, &["files.wipe", "count=三"]);
    let answered = daemon.plugd(&["--output", "data", "answer", &token, "--yes"]).expect(0);
    assert_eq!((answered.stdout.as_str(), ran(&sandbox)), ("{\"done\": \"wipe\"}\n", wiped()));
    daemon.plugd(&["answer", &token, "--yes"]).expect(4);
    daemon.plugd(&["answer", "no-such-token", "--yes"]).expect(4);

    let token = stopped(&sandbox, &["files.wipe", "count=3"]);
    let declined = daemon.plugd(&["--output", "json", "answer", &token, "--no"]).expect(7).json();
    assert_eq!(declined["error"]["name"], "declined", "{declined:#}");
    daemon.plugd(&["answer", &token, "--yes"]).expect(4);
    assert_eq!(ran(&sandbox), [] as [Value; 0]);
    daemon.stop();
}

#[test]
fn a_token_outlives_the_daemon_and_needs_none() {
    let sandbox = files();
    let daemon = sandbox.serve();
    let (first, second) =
        (stopped(&sandbox, &["files.wipe", "count=3"]), stopped(&sandbox, &["files.wipe", "count=3"]));
    daemon.stop();
    sandbox.plugd(&["answer", &first, "--yes"]).expect(0);
    assert_eq!(ran(&sandbox), wiped(), "without a daemon, from the same state folder");
    let daemon = sandbox.serve();
    daemon.plugd(&["answer", &first, "--yes"]).expect(4);
    daemon.plugd(&["answer", &second, "--yes"]).expect(0);
    assert_eq!(ran(&sandbox), wiped());
    daemon.stop();
    // And one that was given without a daemon is taken by one.
    let token = stopped(&sandbox, &["files.wipe", "count=3"]);
    let daemon = sandbox.serve();
    daemon.plugd(&["answer", &token, "--yes"]).expect(0);
    assert_eq!(ran(&sandbox), wiped());
    daemon.stop();
}

/// The command that a stopped call prints, as somebody would paste it.
fn printed_command(stderr: &str, ending: &str) -> Vec<String> {
    let line =
        stderr.lines().map(str::trim).find(|line| line.starts_with("plugd ") && line.ends_with(ending));
    let line = line.unwrap_or_else(|| panic!("a command that ends in {ending}: {stderr}"));
    line.split(' ').skip(1).map(str::to_owned).collect()
}

#[test]
fn the_command_that_is_printed_does_what_it_says() {
    let sandbox = files();
    let daemon: Daemon<'_> = sandbox.serve();
    let told = daemon.plugd(&["call", "files.wipe", "count=3"]).expect(8);
    let command = printed_command(&told.stderr, "--yes");
    // The sandbox puts --config in front, as it did for the call; once is enough.
    let config = command.iter().position(|word| word == "--config").expect("the same plugins");
    let command: Vec<&str> = command
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != config && *at != config + 1)
        .map(|(_, word)| word.as_str())
        .collect();
    daemon.plugd(&command).expect(0);
    assert_eq!(ran(&sandbox), wiped());
    daemon.stop();
}

#[test]
fn a_single_executable_is_called_again_rather_than_carried_on() {
    let sandbox = files();
    let call = ["call", "./plugins/files/main.py", "wipe", "count=3"];
    let told = sandbox.plugd(&call).expect(8);
    assert!(told.stderr.contains("--yes") && !told.stderr.contains("plugd answer"), "{told:?}");
    let told = sandbox.plugd(&[&["--output", "json"], &call[..]].concat()).expect(8).json();
    let pending = told["pending"].as_object().unwrap_or_else(|| panic!("it waits: {told:#}"));
    assert!(!pending.contains_key("token") && !pending.contains_key("expires"), "{told:#}");
    sandbox.plugd(&[&call[..], &["--yes"]].concat()).expect(0);
    let explained = sandbox.json(&[&call[..], &["--explain"]].concat());
    assert_eq!(explained["source"]["kind"], "embedded", "{explained:#}");
    assert_eq!(ran(&sandbox).len(), 1);
}
