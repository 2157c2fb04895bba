//! Rules of plugins' lives: lost requirements, idle stops, pings, probes, long starts, stuck lanes.

use plugd_tests::{Daemon, Sandbox, alive, eventually};
use serde_json::{Value, json};

use crate::reloading::{data, events_of, kill, living, marks, pid_of, text};

const QUICK: &str = "restart = { backoff = \"20ms\" }\n";

/// `weather` that requires `auth`, both up.
fn pair(sandbox: &Sandbox, weather: &str) {
    let auth = format!("{}{QUICK}", sandbox.shell("auth"));
    let weather = format!("{}{weather}", sandbox.shell("weather"));
    sandbox.configure(&format!("{auth}{weather}"));
}

fn on_loss(what: &str, optional: bool) -> String {
    format!("requires = {{ auth = {{ version = \"*\", optional = {optional}, on_loss = {what:?} }} }}\n")
}

/// Has both serve, and returns their processes.
fn up(daemon: &Daemon<'_>) -> (u32, u32) {
    daemon.plugd(&["start", "auth", "weather"]).expect(0);
    (pid_of(&daemon.status("auth")), pid_of(&daemon.status("weather")))
}

/// Waits until a plugin serves in another process than this.
#[track_caller]
fn wait_for_another(daemon: &Daemon<'_>, plugin: &str, before: u32) -> Value {
    let mut status = Value::Null;
    eventually(&format!("{plugin} serves in another process"), || {
        status = daemon.status(plugin);
        status["state"] == "ready" && status["pid"] != json!(before)
    });
    status
}

#[test]
fn on_loss_stay_leaves_the_dependent_up() {
    for requires in ["requires = { auth = \"*\" }\n".to_owned(), on_loss("stay", false)] {
        let sandbox = Sandbox::new("");
        pair(&sandbox, &requires);
        let daemon = sandbox.serve();
        let (auth, weather) = up(&daemon);
        kill(auth);
        wait_for_another(&daemon, "auth", auth);
        let status = daemon.status("weather");
        assert_eq!((&status["pid"], &status["state"]), (&json!(weather), &json!("ready")), "{status:#}");
        daemon.stop();
    }
}

#[test]
fn on_loss_restart_starts_the_dependent_anew_once_what_it_lost_is_back() {
    let declared =
        "env = { REQUIRES = '{\"auth\":{\"version\":\"*\",\"on_loss\":\"restart\"}}' }\n".to_owned();
    for requires in [on_loss("restart", false), on_loss("restart", true), declared] {
        let sandbox = Sandbox::new("");
        pair(&sandbox, &requires);
        let daemon = sandbox.serve();
        let (auth, weather) = up(&daemon);
        std::fs::remove_file(sandbox.path().join("plugins/inits")).expect("both have begun");
        kill(auth);
        let status = wait_for_another(&daemon, "weather", weather);
        assert_eq!(status["restarts"], 0, "that was no failure of its own: {status:#}");
        assert!(!alive(weather));
        wait_for_another(&daemon, "auth", auth);
        if !requires.contains("optional = true") {
            assert_eq!(sandbox.read("plugins/inits"), "auth\nweather\n", "{requires}");
        }
        daemon.stop();
    }
}

#[test]
fn on_loss_restart_waits_for_an_operator_as_long_as_it_takes() {
    let sandbox = Sandbox::new("");
    pair(&sandbox, &on_loss("restart", false));
    let daemon = sandbox.serve();
    let (_, weather) = up(&daemon);
    daemon.plugd(&["stop", "auth"]).expect(0);
    let status = daemon.wait_for_state("weather", "blocked");
    assert_eq!(status["waits_for"], json!(["auth"]), "{status:#}");
    assert!(!alive(weather), "what it would use is gone");
    daemon.plugd(&["start", "auth"]).expect(0);
    daemon.wait_for_state("weather", "ready");
    daemon.stop();
}

#[test]
fn on_loss_restart_goes_up_a_whole_chain_and_it_comes_back_in_order() {
    let sandbox = Sandbox::new("");
    let base = format!("{}{QUICK}", sandbox.shell("base"));
    let upon = |name: &str, below: &str| {
        let requires = on_loss("restart", false).replace("auth", below);
        format!("{}{requires}", sandbox.shell(name))
    };
    sandbox.configure(&[base, upon("middle", "base"), upon("top", "middle")].concat());
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "top"]).expect(0);
    let before = ["base", "middle", "top"].map(|name| pid_of(&daemon.status(name)));
    std::fs::remove_file(sandbox.path().join("plugins/inits")).expect("all have begun");
    kill(before[0]);
    for (name, pid) in ["base", "middle", "top"].into_iter().zip(before) {
        let status = wait_for_another(&daemon, name, pid);
        assert_eq!(status["restarts"], u32::from(name == "base"), "{status:#}");
    }
    assert_eq!(sandbox.read("plugins/inits"), "base\nmiddle\ntop\n");
    daemon.stop();
}

#[test]
fn on_loss_stop_ends_the_dependent_until_it_is_wanted_again() {
    let sandbox = Sandbox::new("");
    pair(&sandbox, &on_loss("stop", false));
    let daemon = sandbox.serve();
    let (auth, weather) = up(&daemon);
    kill(auth);
    eventually("the dependent is gone", || !alive(weather));
    let status = daemon.wait_for_state("weather", "idle");
    assert_eq!(status["restarts"], 0, "{status:#}");
    wait_for_another(&daemon, "auth", auth);
    assert_eq!(daemon.status("weather")["state"], "idle", "nobody wanted it");
    assert_ne!(data(&daemon, "weather.pid")["pid"], json!(weather), "a call does");
    daemon.stop();
}

#[test]
fn a_requirement_that_is_replaced_is_not_lost() {
    for what in ["restart", "stop"] {
        let sandbox = Sandbox::new("");
        pair(&sandbox, &on_loss(what, false));
        let daemon = sandbox.serve();
        let (auth, weather) = up(&daemon);
        daemon.plugd(&["reload", "auth"]).expect(0);
        wait_for_another(&daemon, "auth", auth);
        let status = daemon.status("weather");
        assert_eq!((&status["pid"], &status["state"]), (&json!(weather), &json!("ready")), "{status:#}");
        daemon.stop();
    }
}

#[test]
fn a_lazy_plugin_without_calls_is_stopped_and_the_next_call_starts_it() {
    let sandbox = Sandbox::new("");
    let noting = "
def handle(operation, arguments, params):
    return {'data': os.getpid()}
def on_shutdown():
    mark('left')
";
    let table = sandbox.python("fp", noting);
    sandbox.configure(&format!("{table}idle_timeout = \"500ms\"\n"));
    let daemon = sandbox.serve();
    let first = data(&daemon, "fp.echo");
    let pid = u32::try_from(first.as_u64().expect("a pid")).expect("a pid");
    eventually("it is stopped", || !alive(pid));
    let status = daemon.wait_for_state("fp", "idle");
    assert_eq!((&status["pid"], &status["restarts"]), (&Value::Null, &json!(0)), "{status:#}");
    assert_eq!(sandbox.read("plugins/fp/left"), "x\n", "it was asked to leave");
    assert_ne!(data(&daemon, "fp.echo"), first);
    daemon.stop();
}

#[test]
fn a_start_longer_than_the_idle_timeout_is_no_idleness() {
    let sandbox = Sandbox::new("");
    let slow = "
def on_init(params):
    mark('inits')
    time.sleep(1.5)
    return {}
";
    let table = sandbox.python("fp", slow);
    sandbox.configure(&format!("{table}idle_timeout = \"500ms\"\n"));
    let daemon = sandbox.serve();
    for _ in 0..3 {
        assert!(data(&daemon, "fp.echo").is_object());
        daemon.wait_for_state("fp", "idle");
    }
    assert_eq!(marks(&sandbox, "fp", "inits").len(), 3, "each start served the call it was made for");
    daemon.stop();
}

/// Answers pings unless there is a file `silent` in its folder, and notes each.
const PINGED: &str = r#"
MANIFEST = {"features": {"ping": True}}
BUSY = []


def on_request(method, params):
    if method != "ping":
        raise Failure("unknown method", code=-32601)
    mark("pings", "busy" if BUSY else "idle")
    return None if BUSY or os.path.exists("silent") else {}


def handle(operation, arguments, params):
    if arguments.get("wait"):
        BUSY.append(1)
        mark("waiting")
        while not os.path.exists("open"):
            time.sleep(0.01)
        BUSY.clear()
    return {"data": os.getpid()}
"#;

const PINGS: &str = "ping_interval = \"400ms\"\nping_misses = 4\n";

#[test]
fn a_plugin_that_no_longer_answers_pings_while_it_is_idle_is_replaced() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", PINGED);
    sandbox.configure(&format!("{table}{PINGS}{QUICK}"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.echo");
    eventually("it is pinged", || marks(&sandbox, "fp", "pings").len() >= 3);
    assert_eq!(data(&daemon, "fp.echo"), before, "who answers is left in peace");

    let pid = pid_of(&daemon.status("fp"));
    let silent = sandbox.write("plugins/fp/silent", "");
    eventually("it is ended", || !alive(pid));
    std::fs::remove_file(silent).expect("it was there");
    assert_ne!(data(&daemon, "fp.echo"), before);
    let log = daemon.json(&["logs", "fp"]).to_string();
    assert!(log.contains("pings"), "the log says why: {log}");
    daemon.stop();
}

#[test]
fn a_plugin_with_a_call_in_flight_is_not_pinged() {
    let sandbox = Sandbox::new("");
    let [busy, pulse] =
        ["busy", "pulse"].map(|name| format!("{}{PINGS}{QUICK}", sandbox.python(name, PINGED)));
    sandbox.configure(&format!("{busy}{pulse}"));
    let daemon = sandbox.serve();
    data(&daemon, "pulse.echo");
    let before = data(&daemon, "busy.echo");
    std::thread::scope(|scope| {
        let call = scope.spawn(|| daemon.json(&["call", "busy.echo", "wait:=true"]));
        eventually("the call runs", || !marks(&sandbox, "busy", "waiting").is_empty());
        let seen = marks(&sandbox, "pulse", "pings").len();
        eventually("as long as it takes to miss too many", || {
            marks(&sandbox, "pulse", "pings").len() >= seen + 6
        });
        sandbox.write("plugins/busy/open", "");
        let result = call.join().expect("it ends");
        assert_eq!((&result["status"], &result["data"]), (&json!("ok"), &before), "{result:#}");
    });
    assert!(!marks(&sandbox, "busy", "pings").contains(&"busy".to_owned()));
    assert_eq!(data(&daemon, "busy.echo"), before);
    daemon.stop();
}

#[test]
fn a_plugin_that_does_not_declare_ping_is_never_pinged() {
    let sandbox = Sandbox::new("");
    let silent = PINGED.replace("MANIFEST = {\"features\": {\"ping\": True}}", "");
    let [quiet, pulse] = [("quiet", silent.as_str()), ("pulse", PINGED)]
        .map(|(name, text)| format!("{}{PINGS}{QUICK}", sandbox.python(name, text)));
    sandbox.configure(&format!("{quiet}{pulse}"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "quiet.echo");
    data(&daemon, "pulse.echo");
    eventually("others are", || marks(&sandbox, "pulse", "pings").len() >= 5);
    assert_eq!(marks(&sandbox, "quiet", "pings"), Vec::<String>::new());
    assert_eq!(data(&daemon, "quiet.echo"), before);
    daemon.stop();
}

#[test]
fn what_was_given_up_is_tried_once_in_a_while_and_comes_back_by_itself() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("clock");
    let restart = "restart = { max = 1, backoff = \"10ms\", probe_interval = \"400ms\" }\n";
    sandbox.write("plugins/clock/broken", "3\n");
    sandbox.configure(&format!("{table}start = \"eager\"\n{restart}"));
    let daemon = sandbox.serve();
    let failed = daemon.wait_for_state("clock", "failed");
    assert!(failed["next_start"].is_u64(), "it says when it is tried again: {failed:#}");
    eventually("it is tried again, and again", || marks(&sandbox, "clock", "spawned").len() >= 4);
    let tried = events_of(&daemon, "plugin.failed").len();
    assert!(tried >= 2, "each try that fails leads back: {tried}");
    assert_eq!(events_of(&daemon, "plugin.backoff").len(), 1, "a probe has one try, without any back-off");
    std::fs::remove_file(sandbox.path().join("plugins/clock/broken")).expect("it is mended");
    daemon.wait_for_state("clock", "ready");
    assert!(data(&daemon, "clock.pid").is_object());
    daemon.stop();
}

#[test]
fn exit_status_125_in_a_call_is_permanent_too() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "def handle(operation, arguments, params):\n    os._exit(125)\n");
    sandbox.configure(&format!("{table}restart = {{ backoff = \"10ms\", probe_interval = \"100ms\" }}\n"));
    let daemon = sandbox.serve();
    let died = daemon.plugd(&["--output", "json", "call", "fp.echo"]).expect(6).json();
    assert_eq!(died["error"]["name"], "plugin_died", "{died:#}");
    let failed = daemon.wait_for_state("fp", "failed");
    assert!(text(&failed["reason"]).contains("125"), "{failed:#}");
    assert!(failed["next_start"].is_null(), "nor is it probed: {failed:#}");
    let refused = daemon.plugd(&["--output", "json", "call", "fp.echo"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "failed", "{refused:#}");
    daemon.stop();
}

/// Says, from sh, how far a start is.
const TELLS: &str = r#"sleep 0.3; echo '{"jsonrpc":"2.0","method":"progress","params":{"done":1}}'"#;

#[test]
fn progress_gives_describe_more_time_too() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("slow");
    let program = sandbox.read("plugins/slow/main.sh");
    let telling = format!("for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do {TELLS}; done\n");
    let program = program.replace("while IFS=", &format!("{telling}while IFS="));
    sandbox.write("plugins/slow/main.sh", &program);
    sandbox.configure(&format!("{table}describe_timeout = \"2s\"\nstart = \"eager\"\n"));
    let daemon = sandbox.serve();
    let ready = daemon.wait_for_state("slow", "ready");
    assert_eq!((&ready["restarts"], &ready["starts"]), (&json!(0), &json!(1)), "{ready:#}");
    assert!(ready["describe_ms"].as_u64().is_some_and(|took| took > 4_000), "{ready:#}");
    daemon.stop();
}

#[test]
fn progress_does_not_put_off_the_end_of_a_start_for_ever() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("endless");
    let program = sandbox.read("plugins/endless/main.sh");
    let init = "*'\"method\":\"init\"'*)\n";
    assert!(program.contains(init), "the fixture changed");
    let program = program.replace(init, &format!("{init}    while :; do {TELLS}; done\n"));
    sandbox.write("plugins/endless/main.sh", &program);
    let limits = "init_timeout = \"2s\"\nstart_timeout_max = \"4s\"\nrestart = { backoff = \"30s\" }\n";
    sandbox.configure(&format!("{table}{limits}"));
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "endless"]).expect(6);
    let status = daemon.wait_for_state("endless", "backoff");
    assert!(text(&status["reason"]).contains("init"), "{status:#}");
    daemon.stop();
}

#[test]
fn a_stop_during_a_start_is_done_at_once_and_stays() {
    let sandbox = Sandbox::new("");
    let slow = "
def on_init(params):
    mark('spawned', str(os.getpid()))
    time.sleep(600)
";
    let table = sandbox.python("fp", slow);
    sandbox.configure(&format!("{table}start = \"eager\"\ninit_timeout = \"60s\"\n"));
    let daemon = sandbox.serve();
    eventually("it is starting", || !marks(&sandbox, "fp", "spawned").is_empty());
    let began = std::time::Instant::now();
    daemon.plugd(&["stop", "fp"]).expect(0);
    assert!(began.elapsed().as_secs() < 20, "nothing waited for the init: {:?}", began.elapsed());
    assert_eq!(living(&sandbox, "fp"), Vec::<u32>::new());
    assert_eq!(daemon.status("fp")["state"], "stopped");
    daemon.stop();
}

#[test]
fn a_plugin_stuck_in_its_only_lane_is_restarted_and_calls_that_wait_for_it_sit_it_out() {
    let sandbox = Sandbox::new("");
    let stuck = "
def handle(operation, arguments, params):
    if arguments.get('hang'):
        mark('hanging')
        time.sleep(600)
    return {'data': os.getpid()}
";
    let table = sandbox.python("fp", stuck);
    sandbox.configure(&format!("{table}{QUICK}cancel_grace = \"500ms\"\n"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.echo");
    std::thread::scope(|scope| {
        let hang = scope.spawn(|| daemon.json(&["call", "fp.echo", "hang:=true"]));
        eventually("the call runs", || !marks(&sandbox, "fp", "hanging").is_empty());
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| daemon.json(&["call", "fp.echo"]))).collect();
        eventually("others wait", || daemon.status("fp")["queued"] == 3);
        let calls = daemon.json(&["status"])["daemon"]["calls"].clone();
        daemon.plugd(&["cancel", text(&calls[0]["call_id"])]).expect(0);
        assert_eq!(hang.join().expect("it ends")["status"], "cancelled");
        for call in waiting {
            let result = call.join().expect("it ends");
            assert_eq!(result["status"], "ok", "{result:#}");
            assert_ne!(result["data"], before, "the process that was stuck answers nobody");
        }
    });
    daemon.stop();
}

#[test]
fn an_optional_requirement_may_be_missing_makes_no_cycle_and_can_be_called_once_it_is_there() {
    let sandbox = Sandbox::new("");
    let asks = "
MANIFEST = {'requires': {'other': {'version': '*', 'optional': True}}, 'features': {'concurrency': 2}}
def handle(operation, arguments, params):
    if arguments.get('last'):
        return {'data': os.getpid()}
    answer = host_call('other.echo', {'last': True}, params['context']['call_id'])
    return {'data': answer.get('result', {}).get('data') or answer['error']['data']['name']}
";
    let one = sandbox.python("one", asks);
    sandbox.configure(&one);
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "one.echo"])["data"], "unknown_plugin");
    assert_eq!(daemon.status("one")["state"], "ready");

    // The two want each other, and neither insists.
    let other = sandbox.python("other", &asks.replace("'other': {", "'one': {"));
    sandbox.configure(&format!("{one}{other}"));
    daemon.plugd(&["reload"]).expect(0);
    let answered = daemon.json(&["call", "one.echo"]);
    assert_eq!(answered["data"], daemon.status("other")["pid"], "{answered:#}");
    assert_eq!(daemon.json(&["graph"])["cycles"], json!([]));
    daemon.stop();
}
