//! What every SDK makes alike: the golden plugin of each, in every session, as a real process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use plugd_tests::sessions::{self, Other};
use plugd_tests::{Sandbox, eventually};
use serde_json::Value;

use crate::languages::there_is;

/// The golden plugin of one SDK, running; killed when a test ends early.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
}

impl Other for Running {
    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open");
        input.write_all(line.as_bytes()).expect("the plugin reads");
    }

    fn close(&mut self) {
        self.input = None;
    }

    fn exit(&mut self) -> Option<i32> {
        // Nothing but its own end is waited for: its output was read to the end before.
        self.child.wait().expect("a child to wait for").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _it_may_have_ended = self.child.kill();
        let _it_is_reaped = self.child.wait();
    }
}

/// Declares what all declare, and says in each session what all say.
#[track_caller]
fn check(command: &[&Path]) {
    let (program, arguments) = command.split_first().expect("a program");
    let run = || {
        let mut run = Command::new(program);
        // With a stack a fault may take several entries of the log.
        run.args(arguments).env_remove("RUST_BACKTRACE").stderr(Stdio::null());
        run
    };
    let described = run().arg("--describe").stdin(Stdio::null()).output().expect("it starts");
    let manifest: Value = serde_json::from_slice(&described.stdout)
        .unwrap_or_else(|error| panic!("--describe prints the manifest: {error}: {described:?}"));
    assert_eq!(sessions::without_defaults(&manifest), sessions::without_defaults(&sessions::manifest()));
    for session in sessions::all() {
        let mut child = run().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        sessions::play(&session, &mut Running { child, input }, output);
    }
    check_under_plugd(command);
}

/// Under the real host: what nobody declared never reaches it, and its faults say no more than their class, while the
/// log has them whole, as errors of their call.
#[track_caller]
fn check_under_plugd(command: &[&Path]) {
    let sandbox = Sandbox::new("");
    let other = sandbox.python("other", "");
    sandbox.configure(&format!("{other}[plugins.golden]\ncommand = {command:?}\n"));
    let daemon = sandbox.serve();
    let refused = daemon.plugd(&["--output", "json", "call", "golden.context", "nmae=Ada"]).expect(3).json();
    assert_eq!(refused["error"]["code"], 2001, "{refused:#}");
    let failed = daemon.plugd(&["--output", "json", "call", "golden.fail", "how=fault"]).expect(1).json();
    assert_eq!(failed["error"]["code"], 4002, "{failed:#}");
    let message = failed["error"]["message"].as_str().expect("a text");
    assert!(message.starts_with("fail failed unexpectedly: it "), "{message}");
    assert!(!message.contains("a fault of ours"), "{message}");
    let mut faults = Vec::new();
    eventually("the log has what the fault said", || {
        let entries = daemon.json(&["logs", "golden"]);
        let said =
            |entry: &&Value| entry["text"].as_str().is_some_and(|text| text.contains("a fault of ours"));
        faults = entries.as_array().into_iter().flatten().filter(said).cloned().collect();
        !faults.is_empty()
    });
    let [fault] = faults.as_slice() else { panic!("it is told once: {faults:#?}") };
    assert_eq!(fault["level"], "error", "{fault:#}");
    assert_eq!(fault["call_id"], failed["meta"]["call_id"], "{fault:#}");
    // All of it, with the place, in one entry.
    assert!(fault["text"].as_str().is_some_and(|text| text.contains("golden")), "{fault:#}");
    daemon.stop();
}

fn sdk(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin-sdk").join(path)
}

/// `target/<profile>`.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.parent().and_then(Path::parent).expect("target/<profile>/deps/test").to_owned()
}

#[test]
fn the_golden_plugin_in_rust_is_like_all() {
    let program = built().join("examples/golden");
    assert!(program.exists(), "{} is missing: `make test` builds it", program.display());
    check(&[&program]);
}

#[test]
fn the_golden_plugin_in_python_is_like_all() {
    check(&[Path::new("python3"), &sdk("python/tests/golden.py")]);
}

#[test]
fn the_golden_plugin_in_node_is_like_all() {
    if there_is("node", &["--version"]) {
        check(&[Path::new("node"), &sdk("node/test/golden.js")]);
    }
}

#[test]
fn the_golden_plugin_in_go_is_like_all() {
    if !there_is("go", &["version"]) {
        return;
    }
    let program = built().join("golden-go");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg("./internal/golden");
    // It depends on nothing, and nothing is to be fetched.
    let output = build.current_dir(sdk("go")).env("GOPROXY", "off").output().expect("go runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check(&[&program]);
}
