//! Spares: processes that are ready to take the place of one that fails.

use plugd_tests::{Daemon, Sandbox, alive, eventually, kill};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A plugin that leaves a line for each call, and the shell around it that reads what version it declares.
fn sandbox(more: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("a");
    let table = table.replace(
        r#"["sh", "main.sh"]"#,
        r#"["sh", "-c", "VERSION=$(cat version 2>/dev/null); export VERSION; exec sh main.sh"]"#,
    );
    sandbox.configure(&format!("{table}spares = 1\n{more}"));
    sandbox
}

fn number(value: &Value) -> u32 {
    value.as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or_else(|| panic!("{value}"))
}

/// Waits until the spare is ready, and returns the plugin's status.
#[track_caller]
fn spared(daemon: &Daemon<'_>) -> Value {
    eventually("a spare is ready", || daemon.status("a")["spare"]["ready"] == true);
    daemon.status("a")
}

fn called_pid(daemon: &Daemon<'_>) -> u32 {
    number(&daemon.json(&["call", "a.pid", "--timeout", "20s"])["data"]["pid"])
}

fn kinds(daemon: &Daemon<'_>) -> Vec<String> {
    let events = daemon.json(&["events", "a", "--tail", "1000"]);
    events
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|event| event["kind"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn a_spare_takes_the_place_of_a_run_that_is_killed() {
    // With such a pause nobody would get an answer from a run that is started anew.
    let sandbox = sandbox("restart = { backoff = \"10m\", backoff_cap = \"10m\" }\n");
    let daemon = sandbox.serve();
    let first = called_pid(&daemon);
    let before = spared(&daemon);
    let (spare, run) = (number(&before["spare"]["pid"]), before["spare"]["generation"].clone());
    assert_eq!(number(&before["pid"]), first);
    for _ in 0..10 {
        assert_eq!(called_pid(&daemon), first, "a spare is not called before it takes over");
    }
    let shown = daemon.plugd(&["status", "a"]).expect(0).stdout;
    assert!(shown.contains(&format!("run {run} is ready to take over, pid {spare}")), "{shown}");

    kill(first, Signal::KILL);
    eventually("it is gone", || !alive(first));
    assert_eq!(called_pid(&daemon), spare);
    let after = daemon.status("a");
    let shown = (&after["state"], &after["generation"], &after["restarts"]);
    assert_eq!(shown, (&json!("ready"), &run, &json!(1)), "{after:#}");
    assert!(after["spare"]["next_start"].is_u64() && after["spare"]["ready"] == false, "{after:#}");
    let exits = after["exits"].as_array().expect("its end is told");
    assert_eq!(exits.last().map(|exit| &exit["unasked"]), Some(&json!(true)), "{after:#}");
    let kinds = kinds(&daemon);
    for kind in ["run.spare_ready", "run.took_over"] {
        assert!(kinds.iter().any(|it| it == kind), "{kind}: {kinds:?}");
    }
    daemon.stop();
}

#[test]
fn after_a_back_off_there_is_another_spare() {
    let sandbox = sandbox("restart = { backoff = \"10ms\" }\n");
    let daemon = sandbox.serve();
    called_pid(&daemon);
    for _ in 0..3 {
        let before = spared(&daemon);
        // What it dies of in a call is the call's, and only the next one is the spare's.
        let crashed = daemon.plugd(&["--output", "json", "call", "a.crash"]).json();
        assert_eq!(crashed["status"], "error", "{crashed:#}");
        assert_eq!(called_pid(&daemon), number(&before["spare"]["pid"]));
    }
    assert_eq!(spared(&daemon)["restarts"], 3, "each crash counts");
    daemon.stop();
}

#[test]
fn a_plugin_that_fails_too_often_is_given_up_with_its_spare() {
    let sandbox = sandbox("restart = { backoff = \"10ms\", max = 1 }\n");
    let daemon = sandbox.serve();
    called_pid(&daemon);
    spared(&daemon);
    daemon.plugd(&["call", "a.crash"]);
    spared(&daemon);
    daemon.plugd(&["call", "a.crash"]);
    let status = daemon.wait_for_state("a", "failed");
    assert!(status["reason"].as_str().is_some_and(|reason| reason.contains("crash loop")), "{status:#}");
    eventually("its spare is gone, too", || sandbox.processes_in("plugins/a").is_empty());
    daemon.stop();
}

#[test]
fn a_spare_ends_with_its_run() {
    let sandbox = sandbox("idle_timeout = \"300ms\"\n");
    let daemon = sandbox.serve();
    called_pid(&daemon);
    daemon.wait_for_state("a", "idle");
    assert!(sandbox.processes_in("plugins/a").is_empty(), "neither runs on");
    assert!(daemon.status("a").get("spare").is_none());

    let text = sandbox.read("plugd.toml").replace("idle_timeout = \"300ms\"\n", "");
    sandbox.write("plugd.toml", &text);
    daemon.plugd(&["reload"]).expect(0);
    daemon.plugd(&["start", "a"]).expect(0);
    spared(&daemon);
    let stopped = daemon.json(&["stop", "a"]);
    assert_eq!(stopped["plugins"][0]["ended"], "exited", "{stopped:#}");
    assert!(sandbox.processes_in("plugins/a").is_empty(), "stopped means that nothing is left");

    daemon.plugd(&["start", "a"]).expect(0);
    spared(&daemon);
    // It is taken up while the run serves on.
    let serving = daemon.status("a")["pid"].clone();
    let text = sandbox.read("plugd.toml").replace("spares = 1\n", "");
    sandbox.write("plugd.toml", &text);
    daemon.plugd(&["reload"]).expect(0);
    eventually("the spare is gone", || sandbox.processes_in("plugins/a").len() == 1);
    assert_eq!(daemon.status("a")["pid"], serving);
    daemon.stop();
}

#[test]
fn a_spare_that_cannot_be_is_told_of_and_harms_nothing() {
    let sandbox = sandbox("restart = { backoff = \"10m\", backoff_cap = \"10m\" }\n");
    // Whoever is first has what only one can have.
    sandbox.write("plugins/a/version", "1.0.0");
    let daemon = sandbox.serve();
    let first = called_pid(&daemon);
    spared(&daemon);
    sandbox.write("plugins/a/refuses", "the port is taken");
    kill(number(&daemon.status("a")["spare"]["pid"]), Signal::KILL);
    eventually("it is told", || daemon.status("a")["spare"]["failure"].is_string());
    assert_eq!(called_pid(&daemon), first, "the plugin goes on");
    let status = daemon.status("a");
    assert_eq!((&status["state"], &status["restarts"]), (&json!("ready"), &json!(0)), "{status:#}");
    assert!(kinds(&daemon).iter().any(|kind| kind == "run.spare_failed"));

    // An operator's start forgives that; what only one can have is still had.
    daemon.plugd(&["start", "a"]).expect(0);
    let failure = |words: &str| {
        eventually(words, || {
            daemon.status("a")["spare"]["failure"].as_str().is_some_and(|failure| failure.contains(words))
        });
    };
    failure("the port is taken");

    // A program that says something else by now is no spare of the one that serves.
    std::fs::remove_file(sandbox.path().join("plugins/a/refuses")).expect("it was written");
    sandbox.write("plugins/a/version", "2.0.0");
    daemon.plugd(&["start", "a"]).expect(0);
    failure("it declares something else than the run that serves");
    assert_eq!(called_pid(&daemon), first);
    assert_eq!(daemon.status("a")["version"], "1.0.0");
    daemon.stop();
}

#[test]
fn a_changed_plugin_has_another_spare() {
    let sandbox = sandbox("");
    let daemon = sandbox.serve();
    called_pid(&daemon);
    let before = spared(&daemon);
    let text = sandbox.read("plugd.toml").replace("spares = 1\n", "spares = 1\nenv = { WORD = \"new\" }\n");
    sandbox.write("plugd.toml", &text);
    let reloaded = daemon.json(&["reload"]);
    assert_eq!(reloaded["changed"], json!(["a"]), "{reloaded:#}");
    let old = [number(&before["pid"]), number(&before["spare"]["pid"])];
    eventually("neither of the old ones is left", || !old.iter().any(|pid| alive(*pid)));
    let after = spared(&daemon);
    let environment = std::fs::read(format!("/proc/{}/environ", after["spare"]["pid"])).expect("it runs");
    assert!(String::from_utf8_lossy(&environment).contains("WORD=new"));
    daemon.stop();
}

/// Ends in the first attempt of a call, and answers the second one.
const TWICE: &str = r#"
OPERATIONS = [{"name": "query", "input_schema": {"type": "object"}, "effects": {"read_only": True}}]

def handle(operation, arguments, params):
    mark("ran", str(os.getpid()))
    if params["context"]["attempt"] == 1:
        os._exit(1)
    return {"data": os.getpid()}
"#;

#[test]
fn a_call_that_may_be_tried_again_is_answered_by_the_spare() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("a", TWICE);
    sandbox
        .configure(&format!("{table}spares = 1\nrestart = {{ backoff = \"10m\", backoff_cap = \"10m\" }}\n"));
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "a"]).expect(0);
    let before = spared(&daemon);
    let called = daemon.json(&["call", "a.query", "--timeout", "20s"]);
    assert_eq!(
        (&called["data"], &called["meta"]["attempt"]),
        (&before["spare"]["pid"], &json!(2)),
        "{called:#}"
    );
    let ran = format!("{}\n{}\n", before["pid"], before["spare"]["pid"]);
    assert_eq!(sandbox.read("plugins/a/ran"), ran, "each ran it once");
    daemon.stop();
}
