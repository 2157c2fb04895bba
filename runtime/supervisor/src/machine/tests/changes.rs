//! Scripts of a change of what a plugin is made from: marked, applied at once, or begun anew.

use super::script::{check, check_up};

#[test]
fn under_manual_a_change_is_marked_and_a_restart_applies_it() {
    check_up(
        "a manual print=1",
        "config a manual print=2 config.x=1 rev=2 |
        ? a | ready accepts started marked command,config.x (on_change is manual)
        reload a |
        ? a | ready accepts started marked command,config.x (on_change is manual)
        a exited 1 | a:backoff
        ? a | backoff (exit status 1) waits started down marked command,config.x (on_change is manual)
        next | 0.25s: spawn a#2 a:starting
        a described | init a#2
        a initialised | a:ready
        restart a | drain a#2 a:stopping
        ? a | stopping waits
        a exited 0 | spawn a#3@2 a:starting",
    );
    check_up(
        "a manual print=1",
        "config a manual print=2 rev=2 |
        config a manual print=1 rev=3 |
        ? a | ready accepts started
        reload a |
        ? a | ready accepts started
        a exited 1 | a:backoff
        next | 0.25s: spawn a#2@3 a:starting",
    );
}

#[test]
fn an_operators_stop_and_start_apply_what_was_marked() {
    check_up(
        "a manual",
        "config a manual print=2 rev=2 |
        stop a | drain a#1 a:stopping
        ? a | stopping -> stopped (stopped by an operator)
        a exited 0 | a:stopped
        start a | spawn a#2@2 a:starting",
    );
    check_up(
        "a manual",
        "config a manual print=2 rev=2 |
        start a |
        ? a | ready accepts started marked command (on_change is manual)
        a exited 1 | a:backoff
        start a | spawn a#2@2 a:starting",
    );
    check_up(
        "a manual",
        "config a manual print=2 rev=2 |
        a idle | drain a#1 a:stopping
        start a |
        a exited 0 | spawn a#2@2 a:starting",
    );
}

#[test]
fn what_was_refused_stays_so_while_it_sleeps() {
    check_up(
        "a manual",
        "config a manual print=2 rev=2 |
        a idle | drain a#1 a:stopping
        a exited 0 | a:idle
        ? a | idle waits started down marked command (on_change is manual) Exited#1 in 0s
        want a | spawn a#2 a:starting
        ? a | starting waits marked command (on_change is manual) Exited#1 in 0s",
    );
}

#[test]
fn without_a_run_a_change_is_what_the_next_run_uses() {
    check_up(
        "a manual",
        "a idle | drain a#1 a:stopping
        config a manual print=2 rev=2 |
        a exited 0 | spawn a#2@2 a:starting
        want a |
        a described | init a#2
        a initialised | a:ready
        a exited 1 | a:backoff
        config a manual print=3 rev=3 | spawn a#3@3 a:starting
        a unspawned no such file | a:failed
        config a manual print=4 rev=4 | spawn a#4@4 a:starting",
    );
    check(
        "a print=1",
        "config a print=2 rev=2 |
        want a | spawn a#1@2 a:starting",
    );
}

#[test]
fn what_was_known_of_a_manifest_ends_with_what_it_was_the_manifest_of() {
    check(
        "a needs=c known=1.0.0; b needs=a@^1; c; d",
        "? b | registered waits started down
        config a needs=c known=2.0.0 print=2; b needs=a@^1; c; d | b:disabled
        ? b | disabled (requires a ^1, but its version is 2.0.0) started down
        config a needs=c print=3; b needs=a@^1; c; d | b:idle
        stop d | d:stopped
        config a needs=d known=1.0.0 print=3; b needs=a@^1; c; d |  a:blocked b:blocked
        ? b | blocked (requires a, which is blocked by d, which is stopped) for a started down",
    );
    check_up(
        "a manual",
        "a described needs=b |
        config a manual print=2 known=2.0.0; b |
        stop a | drain a#1 a:stopping
        a exited 0 | a:stopped
        start a | spawn a#2 a:starting
        a described | init a#2",
    );
}

#[test]
fn a_change_on_the_way_up_makes_a_single_restart() {
    check(
        "a",
        "want a | spawn a#1 a:starting
        config a print=2 rev=2 | close a#1 term a#1 a:stopping
        config a print=3 rev=3 |
        a killed 15 | spawn a#2@3 a:starting
        a described | init a#2
        config a print=4 rev=4 | close a#2 term a#2 a:stopping
        a killed 15 | spawn a#3@4 a:starting
        a described | init a#3
        a initialised | a:ready",
    );
    check(
        "a needs=b; b",
        "want a | spawn b#1 spawn a#1 b:starting a:starting
        a described |
        config a needs=b print=2 rev=2; b | close a#1 term a#1 a:stopping
        a killed 15 | spawn a#2@2 a:starting",
    );
    check(
        "a",
        "want a | spawn a#1 a:starting
        a described | init a#1
        config a max=2 rev=2 |
        a initialised | a:ready
        a exited 1 | a:backoff
        next | 0.25s: spawn a#2@2 a:starting",
    );
}

#[test]
fn what_is_no_facet_takes_effect_without_touching_the_run() {
    check_up(
        "a max=5; b",
        "config a max=0 prio=3 needs=b rev=2; b |
        ? a | ready accepts started
        a exited 1 | a:failed
        config a max=5 needs=b rev=3; b | spawn b#1 spawn a#2@3 b:starting a:starting",
    );
}

#[test]
fn progress_extends_describe_up_to_its_limit() {
    check(
        "a",
        "want a | spawn a#1 a:starting
        +9s |
        a progressed |
        +9s |
        a progressed |
        next | 10s: kill a#1 a:stopping
        ? a | stopping (no describe answer in 28 s: does it call serve(), read stdin, and flush what it writes?) waits",
    );
    let patient = "a progressed |\n +9s |\n".repeat(33);
    check(
        "a",
        &format!(
            "want a | spawn a#1 a:starting
        {patient} a progressed |
        next | 3s: kill a#1 a:stopping
        ? a | stopping (no describe answer in 300 s: does it call serve(), read stdin, and flush what it writes?) waits"
        ),
    );
}

#[test]
fn one_that_an_operator_stopped_before_begins_as_stopped() {
    check(
        "a eager held; b needs=a",
        "? a | stopped (stopped by an operator) started down
        want b |
        config a eager; b needs=a |
        config a eager print=2; b needs=a |
        ? a | stopped (stopped by an operator) started down
        start a | spawn a#1 spawn b#1 a:starting b:starting
        config a eager held print=2; b needs=a |",
    );
    check(
        "a eager max=0",
        "a exited 1 | a:failed
        config a eager max=0 held |
        ? a | failed (crash loop: 1 failure in 180 s; last: exit status 1) started down",
    );
    check(
        "a eager",
        "config | close a#1 term a#1 a:stopping
        config a eager held |
        a exited 0 | a:stopped",
    );
    check(
        "a eager",
        "stop a | close a#1 term a#1 a:stopping
        config |
        config a eager |
        a exited 0 | spawn a#2 a:starting",
    );
}

#[test]
fn disabling_one_on_its_way_up_stops_it() {
    check(
        "a eager",
        "config a eager disabled | close a#1 term a#1 a:stopping
        a killed 15 | a:disabled",
    );
}

#[test]
fn disabling_one_that_serves_applies_what_is_configured() {
    check_up(
        "a",
        "config a disabled print=2 rev=2 | drain a#1 a:stopping
        ? a | stopping (disabled in plugd.toml) -> disabled
        a exited 0 | a:disabled
        config a eager print=2 rev=3 | spawn a#2@3 a:starting",
    );
    check_up(
        "a",
        "config a print=2 rev=2 | spawn a#2@2
        config a disabled print=2 rev=3 | close a#2 term a#2 drain a#1 a:stopping
        a#2 killed 15 |
        a#1 exited 0 | a:disabled",
    );
}

#[test]
fn a_change_of_the_policy_about_changes_is_a_reason_to_look_again() {
    check_up(
        "a manual print=1",
        "config a manual print=2 rev=2 |
        config a print=2 rev=3 | spawn a#2@3
        config a manual print=2 rev=4 | close a#2 term a#2
        ? a | ready accepts started marked command (on_change is manual)",
    );
}

#[test]
fn to_disable_or_remove_a_plugin_applies_what_was_marked() {
    check_up(
        "a manual",
        "config a manual print=2 rev=2 |
        config a manual print=2 disabled rev=3 | drain a#1 a:stopping
        a exited 0 | a:disabled
        config a manual print=2 eager rev=4 | spawn a#2@4 a:starting",
    );
    check_up(
        "a manual",
        "config a manual print=2 rev=2 |
        config | drain a#1 a:stopping
        config a manual print=2 eager rev=3 |
        a exited 0 | spawn a#2@3 a:starting",
    );
}

#[test]
fn other_settings_give_one_that_was_given_up_another_chance() {
    check(
        "a eager max=0",
        "a exited 1 | a:failed
        config a eager max=5 | spawn a#2 a:starting
        a exited 1 | a:backoff",
    );
}

#[test]
fn what_sleeps_and_gets_back_what_it_had_needs_no_description() {
    check_up(
        "a manual",
        "config a manual print=2 rev=2 |
        a idle | drain a#1 a:stopping
        a exited 0 | a:idle
        config a manual rev=3 |
        ? a | idle waits started down Exited#1 in 0s
        describe a |",
    );
}

#[test]
fn a_change_gives_one_that_was_given_up_another_chance() {
    check(
        "a eager max=0",
        "a exited 1 | a:failed
        config a eager max=5 print=2 | spawn a#2 a:starting
        a exited 1 | a:backoff",
    );
}

#[test]
fn a_manifest_that_becomes_known_is_taken_and_nobody_need_ask_for_it() {
    check("a known=1.0.0; b needs=a@^1", "config a known=2.0.0 prio=1; b needs=a@^1 | b:disabled");
    check(
        "a",
        "describe a | spawn a#1 a:starting
        a exited 1 | a:backoff
        config a known=1.0.0 prio=1 |
        next | 0.25s: a:idle
        config a print=2 |",
    );
    check(
        "a",
        "describe a | spawn a#1 a:starting
        a described | close a#1 term a#1 a:idle
        a exited 0 |
        config a print=2 |",
    );
}

#[test]
fn what_is_begun_anew_is_described_anew() {
    check(
        "a; b needs=a@^2",
        "want a | spawn a#1 a:starting
        a described 1.0.0 | init a#1 b:disabled
        reload a | close a#1 term a#1 a:stopping
        a killed 15 | spawn a#2 a:starting b:idle",
    );
    check_up(
        "a",
        "a idle | drain a#1 a:stopping
        reload a |
        a exited 0 | spawn a#2 a:starting
        a described | close a#2 term a#2 a:idle",
    );
}

#[test]
fn what_is_changed_stays_wanted_though_it_is_eager_no_more() {
    check(
        "a eager",
        "a described | init a#1
        config a print=2 | close a#1 term a#1 a:stopping
        a killed 15 | spawn a#2 a:starting
        a described | init a#2",
    );
    check(
        "a eager",
        "a described | init a#1
        a initialised | a:ready
        config a print=2 | spawn a#2
        a#2 described | init a#2
        a#2 initialised | switch a#1>a#2 drain a#1
        a#2 exited 1 | a:backoff
        next | 0.25s: spawn a#3 a:starting",
    );
}
