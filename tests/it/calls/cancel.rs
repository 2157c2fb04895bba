//! Ending a call early: by command, by Ctrl-C, by a client that goes away; and answers too late.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use plugd_protocol::control::CallParams;
use plugd_tests::{Daemon, Ran, Sandbox, eventually};
use rustix::process::Signal;
use serde_json::json;

use super::{kill, marks, odd};

/// Starts `plugd call` and waits until the plugin has the call; its id comes with it.
fn running(sandbox: &Sandbox, operation: &str) -> (Child, String) {
    let child = sandbox
        .command(&["--output", "json", "call", operation])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("plugd runs");
    eventually("the call runs", || !marks(sandbox, "odd", "running").is_empty());
    let id = marks(sandbox, "odd", "running").remove(0);
    (child, id)
}

fn ended(child: Child) -> Ran {
    child.wait_with_output().expect("plugd ends").into()
}

/// Waits for the cancel of a call and checks that nothing else was cancelled, nor anything twice.
#[track_caller]
fn expect_one_cancel(sandbox: &Sandbox, daemon: &Daemon<'_>, call_id: &str) {
    eventually("the plugin is told", || !marks(sandbox, "odd", "cancel").is_empty());
    // A second notification would have come before the answer to a later call.
    assert_eq!(daemon.json(&["call", "odd.echo", "text=next"])["data"]["text"], "next");
    assert_eq!(marks(sandbox, "odd", "cancel"), [call_id]);
}

#[test]
fn cancel_ends_a_running_call_and_the_plugin_is_told_once() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let (call, id) = running(&sandbox, "odd.obey");
    let active = daemon.json(&["status"])["daemon"]["calls"][0].clone();
    assert_eq!((&active["call_id"], &active["operation"]), (&json!(id), &json!("odd.obey")));

    let report = daemon.plugd(&["--output", "json", "cancel", &id]).expect(0).json();
    assert_eq!(report, json!({"call_id": id, "cancelled": true}));
    let result = ended(call).expect(5).json();
    assert_eq!(result["status"], "cancelled", "{result:#}");
    assert_eq!((&result["error"]["code"], &result["error"]["outcome"]), (&json!(5003), &json!("unknown")));
    expect_one_cancel(&sandbox, &daemon, &id);

    let again = daemon.plugd(&["cancel", &id]).expect(4);
    assert!(again.stderr.contains(&id), "{again:?}");
    daemon.stop();
}

#[test]
fn x16_ctrl_c_cancels_the_call_and_exits_130() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let (call, id) = running(&sandbox, "odd.obey");
    kill(call.id().into(), Signal::INT);
    let ran = ended(call).expect(130);
    assert_eq!(ran.json()["status"], "cancelled", "{ran:?}");
    expect_one_cancel(&sandbox, &daemon, &id);
    let events = daemon.json(&["events"]);
    let finished = events.as_array().expect("events").iter();
    let mut finished =
        finished.filter(|event| event["kind"] == "call.finished" && event["call_id"] == json!(id));
    assert_eq!(finished.next().map(|event| event["status"].clone()), Some(json!("cancelled")), "{events:#}");
    assert!(finished.next().is_none(), "a call ends once: {events:#}");
    daemon.stop();
}

#[test]
fn x16_ctrl_c_without_a_daemon_leaves_no_plugin_behind() {
    let sandbox = odd("");
    let (call, id) = running(&sandbox, "odd.obey");
    kill(call.id().into(), Signal::INT);
    ended(call).expect(130);
    assert_eq!(marks(&sandbox, "odd", "cancel"), [id]);
    let sandbox_text = sandbox.path().to_string_lossy().into_owned();
    eventually("no process runs in the sandbox", || processes_in(&sandbox_text).is_empty());
}

/// The processes whose working folder lies below this one.
fn processes_in(folder: &str) -> Vec<std::path::PathBuf> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let inside = |process: &std::fs::DirEntry| {
        let cwd = std::fs::read_link(process.path().join("cwd")).unwrap_or_default();
        cwd.starts_with(folder)
    };
    processes.filter(inside).map(|process| process.path()).collect()
}

#[tokio::test]
async fn a_client_whose_websocket_closes_cancels_its_call() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let call = tokio::spawn(async move { client.call(&CallParams::new("odd.obey")).await });
    // Polled here, for this thread drives the client, too.
    while marks(&sandbox, "odd", "running").is_empty() {
        tokio::task::yield_now().await;
    }
    let id = marks(&sandbox, "odd", "running").remove(0);
    call.abort();
    assert!(call.await.is_err_and(|error| error.is_cancelled()), "the client is gone");
    expect_one_cancel(&sandbox, &daemon, &id);
    daemon.stop();
}

#[test]
fn a_client_that_gives_up_its_post_cancels_its_call() {
    let sandbox = odd("");
    let daemon = sandbox.serve();
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "call", "params": {"operation": "odd.obey"}}).to_string();
    let mut stream = UnixStream::connect(sandbox.socket()).expect("the daemon is reachable");
    let length = body.len();
    write!(stream, "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .expect("the request is written");
    eventually("the call runs", || !marks(&sandbox, "odd", "running").is_empty());
    let id = marks(&sandbox, "odd", "running").remove(0);
    drop(stream);
    expect_one_cancel(&sandbox, &daemon, &id);
    assert_eq!(daemon.json(&["status"])["daemon"]["calls"], json!([]));
    daemon.stop();
}

#[test]
fn a_late_answer_is_dropped_and_one_given_twice_is_counted_besides() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "twice",
        r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("echo", "twice", "late")]
CANCELLED = threading.Event()


def notified(method, params):
    CANCELLED.set()


def answer_call(message):
    operation = message["params"]["operation"]
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"data": operation}}
    if operation == "late":
        CANCELLED.wait()
    send(answer)
    if operation == "twice":
        send(answer)
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "twice.twice"])["data"], "twice");
    assert_eq!(daemon.json(&["call", "twice.echo"])["data"], "echo", "the surplus answer is not this one's");
    assert_eq!(daemon.status("twice")["unmatched_answers"], 1);
    let late =
        daemon.plugd(&["--output", "json", "call", "twice.late", "--timeout", "200ms"]).expect(5).json();
    assert_eq!(late["error"]["code"], 5001, "{late:#}");
    assert_eq!(daemon.json(&["call", "twice.echo"])["data"], "echo");
    let status = daemon.status("twice");
    assert_eq!((&status["unmatched_answers"], &status["starts"]), (&json!(1), &json!(1)), "{status:#}");
    daemon.stop();
}
