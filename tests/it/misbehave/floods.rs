//! Floods: the flooding plugin answers as well, memory and log stay bounded, and others are not delayed.

use std::fs;
use std::time::Instant;

use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

use super::{beside_a_neighbour, house, pid_of_bad};

/// What the daemon may take for a flood: buffers grow in steps, and so does the allocator's own.
const GROWTH_MAX_KIB: u64 = 24 * 1024;

/// The log kept for a plugin in these tests.
const LOG_SIZE: &str = "log_size = \"1MiB\"\n";

/// Calls `bad` and its neighbour during a flood, and looks at the daemon's memory and log.
#[track_caller]
fn check(flag: &str, look: impl FnOnce(&Daemon<'_>)) {
    let sandbox = house(&[flag], LOG_SIZE);
    beside_a_neighbour(&sandbox, |daemon| {
        let pid = pid_of_bad(daemon);
        let before = daemon.proc_status("VmRSS");
        for turn in 0..20 {
            let result = daemon.json(&["call", "bad.echo", &format!("turn:={turn}")]);
            assert_eq!(
                (&result["status"], &result["data"]["turn"]),
                (&json!("ok"), &json!(turn)),
                "{result:#}"
            );
            let now = daemon.proc_status("VmRSS");
            assert!(now < before + GROWTH_MAX_KIB, "{now} KiB resident, {before} before");
        }
        assert_eq!(pid_of_bad(daemon), pid, "a flood is no reason to end it");
        assert_eq!(daemon.status("bad")["restarts"], 0);
        look(daemon);
        let kept = log_bytes(&sandbox);
        assert!(kept < 3 << 20, "the log of a plugin is bounded: {kept} bytes");
    });
}

/// What lies in the files of the plugin's log.
fn log_bytes(sandbox: &Sandbox) -> u64 {
    let files = fs::read_dir(sandbox.path().join("state/logs")).expect("there are logs").flatten();
    let of_bad = files.filter(|file| file.file_name().to_string_lossy().starts_with("bad"));
    of_bad.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// The lines of its log that plugd itself wrote and that say this.
fn said(daemon: &Daemon<'_>, what: &str) -> usize {
    let entries = daemon.json(&["logs", "bad", "--tail", "100000"]);
    let said = |entry: &&Value| {
        entry["stream"] == "runtime" && entry["text"].as_str().is_some_and(|text| text.contains(what))
    };
    entries.as_array().expect("a list").iter().filter(said).count()
}

/// What was left out is said with the first line of the next second.
fn is_counted(daemon: &Daemon<'_>) {
    eventually("what was not logged is counted", || said(daemon, "lines were not logged") > 0);
}

#[test]
fn a_flood_on_stderr_is_counted_and_not_all_kept() {
    check("--flood-stderr", is_counted);
}

#[test]
fn a_flood_on_stderr_without_a_line_end_fills_no_memory() {
    check("--flood-stderr-no-newline", |_| {});
}

#[test]
fn ten_thousand_notifications_a_second_delay_nobody() {
    check("--flood-notifications", |_| {});
}

#[test]
fn a_flood_of_log_lines_is_counted_and_not_all_kept() {
    check("--flood-log", is_counted);
}

#[test]
fn a_manifest_that_changes_all_the_time_is_described_again_now_and_then() {
    let began = Instant::now();
    check("--manifest-changed-flood", |daemon| {
        let events = daemon.json(&["events", "bad", "--tail", "1000"]);
        let changed = |event: &&Value| event["kind"] == "plugin.manifest_changed";
        let described = events.as_array().expect("events").iter().filter(changed).count();
        let most = began.elapsed().as_millis() / 200 + 2;
        assert!(described > 0 && described as u128 <= most, "{described} times, at most {most}");
    });
}
