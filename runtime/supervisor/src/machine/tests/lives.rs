//! Scripts of one plugin's life: starting, stopping, being taken up anew.

use super::super::Supervisor;
use super::script::{UP, check, check_up, check_with};

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
        a described 1.0.0 | close a#1 term a#1 a:idle
        ? a | idle waits started
        a killed 15
        ? a | idle waits started down Terminated#1 in 0s
        describe a |",
    );
}

#[test]
fn one_that_lingers_after_its_description_is_the_one_that_a_call_gets() {
    check(
        "a lingers",
        "describe a | spawn a#1 a:starting
        a described 1.0.0 | a:idle
        +60s |
        want a | init a#1 a:starting
        a initialised | a:ready",
    );
    // Without a call it stays until it is stopped, or until everybody goes.
    let described = "describe a | spawn a#1 a:starting\n a described | a:idle\n";
    check("a lingers", &format!("{described} stop a | close a#1 term a#1 a:stopping"));
    check("a lingers", &format!("{described} config | close a#1 term a#1 a:stopping"));
    check("a lingers", &format!("{described} shutdown | close a#1 term a#1 a:stopping"));
    // So it is where it could not be started, of which it says so.
    let needs = "describe a | spawn a#1 a:starting\n a described needs=b | close a#1 term a#1 a:blocked";
    check("a lingers", needs);
    // One that nobody wants and that dies is not started again.
    check("a lingers", &format!("{described} a exited 1 | a:backoff\n next | 0.25s: a:idle"));
    check(
        "a lingers; b",
        "describe a | spawn a#1 a:starting\n a described needs=b | a:idle\n want a | spawn b#1 b:starting a:starting",
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
        a described | close a#1 term a#1 a:idle
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
        ? a | starting (tried again after: exit status 1) waits",
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
        ? a | stopping -> stopped (stopped by an operator)
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
        ? a | stopping -> stopped (stopped by an operator)
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
fn a_reload_replaces_a_run_and_describes_one_that_sleeps() {
    check_up(
        "a",
        "reload a | spawn a#2
        reload a |
        a#2 described | init a#2
        a#2 initialised | switch a#1>a#2 drain a#1
        a#1 drained | ask a#1 reload 5s
        a#1 exited 0 |
        a idle | drain a#2 a:stopping
        a exited 0 | a:idle
        reload a | spawn a#3 a:starting
        a described | close a#3 term a#3 a:idle
        a exited 0 |",
    );
}

#[test]
fn a_described_run_that_leaves_by_itself_is_fine() {
    check(
        "a",
        "describe a | spawn a#1 a:starting
        a described | close a#1 term a#1 a:idle
        a exited 1
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

#[test]
fn facts_out_of_place_change_nothing() {
    check(
        "a",
        "want a | spawn a#1 a:starting
        a initialised |
        a uninitialised no |
        a idle |
        a drained |
        a answered |
        a reconfigured |
        a unreconfigured no |
        a described | init a#1
        a undescribed no |
        a idle |
        a initialised | a:ready
        a initialised |
        a undescribed no |
        a uninitialised no |
        a progressed |
        a reconfigured |
        a unreconfigured no |
        a drained |
        a answered |
        ? a | ready accepts started
        stop a | drain a#1 a:stopping
        a answered |
        a idle |
        a initialised |
        a drained | ask a#1 stop 5s
        a described |
        a answered | close a#1
        a answered |",
    );
}

#[test]
fn what_failed_before_a_plugin_was_ready_is_past() {
    check_up(
        "a",
        "a exited 1 | a:backoff
        next | 0.25s: spawn a#2 a:starting
        a described | init a#2
        a initialised | a:ready
        a idle | drain a#2 a:stopping
        a exited 0 | a:idle
        want a | spawn a#3 a:starting
        ? a | starting waits Exited#2 in 0s",
    );
}

#[test]
fn one_that_is_to_be_listed_is_described_at_once() {
    check(
        "a describe; b",
        "a described 1.0.0 | close a#1 term a#1 a:idle
        a exited 0 |
        ? b | registered waits started down",
    );
}

#[test]
fn a_call_puts_a_plugin_first_once() {
    check_with(
        Supervisor::new(1).with_starting_max(1),
        "a; b eager prio=1",
        "want a | a:starting
        b exited 1 | spawn a#1 b:backoff
        a exited 1 | a:backoff
        next | 0.25s: spawn b#2 b:starting a:starting",
    );
}
