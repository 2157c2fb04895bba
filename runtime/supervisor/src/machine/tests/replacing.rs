//! Scripts of a run that is to take over from the one that serves.

use super::super::Supervisor;
use super::script::{check, check_up, check_with};

#[test]
fn a_candidate_takes_over_when_it_is_ready() {
    check_up(
        "a",
        "config a print=2 rev=2 | spawn a#2@2
        ? a | ready accepts started replacing by #2 changing
        a#2 spawned |
        a idle |
        a#2 described 2.0.0 | init a#2
        ? a | ready accepts started replacing by #2 changing
        a#2 initialised | switch a#1>a#2 drain a#1
        ? a | ready accepts started
        a#1 drained | ask a#1 reload 5s
        a#1 answered | close a#1
        a#1 exited 0 |
        ? a | ready accepts started Exited#1 in 0s
        a#2 exited 1 | a:backoff
        next | 0.25s: spawn a#3@2 a:starting",
    );
}

#[test]
fn a_replaced_run_that_is_deaf_is_ended_as_any_other() {
    check_up(
        "a",
        "reload a | spawn a#2
        a#2 described | init a#2
        a#2 initialised | switch a#1>a#2 drain a#1
        next | 5s: ask a#1 reload 5s
        a#1 drained |
        next | 5s: close a#1
        next | 3s: term a#1
        next | 3s: kill a#1
        next | 2s: abandon a#1
        ? a | ready accepts started Unkillable#1 in 18s
        +5s |
        a#1 killed 9 |
        ? a | ready accepts started Unkillable#1 in 18s",
    );
    check_up(
        "a",
        "reload a | spawn a#2
        a#2 described | init a#2
        a#2 initialised | switch a#1>a#2 drain a#1
        a#1 misbehaved nonsense | kill a#1
        a#1 misbehaved nonsense |
        a#1 killed 9 |
        ? a | ready accepts started Killed#1 in 0s",
    );
}

const MARKED: &str = "ready accepts started marked command (the new one failed: ";

/// What becomes of a candidate that fails by what a script says: the old one goes on, marked.
fn check_failing(script: &str, reason: &str, rest: &str) {
    check_up(
        "a",
        &format!(
            "config a print=2 rev=2 | spawn a#2@2
        {script}
        ? a | {MARKED}{reason})
        {rest}
        config a print=2 rev=2 |
        a idle | drain a#1 a:stopping"
        ),
    );
}

#[test]
fn a_candidate_that_fails_in_any_phase_is_given_up_and_the_old_one_goes_on() {
    check_failing("a#2 unspawned no such file |", "no such file", "");
    check_failing("a#2 unspawned short of descriptors |", "short of descriptors", "+400s |");
    check_failing("a#2 exited 3 |", "exit status 3", "");
    check_failing("a#2 exited 125 |", "exit status 125", "");
    check_failing("a#2 undescribed no | close a#2 term a#2", "no", "a#2 killed 15 |");
    check_failing("a#2 misbehaved junk | kill a#2", "junk", "a#2 killed 9 |");
    check_failing(
        "next | 10s: kill a#2",
        "no describe answer in 10 s: does it call serve(), read stdin, and flush what it writes?",
        "a#2 killed 9 |",
    );
    check_failing("a#2 described | init a#2\n a#2 killed 11 |", "killed by signal 11 (SIGSEGV)", "");
    check_failing(
        "a#2 described | init a#2\n a#2 uninitialised bad key | close a#2 term a#2",
        "bad key",
        "next | 3s: kill a#2\n next | 2s: abandon a#2\n a#2 killed 9 |",
    );
    check_failing(
        "a#2 described | init a#2\n next | 30s: kill a#2",
        "no init answer in 30 s",
        "a#2 described |\n a#2 initialised |\n a#2 exited 0 |",
    );
}

#[test]
fn a_failed_candidate_is_no_failure_of_the_plugin() {
    check_up(
        "a max=0",
        "config a max=0 print=2 rev=2 | spawn a#2@2
        a#2 exited 1 |
        config a max=0 print=3 rev=3 | spawn a#3@3
        a#3 exited 1 |
        ? a | ready accepts started marked command (the new one failed: exit status 1)
        +400s |
        reload a | spawn a#4@3
        a#4 exited 1 |
        restart a | drain a#1 a:stopping
        a#1 exited 0 | spawn a#5@3 a:starting",
    );
}

#[test]
fn after_a_failed_replacement_the_old_one_is_started_again_when_it_crashes() {
    check_up(
        "a",
        "config a print=2 rev=2 | spawn a#2@2
        a#2 exited 1 |
        a#1 exited 1 | a:backoff
        ? a | backoff (exit status 1) waits started down marked command (the new one failed: exit status 1)
        next | 0.25s: spawn a#3 a:starting
        a described | init a#3
        a initialised | a:ready
        config a print=0 rev=4 | spawn a#4@4",
    );
}

#[test]
fn a_reload_of_the_same_that_fails_is_marked_without_keys() {
    check_up(
        "a",
        "reload a | spawn a#2
        a#2 exited 1 |
        ? a | ready accepts started marked  (the new one failed: exit status 1)
        config a rev=0 |
        config a print=2 rev=2 | spawn a#3@2",
    );
    check_up(
        "a",
        "reload a | spawn a#2
        a#2 exited 1 |
        a#1 exited 1 | a:backoff
        ? a | backoff (exit status 1) waits started down",
    );
}

#[test]
fn progress_extends_the_start_of_a_candidate() {
    check_up(
        "a",
        "reload a | spawn a#2
        +9s |
        a#2 progressed |
        +9s |
        a#2 described | init a#2
        +29s |
        a#2 progressed |
        next | 30s: kill a#2
        ? a | ready accepts started marked  (the new one failed: no init answer in 59 s)",
    );
}

#[test]
fn facts_out_of_place_change_nothing_about_a_candidate() {
    check_up(
        "a",
        "reload a | spawn a#2
        a#2 initialised |
        a#2 uninitialised no |
        a#2 idle |
        a#2 drained |
        a#2 answered |
        a#2 reconfigured |
        a#2 unreconfigured no |
        a#2 described | init a#2
        a#2 undescribed no |
        a#2 described 1.0.0 |
        ? a | ready accepts started replacing by #2 changing
        a#2 initialised | switch a#1>a#2 drain a#1
        a#1 initialised |
        a#1 idle |
        a#1 answered |
        a#1 undescribed no |
        a#1 uninitialised no |
        a#1 progressed |
        a#1 described |
        a#1 reconfigured |
        a#1 unreconfigured no |
        a#1 drained | ask a#1 reload 5s",
    );
}

#[test]
fn when_the_old_run_dies_the_candidate_is_the_run_in_whatever_phase_it_is() {
    check_up(
        "a",
        "config a print=2 rev=2 | spawn a#2@2
        a#1 exited 1 | a:starting
        ? a | starting (tried again after: exit status 1) waits
        a described | init a#2
        a initialised | a:ready
        a exited 1 | a:backoff
        ? a | backoff (exit status 1) waits started down
        next | 0.5s: spawn a#3@2 a:starting",
    );
    check_up(
        "a",
        "config a print=2 rev=2 | spawn a#2@2
        a#2 described | init a#2
        a#1 exited 125 | a:starting
        a#2 exited 1 | a:backoff",
    );
    check_up(
        "a; b",
        "config a needs=b print=2 rev=2; b | spawn a#2@2
        a#2 described | spawn b#1 b:starting
        a#1 exited 1 | a:starting
        ? a | starting (tried again after: exit status 1) for b waits
        +100s | kill b#1 b:stopping
        a#2 progressed |",
    );
}

#[test]
fn a_run_that_is_killed_for_misbehaving_gives_way_at_once() {
    check_up(
        "a",
        "config a print=2 rev=2 | spawn a#2@2
        a#1 misbehaved nonsense | kill a#1 a:starting
        a#2 described | init a#2
        a#2 initialised | a:ready
        next | 2s: abandon a#1
        a#1 killed 9 |
        ? a | ready accepts started",
    );
}

#[test]
fn the_latest_configuration_is_the_one_that_is_tried() {
    check_up(
        "a print=1",
        "config a print=2 rev=2 | spawn a#2@2
        config a print=2 max=9 rev=3 |
        config a print=1 rev=4 | close a#2 term a#2
        ? a | ready accepts started
        config a print=3 rev=5 | spawn a#3@5
        config a print=4 rev=6 | close a#3 term a#3
        ? a | ready accepts started changing
        next | 3s: kill a#2 kill a#3
        a#2 killed 9 | spawn a#4@6
        a#4 described | init a#4
        a#4 initialised | switch a#1>a#4 drain a#1
        a#3 killed 9 |",
    );
    check_up(
        "a",
        "config a print=2 rev=2 | spawn a#2@2
        config a print=2 max=9 rev=3 |
        a#2 described | init a#2
        a#2 initialised | switch a#1>a#2 drain a#1
        a#1 exited 0 |
        a#2 exited 1 | a:backoff
        next | 0.25s: spawn a#3@3 a:starting",
    );
    check_up(
        "a",
        "reload a | spawn a#2
        reload a |
        config a rev=2 |
        reload a |",
    );
}

#[test]
fn a_candidate_that_would_do_in_place_after_all_is_withdrawn() {
    check(
        "a config.x=1",
        "want a | spawn a#1 a:starting
        a described reload | init a#1
        a initialised | a:ready
        config a config.x=1 print=2 rev=2 | spawn a#2@2
        config a config.x=2 rev=3 | close a#2 term a#2 reconfigure a#1@3",
    );
}

#[test]
fn runs_that_do_not_end_do_not_pile_up() {
    check_up(
        "a",
        "config a print=1 rev=1 | spawn a#2@1
        config a print=2 rev=2 | close a#2 term a#2 spawn a#3@2
        config a print=3 rev=3 | close a#3 term a#3
        next | 3s: kill a#2 kill a#3
        next | 2s: abandon a#2 abandon a#3
        ? a | ready accepts started marked command (2 earlier runs are still there after SIGKILL)
        a#2 killed 9 |
        reload a | spawn a#4@3
        a#4 described | init a#4",
    );
    check_up(
        "a",
        "config a print=1 rev=1 | spawn a#2@1
        config a print=2 rev=2 | close a#2 term a#2 spawn a#3@2
        config a print=3 rev=3 | close a#3 term a#3
        a#1 exited 1 | a:backoff
        next | 0.25s: spawn a#4@3 a:starting",
    );
}

#[test]
fn an_operators_command_ends_the_replacement_too() {
    let begin = "config a print=2 rev=2 | spawn a#2@2\n";
    check_up(
        "a",
        &format!(
            "{begin} stop a | close a#2 term a#2 drain a#1 a:stopping
        a#1 exited 0 | a:stopped
        ? a | stopped (stopped by an operator) started Exited#1 in 0s
        a#2 killed 15 |
        ? a | stopped (stopped by an operator) started down Exited#1 in 0s
        start a | spawn a#3@2 a:starting"
        ),
    );
    check_up(
        "a",
        &format!(
            "{begin} restart a | close a#2 term a#2 drain a#1 a:stopping
        a#1 exited 0 | spawn a#3@2 a:starting
        a#2 killed 15 |"
        ),
    );
    check_up(
        "a",
        &format!(
            "{begin} config | close a#2 term a#2 drain a#1 a:stopping
        a#1 exited 0 | a:idle
        a#2 killed 15 | forget a"
        ),
    );
    check_up("a", &format!("{begin} start a |"));
}

#[test]
fn leaving_waits_for_every_run() {
    check_up(
        "a",
        "reload a | spawn a#2
        a#2 described | init a#2
        a#2 initialised | switch a#1>a#2 drain a#1
        reload a | spawn a#3
        shutdown | close a#3 term a#3 drain a#2 a:stopping
        a#2 exited 0 | a:stopped
        a#1 exited 0 |
        a#3 killed 15 | leave",
    );
    check(
        "a eager needs=b; b eager",
        "b described | init b#1
        b initialised | b:ready
        reload b | spawn b#2
        shutdown | close a#1 term a#1 close b#2 term b#2 a:stopping
        shutdown | kill a#1 kill b#1 kill b#2 b:stopping
        b#2 killed 9 |
        a killed 9 | a:stopped
        b killed 9 | b:stopped leave",
    );
    check_up(
        "a",
        "reload a | spawn a#2
        a#2 described | init a#2
        shutdown | close a#2 term a#2 drain a#1 a:stopping
        shutdown | kill a#1 kill a#2",
    );
}

#[test]
fn a_candidate_waits_for_its_turn_to_be_spawned() {
    check_with(
        Supervisor::new(1).with_starting_max(1),
        "a; b eager",
        "b described | init b#1
        want a | spawn a#1 a:starting
        a described | init a#1
        a initialised | a:ready
        restart b | close b#1 term b#1 b:stopping
        b exited 0 | spawn b#2 b:starting
        config a print=2 rev=2; b eager |
        ? a | ready accepts started changing
        b described | init b#2 spawn a#2@2
        restart b | close b#2 term b#2 b:stopping
        b exited 0 | b:starting
        a#2 described | init a#2 spawn b#3",
    );
}

#[test]
fn a_withdrawn_candidate_that_could_not_be_spawned_is_gone() {
    check_up(
        "a",
        "config a print=2 rev=2 | spawn a#2@2
        config a rev=3 | close a#2 term a#2
        a#2 unspawned no such file |
        stop a | drain a#1 a:stopping
        a#1 exited 0 | a:stopped
        ? a | stopped (stopped by an operator) started down Exited#1 in 0s",
    );
}
