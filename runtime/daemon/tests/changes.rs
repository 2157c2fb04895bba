//! What an operator changes through the control socket, and that it outlives the daemon.
// clippy knows the tests by their attribute and not what they share.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plugd_daemon::client::{Client, ClientError, Following};
use plugd_daemon::{ControlSocket, Limits, ServeError, Signals, serve};
use plugd_engine::{Config, Engine, Opening};
use plugd_protocol::control::{
    AddParams, CallParams, Event, EventsParams, ListParams, PluginState, PluginStatus, PluginsParams,
    ReloadParams, Source, StatusParams, StopReport,
};
use plugd_protocol::{CallError, PluginName};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Longer than anything here takes, so that a test that hangs says so.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers `echo` with its own line.
const PLUGIN: &str = r#"#!/bin/sh
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"describe"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocol":1,"name":"p","version":"1","operations":[{"name":"echo","input_schema":{}}]}}' ;;
    *'"method":"call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"data":{}}}' ;;
    *'"method":"shutdown"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}'; exit 0 ;;
    *) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
  esac
done
"#;

const DAEMON: &str = "[daemon]\nsocket = \"run/s\"\nstate_dir = \"state\"\n";

struct World {
    dir: tempfile::TempDir,
}

/// A daemon in this process, and a client of it.
struct Running {
    client: Client,
    daemon: JoinHandle<Result<StopReport, ServeError>>,
}

impl World {
    /// Two configured plugins, `p` and `r`.
    fn new(more: &str) -> World {
        let world = World { dir: tempfile::tempdir().unwrap() };
        world.program("p.sh", PLUGIN);
        let plugins = "[plugins.p]\ncommand = [\"./p.sh\"]\n[plugins.r]\ncommand = [\"./p.sh\"]\n";
        world.write("plugd.toml", &format!("{DAEMON}{more}{plugins}"));
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o755)).unwrap();
    }

    async fn serve(&self) -> Running {
        let config = Config::load(&self.path("plugd.toml")).unwrap();
        let socket = config.socket.clone();
        let bound = bind(&socket).await;
        let engine = Engine::open(config, Opening::Everything).await.unwrap();
        let (ready, answers) = tokio::sync::oneshot::channel();
        let signals = Signals::catch().unwrap();
        let daemon = tokio::spawn(serve(engine, bound, Limits::default(), signals, move |_| {
            ready.send(()).unwrap();
        }));
        answers.await.unwrap();
        Running { client: Client::connect(&socket).await.unwrap(), daemon }
    }

    /// The params that add this program under a name.
    fn program_as(&self, name: &str, program: &str) -> AddParams {
        add(name, json!({"command": [self.path(program)], "cwd": self.dir.path()}))
    }
}

impl Running {
    async fn end(self) {
        self.client.shutdown().await.unwrap();
        self.daemon.await.unwrap().unwrap();
    }

    async fn status(&self, name: &str) -> PluginStatus {
        let params = StatusParams { plugin: Some(self::name(name)) };
        self.client.status(&params).await.unwrap().plugins.remove(0)
    }

    /// The name of the error with which `echo` of a plugin fails; empty where it does not.
    async fn call(&self, name: &str) -> String {
        let result = self.client.call(&CallParams::new(format!("{name}.echo"))).await.unwrap();
        result.error.map(|error| error.name.to_string()).unwrap_or_default()
    }

    async fn events(&self) -> Following<Event> {
        self.client.follow_events(&EventsParams::default()).await.unwrap()
    }
}

/// Takes the socket. Another test of this process may be just making a child, which holds a copy of
/// the lock until it is another program.
async fn bind(socket: &Path) -> ControlSocket {
    let free = async {
        loop {
            match ControlSocket::bind(socket) {
                Ok(bound) => return bound,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, free).await.expect("the socket comes free")
}

fn name(text: &str) -> PluginName {
    PluginName::new(text).unwrap()
}

fn only(text: &str) -> PluginsParams {
    PluginsParams { plugins: vec![name(text)] }
}

fn add(name: &str, plugin: Value) -> AddParams {
    let Value::Object(plugin) = plugin else { panic!("a table") };
    AddParams { name: self::name(name), plugin }
}

fn command(error: ClientError) -> CallError {
    match error {
        ClientError::Command(error) => *error,
        other => panic!("{other}"),
    }
}

/// The next event of this kind.
async fn next(events: &mut Following<Event>, kind: &str) -> Event {
    let wait = async {
        loop {
            let event = events.next().await.expect("the daemon runs").unwrap();
            if event.kind == kind {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("no {kind}"))
}

#[tokio::test]
async fn an_added_plugin_outlives_the_daemon_until_it_is_removed() {
    let world = World::new("");
    let running = world.serve().await;
    let report = running.client.add(&world.program_as("q", "p.sh")).await.unwrap();
    let operations: Vec<String> = report.operations.iter().map(ToString::to_string).collect();
    assert_eq!((report.plugin.name.as_str(), operations), ("q", vec!["q.echo".to_owned()]));
    assert_eq!(running.call("q").await, "");
    for taken in ["p", "q"] {
        let refused = command(running.client.add(&world.program_as(taken, "p.sh")).await.unwrap_err());
        assert!(refused.message.starts_with(&format!("there is a plugin {taken} already")), "{refused:?}");
    }
    running.end().await;

    let running = world.serve().await;
    let list = running.client.list(&ListParams::default()).await.unwrap();
    let q = list.plugins.iter().find(|plugin| plugin.name == name("q")).unwrap();
    let file = world.path("state").canonicalize().unwrap().join("added/q.toml");
    assert_eq!(q.source, Source::Added { file: file.display().to_string() });
    assert_eq!(running.call("q").await, "");
    assert_eq!(running.client.remove(&only("q")).await.unwrap().changed, [name("q")]);
    assert_eq!(running.call("q").await, "unknown_plugin");
    let again = command(running.client.remove(&only("q")).await.unwrap_err());
    assert_eq!(again.name, "unknown_plugin");
    assert!(!file.exists());
    running.end().await;

    let running = world.serve().await;
    assert_eq!(running.call("q").await, "unknown_plugin");
    running.end().await;
}

#[tokio::test]
async fn a_plugin_that_is_added_wrongly_is_refused_in_the_words_of_the_file() {
    let world = World::new("");
    let running = world.serve().await;
    let wrong = add("q", json!({"command": ["/x"], "timout": "5s"}));
    let refused = command(running.client.add(&wrong).await.unwrap_err());
    assert_eq!(refused.message, "unknown key plugins.q.timout: did you mean timeout?");
    let nothing = command(running.client.add(&add("q", json!({}))).await.unwrap_err());
    assert_eq!(nothing.message, "no plugin q was removed that could be restored");
    assert!(!world.path("state/added").exists());
    running.end().await;
}

#[tokio::test]
async fn a_plugin_that_cannot_be_described_stays_added_and_says_why() {
    let world = World::new("");
    let running = world.serve().await;
    let report = running.client.add(&world.program_as("q", "later.sh")).await.unwrap();
    assert_eq!((report.plugin.state, report.operations.len()), (PluginState::Failed, 0));
    let reason = report.plugin.reason.unwrap();
    assert!(reason.ends_with("later.sh not found"), "{reason}");
    world.program("later.sh", PLUGIN);
    running.client.reload(&ReloadParams { plugin: Some(name("q")) }).await.unwrap();
    assert_eq!(running.call("q").await, "");
    running.end().await;
}

#[tokio::test]
async fn a_removed_plugin_stays_away_until_its_name_restores_it() {
    let world = World::new("");
    let running = world.serve().await;
    assert_eq!(running.call("p").await, "");
    assert_eq!(running.client.remove(&only("p")).await.unwrap().changed, [name("p")]);
    assert_eq!(running.client.remove(&only("p")).await.unwrap().unchanged, [name("p")]);
    assert_eq!(running.call("p").await, "unknown_plugin");
    running.client.reload(&ReloadParams::default()).await.unwrap();
    assert_eq!(running.call("p").await, "unknown_plugin");
    running.end().await;

    let running = world.serve().await;
    assert_eq!(running.call("p").await, "unknown_plugin");
    let other = command(running.client.add(&world.program_as("p", "p.sh")).await.unwrap_err());
    assert!(other.hint.unwrap().contains("`plugd add p` restores"), "{}", other.message);
    let restored = running.client.add(&add("p", json!({}))).await.unwrap();
    assert_eq!(restored.operations.len(), 1);
    assert_eq!(running.call("p").await, "");
    running.end().await;
}

#[tokio::test]
async fn an_operator_overrules_what_the_file_allows() {
    let world = World::new("");
    let running = world.serve().await;
    assert_eq!(running.call("p").await, "");
    let both = PluginsParams { plugins: vec![name("p"), name("p")] };
    assert_eq!(running.client.disable(&both).await.unwrap().changed, [name("p")]);
    assert_eq!(running.client.disable(&both).await.unwrap().unchanged, [name("p")]);
    assert_eq!(running.status("p").await.pid, None, "its process is gone when the answer comes");
    assert_eq!(running.call("p").await, "disabled");
    let unknown = PluginsParams { plugins: vec![name("r"), name("nobody")] };
    running.client.disable(&unknown).await.unwrap_err();
    assert_eq!(running.call("r").await, "", "nothing was changed");
    running.end().await;

    let running = world.serve().await;
    assert_eq!(running.status("p").await.state, PluginState::Disabled);
    assert_eq!(running.client.enable(&only("p")).await.unwrap().changed, [name("p")]);
    assert_eq!(running.call("p").await, "");
    running.end().await;
}

#[tokio::test]
async fn a_stopped_plugin_stays_stopped_whatever_happens() {
    let world = World::new("");
    let running = world.serve().await;
    assert_eq!(running.call("p").await, "");
    running.client.stop(&only("p")).await.unwrap();
    let report = running.client.reload(&ReloadParams::default()).await.unwrap();
    assert_eq!(report.unchanged.len(), 2, "{report:?}");
    assert_eq!(running.call("p").await, "stopped");
    running.end().await;

    let running = world.serve().await;
    assert_eq!(running.call("p").await, "stopped");
    assert_eq!(running.call("r").await, "");
    running.client.start(&only("p")).await.unwrap();
    assert_eq!(running.call("p").await, "");
    running.end().await;

    let running = world.serve().await;
    assert_eq!(running.call("p").await, "");
    running.end().await;
}

#[tokio::test]
async fn decisions_that_cannot_be_read_are_set_aside() {
    let world = World::new("");
    std::fs::create_dir(world.path("state")).unwrap();
    world.write("state/operator.json", "{\"format\":1,\"stopped\":[\"p\"");
    let running = world.serve().await;
    assert_eq!(running.call("p").await, "");
    assert!(world.path("state/operator.json.bad").exists());
    running.client.stop(&only("p")).await.unwrap();
    let kept: Value =
        serde_json::from_slice(&std::fs::read(world.path("state/operator.json")).unwrap()).unwrap();
    assert_eq!(kept["stopped"], json!(["p"]));
    running.end().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_used_changes_nothing_and_is_told_as_an_event() {
    let world = World::new("");
    let running = world.serve().await;
    let mut events = running.events().await;
    for (text, expected) in
        [("", "the file is empty"), (" \n", "the file is empty"), ("[plugins.p", "plugd.toml: ")]
    {
        world.write("plugd.toml", text);
        let refused = command(running.client.reload(&ReloadParams::default()).await.unwrap_err());
        assert_eq!(refused.name, "invalid_config");
        assert!(refused.message.contains(expected), "{}", refused.message);
        assert_eq!(next(&mut events, "config.refused").await.reason, Some(refused.message));
    }
    assert_eq!(running.call("p").await, "");
    running.end().await;
}

#[tokio::test]
async fn what_is_saved_is_applied_where_the_file_says_so() {
    let world = World::new("watch = true\n");
    let running = world.serve().await;
    assert_eq!(running.call("p").await, "");
    let before = running.status("p").await;
    let mut events = running.events().await;
    world.program("p.sh", &format!("{PLUGIN}# saved\n"));
    next(&mut events, "config.reloaded").await;
    let after = running.status("p").await;
    assert_ne!((after.pid, after.generation), (before.pid, before.generation));
    assert_eq!(running.call("p").await, "");
    running.end().await;
}

#[tokio::test]
async fn reloads_at_once_come_one_after_the_other() {
    let world = World::new("");
    let running = world.serve().await;
    assert_eq!(running.call("p").await, "");
    let before = running.status("p").await.generation;
    world.program("p.sh", &format!("{PLUGIN}# saved\n"));
    let (all, one) = (ReloadParams::default(), ReloadParams { plugin: Some(name("p")) });
    let reload = |params| running.client.reload(params);
    let (one, other, third) = tokio::join!(reload(&all), reload(&one), reload(&all));
    for report in [one, other, third] {
        let report = report.unwrap();
        assert!(report.restart_required.is_empty(), "{report:?}");
    }
    let after = running.status("p").await;
    assert!(after.generation > before && after.replacing.is_none(), "{after:?}");
    assert_eq!(running.call("p").await, "");
    running.end().await;
}
