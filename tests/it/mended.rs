//! Faults that people met, each with the right outcome.

mod alone;
mod asked;
mod changes;
mod full;
mod held;
mod passed_over;
mod record;
mod results;
mod second;
mod telling;
mod texts;
mod whole;

use plugd_tests::Sandbox;

/// A plugin that never answers `describe`.
const MUTE: &str = "import time\nwhile True:\n    time.sleep(60)\n";

fn mute(sandbox: &Sandbox, name: &str) -> String {
    sandbox.program(&format!("plugins/{name}/main.py"), MUTE);
    format!(
        "[plugins.{name}]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/{name}\"\n\
         describe_timeout = \"30s\"\n"
    )
}

#[test]
fn a_plugin_that_hangs_in_describe_holds_up_neither_the_daemon_nor_others() {
    let sandbox = Sandbox::new("");
    let table = format!("{}\n{}", sandbox.python("fp", ""), mute(&sandbox, "mute"));
    sandbox.configure(&table);
    // All of this happens while `mute` has 30 s to describe itself.
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.echo", "--timeout", "20s"])["status"], "ok");
    let error = daemon.json(&["call", "mute.echo", "--timeout", "300ms"])["error"].clone();
    assert_eq!(error["name"], "start_timed_out", "{error:#}");
    assert_eq!(daemon.status("mute")["state"], "starting");
    daemon.stop();
}

#[test]
fn a_plugin_that_closes_its_stdout_and_lives_on_is_replaced() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "fp",
        r#"
def handle(operation, arguments, params):
    if arguments.get("close"):
        send({"jsonrpc": "2.0", "method": "log", "params": {"message": "closing"}})
        os.close(1)
        return None
    return {"data": os.getpid()}
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let before = daemon.json(&["call", "fp.echo"])["data"].clone();
    let error = daemon.json(&["call", "fp.echo", "close:=true", "--timeout", "20s"])["error"].clone();
    assert_eq!(error["name"], "protocol_violation", "{error:#}");
    assert!(error["message"].as_str().expect("text").contains("closed its stdout"), "{error:#}");
    let after = daemon.json(&["call", "fp.echo"])["data"].clone();
    assert!(after.is_u64() && after != before, "{before} {after}");
    daemon.stop();
}

#[test]
fn an_answer_that_is_no_response_ends_its_call_at_once() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "fp",
        r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("text", "wrong_id")]

def answer_call(message):
    if message["params"]["operation"] == "text":
        send({"jsonrpc": "2.0", "id": message["id"], "error": "no such person"})
    else:
        send({"jsonrpc": "2.0", "id": str(message["id"]), "result": {"data": 1}})
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let error = daemon.json(&["call", "fp.text", "--timeout", "20s"])["error"].clone();
    assert_eq!(error["name"], "protocol_violation", "{error:#}");
    let error = daemon.json(&["call", "fp.wrong_id", "--timeout", "1s"])["error"].clone();
    let message = error["message"].as_str().expect("text");
    assert!(
        message.contains("within 1 s; meanwhile it wrote 1 answer with an id that nothing waited for"),
        "{message}"
    );
    daemon.stop();
}

#[test]
fn what_a_plugin_tells_of_a_call_does_not_fill_memory() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "fp",
        r#"
def handle(operation, arguments, params):
    for _ in range(20):
        data = {"call_id": params["context"]["call_id"], "data": "z" * 1000000}
        send({"jsonrpc": "2.0", "method": "partial", "params": data})
    return {"data": None}
"#,
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.echo"])["status"], "ok");
    let events = daemon.json(&["events"]);
    let partials = events.as_array().expect("a list").iter().filter(|event| event["kind"] == "call.partial");
    let clipped: Vec<_> = partials.map(|event| event["detail"]["clipped_bytes"].as_u64()).collect();
    assert_eq!(clipped.len(), 20);
    assert!(clipped.iter().all(|bytes| bytes.is_some_and(|bytes| bytes > 1_000_000)), "{clipped:?}");
    daemon.stop();
}

#[test]
fn a_plugin_taken_up_anew_is_no_change_for_the_next_reload() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.echo"])["status"], "ok");
    sandbox.python("fp", "MANIFEST = {'version': '2.0.0'}");
    assert_eq!(daemon.json(&["reload", "fp"])["changed"][0], "fp");
    let taken_up = daemon.status("fp");
    assert_eq!(
        (&taken_up["state"], &taken_up["version"]),
        (&"ready".into(), &"2.0.0".into()),
        "{taken_up:#}"
    );
    assert_eq!(daemon.json(&["reload"])["unchanged"][0], "fp");
    assert_eq!(daemon.status("fp")["pid"], taken_up["pid"]);
    daemon.stop();
}

#[test]
fn a_reload_onto_a_broken_program_says_so() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "fp.echo"])["status"], "ok");
    sandbox.program("plugins/fp/main.py", "import sys\nsys.exit('broken')\n");
    let ran = daemon.plugd(&["reload", "fp"]).expect(6);
    assert!(ran.stderr.contains("broken"), "{ran:?}");
    daemon.stop();
}

#[test]
fn config_check_finds_what_the_files_tell() {
    let sandbox = Sandbox::new(
        "[plugins.gone]\ncommand = [\"./nope\"]\n\
         [plugins.self]\ncommand = [\"sh\"]\nrequires = { self = \"*\" }\n\
         [plugins.a]\ncommand = [\"sh\"]\nrequires = { b = \"*\" }\n\
         [plugins.b]\ncommand = [\"sh\"]\nrequires = { a = \"*\", storge = \"*\" }\n\
         [plugins.storage]\ncommand = [\"sh\"]\ncwd = \"nowhere\"\n",
    );
    let ran = sandbox.plugd(&["config", "check"]).expect(2);
    for part in [
        "nope is not found",
        "a -> b -> a",
        "did you mean storage?",
        "nowhere does not exist",
        "plugin self:",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
}

#[test]
fn a_time_that_cannot_be_is_refused_and_not_guessed() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    for timeout in ["0s", "61m"] {
        let ran = daemon.plugd(&["--output", "json", "call", "fp.echo", "--timeout", timeout]).expect(2);
        assert_eq!(ran.json()["error"]["outcome"], "not_run", "{ran:?}");
    }
    daemon.stop();
}

#[test]
fn an_operation_that_is_not_offered_is_listed_with_its_reason() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("fp", "OPERATIONS[0]['timeout_ms'] = '1s'");
    sandbox.configure(&table);
    let ran = sandbox.plugd(&["list"]).expect(0);
    assert!(
        ran.stdout.contains("not offered: echo: timeout_ms: expected whole milliseconds, such as 5000"),
        "{ran:?}"
    );
}

#[test]
fn what_a_plugin_says_last_is_in_its_log_when_the_program_has_ended() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "fp",
        r#"
def on_shutdown():
    send({"jsonrpc": "2.0", "method": "log", "params": {"message": "good night"}})
"#,
    );
    sandbox.configure(&table);
    sandbox.plugd(&["call", "fp.echo"]).expect(0);
    assert_eq!(sandbox.read("state/logs/fp.log").matches("good night").count(), 1, "without a daemon");
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    daemon.stop();
    assert_eq!(sandbox.read("state/logs/fp.log").matches("good night").count(), 2, "with one");
}
