//! What is broken in a scanned folder, or misnamed, hurts nobody else.

use plugd_tests::Sandbox;

/// A plugin in a scanned folder, and the configuration that scans it.
fn scanned() -> Sandbox {
    let sandbox = Sandbox::new("[scan]\ndirs = [\"plugins\"]\n");
    sandbox.fixture("bare.sh", "plugins/good/main.sh");
    sandbox.write("plugins/good/plugin.toml", "command = [\"sh\", \"main.sh\"]\n");
    sandbox
}

#[test]
fn a_broken_folder_among_others_keeps_none_of_them_from_running() {
    let sandbox = scanned();
    sandbox.configure("[scan]\ndirs = [\"plugins\", \"nowhere\"]\n");
    sandbox.write("plugins/bad/plugin.toml", "command = [");
    assert_eq!(sandbox.json(&["call", "good.pid"])["status"], "ok", "without a daemon");
    let checked = sandbox.plugd(&["config", "check"]).expect(2);
    assert!(checked.stderr.contains("bad/plugin.toml: line 1: "), "{checked:?}");
    assert!(checked.stderr.contains("nowhere: cannot be scanned"), "{checked:?}");
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "good.pid"])["status"], "ok");
    let listed = daemon.json(&["list"])["skipped"].to_string();
    assert!(listed.contains("bad/plugin.toml") && listed.contains("line 1: "), "{listed}");
    let told = daemon.plugd(&["doctor"]).expect(9).stdout;
    assert!(told.contains("nowhere: cannot be scanned"), "{told}");
    sandbox.configure("[scan]\ndirs = [\"plugins\"]\n");
    let told = daemon.plugd(&["doctor"]).expect(6).stdout;
    assert!(told.contains("bad/plugin.toml: line 1: "), "{told}");
    assert!(sandbox.read("daemon.log").contains("passed over: "), "the log says it too");
    let called = daemon.plugd(&["call", "bad.pid"]).expect(4);
    assert!(called.stderr.contains("bad/plugin.toml: line 1: "), "{called:?}");
    sandbox.write("plugins/bad/plugin.toml", "command = [\"sh\", \"../good/main.sh\"]\n");
    assert_eq!(daemon.json(&["reload"])["added"], serde_json::json!(["bad"]));
    daemon.stop();
}

#[test]
fn a_reload_takes_no_plugin_away_because_its_folder_broke_and_passes_over_a_new_one() {
    let sandbox = scanned();
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "good.pid"])["status"], "ok");
    let pid = daemon.status("good")["pid"].clone();
    sandbox.write("plugins/bad/plugin.toml", "command = [");
    daemon.plugd(&["reload"]).expect(0);
    sandbox.write("plugins/good/plugin.toml", "command = [\"sh\"");
    let refused = daemon.plugd(&["reload"]).expect(2);
    assert!(refused.stderr.contains("good/plugin.toml: line 1: "), "{refused:?}");
    assert!(!refused.stderr.contains("bad/plugin.toml"), "that one is nobody's: {refused:?}");
    assert_eq!(daemon.json(&["call", "good.pid"])["status"], "ok");
    assert_eq!(daemon.status("good")["pid"], pid, "the same process");
    daemon.stop();
}

#[test]
fn a_program_that_lies_in_the_folder_and_not_on_path_is_said_to_lie_there() {
    let sandbox = Sandbox::new("[plugins.here]\ncommand = [\"here.sh\"]\n");
    sandbox.fixture("bare.sh", "here.sh");
    let expected = "here.sh is not on PATH; did you mean ./here.sh?";
    let called = sandbox.plugd(&["call", "here.echo"]);
    assert!(called.stderr.contains(expected), "{called:?}");
    let checked = sandbox.plugd(&["config", "check"]).expect(2);
    assert!(checked.stderr.contains(expected), "{checked:?}");
}
