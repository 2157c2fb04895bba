//! What keys and tokens promise, where plugd is killed or its record cannot be written: no second run,
//! and no word that is not true.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use plugd_tests::{Daemon, Sandbox, eventually, kill};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::{Value, json};

/// What may not be run twice leaves a line in `ran` each time it runs.
const DISK: &str = r#"
def declared(name, **effects):
    return {"name": name, "input_schema": {"type": "object"}, "effects": effects}

OPERATIONS = [declared("wipe", destructive=True), declared("write", read_only=False)]
MANIFEST = {"features": {"concurrency": 4}}

def handle(operation, arguments, params):
    mark("ran", operation)
    while arguments.get("waits") and not os.path.exists("go"):
        time.sleep(0.01)
    return {"data": {"text": "x" * arguments.get("length", 1)}}
"#;

/// Keeps everybody else from writing to the record until its stdin closes.
const HOLD: &str = "import sqlite3, sys\nfile = sqlite3.connect('state/plugd.db', isolation_level=None)\nfile.execute('begin immediate')\nprint('held', flush=True)\nsys.stdin.read()\n";

fn disk() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("disk", DISK));
    sandbox
}

fn runs(sandbox: &Sandbox) -> usize {
    match sandbox.path().join("plugins/disk/ran").exists() {
        true => sandbox.read("plugins/disk/ran").lines().count(),
        false => 0,
    }
}

fn kill_daemon(mut daemon: Daemon<'_>) {
    kill(daemon.pid(), Signal::KILL);
    daemon.wait();
}

/// The result of a call that stops to be agreed to, and its token.
fn stopped(sandbox: &Sandbox, args: &[&str]) -> (Value, String) {
    let stopped =
        sandbox.plugd(&[&["--output", "json", "call", "disk.wipe"], args].concat()).expect(8).json();
    let token = stopped["pending"]["token"].as_str().unwrap_or_else(|| panic!("it waits: {stopped:#}"));
    let token = token.to_owned();
    (stopped, token)
}

fn python(sandbox: &Sandbox, text: &str) -> Command {
    let mut python = Command::new("python3");
    python.arg("-c").arg(text).current_dir(sandbox.path());
    python
}

/// The form of the record, as if another plugd had written it.
fn set_version(sandbox: &Sandbox, version: &str) -> String {
    let text = format!(
        "import sqlite3\nfile = sqlite3.connect('state/plugd.db')\nprint(file.execute('pragma user_version').fetchone()[0])\nfile.execute('pragma user_version = {version}')\nfile.commit()\n"
    );
    let ran = python(sandbox, &text).output().expect("python runs");
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).expect("a number").trim().to_owned()
}

#[test]
fn a_call_that_was_agreed_to_and_then_lost_is_never_said_not_to_have_run() {
    let sandbox = disk();
    let daemon = sandbox.serve();
    let (first, token) = stopped(&sandbox, &["waits:=true", "id:=7"]);
    let call_id = first["meta"]["call_id"].as_str().expect("an id").to_owned();
    let mut answer = sandbox.command(&["answer", &token, "--yes"]);
    let mut answer = answer.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("plugd runs");
    eventually("it runs", || runs(&sandbox) == 1);
    let again = ["--output", "json", "answer", &token, "--yes"];
    let meanwhile = sandbox.plugd(&again).expect(4).json();
    let error = &meanwhile["error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!(1007), &json!("unknown")), "{meanwhile:#}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("goes on")), "{meanwhile:#}");
    kill_daemon(daemon);
    answer.wait().expect("it ends");
    sandbox.write("plugins/disk/go", "");

    let daemon = sandbox.serve();
    for _ in 0..2 {
        let repeat = sandbox.plugd(&again).expect(6).json();
        let error = &repeat["error"];
        assert_eq!((&error["code"], &error["outcome"]), (&json!(6011), &json!("unknown")), "{repeat:#}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(&call_id)), "{repeat:#}");
    }
    assert_eq!(runs(&sandbox), 1);
    let shown = daemon.json(&["calls", "show", &call_id]);
    assert_eq!(
        (&shown["call"]["status"], &shown["error"]["code"]),
        (&json!("error"), &json!(6011)),
        "{shown:#}"
    );
    assert!(shown["given"].as_str().is_some_and(|given| given.contains("\"id\":7")), "{shown:#}");

    // One that ended is said to have ended so.
    let (_, token) = stopped(&sandbox, &["id:=8"]);
    sandbox.plugd(&["answer", &token, "--yes"]).expect(0);
    let again = sandbox.plugd(&["--output", "json", "answer", &token, "--yes"]).expect(4).json();
    assert_eq!(again["error"]["outcome"], "completed", "{again:#}");
    assert!(again["error"]["hint"].as_str().is_some_and(|hint| hint.contains("calls show")), "{again:#}");
    let (_, token) = stopped(&sandbox, &["id:=9"]);
    sandbox.plugd(&["answer", &token, "--no"]).expect(7);
    let again = sandbox.plugd(&["--output", "json", "answer", &token, "--yes"]).expect(4).json();
    assert!(again["error"]["hint"].as_str().is_some_and(|hint| hint.contains("the no stands")), "{again:#}");
    assert_eq!((&again["error"]["outcome"], runs(&sandbox)), (&json!("not_run"), 2), "{again:#}");
    daemon.stop();
}

/// The files of a process may not grow beyond this; it is told so by SIGXFSZ.
fn limit_files(process: u32, bytes: Option<u64>) {
    let process = Pid::from_raw(i32::try_from(process).expect("a process")).expect("a process");
    prlimit(Some(process), Resource::Fsize, Rlimit { current: bytes, maximum: None }).expect("it is ours");
}

#[test]
fn an_answer_that_cannot_be_kept_is_given_again_while_plugd_lives_and_then_said_to_be_unknown() {
    let sandbox = disk();
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    daemon.plugd(&["call", "disk.write", "--key", "before"]).expect(0);
    let log = fs::metadata(sandbox.path().join("state/plugd.db-wal")).expect("it is there").len();
    limit_files(daemon.pid(), Some(log + 200_000));
    let args = [
        "--output",
        "json",
        "call",
        "disk.write",
        "--key",
        "k",
        "--whole",
        "--timeout",
        "60s",
        "length:=2000000",
    ];
    let first = daemon.plugd(&args).expect(0).json();
    for _ in 0..2 {
        let repeat = daemon.plugd(&args).expect(0).json();
        assert_eq!(repeat["meta"]["replayed"], true, "{}", repeat["meta"]);
        assert_eq!(repeat["data"], first["data"]);
    }
    let other =
        daemon.plugd(&["--output", "json", "call", "disk.write", "--key", "k", "length:=3"]).expect(2);
    assert_eq!(other.json()["error"]["code"], 1008);
    assert_eq!(runs(&sandbox), 2, "one each");
    limit_files(daemon.pid(), None);
    kill_daemon(daemon);

    let daemon = sandbox.serve();
    let repeat = daemon.plugd(&args).expect(6).json();
    assert_eq!((&repeat["error"]["code"], runs(&sandbox)), (&json!(6011), 2), "{repeat:#}");
    daemon.stop();
}

/// Holds the record, as a backup might.
fn hold(sandbox: &Sandbox) -> Child {
    let mut holder =
        python(sandbox, HOLD).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python runs");
    let mut line = String::new();
    let said = BufReader::new(holder.stdout.take().expect("piped")).read_line(&mut line);
    assert_eq!((said.expect("it says something"), line.trim()), (5, "held"));
    holder
}

#[test]
fn a_token_that_could_not_be_written_down_says_so() {
    let sandbox = disk();
    let daemon = sandbox.serve();
    let (kept, _) = stopped(&sandbox, &[]);
    assert_eq!(kept["meta"].get("warnings"), None, "{kept:#}");
    let mut holder = hold(&sandbox);
    let (unkept, token) = stopped(&sandbox, &["--timeout", "60s"]);
    drop(holder.stdin.take());
    holder.wait().expect("it ends");
    let warning = unkept["meta"]["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("good only while plugd runs"), "{unkept:#}");
    daemon.plugd(&["answer", &token, "--yes"]).expect(0);
    let again = daemon.plugd(&["--output", "json", "answer", &token, "--yes"]).expect(4).json();
    assert_eq!((&again["error"]["code"], runs(&sandbox)), (&json!(1007), 1), "{again:#}");
    daemon.stop();
}

#[test]
fn a_token_is_not_denied_where_the_record_cannot_be_read() {
    let sandbox = disk();
    let daemon = sandbox.serve();
    let (_, token) = stopped(&sandbox, &[]);
    daemon.stop();
    let version = set_version(&sandbox, "9999");
    let daemon = sandbox.serve();
    let refused = daemon.plugd(&["--output", "json", "answer", &token, "--yes"]).expect(9).json();
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!(9005), &json!("not_run")), "{refused:#}");
    daemon.stop();
    set_version(&sandbox, &version);
    let daemon = sandbox.serve();
    daemon.plugd(&["answer", &token, "--yes"]).expect(0);
    assert_eq!(runs(&sandbox), 1);
    daemon.stop();
}

#[test]
fn status_says_that_a_damaged_record_was_set_aside() {
    let sandbox = disk();
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["status"])["daemon"].get("record_begun_anew"), None);
    daemon.stop();
    fs::write(sandbox.path().join("state/plugd.db"), "this is no record ".repeat(1_000)).expect("it is ours");
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    let status = daemon.json(&["status"]);
    let said = status["daemon"]["record_begun_anew"].as_str().unwrap_or_default();
    assert!(said.contains("plugd.db.corrupt-"), "{status:#}");
    let text = daemon.plugd(&["status"]).expect(0).stdout;
    assert!(text.contains("the record was begun anew: ") && text.contains(".corrupt-"), "{text}");
    daemon.stop();
}

/// That the record was lost is told by whatever finds it, and until somebody has removed the damaged file.
#[test]
fn a_damaged_record_that_a_single_command_finds_is_told_and_so_are_the_keys_it_had() {
    let sandbox = disk();
    let call = ["--output", "json", "call", "disk.write", "--key"];
    let keyed = |key: &str| sandbox.plugd(&[&call[..], &[key]].concat()).expect(0);
    keyed("first");
    let damage = || {
        let path = sandbox.path().join("state/plugd.db");
        fs::write(path, "this is no record ".repeat(1_000)).expect("it is ours");
    };
    damage();
    let found = keyed("first");
    assert!(
        found.stderr.contains("warning: the record of calls was damaged and has been moved to "),
        "{}",
        found.stderr
    );
    let warned = |result: &Value| {
        let warnings = result["meta"]["warnings"].as_array().cloned().unwrap_or_default();
        warnings
            .iter()
            .filter(|text| text.to_string().contains("whether a call with this key ran before"))
            .count()
    };
    let result = found.json();
    assert_eq!((warned(&result), runs(&sandbox)), (1, 2), "{result:#}");

    // Whoever comes later is told as well: `doctor`, the next daemon, and the next key.
    let said = "the record of calls was damaged and has been moved to ";
    let doctor = sandbox.plugd(&["doctor"]).stdout;
    assert!(doctor.contains(said) && doctor.contains("plugd.db.corrupt-"), "{doctor}");
    let daemon = sandbox.serve();
    assert!(daemon.plugd(&["doctor"]).stdout.contains(said));
    let status = daemon.json(&["status"]);
    let anew = status["daemon"]["record_begun_anew"].as_str().unwrap_or_default();
    assert!(anew.contains("plugd.db.corrupt-"), "{status:#}");
    assert_eq!(warned(&keyed("second").json()), 1);

    for entry in fs::read_dir(sandbox.path().join("state")).expect("it is there").flatten() {
        if entry.file_name().to_string_lossy().contains(".corrupt-") {
            fs::remove_file(entry.path()).expect("it is ours");
        }
    }
    assert!(!daemon.plugd(&["doctor"]).stdout.contains(said));
    assert_eq!(warned(&keyed("third").json()), 0);
    daemon.stop();

    // A command that calls nothing says so, too.
    damage();
    let found = sandbox.plugd(&["calls"]).expect(0).stderr;
    assert!(found.contains("warning: the record of calls was damaged and has been moved to "), "{found}");
}

#[test]
fn a_key_is_refused_for_the_true_reason_and_a_changed_record_waits_for_the_next_start() {
    let sandbox = Sandbox::new("");
    let plugin = sandbox.python("disk", DISK);
    sandbox.configure(&format!("{plugin}[record]\nenabled = false\n"));
    let daemon = sandbox.serve();
    let refused = daemon.plugd(&["--output", "json", "call", "disk.write", "--key", "k"]).expect(9).json();
    let error = &refused["error"];
    assert_eq!(error["code"], 9005, "{refused:#}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("enabled = false")), "{refused:#}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("needs the record")), "{refused:#}");
    // Without a record there are no tokens that it could have.
    assert_eq!(
        daemon.plugd(&["--output", "json", "answer", "t", "--yes"]).expect(4).json()["error"]["code"],
        1007
    );

    assert_eq!(daemon.json(&["reload"]).get("next_start"), None);
    sandbox.configure(&plugin);
    for _ in 0..2 {
        assert_eq!(daemon.json(&["reload"])["next_start"], json!(["record"]));
    }
    let text = daemon.plugd(&["reload"]).expect(0).stdout;
    assert!(text.contains("[record] changed: that waits until plugd is started anew"), "{text}");
    daemon.stop();
}

#[test]
fn config_check_lists_every_problem_however_many() {
    let sandbox = Sandbox::new("");
    let wrong =
        |number| format!("[plugins.p{number}]\ncommand = [\"sh\"]\ntimeout = \"a long time {number}\"\n");
    sandbox.configure(&(0..60).map(wrong).collect::<String>());
    let text = sandbox.plugd(&["config", "check"]).expect(2).stderr;
    let document = sandbox.plugd(&["--output", "json", "config", "check"]).expect(2).json();
    let message = document["error"]["message"].as_str().expect("text");
    for number in 0..60 {
        let key = format!("plugins.p{number}.timeout");
        assert!(text.contains(&key) && message.contains(&key), "{key}: {text}");
    }
    assert!(!text.contains("more characters"), "{text}");
}
