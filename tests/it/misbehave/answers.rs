//! Sins of answering: the call fails with its name, and what is asked next is answered.

use std::time::{Duration, Instant};

use plugd_tests::Daemon;
use serde_json::{Value, json};

use super::{QUICK, assert_parts, beside_a_neighbour, failure, house, pid_of_bad, text};

/// Who answers after a sin.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// The same process: only that call has failed.
    SameProcess,
    /// Another one: the plugin was replaced.
    Replaced,
}

/// Far above what a loaded machine needs, far below the deadline of the call.
const AT_ONCE: Duration = Duration::from_secs(20);

/// Calls `bad.echo`, which must fail at once with this error; then looks at who answers.
#[track_caller]
fn check(flags: &[&str], settings: &str, (name, parts): (&str, &[&str]), then: Then) {
    let sandbox = house(flags, &format!("{QUICK}{settings}"));
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        let began = Instant::now();
        let error = failure(daemon, 6, &["bad.echo", "a=b", "--timeout", "60s"]);
        assert!(began.elapsed() < AT_ONCE, "it did not wait for the deadline: {:?}", began.elapsed());
        assert_eq!(error["name"], name, "{error:#}");
        assert_parts(text(&error["message"]), parts);
        check_next(daemon, before, then);
    });
}

#[track_caller]
fn check_next(daemon: &Daemon<'_>, before: u64, then: Then) {
    let after = pid_of_bad(daemon);
    assert_eq!(after == before, then == Then::SameProcess, "{before} {after}");
    assert_eq!(daemon.wait_for_state("bad", "ready")["pid"], after);
}

/// Calls `bad.echo`, which must be answered as if there was no sin; returns the plugin's status.
#[track_caller]
fn check_harmless(flags: &[&str]) -> Value {
    let sandbox = house(flags, "");
    let mut status = Value::Null;
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        for turn in 0..5 {
            let result = daemon.json(&["call", "bad.echo", &format!("turn:={turn}")]);
            assert_eq!(
                (&result["status"], &result["data"]),
                (&json!("ok"), &json!({"turn": turn})),
                "{result:#}"
            );
        }
        check_next(daemon, before, Then::SameProcess);
        status = daemon.status("bad");
        let events = daemon.json(&["events", "bad", "--tail", "1000"]);
        let told = |event: &&Value| event["kind"] == "call.progress" || event["kind"] == "call.partial";
        assert_eq!(events.as_array().expect("events").iter().find(told), None, "nothing of others' calls");
    });
    status
}

#[test]
fn an_exit_during_a_call_fails_it_with_the_status_and_the_last_words() {
    check(
        &["--exit-in-call"],
        "",
        ("plugin_died", &["bad", "exit status 3", "it said on stderr: boom"]),
        Then::Replaced,
    );
}

#[test]
fn an_exit_in_a_later_call_does_not_touch_the_earlier_one() {
    let sandbox = house(&["--exit-in-call=2"], QUICK);
    beside_a_neighbour(&sandbox, |daemon| {
        assert_eq!(daemon.json(&["call", "bad.echo"])["status"], "ok");
        assert_eq!(failure(daemon, 6, &["bad.echo"])["name"], "plugin_died");
        assert_eq!(daemon.json(&["call", "bad.echo"])["status"], "ok");
    });
}

#[test]
fn garbage_around_every_message_is_counted_and_harms_nothing() {
    let status = check_harmless(&["--garbage"]);
    assert!(status["stray_lines"].as_u64() > Some(100), "{status:#}");
}

#[test]
fn an_answer_given_twice_is_dropped_the_second_time() {
    let status = check_harmless(&["--answer-twice"]);
    assert_eq!(status["unmatched_answers"], 5, "{status:#}");
}

#[test]
fn what_is_told_of_calls_of_others_is_not_passed_on() {
    check_harmless(&["--wrong-call-id-progress"]);
}

#[test]
fn a_print_that_glues_itself_to_an_answer_fails_that_call() {
    let why = ["no response", "text stands before it on its line: a print without a line end?"];
    check(&["--glued-print"], "", ("protocol_violation", &why), Then::SameProcess);
}

#[test]
fn half_a_character_fails_that_call() {
    check(&["--half-utf8"], "", ("protocol_violation", &["no response"]), Then::SameProcess);
}

#[test]
fn a_nul_inside_an_answer_fails_that_call() {
    check(&["--nul-bytes"], "", ("protocol_violation", &["no response"]), Then::SameProcess);
}

#[test]
fn two_ids_in_one_answer_fail_that_call() {
    check(&["--duplicate-keys"], "", ("protocol_violation", &["no response"]), Then::SameProcess);
}

#[test]
fn an_answer_of_another_form_fails_that_call() {
    for shape in ["no-data", "text", "null", "list"] {
        let flag = format!("--wrong-shape={shape}");
        check(&[&flag], "", ("missing_data", &["data"]), Then::SameProcess);
    }
    for shape in ["nothing", "both", "error-text", "error-without-code", "version-1"] {
        let flag = format!("--wrong-shape={shape}");
        check(&[&flag], "", ("protocol_violation", &["no response"]), Then::SameProcess);
    }
}

#[test]
fn an_answer_above_the_frame_limit_fails_that_call() {
    let limit = "frame_limit = \"1MiB\"\n";
    check(&["--huge-answer=4000000"], limit, ("frame_too_large", &["1048576"]), Then::SameProcess);
}

#[test]
fn a_line_without_end_ends_the_plugin() {
    let limit = "frame_limit = \"1MiB\"\n";
    check(&["--endless-line"], limit, ("frame_too_large", &["1048576"]), Then::Replaced);
}

#[test]
fn one_that_closes_its_stdout_is_replaced() {
    check(&["--close-stdout"], "", ("protocol_violation", &["closed its stdout"]), Then::Replaced);
}

#[test]
fn one_that_wants_more_memory_than_it_may_have_hurts_itself_alone() {
    let limit = "[plugins.bad.rlimits]\naddress_space = \"512MiB\"\n";
    check(&["--fill-memory"], limit, ("plugin_died", &["exit status 1", "MemoryError"]), Then::Replaced);
}

#[test]
fn an_answer_as_deep_as_it_likes_is_handed_on_or_refused() {
    let sandbox = house(&["--deep-json"], "");
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        let ran = daemon.plugd(&["--output", "json", "call", "bad.echo"]);
        if ran.code == 0 {
            assert!(ran.stdout.contains(&"[".repeat(100)), "{}", ran.stdout.len());
        } else {
            assert_eq!(ran.expect(6).json()["error"]["name"], "protocol_violation");
        }
        check_next(daemon, before, Then::SameProcess);
    });
}

#[test]
fn one_that_calls_itself_is_told_so_and_goes_on() {
    let sandbox = house(&["--calls-itself"], "");
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        let result = daemon.json(&["call", "bad.echo"]);
        let refused = &result["data"]["error"]["data"]["cause"]["error"];
        assert_eq!(
            (&refused["code"], &refused["name"]),
            (&json!(7003), &json!("reentrant_call")),
            "{result:#}"
        );
        check_next(daemon, before, Then::SameProcess);
    });
}

#[test]
fn a_thousand_calls_to_others_at_once_are_all_answered() {
    let sandbox = house(&["--flood-host-calls=1000"], "");
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        let result = daemon.json(&["call", "bad.echo", "--timeout", "60s"]);
        let count = |name: &str| result["data"][name].as_u64().unwrap_or_else(|| panic!("{result:#}"));
        assert_eq!(count("answered") + count("refused"), 1000, "{result:#}");
        assert!(count("answered") > 0 && count("refused") > 0, "they are bounded: {result:#}");
        check_next(daemon, before, Then::SameProcess);
    });
}

#[test]
fn one_that_declares_more_lanes_than_it_has_delays_itself_alone() {
    let sandbox = house(&["--lies-about-concurrency"], "");
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        std::thread::scope(|scope| {
            let call = || daemon.json(&["call", "bad.sleep", "ms:=200"]);
            let calls: Vec<_> = (0..4).map(|_| scope.spawn(call)).collect();
            for call in calls {
                let result = call.join().expect("it ends");
                assert_eq!(
                    (&result["status"], &result["data"]["slept_ms"]),
                    (&json!("ok"), &json!(200)),
                    "{result:#}"
                );
            }
        });
        check_next(daemon, before, Then::SameProcess);
    });
}
