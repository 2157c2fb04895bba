//! What an operator adds, removes, enables, disables and stops: kept when the daemon is started again.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

use super::{FP, TELLER, data, teller, text};

#[track_caller]
fn listed(daemon: &Daemon<'_>, plugin: &str) -> Option<Value> {
    let list = daemon.json(&["list"]);
    list["plugins"].as_array().expect("a list").iter().find(|listed| listed["name"] == plugin).cloned()
}

#[test]
fn an_added_plugin_serves_at_once_says_where_it_came_from_and_survives_a_restart() {
    let sandbox = Sandbox::new("");
    sandbox.python("late", TELLER);
    let daemon = sandbox.serve();
    let report = daemon
        .plugd(&[
            "--output",
            "json",
            "add",
            "plugins/late/main.py",
            "--name",
            "late",
            "--env",
            "FOO=added",
            "--config-json",
            "{\"ttl\": 3}",
        ])
        .expect(0)
        .json();
    assert_eq!(report["plugin"]["name"], "late", "{report:#}");
    assert_eq!(report["operations"], json!(["late.show", "late.wait"]), "{report:#}");
    let first = data(&daemon, "late.show");
    assert_eq!((&first["foo"], &first["config"]), (&json!("added"), &json!({"ttl": 3})));
    let entry = listed(&daemon, "late").expect("it is listed");
    assert_eq!(entry["source"]["kind"], "added", "{entry:#}");
    assert!(
        text(&entry["source"]["file"]).starts_with(&*sandbox.path().join("state").to_string_lossy()),
        "{entry:#}"
    );
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(data(&daemon, "late.show"), first, "a reload leaves it alone");
    daemon.stop();

    let daemon = sandbox.serve();
    let second = data(&daemon, "late.show");
    assert_eq!((&second["foo"], &second["config"]), (&first["foo"], &first["config"]));
    let removed = daemon.json(&["remove", "late"]);
    assert_eq!(removed["changed"], json!(["late"]), "{removed:#}");
    assert!(listed(&daemon, "late").is_none());
    daemon.plugd(&["call", "late.show"]).expect(4);
    daemon.stop();
    let daemon = sandbox.serve();
    assert!(listed(&daemon, "late").is_none(), "it stays away");
    daemon.stop();
}

#[test]
fn a_name_that_is_taken_cannot_be_added_and_what_cannot_be_described_says_why() {
    let sandbox = teller("", "");
    sandbox.python("late", TELLER);
    sandbox.program("broken.py", "#!/usr/bin/env python3\nimport sys\nsys.exit('there is no such module')\n");
    let daemon = sandbox.serve();
    let taken = daemon.plugd(&["add", "plugins/late/main.py", "--name", "fp"]);
    assert!(taken.code != 0 && taken.stderr.contains("fp"), "{taken:?}");
    assert_eq!(listed(&daemon, "fp").expect("it stays what it was")["source"]["kind"], "config");
    let broken = daemon.plugd(&["add", "./broken.py"]).expect(6);
    let told = format!("{}{}", broken.stdout, broken.stderr);
    assert!(told.contains("no such module") || told.contains("exit status 1"), "{broken:?}");
    assert!(listed(&daemon, "broken").is_some(), "it stays added");
    let missing = daemon.plugd(&["add", "./nowhere.py"]);
    assert!(missing.code != 0 && missing.stderr.contains("nowhere"), "{missing:?}");
    daemon.stop();
}

#[test]
fn a_removed_plugin_of_the_configuration_stays_away_until_it_is_added_again() {
    let sandbox = teller("", "start = \"eager\"\n");
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    daemon.plugd(&["remove", "fp"]).expect(0);
    assert!(listed(&daemon, "fp").is_none());
    daemon.plugd(&["reload"]).expect(0);
    assert!(listed(&daemon, "fp").is_none(), "though the file still names it");
    daemon.stop();
    let daemon = sandbox.serve();
    assert!(listed(&daemon, "fp").is_none());
    daemon.plugd(&["add", "fp"]).expect(0);
    assert_eq!(data(&daemon, "fp.show")["version"], "one");
    daemon.stop();
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    daemon.stop();
}

#[test]
fn disable_and_enable_hold_over_a_restart_and_over_what_the_file_says() {
    let sandbox = teller("", "start = \"eager\"\n");
    let off = sandbox.python("off", TELLER);
    sandbox.configure(&format!("{FP}start = \"eager\"\n{off}enabled = false\n"));
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    let report = daemon.json(&["disable", "fp"]);
    assert_eq!(report["changed"], json!(["fp"]), "{report:#}");
    assert_eq!(daemon.json(&["disable", "fp"])["unchanged"], json!(["fp"]));
    daemon.plugd(&["enable", "off"]).expect(0);
    daemon.stop();

    let daemon = sandbox.serve();
    let status = daemon.wait_for_state("fp", "disabled");
    assert!(text(&status["reason"]).contains("operator"), "{status:#}");
    let refused = daemon.plugd(&["--output", "json", "call", "fp.show"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "disabled", "{refused:#}");
    assert_eq!(data(&daemon, "off.show")["version"], "one");
    daemon.plugd(&["enable", "fp"]).expect(0);
    assert_eq!(data(&daemon, "fp.show")["version"], "one");
    daemon.stop();
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    daemon.stop();
}

#[test]
fn a_stop_holds_over_a_restart_of_the_daemon_until_a_start() {
    let sandbox = teller("", "start = \"eager\"\n");
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    daemon.plugd(&["stop", "fp"]).expect(0);
    daemon.plugd(&["reload", "fp"]);
    assert_eq!(daemon.status("fp")["state"], "stopped", "a reload is no start");
    daemon.stop();

    let daemon = sandbox.serve();
    let refused = daemon.plugd(&["--output", "json", "call", "fp.show"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "stopped", "{refused:#}");
    assert_eq!(daemon.status("fp")["state"], "stopped");
    daemon.plugd(&["start", "fp"]).expect(0);
    daemon.stop();
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    daemon.stop();
}

#[test]
fn changes_made_without_a_daemon_hold_for_the_next_one() {
    let sandbox = teller("", "");
    sandbox.python("late", TELLER);
    sandbox.plugd(&["disable", "fp"]).expect(0);
    sandbox.plugd(&["add", "plugins/late/main.py", "--name", "late"]).expect(0);
    assert!(!sandbox.socket().exists(), "no daemon was started for it");
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "fp.show"]).expect(6);
    assert_eq!(data(&daemon, "late.show")["version"], "one");
    let unknown = daemon.plugd(&["enable", "nobody"]).expect(4);
    assert!(unknown.stderr.contains("nobody"), "{unknown:?}");
    daemon.stop();
}

#[test]
fn what_was_kept_and_cannot_be_read_is_put_aside_and_the_daemon_starts() {
    let sandbox = teller("", "start = \"eager\"\n");
    for garbage in ["", "{\"format\": 1, \"remov", "{\"format\": 999}", "\u{0}\u{1}"] {
        sandbox.write("state/operator.json", garbage);
        let daemon = sandbox.serve();
        daemon.wait_for_state("fp", "ready");
        let warned = sandbox.read("daemon.log").lines().filter(|line| line.contains("operator.json")).count();
        assert_eq!(warned, 1, "one warning for {garbage:?}: {}", sandbox.read("daemon.log"));
        daemon.plugd(&["disable", "fp"]).expect(0);
        daemon.plugd(&["enable", "fp"]).expect(0);
        daemon.stop();
    }
}
