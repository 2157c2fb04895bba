//! Changes while plugins run: taken up in place, by a new run, or held back until somebody says so.

mod files;
mod in_place;
mod manifest;
mod manual;
mod operators;
mod replacing;
mod together;
mod watching;

use plugd_tests::{Daemon, Sandbox, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The table of the plugin `fp`, whose program is `plugins/fp/main.py`.
const FP: &str = "[plugins.fp]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/fp\"\n";

/// Tells what it is and was given; its `wait` ends once there is a file `open` in its folder.
const TELLER: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("show", "wait")]
VERSION = "one"
CONFIG = {}
mark("spawned", str(os.getpid()))


def on_init(params):
    mark("inits")
    CONFIG.update(params["config"])
    return {}


def handle(operation, arguments, params):
    if operation == "wait":
        mark("waiting")
        while not os.path.exists("open"):
            time.sleep(0.01)
    return {"data": {"config": CONFIG, "pid": os.getpid(), "version": VERSION, "foo": os.environ.get("FOO")}}
"#;

/// The process of a plugin, from its status.
#[track_caller]
pub(crate) fn pid_of(status: &Value) -> u32 {
    let pid = status["pid"].as_u64().unwrap_or_else(|| panic!("it has no process: {status:#}"));
    u32::try_from(pid).expect("a pid")
}

/// Ends a process that this test's daemon started.
#[track_caller]
pub(crate) fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it was alive");
}

/// A value that must be text.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("it is no text: {value}"))
}

/// The lines of a file in a plugin's folder.
pub(crate) fn marks(sandbox: &Sandbox, plugin: &str, name: &str) -> Vec<String> {
    sandbox.read(&format!("plugins/{plugin}/{name}")).lines().map(str::to_owned).collect()
}

/// The processes, of those a plugin noted in `spawned`, that still live.
pub(crate) fn living(sandbox: &Sandbox, plugin: &str) -> Vec<u32> {
    let noted = marks(sandbox, plugin, "spawned");
    noted.iter().filter_map(|pid| pid.parse().ok()).filter(|pid| plugd_tests::alive(*pid)).collect()
}

/// The data of a call that must go well.
#[track_caller]
pub(crate) fn data(daemon: &Daemon<'_>, operation: &str) -> Value {
    let result = daemon.json(&["call", operation]);
    assert_eq!(result["status"], "ok", "{result:#}");
    result["data"].clone()
}

/// What happened of one kind, oldest first.
pub(crate) fn events_of(daemon: &Daemon<'_>, kind: &str) -> Vec<Value> {
    let events = daemon.json(&["events", "--tail", "1000"]);
    events.as_array().expect("a list").iter().filter(|event| event["kind"] == kind).cloned().collect()
}

/// Waits until the configuration was applied so often since the start, and checks that it was no oftener.
#[track_caller]
pub(crate) fn expect_reloads(daemon: &Daemon<'_>, count: usize) {
    eventually("the configuration is applied", || events_of(daemon, "config.reloaded").len() >= count);
    assert_eq!(events_of(daemon, "config.reloaded").len(), count);
}

/// A sandbox with `fp`: the teller, more definitions after it, and these lines in its table.
fn teller(definitions: &str, lines: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.python("fp", &format!("{TELLER}{definitions}"));
    sandbox.configure(&format!("{FP}{lines}"));
    sandbox
}

/// Writes the program of `fp` anew, as another version.
fn rewrite(sandbox: &Sandbox, version: &str, definitions: &str) {
    let program = TELLER.replace("VERSION = \"one\"", &format!("VERSION = \"{version}\""));
    sandbox.python("fp", &format!("{program}{definitions}"));
}
