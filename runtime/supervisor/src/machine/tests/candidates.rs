//! Scripts of what a candidate requires and declares.

use super::script::check_up;

#[test]
fn a_candidate_needs_what_it_requires_as_any_run_does() {
    check_up(
        "a; b",
        "config a print=2; b | spawn a#2
        a#2 described needs=b | spawn b#1 b:starting
        b described | init b#1
        b idle |
        b initialised | init a#2 b:ready
        b idle |
        a#2 initialised | switch a#1>a#2 drain a#1
        b idle | drain b#1 b:stopping",
    );
    check_up(
        "a; b",
        "config a print=2; b | spawn a#2
        a#2 described needs=b? | init a#2",
    );
    check_up(
        "a; b; c",
        "config a print=2; b; c | spawn a#2
        a#2 described needs=b?,c | spawn c#1 c:starting",
    );
    check_up(
        "a; b",
        "want b | spawn b#1 b:starting
        config a print=2; b | spawn a#2
        a#2 described needs=b? |
        b described | init b#1
        b initialised | init a#2 b:ready",
    );
}

#[test]
fn a_candidate_whose_requirements_cannot_be_met_fails() {
    let fails = |declared: &str, reason: &str| {
        check_up(
            "a; b needs=a; c known=1.0.0; d held",
            &format!(
                "config a print=2; b needs=a; c known=1.0.0; d held | spawn a#2
        a#2 described {declared} | close a#2 term a#2
        ? a | ready accepts started marked command (the new one failed: {reason})
        a#2 killed 15 |"
            ),
        );
    };
    fails("needs=nobody", "requires nobody, which is not configured");
    fails("needs=a", "depends on itself");
    fails("needs=b", "is part of a dependency cycle: a -> b -> a");
    fails("needs=c@^2", "requires c ^2, but its version is 1.0.0");
    fails("needs=d", "requires d, which is stopped");
    check_up(
        "a; b mode=never",
        "config a print=2; b mode=never | spawn a#2
        a#2 described needs=b | spawn b#1 b:starting
        b exited 1 | close a#2 term a#2 b:failed
        ? a | ready accepts started marked command (the new one failed: requires b, which is failed: exit status 1)",
    );
    check_up(
        "a; b; c",
        "config a print=2; b; c | spawn a#2
        a#2 described needs=b,c | spawn b#1 spawn c#1 b:starting c:starting
        b described | init b#1
        +9s |
        c described | init c#1
        c initialised | c:ready
        next | 21s: close a#2 term a#2 kill b#1 b:stopping
        ? a | ready accepts started marked command (the new one failed: requires b, which was not ready in 30 s)",
    );
}

#[test]
fn what_the_configuration_requires_counts_for_a_candidate_too() {
    check_up(
        "a; b",
        "config a needs=b? print=2; b | spawn a#2
        a#2 described needs=b@^9 | init a#2",
    );
    check_up(
        "a; b",
        "config a needs=b print=2; b | spawn a#2
        a#2 described | spawn b#1 b:starting
        config a print=2; b | init a#2",
    );
}

#[test]
fn what_a_candidate_declares_counts_from_the_switch_on() {
    check_up(
        "a; b needs=a",
        "a described 1.0.0 |
        config a print=2; b needs=a@^1 | spawn a#2
        a#2 described 2.0.0 | init a#2
        ? b | registered waits started down
        a#2 initialised | switch a#1>a#2 drain a#1 b:disabled
        ? b | disabled (requires a ^1, but its version is 2.0.0) started down",
    );
    check_up(
        "a; b",
        "config a print=2; b | spawn a#2
        a#2 described needs=b? | init a#2
        a#2 initialised | switch a#1>a#2 drain a#1
        config a print=2 needs=b; b |
        stop b | b:stopped
        restart a | drain a#2 a:stopping
        ? a | stopping -> blocked (requires b, which is stopped)",
    );
}

#[test]
fn a_problem_of_the_plugin_stops_the_candidate_and_not_what_works() {
    check_up(
        "a; b",
        "config a print=2; b | spawn a#2
        config a needs=a print=2; b |
        a#2 described | close a#2 term a#2
        a#2 exited 0 |
        a exited 1 | a:disabled",
    );
}
