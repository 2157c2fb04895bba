//! The Rust SDK under the real program: what its plugins do not have to think of.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plugd_tests::{Sandbox, alive, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::asking::Terminal;

/// The SDK's example that does what handlers should not.
fn rough() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.parent().and_then(Path::parent).expect("target/<profile>/deps/test");
    let program = folder.join("examples/rough");
    assert!(
        program.exists(),
        "{} is missing: cargo build -p plugd-sdk --examples (`make test` does)",
        program.display()
    );
    program
}

/// Row U8: by hand a plugin says what it is and how to use it, and a pipe of JSON works.
#[test]
fn r_u8_a_plugin_is_usable_by_hand() {
    let on_a_terminal = Command::new("python3")
        .args(["-c", "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"])
        .arg(rough())
        .stdin(Stdio::null())
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&on_a_terminal.stdout);
    assert!(said.contains("a plugd plugin") && said.contains("plugd call"), "{on_a_terminal:?}");
    assert_eq!(on_a_terminal.status.code(), Some(2), "{on_a_terminal:?}");

    let mut piped = Command::new(rough())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let request = r#"{"jsonrpc":"2.0","id":"by hand","method":"describe","params":{"protocol":{"versions":[1]},"host":{"name":"me","version":"1"}}}"#;
    let mut stdin = piped.stdin.take().expect("a pipe");
    writeln!(stdin, "{request}").expect("it reads");
    drop(stdin);
    let answer = piped.wait_with_output().expect("it ends with its stdin");
    let answer: Value = serde_json::from_slice(&answer.stdout).expect("one line of JSON");
    assert_eq!((&answer["id"], &answer["result"]["protocol"]), (&json!("by hand"), &json!(1)), "{answer}");
}

#[test]
fn c143_programs_that_a_tool_runs_read_nothing_of_the_protocol() {
    let sandbox = Sandbox::new(&format!("[plugins.rough]\ncommand = [{:?}]\n", rough()));
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "rough"]).expect(0);
    for _ in 0..2 {
        let begin = Instant::now();
        assert_eq!(daemon.json(&["call", "rough.tools", "--timeout", "60s"])["data"], json!(["", ""]));
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    }
    let status = daemon.status("rough");
    let strange = (&status["stray_lines"], &status["unmatched_answers"]);
    assert_eq!(strange, (&json!(0), &json!(0)), "{status:#}");
    daemon.stop();
}

#[test]
fn a_rust_plugin_asks_whoever_sits_at_the_terminal() {
    let sandbox = Sandbox::new(&format!("[plugins.rough]\ncommand = [{:?}]\n", rough()));
    let steps = [
        ("How often? (integer): ", 0.0, "300\n"),
        ("integer): ", 0.0, "3\n"),
        ("password?: ", 0.1, "sesame\n"),
    ];
    let terminal = Terminal::run(&sandbox, &["--output", "data", "call", "rough.asks"], &steps);
    assert_eq!(terminal.data(), json!("3 times, 6 letters"));
    assert!(!sandbox.read("terminal/screen").contains("sesame"));
}

#[test]
fn c066_a_plugin_leaves_by_itself_when_its_host_is_killed() {
    let sandbox =
        Sandbox::new(&format!("parent_death_signal = false\n\n[plugins.rough]\ncommand = [{:?}]\n", rough()));
    let mut daemon = sandbox.serve();
    daemon.plugd(&["call", "rough.chatter"]).expect(0);
    let pid = daemon.status("rough")["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a pid");
    daemon.signal(Signal::KILL);
    daemon.wait();
    eventually("the plugin has left, without any signal", || !alive(pid));
}
