//! `plugd doctor`: what does not work yet, and a daemon that would be refused, are not called well.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use plugd_tests::{Ran, Sandbox, eventually, plugd};
use serde_json::Value;

/// The findings of a severity, each as its text.
fn found(report: &Value, severity: &str) -> Vec<String> {
    let findings = report["findings"].as_array().expect("a list");
    let of_it = findings.iter().filter(|finding| finding["severity"] == severity);
    of_it.map(ToString::to_string).collect()
}

#[test]
fn what_is_tried_again_and_never_described_itself_is_a_problem() {
    let sandbox = Sandbox::new("");
    // It ends once, and then answers nothing.
    let program =
        "#!/bin/sh\n[ -e tried ] || { echo 'no ledger' >&2; touch tried; exit 3; }\nexec cat > /dev/null\n";
    sandbox.program("mute/mute.sh", program);
    let mute = "[plugins.mute]\ncommand = [\"./mute.sh\"]\ncwd = \"mute\"\ndescribe_timeout = \"1h\"\n";
    let off = format!("{}enabled = false\n", sandbox.shell("off"));
    sandbox.configure(&[mute, &sandbox.shell("well"), &off].join("\n"));
    let daemon = sandbox.serve();
    daemon.wait_for_state("well", "idle");
    eventually("it is tried again", || {
        let status = daemon.status("mute");
        status["state"] == "starting" && status["reason"].to_string().contains("tried again after")
    });
    let report = daemon.plugd(&["--output", "json", "doctor"]).expect(6).json();
    let problems = found(&report, "problem");
    let [problem] = problems.as_slice() else { panic!("one problem: {report:#}") };
    for part in ["mute is starting", "exit status 3", "stderr: no ledger", "plugd logs mute"] {
        assert!(problem.contains(part), "{part}: {problem}");
    }
    let fine = found(&report, "ok").join("\n");
    assert!(fine.contains("1 plugin is well") && fine.contains("disabled, as is configured: off"), "{fine}");
    daemon.plugd(&["doctor", "mute"]).expect(6);
    daemon.stop();
}

/// What keeps `plugd serve` from its socket is said by `plugd doctor` with the same words and exit code.
#[track_caller]
fn check(spoil: impl Fn(&Path)) {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.shell("well"));
    sandbox.plugd(&["doctor"]).expect(0);
    spoil(sandbox.path());
    let report = sandbox.plugd(&["--output", "json", "doctor"]).expect(9).json();
    let refused = sandbox.plugd(&["--output", "json", "serve"]).expect(9).json()["error"].clone();
    let findings = report["findings"].as_array().expect("a list");
    let message = refused["message"].as_str().expect("a text");
    let said = |finding: &&Value| finding["message"].to_string().contains(&message.replace('"', "\\\""));
    let finding = findings.iter().find(said).unwrap_or_else(|| panic!("{message:?} is in {report:#}"));
    assert_eq!(finding["severity"], "problem", "{finding:#}");
    assert_eq!(finding["hint"], refused["hint"], "{finding:#}");
}

#[test]
fn a_daemon_that_would_be_refused_is_found_beforehand() {
    let run = |root: &Path, mode: u32| {
        fs::create_dir_all(root.join("run")).expect("a folder");
        fs::set_permissions(root.join("run"), Permissions::from_mode(mode)).expect("a mode");
    };
    check(|root| run(root, 0o777));
    check(|root| {
        run(root, 0o700);
        fs::write(root.join("run/plugd.sock"), "precious").expect("a file");
    });
    check(|root| fs::write(root.join("run"), "a file").expect("a file"));
    check(|root| {
        run(root, 0o700);
        fs::create_dir(root.join("run/plugd.sock.lock")).expect("a folder");
    });
    check(|root| fs::create_dir_all(root.join("state/daemon.lock")).expect("a folder"));
}

#[test]
fn a_plugd_toml_that_cannot_be_read_is_not_passed_over() {
    let sandbox = Sandbox::new("");
    let place = |name: &str| {
        let path = sandbox.path().join(name).join("plugd.toml");
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        path
    };
    fs::create_dir(place("folder")).expect("a folder");
    fs::write(place("bytes"), [0xff, 0xfe]).expect("a file");
    symlink("nowhere", place("link")).expect("a link");
    let _listener = UnixListener::bind(place("socket")).expect("a socket");
    for folder in ["folder", "bytes", "link", "socket"] {
        for words in [&["list"][..], &["call", "a.b"], &["--config", "plugd.toml", "list"], &["serve"]] {
            let mut command = Command::new(plugd());
            command.current_dir(sandbox.path().join(folder)).env("XDG_STATE_HOME", sandbox.path());
            command.env_remove("PLUGD_CONFIG").stdin(Stdio::null()).args(["--output", "json"]).args(words);
            let ran = Ran::from(command.output().expect("plugd runs")).expect(2);
            assert_eq!(ran.json()["error"]["code"], 1006, "{folder} {words:?}: {ran:?}");
        }
    }
}
