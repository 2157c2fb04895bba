//! Scripts of several plugins: requirements, configuration, leaving.

use super::script::{check, check_up};

#[test]
fn init_waits_until_what_is_required_is_ready() {
    check(
        "a needs=b; b",
        "want a | spawn b#1 spawn a#1 b:starting a:starting
        a described |
        ? a | starting for b waits
        +400s | kill b#1 b:stopping
        b killed 9 | b:backoff
        ? a | starting for b waits
        next | 0.25s: spawn b#2 b:starting
        b described | init b#2
        b initialised | init a#1 b:ready
        a initialised | a:ready",
    );
}

#[test]
fn a_failed_requirement_blocks_all_the_way_up_and_names_the_root() {
    check("a needs=b; b needs=c; c mode=never; d", "want a | spawn c#1 spawn b#1 spawn a#1 c:starting b:starting a:starting
        a described |
        b described |
        c exited 1 | close b#1 term b#1 close a#1 term a#1 c:failed b:blocked a:blocked
        ? b | blocked (requires c, which is failed: exit status 1) for c started
        b exited 0
        a exited 0
        ? b | blocked (requires c, which is failed: exit status 1) for c started down Terminated#1 in 0s
        ? a | blocked (requires b, which is blocked by c, which is failed: exit status 1) for b started down Terminated#1 in 0s
        want d | spawn d#1 d:starting
        start c | spawn c#2 spawn b#2 spawn a#2 c:starting b:starting a:starting
        c described | init c#2
        c initialised | c:ready
        b described | init b#2
        a described |
        b initialised | init a#2 b:ready");
}

#[test]
fn a_dependent_of_a_probe_stays_blocked_until_that_is_ready() {
    check("a needs=b; b max=0", "want a | spawn b#1 spawn a#1 b:starting a:starting
        b exited 1 | b:failed
        a described | close a#1 term a#1 a:blocked
        a exited 0
        next | 300s: spawn b#2 b:starting
        b exited 1 | b:failed a:explained
        ? a | blocked (requires b, which is failed: crash loop: the latest try failed too; last: exit status 1) for b started down Terminated#1 in 0s
        next | 300s: spawn b#3 b:starting
        b described | init b#3
        b initialised | spawn a#2 b:ready a:starting");
}

#[test]
fn a_missing_requirement_blocks_until_it_is_configured() {
    check("a needs=storge; storage", "? a | blocked (requires storge, which is not configured (did you mean storage?)) for storge started down
        want a |
        describe a | spawn a#1 a:starting
        a described | close a#1 term a#1 a:blocked
        a exited 0
        config a needs=storge; storage; storge | spawn storge#1 spawn a#2 storge:starting a:starting");
}

#[test]
fn cycles_and_self_dependencies_disable_those_concerned_alone() {
    check("a needs=b; b needs=c; c needs=a; d needs=c; e eager; s needs=s; t needs=s", "? a | disabled (is part of a dependency cycle: a -> b -> c -> a) started down
        ? c | disabled (is part of a dependency cycle: a -> b -> c -> a) started down
        ? d | blocked (requires c, which is disabled: is part of a dependency cycle: a -> b -> c -> a) for c started down
        ? s | disabled (depends on itself) started down
        ? t | blocked (requires s, which is disabled: depends on itself) for s started down
        want d |
        e described | init e#1
        config a needs=b; b needs=c; c; d needs=c; e eager | spawn c#1 spawn d#1 c:starting b:idle d:starting a:idle forget s forget t",);
}

#[test]
fn a_version_that_will_not_do_disables_until_another_comes() {
    check(
        "a needs=b@^2; b",
        "want a | spawn b#1 spawn a#1 b:starting a:starting
        a described |
        b described 1.4.0 | init b#1 close a#1 term a#1 a:stopping
        a exited 0 | a:disabled
        ? a | disabled (requires b ^2, but its version is 1.4.0) started down Terminated#1 in 0s
        b initialised | b:ready
        reload b | spawn b#2",
    );
    check(
        "a needs=b@^2; b known=1.4.0",
        "? a | disabled (requires b ^2, but its version is 1.4.0) started down
        want a |
        want b | spawn b#1 b:starting
        b described 2.0.0-rc.1 | init b#1
        ? a | disabled (requires b ^2, but its version is 2.0.0-rc.1) started down
        b described 2.1.0 | spawn a#1 a:starting",
    );
    check(
        "a needs=b@^2?; b known=1.4.0",
        "want a | spawn a#1 a:starting
        a described | init a#1",
    );
    check(
        "a needs=b; b",
        "want b | spawn b#1 b:starting
        b described 2.0.0-rc.1 | init b#1
        want a | spawn a#1 a:starting",
    );
}

#[test]
fn soft_requirements_order_but_never_block() {
    check(
        "a needs=b?,c?; b mode=never",
        "want a | spawn a#1 a:starting
        want b | spawn b#1 b:starting
        a described |
        ? a | starting for b waits
        b exited 1 | init a#1 b:failed",
    );
    check(
        "a needs=b?; b needs=a",
        "want b | spawn a#1 spawn b#1 a:starting b:starting
        a described | init a#1",
    );
    check(
        "a needs=b?; b",
        "want a | spawn a#1 a:starting
        want b | spawn b#1 b:starting
        a described |
        b described | init b#1
        b initialised | init a#1 b:ready",
    );
}

#[test]
fn a_running_dependent_stays_up_when_its_requirement_dies() {
    check(
        "a needs=b; b",
        "want b | spawn b#1 b:starting
        b described | init b#1
        b initialised | b:ready
        want a | spawn a#1 a:starting
        a described | init a#1
        b exited 1 | b:backoff
        a initialised | a:ready
        b idle |
        next | 0.25s: spawn b#2 b:starting
        b described | init b#2
        b initialised | b:ready
        b idle | drain b#2 b:stopping
        b exited 0 | b:idle
        ? a | ready accepts started",
    );
}

#[test]
fn what_a_starting_dependent_requires_is_not_idle() {
    check(
        "a needs=b; b",
        "want b | spawn b#1 b:starting
        b described | init b#1
        b initialised | b:ready
        want a | spawn a#1 a:starting
        b idle |
        a described | init a#1
        b idle |
        a initialised | a:ready
        b idle | drain b#1 b:stopping
        restart a | drain a#1 a:stopping
        b exited 0 | spawn b#2 b:starting",
    );
}

#[test]
fn restarting_one_that_waits_for_its_requirement_makes_one_process() {
    check(
        "a; b needs=a",
        "want b | spawn a#1 spawn b#1 a:starting b:starting
        b described |
        restart b | close b#1 term b#1 b:stopping
        restart b |
        b exited 0 | spawn b#2 b:starting
        stop b | close b#2 term b#2 b:stopping
        start b |
        a described | init a#1
        a initialised | a:ready
        b exited 0 | spawn b#3 b:starting
        b described | init b#3",
    );
}

#[test]
fn a_stopped_requirement_blocks_and_its_start_releases() {
    check(
        "a needs=b; b",
        "stop b | b:stopped a:blocked
        ? a | blocked (requires b, which is stopped) for b started down
        want a |
        start b | spawn b#1 spawn a#1 b:starting a:starting",
    );
}

#[test]
fn requirements_learnt_from_a_manifest_count_and_the_configuration_wins() {
    check(
        "a; b; c",
        "want a | spawn a#1 a:starting
        a described needs=b | spawn b#1 b:starting
        ? a | starting for b waits
        b described | init b#1
        b initialised | init a#1 b:ready",
    );
    check(
        "a needs=b?; b",
        "want a | spawn a#1 a:starting
        a described needs=b@^9 | init a#1",
    );
    check(
        "a; b needs=a",
        "describe a | spawn a#1 a:starting
        a described needs=b | close a#1 term a#1 a:stopping b:disabled
        a exited 0 | a:disabled",
    );
}

#[test]
fn a_changed_configuration_touches_only_what_changed() {
    check(
        "a; b; c; d",
        "want a | spawn a#1 a:starting
        want b | spawn b#1 b:starting
        a described | init a#1
        b described | init b#1
        a initialised | a:ready
        b initialised | b:ready
        config d; c; b; a |
        config a known=1.0.0; b; c; d |
        config a; b print=2; c print=2; e eager | spawn b#2 spawn e#1 e:starting forget d",
    );
}

#[test]
fn a_removed_plugin_is_forgotten_when_its_run_has_ended() {
    check(
        "a; b needs=a",
        "want a | spawn a#1 a:starting
        a described | init a#1
        a initialised | a:ready
        config b needs=a | drain a#1 b:blocked a:stopping
        want a |
        a drained | ask a#1 stop 5s
        a exited 0 | forget a
        config a eager; b needs=a | spawn a#1 a:starting b:idle",
    );
    check_up(
        "a",
        "config | drain a#1 a:stopping
        want a |
        config a |
        a exited 0 | spawn a#2 a:starting
        a described | close a#2 term a#2 a:idle",
    );
    check(
        "a eager",
        "config |  close a#1 term a#1 a:stopping
        config a eager |
        a exited 0 | spawn a#2 a:starting",
    );
}

#[test]
fn a_disabled_plugin_stops_and_says_so() {
    check(
        "a eager; b needs=a",
        "a described | init a#1
        a initialised | a:ready
        config a eager disabled; b needs=a | drain a#1 a:stopping b:blocked
        a exited 0 | a:disabled
        ? a | disabled (disabled in plugd.toml) started down Exited#1 in 0s
        ? b | blocked (requires a, which is disabled in plugd.toml) for a started down
        start a |
        config a eager; b needs=a | spawn a#2 a:starting b:idle",
    );
}

#[test]
fn leaving_stops_dependents_first() {
    check(
        "a eager needs=b; b eager needs=c; c eager; d",
        "c described | init c#1
        c initialised | c:ready
        b described | init b#1
        b initialised | b:ready
        a described | init a#1
        a initialised | a:ready
        shutdown | drain a#1 a:stopping
        b idle |
        want d |
        a drained | ask a#1 exit 5s
        a exited 0 | drain b#1 b:stopping a:stopped
        restart b |
        c exited 1 | c:stopped
        b exited 0 | b:stopped leave
        +400s |
        shutdown |",
    );
}

#[test]
fn leaving_does_not_wait_for_starts() {
    check(
        "a eager needs=b; b eager",
        "shutdown | close a#1 term a#1 a:stopping
        b described |
        a killed 15 | close b#1 term b#1 b:stopping a:stopped
        b killed 15 | b:stopped leave",
    );
}

#[test]
fn the_second_shutdown_skips_the_graces() {
    check(
        "a eager needs=b; b eager",
        "b described | init b#1
        b initialised | b:ready
        shutdown | close a#1 term a#1 a:stopping
        shutdown | kill a#1 kill b#1 b:stopping
        shutdown |
        b killed 9 | b:stopped
        next | 2s: abandon a#1 a:failed leave
        a killed 9 | a:stopped",
    );
}

#[test]
fn leaving_with_nothing_up_is_immediate() {
    check(
        "a; b",
        "shutdown | leave
        shutdown |",
    );
}

#[test]
fn a_failure_while_leaving_is_followed_by_nothing() {
    check(
        "a eager; b eager needs=a",
        "a described | init a#1
        a initialised | a:ready
        shutdown | close b#1 term b#1 b:stopping
        +10s | kill b#1
        a misbehaved nonsense | kill a#1 a:stopping
        a killed 9 | a:stopped
        b killed 9 | b:stopped leave",
    );
}

#[test]
fn a_blocked_plugin_pulls_only_what_blocks_it() {
    check(
        "a needs=b,c; b; c",
        "stop b | b:stopped a:blocked
        want a |
        start b | spawn b#1 spawn c#1 spawn a#1 b:starting c:starting a:starting",
    );
}
