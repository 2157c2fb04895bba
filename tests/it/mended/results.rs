//! What a call's result says when its plugin, its caller or the daemon goes while it is under way.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use plugd_tests::{Ran, Sandbox, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Tells its version; its `wait` ends once there is a file `open` in its folder.
const WAITER: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("show", "wait")]
VERSION = "1.0.0"
MANIFEST = {"version": VERSION}


def handle(operation, arguments, params):
    if operation == "wait":
        mark("waiting")
        while not os.path.exists("open"):
            time.sleep(0.01)
    return {"data": VERSION}
"#;

fn waiter(sandbox: &Sandbox, version: &str) -> String {
    sandbox.python("fp", &WAITER.replace("1.0.0", version))
}

/// Begins a call that is not waited for.
fn begin(sandbox: &Sandbox, words: &[&str]) -> Child {
    let mut command = sandbox.command(&[&["--output", "json", "call"], words].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

fn ended(call: Child) -> Ran {
    call.wait_with_output().expect("it ends").into()
}

fn waits(sandbox: &Sandbox) -> bool {
    !sandbox.read("plugins/fp/waiting").is_empty()
}

/// Begins a call that runs and one that waits for its lane.
fn begin_two(sandbox: &Sandbox, daemon: &plugd_tests::Daemon<'_>) -> (Child, Child) {
    let running = begin(sandbox, &["fp.wait", "--timeout", "60s"]);
    eventually("one call runs", || waits(sandbox));
    let queued = begin(sandbox, &["fp.show", "--timeout", "60s"]);
    eventually("one call is queued", || daemon.status("fp")["queued"] == 1);
    (running, queued)
}

fn micros(result: &Value, member: &str) -> u64 {
    result["meta"][member].as_u64().unwrap_or_else(|| panic!("no {member}: {result:#}"))
}

#[test]
fn calls_of_a_plugin_that_is_removed_are_not_told_to_come_again() {
    let sandbox = Sandbox::new("");
    let table = waiter(&sandbox, "1.0.0");
    sandbox.configure(&format!("{table}drain_timeout = \"300ms\"\n"));
    let daemon = sandbox.serve();
    let (running, queued) = begin_two(&sandbox, &daemon);
    daemon.plugd(&["remove", "fp"]).expect(0);
    let queued = ended(queued).expect(4).json();
    let expected = (&json!(1002), &json!(false), &json!("not_run"));
    let error = &queued["error"];
    assert_eq!((&error["code"], &error["retryable"], &error["outcome"]), expected, "{queued:#}");
    let running = ended(running).expect(6).json();
    let expected = (&json!(6003), &json!(false), &json!("unknown"));
    let error = &running["error"];
    assert_eq!((&error["code"], &error["retryable"], &error["outcome"]), expected, "{running:#}");
    for result in [&queued, &running] {
        assert!(result["error"]["message"].to_string().contains("fp was removed"), "{result:#}");
        assert!(!result["error"]["hint"].to_string().contains("plugd start"), "{result:#}");
    }
    daemon.stop();
}

#[test]
fn a_result_names_the_version_of_the_run_that_answered() {
    let sandbox = Sandbox::new("");
    let table = waiter(&sandbox, "1.0.0");
    sandbox.configure(&format!("{table}drain_timeout = \"60s\"\n"));
    let daemon = sandbox.serve();
    let (running, queued) = begin_two(&sandbox, &daemon);
    waiter(&sandbox, "9.0.0");
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| daemon.plugd(&["reload"]).expect(0));
        let queued = ended(queued).expect(0).json();
        let version = &queued["meta"]["plugin_version"];
        assert_eq!((&queued["data"], version), (&json!("9.0.0"), &json!("9.0.0")), "{queued:#}");
        sandbox.write("plugins/fp/open", "");
        reload.join().expect("it ends");
    });
    let running = ended(running).expect(0).json();
    let version = &running["meta"]["plugin_version"];
    assert_eq!((&running["data"], version), (&json!("1.0.0"), &json!("1.0.0")), "{running:#}");
    daemon.stop();
}

#[test]
fn a_bare_name_of_a_plugin_that_is_down_says_so_without_a_daemon_too() {
    let sandbox = Sandbox::new("");
    let table = waiter(&sandbox, "1.0.0");
    sandbox.configure(&format!("{table}{}", sandbox.shell("other")));
    let error =
        |code: i32| sandbox.plugd(&["--output", "json", "call", "show"]).expect(code).json()["error"].clone();
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "show"])["data"], "1.0.0");
    daemon.plugd(&["stop", "fp"]).expect(0);
    let with = error(6);
    daemon.stop();
    assert_eq!((&with["name"], error(6)["name"].clone()), (&json!("stopped"), json!("stopped")));
    sandbox.plugd(&["disable", "fp"]).expect(0);
    assert_eq!(error(6)["name"], "disabled");
    let unknown = sandbox.plugd(&["--output", "json", "call", "nosuch"]).expect(4).json();
    assert_eq!(unknown["error"]["name"], "unknown_operation", "{unknown:#}");
}

#[test]
fn the_times_of_a_call_are_told_however_it_ended() {
    let sandbox = Sandbox::new("");
    let table = waiter(&sandbox, "1.0.0");
    sandbox.configure(&format!("{table}queue_timeout = \"400ms\"\n"));
    let daemon = sandbox.serve();
    let running = begin(&sandbox, &["fp.wait", "--timeout", "60s"]);
    eventually("one call runs", || waits(&sandbox));
    let queued = daemon.plugd(&["--output", "json", "call", "fp.show"]).expect(5).json();
    assert_eq!(queued["error"]["name"], "queue_timed_out", "{queued:#}");
    assert!(micros(&queued, "queue_us") >= 400_000 && micros(&queued, "run_us") == 0, "{queued:#}");
    let active = daemon.json(&["status"])["daemon"]["calls"][0].clone();
    let call_id = active["call_id"].as_str().unwrap_or_else(|| panic!("no call: {active:#}"));
    daemon.plugd(&["cancel", call_id]).expect(0);
    let cancelled = ended(running).json();
    assert_eq!(cancelled["status"], "cancelled", "{cancelled:#}");
    assert!(micros(&cancelled, "run_us") >= 400_000, "{cancelled:#}");
    sandbox.write("plugins/fp/open", "");
    daemon.stop();
}

#[test]
fn a_call_whose_result_is_lost_has_no_id_but_its_operation() {
    let sandbox = Sandbox::new("");
    let table = waiter(&sandbox, "1.0.0");
    sandbox.configure(&table);
    let mut daemon = sandbox.serve();
    let running = begin(&sandbox, &["fp.wait", "--timeout", "60s"]);
    eventually("the call runs", || waits(&sandbox));
    daemon.signal(Signal::KILL);
    daemon.wait();
    let lost = ended(running).expect(9).json();
    assert_eq!(lost["error"]["outcome"], "unknown", "{lost:#}");
    assert_eq!(
        (&lost["meta"]["operation"], lost["meta"].get("call_id")),
        (&json!("fp.wait"), None),
        "{lost:#}"
    );
}

#[test]
fn a_call_with_a_timeout_ends_although_the_daemon_hangs() {
    let sandbox = Sandbox::new("");
    let table = waiter(&sandbox, "1.0.0");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let before = Instant::now();
    let running = begin(&sandbox, &["fp.wait", "--timeout", "3s"]);
    eventually("the call runs", || waits(&sandbox));
    daemon.signal(Signal::STOP);
    let unheard = begin(&sandbox, &["fp.wait", "a=1", "--timeout", "1s"]);
    let results = [ended(running), ended(unheard)];
    let took = before.elapsed();
    daemon.signal(Signal::CONT);
    for result in results {
        let result = result.expect(9).json();
        assert_eq!(result["error"]["name"], "daemon_unreachable", "{result:#}");
    }
    assert!(took < Duration::from_secs(30), "they waited for {took:?}");
    sandbox.write("plugins/fp/open", "");
    daemon.stop();
}

#[test]
fn a_start_without_a_daemon_renews_what_is_remembered() {
    let sandbox = Sandbox::new("");
    let grows = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in open("names").read().split()]
"#;
    sandbox.configure(&sandbox.python("fp", grows));
    sandbox.write("plugins/fp/names", "echo extra");
    let listed = || {
        let list = sandbox.json(&["list"]);
        let plugin = list["plugins"][0].clone();
        (plugin.to_string().contains("fp.extra") || plugin.to_string().contains("\"extra\""), plugin)
    };
    let (has, plugin) = listed();
    assert!(has, "{plugin:#}");
    sandbox.write("plugins/fp/names", "echo");
    sandbox.plugd(&["call", "fp.echo"]).expect(0);
    let (has, plugin) = listed();
    assert!(!has, "{plugin:#}");
}

#[test]
fn a_plugin_is_told_which_call_failed_even_where_the_other_plugin_is_gone() {
    let sandbox = Sandbox::new("");
    let outer = r#"
MANIFEST = {"requires": {"inner": {"version": "*", "optional": True}}}

def handle(operation, arguments, params):
    return {"data": host_call("inner.echo", {}, params["context"]["call_id"])["error"]["data"]}
"#;
    sandbox.configure(&sandbox.python("outer", outer));
    let daemon = sandbox.serve();
    let told = daemon.json(&["call", "outer.echo"])["data"].clone();
    assert_eq!(told["name"], "unknown_plugin", "{told:#}");
    assert_eq!(told["cause"]["operation"], "inner.echo", "{told:#}");
    assert_eq!(told["cause"]["error"]["code"], 1002, "{told:#}");
    assert!(told["cause"]["call_id"].is_string(), "{told:#}");
    daemon.stop();
}
