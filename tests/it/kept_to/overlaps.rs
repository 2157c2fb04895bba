//! Operations that seem to be for the same: whoever runs the daemon is warned when they come to stand together.

use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::json;

use super::operations;
use crate::reloading::{events_of, text};

/// The table of a plugin that looks up information, and its program.
fn lookup(sandbox: &Sandbox, name: &str) -> String {
    let look_up = json!({"name": "look_up", "input_schema": {"type": "object"},
        "description": "Looks up information about a customer. The answer is a text."});
    sandbox.python(name, &operations(&[look_up]))
}

/// The lines with which the daemon warned of pairs.
fn warned(daemon: &Daemon<'_>, sandbox: &Sandbox) -> Vec<String> {
    assert!(daemon.pid() > 0);
    let log = sandbox.read("daemon.log");
    let of_pairs = |line: &&str| line.contains("WARN") && line.contains(" seem to be for the same");
    log.lines().filter(of_pairs).map(str::to_owned).collect()
}

/// Row R10.
#[test]
fn r10_the_daemon_warns_of_each_overlap_once_and_of_new_ones_when_they_are_registered() {
    let sandbox = Sandbox::new("");
    let both = lookup(&sandbox, "archive") + &lookup(&sandbox, "live");
    sandbox.configure(&both);
    let daemon = sandbox.serve();
    eventually("the pair is told of", || !warned(&daemon, &sandbox).is_empty());
    let told = warned(&daemon, &sandbox);
    let pair = "archive.look_up and live.look_up seem to be for the same: both say ";
    assert!(told.len() == 1 && told[0].contains(pair), "{told:?}");
    assert!(told[0].contains("say in when_not_to_use of archive.look_up"), "{told:?}");
    let events = events_of(&daemon, "registry.overlap");
    assert!(events.len() == 1 && text(&events[0]["reason"]).starts_with(pair), "{events:?}");
    assert_eq!(events[0]["operation"], "archive.look_up");

    // What was told is not told again; what comes is.
    daemon.plugd(&["reload"]).expect(0);
    daemon.plugd(&["reload", "live"]).expect(0);
    sandbox.configure(&(both.clone() + &lookup(&sandbox, "mirror")));
    daemon.plugd(&["reload"]).expect(0);
    eventually("the new pairs are told of", || warned(&daemon, &sandbox).len() > 2);
    let told = warned(&daemon, &sandbox);
    for pair in [
        "archive.look_up and live.look_up",
        "archive.look_up and mirror.look_up",
        "live.look_up and mirror.look_up",
    ] {
        assert_eq!(told.iter().filter(|line| line.contains(pair)).count(), 1, "{pair}: {told:#?}");
    }
    assert_eq!(told.len(), 3, "{told:#?}");

    // One that was mended and comes back is told again, and only that one.
    sandbox.python(
        "mirror",
        &operations(&[json!({"name": "sum", "input_schema": {"type": "object"},
        "description": "Adds numbers up."})]),
    );
    daemon.plugd(&["reload"]).expect(0);
    let mended = || daemon.plugd(&["lint"]).stdout;
    eventually("it is mended", || !mended().contains("mirror.look_up"));
    // The daemon looks when nothing was registered for a second: what comes later is told by then.
    sandbox.configure(&(both.clone() + &lookup(&sandbox, "later")));
    daemon.plugd(&["reload"]).expect(0);
    eventually("the later pairs are told of", || warned(&daemon, &sandbox).len() > 4);
    sandbox.configure(&(both + &lookup(&sandbox, "mirror")));
    daemon.plugd(&["reload"]).expect(0);
    let told_of = |pair: &str| warned(&daemon, &sandbox).iter().filter(|line| line.contains(pair)).count();
    eventually("what comes back is told of", || told_of("archive.look_up and mirror.look_up") == 2);
    assert_eq!(told_of("archive.look_up and live.look_up"), 1);
    daemon.stop();
}

/// Row R10.
#[test]
fn r10_of_many_overlaps_the_first_are_told_and_the_others_counted() {
    let sandbox = Sandbox::new("");
    let tables: String = (0..8).map(|number| lookup(&sandbox, &format!("lookup{number}"))).collect();
    sandbox.configure(&tables);
    let daemon = sandbox.serve();
    let counted = || warned(&daemon, &sandbox).into_iter().find(|line| line.contains("more pairs"));
    eventually("the rest is counted", || counted().is_some());
    assert!(counted().is_some_and(|line| line.contains(" 8 more pairs") && line.contains("`plugd lint`")));
    assert_eq!(warned(&daemon, &sandbox).len(), 21);
    assert_eq!(events_of(&daemon, "registry.overlap").len(), 20);
    daemon.stop();
}
