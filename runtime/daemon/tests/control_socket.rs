//! The control socket with a real engine and a real plugin behind it.
// clippy knows the tests by their attribute and not what they share.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plugd_daemon::client::{Client, ClientError, ConnectError};
use plugd_daemon::{ControlSocket, Limits, ServeError, Signals, serve};
use plugd_engine::config::{Config, Environment};
use plugd_engine::{Engine, Opening};
use plugd_protocol::control::{CallParams, Event, EventsParams, PluginsParams, StatusParams, StopReport};
use plugd_protocol::{PluginName, Status};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// Longer than anything here takes, so that a test that hangs says so.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers `echo` with its own line, and `never` not at all.
const PLUGIN: &str = r#"#!/bin/sh
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"describe"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocol":1,"name":"p","version":"1","operations":[{"name":"echo","input_schema":{}},{"name":"never","input_schema":{}}]}}' ;;
    *'"operation":"never"'*) ;;
    *'"method":"call"'*) arguments=${line#*\"arguments\":}; echo '{"jsonrpc":"2.0","id":'$id',"result":{"data":'"${arguments%%,\"context\"*}"'}}' ;;
    *'"method":"cancel"'*) ;;
    *'"method":"shutdown"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}'; exit 0 ;;
    *) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
  esac
done
"#;

struct World {
    socket: PathBuf,
    daemon: JoinHandle<Result<StopReport, ServeError>>,
    _temp: tempfile::TempDir,
}

impl World {
    async fn new() -> World {
        let temp = tempfile::tempdir().unwrap();
        let program = temp.path().join("p.sh");
        std::fs::write(&program, PLUGIN).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let text =
            "[daemon]\nsocket = \"run/s\"\nstate_dir = \"state\"\n[plugins.p]\ncommand = [\"./p.sh\"]\n";
        let config =
            Config::parse(text, &temp.path().join("plugd.toml"), &Environment::of_process()).unwrap();
        let socket = config.socket.clone();
        let bound = ControlSocket::bind(&socket).unwrap();
        let engine = Engine::open(config, Opening::Everything).await.unwrap();
        let (ready, answers) = tokio::sync::oneshot::channel();
        let signals = Signals::catch().unwrap();
        let daemon = tokio::spawn(serve(engine, bound, Limits::default(), signals, move |said| {
            ready.send(said.plugins).unwrap();
        }));
        assert_eq!(answers.await.unwrap(), 1);
        World { socket, daemon, _temp: temp }
    }

    async fn client(&self) -> Client {
        Client::connect(&self.socket).await.unwrap()
    }

    async fn end(self) {
        self.client().await.shutdown().await.unwrap();
        self.daemon.await.unwrap().unwrap();
    }
}

fn call(operation: &str, arguments: &str) -> CallParams {
    CallParams {
        arguments: Some(RawValue::from_string(arguments.to_owned()).unwrap()),
        ..CallParams::new(operation)
    }
}

/// Waits until a call was handed to the plugin.
async fn until_in_flight(client: &Client) {
    let busy = async {
        while client.status(&StatusParams::default()).await.unwrap().plugins[0].in_flight == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, busy).await.expect("a call is in flight");
}

/// The event with which the next call ends.
async fn finished(events: &mut plugd_daemon::client::Following<Event>) -> Event {
    let wait = async {
        loop {
            let event = events.next().await.expect("the daemon runs").unwrap();
            if event.kind == "call.finished" {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the call ends")
}

fn post(body: &str) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One POST over a connection that stays open; the answer's body.
async fn ask(stream: &mut UnixStream, body: &str) -> serde_json::Value {
    stream.write_all(post(body).as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn a_web_socket_that_closes_cancels_its_calls_alone() {
    let world = World::new().await;
    let (watcher, leaver) = (world.client().await, world.client().await);
    let mut events = watcher.follow_events(&EventsParams::default()).await.unwrap();
    {
        let params = call("p.never", "{}");
        let pending = leaver.call(&params);
        tokio::select! {
            result = pending => panic!("nothing answers this: {result:?}"),
            () = until_in_flight(&watcher) => {}
        }
    }
    drop(leaver);
    assert_eq!(finished(&mut events).await.status, Some(Status::Cancelled));
    let next = watcher.call(&call("p.echo", r#"{"n":9007199254740993.10}"#)).await.unwrap();
    assert_eq!(next.data.expect("answered").get(), r#"{"n":9007199254740993.10}"#);
    world.end().await;
}

#[tokio::test]
async fn a_post_that_is_given_up_cancels_its_call() {
    let world = World::new().await;
    let watcher = world.client().await;
    let mut events = watcher.follow_events(&EventsParams::default()).await.unwrap();
    let mut stream = UnixStream::connect(&world.socket).await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":"p.never"}}"#;
    stream.write_all(post(body).as_bytes()).await.unwrap();
    until_in_flight(&watcher).await;
    drop(stream);
    assert_eq!(finished(&mut events).await.status, Some(Status::Cancelled));
    world.end().await;
}

#[tokio::test]
async fn ids_come_back_exactly_and_a_broken_request_harms_no_later_one() {
    let world = World::new().await;
    let mut stream = UnixStream::connect(&world.socket).await.unwrap();
    let broken = ask(&mut stream, "not json").await;
    assert_eq!((broken["error"]["code"].as_i64(), &broken["id"]), (Some(-32700), &serde_json::Value::Null));
    let mut stream = UnixStream::connect(&world.socket).await.unwrap();
    for id in ["0", "\"\"", "9007199254740993", "\"9007199254740993\""] {
        let answer = ask(&mut stream, &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"status"}}"#)).await;
        assert_eq!(answer["id"].to_string(), id);
        assert!(answer["result"]["daemon"]["socket"].is_string(), "{answer}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_command_that_cannot_be_carried_out_says_why_in_our_own_terms() {
    let world = World::new().await;
    let nobody = PluginsParams { plugins: vec![PluginName::new("nobody").unwrap()] };
    match world.client().await.start(&nobody).await {
        Err(ClientError::Command(error)) => assert_eq!(error.name, "unknown_plugin"),
        other => panic!("{other:?}"),
    }
    world.end().await;
}

#[tokio::test]
async fn shutdown_is_answered_when_the_socket_is_free_for_the_next_daemon() {
    let world = World::new().await;
    let client = world.client().await;
    client.call(&call("p.echo", "{}")).await.unwrap();
    let report = client.shutdown().await.unwrap();
    assert_eq!(report.plugins.len(), 1);
    ControlSocket::bind(&world.socket).expect("nobody holds it");
    assert!(matches!(Client::connect(Path::new(&world.socket)).await, Err(ConnectError::NotRunning { .. })));
    world.daemon.await.unwrap().unwrap();
}

#[tokio::test]
async fn every_method_of_the_open_rpc_document_is_there_and_refuses_unknown_params() {
    let world = World::new().await;
    let mut stream = UnixStream::connect(&world.socket).await.unwrap();
    let document = ask(&mut stream, r#"{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}"#).await;
    let methods = document["result"]["methods"].as_array().unwrap();
    let names = methods.iter().map(|method| method["name"].as_str().unwrap());
    for name in names.filter(|name| !name.contains("subscribe")) {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}","params":{{"no_such_field":1}}}}"#);
        let answer = ask(&mut stream, &request).await;
        assert_eq!(answer["error"]["code"], -32602, "{name}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("no_such_field"), "{name}: {message}");
    }
    world.end().await;
}
