//! Cases about framing: what stands on a line, and which answer belongs to which question.

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

use super::wire::{Http, WebSocket};

/// A sandbox whose plugins are Python programs, by name and definitions.
pub(super) fn sandbox_of(plugins: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new("");
    let tables: Vec<String> = plugins.iter().map(|(name, code)| sandbox.python(name, code)).collect();
    sandbox.configure(&tables.join("\n"));
    sandbox
}

/// The data of a call that must go well.
#[track_caller]
pub(super) fn data_of(daemon: &Daemon<'_>, args: &[&str]) -> Value {
    let result = daemon.json(&[&["call"], args].concat());
    assert_eq!(result["status"], "ok", "{result:#}");
    result["data"].clone()
}

/// The entries in a plugin's log that came from one stream.
#[track_caller]
pub(super) fn logged(daemon: &Daemon<'_>, plugin: &str, stream: &str) -> Vec<Value> {
    let entries = daemon.json(&["logs", plugin, "--tail", "100000"]);
    let entries = entries.as_array().expect("a list of entries");
    entries.iter().filter(|entry| entry["stream"] == stream).cloned().collect()
}

#[test]
fn c001_stray_prints_harm_nothing() {
    let sandbox = sandbox_of(&[(
        "fp",
        r#"
def handle(operation, arguments, params):
    print("Calling API", flush=True)
    print("Response headers: {", flush=True)
    return {"data": arguments}
"#,
    )]);
    let daemon = sandbox.serve();
    assert_eq!(data_of(&daemon, &["fp.echo", "turn=first"]), json!({"turn": "first"}));
    let before = daemon.status("fp");
    assert_eq!(data_of(&daemon, &["fp.echo", "turn=second"]), json!({"turn": "second"}));
    let after = daemon.status("fp");
    assert_eq!(after["state"], "ready", "{after:#}");
    assert_eq!((&after["pid"], &after["restarts"]), (&before["pid"], &json!(0)), "{after:#}");
    assert_eq!(after["stray_lines"], 4, "{after:#}");

    let strays = logged(&daemon, "fp", "stray");
    let texts: Vec<&str> = strays.iter().filter_map(|entry| entry["text"].as_str()).collect();
    let pair = ["Calling API", "Response headers: {"];
    assert_eq!(texts, [pair, pair].concat(), "they are in the log, labelled");
    assert!(strays.iter().all(|entry| entry["call_id"].is_string()), "with their call: {strays:?}");
    assert_ne!(strays[0]["call_id"], strays[2]["call_id"]);
    let shown = daemon.plugd(&["logs", "fp"]).expect(0).stdout;
    assert!(shown.lines().any(|line| line.contains("stray") && line.contains("Calling API")), "{shown}");
    daemon.stop();
}

#[test]
fn c001_a_flood_of_stray_prints_is_counted_and_not_all_logged() {
    // A message ends a row of strays, so this flood is no violation; an unknown one says nothing.
    let sandbox = sandbox_of(&[(
        "fp",
        r#"
def handle(operation, arguments, params):
    row = b"debug\n" * 50 + b'{"jsonrpc":"2.0","method":"unheard_of"}\n'
    raw(row * 200)
    return {"data": arguments}
"#,
    )]);
    let daemon = sandbox.serve();
    assert_eq!(data_of(&daemon, &["fp.echo", "a=b"]), json!({"a": "b"}));
    let status = daemon.status("fp");
    assert_eq!((&status["state"], &status["restarts"]), (&json!("ready"), &json!(0)), "{status:#}");
    assert_eq!(status["stray_lines"], 10_000, "all are counted");
    let count = logged(&daemon, "fp", "stray").len();
    assert!((1..=5_000).contains(&count), "the log takes 1,000 lines a second, it took {count}");
    daemon.stop();
}

#[test]
fn c003_blank_lines_and_carriage_returns_are_passed_over() {
    let blank = r#"
plain = raw

def raw(data):
    plain(b"\n" + b"   \n" + b"\r\n" + data[:-1] + b"\r\n" + b" \t \r\n")
"#;
    let sandbox = sandbox_of(&[("a", blank), ("b", "")]);
    let daemon = sandbox.serve();
    for turn in 0..5 {
        for plugin in ["a", "b"] {
            let said = format!("said={plugin}{turn}");
            let data = data_of(&daemon, &[&format!("{plugin}.echo"), &said]);
            assert_eq!(data, json!({"said": format!("{plugin}{turn}")}));
        }
    }
    for plugin in ["a", "b"] {
        let status = daemon.status(plugin);
        assert_eq!((&status["stray_lines"], &status["starts"]), (&json!(0), &json!(1)), "{status:#}");
        assert_eq!(logged(&daemon, plugin, "stray"), [] as [Value; 0]);
    }
    daemon.stop();
}

#[track_caller]
fn check_parse_error(answer: &str) {
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &Value::Null), "{answer:#}");
}

#[track_caller]
fn check_status(answer: &str, id: &Value) {
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!(&answer["id"], id, "{answer:#}");
    assert_eq!(answer["result"]["plugins"][0]["name"], "fp", "{answer:#}");
}

#[test]
fn c004_what_is_no_json_on_the_control_socket_gets_an_error_and_the_next_request_its_answer() {
    let sandbox = sandbox_of(&[("fp", "")]);
    let daemon = sandbox.serve();
    let request = r#"{"jsonrpc":"2.0","id":7,"method":"status"}"#;

    let mut http = Http::connect(&sandbox.socket());
    for garbage in ["not json", "{\"jsonrpc\":\"2.0\",", "\u{feff}", "三"] {
        check_parse_error(&http.post(garbage).1);
    }
    check_status(&http.post(request).1, &json!(7));

    let mut socket = WebSocket::connect(&sandbox.socket());
    for garbage in ["not json", "{\"jsonrpc\":\"2.0\",", "三"] {
        socket.send(garbage);
        check_parse_error(&socket.receive());
    }
    socket.send(request);
    check_status(&socket.receive(), &json!(7));
    daemon.stop();
}

#[test]
fn c004_a_byte_order_mark_before_a_plugins_first_message_is_tolerated() {
    let sandbox = sandbox_of(&[(
        "fp",
        r#"
plain, mark_to_come = raw, [b"\xef\xbb\xbf"]

def raw(data):
    plain((mark_to_come.pop() if mark_to_come else b"") + data)
"#,
    )]);
    let daemon = sandbox.serve();
    assert_eq!(data_of(&daemon, &["fp.echo", "a=b"]), json!({"a": "b"}));
    let status = daemon.status("fp");
    assert_eq!((&status["state"], &status["stray_lines"]), (&json!("ready"), &json!(0)), "{status:#}");
    daemon.stop();
}

/// Before each answer: a log line, progress, and answers that belong to no question.
const TALKATIVE: &str = r#"
def handle(operation, arguments, params):
    call_id = params["context"]["call_id"]
    send({"jsonrpc": "2.0", "method": "log",
          "params": {"level": "info", "message": "about " + arguments["turn"], "call_id": call_id}})
    send({"jsonrpc": "2.0", "method": "progress",
          "params": {"call_id": call_id, "done": 1, "total": 2, "message": "half " + arguments["turn"]}})
    return {"data": arguments}

def answer_call(message):
    params, ident = message["params"], message["id"]
    result = handle(params["operation"], params["arguments"], params)
    wrong = {"data": {"turn": "wrong"}}
    for stranger in (987654321, str(ident), float(ident), -ident, "nobody", None):
        send({"jsonrpc": "2.0", "id": stranger, "result": wrong})
    send({"jsonrpc": "2.0", "id": ident, "result": result})
    send({"jsonrpc": "2.0", "id": ident, "result": wrong})
"#;

#[test]
fn c006_each_call_gets_its_own_answer_whatever_comes_before_it() {
    let sandbox = sandbox_of(&[("fp", TALKATIVE)]);
    let daemon = sandbox.serve();
    let mut call_ids = Vec::new();
    for turn in 0..5 {
        let result = daemon.json(&["call", "fp.echo", &format!("turn=turn {turn}")]);
        assert_eq!(result["data"], json!({"turn": format!("turn {turn}")}), "{result:#}");
        call_ids.push(result["meta"]["call_id"].clone());
    }
    let status = daemon.status("fp");
    assert_eq!((&status["state"], &status["restarts"]), (&json!("ready"), &json!(0)), "{status:#}");
    // The last of them may still be in the pipe.
    plugd_tests::eventually("all 35 answers nobody waited for are counted", || {
        daemon.status("fp")["unmatched_answers"] == 35
    });
    let warnings = logged(&daemon, "fp", "runtime");
    let warnings: Vec<_> = warnings.iter().filter(|entry| entry["level"] == "warn").collect();
    assert_eq!(warnings.len(), 1, "one warning for all of them: {warnings:#?}");
    assert!(warnings[0]["text"].as_str().unwrap().contains("dropped"), "{warnings:#?}");

    let lines = logged(&daemon, "fp", "log");
    let events = daemon.json(&["events", "fp", "--tail", "1000"]);
    let progress: Vec<_> =
        events.as_array().unwrap().iter().filter(|event| event["kind"] == "call.progress").collect();
    assert_eq!((lines.len(), progress.len()), (5, 5), "{lines:#?} {progress:#?}");
    for (turn, call_id) in call_ids.iter().enumerate() {
        assert_eq!(lines[turn]["text"], format!("about turn {turn}"));
        assert_eq!(&lines[turn]["call_id"], call_id);
        assert_eq!(progress[turn]["detail"]["message"], format!("half turn {turn}"));
        assert_eq!(&progress[turn]["call_id"], call_id);
    }
    daemon.stop();
}

#[test]
fn c016_every_id_comes_back_exactly_as_it_was_sent() {
    let sandbox = sandbox_of(&[("fp", "")]);
    let daemon = sandbox.serve();
    let mut http = Http::connect(&sandbox.socket());
    let mut socket = WebSocket::connect(&sandbox.socket());
    for id in ["0", "\"\"", "9007199254740993", "18446744073709551615", "\"0\"", "\"三\""] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"status"}}"#);
        let (_, by_http) = http.post(&request);
        socket.send(&request);
        let expected: Value = serde_json::from_str(id).unwrap();
        for answer in [by_http, socket.receive()] {
            check_status(&answer, &expected);
            let member = format!("\"id\":{id}");
            assert!(
                answer.contains(&format!("{member},")) || answer.contains(&format!("{member}}}")),
                "{answer}"
            );
        }
    }
    daemon.stop();
}
