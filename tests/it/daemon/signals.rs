//! How a daemon ends, and how it takes up a changed configuration.

use std::process::Stdio;
use std::time::{Duration, Instant};

use plugd_tests::{Daemon, Ran, Sandbox, alive, eventually};
use rustix::process::Signal;
use serde_json::json;

fn pid(daemon: &Daemon<'_>, plugin: &str) -> u32 {
    daemon.status(plugin)["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("it runs")
}

#[test]
fn sigterm_lets_calls_end_and_plugins_release_what_they_hold() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "gate",
        r#"
def handle(operation, arguments, params):
    mark("running")
    while not os.path.exists("open"):
        time.sleep(0.01)
    return {"data": "finished"}


def on_shutdown():
    mark("released")
"#,
    );
    sandbox.configure(&table);
    let mut daemon = sandbox.serve();
    let call = sandbox
        .command(&["--output", "json", "call", "gate.echo"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("plugd runs");
    eventually("the call runs", || !sandbox.read("plugins/gate/running").is_empty());
    let plugin = pid(&daemon, "gate");
    daemon.signal(Signal::TERM);
    eventually("it stops", || sandbox.read("daemon.log").contains("stopping every plugin"));
    sandbox.write("plugins/gate/open", "");
    let ran: Ran = call.wait_with_output().expect("the call ends").into();
    assert_eq!(ran.expect(0).json()["data"], "finished");
    assert_eq!(daemon.wait(), 0);
    assert_eq!(sandbox.read("plugins/gate/released"), "x\n");
    assert!(!alive(plugin));
    assert!(!sandbox.socket().exists());
}

#[test]
fn a_caller_whose_daemon_is_killed_is_told_at_once_that_the_outcome_is_unknown() {
    let sandbox = Sandbox::new("");
    let hang =
        "def handle(operation, arguments, params):\n    mark(\"running\")\n    threading.Event().wait()\n";
    let table = sandbox.python("hang", hang);
    sandbox.configure(&table);
    let mut daemon = sandbox.serve();
    let call = sandbox
        .command(&["--output", "json", "call", "hang.echo"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("plugd runs");
    eventually("the call runs", || !sandbox.read("plugins/hang/running").is_empty());
    let plugin = pid(&daemon, "hang");
    let began = Instant::now();
    daemon.signal(Signal::KILL);
    daemon.wait();
    let ran: Ran = call.wait_with_output().expect("the call ends").into();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let result = ran.expect(9).json();
    assert_eq!(
        (&result["status"], &result["error"]["outcome"]),
        (&json!("error"), &json!("unknown")),
        "{result:#}"
    );
    eventually("the plugin goes with its daemon", || !alive(plugin));
}

#[test]
fn a_second_sigterm_skips_the_graces() {
    let sandbox = Sandbox::new("");
    // The default graces: 5 s for an answer to `shutdown`, 3 s for stdin, 3 s for SIGTERM.
    let table = sandbox.python(
        "deaf",
        r#"
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)


def on_shutdown():
    mark("asked")
    while True:
        time.sleep(60)
"#,
    );
    sandbox.configure(&table);
    let mut daemon = sandbox.serve();
    daemon.json(&["call", "deaf.echo"]);
    let plugin = pid(&daemon, "deaf");
    daemon.signal(Signal::TERM);
    eventually("the plugin is asked", || !sandbox.read("plugins/deaf/asked").is_empty());
    let began = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait(), 0);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(!alive(plugin));
}

#[test]
fn sighup_applies_the_configuration() {
    let sandbox = Sandbox::new("");
    let first = sandbox.python("first", "");
    let second = sandbox.python("second", "");
    sandbox.configure(&first);
    let daemon = sandbox.serve();
    daemon.json(&["call", "first.echo"]);
    let before = pid(&daemon, "first");
    sandbox.configure(&format!("{first}\n{second}"));
    daemon.signal(Signal::HUP);
    eventually("the new plugin answers", || {
        daemon.json(&["call", "second.echo", "x=1"])["data"] == json!({"x": "1"})
    });
    assert_eq!(pid(&daemon, "first"), before, "what did not change is not touched");
    daemon.stop();
}

#[test]
fn a_reload_of_a_broken_file_changes_nothing_and_says_why() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let mut daemon = sandbox.serve();
    daemon.expect_errors();
    daemon.json(&["call", "fp.echo"]);
    let (process, status) = (pid(&daemon, "fp"), daemon.json(&["status"]));
    sandbox.configure("[plugins.fp]\ncomand = [\"x\"]\n");

    let refused = daemon.plugd(&["--output", "json", "reload"]).expect(2).json();
    assert_eq!(refused["error"]["name"], "invalid_config", "{refused:#}");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.contains("line 6") && message.contains("did you mean command?"), "{message}");
    daemon.signal(Signal::HUP);
    eventually("SIGHUP says why, too", || sandbox.read("daemon.log").contains("configuration not applied"));
    assert!(sandbox.read("daemon.log").contains("comand"), "{}", sandbox.read("daemon.log"));

    sandbox.configure(&table);
    let now = daemon.json(&["status"]);
    assert_eq!(now["daemon"]["config_generation"], status["daemon"]["config_generation"]);
    assert_eq!(pid(&daemon, "fp"), process);
    assert_eq!(daemon.json(&["call", "fp.echo", "x=1"])["data"]["x"], "1");
    daemon.stop();
}

#[test]
fn shutdown_answers_when_everything_is_down() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let mut daemon = sandbox.serve();
    daemon.json(&["call", "fp.echo"]);
    let plugin = pid(&daemon, "fp");
    let report = daemon.json(&["shutdown"]);
    assert_eq!(
        (&report["plugins"][0]["name"], &report["plugins"][0]["ended"]),
        (&json!("fp"), &json!("exited")),
        "{report:#}"
    );
    assert!(!alive(plugin) && !sandbox.socket().exists());
    assert_eq!(daemon.wait(), 0);
}
