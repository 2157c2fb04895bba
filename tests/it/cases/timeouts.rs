//! Cases about time: late answers, cancels that must come once, progress that counts.

use std::process::Stdio;

use plugd_tests::{Ran, Sandbox, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::framing::{data_of, sandbox_of};
use crate::reloading::{marks, text};

fn operations(names: &[&str]) -> String {
    format!("OPERATIONS = [{{'name': name, 'input_schema': {{'type': 'object'}}}} for name in {names:?}]\n")
}

#[test]
fn c018_a_late_answer_goes_to_nobody_and_shifts_no_other() {
    for lanes in [1, 4] {
        let sandbox = Sandbox::new("");
        let slow = format!(
            "{}MANIFEST = {{'features': {{'concurrency': {lanes}}}}}\n\
             def handle(operation, arguments, params):\n    \
             if operation == 'a': time.sleep(1)\n    \
             return {{'data': operation}}\n",
            operations(&["a", "b", "c"])
        );
        let table = sandbox.python("fp", &slow);
        sandbox.configure(&format!("{table}cancel_grace = \"20s\"\n"));
        let daemon = sandbox.serve();
        assert_eq!(data_of(&daemon, &["fp.b"]), "b", "it is up before the clock that counts starts");
        let late = daemon.plugd(&["--output", "json", "call", "fp.a", "--timeout", "300ms"]).expect(5).json();
        assert_eq!(late["error"]["name"], "timed_out", "{late:#}");
        assert_eq!(data_of(&daemon, &["fp.b"]), "b");
        eventually("the late answer has come", || daemon.status("fp")["in_flight"] == 0);
        assert_eq!(data_of(&daemon, &["fp.c"]), "c");
        let status = daemon.status("fp");
        assert_eq!((&status["unmatched_answers"], &status["starts"]), (&json!(0), &json!(1)), "{status:#}");
        daemon.stop();
    }
}

/// Notes every message it gets by method, with the call's id where there is one; a `hang` obeys `cancel`.
const NOTING: &str = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("hang", "quick")]
STOPPED = threading.Event()


def noted(lines):
    for line in lines:
        message = json.loads(line)
        params = message.get("params") or {}
        call_id = params.get("call_id") or params.get("context", {}).get("call_id", "")
        mark("heard", "%s %s" % (message.get("method"), call_id))
        yield line


class Stdin:
    buffer = noted(sys.stdin.buffer)


sys.stdin = Stdin


def notified(method, params):
    STOPPED.set()


def handle(operation, arguments, params):
    if operation == "hang":
        mark("hanging")
        STOPPED.clear()
        STOPPED.wait(5)
    return {"data": operation}
"#;

/// What a plugin heard of one method: the call ids.
fn heard(sandbox: &Sandbox, plugin: &str, method: &str) -> Vec<String> {
    let lines = marks(sandbox, plugin, "heard");
    lines.iter().filter_map(|line| line.strip_prefix(&format!("{method} "))).map(str::to_owned).collect()
}

#[test]
fn c080_a_call_that_times_out_or_whose_caller_is_killed_is_cancelled_once_by_its_id() {
    let sandbox = sandbox_of(&[("fp", NOTING)]);
    let daemon = sandbox.serve();
    data_of(&daemon, &["fp.quick"]);
    let late = daemon.plugd(&["--output", "json", "call", "fp.hang", "--timeout", "300ms"]).expect(5).json();
    let first = text(&late["meta"]["call_id"]).to_owned();
    // What comes after it has come: a second cancel would stand before this call.
    data_of(&daemon, &["fp.quick"]);
    assert_eq!(heard(&sandbox, "fp", "cancel"), [first.as_str()]);

    let hanging = marks(&sandbox, "fp", "hanging").len();
    let mut caller = sandbox
        .command(&["call", "fp.hang", "--timeout", "60s"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("plugd runs");
    eventually("the call runs", || marks(&sandbox, "fp", "hanging").len() > hanging);
    caller.kill().expect("it was alive");
    caller.wait().expect("it is gone");
    eventually("the plugin is told", || heard(&sandbox, "fp", "cancel").len() > 1);
    data_of(&daemon, &["fp.quick"]);
    let calls = heard(&sandbox, "fp", "call");
    let second = &calls[calls.len() - 2];
    assert_eq!(heard(&sandbox, "fp", "cancel"), [first, second.clone()], "once for each, by its own id");
    daemon.stop();
}

/// Notes what it hears; answers `describe` where there is a file `described`, and nothing else.
const MUTE: &str = r#"
manifest='{"protocol":1,"name":"mute","version":"1.0.0","operations":[{"name":"quick","input_schema":{}}]}'
while IFS= read -r line; do
  echo "$line" >>heard
  case $line in
  *'"method":"describe"'*) [ ! -e described ] || echo '{"jsonrpc":"2.0","id":1,"result":'"$manifest"'}' ;;
  esac
done
"#;

#[test]
fn c080_no_cancel_is_ever_sent_for_describe_or_init() {
    let sandbox = Sandbox::new("");
    let table = |name: &str| {
        sandbox.program(&format!("plugins/{name}/main.sh"), MUTE);
        format!(
            "[plugins.{name}]\ncommand = [\"sh\", \"main.sh\"]\ncwd = \"plugins/{name}\"\n\
             describe_timeout = \"2s\"\ninit_timeout = \"2s\"\nrestart = {{ backoff = \"60s\" }}\n"
        )
    };
    sandbox.configure(&[table("describing"), table("initialising")].concat());
    sandbox.write("plugins/initialising/described", "");
    let daemon = sandbox.serve();
    for (name, method) in [("describing", "describe"), ("initialising", "init")] {
        daemon.plugd(&["call", &format!("{name}.quick"), "--timeout", "500ms"]).expect(5);
        daemon.wait_for_state(name, "backoff");
        let heard = sandbox.read(&format!("plugins/{name}/heard"));
        assert!(heard.contains(&format!("\"method\":\"{method}\"")), "{name} was asked: {heard}");
        assert!(!heard.contains("cancel"), "{name}: {heard}");
    }
    daemon.stop();
}

#[test]
fn c081_a_cancelled_call_ends_although_the_plugin_never_answers_it() {
    let sandbox = Sandbox::new("");
    let silent = format!(
        "{}MANIFEST = {{'features': {{'concurrency': 2, 'cancel': True}}}}\n{}",
        operations(&["hang", "quick", "late"]),
        "
IDS = []
def answer_call(message):
    operation = message['params']['operation']
    if operation == 'hang':
        IDS.append(message['id'])
        return mark('hanging', message['params']['context']['call_id'])
    if operation == 'late':
        send({'jsonrpc': '2.0', 'id': IDS[0], 'result': {'data': 'late'}})
    send({'jsonrpc': '2.0', 'id': message['id'], 'result': {'data': operation}})
def notified(method, params):
    mark(method, params['call_id'])
"
    );
    let table = sandbox.python("fp", &silent);
    sandbox.configure(&format!("{table}cancel_grace = \"1s\"\n"));
    let daemon = sandbox.serve();
    let call = sandbox
        .command(&["--output", "json", "call", "fp.hang", "--timeout", "60s"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("plugd runs");
    eventually("the call runs", || !marks(&sandbox, "fp", "hanging").is_empty());
    let id = marks(&sandbox, "fp", "hanging").remove(0);
    let began = std::time::Instant::now();
    let report = daemon.json(&["cancel", &id]);
    assert_eq!(report, json!({"call_id": id, "cancelled": true}));
    let ran: Ran = call.wait_with_output().expect("plugd ends").into();
    let result = ran.expect(5).json();
    assert!(began.elapsed().as_secs() < 20, "not at its deadline: {:?}", began.elapsed());
    assert_eq!((&result["status"], &result["error"]["name"]), (&json!("cancelled"), &json!("cancelled")));
    eventually("the plugin is told", || marks(&sandbox, "fp", "cancel") == [id.as_str()]);

    let again = daemon.plugd(&["cancel", &id]).expect(4);
    assert!(again.stderr.contains(&id) && again.stderr.contains("ended"), "a harmless remark: {again:?}");
    assert_eq!(data_of(&daemon, &["fp.late"]), "late", "an answer to the cancelled one is nobody else's");
    assert_eq!(daemon.status("fp")["in_flight"], 0, "and its lane is free");
    assert_eq!(data_of(&daemon, &["fp.quick"]), "quick");
    assert_eq!(marks(&sandbox, "fp", "cancel").len(), 1);
    daemon.stop();
}

#[test]
fn c081_the_only_lane_of_a_plugin_that_never_answers_is_freed_after_the_grace() {
    let sandbox = Sandbox::new("");
    let silent = "
def answer_call(message):
    if message['params']['arguments'].get('hang'):
        return mark('hanging', message['params']['context']['call_id'])
    send({'jsonrpc': '2.0', 'id': message['id'], 'result': {'data': os.getpid()}})
";
    let table = sandbox.python("fp", silent);
    sandbox.configure(&format!("{table}cancel_grace = \"500ms\"\nrestart = {{ backoff = \"20ms\" }}\n"));
    let daemon = sandbox.serve();
    let before = data_of(&daemon, &["fp.echo"]);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| daemon.plugd(&["--output", "json", "call", "fp.echo", "hang:=true"]));
        eventually("the call runs", || !marks(&sandbox, "fp", "hanging").is_empty());
        daemon.plugd(&["cancel", &marks(&sandbox, "fp", "hanging")[0]]).expect(0);
        let result = call.join().expect("it ends").expect(5).json();
        assert_eq!(result["status"], "cancelled", "{result:#}");
    });
    assert_ne!(data_of(&daemon, &["fp.echo"]), before, "the next call is served, by a new process");
    daemon.stop();
}

#[test]
fn c082_progress_puts_off_the_stall_limit_and_never_the_deadline() {
    let sandbox = Sandbox::new("");
    let telling = format!(
        "{}MANIFEST = {{'features': {{'concurrency': 8}}}}\n{}",
        operations(&["steady", "endless", "silent", "wrong"]),
        "
STOPPED = set()
def notified(method, params):
    STOPPED.add(params['call_id'])
def handle(operation, arguments, params):
    call_id = params['context']['call_id']
    began = time.monotonic()
    while call_id not in STOPPED:
        time.sleep(0.2)
        if operation == 'steady' and time.monotonic() - began > 2.5: break
        told = 'no such call' if operation == 'wrong' else call_id
        if operation != 'silent':
            send({'jsonrpc': '2.0', 'method': 'progress', 'params': {'call_id': told, 'done': 1}})
    return {'data': operation}
"
    );
    let table = sandbox.python("fp", &telling);
    sandbox.configure(&format!("{table}stall_timeout = \"1s\"\ntimeout = \"4s\"\n"));
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "fp"]).expect(0);
    let results: Vec<Value> = std::thread::scope(|scope| {
        let calls: Vec<_> = ["fp.steady", "fp.endless", "fp.silent", "fp.wrong"]
            .map(|operation| scope.spawn(|| daemon.json(&["call", operation])))
            .into_iter()
            .collect();
        calls.into_iter().map(|call| call.join().expect("it ends")).collect()
    });
    let [steady, endless, silent, wrong] = results.try_into().expect("four of them");
    assert_eq!((&steady["status"], &steady["data"]), (&json!("ok"), &json!("steady")), "{steady:#}");
    let took = |result: &Value| result["meta"]["run_us"].as_u64().expect("a time");
    for result in [&endless, &silent, &wrong] {
        assert_eq!(result["error"]["name"], "timed_out", "{result:#}");
    }
    assert!((3_900_000..20_000_000).contains(&took(&endless)), "at its deadline: {endless:#}");
    assert!(text(&endless["error"]["message"]).contains("within 4 s"), "{endless:#}");
    for stalled in [&silent, &wrong] {
        assert!((900_000..3_900_000).contains(&took(stalled)), "at its stall limit: {stalled:#}");
        assert!(text(&stalled["error"]["message"]).contains("no progress for 1 s"), "{stalled:#}");
    }
    daemon.stop();
}

/// A caller that stops itself is still a caller that is there: its call goes on.
#[test]
fn c080_a_caller_that_is_only_paused_cancels_nothing() {
    let sandbox = sandbox_of(&[("fp", NOTING)]);
    let daemon = sandbox.serve();
    data_of(&daemon, &["fp.quick"]);
    let mut caller = sandbox
        .command(&["--output", "json", "call", "fp.hang"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("plugd runs");
    eventually("the call runs", || !marks(&sandbox, "fp", "hanging").is_empty());
    let pid = i32::try_from(caller.id()).ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, Signal::STOP).expect("it is alive");
    eventually("the call has ended", || daemon.status("fp")["in_flight"] == 0);
    kill_process(pid, Signal::CONT).expect("it is alive");
    assert!(caller.wait().expect("it ends").success());
    assert_eq!(heard(&sandbox, "fp", "cancel"), Vec::<String>::new());
    daemon.stop();
}
