//! Plugins that declare `reload`: a new configuration reaches the process that runs.

use plugd_tests::{Sandbox, alive, eventually};
use serde_json::json;

use super::{FP, data, marks, pid_of, teller, text};

/// Takes a new configuration; refuses one with a negative `ttl`, never answers where it is 13.
const RELOADS: &str = r#"
MANIFEST = {"features": {"reload": True}, "config_schema": {
    "type": "object", "properties": {"ttl": {"type": "integer", "default": 5}, "name": {"type": "string"}}}}


def on_request(method, params):
    if method != "reload":
        raise Failure("unknown method", code=-32601)
    mark("reloads")
    ttl = params["config"]["ttl"]
    if ttl < 0:
        raise Failure("a negative ttl makes no sense")
    if ttl == 13:
        return None
    CONFIG.clear()
    CONFIG.update(params["config"])
    return {}
"#;

fn reloads(lines: &str) -> Sandbox {
    teller(RELOADS, lines)
}

fn configure(sandbox: &Sandbox, lines: &str) {
    sandbox.configure(&format!("{FP}{lines}"));
}

#[test]
fn r_l13_a_plugin_that_declares_it_takes_its_new_configuration_in_the_same_process() {
    let sandbox = reloads("config.ttl = 1\n");
    let daemon = sandbox.serve();
    let first = data(&daemon, "fp.show");
    assert_eq!(first["config"], json!({"ttl": 1}));
    let before = daemon.status("fp");

    configure(&sandbox, "config.ttl = 2\n");
    let report = daemon.plugd(&["--output", "json", "reload"]).expect(0).json();
    assert!(report["restart_required"].is_null(), "{report:#}");
    assert!(!report["unchanged"].to_string().contains("fp"), "{report:#}");
    let second = data(&daemon, "fp.show");
    assert_eq!(second["config"], json!({"ttl": 2}));
    assert_eq!(second["pid"], first["pid"]);
    let after = daemon.status("fp");
    assert_eq!((&after["generation"], &after["starts"]), (&before["generation"], &before["starts"]));
    assert!(after["restart_required"].is_null(), "{after:#}");
    assert_eq!(marks(&sandbox, "fp", "inits").len(), 1, "init is not repeated");
    assert_eq!(marks(&sandbox, "fp", "reloads").len(), 1);

    configure(&sandbox, "");
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(data(&daemon, "fp.show")["config"], json!({"ttl": 5}), "defaults are filled in here, too");
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(marks(&sandbox, "fp", "reloads").len(), 2, "what did not change is not sent again");
    daemon.stop();
}

#[test]
fn r_l13_a_call_in_flight_is_not_touched_by_a_reload_in_place() {
    let sandbox = reloads("config.ttl = 1\n");
    let daemon = sandbox.serve();
    let pid = data(&daemon, "fp.show")["pid"].clone();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| daemon.json(&["call", "fp.wait"]));
        eventually("the call runs", || !marks(&sandbox, "fp", "waiting").is_empty());
        configure(&sandbox, "config.ttl = 2\n");
        daemon.plugd(&["reload"]).expect(0);
        assert_eq!(marks(&sandbox, "fp", "reloads").len(), 1, "it came while the call ran");
        sandbox.write("plugins/fp/open", "");
        let result = call.join().expect("it ends");
        assert_eq!((&result["status"], &result["data"]["pid"]), (&json!("ok"), &pid), "{result:#}");
    });
    assert_eq!(data(&daemon, "fp.show")["config"], json!({"ttl": 2}));
    daemon.stop();
}

#[test]
fn a_configuration_that_a_plugin_refuses_leaves_the_old_one_in_use_and_marks_it() {
    let sandbox = reloads("config.ttl = 1\n");
    let daemon = sandbox.serve();
    let first = data(&daemon, "fp.show");

    configure(&sandbox, "config.ttl = -1\n");
    let report = daemon.json(&["reload"]);
    assert_eq!(report["restart_required"], json!(["fp"]), "{report:#}");
    let status = daemon.status("fp");
    assert_eq!(status["restart_required"]["changed"], json!(["config.ttl"]), "{status:#}");
    let reason = text(&status["restart_required"]["reason"]);
    assert!(reason.contains("a negative ttl makes no sense"), "{reason}");
    assert_eq!(status["state"], "ready", "{status:#}");
    assert_eq!(data(&daemon, "fp.show"), first, "the old configuration is in use, in the old process");
    let shown = daemon.plugd(&["status", "fp"]).expect(0).stdout;
    assert!(shown.contains("config.ttl") && shown.contains("a negative ttl"), "{shown}");

    configure(&sandbox, "config.ttl = 3\n");
    daemon.plugd(&["reload"]).expect(0);
    let second = data(&daemon, "fp.show");
    assert_eq!((&second["config"], &second["pid"]), (&json!({"ttl": 3}), &first["pid"]));
    assert!(daemon.status("fp")["restart_required"].is_null());
    daemon.stop();
}

#[test]
fn a_reload_in_place_that_is_never_answered_is_given_up_and_the_old_configuration_serves() {
    let sandbox = reloads("init_timeout = \"2s\"\nconfig.ttl = 1\n");
    let daemon = sandbox.serve();
    let first = data(&daemon, "fp.show");
    configure(&sandbox, "init_timeout = \"2s\"\nconfig.ttl = 13\n");
    let report = daemon.json(&["reload"]);
    assert_eq!(report["restart_required"], json!(["fp"]), "{report:#}");
    let status = daemon.status("fp");
    assert!(text(&status["restart_required"]["reason"]).contains("no answer to reload"), "{status:#}");
    assert_eq!(data(&daemon, "fp.show"), first);

    daemon.plugd(&["restart", "fp"]).expect(0);
    let restarted = data(&daemon, "fp.show");
    assert_eq!(restarted["config"], json!({"ttl": 13}), "a restart applies it");
    assert_ne!(restarted["pid"], first["pid"]);
    assert!(daemon.status("fp")["restart_required"].is_null());
    daemon.stop();
}

#[test]
fn what_is_no_configuration_of_its_own_needs_a_new_process_though_it_declares_reload() {
    let sandbox = reloads("config.ttl = 1\n");
    let daemon = sandbox.serve();
    let first = data(&daemon, "fp.show");
    let old = pid_of(&daemon.status("fp"));
    configure(&sandbox, "config.ttl = 2\nenv = { FOO = \"new\" }\n");
    daemon.plugd(&["reload"]).expect(0);
    let second = data(&daemon, "fp.show");
    assert_eq!((&second["config"], &second["foo"]), (&json!({"ttl": 2}), &json!("new")));
    assert_ne!(second["pid"], first["pid"]);
    assert_eq!(marks(&sandbox, "fp", "reloads").len(), 0);
    eventually("the old process is gone", || !alive(old));
    daemon.stop();
}
