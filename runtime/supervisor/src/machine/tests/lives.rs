//! Scripts of one plugin's life: starting, failing, stopping, being taken up anew.

use super::super::Supervisor;
use super::script::{check, check_with};

/// How `a` becomes ready.
const UP: &str = "want a | spawn a#1 a:starting
    a spawned |
    a described |  init a#1
    a initialised | a:ready\n";

fn check_up(plugins: &str, script: &str) {
    check(plugins, &format!("{UP}{script}"));
}

#[test]
fn a_lazy_plugin_starts_when_a_call_wants_it() {
    check("a", &format!("? a | registered waits started down\n {UP} ? a | ready accepts started"));
}

#[test]
fn an_eager_plugin_starts_by_itself_and_ignores_being_idle() {
    check(
        "a eager",
        "a spawned |
        a described | init a#1
        ? a | starting waits
        a initialised | a:ready
        a idle |",
    );
}

#[test]
fn a_description_alone_ends_the_run_without_graces() {
    check(
        "a",
        "describe a | spawn a#1 a:starting
        a described 1.0.0 | close a#1 term a#1 a:stopping
        ? a | stopping waits
        a killed 15 | a:idle
        ? a | idle waits started down Terminated#1 in 0s
        describe a |",
    );
}

#[test]
fn a_call_during_description_keeps_the_process() {
    check(
        "a",
        "describe a | spawn a#1 a:starting
        want a |
        a described | init a#1
        a initialised | a:ready",
    );
}

#[test]
fn a_call_during_the_end_of_a_description_gets_the_next_run() {
    check(
        "a",
        "describe a | spawn a#1 a:starting
        a described | close a#1 term a#1 a:stopping
        want a |
        a exited 0 | spawn a#2 a:starting",
    );
}

#[test]
fn facts_of_an_older_run_change_nothing() {
    check_up(
        "a",
        "a exited 1 | a:backoff
        next | 0.25s: spawn a#2 a:starting
        a#1 described |
        a#1 exited 0 |
        a#1 misbehaved late |
        a#2 described | init a#2
        a#1 initialised |
        ? a | starting waits",
    );
}

#[test]
fn a_start_that_takes_too_long_is_killed_and_counts_as_a_failure() {
    check(
        "a",
        "want a | spawn a#1 a:starting
        next | 10s: kill a#1 a:stopping
        ? a | stopping (no describe answer in 10 s) waits
        a killed 9 | a:backoff
        ? a | backoff (no describe answer in 10 s) waits started down
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
fn a_stop_goes_through_every_step_of_a_deaf_process() {
    check_up(
        "a",
        "stop a | drain a#1 a:stopping
        next | 5s: ask a#1 stop 5s
        next | 5s: close a#1
        next | 3s: term a#1
        next | 3s: kill a#1
        next | 2s: abandon a#1 a:failed
        ? a | failed (unkillable: its process is still there after SIGKILL) started down Unkillable#1 in 18s
        start a |
        a killed 9 | spawn a#2 a:starting",
    );
}

#[test]
fn a_polite_process_leaves_without_a_signal() {
    check_up(
        "a",
        "stop a | drain a#1 a:stopping
        ? a | stopping
        a drained | ask a#1 stop 5s
        a drained |
        a answered | close a#1
        a exited 0 | a:stopped
        ? a | stopped (stopped by an operator) started down Exited#1 in 0s",
    );
}

#[test]
fn a_death_ends_the_stop_and_is_no_failure() {
    check_up(
        "a",
        "restart a | drain a#1 a:stopping
        a exited 3 | spawn a#2 a:starting
        a described | init a#2
        a initialised | a:ready
        a exited 3 | a:backoff
        next | 0.25s: spawn a#3 a:starting",
    );
}

#[test]
fn a_run_that_is_not_ready_stops_at_once() {
    check(
        "a",
        "want a | spawn a#1 a:starting
        stop a | close a#1 term a#1 a:stopping
        next | 3s: kill a#1
        a killed 9 | a:stopped
        ? a | stopped (stopped by an operator) started down Killed#1 in 3s",
    );
}

#[test]
fn an_operators_stop_is_sticky() {
    check_up(
        "a",
        "stop a | drain a#1 a:stopping
        want a |
        ? a | stopping
        a exited 0 | a:stopped
        want a |
        describe a |
        config a print=2 |
        stop a |
        ? a | stopped (stopped by an operator) started down NotRunning#1 in 0s
        start a | spawn a#2 a:starting",
    );
}

#[test]
fn an_eager_plugin_stays_stopped_too() {
    check(
        "a eager",
        "stop a | close a#1 term a#1 a:stopping
        a exited 0 | a:stopped
        config a eager print=2 |
        restart a | spawn a#2 a:starting",
    );
}

#[test]
fn a_restart_is_never_lost() {
    check_up(
        "a",
        "stop a | drain a#1 a:stopping
        restart a |
        ? a | stopping waits
        a exited 0 | spawn a#2 a:starting
        restart a | close a#2 term a#2 a:stopping
        restart a |
        start a |
        a killed 15 | spawn a#3 a:starting",
    );
}

#[test]
fn a_stop_after_a_restart_wins() {
    check_up(
        "a",
        "restart a | drain a#1 a:stopping
        stop a |
        a exited 0 | a:stopped",
    );
}

#[test]
fn restarting_a_deaf_process_is_no_crash() {
    check_up(
        "a mode=never",
        "restart a | drain a#1 a:stopping
        +5s | ask a#1 restart 5s
        +5s | close a#1
        +3s | term a#1
        +3s | kill a#1
        a killed 9 | spawn a#2 a:starting",
    );
    check_up(
        "a mode=never",
        "a misbehaved nonsense | kill a#1 a:stopping
        restart a |
        a killed 9 | spawn a#2 a:starting",
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
fn an_idle_plugin_stops_until_it_is_wanted() {
    check_up(
        "a",
        "a idle | drain a#1 a:stopping
        ? a | stopping waits
        a drained | ask a#1 idle 5s
        a answered | close a#1
        a exited 0 | a:idle
        want a | spawn a#2 a:starting",
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
fn a_refusal_disables_until_something_changes() {
    check(
        "a eager",
        "a undescribed no common protocol version | close a#1 term a#1 a:stopping
        ? a | stopping (no common protocol version)
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
fn a_reload_replaces_a_run_and_describes_one_that_sleeps() {
    check_up(
        "a",
        "reload a | drain a#1 a:stopping
        a drained | ask a#1 reload 5s
        reload a |
        a exited 0 | spawn a#2 a:starting
        a described | init a#2
        a initialised | a:ready
        a idle | drain a#2 a:stopping
        a exited 0 | a:idle
        reload a | spawn a#3 a:starting
        a described | close a#3 term a#3 a:stopping
        a exited 0 | a:idle",
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
fn a_described_run_that_leaves_by_itself_is_fine() {
    check(
        "a",
        "describe a | spawn a#1 a:starting
        a described | close a#1 term a#1 a:stopping
        a exited 1 | a:idle
        ? a | idle waits started down Terminated#1 in 0s",
    );
}

#[test]
fn a_spurious_tick_is_harmless() {
    check_up(
        "a",
        "+0s |
        stop a | drain a#1 a:stopping
        +0s |
        +4999ms |
        +1ms | ask a#1 stop 5s",
    );
}

#[test]
fn few_start_at_once_and_those_that_calls_wait_for_come_first() {
    let machine = Supervisor::new(1).with_starting_max(1);
    check_with(
        machine,
        "a eager; b eager prio=1; c; d eager",
        "? b | starting waits
        want c | c:starting
        b described | init b#1 spawn c#1
        c described | init c#1 spawn a#1
        a exited 1 | spawn d#1 a:backoff",
    );
}
