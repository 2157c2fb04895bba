//! `docs/protocol.md` tells the truth: its conversation is the frozen one, its plugins run.
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use plugd_protocol::message::{self, Message};
use plugd_protocol::{Manifest, negotiation};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository")
}

fn specification() -> String {
    std::fs::read_to_string(repository().join("docs/protocol.md")).expect("there is docs/protocol.md")
}

/// A frozen message, its newline included.
fn frozen(name: &str) -> String {
    std::fs::read_to_string(repository().join("protocol/wire/v1").join(name))
        .expect("there is such a message")
}

/// The code block that follows `<!-- run: NAME -->`.
fn program(name: &str) -> String {
    let text = specification();
    let (_, rest) = text.split_once(&format!("<!-- run: {name} -->\n")).expect("the program is marked");
    let (_, body) = rest.split_once('\n').expect("a code block begins");
    let (body, _) = body.split_once("\n```").expect("the code block ends");
    body.to_owned() + "\n"
}

/// Whether a program can be run here; `PLUGD_TEST_REQUIRE_ALL=1` allows no for an answer never.
fn there_is(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program} >/dev/null")]).status();
    let found = found.is_ok_and(|status| status.success());
    let required = std::env::var("PLUGD_TEST_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(found || !required, "{program} is not installed, and PLUGD_TEST_REQUIRE_ALL=1 allows no skip");
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

/// Runs a program of the specification over some lines; it must end well by itself.
#[track_caller]
fn run(interpreter: &str, name: &str, lines: &str) -> Vec<String> {
    let mut child = Command::new(interpreter)
        .args([if interpreter == "perl" { "-e" } else { "-c" }, &program(name)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(lines.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

#[track_caller]
fn result_of<'a>(lines: &'a [String], id: &str) -> &'a str {
    let answers = lines.iter().filter(|line| {
        matches!(Message::parse(line.as_bytes()).expect("a message"), Message::Response { id: Some(given), .. } if given.get() == id)
    });
    let answers: Vec<&String> = answers.collect();
    let [answer] = answers.as_slice() else { panic!("{} answers to {id}: {lines:?}", answers.len()) };
    answer
}

fn call(id: u64, operation: &str, arguments: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"call\",\"params\":{{\"operation\":\"{operation}\",\"arguments\":{arguments},\
         \"context\":{{\"call_id\":\"c-{id}\",\"deadline_ms\":30000,\"attempt\":1}}}}}}\n"
    )
}

#[test]
fn the_conversation_of_the_specification_is_the_frozen_one() {
    let text = specification();
    let shown: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("→ ").or(line.strip_prefix("← "))).collect();
    let conversation = [
        "describe.request.json",
        "describe.result.json",
        "init.request.json",
        "init.result.json",
        "call.request.json",
        "progress.json",
        "call.result.json",
        "shutdown.request.json",
        "shutdown.result.json",
        "ping.request.json",
        "ping.result.json",
        "reload.request.json",
        "reload.result.json",
        "host_call.request.json",
        "host_call.result.json",
        "host_ask.request.json",
        "host_ask.result.json",
    ];
    let frozen: Vec<String> = conversation.iter().map(|name| frozen(name).trim_end().to_owned()).collect();
    assert_eq!(shown, frozen);
}

#[test]
fn the_examples_of_the_specification_are_messages() {
    let text = specification();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("{\"jsonrpc\"")).collect();
    assert!(!lines.is_empty());
    for line in lines {
        Message::parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn the_specification_names_what_the_host_offers() {
    let text = specification();
    for feature in negotiation::HOST_FEATURES {
        assert!(
            text.contains(&format!("`{feature}`")),
            "docs/protocol.md does not name the feature {feature:?}"
        );
    }
    for version in negotiation::PROTOCOL_VERSIONS {
        assert!(
            text.contains(&format!("version {version}")),
            "docs/protocol.md does not name version {version}"
        );
    }
}

/// What every plugin must get right, whatever it offers.
#[track_caller]
fn speaks_the_protocol(lines: &[String]) -> Manifest {
    let described = result_of(lines, "1");
    let manifest = Manifest::parse(message::whole_result(described.as_bytes()).expect("a result").get());
    let manifest = manifest.expect("a manifest");
    assert!(manifest.quarantined.is_empty(), "{:?}", manifest.quarantined);
    assert!(message::whole_result(result_of(lines, "2").as_bytes()).is_ok(), "init");
    assert!(message::whole_result(result_of(lines, "4").as_bytes()).is_ok(), "shutdown");
    assert!(result_of(lines, "7").contains("-32601"), "an operation it does not have");
    assert!(result_of(lines, "8").contains("-32601"), "a method it does not know");
    manifest
}

fn conversation(calls: &str) -> String {
    let ask = [frozen("describe.request.json"), frozen("init.request.json"), frozen("cancel.json")].concat();
    let unknown = "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\",\"params\":{}}\n";
    ask + calls + &call(7, "no_such", "{}") + unknown + &frozen("shutdown.request.json")
}

#[test]
fn the_shell_plugin_of_the_specification_works() {
    if !there_is("jq") {
        return;
    }
    let calls = call(0, "hello", r#"{"name":"北京 \"x\" \\n"}"#);
    let lines = run("sh", "greet.sh", &conversation(&calls));
    assert_eq!(speaks_the_protocol(&lines).operations[0].name.as_str(), "hello");
    let expected = r#"{"jsonrpc":"2.0","id":0,"result":{"data":{"greeting":"Hello, 北京 \"x\" \\n!"},"summary":"greeted 北京 \"x\" \\n"}}"#;
    assert_eq!(result_of(&lines, "0"), expected);
    assert_eq!(run("sh", "greet.sh", &frozen("describe.request.json")).len(), 1, "it leaves when stdin ends");
}

#[test]
fn the_perl_plugin_of_the_specification_works() {
    if !there_is("perl") {
        return;
    }
    let calls = call(0, "roll", r#"{"sides":6,"count":2}"#) + &call(5, "roll", r#"{"sides":13}"#);
    let lines = run("perl", "dice.pl", &conversation(&calls));
    assert_eq!(speaks_the_protocol(&lines).operations[0].name.as_str(), "roll");
    let rolled: serde_json::Value = serde_json::from_str(result_of(&lines, "0")).expect("JSON");
    assert_eq!(rolled["result"]["data"]["rolls"].as_array().map(Vec::len), Some(2), "{rolled}");
    let refused: serde_json::Value = serde_json::from_str(result_of(&lines, "5")).expect("JSON");
    assert_eq!(refused["error"]["data"]["name"], "loaded_dice", "{refused}");
    assert!(lines.iter().any(|line| line.contains("\"method\":\"log\"")), "{lines:?}");
    assert_eq!(
        run("perl", "dice.pl", &frozen("describe.request.json")).len(),
        1,
        "it leaves when stdin ends"
    );
}
