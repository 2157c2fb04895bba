//! Slips on the command line, plugins called by path, and interruptions: each is told for what it is.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use plugd_tests::{Ran, Sandbox, eventually, kill};
use rustix::process::Signal;
use serde_json::json;

const SHOP: &str = r#"
OPERATIONS = [{"name": "order", "description": "Orders.", "input_schema": {"type": "object"}}]

def handle(operation, arguments, params):
    print("it is ordered", file=sys.stderr, flush=True)
    return {"data": {"from": os.getcwd()}}
"#;

/// Runs a command of which what is kept without a configuration stays in the sandbox.
fn plugd(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut command = sandbox.command(&[&["--output", "json"], args].concat());
    command.env("XDG_STATE_HOME", sandbox.path().join("home")).stdin(Stdio::null());
    command.output().expect("plugd runs").into()
}

/// Two programs of one name, each in a folder of its own.
fn two_shops() -> Sandbox {
    let sandbox = Sandbox::new("");
    for folder in ["one", "two"] {
        sandbox.python(folder, SHOP);
        let text = sandbox.read(&format!("plugins/{folder}/main.py"));
        sandbox.program(&format!("{folder}/shop"), &text);
    }
    sandbox
}

#[test]
fn a_name_after_call_that_nothing_has_is_an_error_of_its_own() {
    let sandbox = two_shops();
    sandbox.configure(&sandbox.python("shop", SHOP));
    for words in [
        &["check", "shop", "--call=ordr"][..],
        &["check", "shop", "--call=shop.ordr"],
        &["check", "--call=ordr"],
        &["check", "./one/shop", "--call=ordr"],
        &["check", "./one/shop", "--only=starts_soon", "--call=ordr"],
    ] {
        let ran = sandbox.plugd(&[&["--output", "json"], words].concat()).expect(4);
        let error = ran.json()["error"].clone();
        assert_eq!(error["code"], 1003, "{words:?}: {error:#}");
        assert!(error.to_string().contains("order"), "{words:?}: {error:#}");
    }
    let none = sandbox.plugd(&["check", "shop", "--call"]).expect(0).stdout;
    let left = "what was tried is well: 0 of 1 operation called; left out: 1 operation that was not called\n";
    assert!(none.ends_with(left), "{none}");
    let one = sandbox.plugd(&["check", "shop", "--call=order"]).stdout;
    assert!(!one.contains("left out"), "{one}");
}

#[test]
fn a_key_of_one_program_is_not_that_of_another_of_its_name() {
    let sandbox = two_shops();
    let call = |path: &str| plugd(&sandbox, &["call", path, "order", "--key", "k"]);
    let first = call("./one/shop").expect(0).json();
    assert_eq!(call("./one/../one/shop").expect(0).json()["data"], first["data"]);
    let error = call("./two/shop").expect(2).json()["error"].clone();
    assert_eq!(error["code"], 1008, "{error:#}");
    assert!(error.to_string().contains("another program of the same name"), "{error:#}");
}

#[test]
fn a_path_is_described_and_its_tools_and_its_log_are_shown() {
    let sandbox = two_shops();
    let described = sandbox.json(&["describe", "./one/shop"]);
    assert_eq!(described["operations"][0]["name"], "order", "{described:#}");
    let tools = sandbox.json(&["tools", "./one/shop"]);
    assert!(tools["tools"].to_string().contains("shop.order"), "{tools:#}");
    plugd(&sandbox, &["call", "./one/shop", "order"]).expect(0);
    let log = plugd(&sandbox, &["logs", "./one/shop"]).expect(0).stdout;
    assert!(log.contains("it is ordered"), "{log}");
    sandbox.write("shop", "");
    let meant = sandbox.plugd(&["call", "shop", "order"]).expect(2).stderr;
    assert!(meant.contains("did you mean ./shop?"), "{meant}");
}

#[test]
fn an_interrupted_check_is_told_in_one_document_and_one_that_follows_ends_with_130() {
    let sandbox = Sandbox::new("");
    sandbox.program("mute", "#!/bin/sh\necho up >> started\nexec sleep 60\n");
    let begun = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("plugd runs")
    };
    for signal in [Signal::INT, Signal::TERM] {
        sandbox.write("started", "");
        let check = begun(&["--output", "json", "check", "./mute"]);
        eventually("the plugin is started", || !sandbox.read("started").is_empty());
        kill(check.id(), signal);
        let ran = Ran::from(check.wait_with_output().expect("plugd ends")).expect(130);
        assert_eq!(ran.json()["error"]["name"], "cancelled", "{ran:?}");
    }
    let daemon = sandbox.serve();
    for (command, signal) in [("events", Signal::INT), ("events", Signal::TERM), ("logs", Signal::TERM)] {
        let child = begun(&[command, "-f"]);
        let caught = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
        };
        eventually("it listens for signals", caught);
        kill(child.id(), signal);
        Ran::from(child.wait_with_output().expect("plugd ends")).expect(130);
    }
    daemon.stop();
}

#[test]
fn what_cannot_be_read_or_written_is_said_before_anything_runs() {
    let sandbox = two_shops();
    let mut command = sandbox.command(&["--output", "json", "call", "./one/shop", "order"]);
    command.arg(OsStr::from_bytes(b"name=\xff"));
    let error = Ran::from(command.output().expect("plugd runs")).expect(3).json()["error"].clone();
    assert_eq!(error["code"], 2002, "{error:#}");
    let file = sandbox.plugd(&["check", "./one/shop", "--junit", "no/such/file.xml"]).expect(2);
    assert!(file.stderr.contains("--junit: cannot write no/such/file.xml"), "{file:?}");
    let words = ["--output", "json", "call", "./one/shop", "order", "to:={city:Bern}"];
    let error = sandbox.plugd(&words).expect(3).json()["error"].clone();
    assert_eq!(error["hint"], json!("quote it as in a shell: to:='{\"city\":\"Bern\"}'"), "{error:#}");
    assert!(!error["message"].to_string().contains("plain text"), "{error:#}");
}
