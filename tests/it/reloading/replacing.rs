//! All other plugins: a new run takes over once it is ready, and the old one stays where it is not.

use std::time::Instant;

use plugd_tests::{Sandbox, alive, eventually};
use serde_json::{Value, json};

use super::{FP, data, events_of, kill, living, marks, pid_of, rewrite, teller, text};

/// Programs that never come to serve, and a part of the reason to be given.
const BROKEN: &[(&str, &str)] = &[
    ("MANIFEST = {'operations': 7}", "operations"),
    ("MANIFEST = {'protocol': 99}", "99"),
    ("MANIFEST = {'requires': {'nobody': '*'}}", "nobody"),
    ("MANIFEST = {'requires': {'fp': '*'}}", "itself"),
    ("def on_init(params):\n    raise Failure('the licence has run out')\n", "the licence has run out"),
    ("def on_init(params):\n    os._exit(4)\n", "exit status 4"),
    ("sys.exit('there is no such module')", "exit status 1"),
    ("def on_init(params):\n    time.sleep(600)\n", "init"),
];

/// Waits in `init` for a file `let_go`.
const GATED: &str = r#"
def on_init(params):
    CONFIG.update(params["config"])
    mark("initialising", str(os.getpid()))
    while not os.path.exists("let_go"):
        time.sleep(0.01)
    return {}
"#;

const SHORT: &str = "init_timeout = \"3s\"\n";

#[test]
fn a_new_run_that_fails_in_any_way_leaves_the_old_one_serving_and_marks_it() {
    let sandbox = teller("", SHORT);
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    for (broken, why) in BROKEN {
        rewrite(&sandbox, "broken", broken);
        let ran = daemon.plugd(&["reload", "fp"]).expect(6);
        assert!(ran.stderr.contains(why), "{broken}: {ran:?}");
        let status = daemon.status("fp");
        assert_eq!(status["state"], "ready", "{broken}: {status:#}");
        let required = &status["restart_required"];
        assert_eq!(required["changed"], json!(["file main.py"]), "{broken}: {status:#}");
        assert!(text(&required["reason"]).contains(why), "{broken}: {status:#}");
        assert_eq!(status["restarts"], 0, "a failed replacement is no failure of what serves: {status:#}");
        assert_eq!(data(&daemon, "fp.show"), before, "{broken}");
    }
    rewrite(&sandbox, "mended", "");
    daemon.plugd(&["reload", "fp"]).expect(0);
    let after = data(&daemon, "fp.show");
    assert_eq!(after["version"], "mended");
    let status = daemon.status("fp");
    assert!(status["restart_required"].is_null(), "{status:#}");
    eventually("one process is left", || living(&sandbox, "fp") == [pid_of(&status)]);
    let lost = events_of(&daemon, "plugin.backoff").len() + events_of(&daemon, "plugin.disabled").len();
    assert_eq!(lost, 0, "it was ready all the while");
    daemon.stop();
}

#[test]
fn a_failed_replacement_is_tried_again_by_the_next_reload_and_a_crash_brings_back_the_old_settings() {
    let sandbox = teller("", "restart = { backoff = \"20ms\" }\nconfig.ttl = 1\n");
    let refuses = "def on_init(params):\n    if params['config'].get('ttl') == 2: raise Failure('not two')\n    CONFIG.update(params['config'])\n    return {}\n";
    rewrite(&sandbox, "one", refuses);
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    let configure = |ttl: u32| {
        sandbox.configure(&format!("{FP}restart = {{ backoff = \"20ms\" }}\nconfig.ttl = {ttl}\n"));
        daemon.json(&["reload"])
    };
    let report = configure(2);
    assert_eq!(report["restart_required"], json!(["fp"]), "{report:#}");
    assert_eq!(data(&daemon, "fp.show"), before);
    let status = daemon.status("fp");
    assert!(text(&status["restart_required"]["reason"]).contains("not two"), "{status:#}");

    kill(pid_of(&status));
    eventually("it is dead", || !alive(pid_of(&status)));
    let back = data(&daemon, "fp.show");
    assert_eq!(back["config"], json!({"ttl": 1}), "what the crash brings back is what worked");
    assert_ne!(back["pid"], before["pid"]);

    configure(3);
    assert_eq!(data(&daemon, "fp.show")["config"], json!({"ttl": 3}));
    assert!(daemon.status("fp")["restart_required"].is_null());
    daemon.stop();
}

/// A teller that serves, whose next version waits in `init`.
fn gated() -> Sandbox {
    teller("", "init_timeout = \"25s\"\nrestart = { backoff = \"20ms\" }\n")
}

fn initialising(sandbox: &Sandbox) -> bool {
    !marks(sandbox, "fp", "initialising").is_empty()
}

#[test]
fn the_old_run_answers_every_call_until_the_new_one_is_ready_and_none_is_lost_between() {
    let sandbox = gated();
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    rewrite(&sandbox, "two", GATED);
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| daemon.plugd(&["--output", "json", "reload", "fp"]));
        eventually("the new one is under way", || initialising(&sandbox));
        for _ in 0..5 {
            assert_eq!(data(&daemon, "fp.show"), before);
        }
        let status = daemon.status("fp");
        assert_eq!(status["pid"], before["pid"], "{status:#}");
        assert!(status["replacing"].as_u64() > status["generation"].as_u64(), "{status:#}");
        assert_eq!(status["state"], "ready", "{status:#}");
        sandbox.write("plugins/fp/let_go", "");
        let report = reload.join().expect("it ends").expect(0).json();
        assert!(report["generations"]["fp"].as_u64() > status["generation"].as_u64(), "{report:#}");
    });
    let after = data(&daemon, "fp.show");
    assert_eq!(after["version"], "two");
    let status = daemon.status("fp");
    assert!(status["replacing"].is_null(), "{status:#}");
    assert_eq!(status["pid"], after["pid"]);
    let old = u32::try_from(before["pid"].as_u64().expect("a pid")).expect("a pid");
    eventually("the old one is gone", || !alive(old));
    daemon.stop();
}

#[test]
fn a_run_that_dies_while_the_next_is_on_its_way_is_followed_by_it() {
    let sandbox = gated();
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    let old = pid_of(&daemon.status("fp"));
    rewrite(&sandbox, "two", GATED);
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| daemon.plugd(&["reload", "fp"]));
        eventually("the new one is under way", || initialising(&sandbox));
        kill(old);
        eventually("the old one is gone", || !alive(old));
        let call = scope.spawn(|| daemon.json(&["call", "fp.show"]));
        sandbox.write("plugins/fp/let_go", "");
        let result: Value = call.join().expect("it ends");
        assert_eq!((&result["status"], &result["data"]["version"]), (&json!("ok"), &json!("two")));
        reload.join().expect("it ends");
    });
    let status = daemon.status("fp");
    assert_eq!(living(&sandbox, "fp"), [pid_of(&status)], "no third process was made");
    assert!(status["restart_required"].is_null(), "{status:#}");
    daemon.stop();
}

#[test]
fn a_change_of_mind_while_the_new_run_is_on_its_way_ends_it_and_touches_nothing_else() {
    let gate = "def on_init(params):\n    CONFIG.update(params['config'])\n    if CONFIG.get('ttl') == 2:\n        mark('initialising')\n        time.sleep(600)\n    return {}\n";
    let sandbox = teller(gate, "init_timeout = \"25s\"\nconfig.ttl = 1\n");
    let original = sandbox.read("plugd.toml");
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    sandbox.configure(&format!("{FP}init_timeout = \"25s\"\nconfig.ttl = 2\n"));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| daemon.plugd(&["reload"]));
        eventually("the new one is under way", || initialising(&sandbox));
        let began = Instant::now();
        sandbox.write("plugd.toml", &original);
        daemon.plugd(&["reload"]).expect(0);
        assert!(began.elapsed().as_secs() < 20, "nothing waited for the init: {:?}", began.elapsed());
        first.join().expect("it ends");
    });
    assert_eq!(data(&daemon, "fp.show"), before);
    let status = daemon.status("fp");
    assert!(status["restart_required"].is_null() && status["replacing"].is_null(), "{status:#}");
    eventually("one process is left", || living(&sandbox, "fp") == [pid_of(&status)]);
    daemon.stop();
}

#[test]
fn a_start_after_a_stop_takes_what_is_configured_by_then() {
    let sandbox = gated();
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    daemon.plugd(&["stop", "fp"]).expect(0);
    rewrite(&sandbox, "two", "");
    daemon.plugd(&["start", "fp"]).expect(0);
    assert_eq!(data(&daemon, "fp.show")["version"], "two");
    daemon.stop();
}

#[test]
fn what_a_new_version_offers_can_be_called_from_the_moment_it_serves_and_no_sooner() {
    let sandbox = gated();
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    let more =
        format!("{GATED}\nOPERATIONS.append({{'name': 'more', 'input_schema': {{'type': 'object'}}}})\n");
    let fewer = format!("{more}OPERATIONS[:] = [each for each in OPERATIONS if each['name'] != 'wait']\n");
    rewrite(&sandbox, "two", &fewer);
    std::thread::scope(|scope| {
        let reload = scope.spawn(|| daemon.plugd(&["reload", "fp"]));
        eventually("the new one is under way", || initialising(&sandbox));
        daemon.plugd(&["call", "fp.more"]).expect(4);
        let offered = daemon.json(&["describe", "fp"])["operations"].to_string();
        assert!(offered.contains("wait") && !offered.contains("more"), "{offered}");
        sandbox.write("plugins/fp/let_go", "");
        reload.join().expect("it ends").expect(0);
    });
    assert_eq!(data(&daemon, "fp.more")["version"], "two");
    daemon.plugd(&["call", "fp.wait"]).expect(4);
    daemon.stop();
}

#[test]
fn a_new_version_that_requires_a_plugin_which_is_asleep_has_it_started_first() {
    let sandbox = teller("", "");
    let base = sandbox.shell("base");
    sandbox.configure(&format!("{FP}{base}"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.show");
    daemon.wait_for_state("base", "idle");
    rewrite(&sandbox, "two", "MANIFEST = {'requires': {'base': '>=1.0'}}");
    daemon.plugd(&["reload", "fp"]).expect(0);
    assert_eq!(data(&daemon, "fp.show")["version"], "two");
    assert_eq!(daemon.status("base")["state"], "ready");

    rewrite(&sandbox, "three", "MANIFEST = {'requires': {'base': '>=2.0'}}");
    let ran = daemon.plugd(&["reload", "fp"]).expect(6);
    assert!(ran.stderr.contains(">=2.0") && ran.stderr.contains("1.0.0"), "{ran:?}");
    let after = data(&daemon, "fp.show");
    assert_eq!(after["version"], "two");
    assert_ne!(after["pid"], before["pid"]);
    daemon.stop();
}

#[test]
fn what_does_not_run_just_uses_what_is_configured_when_it_runs_next() {
    for policy in ["", "on_change = \"manual\"\n"] {
        let lines = format!("{policy}idle_timeout = \"300ms\"\n");
        let sandbox = teller("", &format!("{lines}config.ttl = 1\n"));
        let daemon = sandbox.serve();
        assert_eq!(data(&daemon, "fp.show")["config"], json!({"ttl": 1}));
        daemon.wait_for_state("fp", "idle");
        rewrite(&sandbox, "two", "");
        sandbox.configure(&format!("{FP}{lines}config.ttl = 2\n"));
        let report = daemon.plugd(&["--output", "json", "reload"]).expect(0).json();
        assert!(report["restart_required"].is_null(), "{policy}: {report:#}");
        let after = data(&daemon, "fp.show");
        assert_eq!((&after["config"], &after["version"]), (&json!({"ttl": 2}), &json!("two")), "{policy}");
        assert!(daemon.status("fp")["restart_required"].is_null(), "{policy}");
        daemon.stop();
    }
}

#[test]
fn a_new_run_that_never_describes_itself_is_given_up_and_the_old_one_serves() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.configure(&format!("{table}describe_timeout = \"2s\"\n"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "clock.pid");
    sandbox.write("plugins/clock/main.sh", "echo $$ >>spawned\nwhile read -r line; do :; done\n");
    let ran = daemon.plugd(&["reload", "clock"]).expect(6);
    assert!(ran.stderr.contains("no describe answer in 2 s"), "{ran:?}");
    assert_eq!(data(&daemon, "clock.pid"), before);
    let status = daemon.status("clock");
    assert!(text(&status["restart_required"]["reason"]).contains("describe"), "{status:#}");
    eventually("one process is left", || living(&sandbox, "clock") == [pid_of(&status)]);
    daemon.stop();
}
