//! The main job, once through.

use plugd_tests::Sandbox;

#[test]
fn a_call_goes_through_a_daemon_to_a_plugin_and_back() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let result = daemon.json(&["call", "fp.echo", "text=hello"]);
    assert_eq!(result["status"], "ok", "{result:#}");
    assert_eq!(result["data"]["text"], "hello");
    assert_eq!(daemon.status("fp")["state"], "ready");
    daemon.stop();
}

#[test]
fn a_call_works_without_a_daemon() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let result = sandbox.json(&["call", "fp.echo", "text=hello"]);
    assert_eq!(result["data"]["text"], "hello", "{result:#}");
}
