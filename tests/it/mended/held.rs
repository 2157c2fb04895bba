//! While another process holds the record, a call ends within its own time, and what it promises is true.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plugd_tests::{Daemon, Ran, Sandbox};
use serde_json::{Value, json};

/// Holds the record until its stdin ends.
const HOLDS: &str = "import sqlite3, sys\n\
    held = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
    held.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\nsys.stdin.read()\n";

/// A plugin that holds the record itself where it is told to: between being called and its answer.
const PLUGIN: &str = r#"
import sqlite3
TEXT = {"type": "object", "properties": {"text": {"type": "string"}, "hold": {"type": "boolean"}}}
HELD = []
OPERATIONS = [
    {"name": "echo", "input_schema": TEXT, "effects": {"read_only": False, "idempotent": False}},
    {"name": "needs", "input_schema": {**TEXT, "required": ["text"]}},
    {"name": "large", "input_schema": TEXT, "result_limit": 4096},
    {"name": "job", "input_schema": TEXT, "long_running": True}]

def handle(operation, arguments, params):
    mark("ran", operation)
    if arguments.get("hold"):
        HELD.append(sqlite3.connect("../../state/plugd.db", isolation_level=None, check_same_thread=False))
        HELD[-1].execute("BEGIN IMMEDIATE")
    return {"data": "x" * 20000 if operation == "large" else arguments}
"#;

/// More than a call of half a second may take, and much less than SQLite waits.
const SOON: Duration = Duration::from_secs(3);

struct Holder(Child);

impl Holder {
    fn of(sandbox: &Sandbox) -> Holder {
        let mut command = Command::new("python3");
        command.args(["-c", HOLDS]).arg(sandbox.path().join("state/plugd.db"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3 runs");
        let mut said = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut said).expect("it is read");
        assert_eq!(said, "held\n");
        Holder(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _gone = self.0.wait();
    }
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("fp", PLUGIN));
    sandbox
}

/// A daemon whose plugin is up and whose record is there.
fn serving(sandbox: &Sandbox) -> Daemon<'_> {
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.echo"])["status"], "ok");
    daemon
}

/// Calls with half a second's time, and checks that it was kept to.
#[track_caller]
fn in_time(daemon: &Daemon<'_>, args: &[&str]) -> Ran {
    let began = Instant::now();
    let ran = daemon.plugd(&[&["--output", "json", "call"], args, &["--timeout", "500ms"]].concat());
    assert!(began.elapsed() < SOON, "{:?}: {ran:?}", began.elapsed());
    ran
}

fn runs(sandbox: &Sandbox, operation: &str) -> usize {
    sandbox.read("plugins/fp/ran").lines().filter(|line| *line == operation).count()
}

#[test]
fn a_call_that_waits_for_a_person_stops_in_time_and_its_token_is_good_once() {
    let sandbox = sandbox();
    let daemon = serving(&sandbox);
    let held = Holder::of(&sandbox);
    let stopped = in_time(&daemon, &["fp.needs"]).expect(8).json();
    let token = stopped["pending"]["token"].as_str().expect("a token").to_owned();
    let warnings = stopped["meta"]["warnings"].to_string();
    assert!(warnings.contains("good only while plugd runs"), "{stopped:#}");
    // That somebody agreed to a call is noted before it runs, but not for all of its time.
    let another = in_time(&daemon, &["fp.needs"]).expect(8).json();
    let another = another["pending"]["token"].as_str().expect("a token");
    let began = Instant::now();
    daemon.plugd(&["answer", another, "text=now"]).expect(0);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    drop(held);
    let answered = daemon.plugd(&["--output", "json", "answer", &token, "text=yes"]).expect(0).json();
    assert_eq!(answered["data"], json!({"text": "yes"}));
    // What was on its way into the record when nobody waited any more is not there after a restart.
    daemon.stop();
    let daemon = sandbox.serve();
    daemon.plugd(&["answer", &token, "text=again"]).expect(4);
    assert_eq!(runs(&sandbox, "needs"), 2);
    daemon.stop();
}

#[test]
fn a_key_that_cannot_be_taken_in_time_lets_nothing_run_and_is_free_afterwards() {
    let sandbox = sandbox();
    let daemon = serving(&sandbox);
    let held = Holder::of(&sandbox);
    let error = in_time(&daemon, &["fp.echo", "text=a", "--key", "k"]).expect(5).json()["error"].clone();
    assert_eq!((&error["code"], &error["outcome"]), (&json!(5001), &json!("not_run")), "{error:#}");
    drop(held);
    assert_eq!(runs(&sandbox, "echo"), 1, "only the first, without a key");
    let result = daemon.json(&["call", "fp.echo", "text=a", "--key", "k"]);
    assert_eq!((&result["status"], &result["meta"]["replayed"]), (&json!("ok"), &Value::Null), "{result:#}");
    daemon.stop();
}

#[test]
fn an_answer_that_is_there_does_not_wait_to_be_written_down() {
    let sandbox = sandbox();
    let daemon = serving(&sandbox);
    // The record is held from when it runs.
    let first = in_time(&daemon, &["fp.echo", "hold:=true", "--key", "k"]).expect(0).json();
    assert_eq!(first["data"], json!({"hold": true}));
    // A repeat has it from whoever knows, the disk or not.
    let again = in_time(&daemon, &["fp.echo", "hold:=true", "--key", "k"]).expect(0).json();
    assert_eq!(again["data"], json!({"hold": true}), "{again:#}");
    assert_eq!(again["meta"]["answer_of"], first["meta"]["call_id"], "{again:#}");
    assert_eq!(runs(&sandbox, "echo"), 2);
    // Its plugin, and with it the lock, is gone.
    daemon.plugd(&["restart", "fp"]).expect(0);
    let again = daemon.json(&["call", "fp.echo", "hold:=true", "--key", "k"]);
    assert_eq!(again["meta"]["answer_of"], first["meta"]["call_id"], "{again:#}");
    daemon.stop();
}

#[test]
fn what_is_large_is_given_whole_rather_than_late() {
    let sandbox = sandbox();
    let daemon = serving(&sandbox);
    let held = Holder::of(&sandbox);
    let result = in_time(&daemon, &["fp.large", "--page"]).expect(0).json();
    assert_eq!(result["data"].as_str().map(str::len), Some(20_000), "{result:#}");
    assert!(result["meta"]["warnings"].to_string().contains("given whole"), "{result:#}");
    drop(held);
    daemon.stop();
}

#[test]
fn what_an_earlier_call_gave_is_read_within_the_time_of_the_one_that_takes_it() {
    let sandbox = sandbox();
    let daemon = serving(&sandbox);
    let large = daemon.json(&["call", "fp.large", "--page"]);
    let id = large["page"]["ref"].as_str().unwrap_or_else(|| panic!("no page: {large:#}")).to_owned();
    let held = Holder::of(&sandbox);
    let error = in_time(&daemon, &["fp.echo", &format!("text=@call:{id}")]).expect(5).json()["error"].clone();
    assert_eq!((&error["code"], &error["outcome"]), (&json!(5001), &json!("not_run")), "{error:#}");
    let read = in_time(&daemon, &["plugd.read_result", &format!("ref={id}")]).expect(5).json();
    assert_eq!(read["error"]["name"], "timed_out", "{read:#}");
    drop(held);
    daemon.stop();
}

#[test]
fn a_job_begins_in_time_and_says_where_it_is_kept() {
    let sandbox = sandbox();
    let daemon = serving(&sandbox);
    let held = Holder::of(&sandbox);
    let began = Instant::now();
    let pending = daemon.json(&["call", "fp.job", "--timeout", "2s"]);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(pending["status"], "pending", "{pending:#}");
    assert!(pending["meta"]["warnings"].to_string().contains("only while plugd runs"), "{pending:#}");
    let id = pending["meta"]["call_id"].as_str().expect("an id");
    let began = Instant::now();
    daemon.plugd(&["jobs", "wait", id, "--timeout", "500ms"]);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    drop(held);
    // It had the other half of its time to itself.
    let ended = daemon.json(&["jobs", "wait", id]);
    assert_eq!(ended["status"], "ok", "{ended:#}");
    daemon.stop();
}

#[test]
fn without_a_daemon_a_record_that_cannot_be_opened_takes_no_more_than_the_calls_time() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.shell("fp"));
    assert_eq!(sandbox.json(&["call", "fp.pid"])["status"], "ok");
    let held = Holder::of(&sandbox);
    let call = |more: &[&str]| {
        sandbox.plugd(&[&["--output", "json", "call", "fp.pid", "--timeout", "2s"], more].concat())
    };
    let began = Instant::now();
    assert_eq!(call(&[]).expect(0).json()["status"], "ok");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let refused = call(&["--key", "k"]).expect(9).json()["error"].clone();
    assert_eq!((&refused["code"], &refused["outcome"]), (&json!(9005), &json!("not_run")), "{refused:#}");
    assert!(refused["message"].as_str().is_some_and(|said| said.contains("not open yet")), "{refused:#}");
    drop(held);
    assert_eq!(call(&["--key", "k"]).expect(0).json()["status"], "ok");
}
