//! Every sin of the fixture `misbehave.py` is found, by the name of a scenario.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use plugd_tests::Sandbox;

use super::{check, scenario};

/// A sin, the operation that it takes to see it, and the scenarios that must not pass.
type Sin = (&'static str, Option<&'static str>, &'static [&'static str]);

/// No call of the fixture takes as long, not even on a loaded machine; one that is not answered is waited for.
const PATIENCE: &str = "3s";

const COMING_UP: &[Sin] = &[
    ("--exit-before-describe", None, &["describes_itself"]),
    ("--exit-zero", None, &["describes_itself"]),
    ("--exit-125", None, &["describes_itself"]),
    ("--fork-and-exit", None, &["describes_itself"]),
    ("--never-answer-describe", None, &["describes_itself"]),
    ("--slow-describe=3", None, &["starts_soon"]),
    ("--wrong-version=999", None, &["declares_what_can_be_used", "negotiates_a_version"]),
    ("--no-version", None, &["describes_itself"]),
    ("--bad-manifest=[]", None, &["describes_itself"]),
    ("--many-operations=2000", None, &["declares_what_can_be_used"]),
    ("--echo", None, &["describes_itself"]),
    ("--wrong-describe=string-id", None, &["describes_itself", "answers_match_requests"]),
    ("--wrong-describe=float-id", None, &["describes_itself", "answers_match_requests"]),
    ("--wrong-describe=no-jsonrpc", None, &["describes_itself", "answers_are_whole"]),
    ("--wrong-describe=broken", None, &["describes_itself", "answers_are_whole"]),
    ("--wrong-describe=error-text", None, &["describes_itself", "answers_are_whole"]),
    ("--wrong-describe=broken-without-id", None, &["describes_itself", "writes_messages_only"]),
    ("--never-answer-init", None, &["answers_init"]),
    ("--slow-init=3", None, &["starts_soon"]),
    ("--progress-init=3", None, &["starts_soon"]),
    ("--init-error", None, &["answers_init"]),
    ("--crash-after-init", None, &["answers_init"]),
    ("--fake-launcher", None, &["tells_of_its_own_calls"]),
];

const ANSWERING: &[Sin] = &[
    ("--exit-in-call", Some("echo"), &["answers_calls"]),
    ("--garbage", None, &["writes_messages_only", "answers_match_requests"]),
    ("--html", Some("echo"), &["answers_calls", "writes_messages_only"]),
    ("--glued-print", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--endless-line", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--half-utf8", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--nul-bytes", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--answer-twice", Some("echo"), &["answers_match_requests"]),
    ("--unknown-id", Some("echo"), &["answers_calls", "answers_match_requests"]),
    ("--null-id", Some("echo"), &["answers_calls", "answers_match_requests"]),
    ("--string-id", Some("echo"), &["answers_calls", "answers_match_requests"]),
    ("--float-id", Some("echo"), &["answers_calls", "answers_match_requests"]),
    ("--deep-json", Some("echo"), &["answers_calls"]),
    ("--duplicate-keys", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--wrong-shape=no-data", Some("echo"), &["answers_calls"]),
    ("--wrong-shape=text", Some("echo"), &["answers_calls"]),
    ("--wrong-shape=null", Some("echo"), &["answers_calls"]),
    ("--wrong-shape=list", Some("echo"), &["answers_calls"]),
    ("--wrong-shape=nothing", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--wrong-shape=both", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--wrong-shape=error-text", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--wrong-shape=error-without-code", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--wrong-shape=batch", Some("echo"), &["answers_calls", "writes_messages_only"]),
    ("--wrong-shape=version-1", Some("echo"), &["answers_calls", "answers_are_whole"]),
    ("--huge-answer", Some("echo"), &["answers_calls", "answers_are_whole"]),
];

const WORKING: &[Sin] = &[
    ("--drip=50", Some("echo"), &["answers_calls"]),
    ("--close-stdout", Some("echo"), &["answers_calls"]),
    ("--close-stdin", Some("echo"), &["answers_calls"]),
    ("--stop-reading", Some("echo"), &["answers_calls"]),
    ("--stop-itself", Some("echo"), &["answers_calls"]),
    ("--fill-memory=320", Some("echo"), &["needs_little_memory"]),
    ("--calls-itself", Some("echo"), &["asks_the_host_for_what_there_is"]),
    ("--flood-host-calls", Some("echo"), &["asks_the_host_for_what_there_is"]),
    ("--progress-forever", Some("echo"), &["answers_calls"]),
    ("--wrong-call-id-progress", Some("echo"), &["tells_of_its_own_calls"]),
    ("--ignore-cancel", Some("sleep"), &["stops_when_cancelled"]),
    ("--lies-about-concurrency", Some("sleep"), &["runs_calls_beside_each_other"]),
];

const FLOODING: &[Sin] = &[
    ("--flood-stderr", None, &["is_quiet_when_idle"]),
    ("--flood-stderr-no-newline", None, &["is_quiet_when_idle"]),
    ("--flood-notifications", None, &["is_quiet_when_idle"]),
    ("--flood-log", None, &["is_quiet_when_idle"]),
    ("--manifest-changed-flood", None, &["is_quiet_when_idle"]),
];

const LEAVING: &[Sin] = &[
    ("--ignore-shutdown", None, &["answers_shutdown_and_leaves"]),
    ("--ignore-eof", None, &["leaves_when_stdin_ends", "leaves_when_stdin_ends_unused"]),
    ("--spin-on-eof", None, &["leaves_when_stdin_ends"]),
    ("--deaf-to-term", None, &["leaves_at_sigterm"]),
    ("--deaf", None, &["leaves_at_sigterm", "leaves_when_stdin_ends", "answers_shutdown_and_leaves"]),
    ("--leave-group", None, &["stays_in_its_group", "leaves_nothing_behind"]),
    ("--setsid-grandchild", None, &["stays_in_its_group", "leaves_nothing_behind"]),
    ("--grandchild-holds-stdout", None, &["stays_in_its_group", "leaves_nothing_behind"]),
    ("--fork-bomb-small", None, &["stays_in_its_group", "leaves_nothing_behind"]),
];

/// So many sins are committed beside each other: most of them are waited for.
const BESIDE: usize = 3;

/// Checks the fixture once for each sin, with the scenarios alone that must find it.
#[track_caller]
fn found(sins: &[Sin]) {
    let next = AtomicUsize::new(0);
    let missed = std::thread::scope(|scope| {
        let lane = || {
            let of_next = || sins.get(next.fetch_add(1, Ordering::Relaxed));
            std::iter::from_fn(of_next).flat_map(missed_of).collect::<Vec<String>>()
        };
        let lanes: Vec<_> = (0..BESIDE).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().expect("a lane ends")).collect::<Vec<String>>()
    });
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// What the scenarios that must find a sin did not find.
fn missed_of((flag, call, expected): &Sin) -> Vec<String> {
    let sandbox = Sandbox::new("");
    sandbox.fixture("misbehave.py", "plugins/bad/misbehave.py");
    let only = format!("--only={}", expected.join(","));
    let call = call.map(|operation| format!("--call={operation}"));
    let mut args = vec!["plugins/bad/misbehave.py", &only, "--timeout", PATIENCE];
    args.extend(call.as_deref());
    args.extend(["--", flag]);
    let (ran, report) = check(&sandbox, &args);
    let mut missed = Vec::new();
    let mut fails = false;
    for name in *expected {
        let outcome = &scenario(&report, name)["outcome"];
        fails |= outcome == "failed";
        if outcome != "failed" && outcome != "warned" {
            missed.push(format!("{flag}: {name} {outcome}: {:#}", report["plugins"][0]["conformance"]));
        }
    }
    if fails != (ran.code == 6) && report["plugins"][0]["plugin"]["state"] != "failed" {
        missed.push(format!("{flag}: exit code {}", ran.code));
    }
    missed
}

#[test]
fn every_sin_of_the_fixture_is_in_a_table() {
    let fixture = include_str!("../../fixtures/misbehave.py");
    let sins = fixture.lines().filter_map(|line| {
        let line = line.trim_start();
        let rest = line.strip_prefix("sin(\"").or_else(|| line.strip_prefix("number(\""))?;
        rest.split('"').next().map(|name| format!("--{name}"))
    });
    let sins: BTreeSet<String> = sins.collect();
    let tables = [COMING_UP, ANSWERING, WORKING, FLOODING, LEAVING];
    let known = tables.iter().flat_map(|table| table.iter());
    let known: BTreeSet<String> =
        known.map(|(flag, _, _)| flag.split('=').next().unwrap_or_default().to_owned()).collect();
    assert!(sins.len() > 50, "{sins:?}");
    assert_eq!(sins, known, "each sin has a scenario that finds it");
}

#[test]
fn sins_of_coming_up_are_found() {
    found(COMING_UP);
}

#[test]
fn sins_of_answering_are_found() {
    found(ANSWERING);
}

#[test]
fn sins_of_working_are_found() {
    found(WORKING);
}

#[test]
fn floods_are_found() {
    found(FLOODING);
}

#[test]
fn sins_of_leaving_are_found() {
    found(LEAVING);
}
