//! What whoever interrupts a call is told: which call it was, and where the rest of it is.

use std::process::{Child, Stdio};

use plugd_protocol::control::CallParams;
use plugd_tests::{Ran, Sandbox, eventually};
use rustix::process::Signal;
use serde_json::json;

use super::{ODD, kill, marks, odd};

/// Starts a command that makes the plugin mark the call it runs; that call's id comes with it.
fn running(sandbox: &Sandbox, args: &[&str]) -> (Child, String) {
    let before = marks(sandbox, "odd", "running").len();
    let mut command = sandbox.command(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("plugd runs");
    eventually("the call runs", || marks(sandbox, "odd", "running").len() > before);
    (child, marks(sandbox, "odd", "running").remove(before))
}

fn interrupt(child: Child, signal: Signal) -> Ran {
    kill(child.id().into(), signal);
    child.wait_with_output().expect("plugd ends").into()
}

#[test]
fn an_interrupted_call_says_which_it_was_and_is_found_by_that() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    for signal in [Signal::INT, Signal::TERM] {
        let (call, id) = running(&sandbox, &["call", "odd.obey"]);
        let ran = interrupt(call, signal).expect(130);
        assert!(ran.stdout.is_empty() && ran.stderr.contains(&format!("call {id} was cancelled")), "{ran:?}");
        assert!(ran.stderr.contains(&format!("calls show {id}`")), "{ran:?}");
        let shown = daemon.json(&["calls", "show", &id]);
        assert_eq!(shown["call"]["status"], "cancelled", "{shown:#}");
        assert_eq!(shown["error"]["outcome"], "unknown", "{shown:#}");
    }
    let (call, id) = running(&sandbox, &["--output", "json", "call", "odd.obey"]);
    let result = interrupt(call, Signal::INT).expect(130).json();
    assert_eq!(result["status"], "cancelled", "{result:#}");
    assert_eq!(result["meta"]["call_id"], id, "{result:#}");
    assert_eq!(result["meta"]["operation"], "odd.obey", "{result:#}");
    daemon.stop();
}

#[test]
fn a_call_that_waits_for_its_turn_did_not_run_when_it_is_interrupted() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let (first, _) = running(&sandbox, &["call", "odd.obey"]);
    let second = sandbox.command(&["--output", "json", "call", "odd.echo"]).stdout(Stdio::piped()).spawn();
    let second = second.expect("plugd runs");
    eventually("both are known", || {
        daemon.json(&["status"])["daemon"]["calls"].as_array().is_some_and(|calls| calls.len() == 2)
    });
    let result = interrupt(second, Signal::INT).expect(130).json();
    assert_eq!(result["error"]["outcome"], "not_run", "{result:#}");
    let id = result["meta"]["call_id"].as_str().expect("an id");
    assert_eq!(daemon.json(&["calls", "show", id])["call"]["status"], "cancelled");
    interrupt(first, Signal::INT).expect(130);
    daemon.stop();
}

#[test]
fn without_a_daemon_an_interrupted_call_is_named_too() {
    let sandbox = odd("");
    let (call, id) = running(&sandbox, &["--output", "json", "call", "odd.obey"]);
    let result = interrupt(call, Signal::TERM).expect(130).json();
    assert_eq!(result["meta"]["call_id"], id, "{result:#}");
    assert_eq!(sandbox.json(&["calls", "show", &id])["call"]["status"], "cancelled");
}

/// A sandbox whose `odd.obey` runs once somebody agrees.
fn agreed_to(more: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let declared =
        format!("next(o for o in OPERATIONS if o['name'] == 'obey').update(confirm='always'{more})");
    let table = sandbox.python("odd", &format!("{ODD}\n{declared}\n"));
    sandbox.configure(&table);
    sandbox
}

/// Makes the call that stops, and interrupts the answer that carries it on.
fn interrupt_the_answer(sandbox: &Sandbox) {
    let stopped = sandbox.plugd(&["--output", "json", "call", "odd.obey"]).expect(8).json();
    let token = stopped["pending"]["token"].as_str().expect("a token");
    let (answer, id) = running(sandbox, &["--output", "json", "answer", token, "--yes"]);
    let result = interrupt(answer, Signal::INT).expect(130).json();
    assert_eq!(result["status"], "cancelled", "{result:#}");
    assert_eq!(result["meta"]["call_id"], stopped["meta"]["call_id"], "{result:#}");
    assert_eq!(result["meta"]["call_id"], id, "{result:#}");
    assert_eq!(sandbox.json(&["calls", "show", &id])["call"]["status"], "cancelled");
}

#[test]
fn an_interrupted_answer_names_the_call_it_carried_on() {
    let sandbox = agreed_to("");
    let daemon = sandbox.serve();
    interrupt_the_answer(&sandbox);
    daemon.stop();
    interrupt_the_answer(&sandbox);
}

#[test]
fn a_job_carried_on_without_a_daemon_can_be_interrupted() {
    interrupt_the_answer(&agreed_to(", long_running=True"));
}

/// Whether a process has a handler for SIGINT, as the kernel tells.
fn catches_interrupts(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << 1 != 0)
}

/// Starts a command whose outcome is one document.
fn begun(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.command(&[&["--output", "json"], args].concat());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("plugd runs")
}

/// It is not known yet what is called, for the plugin never says what it has: nothing ran for it.
#[test]
fn an_interrupted_call_of_a_plugin_that_says_nothing_ends_at_once_and_did_not_run() {
    let sandbox = Sandbox::new("");
    sandbox.program("plugins/mute/main.sh", "#!/bin/sh\necho up >> started\nexec sleep 60\n");
    sandbox.configure("[plugins.mute]\ncommand = [\"./main.sh\"]\ncwd = \"plugins/mute\"\n");
    let starts = || sandbox.read("plugins/mute/started").lines().count();
    let interrupted = |signal, has_id: bool, is_made: &dyn Fn() -> bool| {
        let call = begun(&sandbox, &["call", "mute.x"]);
        eventually("the call is made", || is_made() && catches_interrupts(call.id()));
        let result = interrupt(call, signal).expect(130).json();
        assert_eq!(
            (&result["status"], &result["error"]["outcome"]),
            (&json!("cancelled"), &json!("not_run"))
        );
        if let Some(id) = result["meta"]["call_id"].as_str() {
            assert_eq!(sandbox.json(&["calls", "show", id])["call"]["status"], "cancelled");
        } else {
            assert!(!has_id, "no id: {result:#}");
            let message = &result["error"]["message"];
            assert_eq!(message, "the call was interrupted before it began", "{result:#}");
        }
    };
    // Without a daemon each call starts the plugin anew.
    interrupted(Signal::INT, true, &|| starts() == 1);
    interrupted(Signal::TERM, true, &|| starts() == 2);
    let daemon = sandbox.serve();
    // The daemon starts it by itself, and nothing tells from outside whether it has got the call yet.
    interrupted(Signal::INT, false, &|| true);
    daemon.stop();
}

#[test]
fn a_signal_while_the_daemon_hangs_is_told_in_one_document() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let stopped = sandbox.plugd(&["--output", "json", "call", "odd.echo"]).expect(0).json();
    assert_eq!(stopped["status"], "ok", "{stopped:#}");
    daemon.signal(Signal::STOP);
    for (args, signal) in [
        (&["call", "odd.echo"][..], Signal::INT),
        (&["call", "odd.echo"], Signal::TERM),
        (&["answer", "none", "--yes"], Signal::TERM),
    ] {
        let child = begun(&sandbox, args);
        eventually("it listens for signals", || catches_interrupts(child.id()));
        let result = interrupt(child, signal).expect(130).json();
        assert_eq!(result["status"], "cancelled", "{args:?}: {result:#}");
        assert_eq!(result["error"]["outcome"], "not_run", "{args:?}: {result:#}");
    }
    daemon.signal(Signal::CONT);
    daemon.stop();
}

#[test]
fn a_daemon_that_dies_during_a_call_or_an_answer_leaves_a_whole_result() {
    let sandbox = agreed_to("");
    let mut daemon = sandbox.serve();
    let stopped = sandbox.plugd(&["--output", "json", "call", "odd.obey"]).expect(8).json();
    let token = stopped["pending"]["token"].as_str().expect("a token");
    let (answer, _) = running(&sandbox, &["--output", "json", "answer", token, "--yes"]);
    daemon.signal(Signal::KILL);
    daemon.wait();
    let result = Ran::from(answer.wait_with_output().expect("plugd ends")).expect(9).json();
    assert_eq!((&result["status"], &result["error"]["code"]), (&json!("error"), &json!(9002)), "{result:#}");
    assert!(result["meta"].is_object(), "{result:#}");

    // Whether to call again depends on the key.
    for (key, retryable) in [(&[][..], false), (&["--key", "k"], true)] {
        let mut daemon = sandbox.serve();
        let words = [&["--output", "json", "call", "odd.obey", "--yes"], key].concat();
        let (call, _) = running(&sandbox, &words);
        daemon.signal(Signal::KILL);
        daemon.wait();
        let result = Ran::from(call.wait_with_output().expect("plugd ends")).expect(9).json();
        let error = &result["error"];
        assert_eq!(
            (&error["outcome"], &error["retryable"]),
            (&json!("unknown"), &json!(retryable)),
            "{result:#}"
        );
        let hint = error["hint"].as_str().expect("a hint");
        let wanted = if retryable { "same key" } else { "calls --operation odd.obey" };
        assert!(hint.contains(wanted), "{hint}");
    }
}

#[tokio::test]
async fn a_client_stops_its_own_calls_and_nobody_elses() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let (mine, other) = (daemon.client().await, daemon.client().await);
    let (mine, other) = (std::sync::Arc::new(mine), std::sync::Arc::new(other));
    let call = |client: &std::sync::Arc<plugd_daemon::client::Client>| {
        let client = std::sync::Arc::clone(client);
        tokio::spawn(async move { client.call(&CallParams::new("odd.obey")).await })
    };
    let first = call(&mine);
    while marks(&sandbox, "odd", "running").is_empty() {
        tokio::task::yield_now().await;
    }
    let id = marks(&sandbox, "odd", "running").remove(0);
    let second = call(&other);
    let stopped = mine.cancel_mine().await.expect("it is answered").call_ids;
    assert_eq!(stopped.iter().map(ToString::to_string).collect::<Vec<_>>(), std::slice::from_ref(&id));
    let result = first.await.expect("it ends").expect("a result");
    assert_eq!(result.meta.call_id.map(|id| id.to_string()), Some(id));
    assert_eq!(mine.cancel_mine().await.expect("it is answered").call_ids, [], "none is left");
    while marks(&sandbox, "odd", "running").len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(other.cancel_mine().await.expect("it is answered").call_ids.len(), 1);
    second.await.expect("it ends").expect("a result");
    daemon.stop();
}

#[tokio::test]
async fn a_job_outlives_the_wish_to_stop_what_is_waited_for() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "job",
        r#"
OPERATIONS = [{"name": "make", "long_running": True, "input_schema": {"type": "object"}}]

def handle(operation, arguments, params):
    while not os.path.exists("go"):
        time.sleep(0.01)
    return {"data": "made"}
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let job = client.call(&CallParams::new("job.make")).await.expect("a result").meta.call_id;
    let job = job.expect("an id");
    assert_eq!(client.cancel_mine().await.expect("it is answered").call_ids, []);
    sandbox.write("plugins/job/go", "");
    let ended = daemon.json(&["jobs", "wait", job.as_str()]);
    assert_eq!((&ended["status"], &ended["data"]), (&json!("ok"), &json!("made")), "{ended:#}");
    daemon.stop();
}
