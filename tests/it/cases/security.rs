//! Cases of the kind security: what a terminal is made to do, and who may drive the daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use plugd_tests::{SERVE, Sandbox, shell};
use serde_json::Value;

/// Clears the screen, sets the title, rings, goes back to the line's begin, turns the direction, breaks the line.
const FORGED: &str = "\\u001b[2J\\u001b]0;owned\\u0007\\r\\u202e\\nOK: all is well";

/// Whether a text could act on a terminal or look like several lines of ours.
fn acts(text: &str) -> bool {
    text.chars().any(|character| (character.is_control() && character != '\n') || character == '\u{202e}')
}

#[test]
fn c147_what_a_plugin_says_of_itself_does_nothing_to_a_terminal() {
    let sandbox = Sandbox::new("");
    let definitions = format!(
        r#"
FORGED = "{FORGED}"
OPERATIONS = [{{"name": "fail", "title": FORGED, "description": FORGED, "input_schema": {{"type": "object"}}}},
    {{"name": "lack", "input_schema": {{"type": "object", "required": ["a"],
        "properties": {{"a": {{"type": "string", "description": FORGED}}}}}}}}]
MANIFEST = {{"description": FORGED}}

def handle(operation, arguments, params):
    send({{"jsonrpc": "2.0", "method": "log", "params": {{"message": FORGED}}}})
    raise Failure(FORGED, hint=FORGED)
"#
    );
    sandbox.configure(&sandbox.python("forger", &definitions));
    let daemon = sandbox.serve();
    let commands: &[&[&str]] = &[
        &["list"],
        &["describe", "forger"],
        &["call", "forger.fail"],
        &["call", "forger.lack"],
        &["logs", "forger"],
        &["calls"],
        &["events"],
        &["status"],
    ];
    for words in commands {
        // As on a terminal that colours: script(1) is not everywhere, so the text itself is looked at.
        let ran = daemon.plugd(words);
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!acts(text), "{words:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("OK: all is well")), "{words:?}: {text}");
        }
    }
    // A program gets it as it is.
    let described = daemon.json(&["describe", "forger"]);
    let exact: Value = serde_json::from_str(&format!("\"{FORGED}\"")).expect("JSON");
    assert_eq!(described["operations"][0]["description"], exact, "{described:#}");
    daemon.stop();
}

#[test]
fn c148_only_the_owner_can_drive_the_daemon() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("fp", ""));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    let mut serve = std::process::Command::new("sh");
    let command = sandbox.command(SERVE);
    // Whatever the shell would let others do with new files.
    serve.arg("-c").arg("umask 000; exec \"$0\" \"$@\"").arg(command.get_program()).args(command.get_args());
    serve.current_dir(sandbox.path()).env_remove("PLUGD_CONFIG").env_remove("PLUGD_LOG");
    let daemon = sandbox.serve_by(serve, Stdio::null());
    let socket = daemon.socket();
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().expect("a folder")), 0o700);
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    let state = sandbox.path().join("state");
    assert_eq!(mode(&state), 0o700);
    for entry in fs::read_dir(state.join("logs")).expect("logs").flatten() {
        assert_eq!(mode(&entry.path()) & 0o077, 0, "{}", entry.path().display());
    }
    for name in ["plugd.db", "plugd.db-wal"] {
        let file = state.join(name);
        assert!(!file.exists() || mode(&file) & 0o077 == 0, "{name}");
    }
    // Somebody else, where this test may become that.
    if rustix::process::geteuid().is_root() {
        let program = sandbox.command(&[]).get_program().to_string_lossy().into_owned();
        let socket = socket.display();
        let script = format!(
            "command -v setpriv >/dev/null || exit 0; chmod 711 .; setpriv --reuid 65534 --clear-groups '{program}' --socket '{socket}' status"
        );
        let ran = shell(&sandbox, &script);
        assert!(!ran.stdout.contains("fp"), "{ran:?}");
    }
    daemon.stop();
}
