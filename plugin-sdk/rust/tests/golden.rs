//! The golden plugin in every session that all SDKs share, in memory and as a process.

use std::fs::File;
use std::io::{PipeWriter, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use plugd_sdk::testing::connect;
use rustix::stdio::dup2_stdin;
use serde_json::json;

#[allow(dead_code, reason = "its main is the example's")]
#[path = "../examples/golden.rs"]
mod golden;
#[allow(unreachable_pub, reason = "it is a module of another crate, too")]
#[path = "../../../tests/src/sessions.rs"]
mod sessions;

/// A plugin that runs in threads of the test.
struct InMemory(Option<PipeWriter>);

impl sessions::Other for InMemory {
    fn write(&mut self, line: &str) {
        let pipe = self.0.as_mut().expect("open");
        pipe.write_all(line.as_bytes()).expect("the plugin reads");
    }

    fn close(&mut self) {
        self.0 = None;
    }

    fn exit(&mut self) -> Option<i32> {
        None
    }
}

/// A plugin that runs as a process; killed when a test ends early.
struct Process(Child, Option<ChildStdin>);

impl sessions::Other for Process {
    fn write(&mut self, line: &str) {
        let pipe = self.1.as_mut().expect("open");
        pipe.write_all(line.as_bytes()).expect("the plugin reads");
    }

    fn close(&mut self) {
        self.1 = None;
    }

    fn exit(&mut self) -> Option<i32> {
        self.0.wait().expect("a child to wait for").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.parent().and_then(|deps| deps.parent()).expect("target/…/deps").join("examples/golden");
    assert!(path.exists(), "{} is missing: cargo build -p plugd-sdk --examples", path.display());
    path
}

#[test]
fn the_manifest_is_that_of_every_sdk() {
    let manifest = json!(golden::plugin().manifest().expect("well declared"));
    let (ours, all) =
        (sessions::without_defaults(&manifest), sessions::without_defaults(&sessions::manifest()));
    assert_eq!(ours, all, "{ours:#}\n{all:#}");
}

#[test]
fn every_session_goes_as_it_does_with_every_sdk_in_memory() {
    // One of the operations runs a program that reads it to its end.
    dup2_stdin(File::open("/dev/null").expect("it is there")).expect("nobody else reads it");
    for session in sessions::all() {
        let (to_plugin, from_plugin) = connect(golden::plugin());
        sessions::play(&session, &mut InMemory(Some(to_plugin)), from_plugin);
    }
}

#[test]
fn every_session_goes_as_it_does_with_every_sdk_as_a_process() {
    for session in sessions::all() {
        let mut command = Command::new(program());
        // With a stack a fault takes as many entries of the log as it may.
        command.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pipes.spawn().expect("it starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        sessions::play(&session, &mut Process(child, input), output);
    }
}
