//! What the daemon leaves on the disk and in the log, and what a reload says of plugins that are down.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use plugd_tests::{SERVE, Sandbox, eventually};
use serde_json::json;

/// Every folder and file under a folder, with its permissions.
fn modes(folder: &Path) -> Vec<(String, bool, u32)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        found.push((path.display().to_string(), metadata.is_dir(), metadata.permissions().mode() & 0o777));
        if metadata.is_dir() {
            open.extend(fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        }
    }
    found
}

#[test]
fn the_state_is_its_owners_and_of_use_whatever_the_umask() {
    for umask in ["0777", "0277", "000"] {
        let sandbox = Sandbox::new("");
        sandbox.configure(&sandbox.python("fp", "def handle(operation, arguments, params):\n    print('here', file=sys.stderr, flush=True)\n    return {'data': 1}\n"));
        let command = sandbox.command(SERVE);
        let mut serve = Command::new("sh");
        serve.arg("-c").arg(format!("umask {umask}; exec \"$0\" \"$@\""));
        serve.arg(command.get_program()).args(command.get_args()).current_dir(sandbox.path());
        serve.env_remove("PLUGD_CONFIG").env_remove("PLUGD_LOG");
        let daemon = sandbox.serve_by(serve, Stdio::null());
        daemon.plugd(&["call", "fp.echo", "--key", "k"]).expect(0);
        daemon.plugd(&["disable", "fp"]).expect(0);
        daemon.plugd(&["logs", "fp"]).expect(0);
        let state = modes(&sandbox.path().join("state"));
        for name in ["plugd.db", "plugd.db-wal", "logs/fp.log", "operator.json", "manifests/fp.json"] {
            assert!(state.iter().any(|(path, ..)| path.ends_with(name)), "{umask}: no {name} in {state:?}");
        }
        let socket = daemon.socket();
        let run = fs::metadata(socket.parent().expect("a folder")).expect("it is there");
        assert_eq!(run.permissions().mode() & 0o777, 0o700, "{umask}");
        for (path, is_folder, mode) in state.into_iter().chain(modes(&socket)) {
            let wanted = if is_folder { 0o700 } else { 0o600 };
            assert_eq!(mode, wanted, "{umask}: {path} has {mode:o}");
        }
        daemon.stop();
    }
}

#[test]
fn every_reload_says_that_a_plugin_is_down_until_somebody_mends_it() {
    let sandbox = Sandbox::new("");
    let refuses = sandbox.python(
        "refuses",
        "def on_init(params):\n    if not os.path.exists('key'):\n        raise Failure('no key')\n    return {}\n",
    );
    let lost = "[plugins.lost]\ncommand = [\"./no-such-program\"]\nstart = \"eager\"\n";
    let off = "[plugins.off]\ncommand = [\"./no-such-program\"]\nenabled = false\n";
    sandbox
        .configure(&format!("{refuses}start = \"eager\"\n\n{lost}\n{off}\n{}", sandbox.python("well", "")));
    let daemon = sandbox.serve();
    daemon.wait_for_state("refuses", "disabled");
    daemon.wait_for_state("lost", "failed");
    for _ in 0..2 {
        let report = daemon.plugd(&["--output", "json", "reload"]).expect(6).json();
        let failed = report["failed"].as_object().expect("those that are down");
        assert_eq!(failed.keys().collect::<Vec<_>>(), ["lost", "refuses"], "{report:#}");
        assert!(failed["refuses"].to_string().contains("no key"), "{report:#}");
    }
    sandbox.write("plugins/refuses/key", "");
    daemon.plugd(&["reload", "refuses"]).expect(0);
    daemon.plugd(&["stop", "lost"]).expect(0);
    assert_eq!(daemon.plugd(&["--output", "json", "reload"]).json()["failed"].get("refuses"), None);
    daemon.stop();
}

/// It says something at each level, then more than may be logged in a second, then nothing.
const LOUD: &str = r#"
def handle(operation, arguments, params):
    if "flood" in arguments:
        sys.stderr.write("one of many\n" * 1500)
        sys.stderr.flush()
        return {"data": 1}
    for level in ("trace", "debug", "info", "warn", "error"):
        send({"jsonrpc": "2.0", "method": "log", "params": {"level": level, "message": "at " + level}})
    return {"data": 1}
"#;

fn loud() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("loud", LOUD));
    sandbox
}

#[test]
fn lines_that_were_not_logged_are_told_of_though_no_other_follows() {
    let sandbox = loud();
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "loud.echo", "flood:=1"]).expect(0);
    let told = || daemon.plugd(&["logs", "loud", "--level", "warn"]).expect(0).stdout;
    eventually("what was left out is told", || {
        told().contains("lines were not logged: more than 1,000 a second")
    });
    daemon.stop();
}

#[test]
fn logs_are_shown_from_a_level_on() {
    let sandbox = loud();
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "loud.echo"]).expect(0);
    let shown = |args: &[&str]| -> Vec<serde_json::Value> {
        let entries = daemon.json(&[&["logs", "loud"], args].concat());
        let entries = entries.as_array().expect("entries").iter();
        entries.filter(|entry| entry["stream"] == "log").map(|entry| entry["level"].clone()).collect()
    };
    assert_eq!(shown(&[]).len(), 5);
    assert_eq!(shown(&["--level", "warn"]), [json!("warn"), json!("error")]);
    assert_eq!(shown(&["--level", "error"]), [json!("error")]);
    // The latest of those, not those of the latest.
    assert_eq!(shown(&["--level", "warn", "-n", "2"]).len(), 2);
    daemon.plugd(&["logs", "loud", "--level", "loud"]).expect(2);
    daemon.stop();
}
