//! Scripts of what becomes of a running plugin when one that it requires is lost.

use super::script::check;

/// How `b` and then `a`, which requires it, become ready.
const UP: &str = "want b | spawn b#1 b:starting
    b described | init b#1
    b initialised | b:ready
    want a | spawn a#1 a:starting
    a described | init a#1
    a initialised | a:ready\n";

fn check_lost(plugins: &str, script: &str) {
    check(plugins, &format!("{UP}{script}"));
}

#[test]
fn on_loss_restart_stops_a_dependent_and_starts_it_again_afterwards() {
    check_lost(
        "a needs=b!restart; b",
        "b exited 1 | drain a#1 b:backoff a:stopping
        ? a | stopping waits
        a drained | ask a#1 lost 5s
        a exited 0 | spawn a#2 a:starting
        ? a | starting for b waits Exited#1 in 0s
        a described |
        next | 0.25s: spawn b#2 b:starting
        b described | init b#2
        b initialised | init a#2 b:ready
        a initialised | a:ready",
    );
    check_lost(
        "a needs=b?!restart; b mode=never",
        "b exited 1 | drain a#1 b:failed a:stopping
        a exited 0 | spawn a#2 a:starting
        a described | init a#2",
    );
}

#[test]
fn on_loss_restart_waits_blocked_for_one_that_was_stopped() {
    check_lost(
        "a needs=b!restart; b",
        "stop b | drain b#1 drain a#1 b:stopping a:stopping
        a exited 0 | a:blocked
        b exited 0 | b:stopped
        ? a | blocked (requires b, which is stopped) for b started down Exited#1 in 0s
        start b | spawn b#2 spawn a#2 b:starting a:starting",
    );
}

#[test]
fn on_loss_stop_lets_a_dependent_sleep_until_it_is_wanted() {
    check_lost(
        "a needs=b!stop; b",
        "restart b | drain b#1 drain a#1 b:stopping a:stopping
        a drained | ask a#1 lost 5s
        a exited 0 | a:idle
        b exited 0 | spawn b#2 b:starting
        b described | init b#2
        b initialised | b:ready
        want a | spawn a#2 a:starting",
    );
    check(
        "a eager needs=b!stop; b",
        "b described | init b#1
        b initialised | b:ready
        a described | init a#1
        a initialised | a:ready
        b exited 1 | drain a#1 b:backoff a:stopping
        a exited 0 | spawn a#2 a:starting",
    );
}

#[test]
fn on_loss_is_that_of_the_configuration_where_it_says_something() {
    check(
        "a needs=b; b",
        "want a | spawn b#1 spawn a#1 b:starting a:starting
        b described | init b#1
        b initialised | b:ready
        a described needs=b!stop | init a#1
        a initialised | a:ready
        b exited 1 | b:backoff",
    );
    check(
        "a; b",
        "want b | spawn b#1 b:starting
        b described | init b#1
        b initialised | b:ready
        want a | spawn a#1 a:starting
        a described needs=b!stop | init a#1
        a initialised | a:ready
        b misbehaved nonsense | kill b#1 drain a#1 b:stopping a:stopping",
    );
}

#[test]
fn a_plugin_that_is_removed_or_disabled_is_lost_too() {
    check_lost(
        "a needs=b!restart; b",
        "config a needs=b!restart | drain b#1 drain a#1 a:stopping b:stopping
        b exited 0 | forget b
        a exited 0 | a:blocked",
    );
    check_lost(
        "a needs=b!stop; b",
        "config a needs=b!stop; b disabled | drain b#1 drain a#1 b:stopping a:stopping",
    );
}

#[test]
fn a_dependent_that_does_not_run_yet_loses_nothing() {
    check(
        "a needs=b!stop; b",
        "want a | spawn b#1 spawn a#1 b:starting a:starting
        b described | init b#1
        b initialised | b:ready
        a described | init a#1
        b exited 1 | b:backoff
        a initialised | a:ready
        next | 0.25s: spawn b#2 b:starting",
    );
}

#[test]
fn to_replace_a_plugin_is_no_loss() {
    check_lost(
        "a needs=b!restart; b",
        "config a needs=b!restart; b print=2 | spawn b#2
        b#2 described | init b#2
        b#2 initialised | switch b#1>b#2 drain b#1
        b#1 exited 0 |
        ? a | ready accepts started",
    );
    check_lost(
        "a needs=b!restart; b",
        "reload b | spawn b#2
        b#1 exited 1 | drain a#1 b:starting a:stopping",
    );
}

#[test]
fn a_loss_ends_what_is_done_about_a_change() {
    check_lost(
        "a needs=b!restart; b",
        "config a needs=b!restart print=2 rev=2; b | spawn a#2@2
        b exited 1 | close a#2 term a#2 drain a#1 b:backoff a:stopping
        a#2 killed 15 |
        a#1 exited 0 | spawn a#3@2 a:starting",
    );
}

#[test]
fn one_that_a_running_dependent_does_not_stay_up_without_is_not_idle() {
    check_lost(
        "a needs=b!restart; b",
        "b idle |
        a idle | drain a#1 a:stopping
        b idle | drain b#1 b:stopping",
    );
}

#[test]
fn leaving_is_no_loss() {
    check_lost(
        "a needs=b!restart; b",
        "shutdown | drain a#1 a:stopping
        b exited 1 | b:stopped
        a exited 0 | a:stopped leave",
    );
    check(
        "a needs=b!restart; b; c needs=a",
        &format!(
            "{UP}want c | spawn c#1 c:starting
        c described | init c#1
        c initialised | c:ready
        shutdown | drain c#1 c:stopping
        b exited 1 | b:stopped
        c exited 0 | drain a#1 a:stopping c:stopped"
        ),
    );
}

#[test]
fn what_is_not_required_is_no_loss() {
    check_lost("a needs=b,c?!stop; b; c", "b exited 1 | b:backoff");
}

#[test]
fn while_leaving_nobody_stops_for_being_idle() {
    check_lost(
        "a needs=b; b",
        "shutdown | drain a#1 a:stopping
        b idle |",
    );
}
