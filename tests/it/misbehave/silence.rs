//! Sins that leave a call without its answer: it ends at its deadline, and the lane is freed.

use std::time::{Duration, Instant};

use plugd_tests::{Daemon, kill};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{QUICK, assert_parts, beside_a_neighbour, failure, house, pid_of_bad, text};

/// So long a plugin that is stuck in its only lane may take after `cancel`.
const GRACE: &str = "cancel_grace = \"200ms\"\n";

/// Calls an operation of `bad` that is not answered in time, and checks that another process takes
/// the next call.
#[track_caller]
fn check(flags: &[&str], call: &[&str], parts: &[&str]) {
    let sandbox = house(flags, &format!("{QUICK}{GRACE}"));
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        let began = Instant::now();
        let error = failure(daemon, 5, &[call, &["--timeout", "1s"]].concat());
        check_timed_out(&error, parts);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_ne!(pid_of_bad(daemon), before, "it was stuck in its only lane, and is replaced");
        check_replaced(daemon);
    });
}

#[track_caller]
fn check_timed_out(error: &Value, parts: &[&str]) {
    assert_eq!((&error["code"], &error["name"]), (&json!(5001), &json!("timed_out")), "{error:#}");
    assert_eq!(error["outcome"], "unknown", "{error:#}");
    assert_parts(text(&error["message"]), &["did not answer within 1 s"]);
    assert_parts(text(&error["message"]), parts);
}

#[track_caller]
fn check_replaced(daemon: &Daemon<'_>) {
    let status = daemon.wait_for_state("bad", "ready");
    assert_eq!(status["starts"], 2, "{status:#}");
    assert_eq!(status["last_exit"]["signal"], 9, "{status:#}");
}

#[test]
fn x17_a_page_of_a_web_server_is_no_answer_and_is_counted() {
    // The grace is long, so that the run which wrote the page can be looked at.
    let sandbox = house(&["--html"], &format!("{QUICK}cancel_grace = \"5s\"\n"));
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        let error = failure(daemon, 5, &["bad.echo", "--timeout", "1s"]);
        check_timed_out(&error, &["4 lines on stdout that was no message"]);
        let status = daemon.status("bad");
        assert_eq!(status["stray_lines"], 4, "{status:#}");
        let log = daemon.plugd(&["logs", "bad"]).expect(0).stdout;
        assert_parts(&log, &["<html>", "502 Bad Gateway"]);
        assert_ne!(pid_of_bad(daemon), before);
        check_replaced(daemon);
    });
}

#[test]
fn an_id_that_nobody_used_is_no_answer() {
    check(&["--unknown-id"], &["bad.echo"], &["1 answer with an id that nothing waited for"]);
}

#[test]
fn the_id_null_is_no_answer() {
    check(&["--null-id"], &["bad.echo"], &["1 answer with an id that nothing waited for"]);
}

#[test]
fn an_id_as_text_is_no_answer() {
    check(&["--string-id"], &["bad.echo"], &["1 answer with an id that nothing waited for"]);
}

#[test]
fn an_id_with_a_fraction_is_no_answer() {
    check(&["--float-id"], &["bad.echo"], &["1 answer with an id that nothing waited for"]);
}

#[test]
fn a_batch_is_no_answer() {
    check(&["--wrong-shape=batch"], &["bad.echo"], &["1 line on stdout that was no message"]);
}

#[test]
fn an_answer_that_comes_byte_by_byte_does_not_put_off_the_deadline() {
    check(&["--drip=50"], &["bad.echo"], &[]);
}

#[test]
fn progress_without_end_does_not_put_off_the_deadline() {
    check(&["--progress-forever"], &["bad.echo"], &[]);
}

#[test]
fn one_that_ignores_cancel_is_ended() {
    check(&["--ignore-cancel"], &["bad.sleep", "ms:=600000"], &[]);
}

#[test]
fn one_that_closes_its_stdin_is_ended() {
    check(&["--close-stdin"], &["bad.echo"], &[]);
}

#[test]
fn one_that_stops_itself_is_ended() {
    check(&["--stop-itself"], &["bad.echo"], &[]);
}

#[test]
fn one_that_stops_reading_is_ended() {
    check(&["--stop-reading"], &["bad.echo"], &[]);
}

#[test]
fn one_whose_pipe_is_full_holds_up_nobody() {
    let sandbox = house(&[], &format!("{QUICK}{GRACE}"));
    // Far more than the pipe holds, so that the host must keep the rest.
    sandbox.write("long.json", &format!("{{\"text\":\"{}\"}}", "x".repeat(4_000_000)));
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        kill(u32::try_from(before).expect("a pid"), Signal::STOP);
        let error = failure(daemon, 5, &["bad.echo", "--json", "@long.json", "--timeout", "1s"]);
        check_timed_out(&error, &[]);
        assert_ne!(pid_of_bad(daemon), before);
        check_replaced(daemon);
    });
}
