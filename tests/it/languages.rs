//! Plugins in languages nobody here wrote an SDK for, and the Rust example: one suite for all.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

/// What the suite says to a plugin, and what it is to hear.
struct Speaker<'a> {
    plugin: &'a str,
    version: &'a str,
    operation: &'a str,
    /// Words of a call that goes well, and members of its data.
    good: &'a [&'a str],
    data: &'a [(&'a str, Value)],
    /// An operation and words of a call that the plugin itself refuses, and what it says then.
    failing: &'a [&'a str],
    failure: [&'a str; 3],
    /// A word whose key is nearly a declared one.
    misspelt: &'a str,
    nearest: &'a str,
}

/// Whether a program is there; where it is not, says so past the test's captured output.
pub(crate) fn there_is(program: &str, args: &[&str]) -> bool {
    let mut run = Command::new(program);
    run.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let found = run.status().is_ok_and(|status| status.success());
    let skipped =
        format!("SKIPPED: {program} {} does not work here, so its plugins are untested", args.join(" "));
    if !found {
        let all = std::env::var("PLUGD_TEST_REQUIRE_ALL").is_ok_and(|value| value == "1");
        assert!(!all, "{skipped}, and PLUGD_TEST_REQUIRE_ALL=1 allows no skip");
        writeln!(std::io::stderr(), "\n{skipped}\n").expect("stderr is open");
    }
    found
}

fn there_is_jq() -> bool {
    there_is("jq", &["-n", "1"])
}

fn there_is_perl() -> bool {
    there_is("perl", &["-MJSON::PP", "-e", "1"])
}

/// The suite: described, called, failed, refused, stopped.
fn check(daemon: &Daemon<'_>, speaker: &Speaker<'_>) {
    let name = format!("{}.{}", speaker.plugin, speaker.operation);
    check_description(daemon, speaker, &name);
    check_call(daemon, speaker, &name);
    let before = daemon.status(speaker.plugin);

    let failing = format!("{}.{}", speaker.plugin, speaker.failing[0]);
    let failed = daemon.plugd(&[&["--output", "json", "call", &failing], &speaker.failing[1..]].concat());
    let failed = failed.expect(1).json();
    let error = &failed["error"];
    assert_eq!(failed["status"], "error", "{failed:#}");
    assert_eq!((&error["code"], &error["outcome"]), (&json!(4001), &json!("completed")), "{failed:#}");
    let [own_name, message, hint] = speaker.failure;
    assert_eq!([&error["name"], &error["message"], &error["hint"]], [own_name, message, hint], "{failed:#}");

    // In place of the declared key, not beside it: a key that is given is not meant a second time.
    let declared = format!("{}=", speaker.nearest);
    let mut words = vec!["--output", "json", "call", &name, speaker.misspelt];
    words.extend(speaker.good.iter().filter(|word| !word.starts_with(&declared)));
    let refused = daemon.plugd(&words).expect(3).json();
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!(2001), &json!("not_run")), "{refused:#}");
    let path = format!("/{}", speaker.misspelt.split('=').next().expect("a key"));
    let problems = error["details"].as_array().expect("a list of problems");
    let problem = problems.iter().find(|problem| problem["path"] == path).expect("the stranger is named");
    assert_eq!(problem["suggestion"], speaker.nearest, "{refused:#}");

    // Neither its own failure nor a refusal harms the process.
    check_call(daemon, speaker, &name);
    let after = daemon.status(speaker.plugin);
    for member in ["state", "pid", "restarts", "stray_lines", "unmatched_answers"] {
        assert_eq!(after[member], before[member], "{member}: {after:#}");
    }
    check_stop(daemon, speaker.plugin);
}

fn check_description(daemon: &Daemon<'_>, speaker: &Speaker<'_>, name: &str) {
    let described = daemon.json(&["describe", speaker.plugin]);
    assert_eq!(described["plugin"]["name"], speaker.plugin, "{described:#}");
    assert_eq!(described["plugin"]["version"], speaker.version, "{described:#}");
    assert_eq!(described["quarantined"].as_array().map(Vec::len), Some(0), "{described:#}");
    let listed = described["plugin"]["operations"].as_array().expect("a list of operations");
    assert!(listed.iter().any(|operation| operation["id"] == *name), "{described:#}");
    let one = daemon.json(&["describe", name]);
    let operations = one["operations"].as_array().expect("a list of operations");
    assert_eq!(operations.len(), 1, "{one:#}");
    assert_eq!(operations[0]["name"], speaker.operation, "{one:#}");
    assert!(operations[0]["input_schema"]["properties"][speaker.nearest].is_object(), "{one:#}");
}

fn check_call(daemon: &Daemon<'_>, speaker: &Speaker<'_>, name: &str) {
    let called = daemon.plugd(&[&["--output", "json", "call", name], speaker.good].concat()).expect(0).json();
    assert_eq!(called["status"], "ok", "{called:#}");
    for (pointer, expected) in speaker.data {
        assert_eq!(called["data"].pointer(pointer), Some(expected), "{called:#}");
    }
    assert!(called["summary"].is_string(), "{called:#}");
    assert_eq!(called["meta"]["plugin_version"], speaker.version, "{called:#}");
}

/// It leaves by itself when asked to, and comes back when called for.
fn check_stop(daemon: &Daemon<'_>, plugin: &str) {
    let stopped = daemon.json(&["stop", plugin]);
    assert_eq!(stopped["plugins"][0]["ended"], "exited", "{stopped:#}");
    let status = daemon.status(plugin);
    assert_eq!((&status["state"], &status["stray_lines"]), (&json!("stopped"), &json!(0)), "{status:#}");
}

/// The suite for the plugins that give back what they get.
fn check_echo(fixture: &str, command: &str) {
    let sandbox = Sandbox::new(&format!("[plugins.echo]\ncommand = {command}\n"));
    sandbox.fixture(fixture, fixture);
    let daemon = sandbox.serve();
    let text = r#"三 é 🙂 "quoted" \ back $(ls) %s"#;
    check(
        &daemon,
        &Speaker {
            plugin: "echo",
            version: "2.1.0",
            operation: "echo",
            good: &[&format!("text={text}"), "count=3"],
            data: &[("/text", json!(text)), ("/count", json!(3))],
            failing: &["fail"],
            failure: ["asked_to_fail", "asked to fail", "ask for something else"],
            misspelt: "cuont=1",
            nearest: "count",
        },
    );
    daemon.stop();
}

#[test]
fn r2_the_suite_passes_against_sh_and_jq() {
    if there_is_jq() {
        check_echo("echo_jq.sh", r#"["./echo_jq.sh"]"#);
    }
}

#[test]
fn r2_the_suite_passes_against_perl() {
    if there_is_perl() {
        check_echo("echo.pl", r#"["perl", "echo.pl"]"#);
    }
}

#[test]
fn r2_the_suite_passes_against_node() {
    if there_is("node", &["--version"]) {
        check_echo("echo.js", r#"["node", "echo.js"]"#);
    }
}

#[test]
fn r2_the_suite_passes_against_python() {
    check_echo("echo.py", r#"["python3", "echo.py"]"#);
}

#[test]
fn r2_the_suite_passes_against_the_rust_example() {
    let test = std::env::current_exe().expect("the test has a path");
    let program = test.parent().and_then(Path::parent).expect("target/<profile>/deps/test").join("tickets");
    assert!(
        program.exists(),
        "{} is missing: run the tests by `make test`, which builds it",
        program.display()
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../example-plugins/tickets");
    let sandbox = Sandbox::new(&format!("[plugins.tickets]\ncommand = [{:?}]\ncwd = {folder:?}\n", program));
    let daemon = sandbox.serve();
    check(
        &daemon,
        &Speaker {
            plugin: "tickets",
            version: env!("CARGO_PKG_VERSION"),
            operation: "query_status",
            good: &["ticket_id=TK-20241215-001"],
            data: &[("/ticket_id", json!("TK-20241215-001")), ("/current_step", json!("部门经理审批"))],
            failing: &["query_status", "ticket_id=TK-20241215-999"],
            failure: [
                "ticket_not_found",
                "there is no ticket TK-20241215-999",
                "tickets.list_open names the tickets that are under way",
            ],
            misspelt: "tiket_id=TK-20241215-001",
            nearest: "ticket_id",
        },
    );
    daemon.stop();
}

/// A program printed in the protocol's page, by the name the page gives it.
pub(crate) fn from_the_protocol_page(name: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let (_, rest) = page.split_once(&format!("<!-- run: {name} -->\n```")).expect("the page has the program");
    let (_, rest) = rest.split_once('\n').expect("a language, then the text");
    let (program, _) = rest.split_once("\n```").expect("the block ends");
    format!("{program}\n")
}

#[test]
fn the_sh_plugin_of_the_protocol_page_works_first_time() {
    if !there_is_jq() {
        return;
    }
    let sandbox = Sandbox::new("[plugins.greet]\ncommand = [\"./greet.sh\"]\n");
    sandbox.program("greet.sh", &from_the_protocol_page("greet.sh"));
    let alone = sandbox.json(&["call", "./greet.sh", "hello", "name=World"]);
    assert_eq!(alone["data"], json!({"greeting": "Hello, World!"}), "without a configuration: {alone:#}");

    let daemon = sandbox.serve();
    let called = daemon.json(&["call", "greet.hello", "name=World"]);
    assert_eq!(called["data"], json!({"greeting": "Hello, World!"}), "{called:#}");
    assert_eq!(called["summary"], "greeted World", "{called:#}");
    let name = r#"三 "é" \ $(ls) `ls` %s 🙂"#;
    let called = daemon.json(&["call", "greet.hello", &format!("name={name}")]);
    assert_eq!(called["data"]["greeting"], format!("Hello, {name}!"), "{called:#}");
    let described = daemon.json(&["describe", "greet.hello"]);
    assert_eq!(described["operations"][0]["effects"]["read_only"], true, "{described:#}");

    let refused = daemon.plugd(&["--output", "json", "call", "greet.hello", "nmae=World"]).expect(3).json();
    let problems = refused["error"]["details"].as_array().expect("problems").clone();
    let suggested = problems.iter().any(|problem| problem["suggestion"] == "name");
    assert!(suggested, "the slip and its remedy: {refused:#}");
    assert_eq!(daemon.plugd(&["call", "greet.hello"]).code, 8, "a name is required, and asked for");
    check_stop(&daemon, "greet");
    daemon.stop();
}

#[test]
fn the_perl_plugin_of_the_protocol_page_works_first_time() {
    if !there_is_perl() {
        return;
    }
    let sandbox = Sandbox::new("[plugins.dice]\ncommand = [\"perl\", \"dice.pl\"]\n");
    sandbox.program("dice.pl", &from_the_protocol_page("dice.pl"));
    let daemon = sandbox.serve();
    check(
        &daemon,
        &Speaker {
            plugin: "dice",
            version: "1.0.0",
            operation: "roll",
            good: &["sides=6", "count=3"],
            data: &[],
            failing: &["roll", "sides=13"],
            failure: ["loaded_dice", "these dice are loaded", "use other dice"],
            misspelt: "cuont=1",
            nearest: "count",
        },
    );
    daemon.json(&["start", "dice"]);
    let rolled = daemon.json(&["call", "dice.roll", "sides=6", "count=20"]);
    let rolls: Vec<u64> =
        rolled["data"]["rolls"].as_array().expect("rolls").iter().filter_map(Value::as_u64).collect();
    assert!(rolls.len() == 20 && rolls.iter().all(|roll| (1..=6).contains(roll)), "{rolled:#}");
    assert_eq!(rolled["data"]["sum"], rolls.iter().sum::<u64>(), "{rolled:#}");
    let call_id = rolled["meta"]["call_id"].as_str().expect("a call id");
    let log = daemon.json(&["logs", "dice", "--call", call_id]);
    assert_eq!((&log[0]["stream"], &log[0]["text"]), (&json!("log"), &json!("rolling 20")), "{log:#}");
    assert_eq!(daemon.plugd(&["call", "dice.roll", "sides=101"]).code, 3, "no die has so many sides");
    daemon.stop();
}
