//! `on_change = "manual"`: nothing is taken up before somebody says so, and the difference is shown.

use plugd_tests::{alive, eventually};
use serde_json::json;

use super::{FP, data, kill, marks, pid_of, rewrite, teller, text};

const MANUAL: &str = "on_change = \"manual\"\nrestart = { backoff = \"20ms\" }\n";

#[test]
fn r_l14_under_manual_a_change_is_held_back_and_marked_until_a_restart_applies_it() {
    let sandbox = teller("", &format!("{MANUAL}config.ttl = 1\n"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    let generation = daemon.status("fp")["generation"].clone();

    sandbox.configure(&format!("{FP}{MANUAL}config.ttl = 2\nenv = {{ FOO = \"new\" }}\n"));
    let ran = daemon.plugd(&["reload"]).expect(0);
    assert!(ran.stdout.contains("plugd restart fp"), "it says how to apply it: {ran:?}");
    let report = daemon.json(&["reload"]);
    assert_eq!(report["restart_required"], json!(["fp"]), "still so: {report:#}");
    let status = daemon.status("fp");
    let required = &status["restart_required"];
    assert_eq!(required["changed"], json!(["config.ttl", "env.FOO"]), "{status:#}");
    assert!(text(&required["reason"]).contains("manual"), "{status:#}");
    assert_eq!(status["generation"], generation, "{status:#}");
    assert_eq!(data(&daemon, "fp.show"), before, "calls still show the old configuration");
    let shown = daemon.plugd(&["status", "fp"]).expect(0).stdout;
    assert!(shown.contains("restart required") && shown.contains("env.FOO"), "{shown}");

    daemon.plugd(&["restart", "fp"]).expect(0);
    let after = data(&daemon, "fp.show");
    assert_eq!((&after["config"], &after["foo"]), (&json!({"ttl": 2}), &json!("new")));
    assert!(daemon.status("fp")["restart_required"].is_null());
    daemon.stop();
}

#[test]
fn r_l14_a_change_that_is_taken_back_needs_no_restart() {
    let sandbox = teller("", &format!("{MANUAL}config.ttl = 1\n"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    let original = sandbox.read("plugd.toml");
    sandbox.configure(&format!("{FP}{MANUAL}config.ttl = 2\n"));
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(daemon.status("fp")["restart_required"]["changed"], json!(["config.ttl"]));
    sandbox.write("plugd.toml", &original);
    daemon.plugd(&["reload"]).expect(0);
    assert!(daemon.status("fp")["restart_required"].is_null());
    assert_eq!(data(&daemon, "fp.show"), before);
    daemon.stop();
}

#[test]
fn r_l14_a_crash_under_a_held_change_brings_back_what_ran_not_what_is_configured() {
    let sandbox = teller("", &format!("{MANUAL}config.ttl = 1\n"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    sandbox.configure(&format!("{FP}{MANUAL}config.ttl = 2\nenv = {{ FOO = \"new\" }}\n"));
    daemon.plugd(&["reload"]).expect(0);
    let pid = pid_of(&daemon.status("fp"));
    kill(pid);
    eventually("it is dead", || !alive(pid));
    let after = data(&daemon, "fp.show");
    assert_ne!(after["pid"], before["pid"]);
    assert_eq!((&after["config"], &after["foo"]), (&before["config"], &before["foo"]), "no silent swap");
    assert_eq!(daemon.status("fp")["restart_required"]["changed"], json!(["config.ttl", "env.FOO"]));
    daemon.stop();
}

#[test]
fn r_l14_a_program_that_changed_is_named_and_a_reload_of_that_plugin_is_no_restart_either() {
    let sandbox = teller("", MANUAL);
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    let spawned = marks(&sandbox, "fp", "spawned").len();
    rewrite(&sandbox, "two", "");
    daemon.plugd(&["reload", "fp"]).expect(0);
    let required = daemon.status("fp")["restart_required"].clone();
    assert_eq!(required["changed"], json!(["file main.py"]), "{required:#}");
    assert_eq!(data(&daemon, "fp.show"), before);
    assert_eq!(marks(&sandbox, "fp", "spawned").len(), spawned, "no process was made for it");
    daemon.plugd(&["restart", "fp"]).expect(0);
    assert_eq!(data(&daemon, "fp.show")["version"], "two");
    daemon.stop();
}
