//! A plugin that commits every sin there is, one at a time; its neighbour notices none of them.

mod answers;
mod coming_up;
mod floods;
mod leaving;
mod silence;

use plugd_tests::{Daemon, Neighbour, Sandbox};
use serde_json::Value;

/// A failed plugin comes back soon.
const QUICK: &str = "restart = { backoff = \"20ms\" }\n";

/// A sandbox with the plugin `bad`, which has these flags and settings, and its healthy neighbour `good`.
fn house(flags: &[&str], settings: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let bad = sandbox.misbehaving("bad", flags);
    let good = sandbox.shell("good");
    sandbox.configure(&format!("{bad}{settings}{good}"));
    sandbox
}

/// Runs a test while the neighbour is called all the time, and checks that nobody else was hurt: each
/// call of the neighbour is answered, and when the daemon has ended no process is left.
#[track_caller]
fn beside_a_neighbour(sandbox: &Sandbox, test: impl FnOnce(&Daemon<'_>)) {
    let daemon = sandbox.serve();
    let neighbour = Neighbour::begin(&daemon, "good.pid");
    test(&daemon);
    neighbour.end();
    daemon.stop();
    assert_eq!(sandbox.processes_in("plugins"), [0; 0], "processes are left behind");
}

/// The error of a call that must fail with this exit code.
#[track_caller]
fn failure(daemon: &Daemon<'_>, code: i32, args: &[&str]) -> Value {
    let ran = daemon.plugd(&[&["--output", "json", "call"], args].concat()).expect(code);
    ran.json()["error"].clone()
}

/// The process that answers a call of `bad.pid`, which is an honest operation.
#[track_caller]
fn pid_of_bad(daemon: &Daemon<'_>) -> u64 {
    let result = daemon.json(&["call", "bad.pid"]);
    result["data"]["pid"].as_u64().unwrap_or_else(|| panic!("it does not answer: {result:#}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("it is no text: {value}"))
}

#[track_caller]
fn assert_parts(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn every_sin_has_a_test() {
    let tests = [
        include_str!("misbehave/answers.rs"),
        include_str!("misbehave/coming_up.rs"),
        include_str!("misbehave/floods.rs"),
        include_str!("misbehave/leaving.rs"),
        include_str!("misbehave/silence.rs"),
    ];
    let fixture = include_str!("../fixtures/misbehave.py");
    let sins = fixture.lines().filter_map(|line| {
        let line = line.trim_start();
        let rest = line.strip_prefix("sin(\"").or_else(|| line.strip_prefix("number(\""))?;
        rest.split('"').next()
    });
    let sins: Vec<&str> = sins.collect();
    assert!(sins.len() > 50, "{sins:?}");
    let untested = |sin: &&str| {
        let flags = [format!("\"--{sin}\""), format!("\"--{sin}=")];
        !tests.iter().any(|test| flags.iter().any(|flag| test.contains(flag)))
    };
    let untested: Vec<&str> = sins.into_iter().filter(untested).collect();
    assert!(untested.is_empty(), "without a test: {untested:?}");
}

#[test]
fn without_a_flag_it_is_a_good_plugin() {
    let sandbox = house(&[], "");
    beside_a_neighbour(&sandbox, |daemon| {
        let call = |args: &[&str]| {
            let result = daemon.json(&[&["call"], args].concat());
            assert_eq!(result["status"], "ok", "{result:#}");
            result["data"].clone()
        };
        assert_eq!(call(&["bad.echo", "a=b"])["a"], "b");
        assert_eq!(call(&["bad.sleep", "ms:=1"])["slept_ms"], 1);
        assert_eq!(call(&["bad.env"])["PYTHONUNBUFFERED"], "1");
        assert_eq!(call(&["bad.fds"]).as_object().map(serde_json::Map::len), Some(3));
        assert_eq!(call(&["bad.allocate", "mb:=2"])["mb"], 2);
        assert!(call(&["bad.spawn"])["pid"].is_u64());
        assert!(call(&["bad.stderr", "bytes:=1000"]).is_null());
        let pid = pid_of_bad(daemon);
        let error = failure(daemon, 6, &["bad.crash", "code:=7"]);
        assert_parts(text(&error["message"]), &["exit status 7", "boom"]);
        assert_ne!(pid_of_bad(daemon), pid);
    });
}
