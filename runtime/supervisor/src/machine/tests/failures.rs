//! Scripts of one plugin that fails: judged, tried again, given up, taken up anew.

use std::time::{Duration, Instant};

use super::super::{RestartHistory, RestartPolicy, Verdict};
use super::script::{check, check_up};

#[test]
fn a_start_that_takes_too_long_is_killed_and_counts_as_a_failure() {
    check(
        "a",
        "want a | spawn a#1 a:starting
        next | 10s: kill a#1 a:stopping
        ? a | stopping (no describe answer in 10 s: does it call serve(), read stdin, and flush what it writes?) waits
        a killed 9 | a:backoff
        ? a | backoff (no describe answer in 10 s: does it call serve(), read stdin, and flush what it writes?) waits started down
        next | 0.25s: spawn a#2 a:starting
        a described | init a#2
        next | 30s: kill a#2 a:stopping
        a killed 9 | a:backoff
        ? a | backoff (no init answer in 30 s) waits started down
        next | 0.5s: spawn a#3 a:starting",
    );
}

#[test]
fn progress_extends_init_up_to_its_limit() {
    check(
        "a",
        "want a | spawn a#1 a:starting
        a progressed |
        a described | init a#1
        +29s |
        a progressed |
        +29s |
        a progressed |
        next | 30s: kill a#1 a:stopping
        ? a | stopping (no init answer in 88 s) waits",
    );
    let patient = "a progressed |\n +29s |\n".repeat(10);
    check(
        "a",
        &format!(
            "want a | spawn a#1 a:starting
        a described | init a#1
        {patient} a progressed |
        next | 10s: kill a#1 a:stopping
        ? a | stopping (no init answer in 300 s) waits"
        ),
    );
}

#[test]
fn misbehaving_is_a_failure() {
    check_up(
        "a",
        "a misbehaved 100 stray lines | kill a#1 a:stopping
        ? a | stopping (100 stray lines) waits
        a killed 9 | a:backoff
        ? a | backoff (100 stray lines) waits started down
        next | 0.25s: spawn a#2 a:starting
        a misbehaved again | kill a#2 a:stopping
        a exited 0 | a:backoff",
    );
    check_up(
        "a",
        "+10s |
        a misbehaved nonsense | kill a#1 a:stopping
        a killed 9 | spawn a#2 a:starting",
    );
}

#[test]
fn misbehaving_during_a_stop_only_shortens_it() {
    check_up(
        "a",
        "restart a | drain a#1 a:stopping
        a misbehaved nonsense | kill a#1
        a killed 9 | spawn a#2 a:starting
        ? a | starting waits Killed#1 in 0s",
    );
}

#[test]
fn a_stable_plugin_is_started_again_at_once() {
    check_up(
        "a",
        "+9999ms |
        a exited 0 | a:backoff
        next | 0.25s: spawn a#2 a:starting
        a described | init a#2
        a initialised | a:ready
        +10s |
        a exited 0 | spawn a#3 a:starting",
    );
}

#[test]
fn a_tight_crash_loop_spawns_one_more_than_allowed_and_is_then_probed() {
    check(
        "a eager",
        "a exited 3 | a:backoff
        next | 0.25s: spawn a#2 a:starting
        a exited 3 | a:backoff
        next | 0.5s: spawn a#3 a:starting
        a exited 3 | a:backoff
        next | 1s: spawn a#4 a:starting
        a exited 3 | a:backoff
        next | 2s: spawn a#5 a:starting
        a exited 3 | a:backoff
        next | 4s: spawn a#6 a:starting
        a exited 3 | a:failed
        ? a | failed (crash loop: 6 failures in 180 s; last: exit status 3) started down
        want a |
        next | 300s: spawn a#7 a:starting
        a exited 4 | a:failed
        ? a | failed (crash loop: the latest try failed too; last: exit status 4) started down
        next | 300s: spawn a#8 a:starting
        a described | init a#8
        a initialised | a:ready
        +59s |
        a killed 11 | a:failed
        next | 300s: spawn a#9 a:starting
        a described | init a#9
        a initialised | a:ready
        +60s |
        a exited 1 | spawn a#10 a:starting",
    );
}

#[test]
fn a_plugin_that_crashes_when_ready_is_given_up_too() {
    check(
        "a eager max=1",
        "a described | init a#1
        a initialised | a:ready
        a exited 1 | a:backoff
        next | 0.25s: spawn a#2 a:starting
        a described | init a#2
        a initialised | a:ready
        a exited 1 | a:failed",
    );
}

#[test]
fn failures_far_apart_do_not_add_up() {
    let again = |run: u32| {
        format!(
            "a described | init a#{run}
        a initialised | a:ready
        +61s |
        a exited 1 | spawn a#{} a:starting\n",
            run + 1
        )
    };
    let script: String = (1..12).map(again).collect();
    check("a eager max=1", &script);
}

#[test]
fn an_operators_start_clears_what_was_held_against_it() {
    check(
        "a eager max=1",
        "a exited 1 | a:backoff
        start a | spawn a#2 a:starting
        ? a | starting waits
        a exited 1 | a:backoff
        next | 0.25s: spawn a#3 a:starting
        a exited 1 | a:failed
        restart a | spawn a#4 a:starting
        a exited 1 | a:backoff
        next | 0.25s: spawn a#5 a:starting",
    );
}

#[test]
fn exit_status_125_is_permanent() {
    check(
        "a eager",
        "a exited 125 | a:failed
        ? a | failed (exited with 125: permanent) started down
        want a |
        +400s |
        start a | spawn a#2 a:starting",
    );
    check("a eager mode=always", "a exited 125 | a:backoff");
}

#[test]
fn a_program_that_ends_well_before_it_is_described_is_asked_whether_it_serves() {
    let why =
        "exit status 0 before it answered describe: does it call serve(), or run a loop that reads stdin?";
    check(
        "a",
        &format!(
            "want a | spawn a#1 a:starting
        a exited 0 | a:backoff
        ? a | backoff ({why}) waits started down
        next | 0.25s: spawn a#2 a:starting
        a described | init a#2
        a exited 0 | a:backoff
        ? a | backoff (exit status 0) waits started down"
        ),
    );
}

#[test]
fn never_means_that_one_failure_is_enough() {
    check(
        "a eager mode=never",
        "a described | init a#1
        a initialised | a:ready
        a exited 0 | a:failed
        ? a | failed (exit status 0) started down
        +400s |
        start a | spawn a#2 a:starting",
    );
}

#[test]
fn what_cannot_be_spawned_is_not_tried_again() {
    check(
        "a eager",
        "a unspawned no such file: ./a | a:failed
        ? a | failed (no such file: ./a) started down
        +400s |
        restart a | spawn a#2 a:starting
        a spawned |",
    );
    check(
        "a eager",
        "stop a | close a#1 term a#1 a:stopping
        a unspawned no such file | a:stopped",
    );
}

#[test]
fn a_machine_short_of_something_is_no_fault_of_the_plugin() {
    check(
        "a eager",
        "a unspawned short of descriptors | a:backoff
        next | 1s: spawn a#2 a:starting
        a unspawned short of descriptors | a:backoff
        next | 1s: spawn a#3 a:starting
        ? a | starting (tried again after: short of descriptors) waits
        a described | init a#3
        a initialised | a:ready",
    );
}

#[test]
fn a_refusal_disables_until_something_changes() {
    check(
        "a eager",
        "a undescribed no common protocol version | close a#1 term a#1 a:stopping
        ? a | stopping (no common protocol version) -> disabled
        a killed 15 | a:disabled
        ? a | disabled (no common protocol version) started down Terminated#1 in 0s
        want a |
        reload a | spawn a#2 a:starting
        a described | init a#2
        a uninitialised api_key is missing | close a#2 term a#2 a:stopping
        a exited 0 | a:disabled
        config a eager print=2 | spawn a#3 a:starting
        a undescribed no | close a#3 term a#3 a:stopping
        a exited 0 | a:disabled
        start a | spawn a#4 a:starting",
    );
}

#[test]
fn a_reload_does_not_make_failures_forgotten() {
    check(
        "a eager max=1",
        "a exited 1 | a:backoff
        next | 0.25s: spawn a#2 a:starting
        a exited 1 | a:failed
        reload a | spawn a#3 a:starting
        a exited 1 | a:failed",
    );
}

#[test]
fn one_that_was_given_up_and_then_ready_sleeps_as_any_other() {
    check(
        "a max=0; b needs=a",
        "want a | spawn a#1 a:starting
        a exited 1 | a:failed b:blocked
        next | 300s: spawn a#2 a:starting
        a described | init a#2
        a initialised | a:ready b:idle
        a idle | drain a#2 a:stopping b:blocked
        a exited 0 | a:idle b:idle",
    );
}

#[test]
fn what_is_begun_anew_while_it_is_killed_has_not_failed() {
    check_up(
        "a mode=never",
        "a misbehaved nonsense | kill a#1 a:stopping
        reload a |
        a killed 9 | spawn a#2 a:starting",
    );
}

#[test]
fn a_limit_of_progress_below_the_clocks_cuts_init_but_no_grant() {
    check(
        "a init_max=5",
        "want a | spawn a#1 a:starting
        +6s |
        a progressed |
        +3s |
        a described | init a#1
        next | 5s: kill a#1 a:stopping",
    );
}

#[test]
fn failures_are_forgotten_by_age_and_by_a_long_time_ready() {
    let policy = RestartPolicy { max: 1, ..RestartPolicy::default() };
    let (now, mut history) = (Instant::now(), RestartHistory::default());
    let seconds = Duration::from_secs;
    assert_eq!(history.judge(&policy, now, None, 0.0), Verdict::After(Duration::from_millis(250)));
    assert_eq!(history.judge(&policy, now, Some(seconds(60)), 0.0), Verdict::AtOnce);
    assert_eq!(history.judge(&policy, now + seconds(180), Some(seconds(59)), 0.0), Verdict::AtOnce);
    assert_eq!(history.within(seconds(180), now + seconds(359)), 1);
    assert_eq!(history.within(seconds(180), now + seconds(360)), 0);
    let given_up = Verdict::GiveUp { failures: 2 };
    assert_eq!(history.judge(&policy, now + seconds(359), Some(seconds(59)), 0.0), given_up);
}

#[test]
fn delays_double_up_to_their_cap_whatever_the_jitter_may_add() {
    let policy = RestartPolicy { max: u32::MAX, ..RestartPolicy::default() };
    let (now, mut history) = (Instant::now(), RestartHistory::default());
    for _ in 0..7 {
        history.judge(&policy, now, None, 0.0);
    }
    assert_eq!(history.judge(&policy, now, None, 0.0), Verdict::After(Duration::from_secs(30)));
    assert_eq!(history.judge(&policy, now, None, 1.0), Verdict::After(Duration::from_secs(36)));
    assert_eq!(history.judge(&policy, now, None, -1.0), Verdict::After(Duration::from_secs(24)));
}
