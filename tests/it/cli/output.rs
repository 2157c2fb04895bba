//! What goes to stdout: one document, the bare data, or text that is safe on a terminal.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;

use plugd_tests::{Ran, Sandbox, eventually};
use serde_json::{Value, json};

fn echo() -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    sandbox
}

/// Exactly one document on one line, and nothing else.
#[track_caller]
fn expect_document(ran: &Ran) -> Value {
    assert!(ran.stdout.ends_with('\n') && ran.stdout.lines().count() == 1, "one line: {ran:?}");
    ran.json()
}

#[test]
fn under_output_json_every_command_writes_one_document() {
    let sandbox = echo();
    let json = |words: &[&str]| sandbox.plugd(&[&["--output", "json"], words].concat());
    for words in
        [&["status"][..], &["reload"], &["cancel", "x"], &["logs", "-f"], &["events", "-f"], &["shutdown"]]
    {
        let refused = expect_document(&json(words));
        assert_eq!(refused["error"]["name"], "daemon_unreachable", "{words:?}: {refused:#}");
    }
    let daemon = sandbox.serve();
    let commands: &[&[&str]] = &[
        &["status"],
        &["status", "fp"],
        &["list"],
        &["list", "--state", "failed"],
        &["describe", "fp"],
        &["describe", "fp.echo"],
        &["call", "fp.echo", "n:=1"],
        &["start", "fp"],
        &["restart", "fp"],
        &["logs"],
        &["logs", "fp", "--tail", "3"],
        &["events"],
        &["graph"],
        &["reload"],
        &["reload", "fp"],
        &["config", "check"],
        &["config", "show"],
        &["config", "schema"],
        &["stop", "fp"],
    ];
    for words in commands {
        let ran = json(words).expect(0);
        let document = expect_document(&ran);
        assert!(document.is_object() || document.is_array(), "{words:?}: {document}");
        assert_eq!(ran.stderr, "", "{words:?}");
    }
    let failures: &[&[&str]] = &[
        &["status", "nobody"],
        &["describe", "nobody"],
        &["call", "nobody.echo"],
        &["call", "fp.nothing"],
        &["call", "fp.echo", "a=1", "a=2"],
        &["start", "nobody"],
        &["stop", "nobody"],
        &["restart", "nobody"],
        &["reload", "nobody"],
        &["cancel", "none"],
        &["nonsense"],
        &["call"],
        &["list", "--state", "odd"],
        &["call", "fp.echo", "--timeout", "soon"],
        &["serve"],
        &["logs", "a b"],
    ];
    for words in failures {
        let ran = json(words);
        let document = expect_document(&ran);
        assert!(ran.code != 0 && ran.stderr.is_empty(), "{words:?}: {ran:?}");
        assert!(
            document["error"]["message"].is_string() && document["error"]["code"].is_u64(),
            "{words:?}: {document}"
        );
    }
    json(&["start", "fp"]).expect(0);
    let report = expect_document(&json(&["shutdown"]).expect(0));
    assert_eq!(report["plugins"][0]["name"], "fp", "{report:#}");
    daemon.stop();
}

#[test]
fn under_output_data_there_is_the_data_alone() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let ran = daemon.plugd(&["call", "--output", "data", "fp.echo", "a:=[1,2.50]", "b=三"]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("{\"a\": [1, 2.5], \"b\": \"三\"}\n", ""));
    let failed = daemon.plugd(&["--output", "data", "call", "fp.nothing"]).expect(4);
    assert_eq!(failed.stdout, "", "no data, so nothing");
    assert!(failed.stderr.contains("fp.nothing"), "{failed:?}");
    daemon.stop();
}

/// A command that goes on, ended with its test.
struct Following(Child);

impl Drop for Following {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Starts a command that follows; its lines come through the channel.
fn follow(sandbox: &Sandbox, words: &[&str]) -> (Following, mpsc::Receiver<String>) {
    let mut child = sandbox
        .command(&[&["--output", "json"], words].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("plugd runs");
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let (lines, received) = mpsc::channel();
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| lines.send(line).is_ok()));
    (Following(child), received)
}

#[test]
fn followed_events_and_logs_are_one_document_a_line() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "def handle(operation, arguments, params):\n    print(\"so it goes\", file=sys.stderr, flush=True)\n    return {\"data\": 1}\n");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    for words in [["events", "-f"], ["logs", "-f"]] {
        let (following, lines) = follow(&sandbox, &words);
        let mut received = Vec::new();
        // It begins to follow at a time of its own: something happens until it is seen.
        eventually("two lines are followed", || {
            daemon.plugd(&["call", "fp.echo"]).expect(0);
            received.extend(lines.try_iter());
            received.len() >= 2
        });
        for line in received {
            let item: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{words:?}: {error}: {line}"));
            let member = if words[0] == "events" { "kind" } else { "text" };
            assert!(item["at"].is_u64() && item[member].is_string(), "{words:?}: {line}");
        }
        drop(following);
    }
    daemon.stop();
}

#[test]
fn a_follower_ends_when_the_daemon_does() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    let (mut following, lines) = follow(&sandbox, &["events", "-f"]);
    let mut seen = false;
    eventually("it follows", || {
        daemon.plugd(&["call", "fp.echo"]).expect(0);
        seen |= lines.try_iter().count() > 0;
        seen
    });
    daemon.stop();
    eventually("it has ended", || matches!(following.0.try_wait(), Ok(Some(_))));
    assert!(following.0.wait().expect("ended").success());
}

/// A plugin whose every text would take over a terminal.
const HOSTILE: &str = r#"
EVIL = "\x1b]0;owned\x07\x1b[2J\u009b31m\u202eabc\rfake\x00"
MANIFEST = {"version": "1.0.0", "description": EVIL}
OPERATIONS = [{"name": name, "title": EVIL, "description": EVIL, "when_to_use": EVIL, "when_not_to_use": EVIL,
               "examples": [EVIL], "category": EVIL,
               "input_schema": {"type": "object", "properties": {"a" + EVIL: {"type": "string", "description": EVIL, "default": EVIL}}}}
              for name in ("echo", "fail")] + [{"name": "wipe", "effects": {"destructive": True}, "input_schema": {}},
    {"name": "lack", "input_schema": {"type": "object", "properties": {"b": {"type": "string", "description": EVIL}}, "required": ["b"]}}]


def handle(operation, arguments, params):
    print(EVIL, file=sys.stderr, flush=True)
    send({"jsonrpc": "2.0", "method": "log", "params": {"level": "info", "message": EVIL}})
    if operation == "fail":
        raise Failure(EVIL, hint=EVIL, name="evil")
    return {"data": {EVIL: EVIL}, "summary": EVIL}
"#;

#[test]
fn what_a_plugin_writes_never_reaches_a_terminal_as_it_is() {
    let sandbox = Sandbox::new("");
    let hostile = sandbox.python("hostile", HOSTILE);
    let broken = sandbox.python("broken", "def on_init(params):\n    print('\\x1b[31mlast words', file=sys.stderr, flush=True)\n    raise Failure('\\x1b[2Jgone')\n");
    sandbox.configure(&format!("{hostile}\n{broken}"));
    let daemon = sandbox.serve();
    let commands: &[&[&str]] = &[
        &["call", "hostile.echo"],
        &["call", "hostile.fail"],
        &["call", "hostile.wipe", "x=\u{1b}[2J"],
        &["call", "hostile.lack"],
        &["call", "hostile.echo", "--explain"],
        &["call", "broken.echo"],
        &["calls"],
        &["calls", "--stats"],
        &["list"],
        &["describe", "hostile"],
        &["describe", "hostile.echo"],
        &["status"],
        &["status", "broken"],
        &["logs"],
        &["events"],
        &["graph"],
        &["graph", "--format", "dot"],
        &["graph", "--format", "mermaid"],
        &["call", "hostile.\u{1b}[2J"],
        &["call", "hostile.echo", "\u{1b}[31mx=1"],
        &["start", "broken"],
    ];
    let check = |words: &[&str]| {
        let ran = daemon.plugd(words);
        for text in [&ran.stdout, &ran.stderr] {
            let active = text.chars().find(|character| {
                character.is_control() && *character != '\n'
                    || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            });
            assert_eq!(active, None, "{words:?}: {text:?}");
        }
        assert!(!ran.stdout.is_empty() || !ran.stderr.is_empty(), "{words:?}");
    };
    commands.iter().for_each(|words| check(words));
    let recorded = daemon.json(&["calls"]);
    for call in recorded["calls"].as_array().expect("a list") {
        check(&["calls", "show", call["call_id"].as_str().expect("an id")]);
    }
    daemon.stop();
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let sandbox = echo();
    let daemon = sandbox.serve();
    for words in [
        &["list"][..],
        &["call", "fp.echo"],
        &["--output", "json", "status"],
        &["events"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = sandbox
            .command(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("plugd runs");
        drop(child.stdout.take());
        let ran: Ran = child.wait_with_output().expect("plugd ends").into();
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
    }
    daemon.stop();
}

#[test]
fn the_graph_is_drawn_in_three_ways_and_told_in_one_document() {
    let sandbox = Sandbox::new("");
    let base = sandbox.python("base", "");
    let upper = sandbox.python("upper", "MANIFEST = {\"requires\": {\"base\": \">=1.0\"}}");
    sandbox.configure(&format!("{upper}\n{base}"));
    let daemon = sandbox.serve();
    let text = daemon.plugd(&["graph"]).expect(0).stdout;
    let line = |name: &str| {
        text.lines()
            .position(|line| line.contains(&format!(" {name} ")))
            .unwrap_or_else(|| panic!("{name} in {text}"))
    };
    assert!(line("base") < line("upper") && text.contains("base >=1.0"), "{text}");
    let mermaid = daemon.plugd(&["graph", "--format", "mermaid"]).expect(0).stdout;
    assert!(mermaid.starts_with("graph TD\n") && mermaid.contains("upper -->"), "{mermaid}");
    let dot = daemon.plugd(&["graph", "--format", "dot"]).expect(0).stdout;
    assert!(dot.starts_with("digraph") && dot.contains("\"upper\" -> \"base\""), "{dot}");
    let document = daemon.json(&["graph"]);
    let data = daemon.plugd(&["--output", "data", "graph", "--format", "dot"]).expect(0);
    assert_eq!(data.json(), document, "a program gets JSON");
    assert_eq!(
        (&document["edges"][0]["from"], &document["edges"][0]["to"]),
        (&json!("upper"), &json!("base"))
    );
    daemon.stop();
}
