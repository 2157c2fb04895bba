//! Scripts of spares: when there is one, when it takes over, and when not.

use super::script::{check, check_up};

/// How a spare of `a` becomes ready beside it.
const SPARE: &str = "want a | spawn a#1 a:starting
    a spawned |
    a described 1.0.0 | init a#1
    a initialised | spawn a#2 a:ready
    a#2 spawned |
    a#2 described 1.0.0 | init a#2
    a#2 initialised | spare a#2\n";

fn check_spare(plugins: &str, script: &str) {
    check(plugins, &format!("{SPARE}{script}"));
}

#[test]
fn a_spare_takes_over_at_once_and_the_next_one_waits_out_the_back_off() {
    check_spare(
        "a spare",
        "? a | ready accepts started spare #2 ready
        a#1 killed 9 | takeover a#1>a#2
        ? a | ready accepts started spare none
        next | 0.25s: spawn a#3
        a#3 described 1.0.0 | init a#3
        a#3 initialised | spare a#3
        a exited 0 | takeover a#2>a#3
        next | 0.5s: spawn a#4",
    );
    // A run that was ready for long is followed at once, by a spare too.
    check_spare(
        "a spare",
        "+11s |
        a#1 exited 1 | takeover a#1>a#2 spawn a#3",
    );
}

#[test]
fn a_run_that_is_killed_for_what_it_did_is_followed_by_its_spare() {
    check_spare(
        "a spare",
        "a misbehaved stuck | kill a#1 takeover a#1>a#2
        ? a | ready accepts started spare none
        a#1 killed 9 |
        next | 0.25s: spawn a#3",
    );
}

#[test]
fn a_spare_that_is_not_ready_takes_over_nothing() {
    check(
        "a spare",
        "want a | spawn a#1 a:starting
        a described | init a#1
        a initialised | spawn a#2 a:ready
        a#2 described | init a#2
        a#1 exited 1 | close a#2 term a#2 a:backoff
        a#2 killed 15 |
        next | 0.25s: spawn a#3 a:starting",
    );
}

#[test]
fn a_plugin_that_fails_too_often_is_given_up_with_its_spare() {
    check_spare(
        "a spare max=1",
        "a#1 exited 1 | takeover a#1>a#2
        next | 0.25s: spawn a#3
        a#3 described 1.0.0 | init a#3
        a#3 initialised | spare a#3
        a#2 exited 1 | drain a#3 a:failed
        ? a | failed (crash loop: 2 failures in 180 s; last: exit status 1) started
        a#3 drained | ask a#3 stop 5s
        a#3 answered | close a#3
        a#3 exited 0 |",
    );
    check_spare("a spare", "a#1 exited 125 | drain a#2 a:failed");
}

#[test]
fn a_spare_that_fails_is_no_failure_of_the_plugin() {
    check_spare(
        "a spare max=1",
        "a#2 exited 1 | unspared a#2
        ? a | ready accepts started spare none (exit status 1)
        next | 0.25s: spawn a#3
        a#3 described 2.0.0 | close a#3 term a#3 unspared a#3
        ? a | ready accepts started spare none (it declares something else than the run that serves)
        a#3 killed 15 |
        next | 300s: spawn a#4
        a#4 described 1.0.0 | init a#4
        a#4 uninitialised it is locked | close a#4 term a#4 unspared a#4
        a exited 1 | spawn a#5 a:starting",
    );
    check_spare(
        "a spare",
        "a#2 misbehaved nonsense | kill a#2 unspared a#2
        a#2 killed 9 |
        next | 0.25s: spawn a#3
        next | 10s: kill a#3 unspared a#3
        ? a | ready accepts started spare none (no describe answer in 10 s: does it call serve(), read stdin, and flush what it writes?)",
    );
    check_spare(
        "a spare",
        "a#2 unspawned short of processes | unspared a#2
        next | 1s: spawn a#3",
    );
}

#[test]
fn a_spare_ends_with_its_run() {
    check_spare("a spare", "stop a | drain a#1 drain a#2 a:stopping");
    check_spare("a spare", "restart a | drain a#1 drain a#2 a:stopping");
    check_spare("a spare", "a idle | drain a#1 drain a#2 a:stopping");
    check_spare("a spare", "config | drain a#1 drain a#2 a:stopping");
    check_spare("a spare", "config a spare disabled | drain a#1 drain a#2 a:stopping");
    check_spare("a spare", "shutdown | drain a#2 drain a#1 a:stopping");
    check_spare("a spare", "config a | drain a#2");
    check_spare("a spare", "a#2 idle |");
}

#[test]
fn a_changed_plugin_gets_another_spare() {
    check_spare(
        "a spare",
        "config a spare print=2 rev=1 | spawn a#3@1
        revisions a | [0, 1]
        a#3 described 1.0.0 | init a#3
        a#3 initialised | switch a#1>a#3 drain a#1 drain a#2
        a#2 exited 0 | spawn a#4@1
        revisions a | [1]",
    );
    // What fails meanwhile is followed by what is ready, and is replaced all the same.
    check_spare(
        "a spare",
        "config a spare print=2 rev=1 | spawn a#3@1
        a#1 exited 1 | takeover a#1>a#2
        ? a | ready accepts started replacing by #3 spare none changing
        a#3 described 1.0.0 | init a#3
        a#3 initialised | switch a#2>a#3 drain a#2
        next | 0.25s: spawn a#4@1",
    );
    // One that declares something else by now has another spare, which must declare that, too.
    check_spare(
        "a spare",
        "a#1 described 1.0.0 reload | drain a#2 spawn a#3
        a#2 exited 0 |
        a#3 described 1.0.0 reload | init a#3
        config a spare config.x=1 rev=1 | reconfigure a#1@1
        a#3 initialised | spare a#3
        a#1 reconfigured | drain a#3 spawn a#4@1",
    );
    // What it failed of may be what it was to take up in place.
    check_spare(
        "a spare",
        "a#1 described 1.0.0 reload | drain a#2 spawn a#3
        a#2 exited 0 |
        a#3 described 1.0.0 reload | init a#3
        a#3 initialised | spare a#3
        config a spare config.x=1 rev=1 | reconfigure a#1@1
        a#1 exited 1 | takeover a#1>a#3
        ? a | ready accepts started spare none marked config.x (it failed during the reload: exit status 1)",
    );
}

#[test]
fn a_plugin_without_a_second_start_has_no_spare() {
    check_up("a spare mode=never", "? a | ready accepts started");
}

#[test]
fn a_spare_waits_for_what_it_requires() {
    check(
        "a spare needs=b; b",
        "want a | spawn b#1 spawn a#1 b:starting a:starting
        b described 1.0.0 | init b#1
        a described 1.0.0 |
        b initialised | init a#1 b:ready
        a initialised | spawn a#2 a:ready
        stop b | drain b#1 b:stopping
        a#2 described 1.0.0 |
        b exited 0 | b:stopped
        start b | spawn b#2 b:starting
        b described 1.0.0 | init b#2
        b initialised | init a#2 b:ready
        a#2 initialised | spare a#2",
    );
}
