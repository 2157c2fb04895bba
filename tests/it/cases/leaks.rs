//! Cases about what piles up: descriptors, threads and processes come back to where they were.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use plugd_protocol::control::{CallParams, PluginsParams};
use plugd_protocol::{PluginName, Status};
use plugd_tests::{Daemon, SERVE, Sandbox, eventually};

use super::framing::data_of;
use super::wire::Http;

#[test]
fn c067_a_plugin_holds_nothing_of_another() {
    let sandbox = Sandbox::new("");
    let [a, b] = ["a", "b"].map(|name| sandbox.misbehaving(name, &["--ignore-shutdown"]));
    let graces = "shutdown_timeout = \"100ms\"\nterm_timeout = \"20s\"\n";
    sandbox.configure(&format!("{a}{graces}{b}{graces}"));
    let daemon = sandbox.serve();
    data_of(&daemon, &["a.pid"]);
    data_of(&daemon, &["b.pid"]);
    let [of_a, of_b] = ["a.fds", "b.fds"].map(|operation| data_of(&daemon, &[operation]));
    let held = of_b.as_object().expect("descriptors");
    assert_eq!(held.keys().collect::<Vec<_>>(), ["0", "1", "2"], "{of_b:#}");
    assert!(
        held.values().all(|pipe| pipe.as_str().is_some_and(|pipe| pipe.starts_with("pipe:"))),
        "{of_b:#}"
    );
    let of_a: Vec<_> = of_a.as_object().expect("descriptors").values().collect();
    assert!(!held.values().any(|pipe| of_a.contains(&pipe)), "{of_a:?} {of_b:#}");

    // It ends only when its stdin does: were that held by somebody, SIGTERM would have to end it.
    let stop = daemon.json(&["stop", "a"]);
    assert_eq!(stop["plugins"][0]["ended"], "exited", "{stop:#}");
    assert!(stop["plugins"][0]["took_ms"].as_u64() < Some(15_000), "{stop:#}");
    data_of(&daemon, &["b.pid"]);
    daemon.stop();
}

/// A daemon that may have 128 descriptors.
fn serve_with_few_descriptors(sandbox: &Sandbox) -> Daemon<'_> {
    let plugd = sandbox.command(SERVE);
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg("ulimit -n 128; exec \"$0\" \"$@\"")
        .arg(plugd.get_program())
        .args(plugd.get_args());
    command.current_dir(sandbox.path()).env_remove("PLUGD_CONFIG").env_remove("PLUGD_LOG");
    let log = std::fs::File::create(sandbox.path().join("daemon.log")).expect("a log file");
    sandbox.serve_by(command, Stdio::from(log))
}

/// A connection that asks and goes away before it is answered.
fn ask_and_go_away(sandbox: &Sandbox) {
    let mut stream = UnixStream::connect(sandbox.socket()).expect("the daemon listens");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"call","params":{"operation":"p.pid"}}"#;
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length:";
    // Some are cut off in the middle of the request.
    let request = format!("{head} {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).expect("the request is sent");
}

#[tokio::test]
async fn c152_descriptors_and_threads_come_back_to_where_they_were() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("p");
    sandbox.configure(&table);
    let daemon = serve_with_few_descriptors(&sandbox);
    let plugins = PluginsParams { plugins: vec![PluginName::new("p").expect("a name")] };
    let client = daemon.client().await;
    let cycle = async || {
        client.start(&plugins).await.expect("start is answered");
        let result = client.call(&CallParams::new("p.pid")).await.expect("a result");
        assert_eq!(result.status, Status::Ok, "{:?}", result.error);
        client.stop(&plugins).await.expect("stop is answered");
    };
    // Once before, so that what is opened once for all is open.
    cycle().await;
    let (descriptors, threads) = (daemon.descriptors(), daemon.proc_status("Threads"));

    for _ in 0..60 {
        cycle().await;
    }
    client.start(&plugins).await.expect("start is answered");
    for _ in 0..200 {
        let result = client.call(&CallParams::new("p.pid")).await.expect("a result");
        assert_eq!(result.status, Status::Ok, "{:?}", result.error);
    }
    for _ in 0..100 {
        ask_and_go_away(&sandbox);
        let mut whole = Http::connect(&sandbox.socket());
        let (status, body) = whole.post(r#"{"jsonrpc":"2.0","id":1,"method":"status"}"#);
        assert!(status == 200 && body.contains("\"p\""), "{status} {body}");
    }
    client.stop(&plugins).await.expect("stop is answered");
    let near = |now: u64, before: u64| now.abs_diff(before) <= 2;
    eventually("what was opened is closed", || {
        near(daemon.descriptors() as u64, descriptors as u64) && near(daemon.proc_status("Threads"), threads)
    });
    let log = sandbox.read("daemon.log");
    assert!(!log.contains("Too many open files") && !log.contains("EMFILE"), "{log}");
    drop(client);
    daemon.stop();
}
