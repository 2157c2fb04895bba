//! What follows when a plugin dies, refuses or will not leave.

use std::fs;

use plugd_tests::{Sandbox, alive, eventually, group_members};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const QUICK: &str = "restart = { backoff = \"20ms\" }\n";

fn pid_of(status: &Value) -> u32 {
    let pid = status["pid"].as_u64().unwrap_or_else(|| panic!("it has no process: {status:#}"));
    u32::try_from(pid).expect("a pid")
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::KILL).expect("it was alive");
}

fn spawned(sandbox: &Sandbox, name: &str) -> usize {
    sandbox.read(&format!("plugins/{name}/spawned")).lines().count()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("it is no text: {value}"))
}

#[test]
fn a_killed_plugin_is_restarted_and_the_next_call_waits_for_it_unaware() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.configure(&format!("{table}{QUICK}start = \"eager\"\n"));
    let daemon = sandbox.serve();
    let before = daemon.wait_for_state("clock", "ready");
    kill(pid_of(&before));
    eventually("it is dead", || !alive(pid_of(&before)));

    let call = daemon.json(&["call", "clock.pid"]);
    assert_eq!(call["status"], "ok", "{call:#}");
    let after = daemon.wait_for_state("clock", "ready");
    assert_ne!(after["pid"], before["pid"]);
    assert_eq!(call["data"]["pid"], after["pid"]);
    assert_eq!(after["generation"].as_u64(), before["generation"].as_u64().map(|run| run + 1), "{after:#}");
    assert_eq!(after["last_exit"]["generation"], before["generation"], "{after:#}");
    assert_eq!((&after["last_exit"]["signal"], &after["restarts"]), (&json!(9), &json!(1)), "{after:#}");
    assert_eq!(text(&after["last_exit"]["text"]), "killed by signal 9 (SIGKILL)");
    daemon.stop();
}

#[test]
fn c024_a_crash_in_mid_call_is_answered_at_once_with_its_exit_status_and_last_words() {
    let sandbox = Sandbox::new("");
    let definitions = "
OPERATIONS.append({'name': 'crash', 'input_schema': {'type': 'object'}})
def handle(operation, arguments, params):
    if operation == 'crash':
        print('boom', file=sys.stderr, flush=True)
        os._exit(3)
    return {'data': arguments}
";
    let table = sandbox.python("store", definitions);
    sandbox.configure(&format!("{table}{QUICK}"));
    let daemon = sandbox.serve();
    daemon.json(&["call", "store.echo"]);
    let failed =
        daemon.plugd(&["--output", "json", "call", "store.crash", "--timeout", "60s"]).expect(6).json();
    let error = &failed["error"];
    assert_eq!((&error["code"], &error["name"]), (&json!(6001), &json!("plugin_died")), "{failed:#}");
    assert_eq!(error["outcome"], "unknown", "it may have done something: {failed:#}");
    let message = text(&error["message"]);
    assert!(["store", "exit status 3", "boom"].iter().all(|part| message.contains(part)), "{message}");
    assert!(
        failed["meta"]["run_us"].as_u64().expect("a number") < 10_000_000,
        "far below its deadline: {failed:#}"
    );

    let call = daemon.json(&["call", "store.echo", "x=1"]);
    assert_eq!(call["status"], "ok", "{call:#}");
    let status = daemon.status("store");
    assert_eq!(status["last_exit"]["code"], 3, "{status:#}");
    assert_eq!(status["last_exit"]["stderr_tail"], json!(["boom"]), "{status:#}");
    daemon.stop();
}

#[test]
fn c026_a_crash_before_describe_is_told_at_once_with_its_exit_status_and_last_words() {
    let sandbox = Sandbox::new("");
    sandbox.program("plugins/broken/main.py", "import no_such_module\n");
    let table = "[plugins.broken]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/broken\"\n";
    sandbox.configure(&format!("{table}restart = {{ backoff = \"30s\" }}\ndescribe_timeout = \"60s\"\n"));
    let daemon = sandbox.serve();
    let began = std::time::Instant::now();
    let start = daemon.plugd(&["--output", "json", "start", "broken"]).expect(6).json();
    assert!(began.elapsed().as_secs() < 15, "nothing waited for the handshake: {:?}", began.elapsed());
    let broken = &start["plugins"][0];
    assert_eq!(broken["state"], "backoff", "{start:#}");
    let reason = text(&broken["reason"]);
    assert!(reason.contains("exit status 1") && reason.contains("no_such_module"), "{reason}");
    assert!(broken["next_start"].is_u64(), "it says when it will be tried again: {start:#}");
    let tail = broken["last_exit"]["stderr_tail"].as_array().expect("a list");
    assert!(tail.iter().any(|line| text(line).contains("ModuleNotFoundError")), "{start:#}");
    daemon.stop();
}

#[test]
fn c027_a_plugin_that_never_answers_describe_is_ended_and_nothing_else_is_touched() {
    let sandbox = Sandbox::new("");
    sandbox.program("plugins/mute/main.sh", "echo $$ >>spawned\nexec cat >/dev/null\n");
    let mute = "[plugins.mute]\ncommand = [\"sh\", \"main.sh\"]\ncwd = \"plugins/mute\"\n";
    let clock = sandbox.shell("clock");
    let limits = "describe_timeout = \"300ms\"\nrestart = { backoff = \"30s\" }\n";
    sandbox.configure(&format!("{mute}{limits}{clock}"));
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "mute"]).expect(6);
    let status = daemon.wait_for_state("mute", "backoff");
    assert!(text(&status["reason"]).contains("no describe answer in 0.3 s"), "{status:#}");
    let pids = sandbox.read("plugins/mute/spawned");
    assert!(pids.lines().all(|pid| !alive(pid.parse().expect("a pid"))), "its processes are gone: {pids}");
    assert_eq!(daemon.json(&["call", "clock.pid"])["status"], "ok");
    daemon.stop();
}

#[test]
fn a_crash_loop_ends_after_exactly_one_more_than_max_and_a_start_clears_it() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.write("plugins/clock/broken", "3\n");
    sandbox.configure(&format!("{table}start = \"eager\"\nrestart = {{ backoff = \"10ms\", max = 3 }}\n"));
    let daemon = sandbox.serve();
    let failed = daemon.wait_for_state("clock", "failed");
    assert_eq!(spawned(&sandbox, "clock"), 4, "{failed:#}");
    let reason = text(&failed["reason"]);
    assert!(reason.contains("crash loop: 4 failures") && reason.contains("exit status 3"), "{reason}");
    assert!(reason.contains("the ledger is locked"), "{reason}");
    let refused = daemon.plugd(&["--output", "json", "call", "clock.pid"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "failed", "{refused:#}");
    assert_eq!(spawned(&sandbox, "clock"), 4, "a call does not start what was given up");

    fs::remove_file(sandbox.path().join("plugins/clock/broken")).expect("it is mended");
    let start = daemon.plugd(&["--output", "json", "start", "clock"]).expect(0).json();
    assert_eq!(start["plugins"][0]["state"], "ready", "{start:#}");
    assert_eq!(start["plugins"][0]["restarts"], 0, "{start:#}");
    assert_eq!(spawned(&sandbox, "clock"), 5);
    daemon.stop();
}

#[test]
fn exit_status_125_is_permanent() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.write("plugins/clock/broken", "125\n");
    sandbox.configure(&format!("{table}start = \"eager\"\n{QUICK}"));
    let daemon = sandbox.serve();
    let failed = daemon.wait_for_state("clock", "failed");
    assert!(text(&failed["reason"]).contains("125"), "{failed:#}");
    assert_eq!(failed["next_start"], Value::Null, "it is not tried again: {failed:#}");
    assert_eq!(spawned(&sandbox, "clock"), 1);
    daemon.stop();
}

#[test]
fn c029_a_program_that_is_not_there_is_failed_and_the_others_come_up() {
    let sandbox = Sandbox::new("");
    let [first, third] = ["first", "third"].map(|name| format!("{}start = \"eager\"\n", sandbox.shell(name)));
    let second = "[plugins.second]\ncommand = [\"./no-such-program\"]\nstart = \"eager\"\n";
    sandbox.configure(&format!("{first}{second}{third}"));
    let mut daemon = sandbox.serve();
    daemon.wait_for_state("first", "ready");
    daemon.wait_for_state("third", "ready");
    let failed = daemon.wait_for_state("second", "failed");
    assert!(text(&failed["reason"]).contains("no-such-program not found"), "{failed:#}");
    assert_eq!(daemon.json(&["status"])["daemon"]["health"], "degraded");
    daemon.plugd(&["shutdown"]).expect(0);
    assert_eq!(daemon.wait(), 0, "one that fails is no failure of the daemon");
}

/// Row L6.
#[test]
fn an_init_that_refuses_disables_that_plugin_alone_with_its_reason() {
    let sandbox = Sandbox::new("");
    let names = ["one", "two", "three", "four", "five"];
    let tables: String =
        names.iter().map(|name| format!("{}start = \"eager\"\n", sandbox.shell(name))).collect();
    sandbox.write("plugins/three/refuses", "the licence has run out\n");
    sandbox.configure(&tables);
    let mut daemon = sandbox.serve();
    let disabled = daemon.wait_for_state("three", "disabled");
    assert!(text(&disabled["reason"]).contains("the licence has run out"), "{disabled:#}");
    let refused = daemon.plugd(&["--output", "json", "call", "three.pid"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "disabled", "{refused:#}");
    assert!(text(&refused["error"]["message"]).contains("the licence has run out"), "{refused:#}");
    for name in ["one", "two", "four", "five"] {
        daemon.wait_for_state(name, "ready");
        assert_eq!(daemon.json(&["call", &format!("{name}.pid")])["status"], "ok");
    }
    assert_eq!(spawned(&sandbox, "three"), 1, "it is not tried again by itself");
    let list = daemon.json(&["list", "--state", "disabled"]);
    assert_eq!(list["plugins"].as_array().map(Vec::len), Some(1), "{list:#}");
    assert!(text(&list["plugins"][0]["reason"]).contains("the licence has run out"), "{list:#}");
    daemon.plugd(&["shutdown"]).expect(0);
    assert_eq!(daemon.wait(), 0);
}

#[test]
fn a_stop_is_sticky_until_a_start() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    sandbox.configure(&format!("{table}start = \"eager\"\n"));
    let daemon = sandbox.serve();
    daemon.wait_for_state("clock", "ready");
    daemon.json(&["stop", "clock"]);
    assert_eq!(daemon.status("clock")["state"], "stopped", "stop answers after its effect");

    let refused = daemon.plugd(&["--output", "json", "call", "clock.pid"]).expect(6).json();
    assert_eq!(
        (&refused["error"]["name"], &refused["error"]["outcome"]),
        (&json!("stopped"), &json!("not_run"))
    );
    assert!(text(&refused["error"]["hint"]).contains("plugd start clock"), "{refused:#}");
    daemon.json(&["reload"]);
    let again = daemon.json(&["stop", "clock"]);
    assert_eq!(again["plugins"][0]["ended"], "not_running", "{again:#}");
    assert_eq!(daemon.status("clock")["state"], "stopped");
    assert_eq!(spawned(&sandbox, "clock"), 1, "neither call nor reload started it");

    let start = daemon.plugd(&["--output", "json", "start", "clock"]).expect(0).json();
    assert_eq!(start["plugins"][0]["state"], "ready", "{start:#}");
    assert_eq!(daemon.json(&["call", "clock.pid"])["status"], "ok");
    daemon.stop();
}

/// Graces that are short enough for a test to wait out.
const SHORT: &str = "shutdown_timeout = \"100ms\"\nterm_timeout = \"100ms\"\nkill_timeout = \"100ms\"\n";

#[test]
fn a_stop_goes_as_far_as_it_must_and_says_how_each_plugin_ended() {
    let sandbox = Sandbox::new("");
    let deaf = "
import signal
def on_shutdown():
    mark('deaf')
    while True: time.sleep(600)
";
    let stubborn =
        sandbox.python("stubborn", &format!("{deaf}\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"));
    let slow = sandbox.python("slow", deaf);
    let polite = sandbox.shell("polite");
    sandbox.configure(&format!("{stubborn}{SHORT}{slow}{SHORT}{polite}{SHORT}"));
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "polite", "slow", "stubborn"]).expect(0);
    for (name, ended, least_ms) in
        [("polite", "exited", 0), ("slow", "terminated", 200), ("stubborn", "killed", 300)]
    {
        let pid = pid_of(&daemon.status(name));
        let stop = daemon.json(&["stop", name]);
        let stopped = &stop["plugins"][0];
        assert_eq!((text(&stopped["name"]), text(&stopped["ended"])), (name, ended), "{stop:#}");
        let took = stopped["took_ms"].as_u64().expect("a number");
        assert!((least_ms..5_000).contains(&took), "no grace was skipped: {stop:#}");
        assert_eq!(group_members(pid), Vec::<u32>::new(), "{name} is gone when stop answers");
    }
    assert_eq!(sandbox.read("plugins/stubborn/deaf"), "x\n", "it was asked once before it was forced");
    daemon.stop();
}

#[test]
fn what_a_plugin_started_goes_with_it_however_it_ends() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("forks");
    let program = sandbox.read("plugins/forks/main.sh");
    sandbox.write("plugins/forks/main.sh", &program.replace("answer() {", "sleep 600 &\nanswer() {"));
    sandbox.configure(&format!("{table}{QUICK}start = \"eager\"\n"));
    let daemon = sandbox.serve();
    let killed = pid_of(&daemon.wait_for_state("forks", "ready"));
    assert_eq!(group_members(killed).len(), 2, "the plugin and its child");
    kill(killed);
    daemon.json(&["call", "forks.pid"]);
    eventually("the child of the killed one is gone", || group_members(killed).is_empty());

    let stopped = pid_of(&daemon.status("forks"));
    assert_ne!(stopped, killed);
    daemon.json(&["stop", "forks"]);
    assert_eq!(group_members(stopped), Vec::<u32>::new());
    daemon.stop();
}
