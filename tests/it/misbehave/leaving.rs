//! Sins of leaving: a stop goes as far as it must, and nothing that a plugin started stays behind.

use std::time::{Duration, Instant};

use plugd_tests::{Sandbox, alive, eventually, kill};
use rustix::process::Signal;
use serde_json::Value;

use super::{QUICK, assert_parts, beside_a_neighbour, failure, house, pid_of_bad, text};

/// Graces that are short enough for a test to wait out.
const SHORT: &str = "shutdown_timeout = \"200ms\"\nterm_timeout = \"200ms\"\nkill_timeout = \"200ms\"\n";

/// Stops `bad`, and checks which step made it end and that no process of it is left.
#[track_caller]
fn check_stop(flags: &[&str], ended: &str) {
    let sandbox = house(flags, SHORT);
    beside_a_neighbour(&sandbox, |daemon| {
        pid_of_bad(daemon);
        let stop = daemon.json(&["stop", "bad"]);
        assert_eq!(stop["plugins"][0]["ended"], ended, "{stop:#}");
        assert!(stop["plugins"][0]["took_ms"].as_u64() < Some(10_000), "{stop:#}");
        assert_eq!(daemon.status("bad")["state"], "stopped");
        assert_eq!(sandbox.processes_in("plugins/bad"), [0; 0], "it is gone when stop answers");
    });
}

#[test]
fn one_that_ignores_shutdown_leaves_when_its_stdin_ends() {
    check_stop(&["--ignore-shutdown"], "exited");
}

#[test]
fn one_that_ignores_the_end_of_its_stdin_too_is_terminated() {
    check_stop(&["--ignore-shutdown", "--ignore-eof"], "terminated");
}

#[test]
fn one_that_spins_when_its_stdin_ends_is_terminated() {
    check_stop(&["--spin-on-eof"], "terminated");
}

#[test]
fn one_that_is_deaf_to_sigterm_only_is_not_killed() {
    check_stop(&["--deaf-to-term"], "exited");
}

#[test]
fn one_that_is_deaf_to_everything_is_killed() {
    check_stop(&["--deaf"], "killed");
}

#[test]
fn one_that_left_its_process_group_is_killed_with_what_it_left_there() {
    check_stop(&["--leave-group", "--deaf"], "killed");
    check_stop(&["--leave-group"], "exited");
}

/// Waits until `bad` and its `count` children run, has the run ended, and checks that all of them go.
#[track_caller]
fn check_nothing_left(sandbox: &Sandbox, count: usize) {
    beside_a_neighbour(sandbox, |daemon| {
        let killed = u32::try_from(pid_of_bad(daemon)).expect("a pid");
        let processes = sandbox.processes_in("plugins/bad");
        assert_eq!(processes.len(), 1 + count, "{processes:?}");
        kill(killed, Signal::KILL);
        eventually("what the killed one started is gone", || !processes.iter().any(|pid| alive(*pid)));

        assert_ne!(pid_of_bad(daemon), u64::from(killed));
        assert_eq!(sandbox.processes_in("plugins/bad").len(), 1 + count);
        daemon.plugd(&["stop", "bad"]).expect(0);
        assert_eq!(sandbox.processes_in("plugins/bad"), [0; 0], "stop waits for all of it");
        assert_eq!(daemon.zombies(), [0; 0]);
    });
}

/// With a cgroup leaf for each run where this machine allows it, and without.
fn with_cgroups_and_without(flags: &[&str]) -> [Sandbox; 2] {
    [true, false].map(|cgroups| {
        let sandbox = house(flags, QUICK);
        let text = sandbox.read("plugd.toml");
        sandbox.write("plugd.toml", &text.replace("[daemon]\n", &format!("[daemon]\ncgroups = {cgroups}\n")));
        sandbox
    })
}

#[test]
fn a_grandchild_in_a_session_of_its_own_goes_with_its_plugin() {
    for sandbox in with_cgroups_and_without(&["--setsid-grandchild"]) {
        check_nothing_left(&sandbox, 1);
    }
}

#[test]
fn thirty_grandchildren_in_sessions_and_groups_go_with_their_plugin() {
    for sandbox in with_cgroups_and_without(&["--fork-bomb-small=30"]) {
        check_nothing_left(&sandbox, 30);
    }
}

#[test]
fn a_grandchild_that_holds_stdout_delays_nothing() {
    let sandbox = house(&["--grandchild-holds-stdout", "--exit-in-call"], QUICK);
    beside_a_neighbour(&sandbox, |daemon| {
        let before = pid_of_bad(daemon);
        let processes = sandbox.processes_in("plugins/bad");
        let began = Instant::now();
        let error = failure(daemon, 6, &["bad.echo", "--timeout", "60s"]);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_parts(text(&error["message"]), &["exit status 3", "boom"]);
        assert_ne!(pid_of_bad(daemon), before);
        assert!(!processes.iter().any(|pid| alive(*pid)), "{processes:?}");
        let status: Value = daemon.status("bad");
        assert_eq!(status["last_exit"]["code"], 3, "{status:#}");
    });
}
