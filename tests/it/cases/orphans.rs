//! Cases about processes left behind: none is, however plugin or daemon end.

use std::time::{Duration, Instant};

use plugd_tests::{Daemon, Detached, Ran, Sandbox, alive, eventually, kill, shell};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::framing::data_of;
use super::lifecycle::Innocent;

/// Ends what a test has left in the folders of its plugins on purpose.
struct Sweep<'a>(&'a Sandbox);

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        for pid in self.0.processes_in("plugins") {
            // It may have gone meanwhile.
            let _gone = std::panic::catch_unwind(|| kill(pid, Signal::KILL));
        }
    }
}

fn pid_in(data: &Value) -> u32 {
    let pid = data["pid"].as_u64().unwrap_or_else(|| panic!("no pid: {data:#}"));
    u32::try_from(pid).expect("a pid")
}

/// A sandbox with the plugin `p` of the fixture `misbehave.py`, and lines for `[daemon]`.
fn misbehaving(daemon: &str, flags: &[&str], settings: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.misbehaving("p", flags);
    sandbox.configure(&format!("{daemon}{table}{settings}"));
    sandbox
}

/// SIGKILL for the daemon itself, and nothing else.
fn kill_daemon(mut daemon: Daemon<'_>) {
    daemon.signal(Signal::KILL);
    daemon.wait();
}

#[test]
fn c056_a_deaf_plugin_dies_with_its_daemon() {
    for cgroups in ["cgroups = true\n", "cgroups = false\n"] {
        let sandbox =
            misbehaving(cgroups, &["--deaf"], "kill_timeout = \"100ms\"\nterm_timeout = \"100ms\"\n");
        let _sweep = Sweep(&sandbox);
        let daemon = sandbox.serve();
        let plugin = pid_in(&data_of(&daemon, &["p.pid"]));
        kill_daemon(daemon);
        eventually("the plugin dies with its daemon", || !alive(plugin));

        let daemon = sandbox.serve();
        let next = pid_in(&data_of(&daemon, &["p.pid"]));
        assert_eq!(sandbox.processes_in("plugins"), [next], "no stale copy runs");
        daemon.plugd(&["stop", "p"]).expect(0);
        daemon.stop();
    }
}

#[test]
fn c056_what_outlives_a_killed_daemon_is_ended_by_the_next_start() {
    let without = "parent_death_signal = false\n";
    let sandbox = misbehaving(without, &["--deaf"], "kill_timeout = \"100ms\"\nterm_timeout = \"100ms\"\n");
    let _sweep = Sweep(&sandbox);
    let daemon = sandbox.serve();
    let plugin = pid_in(&data_of(&daemon, &["p.pid"]));
    kill_daemon(daemon);
    assert!(alive(plugin), "nothing tells it that its daemon has gone");
    let mut innocent = Innocent::start();

    let daemon = sandbox.serve();
    eventually("the next start ends it", || !alive(plugin));
    let next = pid_in(&data_of(&daemon, &["p.pid"]));
    assert_eq!(sandbox.processes_in("plugins"), [next]);
    assert!(innocent.lives());
    daemon.plugd(&["stop", "p"]).expect(0);
    daemon.stop();
    assert_eq!(sandbox.processes_in("plugins"), [0; 0]);
}

#[test]
fn c056_a_number_that_is_somebody_elses_by_now_is_not_signalled() {
    let without = "parent_death_signal = false\n";
    let sandbox = misbehaving(without, &[], "");
    let daemon = sandbox.serve();
    let plugin = pid_in(&data_of(&daemon, &["p.pid"]));
    kill_daemon(daemon);
    // It leaves, as its stdin has ended; what was noted about it is still there.
    eventually("the plugin has left", || !alive(plugin));
    let mut innocent = Innocent::start();
    let runs = std::fs::read_dir(sandbox.path().join("state/runs")).expect("runs are noted").flatten();
    let mut notes = 0;
    for note in runs {
        let text = std::fs::read_to_string(note.path()).expect("a note");
        let other = text.replace(&plugin.to_string(), &innocent.pid().to_string());
        notes += usize::from(other != text);
        std::fs::write(note.path(), other).expect("it is changed");
    }
    assert_eq!(notes, 1, "the run was noted");
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.pid"]);
    assert!(innocent.lives(), "its start time is another");
    daemon.stop();
}

/// Whether each run here has a cgroup leaf of its own.
fn has_cgroup(daemon: &Daemon<'_>) -> bool {
    let status = daemon.status("p");
    assert!(
        status["enforced"]["cgroup"].is_string() != status["not_enforced"]["cgroup"].is_string(),
        "it says whether: {status:#}"
    );
    status["enforced"]["cgroup"].is_string()
}

#[test]
fn c056_a_session_of_its_own_does_not_save_a_grandchild_from_the_next_start() {
    let sandbox = misbehaving("", &["--setsid-grandchild"], "");
    let _sweep = Sweep(&sandbox);
    let daemon = sandbox.serve();
    let plugin = pid_in(&data_of(&daemon, &["p.pid"]));
    let delegated = has_cgroup(&daemon);
    let processes = sandbox.processes_in("plugins");
    assert_eq!(processes.len(), 2, "{processes:?}");
    kill_daemon(daemon);
    eventually("the plugin dies with its daemon", || !alive(plugin));
    if !delegated {
        eprintln!("SKIPPED: no cgroup of version 2 is delegated here, so nothing holds the grandchild");
        return;
    }
    let daemon = sandbox.serve();
    eventually("the next start ends it", || !processes.iter().any(|pid| alive(*pid)));
    daemon.stop();
    assert_eq!(sandbox.processes_in("plugins"), [0; 0]);
}

#[test]
fn c058_twenty_crashes_leave_no_zombie() {
    let restart = "restart = { backoff = \"10ms\", backoff_cap = \"10ms\", max = 1000 }\n";
    let sandbox = misbehaving("", &["--setsid-grandchild"], restart);
    let daemon = sandbox.serve();
    let first = data_of(&daemon, &["p.pid"]);
    for _ in 0..20 {
        let error = daemon.plugd(&["--output", "json", "call", "p.crash"]).expect(6).json()["error"].clone();
        assert_eq!(error["name"], "plugin_died", "{error:#}");
    }
    eventually("no child of the daemon waits to be reaped", || daemon.zombies().is_empty());
    assert_ne!(data_of(&daemon, &["p.pid"]), first);
    assert_eq!(sandbox.processes_in("plugins").len(), 2, "the latest run with its child, and no other");
    daemon.stop();
}

/// A plugin behind a shell that waits for it, and that started something.
fn wrapped() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.misbehaving("p", &[]);
    let table = "[plugins.p]\ncommand = [\"sh\", \"-c\", \"python3 main.py; true\"]\ncwd = \"plugins/p\"\n";
    sandbox.configure(table);
    sandbox
}

#[test]
fn c059_a_stop_ends_wrapper_plugin_and_what_it_started() {
    let sandbox = wrapped();
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.spawn"]);
    assert_eq!(sandbox.processes_in("plugins").len(), 3, "wrapper, plugin, and what it started");
    let stop = daemon.json(&["stop", "p"]);
    assert_eq!(sandbox.processes_in("plugins"), [0; 0], "all of them are gone when stop answers: {stop:#}");
    daemon.stop();
}

#[test]
fn c059_a_crash_behind_a_wrapper_ends_what_was_started() {
    let sandbox = wrapped();
    let daemon = sandbox.serve();
    let real = pid_in(&data_of(&daemon, &["p.pid"]));
    assert_ne!(daemon.status("p")["pid"], real, "the wrapper leads");
    data_of(&daemon, &["p.spawn"]);
    let old = sandbox.processes_in("plugins");
    kill(real, Signal::KILL);
    eventually("wrapper, plugin and what it started are gone", || !old.iter().any(|pid| alive(*pid)));
    assert_ne!(pid_in(&data_of(&daemon, &["p.pid"])), real);
    daemon.stop();
}

#[test]
fn c060_a_grandchild_that_holds_stdout_hides_no_death() {
    let sandbox = misbehaving("", &[], "");
    let daemon = sandbox.serve();
    let before = pid_in(&data_of(&daemon, &["p.pid"]));
    let child = pid_in(&data_of(&daemon, &["p.spawn", "hold_stdout:=true"]));
    let began = Instant::now();
    let error = daemon.plugd(&["--output", "json", "call", "p.crash", "code:=1", "--timeout", "60s"]);
    let error = error.expect(6).json()["error"].clone();
    assert!(began.elapsed() < Duration::from_secs(15), "it waited for nobody: {:?}", began.elapsed());
    assert_eq!(error["name"], "plugin_died", "{error:#}");
    let message = error["message"].as_str().expect("text");
    assert!(
        message.contains("exit status 1") && message.contains("boom"),
        "its last words were read: {message}"
    );
    assert_ne!(pid_in(&data_of(&daemon, &["p.pid"])), before, "it is restarted");
    assert!(!alive(child), "what held its stdout has gone");
    daemon.stop();
}

#[test]
fn c061_a_daemon_in_the_background_lets_go_of_a_pipe() {
    let sandbox = misbehaving("", &[], "start = \"eager\"\n");
    let ran = shell(&sandbox, "\"$0\" serve --detach | cat; \"$0\" call p.echo x=1 | cat");
    let daemon = Detached::of(&sandbox);
    assert!(ran.stdout.contains('1'), "{ran:?}");
    for number in 0..3 {
        let target = std::fs::read_link(format!("/proc/{}/fd/{number}", daemon.pid())).expect("it is open");
        let leads = target.to_string_lossy();
        assert!(leads == "/dev/null" || leads.ends_with("daemon.log"), "{number}: {leads}");
    }
    let held = sandbox.json(&["call", "p.fds"])["data"].clone();
    assert_eq!(held.as_object().map(serde_json::Map::len), Some(3), "{held:#}");
    sandbox.plugd(&["shutdown"]).expect(0);
    eventually("the daemon is gone", || !alive(daemon.pid()));
}

#[test]
fn c063_a_stop_escalates_and_the_log_names_the_step_that_worked() {
    let graces = "shutdown_timeout = \"300ms\"\nterm_timeout = \"300ms\"\nkill_timeout = \"300ms\"\n";
    let sandbox = misbehaving("", &["--deaf"], graces);
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.pid"]);
    let stop = daemon.json(&["stop", "p"]);
    let stopped = &stop["plugins"][0];
    assert_eq!(stopped["ended"], "killed", "{stop:#}");
    // 0.9 s of graces; the rest is what a loaded machine may take.
    let took = stopped["took_ms"].as_u64().expect("a number");
    assert!((900..5_000).contains(&took), "{stop:#}");
    let log = daemon.said_of("p");
    assert!(log.iter().any(|line| line.contains("INFO") && line.contains("SIGKILL")), "{log:#?}");
    daemon.stop();
}

#[test]
fn c068_a_lock_that_names_somebody_elses_process_is_none() {
    let sandbox = misbehaving("", &[], "");
    let mut innocent = Innocent::start();
    let lock = sandbox.write("run/plugd.sock.lock", &format!("{}\n", innocent.pid()));
    let folder = lock.parent().expect("a folder");
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("private");
    assert!(sandbox.plugd(&["shutdown"]).code != 0, "no daemon runs");
    assert!(innocent.lives());

    let mut daemon = sandbox.serve();
    data_of(&daemon, &["p.pid"]);
    daemon.plugd(&["shutdown"]).expect(0);
    assert_eq!(daemon.wait(), 0);
    assert!(innocent.lives());
    let locks = std::fs::read_dir(folder).expect("it is there").count();
    assert_eq!(locks, 1, "the lock written by hand was the daemon's own");
}

/// The daemons that serve a sandbox: those whose command line says so.
fn daemons_of(sandbox: &Sandbox) -> Vec<u32> {
    let serves = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').any(|word| word == "serve")
    };
    sandbox.processes_in("").into_iter().filter(serves).collect()
}

#[test]
fn c070_of_twenty_daemons_started_at_once_one_stays_and_every_call_is_answered() {
    let sandbox = misbehaving("", &[], "");
    let script = "\"$0\" serve --detach 2>/dev/null && \"$0\" --output json call p.echo x=1";
    let runs: Vec<Ran> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..20).map(|_| scope.spawn(|| shell(&sandbox, script))).collect();
        starts.into_iter().map(|start| start.join().expect("it ends")).collect()
    });
    let daemon = Detached::of(&sandbox);
    for ran in runs {
        assert_eq!((ran.code, ran.stdout.contains("\"x\"")), (0, true), "{ran:?}");
    }
    assert_eq!(daemons_of(&sandbox), [daemon.pid()]);
    assert_eq!(sandbox.json(&["call", "p.echo"])["data"], json!({}));
    sandbox.plugd(&["shutdown"]).expect(0);
    eventually("the daemon is gone", || daemons_of(&sandbox).is_empty());
}
