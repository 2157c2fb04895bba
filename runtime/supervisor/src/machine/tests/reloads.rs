//! Scripts of a configuration that is taken up in place.

use super::script::{check, check_up};

/// How `a`, which can be reloaded in place, becomes ready.
const UP: &str = "want a | spawn a#1 a:starting
    a described reload | init a#1
    a initialised | a:ready\n";

fn check_reloadable(plugins: &str, script: &str) {
    check(plugins, &format!("{UP}{script}"));
}

#[test]
fn a_configuration_is_reloaded_in_place() {
    check_reloadable(
        "a print=1 config.x=1",
        "config a print=1 config.x=2 rev=2 | reconfigure a#1@2
        ? a | ready accepts started changing
        a idle |
        a reconfigured |
        ? a | ready accepts started
        a reconfigured |
        a exited 1 | a:backoff
        next | 0.25s: spawn a#2@2 a:starting",
    );
    check_reloadable(
        "a print=1 config.x=1",
        "config a print=1 config.y=2 rev=2 | reconfigure a#1@2
        a reconfigured |
        config a print=2 config.y=2 rev=3 | spawn a#2@3",
    );
    check_reloadable(
        "a config.x=1",
        "config a rev=2 | reconfigure a#1@2
        a unreconfigured no |
        ? a | ready accepts started marked config.x (reload was refused: no)",
    );
}

#[test]
fn one_that_cannot_reload_is_replaced_for_its_configuration_too() {
    check_up("a config.x=1", "config a config.x=2 rev=2 | spawn a#2@2");
    check_reloadable("a config.x=1", "config a config.x=2 print=1 rev=2 | spawn a#2@2");
}

#[test]
fn a_refused_reload_is_marked_and_the_old_configuration_stays() {
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        a unreconfigured x must be odd |
        ? a | ready accepts started marked config.x (reload was refused: x must be odd)
        a unreconfigured again |
        config a config.x=2 rev=2 |
        a exited 1 | a:backoff
        next | 0.25s: spawn a#2 a:starting
        a described reload | init a#2
        a initialised | a:ready
        ? a | ready accepts started marked config.x (reload was refused: x must be odd)
        reload a | reconfigure a#2@2
        a reconfigured |
        ? a | ready accepts started",
    );
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        a unreconfigured no |
        config a config.x=1 rev=3 |
        ? a | ready accepts started
        config a config.x=3 rev=4 | reconfigure a#1@4",
    );
}

#[test]
fn a_reload_that_is_not_answered_is_marked_and_what_is_not_known_is_sent_again() {
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        next | 30s:
        ? a | ready accepts started marked config.x (no answer to reload in 30 s)
        a reconfigured |
        ? a | ready accepts started marked config.x (no answer to reload in 30 s)
        config a config.x=1 rev=3 | reconfigure a#1@3
        a reconfigured |
        config a config.x=1 max=9 manual rev=4 |
        config a config.x=1 max=9 rev=5 |",
    );
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        next | 30s:
        config a config.x=1 manual rev=3 |
        ? a | ready accepts started marked  (an earlier reload was not answered)
        a exited 1 | spawn a#2@3 a:starting
        ? a | starting (tried again after: exit status 1) waits",
    );
}

#[test]
fn a_plugin_that_dies_of_a_reload_gets_its_old_configuration_back() {
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        a exited 4 | a:backoff
        ? a | backoff (exit status 4) waits started down marked config.x (it failed during the reload: exit status 4)
        next | 0.25s: spawn a#2 a:starting",
    );
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        a misbehaved nonsense | kill a#1 a:stopping
        ? a | stopping (nonsense) waits marked config.x (it failed during the reload: nonsense)
        a killed 9 | a:backoff
        next | 0.25s: spawn a#2 a:starting",
    );
}

#[test]
fn one_reload_at_a_time_and_then_the_latest() {
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        config a config.x=3 rev=3 |
        config a config.x=4 rev=4 |
        a reconfigured | reconfigure a#1@4
        a reconfigured |
        config a config.x=5 rev=5 | reconfigure a#1@5
        config a config.x=6 rev=6 |
        a unreconfigured no | reconfigure a#1@6
        config a config.x=4 rev=7 |
        a unreconfigured no |
        ? a | ready accepts started",
    );
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        config a config.x=2 print=2 rev=3 |
        a reconfigured | spawn a#2@3",
    );
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        config a config.x=2 max=9 rev=3 |
        a reconfigured |
        a exited 1 | a:backoff
        next | 0.25s: spawn a#2@3 a:starting",
    );
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        config a config.x=3 manual rev=3 |
        a reconfigured |
        ? a | ready accepts started marked config.x (on_change is manual)",
    );
}

#[test]
fn an_asked_for_reload_makes_a_new_run_where_nothing_differs() {
    check_reloadable(
        "a",
        "reload a | spawn a#2
        reload a |
        config a manual | close a#2 term a#2
        a#2 exited 0 |
        reload a |
        ? a | ready accepts started",
    );
}

#[test]
fn a_stop_ends_a_reload_in_place_and_the_next_run_has_the_new_configuration() {
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        restart a | drain a#1 a:stopping
        a reconfigured |
        ? a | stopping waits
        a exited 0 | spawn a#2@2 a:starting",
    );
}

#[test]
fn progress_in_a_reload_in_place_changes_nothing() {
    check_reloadable(
        "a config.x=1",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        +29s |
        a progressed |
        next | 1s:",
    );
}

#[test]
fn the_settings_that_are_in_use_or_on_their_way_are_kept() {
    check_reloadable(
        "a config.x=1 rev=0",
        "config a config.x=2 rev=2 | reconfigure a#1@2
        config a print=1 rev=3 |
        revisions a | [0, 2, 3]
        a reconfigured | spawn a#2@3
        config a print=1 max=9 rev=4 |
        revisions a | [2, 4]
        a#2 exited 1 |
        a#1 exited 1 | a:backoff
        next | 0.25s: spawn a#3@2 a:starting",
    );
}
