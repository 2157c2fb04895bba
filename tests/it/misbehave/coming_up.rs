//! Sins of coming up: each is told at once with its reason, and the plugin's process is gone.

use serde_json::{Value, json};

use super::{QUICK, assert_parts, beside_a_neighbour, failure, house, pid_of_bad, text};

/// A plugin that failed to come up is not tried again while the test looks at it.
const LATER: &str = "restart = { backoff = \"30s\" }\n";

/// Starts `bad`, and checks the state it comes to, its reason, and what a caller is told.
#[track_caller]
fn check(flags: &[&str], settings: &str, state: &str, reason: &[&str]) {
    let sandbox = house(flags, &format!("{LATER}{settings}"));
    beside_a_neighbour(&sandbox, |daemon| {
        let start = daemon.plugd(&["--output", "json", "start", "bad"]).expect(6).json();
        assert_eq!(start["plugins"][0]["state"], state, "{start:#}");
        let status = daemon.wait_for_state("bad", state);
        assert_parts(text(&status["reason"]), reason);
        assert_eq!(status["pid"], Value::Null, "{status:#}");
        assert_eq!(status["next_start"].is_u64(), state == "backoff", "{status:#}");
        assert_eq!(sandbox.processes_in("plugins/bad"), [0; 0], "its processes are gone");

        // A call waits for the next try for as long as it may, and for nothing else.
        let error = failure(daemon, 6, &["bad.echo", "--timeout", "300ms"]);
        let name = if state == "backoff" { "unavailable" } else { state };
        assert_eq!((&error["name"], &error["outcome"]), (&json!(name), &json!("not_run")), "{error:#}");
        assert_parts(text(&error["message"]), reason);
    });
}

#[test]
fn an_exit_before_describe_is_told_with_its_status_and_last_words() {
    check(&["--exit-before-describe"], "", "backoff", &["exit status 3", "boom"]);
}

#[test]
fn an_exit_with_status_0_before_describe_is_a_failure_too() {
    check(&["--exit-zero"], "", "backoff", &["exit status 0"]);
}

#[test]
fn an_exit_with_status_125_is_not_tried_again() {
    check(&["--exit-125"], "", "failed", &["125"]);
}

#[test]
fn one_that_never_answers_describe_is_ended() {
    let limit = "describe_timeout = \"300ms\"\n";
    check(&["--never-answer-describe"], limit, "backoff", &["no describe answer in 0.3 s"]);
}

#[test]
fn one_that_describes_itself_too_late_is_ended() {
    let limit = "describe_timeout = \"300ms\"\n";
    check(&["--slow-describe=600"], limit, "backoff", &["no describe answer in 0.3 s"]);
}

#[test]
fn one_that_never_answers_init_is_ended() {
    let limit = "init_timeout = \"300ms\"\n";
    check(&["--never-answer-init"], limit, "backoff", &["no init answer in 0.3 s"]);
}

#[test]
fn one_that_opens_its_resources_too_slowly_and_says_nothing_is_ended() {
    let limit = "init_timeout = \"300ms\"\n";
    check(&["--slow-init=600"], limit, "backoff", &["no init answer in 0.3 s"]);
}

#[test]
fn progress_does_not_extend_a_start_for_ever() {
    let limits = "init_timeout = \"1s\"\nstart_timeout_max = \"4s\"\n";
    check(&["--progress-init=600"], limits, "backoff", &["no init answer in"]);
}

#[test]
fn one_that_refuses_init_is_disabled_with_its_reason() {
    check(&["--init-error"], "", "disabled", &["the licence has run out"]);
}

#[test]
fn one_that_speaks_another_version_is_disabled() {
    check(&["--wrong-version=999"], "", "disabled", &["999", "version"]);
}

#[test]
fn one_that_names_no_version_is_disabled() {
    check(&["--no-version"], "", "disabled", &["protocol"]);
}

#[test]
fn one_whose_manifest_is_none_is_disabled() {
    for manifest in ["[]", "null", "\"hello\"", "{}", "{\"protocol\": 1, \"name\": 7}"] {
        check(&[&format!("--bad-manifest={manifest}")], "", "disabled", &["manifest"]);
    }
}

#[test]
fn one_whose_answer_to_describe_is_no_answer_is_told_at_once() {
    let unusable = "its answer to describe is unusable";
    check(&["--wrong-describe=string-id"], "", "disabled", &[unusable, "expected 1, got \"1\""]);
    check(&["--wrong-describe=float-id"], "", "disabled", &[unusable, "expected 1, got 1.0"]);
    check(&["--wrong-describe=no-jsonrpc"], "", "disabled", &[unusable, "expected \"jsonrpc\": \"2.0\""]);
    check(&["--wrong-describe=broken"], "", "disabled", &[unusable, "not JSON"]);
    check(&["--wrong-describe=error-text"], "", "disabled", &[unusable, "\"error\" must be an object"]);
}

#[test]
fn one_that_never_answers_describe_is_told_what_was_wrong_with_its_first_line() {
    let limit = "describe_timeout = \"2s\"\n";
    let reason = ["no describe answer in 2 s", "\"protocol\":1,} (not JSON: "];
    check(&["--wrong-describe=broken-without-id"], limit, "backoff", &reason);
}

#[test]
fn one_that_gives_back_what_it_is_sent_is_no_plugin() {
    check(&["--echo"], "", "disabled", &["gives back what it is sent"]);
}

#[test]
fn one_that_leaves_a_child_with_its_pipes_has_ended() {
    check(&["--fork-and-exit"], "", "backoff", &["exit status 0"]);
}

#[test]
fn one_that_dies_as_soon_as_it_is_ready_is_given_up() {
    let sandbox = house(&["--crash-after-init"], "restart = { backoff = \"10ms\", max = 2 }\n");
    beside_a_neighbour(&sandbox, |daemon| {
        // Whether it was ready for a moment or not: what counts is where it ends.
        daemon.plugd(&["start", "bad"]);
        let failed = daemon.wait_for_state("bad", "failed");
        assert_parts(text(&failed["reason"]), &["crash loop: 3 failures", "exit status 3", "boom"]);
        let error = failure(daemon, 6, &["bad.echo"]);
        assert_eq!((&error["name"], &error["outcome"]), (&json!("failed"), &json!("not_run")), "{error:#}");
    });
}

/// Calls `bad.echo`, which must be answered although the plugin comes up slowly.
#[track_caller]
fn check_answered(flags: &[&str], settings: &str) {
    let sandbox = house(flags, settings);
    beside_a_neighbour(&sandbox, |daemon| {
        let result = daemon.json(&["call", "bad.echo", "a=b"]);
        assert_eq!((&result["status"], &result["data"]["a"]), (&json!("ok"), &json!("b")), "{result:#}");
        let status = daemon.status("bad");
        assert_eq!((&status["starts"], &status["restarts"]), (&json!(1), &json!(0)), "{status:#}");
    });
}

#[test]
fn one_that_is_slow_within_its_limits_is_waited_for() {
    check_answered(&["--slow-describe=1", "--slow-init=1"], "");
}

#[test]
fn one_that_reports_progress_may_take_longer_than_init_timeout() {
    check_answered(&["--progress-init=3"], "init_timeout = \"2s\"\n");
}

#[test]
fn thousands_of_operations_are_no_trouble() {
    let sandbox = house(&["--many-operations=2000"], "");
    beside_a_neighbour(&sandbox, |daemon| {
        let result = daemon.json(&["call", "bad.more_1999"]);
        assert_eq!(result["status"], "ok", "{result:#}");
        let described = daemon.json(&["describe", "bad"]);
        assert_eq!(described["operations"].as_array().map(Vec::len), Some(2009));
    });
}

#[test]
fn one_that_speaks_like_the_launcher_is_believed_nothing_of_it() {
    let sandbox = house(&["--fake-launcher"], QUICK);
    beside_a_neighbour(&sandbox, |daemon| {
        for _ in 0..2 {
            let result = daemon.json(&["call", "bad.echo", "a=b"]);
            assert_eq!((&result["status"], &result["data"]["a"]), (&json!("ok"), &json!("b")), "{result:#}");
            let pid = pid_of_bad(daemon);
            let error = failure(daemon, 6, &["bad.crash"]);
            assert_eq!(error["name"], "plugin_died", "{error:#}");
            assert_ne!(pid_of_bad(daemon), pid, "it is restarted as any other");
        }
    });
}
