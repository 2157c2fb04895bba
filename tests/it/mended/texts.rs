//! What people and scripts are told: the right advice, the right end, the right exit code.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use plugd_tests::{Daemon, Sandbox, eventually};
use rustix::process::Signal;
use serde_json::Value;

/// A plugin with a configuration of its own, whose manifest has the name that the tests give it.
const GREETER: &str = r#"
MANIFEST = {"name": "fp", "config_schema": {"type": "object", "properties": {"greeting": {"type": "string"}}}}
"#;

/// The findings about a plugin that are more than ok.
fn findings(report: &Value, plugin: &str) -> Vec<Value> {
    let all = report["findings"].as_array().expect("findings");
    let about = |finding: &&Value| finding["plugin"] == plugin && finding["severity"] != "ok";
    all.iter().filter(about).cloned().collect()
}

/// The one finding about a plugin, which is a warning.
#[track_caller]
fn warning(daemon: &Daemon<'_>, plugin: &str) -> Value {
    let report = daemon.plugd(&["--output", "json", "doctor"]).expect(0).json();
    let found = findings(&report, plugin);
    assert_eq!((found.len(), &found[0]["severity"]), (1, &"warning".into()), "{report:#}");
    found[0].clone()
}

#[test]
fn a_run_that_failed_to_take_over_is_to_be_mended_and_not_restarted() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("fp", GREETER));
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    sandbox.program("plugins/fp/main.py", "import sys\nsys.exit('no such word')\n");
    daemon.plugd(&["reload"]).expect(6);
    let found = warning(&daemon, "fp").to_string();
    for part in ["goes on as it was", "mend it, then `plugd reload fp`", "stderr: no such word"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let shown = daemon.plugd(&["status", "fp"]).expect(0).stdout;
    for part in ["mend it, then `plugd reload fp`", "it said on stderr: no such word"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!found.contains("plugd restart") && !shown.contains("plugd restart"), "{found} {shown}");
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    daemon.stop();
}

#[test]
fn doctor_says_once_what_keeps_a_change_from_a_plugin_that_works() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", GREETER);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    sandbox.configure(&format!("{table}config = {{ greeting = 5 }}\n"));
    daemon.plugd(&["reload"]).expect(6);
    let found = warning(&daemon, "fp").to_string();
    assert!(found.contains("goes on as it was") && found.contains("expected a string"), "{found}");
    daemon.stop();
}

#[test]
fn a_manifest_with_another_name_is_a_warning() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("fp", "MANIFEST = {'name': 'other'}"));
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    let found = warning(&daemon, "fp").to_string();
    assert!(found.contains("calls itself \\\"other\\\""), "{found}");
    eventually("the log says so", || daemon.said_of("fp").iter().any(|line| line.contains("another name")));
    daemon.stop();
}

#[test]
fn config_check_knows_what_was_remembered_of_the_same_files() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", GREETER);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    daemon.stop();
    let user = format!("{}requires = {{ fp = \">=2\" }}\n", sandbox.shell("user"));
    sandbox.configure(&format!("{table}config = {{ greeting = 5 }}\n{user}"));
    for command in [["config", "check"], ["--quiet", "doctor"]] {
        let ran = sandbox.plugd(&command);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_ne!(ran.code, 0, "{ran:?}");
        for part in ["greeting: expected a string", "requires fp >=2, but its version is 1.0.0"] {
            assert!(said.contains(part), "{part}: {ran:?}");
        }
    }
    assert_eq!(sandbox.read("plugins/user/spawned"), "", "nothing was started to find out");
    sandbox.configure(&format!("{table}config = {{ greeting = \"hi\" }}\n"));
    sandbox.plugd(&["config", "check"]).expect(0);
}

#[test]
fn logs_and_events_of_a_plugin_that_is_not_there_are_an_error() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.shell("clock"));
    sandbox.plugd(&["logs", "clok"]).expect(4);
    let daemon = sandbox.serve();
    for command in
        [&["logs", "clok"][..], &["events", "clok"], &["logs", "-f", "clok"], &["events", "-f", "clok"]]
    {
        let ran = daemon.plugd(command).expect(4);
        assert!(ran.stderr.contains("did you mean clock?"), "{ran:?}");
    }
    daemon.plugd(&["logs", "clock"]).expect(0);
    daemon.plugd(&["events", "clock"]).expect(0);
    // What one did that was taken away since is history, and no mistake.
    daemon.plugd(&["remove", "clock"]).expect(0);
    daemon.plugd(&["events", "clock"]).expect(0);
    daemon.stop();
}

/// Follows events, ends the daemon by a signal, and returns the exit code.
fn followed_until(signal: Signal) -> i32 {
    let sandbox = Sandbox::new("");
    let mut daemon = sandbox.serve();
    daemon.plugd(&["reload"]).expect(0);
    let mut follower = sandbox
        .command(&["events", "-f", "-n", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("plugd runs");
    let mut line = String::new();
    let stdout = follower.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("it is read");
    assert!(line.contains("config.reloaded"), "{line}");
    daemon.signal(signal);
    daemon.wait();
    follower.wait().expect("it ends").code().unwrap_or(-1)
}

#[test]
fn following_ends_well_with_a_shutdown_and_with_an_error_otherwise() {
    assert_eq!(followed_until(Signal::TERM), 0);
    assert_eq!(followed_until(Signal::KILL), 9);
}

#[test]
fn doctor_tells_a_death_from_an_end_that_a_reload_asked_for() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.shell("restless"));
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "restless.crash"]).expect(6);
    daemon.plugd(&["call", "restless.pid"]).expect(0);
    let program = sandbox.read("plugins/restless/main.sh");
    sandbox.program("plugins/restless/main.sh", &format!("{program}\n# changed\n"));
    daemon.plugd(&["reload"]).expect(0);
    eventually("the old run has ended", || {
        daemon.status("restless")["exits"].as_array().is_some_and(|exits| exits.len() == 2)
    });
    let status = daemon.status("restless");
    assert_eq!(
        (&status["exits"][0]["unasked"], &status["exits"][1]["unasked"]),
        (&true.into(), &Value::Null)
    );
    let found = warning(&daemon, "restless").to_string();
    for part in ["ended unasked once", "exit status 3", "stderr: boom"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    daemon.stop();
}

#[test]
fn a_reason_that_repeats_the_state_is_said_once() {
    let sandbox = Sandbox::new("");
    let table = format!("{}\n{}", sandbox.shell("fp"), sandbox.shell("user"));
    sandbox.configure(&format!("{table}requires = {{ fp = \"*\" }}\n"));
    let daemon = sandbox.serve();
    daemon.plugd(&["disable", "fp"]).expect(0);
    let ran = daemon.plugd(&["call", "fp.pid"]).expect(6);
    assert!(ran.stderr.contains("fp is disabled by an operator\n"), "{ran:?}");
    assert!(ran.stderr.contains("plugd enable fp"), "{ran:?}");
    let ran = daemon.plugd(&["call", "user.pid"]).expect(6);
    assert!(ran.stderr.contains("requires fp, which is disabled by an operator\n"), "{ran:?}");
    daemon.plugd(&["enable", "fp"]).expect(0);
    daemon.plugd(&["stop", "fp"]).expect(0);
    let ran = daemon.plugd(&["call", "fp.pid"]).expect(6);
    assert!(ran.stderr.contains("fp is stopped by an operator\n"), "{ran:?}");
    daemon.stop();
}

#[test]
fn a_file_that_is_not_executable_is_not_taken_for_a_plugin_without_operations() {
    let sandbox = Sandbox::new("");
    sandbox.write("plain.sh", "#!/bin/sh\n");
    let ran = sandbox.plugd(&["call", "./plain.sh", "hello"]).expect(2);
    assert!(ran.stderr.contains("`chmod +x ./plain.sh`"), "{ran:?}");
}

#[test]
fn a_stack_is_shown_line_by_line_and_passes_for_nothing_else() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "fp",
        r#"
def handle(operation, arguments, params):
    stack = "Traceback (most recent call last):\n  File \"a.py\", line 3\n     0 µs  arrived\x1b[2J\nKeyError: 'x'\n"
    send({"jsonrpc": "2.0", "method": "log", "params": {"call_id": params["context"]["call_id"], "level": "error", "message": stack}})
    return {"data": 1}
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let id = daemon.json(&["call", "fp.echo"])["meta"]["call_id"].as_str().expect("an id").to_owned();
    let shown = daemon.plugd(&["calls", "show", &id]).expect(0).stdout;
    let lines: Vec<&str> = shown.lines().collect();
    let first =
        lines.iter().position(|line| line.ends_with("fp log error Traceback (most recent call last):"));
    let first = first.unwrap_or_else(|| panic!("no stack: {shown}"));
    let behind = |text: &str| format!("{}{text}", " ".repeat(18));
    let further = [r#"  File "a.py", line 3"#, r"     0 µs  arrived\u{1b}[2J", "KeyError: 'x'"].map(behind);
    assert_eq!(lines[first + 1..first + 4], further, "{shown}");
    daemon.stop();
}
