//! The plugin as a process: what its handlers do cannot hurt the conversation.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A running plugin and the two ends of its pipes; killed when a test ends early.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start() -> Running {
        Running::with_lanes(2)
    }

    fn with_lanes(lanes: u32) -> Running {
        Running::with("ROUGH_LANES", &lanes.to_string())
    }

    fn with(variable: &str, value: &str) -> Running {
        let mut child = Command::new(rough())
            .env_remove("RUST_BACKTRACE")
            .env_remove("RUST_LIB_BACKTRACE")
            .env(variable, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the example is built by cargo test");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Running { child, input, output }
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open");
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).expect("the plugin reads");
    }

    fn send_call(&mut self, id: &str, operation: &str, arguments: Value) {
        let context = json!({"call_id": format!("c-{id}"), "deadline_ms": 30_000});
        let params = json!({"operation": operation, "arguments": arguments, "context": context});
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"call","params":{params}}}"#));
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the plugin writes UTF-8");
        line
    }

    /// Closes the plugin's stdin and waits for its end.
    fn end(&mut self) -> (ExitStatus, Duration) {
        self.input = None;
        let start = Instant::now();
        (self.child.wait().expect("a child to wait for"), start.elapsed())
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().expect("piped");
        stderr.read_to_string(&mut text).expect("the plugin writes UTF-8");
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rough() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.parent().and_then(|deps| deps.parent()).expect("target/…/deps").join("examples/rough");
    assert!(path.exists(), "{} is missing: cargo build -p plugd-sdk --examples", path.display());
    path
}

#[test]
fn prints_and_children_cannot_touch_the_wire() {
    let mut plugin = Running::start();
    plugin.send_call("1", "print", json!({}));
    assert_eq!(plugin.line(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"data\":\"printed\"}}\n");
    plugin.send_call("2", "child", json!({}));
    assert_eq!(plugin.line(), "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"data\":true}}\n");
    plugin.send_call("3", "echo", json!({"text": "一"}));
    assert_eq!(plugin.line(), "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"data\":\"一\"}}\n");
    assert!(plugin.end().0.success());
    let stderr = plugin.stderr();
    assert!(stderr.contains("stray {") && stderr.contains("from the child"), "{stderr}");
}

#[test]
fn c143_programs_that_read_stdin_find_it_empty_and_eat_nothing() {
    for lanes in [1, 2] {
        let mut plugin = Running::with_lanes(lanes);
        for id in ["1", "2"] {
            // The next request stands in the pipe already while the programs run.
            plugin.send_call(id, "tools", json!({}));
            plugin.send_call(&format!("{id}0"), "echo", json!({"text": "still whole"}));
            let mut lines = [plugin.line(), plugin.line()];
            lines.sort();
            assert_eq!(
                lines,
                [
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"data\":[\"\",\"\"]}}}}\n"),
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}0,\"result\":{{\"data\":\"still whole\"}}}}\n"),
                ]
            );
        }
        assert!(plugin.end().0.success());
    }
}

#[test]
fn c066_a_plugin_whose_host_is_gone_leaves_at_once_and_quietly() {
    let mut plugin = Running::start();
    plugin.send_call("1", "chatter", json!({}));
    plugin.line();
    // As when the host is killed: both ends go at once.
    let Running { child, input, output } = &mut plugin;
    drop((input.take(), std::mem::replace(output, BufReader::new(spare_stdout()))));
    let start = Instant::now();
    let status = child.wait().expect("a child to wait for");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(status.success(), "{status}");
    let stderr = plugin.stderr();
    assert!(stderr.len() < 1_000, "{stderr}");
}

#[test]
fn a_ping_is_answered_while_a_handler_is_stuck() {
    for lanes in [1, 2] {
        let mut plugin = Running::with_lanes(lanes);
        plugin.send_call("1", "stuck", json!({}));
        assert!(plugin.line().contains("progress"), "the handler runs");
        plugin.send(r#"{"jsonrpc":"2.0","id":2,"method":"ping","params":{}}"#);
        assert_eq!(plugin.line(), "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n");
    }
}

#[test]
fn a_cancel_is_heard_by_a_handler_that_only_looks_for_it() {
    for lanes in [1, 2] {
        let mut plugin = Running::with_lanes(lanes);
        plugin.send_call("1", "busy", json!({}));
        assert!(plugin.line().contains("progress"), "the handler runs");
        plugin.send(r#"{"jsonrpc":"2.0","method":"cancel","params":{"call_id":"c-1"}}"#);
        assert_eq!(plugin.line(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"data\":true}}\n");
    }
}

#[test]
fn a_result_too_large_for_a_message_fails_its_call_and_says_so() {
    let mut plugin = Running::start();
    plugin.send_call("1", "large", json!({"text": "x"}));
    assert!(plugin.line().len() > 16 * 1024 * 1024 - 100, "one that just fits");
    plugin.send_call("2", "large", json!({"text": "x".repeat(100)}));
    let answer: Value = serde_json::from_str(&plugin.line()).expect("JSON");
    assert_eq!(answer["error"]["data"]["name"], "too_large", "{answer}");
    let message = answer["error"]["message"].as_str().expect("text");
    assert!(message.contains("bytes long, and a message at most 16777216"), "{message}");
    plugin.send_call("3", "echo", json!({"text": "alive"}));
    assert!(plugin.line().contains("alive"));
}

#[test]
fn what_was_printed_without_a_line_end_is_told_with_its_call_and_is_not_glued_to_what_is_said_here() {
    let mut plugin = Running::start();
    plugin.send_call("1", "print", json!({}));
    assert!(plugin.line().contains("printed"));
    plugin.send("no message");
    assert!(plugin.end().0.success());
    let stderr = plugin.stderr();
    assert!(stderr.contains("no line end\nskipped a line from the host"), "{stderr}");
}

/// What is logged of a fault of a call, an entry at `error`.
fn fault(plugin: &mut Running, call_id: &str) -> String {
    let entry: Value = serde_json::from_str(&plugin.line()).expect("JSON");
    let params = &entry["params"];
    assert_eq!((&entry["method"], &params["level"]), (&json!("log"), &json!("error")), "{entry}");
    assert_eq!(params["call_id"], call_id, "{entry}");
    params["message"].as_str().expect("text").to_owned()
}

#[test]
fn a_panic_fails_that_call_only_and_tells_callers_nothing_inner() {
    let mut plugin = Running::start();
    plugin.send_call("1", "panics", json!({}));
    let told = fault(&mut plugin, "c-1");
    let answer: Value = serde_json::from_str(&plugin.line()).expect("JSON");
    assert_eq!(answer["error"]["code"], json!(2));
    assert!(!answer.to_string().contains("/etc/rough") && !answer.to_string().contains(".rs"), "{answer}");
    plugin.send_call("2", "echo", json!({"text": "alive"}));
    assert!(plugin.line().contains("alive"));
    assert!(plugin.end().0.success());
    let (first, note) = told.split_once('\n').expect("two lines");
    assert!(first.starts_with("panics panicked at ") && first.contains("rough.rs:"), "{told}");
    assert!(first.ends_with(": the secret is /etc/rough"), "{told}");
    assert!(note.contains("env = { RUST_BACKTRACE = \"1\" }"), "{told}");
    let stderr = plugin.stderr();
    assert!(!stderr.contains("panicked"), "told once: {stderr}");
}

#[test]
fn with_rust_backtrace_the_stack_comes_with_a_panic_in_parts_that_the_host_shows_whole() {
    let mut plugin = Running::with("RUST_BACKTRACE", "1");
    plugin.send_call("1", "panics", json!({}));
    let first = fault(&mut plugin, "c-1");
    assert!(first.starts_with("panics panicked at ") && !first.contains("RUST_BACKTRACE"), "{first}");
    let mut whole = first;
    let answer = loop {
        let line = plugin.line();
        let message: Value = serde_json::from_str(&line).expect("JSON");
        let Some(entry) = message["params"]["message"].as_str() else { break line };
        assert!(entry.len() <= 8 * 1024, "{}", entry.len());
        whole += entry;
    };
    assert!(whole.contains("rough::panics"), "{whole}");
    assert!(answer.contains("panics failed unexpectedly: it panicked"), "{answer}");
}

#[test]
fn a_hook_of_the_plugins_own_is_called_as_well() {
    let mut plugin = Running::with("ROUGH_HOOK", "own");
    plugin.send_call("1", "panics", json!({}));
    assert!(fault(&mut plugin, "c-1").contains("the secret is"));
    plugin.line();
    assert!(plugin.end().0.success());
    assert_eq!(plugin.stderr(), "the hook of its own\n");
}

#[test]
fn panics_that_a_handler_catches_and_those_of_its_threads_are_told_too() {
    let mut plugin = Running::start();
    plugin.send_call("1", "catches", json!({}));
    assert!(fault(&mut plugin, "c-1").contains("caught by the handler"));
    assert!(plugin.line().contains("\"data\":true"));
    assert!(plugin.end().0.success());
    let stderr = plugin.stderr();
    assert!(stderr.contains("in a thread of its own"), "{stderr}");
}

#[test]
fn a_failure_under_a_bad_name_is_told_with_its_message() {
    let mut plugin = Running::start();
    plugin.send_call("1", "misname", json!({}));
    let told = fault(&mut plugin, "c-1");
    assert!(told.contains("did you mean \"not_there\"?") && told.contains("rough.rs:"), "{told}");
    let answer: Value = serde_json::from_str(&plugin.line()).expect("JSON");
    let message = "it is gone; a fault in the plugin: \"NotThere\" is not a failure's name";
    assert_eq!(answer["error"], json!({"code": 2, "message": message}));
}

#[test]
fn the_end_of_input_ends_the_plugin_though_a_handler_runs() {
    for lanes in [1, 2] {
        let mut plugin = Running::with_lanes(lanes);
        plugin.send_call("1", "stuck", json!({}));
        assert!(plugin.line().contains("progress"), "the handler runs");
        let (status, took) = plugin.end();
        assert!(status.success());
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[test]
fn a_host_that_is_gone_ends_a_plugin_that_writes_in_the_background() {
    let mut plugin = Running::start();
    plugin.send_call("1", "chatter", json!({}));
    plugin.line();
    let Running { child, output, .. } = &mut plugin;
    drop(std::mem::replace(output, BufReader::new(spare_stdout())));
    // stdin stays open: the failed write alone must be enough.
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || sender.send(child.wait()));
        let status = receiver.recv_timeout(Duration::from_secs(10)).expect("it leaves").expect("a child");
        assert!(status.success(), "{status}");
    });
}

/// Something to stand in the place of an output that was closed.
fn spare_stdout() -> ChildStdout {
    let mut child = Command::new("true").stdout(Stdio::piped()).spawn().expect("true runs");
    let stdout = child.stdout.take().expect("piped");
    child.wait().expect("a child to wait for");
    stdout
}

#[test]
fn a_conversation_pasted_in_whole_is_answered_whole() {
    let mut plugin = Running::start();
    plugin.send("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a/\\u0041\",\"method\":\"ping\"}\r");
    plugin.send("");
    plugin.send("not a message");
    plugin.send(r#"{"jsonrpc":"2.0","method":"who/knows","params":[1]}"#);
    plugin.send(r#"{"jsonrpc":"2.0","id":1.50,"method":"who/knows"}"#);
    plugin.send(r#"{"jsonrpc":"2.0","id":2,"method":"init","params":{"config":{}}}"#);
    plugin.send_call("-3", "echo", json!({"text": "x"}));
    plugin.send(r#"{"jsonrpc":"2.0","id":4,"method":"shutdown","params":{"reason":"stop","grace_ms":5000}}"#);
    let (status, _) = plugin.end();
    assert!(status.success());
    let mut written = String::new();
    plugin.output.read_to_string(&mut written).expect("UTF-8");
    let mut lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.remove(0), r#"{"jsonrpc":"2.0","id":"a/\u0041","result":{}}"#);
    assert!(lines.remove(0).starts_with(r#"{"jsonrpc":"2.0","id":1.50,"error":{"code":-32601,"#));
    assert_eq!(lines.remove(0), r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert_eq!(lines.remove(0), r#"{"jsonrpc":"2.0","id":-3,"result":{"data":"x"}}"#);
    assert_eq!(lines, [r#"{"jsonrpc":"2.0","id":4,"result":{}}"#]);
    assert!(plugin.stderr().contains("skipped a line"));
}

#[test]
fn a_host_without_a_common_version_learns_which_side_is_too_old() {
    let mut plugin = Running::start();
    for (versions, advice) in [("[0]", "upgrade plugd"), ("[2,3]", "upgrade the plugin")] {
        plugin.send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"describe","params":{{"protocol":{{"versions":{versions}}},"host":{{"name":"h","version":"9"}}}}}}"#
        ));
        let line = plugin.line();
        assert!(line.contains("\"error\"") && line.contains(advice), "{line}");
    }
}

#[test]
fn by_hand_it_says_what_it_is() {
    let run = |argument: &str| {
        let output = Command::new(rough()).arg(argument).stdin(Stdio::null()).output().expect("it runs");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let manifest: Value = serde_json::from_str(&run("--describe")).expect("JSON");
    assert_eq!(manifest["operations"][0]["name"], "echo");
    assert_eq!(manifest["features"]["concurrency"], 2);
    let help = run("--help");
    assert!(
        help.contains("Does what handlers should not.") && help.contains("echo     Says it back."),
        "{help}"
    );
    assert!(help.contains(r#""arguments":{"text":"…"}"#), "{help}");
    assert_eq!(run("--version"), "rough 1.0.0\n");
}
