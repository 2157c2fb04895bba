//! A disk that is full, before the record is opened and while it is open: calls go on, and what cannot
//! be promised is not. The disk is a small one of the test's own, where the system lets it have one.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plugd_tests::{Daemon, Ran, Sandbox, eventually};
use serde_json::{Value, json};

/// How large the disk is.
const DISK_BYTES: usize = 1024 * 1024;

/// Room for a lock, and none for a record.
const ROOM_FOR_LITTLE: usize = 24 * 1024;

/// Mounts a disk of a megabyte as the state folder, which nobody else sees, writes so many bytes there,
/// and goes on as the daemon.
const ON_SMALL_DISK: &str = "mount -t tmpfs -o size=1m none state || exit 9\n\
    head -c \"$1\" /dev/zero > state/filler 2>/dev/null\n\
    shift; exec \"$@\"\n";

const PLUGIN: &str = r#"
OPERATIONS = [{"name": "write", "input_schema": {"type": "object"}, "effects": {"read_only": False, "idempotent": False}}]

def handle(operation, arguments, params):
    mark("ran", "x")
    return {"data": "written"}
"#;

/// Runs this with a mount table of its own.
fn apart(script: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).args(arguments);
    command
}

/// Whether disks can be mounted here; a test that cannot have one says so.
fn can_mount(sandbox: &Sandbox) -> bool {
    let mut mount = apart("mount -t tmpfs -o size=1m none \"$1\"", &["state"]);
    let can = mount.current_dir(sandbox.path()).output().is_ok_and(|ran| ran.status.success());
    if !can {
        eprintln!("skipped: no disk of its own can be mounted here by unshare");
    }
    can
}

/// The daemon's command, whose state folder is a small disk with so much on it.
fn command(sandbox: &Sandbox, bytes: usize) -> Command {
    let serve = sandbox.command(&["--output", "json", "--log", "info", "serve"]);
    let mut command = apart(ON_SMALL_DISK, &[&bytes.to_string()]);
    command.arg(serve.get_program()).args(serve.get_args()).current_dir(sandbox.path());
    command.env_remove("PLUGD_CONFIG").env_remove("PLUGD_LOG").env_remove("PLUGD_AS");
    command
}

/// A daemon on such a disk.
fn serve(sandbox: &Sandbox, bytes: usize) -> Daemon<'_> {
    let command = command(sandbox, bytes);
    let log = File::create(sandbox.path().join("daemon.log")).expect("a log file");
    let mut daemon = sandbox.serve_by(command, log.into());
    daemon.expect_errors();
    daemon
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("disk", PLUGIN));
    std::fs::create_dir(sandbox.path().join("state")).expect("it is made");
    sandbox
}

/// A file on the disk, as the daemon sees it.
fn filler(sandbox: &Sandbox, daemon: &Daemon<'_>) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", daemon.pid()));
    let state = sandbox.path().canonicalize().expect("it is there").join("state");
    root.join(state.strip_prefix("/").expect("it is absolute")).join("filler")
}

/// Fills the disk to its last byte.
fn fill(sandbox: &Sandbox, daemon: &Daemon<'_>) {
    let mut file = File::create(filler(sandbox, daemon)).expect("it is made");
    let full = loop {
        if let Err(error) = file.write_all(&[0; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
}

fn runs(sandbox: &Sandbox) -> usize {
    sandbox.read("plugins/disk/ran").lines().count()
}

fn not_recorded(daemon: &Daemon<'_>) -> String {
    daemon.json(&["status"])["daemon"]["not_recorded"].as_str().unwrap_or_default().to_owned()
}

/// A call with a key lets nothing run, one without goes on, and whoever looks is told why.
fn goes_on_without_a_record(sandbox: &Sandbox, daemon: &Daemon<'_>) {
    let before = runs(sandbox);
    let refused = daemon.plugd(&["--output", "json", "call", "disk.write", "--key", "k"]).expect(9).json();
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!(9005), &json!("not_run")), "{refused:#}");
    assert!(error["message"].as_str().is_some_and(|said| said.contains("the disk is full")), "{refused:#}");
    assert_eq!(runs(sandbox), before, "nothing ran");
    assert_eq!(daemon.json(&["call", "disk.write"])["data"], "written");
    let said = not_recorded(daemon);
    assert!(said.contains("the disk is full"), "{said}");
    let found = daemon.json(&["doctor"]);
    let found = found["findings"].as_array().expect("a list").iter();
    let problem = found.filter(|finding| finding["severity"] == "problem").find_map(|finding| {
        finding["message"].as_str().filter(|said| said.contains("calls are not recorded")).map(str::to_owned)
    });
    assert!(problem.as_ref().is_some_and(|said| said.contains("the disk is full")), "{problem:?}");
}

/// With room on the disk again a call with the same key runs, once.
fn goes_on_with_a_record(sandbox: &Sandbox, daemon: &Daemon<'_>) {
    std::fs::remove_file(filler(sandbox, daemon)).expect("it is ours");
    let before = runs(sandbox);
    let call = ["--output", "json", "call", "disk.write", "--key", "k"];
    eventually("calls are recorded again", || daemon.plugd(&call).code == 0);
    assert_eq!(daemon.plugd(&call).expect(0).json()["meta"]["replayed"], true);
    assert_eq!(runs(sandbox), before + 1);
    assert_eq!(not_recorded(daemon), "");
}

#[test]
fn a_record_that_was_open_when_the_disk_filled_says_so_and_goes_on_when_there_is_room() {
    let sandbox = sandbox();
    if !can_mount(&sandbox) {
        return;
    }
    let daemon = serve(&sandbox, 0);
    let first = daemon.json(&["call", "disk.write", "--key", "before"]);
    assert_eq!(first["data"], "written", "{first:#}");
    fill(&sandbox, &daemon);
    goes_on_without_a_record(&sandbox, &daemon);
    // What was written before can be read, and is kept to.
    let again = daemon.json(&["call", "disk.write", "--key", "before"]);
    assert_eq!(again["meta"]["replayed"], true, "{again:#}");
    let listed = daemon.json(&["calls"])["calls"].clone();
    let ids: Vec<&Value> = listed.as_array().expect("a list").iter().map(|call| &call["call_id"]).collect();
    assert!(ids.contains(&&first["meta"]["call_id"]), "{listed:#}");
    goes_on_with_a_record(&sandbox, &daemon);
    daemon.stop();
}

#[test]
fn a_disk_without_room_for_a_record_at_the_start_is_named_and_waited_for() {
    let sandbox = sandbox();
    if !can_mount(&sandbox) {
        return;
    }
    let daemon = serve(&sandbox, DISK_BYTES - ROOM_FOR_LITTLE);
    goes_on_without_a_record(&sandbox, &daemon);
    goes_on_with_a_record(&sandbox, &daemon);
    daemon.stop();
}

#[test]
fn a_disk_without_any_room_at_the_start_is_the_reason_that_is_given() {
    let sandbox = sandbox();
    if !can_mount(&sandbox) {
        return;
    }
    let mut command = command(&sandbox, 2 * DISK_BYTES);
    let ran = Ran::from(command.stdin(Stdio::null()).output().expect("it runs")).expect(9);
    let error = ran.json()["error"].clone();
    assert_eq!(error["code"], 9004, "{error:#}");
    let (message, hint) = (error["message"].to_string(), error["hint"].to_string());
    assert!(message.contains("daemon.lock") && message.contains("No space left on device"), "{error:#}");
    assert!(hint.contains("daemon.state_dir"), "{error:#}");
}
