//! Cases about lives: coming up, refusing, stopping, and what is asked of a plugin meanwhile.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use plugd_daemon::client::{Client, ClientError};
use plugd_protocol::PluginName;
use plugd_protocol::control::{PluginState, PluginsParams, ReloadParams};
use plugd_tests::{Daemon, Sandbox, alive, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::framing::{data_of, sandbox_of};

/// A failed plugin is not tried again while the test looks at it.
const LATER: &str = "restart = { backoff = \"30s\" }\n";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("it is no text: {value}"))
}

/// A process of somebody else that must live on; it is ended with its test.
pub(super) struct Innocent(Child);

impl Innocent {
    pub(super) fn start() -> Innocent {
        Innocent(Command::new("sleep").arg("100").spawn().expect("sleep runs"))
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn lives(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_none()
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn c032_an_interpreter_that_is_not_there_leaves_no_pid_to_signal() {
    let sandbox = Sandbox::new("[plugins.p]\ncommand = [\"./p.py\"]\n");
    sandbox.program("p.py", "#!/no/such/python3\nprint('hello')\n");
    let mut innocent = Innocent::start();
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "p"]).expect(6);
    let failed = daemon.wait_for_state("p", "failed");
    assert!(text(&failed["reason"]).contains("interpreter /no/such/python3 not found"), "{failed:#}");
    assert_eq!((&failed["pid"], &failed["next_start"]), (&Value::Null, &Value::Null), "{failed:#}");
    let listed = daemon.json(&["list"])["plugins"][0].clone();
    assert_eq!((&listed["state"], listed.get("pid")), (&json!("failed"), None), "{listed:#}");

    let stop = daemon.json(&["stop", "p"]);
    assert_eq!(stop["plugins"][0]["ended"], "not_running", "{stop:#}");
    daemon.stop();
    assert!(innocent.lives(), "nobody else was signalled");
}

#[test]
fn c033_a_daemon_does_not_wait_for_a_plugin_that_is_not_ready_to_leave() {
    let sandbox = Sandbox::new("");
    let table = sandbox.misbehaving("slow", &["--slow-describe=30"]);
    sandbox.configure(&format!("{table}start = \"eager\"\ndescribe_timeout = \"60s\"\n"));
    let mut daemon = sandbox.serve();
    eventually("it is being described", || daemon.status("slow")["pid"].is_u64());
    let began = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait(), 0);
    // Two seconds on a machine of its own; below every grace and every timeout there is.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(sandbox.processes_in("plugins"), [0; 0], "the plugin has gone too");
}

/// One round of what an operator can do, each with its definite result.
async fn round(client: &Client, plugins: &PluginsParams) {
    let name = plugins.plugins.first().cloned();
    let started = client.start(plugins).await.expect("start is answered");
    assert_eq!(started.plugins.len(), 1, "{started:?}");
    let stopped = client.stop(plugins).await.expect("stop is answered");
    assert_eq!(stopped.plugins.len(), 1, "{stopped:?}");
    let restarted = client.restart(plugins).await.expect("restart is answered");
    assert_eq!(restarted.plugins.len(), 1, "{restarted:?}");
    match client.reload(&ReloadParams { plugin: name }).await {
        Ok(_) => {}
        Err(ClientError::Command(error)) => assert!(error.code >= 6000, "{error:?}"),
        Err(error @ (ClientError::Malformed { .. } | ClientError::Lost(_))) => panic!("{error}"),
    }
}

#[tokio::test]
async fn c035_whatever_is_asked_right_after_whatever_is_answered_and_counts() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("p");
    let program = sandbox.read("plugins/p/main.sh");
    let slow =
        program.replace("*'\"method\":\"describe\"'*)\n", "*'\"method\":\"describe\"'*)\n    sleep 0.05\n");
    assert_ne!(slow, program);
    sandbox.write("plugins/p/main.sh", &slow);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let plugins = PluginsParams { plugins: vec![PluginName::new("p").expect("a name")] };
    let (one, other) = (daemon.client().await, daemon.client().await);
    let shell = async |client: &Client| {
        for _ in 0..30 {
            tokio::time::timeout(Duration::from_secs(20), round(client, &plugins)).await.expect("it ends");
        }
    };
    tokio::join!(shell(&one), shell(&other));

    one.stop(&plugins).await.expect("stop is answered");
    assert_eq!(daemon.status("p")["state"], "stopped");
    assert_eq!(sandbox.processes_in("plugins"), [0; 0]);
    let started = other.start(&plugins).await.expect("start is answered");
    assert_eq!(started.plugins[0].state, PluginState::Ready, "{started:?}");
    assert_eq!(sandbox.processes_in("plugins"), [started.plugins[0].pid.expect("it runs")]);
    drop((one, other));
    daemon.stop();
}

#[test]
fn c036_a_stopped_plugin_stays_so_whatever_changes_until_a_start() {
    let sandbox = Sandbox::new("");
    let [p, other] = ["p", "other"].map(|name| sandbox.shell(name));
    let config = format!("watch = true\n{p}{other}start = \"eager\"\n");
    sandbox.configure(&config);
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.pid"]);
    let before = daemon.wait_for_state("other", "ready");
    daemon.plugd(&["stop", "p"]).expect(0);

    let refused = |why: &str| {
        let error = daemon.plugd(&["--output", "json", "call", "p.pid"]).expect(6).json()["error"].clone();
        assert_eq!(
            (&error["name"], &error["outcome"]),
            (&json!("stopped"), &json!("not_run")),
            "{why}: {error:#}"
        );
        assert!(text(&error["hint"]).contains("plugd start"), "{error:#}");
        assert_eq!(daemon.status("p")["state"], "stopped", "{why}");
    };
    refused("after the stop");
    // Both programs change; that the other one is replaced shows that it was noticed.
    for name in ["p", "other"] {
        let program = sandbox.read(&format!("plugins/{name}/main.sh"));
        sandbox.write(&format!("plugins/{name}/main.sh"), &format!("{program}\n# changed\n"));
    }
    eventually("the change of the other one is taken up", || {
        let status = daemon.status("other");
        status["state"] == "ready" && status["generation"] != before["generation"]
    });
    refused("after a change of its program");
    daemon.plugd(&["reload"]).expect(0);
    refused("after a reload");
    sandbox.configure(&format!("{config}[plugins.p.env]\nVERSION = \"2.0.0\"\n"));
    daemon.plugd(&["reload"]).expect(0);
    refused("after a change of its configuration");
    assert_eq!(sandbox.processes_in("plugins/p"), [0; 0]);

    daemon.plugd(&["start", "p"]).expect(0);
    data_of(&daemon, &["p.pid"]);
    assert_eq!(daemon.status("p")["version"], "2.0.0", "with what changed meanwhile");
    daemon.stop();
}

#[test]
fn c040_a_start_right_after_a_stop_waits_for_a_new_process() {
    let sandbox = sandbox_of(&[(
        "p",
        r#"
OPERATIONS[0]["name"] = "pid"

def handle(operation, arguments, params):
    mark("called", str(os.getpid()))
    return {"data": os.getpid()}

def on_shutdown():
    mark("leaving")
    time.sleep(2)
"#,
    )]);
    let daemon = sandbox.serve();
    let old = data_of(&daemon, &["p.pid"]).as_u64().expect("a pid");
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| daemon.json(&["stop", "p"]));
        eventually("it is leaving", || !sandbox.read("plugins/p/leaving").is_empty());
        let start = daemon.plugd(&["--output", "json", "start", "p"]).expect(0).json();
        assert_eq!(start["plugins"][0]["state"], "ready", "{start:#}");
        let new = data_of(&daemon, &["p.pid"]).as_u64().expect("a pid");
        assert_ne!(new, old);
        assert!(!alive(u32::try_from(old).expect("a pid")), "the old one was gone before the new one came");
        assert_eq!(sandbox.read("plugins/p/called"), format!("{old}\n{new}\n"), "one call each");
        let stop = stop.join().expect("it ends");
        assert_eq!(stop["plugins"][0]["ended"], "exited", "{stop:#}");
    });
    daemon.stop();
}

#[test]
fn c042_a_version_nobody_speaks_is_refused_before_init() {
    let versions = ["999", "\"abc\"", "null", "0", "none at all"];
    let sandbox = Sandbox::new("");
    let table = |(index, version): (usize, &&str)| {
        let flag = format!("--wrong-version={version}");
        let flag = if *version == "none at all" { "--no-version" } else { &flag };
        let name = format!("p{index}");
        sandbox.misbehaving(&name, &[flag, "--crash-after-init"])
    };
    let tables: String = versions.iter().enumerate().map(table).collect();
    sandbox.configure(&tables);
    let daemon = sandbox.serve();
    for (index, version) in versions.iter().enumerate() {
        let name = format!("p{index}");
        let start = daemon.plugd(&["--output", "json", "start", &name]).expect(6).json();
        let plugin = &start["plugins"][0];
        assert_eq!(plugin["state"], "disabled", "{version}: {start:#}");
        let reason = text(&plugin["reason"]);
        assert!(reason.contains("protocol") && reason.contains('1'), "it says what is supported: {reason}");
        assert_eq!(
            plugin["last_exit"]["stderr_tail"].as_array().map(Vec::len),
            None,
            "no init came: {start:#}"
        );
        assert_eq!(daemon.json(&["describe", &name])["operations"], json!([]), "{version}");
        let ran = daemon.plugd(&["--output", "json", "call", &format!("{name}.echo")]);
        assert!(ran.code == 4 || ran.code == 6, "{version}: {ran:?}");
    }
    assert_eq!(sandbox.processes_in("plugins"), [0; 0], "their processes have ended");
    daemon.stop();
}

#[test]
fn c044_what_is_no_plugin_is_told_from_what_it_writes() {
    let sandbox = Sandbox::new(&format!(
        "[plugins.help]\ncommand = [\"python3\", \"--help\"]\n{LATER}[plugins.mirror]\ncommand = [\"cat\"]\n"
    ));
    let daemon = sandbox.serve();
    let began = Instant::now();
    let start = |name: &str| {
        let start = daemon.plugd(&["--output", "json", "start", name]).expect(6).json();
        start["plugins"][0].clone()
    };
    let help = start("help");
    assert_eq!(help["state"], "backoff", "{help:#}");
    let reason = text(&help["reason"]);
    for part in ["not a plugin", "exit status 0", "first line on stdout: usage: "] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    let mirror = start("mirror");
    assert_eq!(mirror["state"], "disabled", "{mirror:#}");
    assert!(text(&mirror["reason"]).contains("it gives back what it is sent: not a plugin"), "{mirror:#}");
    assert!(began.elapsed() < Duration::from_secs(8), "no timeout was waited for: {:?}", began.elapsed());
    daemon.stop();
}

/// Keeps a line in the folder that is the plugin's own, and gives back all lines there are.
const NOTES: &str = r#"
def on_init(params):
    global FOLDER
    FOLDER = params["data_dir"]
    return {}

def handle(operation, arguments, params):
    mark(os.path.join(FOLDER, "notes"), arguments["note"])
    with open(os.path.join(FOLDER, "notes")) as notes:
        return {"data": notes.read().split()}
"#;

#[test]
fn s6_what_a_plugin_keeps_in_its_folder_outlives_runs_and_daemons() {
    let sandbox = sandbox_of(&[("p", NOTES)]);
    let note = |daemon: &Daemon<'_>, note: &str| data_of(daemon, &["p.echo", &format!("note={note}")]);
    let daemon = sandbox.serve();
    assert_eq!(note(&daemon, "one"), json!(["one"]));
    daemon.plugd(&["restart", "p"]).expect(0);
    assert_eq!(note(&daemon, "two"), json!(["one", "two"]));
    daemon.stop();
    let alone = sandbox.json(&["call", "p.echo", "note=three"]);
    assert_eq!(alone["data"], json!(["one", "two", "three"]), "without a daemon: {alone:#}");
    let daemon = sandbox.serve();
    assert_eq!(note(&daemon, "four"), json!(["one", "two", "three", "four"]));
    daemon.stop();
}
