//! Cases about reloads: several at once, files half written, calls in flight, edits of one of many.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use plugd_tests::{Sandbox, alive, eventually};
use serde_json::{Value, json};

use super::framing::data_of;
use crate::reloading::{events_of, expect_reloads, living, marks, pid_of, text};

/// Tells its version and process; its `wait` ends once there is a file `open` in its folder.
const VERSIONED: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("show", "wait")]
VERSION = "one"
mark("spawned", str(os.getpid()))


def handle(operation, arguments, params):
    if operation == "wait":
        mark("waiting")
        while not os.path.exists("open"):
            time.sleep(0.01)
    return {"data": {"version": VERSION, "pid": os.getpid(), "x": os.environ.get("X")}}
"#;

fn rewrite(sandbox: &Sandbox, name: &str, version: &str) -> String {
    sandbox.python(name, &VERSIONED.replace("\"one\"", &format!("{version:?}")))
}

#[test]
fn c128_reloads_at_the_same_time_all_succeed_and_leave_one_process() {
    let sandbox = Sandbox::new("");
    let slow = format!("{VERSIONED}\ndef on_init(params):\n    time.sleep(1)\n    return {{}}\n");
    let table = sandbox.python("p", &slow);
    sandbox.configure(&format!("watch = true\n\n{table}"));
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.show"]);
    let before = daemon.status("p")["generation"].as_u64().expect("a run");
    let reported: Vec<u64> = std::thread::scope(|scope| {
        let reloads: Vec<_> =
            (0..3).map(|_| scope.spawn(|| daemon.plugd(&["--output", "json", "reload", "p"]))).collect();
        // Touched at the same time: the watch sees the file, too.
        let program = File::options().append(true).open(sandbox.path().join("plugins/p/main.py"));
        program.expect("it is there").set_modified(SystemTime::now()).expect("it is touched");
        let generation = |reload: std::thread::ScopedJoinHandle<'_, plugd_tests::Ran>| {
            let report = reload.join().expect("it ends").expect(0).json();
            report["generations"]["p"].as_u64().unwrap_or_else(|| panic!("no generation: {report:#}"))
        };
        reloads.into_iter().map(generation).collect()
    });
    eventually("one process is left, and serves", || {
        let status = daemon.status("p");
        status["replacing"].is_null()
            && status["pid"].as_u64().is_some_and(|pid| {
                living(&sandbox, "p").iter().map(|pid| u64::from(*pid)).collect::<Vec<_>>() == [pid]
            })
    });
    let status = daemon.status("p");
    let now = status["generation"].as_u64().expect("a run");
    assert!(reported.iter().all(|run| (before + 1..=now).contains(run)), "{reported:?} of {now}");
    let serving = data_of(&daemon, &["p.show"]);
    assert_eq!(serving["pid"], status["pid"], "none of the old ones answers");
    assert!(status["restart_required"].is_null(), "{status:#}");
    daemon.stop();
}

#[test]
fn c128_reloads_at_the_same_time_answer_with_the_run_that_serves_in_the_end() {
    let sandbox = Sandbox::new("");
    let slow = format!("{VERSIONED}\ndef on_init(params):\n    time.sleep(1)\n    return {{}}\n");
    let table = sandbox.python("p", &slow);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.show"]);
    std::thread::scope(|scope| {
        let reload = || daemon.plugd(&["--output", "json", "reload", "p"]);
        let first = scope.spawn(reload);
        eventually("a new run is on its way", || daemon.status("p")["replacing"].is_u64());
        let others = [scope.spawn(reload), scope.spawn(reload)];
        for reload in [first].into_iter().chain(others) {
            let report = reload.join().expect("it ends").expect(0).json();
            let serves = daemon.status("p")["generation"].clone();
            assert!(serves.is_u64() && report["generations"]["p"] == serves, "{serves}: {report:#}");
        }
    });
    eventually("one process is left", || living(&sandbox, "p").len() == 1);
    daemon.stop();
}

#[test]
fn c129_a_file_being_rewritten_in_place_is_taken_up_once_and_a_broken_one_never() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", VERSIONED);
    sandbox.configure(&format!("watch = true\n\n{table}start = \"eager\"\nenv = {{ X = \"old\" }}\n"));
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    daemon.wait_for_state("fp", "ready");
    let before = data_of(&daemon, &["fp.show"]);
    let generation = daemon.status("fp")["generation"].as_u64().expect("a run");

    sandbox.write("new", &sandbox.read("plugd.toml").replace("old", "new"));
    let writer = "
import time
text = open('new').read()
with open('plugd.toml', 'w') as file:
    time.sleep(0.2)
    half = text.index('python3') + 3
    for part in (text[:half], text[half:]):
        file.write(part)
        file.flush()
        time.sleep(0.2)
";
    let mut write = Command::new("python3");
    write.args(["-c", writer]).current_dir(sandbox.path()).stdin(Stdio::null());
    assert!(write.status().expect("python3 runs").success());
    eventually("the whole file is taken up", || data_of(&daemon, &["fp.show"])["x"] == "new");
    let reloaded = daemon.status("fp");
    assert_eq!(reloaded["generation"].as_u64(), Some(generation + 1), "{reloaded:#}");
    expect_reloads(&daemon, 1);
    assert_ne!(before["pid"], reloaded["pid"]);

    let whole = sandbox.read("plugd.toml");
    let refused_before = events_of(&daemon, "config.refused").len();
    sandbox.write("plugd.toml", &whole.replace("command", "comand"));
    // The command line cannot read that file either, so the daemon's log is looked at.
    eventually("it is refused", || sandbox.read("daemon.log").contains("comand"));
    sandbox.write("plugd.toml", &whole);
    let refused = events_of(&daemon, "config.refused");
    assert_eq!(refused.len(), refused_before + 1, "{refused:#?}");
    assert!(text(&refused[refused_before]["reason"]).contains("comand"), "{refused:#?}");
    let after = daemon.status("fp");
    assert_eq!((&after["pid"], &after["generation"]), (&reloaded["pid"], &reloaded["generation"]));
    assert_eq!(data_of(&daemon, &["fp.show"])["x"], "new");
    daemon.stop();
}

#[test]
fn c135_a_call_in_flight_ends_on_the_old_run_and_a_new_one_goes_to_the_new() {
    let sandbox = Sandbox::new("");
    let table = rewrite(&sandbox, "fp", "one");
    sandbox.configure(&format!("{table}drain_timeout = \"60s\"\n"));
    let daemon = sandbox.serve();
    let before = data_of(&daemon, &["fp.show"]);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| data_of(&daemon, &["fp.wait"]));
        eventually("the call runs", || !marks(&sandbox, "fp", "waiting").is_empty());
        rewrite(&sandbox, "fp", "two");
        let reload = scope.spawn(|| daemon.plugd(&["reload"]).expect(0));
        eventually("calls go to the new one", || daemon.status("fp")["pid"] != before["pid"]);
        let meanwhile = data_of(&daemon, &["fp.show"]);
        assert_eq!(meanwhile["version"], "two", "while the old one drains");
        assert_eq!(living(&sandbox, "fp").len(), 2);
        sandbox.write("plugins/fp/open", "");
        assert_eq!(call.join().expect("it ends"), before, "it ended where it began");
        reload.join().expect("it ends");
    });
    let old = u32::try_from(before["pid"].as_u64().expect("a pid")).expect("a pid");
    eventually("the old one is gone", || !alive(old));
    daemon.stop();
}

#[test]
fn c135_a_call_longer_than_the_drain_is_ended_and_told_that_the_plugin_was_reloaded() {
    let sandbox = Sandbox::new("");
    let table = rewrite(&sandbox, "fp", "one");
    sandbox.configure(&format!("{table}drain_timeout = \"300ms\"\n"));
    let daemon = sandbox.serve();
    data_of(&daemon, &["fp.show"]);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| daemon.plugd(&["--output", "json", "call", "fp.wait", "--timeout", "60s"]));
        eventually("the call runs", || !marks(&sandbox, "fp", "waiting").is_empty());
        rewrite(&sandbox, "fp", "two");
        daemon.plugd(&["reload"]).expect(0);
        let failed = call.join().expect("it ends").expect(6).json();
        assert_eq!(failed["error"]["outcome"], "unknown", "{failed:#}");
        assert!(text(&failed["error"]["message"]).contains("reload"), "{failed:#}");
        let (name, retryable) = (&failed["error"]["name"], &failed["error"]["retryable"]);
        assert_eq!((name, retryable), (&json!("reloaded"), &json!(false)), "{failed:#}");
        let run = failed["meta"]["run_us"].as_u64().expect("a time");
        assert!(run < 30_000_000, "it did not wait for its own deadline: {failed:#}");
    });
    assert_eq!(data_of(&daemon, &["fp.show"])["version"], "two");
    daemon.stop();
}

#[test]
fn c135_under_manual_the_old_one_serves_on_and_is_marked() {
    let sandbox = Sandbox::new("");
    let table = rewrite(&sandbox, "fp", "one");
    sandbox.configure(&format!("{table}on_change = \"manual\"\n"));
    let daemon = sandbox.serve();
    let before = data_of(&daemon, &["fp.show"]);
    rewrite(&sandbox, "fp", "two");
    let report = daemon.plugd(&["--output", "json", "reload"]).expect(0).json();
    assert_eq!(report["restart_required"], json!(["fp"]), "{report:#}");
    assert_eq!(data_of(&daemon, &["fp.show"]), before);
    let status = daemon.status("fp");
    assert_eq!(status["restart_required"]["changed"], json!(["file main.py"]), "{status:#}");
    daemon.plugd(&["restart", "fp"]).expect(0);
    assert_eq!(data_of(&daemon, &["fp.show"])["version"], "two");
    daemon.stop();
}

#[test]
fn c137_editing_one_entry_restarts_that_plugin_once_and_an_edit_of_nothing_restarts_none() {
    let sandbox = Sandbox::new("");
    let [a, b, c] =
        ["a", "b", "c"].map(|name| format!("{}start = \"eager\"\n", rewrite(&sandbox, name, "one")));
    let with = |x: &str| format!("{b}env = {{ X = {x:?}, Y = \"same\" }}\n");
    sandbox.configure(&[a.clone(), with("1"), c.clone()].concat());
    let daemon = sandbox.serve();
    let runs = || -> Vec<Value> {
        let run = |name| {
            let status = daemon.wait_for_state(name, "ready");
            json!([pid_of(&status), status["generation"]])
        };
        ["a", "b", "c"].into_iter().map(run).collect()
    };
    let first = runs();
    let text = sandbox.read("plugd.toml");
    sandbox.write("plugd.toml", &text);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(runs(), first, "saved again as it was");
    let turned = b.lines().rev().filter(|line| !line.starts_with('[')).collect::<Vec<_>>().join("\n");
    let reordered = format!("{c}\n# b\n[plugins.b]\nenv = {{ Y = \"same\", X = \"1\" }}\n{turned}\n\n{a}");
    sandbox.configure(&reordered);
    let report = daemon.json(&["reload"]);
    assert_eq!(report["unchanged"], json!(["a", "b", "c"]), "{report:#}");
    assert_eq!(runs(), first, "other order, other comments");

    sandbox.configure(&[a.clone(), with("2"), c.clone()].concat());
    let report = daemon.json(&["reload"]);
    assert_eq!(report["changed"], json!(["b"]), "{report:#}");
    eventually("b serves anew", || data_of(&daemon, &["b.show"])["x"] == "2");
    let second = runs();
    assert_eq!((&second[0], &second[2]), (&first[0], &first[2]), "the others are as they were");
    assert_eq!(second[1][1].as_u64(), first[1][1].as_u64().map(|run| run + 1), "and b was taken up once");
    assert_ne!(second[1][0], first[1][0]);
    daemon.stop();
}
