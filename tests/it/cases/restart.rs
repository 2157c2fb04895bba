//! Cases about restarts: how often, how soon, when no more, and what an operator's word changes.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use plugd_tests::{Sandbox, alive, eventually};
use serde_json::json;

use super::framing::data_of;
use crate::reloading::{events_of, living, marks, pid_of, text};

#[test]
fn c046_a_handshake_alone_does_not_reset_the_count_of_failures() {
    // With the second, each run counts as stable, and is followed by the next at once.
    for stable_after in ["10s", "1ms"] {
        let sandbox = Sandbox::new("");
        let table = sandbox.shell("fp");
        let program = sandbox.read("plugins/fp/main.sh");
        let init = "*'\"method\":\"init\"'*)\n";
        assert!(program.contains(init), "the fixture changed");
        let ends = format!("{init}    answer '\"result\":{{}}'\n    exit 1\n");
        sandbox.write("plugins/fp/main.sh", &program.replace(init, &ends));
        let restart = format!(
            "restart = {{ max = 3, window = \"60s\", backoff = \"100ms\", stable_after = {stable_after:?} }}\n"
        );
        sandbox.configure(&format!("{table}start = \"eager\"\n{restart}"));
        let daemon = sandbox.serve();
        let failed = daemon.wait_for_state("fp", "failed");
        assert_eq!(failed["starts"], 4, "each came as far as init: {failed:#}");
        let reason = text(&failed["reason"]);
        assert!(reason.contains("crash loop") && reason.contains("exit status 1"), "{reason}");
        assert_eq!(marks(&sandbox, "fp", "spawned").len(), 4, "exactly one more than the limit: {failed:#}");
        let probe = failed["next_start"].as_u64().expect("it will be probed, much later");
        assert!(probe > unix_now() + 60_000, "{failed:#}");
        assert_eq!(living(&sandbox, "fp"), Vec::<u32>::new());
        daemon.stop();
    }
}

fn unix_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("in range")
}

#[test]
fn c049_failures_far_apart_never_add_up() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    let restart =
        "restart = { max = 3, window = \"1s\", backoff = \"100ms\", stable_after = \"500ms\", jitter = 0 }\n";
    sandbox.configure(&format!("{table}start = \"eager\"\n{restart}"));
    let daemon = sandbox.serve();
    for crash in 0..6 {
        let ready = daemon.wait_for_state("clock", "ready");
        if crash > 0 {
            assert_eq!(ready["generation"], crash + 1, "{ready:#}");
        }
        let since = ready["since"].as_u64().expect("a time");
        eventually("it has been well for a while", || unix_now() >= since + 1_200);
        let well = daemon.status("clock");
        assert_eq!(well["restarts"], 0, "the window is over, and the count shows it: {well:#}");
        let died = daemon.plugd(&["--output", "json", "call", "clock.crash"]).expect(6).json();
        assert_eq!(died["error"]["name"], "plugin_died", "{died:#}");
        eventually("it is seen to have failed", || {
            let status = daemon.status("clock");
            status["generation"] == crash + 2 || status["restarts"] == 1
        });
    }
    daemon.wait_for_state("clock", "ready");
    assert!(events_of(&daemon, "plugin.failed").is_empty());
    assert!(data_of(&daemon, &["clock.pid"]).is_object());
    daemon.stop();
}

#[test]
fn c050_an_operators_restart_starts_at_once_and_forgets_the_crash_loop() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.write("plugins/clock/broken", "1\n");
    let restart = "restart = { max = 2, backoff = \"20ms\", backoff_cap = \"60s\" }\n";
    sandbox.configure(&format!("{table}start = \"eager\"\n{restart}"));
    let daemon = sandbox.serve();
    daemon.wait_for_state("clock", "failed");
    std::fs::remove_file(sandbox.path().join("plugins/clock/broken")).expect("it is mended");
    let began = Instant::now();
    let report = daemon.plugd(&["--output", "json", "restart", "clock"]).expect(0).json();
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    let status = &report["plugins"][0];
    assert_eq!((&status["state"], &status["restarts"]), (&json!("ready"), &json!(0)), "{report:#}");
    assert_eq!(marks(&sandbox, "clock", "spawned").len(), 4, "three failures and one start");
    // A count that was only hidden would give it up here.
    for _ in 0..2 {
        daemon.plugd(&["call", "clock.crash"]).expect(6);
        assert!(data_of(&daemon, &["clock.pid"]).is_object());
    }
    daemon.stop();
}

#[test]
fn c053_a_plugin_that_uses_up_its_retries_ends_nothing_but_itself() {
    let sandbox = Sandbox::new("");
    sandbox.program("plugins/prints/main.py", "import sys\nprint(sys.argv)\n");
    let prints = "[plugins.prints]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/prints\"\n";
    let clock = sandbox.shell("clock");
    sandbox.configure(&format!(
        "{prints}start = \"eager\"\nrestart = {{ max = 2, backoff = \"20ms\" }}\n{clock}"
    ));
    let daemon = sandbox.serve();
    let failed = daemon.wait_for_state("prints", "failed");
    assert!(text(&failed["reason"]).contains("exit status 0"), "{failed:#}");
    daemon.plugd(&["status"]).expect(0);
    assert!(alive(daemon.pid()));
    assert!(data_of(&daemon, &["clock.pid"]).is_object());
    daemon.stop();
}

#[test]
fn c054_commands_to_a_plugin_that_waits_for_another_neither_hang_nor_double_it() {
    let sandbox = Sandbox::new("");
    let slow = "
def on_init(params):
    mark('initialising')
    while not os.path.exists('let_go'): time.sleep(0.01)
    return {}
";
    let a = sandbox.python("a", slow);
    let b = sandbox.shell("b");
    sandbox.configure(&format!(
        "{a}init_timeout = \"60s\"\nstart = \"eager\"\n{b}start = \"eager\"\nrequires = {{ a = \"*\" }}\n"
    ));
    let daemon = sandbox.serve();
    eventually("a is on its way", || !marks(&sandbox, "a", "initialising").is_empty());
    std::thread::scope(|scope| {
        let restarts: Vec<_> = (0..2).map(|_| scope.spawn(|| daemon.plugd(&["restart", "b"]))).collect();
        // The gate is shut all the while: whatever waits is let go by the stop.
        eventually("no command hangs", || {
            daemon.plugd(&["stop", "b"]).expect(0);
            restarts.iter().all(std::thread::ScopedJoinHandle::is_finished)
        });
        daemon.plugd(&["stop", "b"]).expect(0);
        assert_eq!(daemon.status("b")["state"], "stopped");
        let start = scope.spawn(|| daemon.plugd(&["start", "b"]));
        eventually("b waits for a again", || daemon.status("b")["state"] != "stopped");
        sandbox.write("plugins/a/let_go", "");
        start.join().expect("it ends");
    });
    let ready = daemon.wait_for_state("b", "ready");
    assert_eq!(living(&sandbox, "b"), [pid_of(&ready)], "exactly one process of it exists");
    assert_eq!(daemon.json(&["status"])["daemon"]["health"], "ok");
    daemon.stop();
}
