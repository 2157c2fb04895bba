//! What a plugin claims: marked as a claim, compared with what it claimed before, pinned where that is wanted.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

use super::confined::enforceable;
use super::{ended, operations};
use crate::reloading::{data, events_of, pid_of, text};

/// The table of the plugin `ledger`, with these lines.
fn ledger(lines: &str) -> String {
    format!("[plugins.ledger]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/ledger\"\n{lines}")
}

/// Writes the program of `ledger`: a version, and what it declares.
fn write(sandbox: &Sandbox, version: &str, declared: &[Value]) {
    let version = format!("MANIFEST = {{\"version\": \"{version}\"}}\n");
    sandbox.python("ledger", &(operations(declared) + &version));
}

fn read(read_only: bool) -> Value {
    json!({"name": "read", "description": "Reads a page. It is as it was written.",
        "input_schema": {"type": "object"}, "effects": {"read_only": read_only}})
}

/// Another schema for the arguments of `read`.
fn typed(mut read: Value) -> Value {
    read["input_schema"] = json!({"type": "object", "properties": {"page": {"type": "integer"}}});
    read
}

fn wipe() -> Value {
    json!({"name": "wipe", "description": "Wipes a page. It is gone.", "input_schema": {"type": "object"},
        "effects": {"destructive": true}, "confirm": "always"})
}

/// A sandbox with `ledger` in version 1.0.0, whose `read` only reads.
fn sandbox(lines: &str) -> Sandbox {
    let sandbox = Sandbox::new(&ledger(lines));
    write(&sandbox, "1.0.0", &[read(true)]);
    sandbox
}

/// What the plugin claims otherwise than before, each change in words.
#[track_caller]
fn changed(daemon: &Daemon<'_>) -> Vec<String> {
    let changed = &daemon.status("ledger")["claims_changed"];
    let changes = changed["changes"].as_array().cloned().unwrap_or_default();
    let part = |change: &Value, part: &str| change[part].as_str().unwrap_or("-").to_owned();
    let told = |change: &Value| ["operation", "part", "from", "to"].map(|name| part(change, name)).join(" ");
    changes.iter().map(told).collect()
}

#[test]
fn d19_effects_are_marked_as_claims() {
    let sandbox = sandbox("");
    let silent = sandbox.shell("silent");
    sandbox.configure(&(ledger("") + &silent));
    let daemon = sandbox.serve();
    daemon.json(&["list"]);
    assert_eq!(daemon.status("ledger")["effects"], "claimed");
    let shown = daemon.plugd(&["status", "ledger"]).expect(0).stdout;
    let line = shown.lines().find(|line| line.starts_with("effects ")).expect("a line about them");
    assert!(line.ends_with(" claimed, not verified"), "{shown}");
    // What declares none claims nothing.
    assert_eq!(daemon.status("silent")["effects"], Value::Null);
    daemon.stop();
}

#[test]
fn d19_what_only_reads_and_runs_in_a_sandbox_is_more_than_a_claim() {
    if !enforceable() {
        return;
    }
    let sandbox = sandbox("");
    let table = |name: &str, declared: &[Value]| {
        sandbox.python(name, &operations(declared)) + "start = \"eager\"\nsandbox = \"read_only\"\n"
    };
    sandbox.configure(&(table("reader", &[read(true)]) + &table("mixed", &[read(true), wipe()])));
    let daemon = sandbox.serve();
    for (name, effects) in [("reader", "enforced"), ("mixed", "claimed")] {
        let status = daemon.wait_for_state(name, "ready");
        assert_eq!(status["effects"], effects, "{status:#}");
    }
    let shown = daemon.plugd(&["status", "reader"]).expect(0).stdout;
    assert!(shown.contains(" enforced: no writes to files\n"), "{shown}");
    daemon.plugd(&["stop", "reader"]).expect(0);
    assert_eq!(daemon.status("reader")["effects"], "claimed", "what does not run is held to nothing");
    daemon.stop();
}

#[test]
fn d19_claims_that_change_under_one_version_are_told_once_and_shown_until_the_version_changes() {
    let sandbox = sandbox("");
    let daemon = sandbox.serve();
    daemon.json(&["describe", "ledger"]);
    assert_eq!(daemon.status("ledger")["claims_changed"], Value::Null);

    write(&sandbox, "1.0.0", &[typed(read(false)), wipe()]);
    let reload = daemon.json(&["reload"]);
    let news = &reload["claims_changed"]["ledger"]["changes"];
    assert_eq!(news.as_array().map(Vec::len), Some(3), "{reload:#}");
    let doctor = daemon.plugd(&["doctor"]).stdout;
    assert!(
        doctor.contains("ledger declares something else than before under the same version 1.0.0"),
        "{doctor}"
    );
    let all = ["read effects.read_only true false", "read input_schema - -", "wipe added - -"];
    assert_eq!(changed(&daemon), all);
    let status = daemon.status("ledger");
    assert_eq!(status["claims_changed"]["version"], "1.0.0", "{status:#}");
    let shown = daemon.plugd(&["status", "ledger"]).expect(0).stdout;
    for line in [
        "under the same version 1.0.0",
        "read: read_only true → false",
        "read: input schema changed",
        "wipe: added",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let events = events_of(&daemon, "plugin.claims_changed");
    let reason = "under version 1.0.0: read: read_only true → false; read: input schema changed; wipe: added";
    assert_eq!(
        (events.len(), &events[0]["plugin"], &events[0]["reason"]),
        (1, &json!("ledger"), &json!(reason))
    );
    let said = |daemon: &Daemon<'_>| {
        let said = daemon.said_of("ledger");
        said.iter().filter(|line| line.contains("WARN") && line.contains("under the same version")).count()
    };
    assert_eq!(said(&daemon), 1, "{:?}", daemon.said_of("ledger"));

    // The same again is no news, here and in the next daemon.
    assert_eq!(daemon.json(&["reload"]).get("claims_changed"), None);
    data(&daemon, "ledger.read");
    assert_eq!(events_of(&daemon, "plugin.claims_changed").len(), 1);
    daemon.stop();
    let daemon = sandbox.serve();
    assert_eq!(daemon.status("ledger")["claims_changed"], status["claims_changed"]);
    data(&daemon, "ledger.read");
    assert_eq!(daemon.status("ledger")["claims_changed"], status["claims_changed"]);
    assert_eq!((events_of(&daemon, "plugin.claims_changed").len(), said(&daemon)), (0, 0));

    write(&sandbox, "1.1.0", &[typed(read(false)), wipe()]);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(changed(&daemon), Vec::<String>::new());
    daemon.stop();
}

#[test]
fn d19_claims_that_changed_while_plugd_was_down_are_told_at_its_next_start() {
    let sandbox = sandbox("");
    let daemon = sandbox.serve();
    daemon.json(&["describe", "ledger"]);
    daemon.stop();
    write(&sandbox, "1.0.0", &[read(false)]);
    let daemon = sandbox.serve();
    daemon.json(&["describe", "ledger"]);
    assert_eq!(changed(&daemon), ["read effects.read_only true false"]);
    assert_eq!(events_of(&daemon, "plugin.claims_changed").len(), 1);
    daemon.stop();
}

#[test]
fn d19_a_call_without_a_daemon_keeps_to_the_pin_and_leaves_what_changed_to_be_seen() {
    let sandbox = sandbox("");
    let described = sandbox.json(&["describe", "ledger"]);
    let one = text(&described["manifest_sha256"]);
    write(&sandbox, "1.0.0", &[read(false)]);
    sandbox.configure(&ledger(&format!("manifest_sha256 = \"{one}\"\n")));
    let refused = sandbox.json(&["call", "ledger.read"]);
    let message = text(&refused["error"]["message"]);
    assert!(message.contains(&format!("manifest_sha256 is {one}")), "{refused:#}");
    sandbox.configure(&ledger(""));
    // The command says so, once; `doctor` knows it without a daemon, and the next daemon tells of it once.
    let told =
        "ledger declares something else than before under the same version 1.0.0: read: read_only true";
    let said = sandbox.plugd(&["call", "ledger.read"]).expect(0).stderr;
    assert!(said.contains(&format!("warning: {told}")), "{said}");
    let said = sandbox.plugd(&["call", "ledger.read"]).expect(0).stderr;
    assert!(!said.contains("warning:"), "{said}");
    let doctor = sandbox.plugd(&["doctor"]).stdout;
    assert!(doctor.contains("ledger declares something else than before under the same version"), "{doctor}");
    for events in [1, 0] {
        let daemon = sandbox.serve();
        daemon.json(&["describe", "ledger"]);
        assert_eq!(changed(&daemon), ["read effects.read_only true false"]);
        assert_eq!(events_of(&daemon, "plugin.claims_changed").len(), events);
        let said = daemon.said_of("ledger");
        let warned =
            said.iter().filter(|line| line.contains("WARN") && line.contains("under the same version"));
        assert_eq!(warned.count(), events, "{said:?}");
        daemon.stop();
    }
}

#[test]
fn d19_an_operator_agrees_by_a_reload_of_the_plugin_and_to_go_back_settles_it_too() {
    let sandbox = sandbox("start = \"eager\"\n");
    let daemon = sandbox.serve();
    daemon.wait_for_state("ledger", "ready");
    let told = ["read effects.read_only true false"];

    write(&sandbox, "1.0.0", &[read(false)]);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(changed(&daemon), told);
    write(&sandbox, "1.0.0", &[read(true)]);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(changed(&daemon), Vec::<String>::new(), "it declares again what it did");

    write(&sandbox, "1.0.0", &[read(false)]);
    daemon.plugd(&["reload", "ledger"]).expect(0);
    assert_eq!(changed(&daemon), told, "what this reload finds nobody has agreed to");
    daemon.plugd(&["reload", "ledger"]).expect(0);
    assert_eq!(changed(&daemon), Vec::<String>::new());
    daemon.stop();
    let daemon = sandbox.serve();
    daemon.wait_for_state("ledger", "ready");
    assert_eq!(changed(&daemon), Vec::<String>::new(), "that it was agreed to is kept");
    daemon.stop();
}

/// The digest that `describe` shows.
#[track_caller]
fn digest(daemon: &Daemon<'_>) -> String {
    let described = ended(daemon, 0, &["describe", "ledger"]);
    text(&described["manifest_sha256"]).to_owned()
}

#[test]
fn d19_what_is_not_the_pinned_manifest_is_refused_with_what_changed_and_what_to_do() {
    let sandbox = sandbox("start = \"eager\"\n");
    let daemon = sandbox.serve();
    daemon.wait_for_state("ledger", "ready");
    let one = digest(&daemon);
    let shown = daemon.plugd(&["describe", "ledger"]).expect(0).stdout;
    assert!(shown.contains(&format!("manifest sha256 {one}\n")), "{shown}");
    let pinned = |digest: &str| ledger(&format!("start = \"eager\"\nmanifest_sha256 = \"{digest}\"\n"));
    sandbox.configure(&pinned(&one));
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(ended(&daemon, 0, &["describe", "ledger"])["manifest_pinned"], true);
    let before = daemon.wait_for_state("ledger", "ready");

    // The run that serves goes on.
    write(&sandbox, "1.0.0", &[read(false)]);
    let reload = ended(&daemon, 6, &["reload"]);
    let reason = text(&reload["failed"]["ledger"]).to_owned();
    let after = daemon.status("ledger");
    assert_eq!((pid_of(&after), &after["state"]), (pid_of(&before), &json!("ready")), "{after:#}");
    assert!(text(&after["restart_required"]["reason"]).contains(&reason), "{after:#}");
    assert_eq!(digest(&daemon), one);
    assert_eq!(changed(&daemon), Vec::<String>::new(), "what is refused is not claimed");
    data(&daemon, "ledger.read");
    daemon.stop();

    // Without one that serves, it is not there.
    let daemon = sandbox.serve();
    let status = daemon.wait_for_state("ledger", "disabled");
    let told = text(&status["reason"]);
    let set = told.split("set manifest_sha256 = \"").nth(1).and_then(|rest| rest.split('"').next());
    let two = set.unwrap_or_else(|| panic!("what to do is not told: {told}"));
    let whole = format!(
        "manifest_sha256 is {one}, and its manifest has {two}; what changed: read: read_only true → false; if you agree"
    );
    assert!(told.contains(&whole) && reason.contains(&whole), "{told}\n{reason}");
    let tools = daemon.json(&["tools", "--all"]);
    assert!(!tools["tools"].to_string().contains("ledger.read"), "{tools:#}");
    daemon.plugd(&["call", "ledger.read"]).expect(6);

    // What is refused is tried once by each restart, and not a second time when that is over.
    let generation = |status: &Value| status["generation"].as_u64().expect("a number");
    let before = generation(&daemon.status("ledger"));
    for restarts in 1..=2 {
        daemon.plugd(&["restart", "ledger"]).expect(6);
        let status = daemon.status("ledger");
        assert_eq!((&status["state"], &status["pid"]), (&json!("disabled"), &Value::Null), "{status:#}");
        assert_eq!(generation(&status), before + restarts, "{status:#}");
    }

    sandbox.configure(&pinned(two));
    daemon.plugd(&["reload"]).expect(0);
    daemon.wait_for_state("ledger", "ready");
    data(&daemon, "ledger.read");
    assert_eq!(digest(&daemon), two);
    assert_eq!(changed(&daemon), Vec::<String>::new(), "who pins it agrees to it");
    daemon.stop();
}

#[test]
fn d19_a_running_plugin_that_says_it_changed_keeps_to_what_is_pinned() {
    let sandbox = sandbox("");
    let program = operations(&[read(true)])
        + "MANIFEST = {\"version\": \"1.0.0\"}\n\
           def handle(operation, arguments, params):\n    \
               OPERATIONS[0][\"effects\"] = {\"read_only\": False}\n    \
               send({\"jsonrpc\": \"2.0\", \"method\": \"manifest_changed\"})\n    \
               return {\"data\": 1}\n";
    sandbox.python("ledger", &program);
    let daemon = sandbox.serve();
    let pinned = digest(&daemon);
    sandbox.configure(&ledger(&format!("manifest_sha256 = \"{pinned}\"\n")));
    daemon.plugd(&["reload"]).expect(0);
    data(&daemon, "ledger.read");
    plugd_tests::eventually("the new manifest is refused", || {
        let log = daemon.plugd(&["logs", "ledger"]).stdout;
        log.contains("its new manifest is not used: what it declares is not what is pinned")
    });
    let described = ended(&daemon, 0, &["describe", "ledger"]);
    assert_eq!(described["operations"][0]["effects"], json!({"read_only": true}), "{described:#}");
    assert_eq!((digest(&daemon), daemon.status("ledger")["state"].clone()), (pinned, json!("ready")));
    daemon.stop();
}

/// What the fixture in sh declares, as a `plugin.toml` has it.
const BESIDE: &str = "command = [\"sh\", \"main.sh\"]\n[manifest]\nversion = \"1.0.0\"\npriority = 0\nrequires = {}\n\
    [[manifest.operations]]\nname = \"pid\"\ninput_schema = { type = \"object\" }\n\
    [[manifest.operations]]\nname = \"crash\"\ninput_schema = { type = \"object\" }\n";

#[test]
fn d19_a_manifest_beside_the_program_is_compared_and_pinned_like_any_other() {
    let sandbox = Sandbox::new("");
    sandbox.fixture("bare.sh", "found/ledger/main.sh");
    sandbox.write("found/ledger/plugin.toml", BESIDE);
    let scan = |pin: &str| {
        let pin = format!("[plugins.ledger]\nmanifest_sha256 = \"{pin}\"\n");
        sandbox.configure(&format!(
            "[scan]\ndirs = [\"found\"]\n{}",
            if pin.contains("\"\"") { "" } else { &pin }
        ));
    };
    scan("");
    let daemon = sandbox.serve();
    let beside = digest(&daemon);
    assert_eq!(daemon.status("ledger")["starts"], 0, "nothing ran");

    let confirmed = BESIDE.replace("name = \"crash\"", "name = \"crash\"\nconfirm = \"always\"");
    sandbox.write("found/ledger/plugin.toml", &confirmed);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(changed(&daemon), ["crash confirm auto always"]);
    sandbox.write("found/ledger/plugin.toml", BESIDE);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(changed(&daemon), Vec::<String>::new());

    scan(&beside);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(ended(&daemon, 0, &["describe", "ledger"])["manifest_pinned"], true);
    data(&daemon, "ledger.pid");
    daemon.stop();

    scan(&"0".repeat(64));
    let daemon = sandbox.serve();
    let status = daemon.wait_for_state("ledger", "disabled");
    assert!(text(&status["reason"]).contains(&format!("its manifest has {beside}")), "{status:#}");
    let said = daemon.said_of("ledger");
    assert!(said.iter().any(|line| line.contains("lies beside it is not used")), "{said:?}");
    daemon.stop();
}

#[test]
fn d19_what_a_program_says_otherwise_than_the_manifest_beside_it_is_told_and_can_be_agreed_to() {
    let sandbox = Sandbox::new("[scan]\ndirs = [\"found\"]\n");
    sandbox.fixture("bare.sh", "found/ledger/main.sh");
    let confirmed = BESIDE.replace("name = \"crash\"", "name = \"crash\"\nconfirm = \"always\"");
    sandbox.write("found/ledger/plugin.toml", &confirmed);
    let daemon = sandbox.serve();
    daemon.json(&["list"]);
    assert_eq!(changed(&daemon), Vec::<String>::new());
    data(&daemon, "ledger.pid");
    assert_eq!(changed(&daemon), ["crash confirm always auto"]);
    let of_the_run = digest(&daemon);
    // What lies there as it did takes nothing back.
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(digest(&daemon), of_the_run);
    assert_eq!(events_of(&daemon, "plugin.claims_changed").len(), 1);

    daemon.plugd(&["reload", "ledger"]).expect(0);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(changed(&daemon), Vec::<String>::new());
    daemon.stop();
    let daemon = sandbox.serve();
    data(&daemon, "ledger.pid");
    assert_eq!(changed(&daemon), Vec::<String>::new());
    assert_eq!(events_of(&daemon, "plugin.claims_changed").len(), 0);
    daemon.stop();
}

#[test]
fn d19_a_pin_that_is_no_digest_is_an_error_that_says_what_was_expected() {
    let sandbox = sandbox("manifest_sha256 = \"abc\"\n");
    let check = sandbox.plugd(&["config", "check"]).expect(2);
    let expected = "plugins.ledger.manifest_sha256: expected 64 hexadecimal digits, the manifest sha256 that \
                    `plugd describe NAME` shows, got the string \"abc\"";
    assert!(check.stderr.contains(expected), "{}", check.stderr);
}
