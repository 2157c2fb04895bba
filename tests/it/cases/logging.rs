//! Cases about logs: what is no error is logged as none, and every line is its plugin's own.

use std::io::{PipeReader, PipeWriter, Write};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use plugd_tests::Sandbox;
use serde_json::json;

use super::framing::{data_of, logged, sandbox_of};

#[test]
fn c038_a_stop_that_needs_sigterm_is_no_error() {
    let sandbox = Sandbox::new("");
    let table = sandbox.misbehaving("p", &["--ignore-shutdown", "--ignore-eof"]);
    sandbox.configure(&format!("{table}shutdown_timeout = \"200ms\"\nterm_timeout = \"200ms\"\n"));
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.pid"]);
    let stop = daemon.json(&["stop", "p"]);
    assert_eq!(stop["plugins"][0]["ended"], "terminated", "{stop:#}");
    let status = daemon.status("p");
    assert_eq!((&status["state"], &status["restarts"]), (&json!("stopped"), &json!(0)), "{status:#}");
    assert_eq!(status["last_exit"]["signal"], 15, "{status:#}");

    let log = daemon.said_of("p");
    let stopped = log.iter().find(|line| line.contains("SIGTERM"));
    let stopped = stopped.unwrap_or_else(|| panic!("it says how it was stopped: {log:#?}"));
    assert!(stopped.contains("INFO"), "{stopped}");
    // That it calls itself otherwise is another matter, and told once.
    let complaint = |line: &&String| {
        (line.contains("WARN") || line.contains("ERROR")) && !line.contains("its manifest has another name")
    };
    assert_eq!(log.iter().find(complaint), None, "{log:#?}");
    daemon.stop();
}

/// A pipe that is full from the beginning, and its end to read from.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let size = rustix::pipe::fcntl_getpipe_size(&writer).expect("it says what it holds");
    writer.write_all(&vec![b'.'; size]).expect("so much fits");
    (reader, writer)
}

/// Reads a pipe to its end as soon as it is told to, or after 20 s, so that nothing hangs for ever.
fn read_later(mut pipe: PipeReader) -> (mpsc::Sender<()>, JoinHandle<bool>) {
    let (tell, told) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let in_time = told.recv_timeout(Duration::from_secs(20)).is_ok();
        let _read = std::io::copy(&mut pipe, &mut std::io::sink());
        in_time
    });
    (tell, reader)
}

#[test]
fn c150_each_traceback_is_its_plugins_own_and_nobody_waits_for_a_reader_of_stderr() {
    let sandbox = Sandbox::new("");
    let mut tables = sandbox.shell("healthy");
    for name in ["first", "second"] {
        let program =
            format!("def {name}_step():\n    raise ValueError('{name} is wrong')\n\n{name}_step()\n");
        sandbox.program(&format!("plugins/{name}/main.py"), &program);
        let restart = "restart = { backoff = \"10ms\", max = 2 }\nstart = \"eager\"\n";
        tables += &format!(
            "[plugins.{name}]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/{name}\"\n{restart}"
        );
    }
    sandbox.configure(&tables);
    let (reader, writer) = full_pipe();
    let (tell, reader) = read_later(reader);
    let daemon =
        sandbox.serve_by(sandbox.command(&["--output", "json", "--log", "trace", "serve"]), writer.into());
    for _ in 0..20 {
        data_of(&daemon, &["healthy.pid"]);
    }
    for name in ["first", "second"] {
        let failed = daemon.wait_for_state(name, "failed");
        let own = [format!("{name}_step"), format!("ValueError: {name} is wrong")];
        let tail = failed["last_exit"]["stderr_tail"].to_string();
        let log = daemon.plugd(&["logs", name]).expect(0).stdout;
        for told in [&tail, &log] {
            assert!(own.iter().all(|part| told.contains(part)), "{told}");
            let other = if name == "first" { "second" } else { "first" };
            assert!(!told.contains(other), "{told}");
        }
    }
    let healthy = daemon.status("healthy");
    assert_eq!((&healthy["state"], &healthy["starts"]), (&json!("ready"), &json!(1)), "{healthy:#}");
    // Nor does its end wait for a reader.
    daemon.stop();
    let _gone_already = tell.send(());
    assert!(reader.join().expect("it ends"), "somebody waited until the pipe was read");
}

#[test]
fn l20_what_a_plugin_logs_while_it_is_shut_down_is_in_its_log() {
    let sandbox = sandbox_of(&[(
        "p",
        r#"
def on_shutdown():
    send({"jsonrpc": "2.0", "method": "log", "params": {"level": "warn", "message": "closing the ledger"}})
    print("the ledger is closed", file=sys.stderr, flush=True)
"#,
    )]);
    let daemon = sandbox.serve();
    data_of(&daemon, &["p.echo"]);
    daemon.plugd(&["stop", "p"]).expect(0);
    let told = logged(&daemon, "p", "log");
    assert_eq!(
        (&told[0]["text"], &told[0]["level"]),
        (&json!("closing the ledger"), &json!("warn")),
        "{told:?}"
    );
    let on_stderr = logged(&daemon, "p", "stderr");
    assert_eq!(on_stderr[0]["text"], "the ledger is closed", "{on_stderr:?}");
    let shown = daemon.plugd(&["logs", "p"]).expect(0).stdout;
    assert!(shown.contains("closing the ledger") && shown.contains("the ledger is closed"), "{shown}");
    daemon.stop();
}
