//! Plugins whose stdin and stdout are socket pairs: each SDK over them, and programs that know nothing of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use plugd_tests::{Sandbox, alive, eventually, kill};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::languages::there_is;

/// More than any socket or pipe holds: it is written and read in many pieces.
const LARGE: usize = 1 << 20;

fn sdk(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-sdk").join(path)
}

/// `target/<profile>`.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.parent().and_then(Path::parent).expect("target/<profile>/deps/test").to_owned()
}

/// A sandbox with the golden plugin of an SDK, which is connected by sockets, and the one it requires.
fn golden(command: &[PathBuf]) -> Sandbox {
    let sandbox = Sandbox::new("");
    let other = sandbox.shell("other");
    sandbox.configure(&format!(
        "parent_death_signal = false\n\n[plugins.golden]\ncommand = {command:?}\nstdio = \"socketpair\"\n\
         restart = {{ backoff = \"10ms\" }}\n\n{other}"
    ));
    sandbox
}

fn greet(sandbox: &Sandbox, name: &str) -> Value {
    let arguments = json!({"name": name, "tone": "cold"}).to_string();
    let args = ["--output", "json", "call", "golden.greet", "--timeout", "60s", "--json", "-"];
    let ran = sandbox.plugd_with_stdin(&args, arguments.as_bytes()).expect(0).json();
    ran["data"].clone()
}

/// What is on a descriptor of a process.
fn descriptor(pid: &Value, number: u32) -> String {
    let link = format!("/proc/{pid}/fd/{number}");
    std::fs::read_link(&link).map(|target| target.display().to_string()).unwrap_or_default()
}

/// What a process has open, one after another.
fn descriptors(pid: &Value) -> Vec<String> {
    (0..32).map(|number| descriptor(pid, number)).collect()
}

/// Large calls, several at once, a crash, a stop, and the end of the host.
#[track_caller]
fn check(command: &[PathBuf]) {
    let sandbox = golden(command);
    let mut daemon = sandbox.serve();
    let large = "x".repeat(LARGE);
    let expected = format!("hello {large}");
    assert!(greet(&sandbox, &large) == *expected, "a large text comes back whole");
    let status = daemon.status("golden");
    let open = descriptors(&status["pid"]);
    assert!(open.iter().filter(|it| it.starts_with("socket:")).count() >= 2, "{open:?}");

    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(greet(&sandbox, &large) == *expected, "at once too"));
        }
    });
    let spoken = daemon.plugd(&["--output", "json", "call", "golden.speak"]).expect(0);
    assert_eq!(spoken.json()["status"], "ok", "a stray print harms nothing");
    assert_eq!(daemon.status("golden")["pid"], status["pid"], "{:#}", daemon.status("golden"));
    assert_eq!(daemon.status("golden")["stray_lines"], 0, "prints of an SDK's plugin go to stderr");

    let pid = pid_of(&status);
    kill(pid, Signal::KILL);
    eventually("it is gone", || !alive(pid));
    assert!(greet(&sandbox, &large) == *expected, "after a crash too");

    let stopped = daemon.json(&["stop", "golden"]);
    assert_eq!(stopped["plugins"][0]["ended"], "exited", "{stopped:#}");
    daemon.plugd(&["start", "golden"]).expect(0);
    let pid = pid_of(&daemon.status("golden"));
    daemon.signal(Signal::KILL);
    daemon.wait();
    eventually("it leaves at the end of its stdin", || !alive(pid));
    drop(daemon);
}

fn pid_of(status: &Value) -> u32 {
    status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("it runs")
}

#[test]
fn the_rust_sdk_works_over_sockets() {
    let program = built().join("examples/golden");
    assert!(program.exists(), "{} is missing: `make test` builds it", program.display());
    check(&[program]);
}

#[test]
fn the_python_sdk_works_over_sockets() {
    check(&["python3".into(), sdk("python/tests/golden.py")]);
}

#[test]
fn the_node_sdk_works_over_sockets() {
    if there_is("node", &["--version"]) {
        check(&["node".into(), sdk("node/test/golden.js")]);
    }
}

#[test]
fn the_go_sdk_works_over_sockets() {
    if !there_is("go", &["version"]) {
        return;
    }
    let program = built().join("golden-go-sockets");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg("./internal/golden");
    // It depends on nothing, and nothing is to be fetched.
    let output = build.current_dir(sdk("go")).env("GOPROXY", "off").output().expect("go runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check(&[program]);
}

/// What computes looks for a `cancel` itself, which must be there to be seen.
#[test]
fn a_node_plugin_that_computes_sees_a_cancel_over_sockets() {
    if !there_is("node", &["--version"]) {
        return;
    }
    let command = ["node".into(), sdk("node/test/rough.js")];
    let sandbox = Sandbox::new(&format!(
        "[plugins.rough]\ncommand = {command:?}\nstdio = \"socketpair\"\ncancel_grace = \"20s\"\n"
    ));
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "rough"]).expect(0);
    let before = daemon.status("rough");
    let late = daemon.plugd(&["--output", "json", "call", "rough.computes", "--timeout", "300ms"]);
    assert_eq!(late.json()["error"]["name"], "timed_out", "{late:?}");
    // Its only lane is free again.
    daemon.plugd(&["call", "rough.on", "--timeout", "10s"]).expect(0);
    assert_eq!(daemon.status("rough")["pid"], before["pid"]);
}

/// A shell knows nothing of sockets, and writes by pieces.
#[test]
fn a_program_without_an_sdk_works_over_sockets() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("a");
    sandbox.configure(&format!("{table}stdio = \"socketpair\"\n"));
    let daemon = sandbox.serve();
    let called = daemon.json(&["call", "a.pid"]);
    let status = daemon.status("a");
    assert_eq!(called["data"]["pid"], status["pid"], "{called:#}");
    for number in [0, 1] {
        assert!(descriptor(&status["pid"], number).starts_with("socket:"), "descriptor {number}");
    }
    assert!(descriptor(&status["pid"], 2).starts_with("pipe:"), "stderr stays a pipe");

    let crashed = daemon.plugd(&["--output", "json", "call", "a.crash"]).json();
    let message = crashed["error"]["message"].as_str().expect("a message");
    assert!(message.contains("exit status 3") && message.contains("boom"), "{crashed:#}");

    // It takes effect by another process.
    sandbox.configure(&table);
    let reloaded = daemon.json(&["reload"]);
    assert_eq!(reloaded["changed"], json!(["a"]), "{reloaded:#}");
    assert!(descriptor(&daemon.status("a")["pid"], 0).starts_with("pipe:"));
}

/// `/dev/stdout` is opened by its path by some programs, which a socket does not allow.
#[test]
fn what_opens_its_stdout_by_path_fails_over_sockets_and_says_so() {
    let sandbox = Sandbox::new("");
    sandbox.program("a.sh", "#!/bin/sh\necho '{}' >/dev/stdout\n");
    sandbox.configure("[plugins.a]\ncommand = [\"./a.sh\"]\nstdio = \"socketpair\"\nrestart = \"never\"\n");
    let daemon = sandbox.serve();
    let failed = daemon.plugd(&["--output", "json", "call", "a.x"]).json();
    assert!(failed.to_string().contains("No such device or address"), "its words are there: {failed:#}");
}
