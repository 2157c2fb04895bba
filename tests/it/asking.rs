//! Plugins that ask the person behind a call: who is asked, who may answer, and what time it costs.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plugd_daemon::client::{Client, ClientError, Following};
use plugd_protocol::CallResult;
use plugd_protocol::control::{AnswerParams, Ask, AskEnd, AskNotice, CallParams};
use plugd_tests::{Sandbox, eventually};
use serde_json::{Value, json};

/// Asks, and does with the answer what the operation is about.
const ASKER: &str = r#"
IDS = iter(range(1000000))

# The call that this thread works on.
HERE = threading.local()

def host_ask(questions, call_id=None):
    ident = "a%d" % next(IDS)
    event, box = threading.Event(), []
    ANSWERS[ident] = (event, box)
    params = {"questions": questions}
    if call_id is not None:
        params["call_id"] = call_id
    mark("asked", "%f" % time.time())
    send({"jsonrpc": "2.0", "id": ident, "method": "host/ask", "params": params})
    event.wait(60)
    if not box:
        raise Failure("no answer to host/ask")
    return box[0]

def the(answer):
    if "error" in answer:
        mark("errors", json.dumps(answer["error"]))
        error = answer["error"]
        raise Failure(error["message"], error["code"], **error.get("data", {}))
    return answer["result"]["answers"]

def one(schema=None, prompt="Really?", **more):
    question = {"name": "it", "prompt": prompt, **more}
    question = question if schema is None else {**question, "schema": schema}
    return the(host_ask([question], HERE.call_id))["it"]

def answer_later():
    mark("later", json.dumps(host_ask([{"name": "it", "prompt": "Anybody?"}])))

def handle(operation, arguments, params):
    HERE.call_id = params["context"]["call_id"]
    if operation == "sure":
        return {"data": one({"type": "boolean"})}
    if operation == "count":
        return {"data": one({"type": "integer", "minimum": 1}, "How many?")}
    if operation == "secret":
        return {"data": len(one(prompt="Password?", sensitive=True))}
    if operation == "two":
        return {"data": the(host_ask([{"name": "user", "prompt": "Who?"},
            {"name": "age", "prompt": "How old?", "schema": {"type": "integer", "default": 7}}], HERE.call_id))}
    if operation == "work":
        one()
        time.sleep(arguments["seconds"])
        return {"data": "worked"}
    if operation == "after":
        threading.Timer(0.2, answer_later).start()
        return {"data": None}
    if operation == "through":
        answer = host_call("ask.work", arguments, HERE.call_id)
        if "error" in answer:
            error = answer["error"]
            raise Failure(error["message"], error["code"], **error.get("data", {}))
        return {"data": answer["result"]["data"]}
    return {"data": arguments}

OPERATIONS = [{"name": name, "input_schema": {}, "timeout_ms": 3000, "stall_timeout_ms": 2500}
    for name in ("sure", "count", "secret", "two", "work", "after", "through", "quick")]
MANIFEST = {"requires": {"ask": {"version": "*", "optional": True}}, "features": {"concurrency": 4}}
"#;

fn asking() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("ask", ASKER));
    sandbox
}

/// A program at a terminal, and the person who sits there.
pub(crate) struct Terminal<'a> {
    sandbox: &'a Sandbox,
    person: Child,
}

impl<'a> Terminal<'a> {
    /// Runs `plugd` with these arguments; each step is a text to wait for, how many seconds to wait
    /// then, and the keys to press.
    pub(crate) fn run(sandbox: &'a Sandbox, args: &[&str], steps: &[(&str, f64, &str)]) -> Terminal<'a> {
        let program = sandbox.command(args);
        let fixture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/terminal.py");
        let mut command = Command::new("python3");
        command.arg(fixture).arg(sandbox.path().join("terminal")).arg(json!(steps).to_string());
        command.arg(program.get_program()).args(program.get_args());
        command.current_dir(sandbox.path()).env_remove("PLUGD_CONFIG").env_remove("PLUGD_LOG");
        let person = command.stdin(Stdio::null()).spawn().expect("python3 runs");
        Terminal { sandbox, person }
    }

    pub(crate) fn screen(&self) -> String {
        self.sandbox.read("terminal/screen")
    }

    /// Waits for the program's end: its exit code, and its stdout.
    pub(crate) fn end(mut self) -> (i32, String) {
        let status = self.person.wait().expect("the person leaves");
        (status.code().unwrap_or(-1), self.sandbox.read("terminal/stdout"))
    }

    /// As [`Terminal::end`], for a call that goes well under `--output data`.
    #[track_caller]
    pub(crate) fn data(self) -> Value {
        let screen = self.screen();
        let (code, stdout) = self.end();
        assert_eq!(code, 0, "{screen}\n{stdout}");
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
    }
}

/// Whether a question got an error because its caller had gone: whichever was seen first, that the
/// call is over or that there is nobody left to ask.
fn ended_with_its_caller(sandbox: &Sandbox) -> bool {
    let errors = sandbox.read("plugins/ask/errors");
    errors.contains("-32800") || errors.contains("nobody_to_ask")
}

/// A client that can be asked, with the questions that come to it.
async fn somebody(daemon: &plugd_tests::Daemon<'_>) -> (Client, Following<AskNotice>) {
    let client = daemon.client().await;
    let asks = client.follow_asks().await.expect("it can be asked");
    (client, asks)
}

fn call(operation: &str, arguments: &Value) -> CallParams {
    let params = CallParams::new(operation).arguments(&arguments.to_string()).expect("JSON");
    CallParams { can_ask: true, ..params }
}

async fn notice(asks: &mut Following<AskNotice>) -> AskNotice {
    let next = tokio::time::timeout(Duration::from_secs(60), asks.next()).await;
    next.expect("something is told").expect("the daemon lives").expect("a notice")
}

async fn asked(asks: &mut Following<AskNotice>) -> Ask {
    match notice(asks).await {
        AskNotice::Asked(ask) => ask,
        other @ (AskNotice::Ended(_) | AskNotice::Progress(_)) => {
            panic!("expected a question, got {other:?}")
        }
    }
}

async fn ended(asks: &mut Following<AskNotice>) -> AskEnd {
    match notice(asks).await {
        AskNotice::Ended(ended) => ended.ended,
        other @ (AskNotice::Asked(_) | AskNotice::Progress(_)) => panic!("expected the end, got {other:?}"),
    }
}

fn answer(ask: &Ask, answer: impl Into<Value>) -> AnswerParams {
    AnswerParams { answer: Some(answer.into()), ..AnswerParams::new(&ask.token) }
}

/// Calls, and gives the one answer so many seconds after it was asked for.
async fn answered_after(daemon: &plugd_tests::Daemon<'_>, params: CallParams, seconds: u64) -> CallResult {
    let (client, mut asks) = somebody(daemon).await;
    let answering = async {
        let ask = asked(&mut asks).await;
        // What is tested is that this time is not counted.
        tokio::time::timeout(Duration::from_secs(seconds), std::future::pending::<()>())
            .await
            .expect_err("over");
        client.answer(&answer(&ask, "go on")).await.expect("it is waited for");
    };
    let (result, ()) = tokio::join!(client.call(&params), answering);
    result.expect("a result")
}

fn error(result: &CallResult) -> (u16, &str) {
    let error = result.error.as_ref().unwrap_or_else(|| panic!("expected an error: {result:?}"));
    (error.code, &error.name)
}

#[test]
fn c078_a_question_is_answered_at_the_terminal_while_the_call_runs() {
    let sandbox = asking();
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "ask"]).expect(0);
    let args = ["--output", "data", "call", "ask.sure"];
    let terminal = Terminal::run(&sandbox, &args, &[("Really? (y/n): ", 0.5, "yes\n")]);
    assert_eq!(terminal.data(), json!(true));
    let moment = |file: &str| sandbox.read(file).trim().parse::<f64>().expect("a moment");
    let visible_after = moment("terminal/seen") - moment("plugins/ask/asked");
    assert!(visible_after < 5.0, "shown when it is asked, not when the call ends: {visible_after} s");
    daemon.stop();
}

#[test]
fn c078_a_question_at_a_terminal_is_answered_from_another_process() {
    let sandbox = asking();
    let daemon = sandbox.serve();
    let terminal = Terminal::run(&sandbox, &["--output", "data", "call", "ask.sure"], &[]);
    eventually("the question is shown", || terminal.screen().contains("Really? (y/n): "));
    let screen = terminal.screen();
    let token =
        screen.split("plugd answer ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a token");
    let calls = daemon.json(&["status"])["daemon"]["calls"].clone();
    assert_eq!(calls[0]["asking"], true, "{calls:#}");
    daemon.plugd(&["answer", "no-such-token", "yes"]).expect(4);
    let refused = daemon.plugd(&["answer", token, "perhaps"]).expect(3);
    assert!(refused.stderr.contains("it: expected"), "{refused:?}");
    daemon.plugd(&["answer", token, "yes"]).expect(0);
    assert_eq!(terminal.data(), json!(true));
    assert!(sandbox.read("terminal/screen").contains("[ask] answered from elsewhere"));
    daemon.plugd(&["answer", token, "yes"]).expect(4);
    daemon.stop();
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let sandbox = asking();
    // Without a daemon, too.
    let args = ["--output", "data", "call", "ask.count"];
    let steps =
        [("How many? (integer): ", 0.0, "many\n"), ("integer): ", 0.0, "0\n"), ("integer): ", 0.0, "3\n")];
    let terminal = Terminal::run(&sandbox, &args, &steps);
    assert_eq!(terminal.data(), json!(3));
    let screen = sandbox.read("terminal/screen");
    assert!(screen.contains("[ask] it: expected") && !screen.contains("plugd answer"), "{screen}");

    // Enter alone is no text, and stands for a default.
    let steps = [("Who?: ", 0.0, "\n"), ("Who?: ", 0.0, "Ada\n"), ("How old? (integer) [7]: ", 0.0, "\n")];
    let terminal = Terminal::run(&sandbox, &["--output", "data", "call", "ask.two"], &steps);
    assert_eq!(terminal.data(), json!({ "user": "Ada", "age": 7 }));
}

#[test]
fn at_a_terminal_one_can_decline_interrupt_and_refuse_to_be_asked() {
    let sandbox = asking();
    let daemon = sandbox.serve();
    let end = |args: &[&str], steps: &[(&str, f64, &str)]| {
        let args = [&["--output", "json", "call", "ask.sure"], args].concat();
        let (code, stdout) = Terminal::run(&sandbox, &args, steps).end();
        let result: Value = serde_json::from_str(&stdout).expect("one document");
        (code, result["error"]["name"].clone())
    };
    // Ctrl-D, Ctrl-C.
    assert_eq!(end(&[], &[("(y/n): ", 0.0, "\u{4}")]), (1, json!("declined")));
    assert_eq!(end(&[], &[("(y/n): ", 0.0, "\u{3}")]), (130, json!("cancelled")));
    assert_eq!(end(&["--no-ask"], &[]), (1, json!("nobody_to_ask")));
    // The cancelled call's question went with it; the plugin is well.
    eventually("its question has ended", || ended_with_its_caller(&sandbox));
    assert_eq!(daemon.json(&["call", "ask.quick"])["status"], "ok");
    daemon.stop();
}

#[test]
fn a_secret_is_neither_shown_nor_logged_nor_told() {
    let sandbox = asking();
    let daemon = sandbox.serve();
    let args = ["--output", "data", "call", "ask.secret"];
    let terminal = Terminal::run(&sandbox, &args, &[("Password?: ", 0.0, "hunter2\n")]);
    assert_eq!(terminal.data(), json!(7));
    let events = daemon.json(&["events"]).to_string();
    assert!(events.contains("call.asked") && events.contains("call.answered"), "{events}");
    let logs = daemon.json(&["logs", "ask"]).to_string();
    for (where_, text) in [
        ("the screen", sandbox.read("terminal/screen")),
        ("the events", events),
        ("the logs", logs),
        ("the log's file", sandbox.read("state/logs/ask.log")),
        ("the daemon's log", sandbox.read("daemon.log")),
    ] {
        assert!(!text.contains("hunter2"), "{where_}: {text}");
    }
    daemon.stop();
}

#[tokio::test]
async fn c084_the_time_that_a_person_takes_is_not_the_tools() {
    let sandbox = asking();
    let daemon = sandbox.serve();
    let begin = Instant::now();
    // Three seconds for each call, and 2.5 without progress; somebody answers after four.
    let fits = answered_after(&daemon, call("ask.work", &json!({ "seconds": 0.5 })), 4).await;
    assert!(fits.error.is_none(), "{fits:?}");
    assert!(begin.elapsed() >= Duration::from_secs(4));
    let works_too_long = answered_after(&daemon, call("ask.work", &json!({ "seconds": 20 })), 4).await;
    assert_eq!(error(&works_too_long), (5001, "timed_out"));
    daemon.stop();
}

#[tokio::test]
async fn the_calls_that_wait_for_one_that_asks_have_time_too() {
    let sandbox = Sandbox::new("");
    let front = sandbox.python("front", ASKER);
    sandbox.configure(&format!("{}{front}", sandbox.python("ask", ASKER)));
    let daemon = sandbox.serve();
    let fits = answered_after(&daemon, call("front.through", &json!({ "seconds": 0.5 })), 4).await;
    assert!(fits.error.is_none(), "{fits:?}");
    let works_too_long = answered_after(&daemon, call("front.through", &json!({ "seconds": 20 })), 4).await;
    assert_eq!(error(&works_too_long), (5001, "timed_out"));

    // It is the outermost caller who is asked, and told who asks.
    let (client, mut asks) = somebody(&daemon).await;
    let params = call("front.through", &json!({ "seconds": 0 }));
    let answering = async {
        let ask = asked(&mut asks).await;
        assert_eq!(ask.operation.to_string(), "front.through");
        assert_eq!(ask.asked_by.as_ref().map(ToString::to_string).as_deref(), Some("ask.work"));
        client.answer(&answer(&ask, "yes")).await.expect("it is waited for");
        (ask.call_id, ended(&mut asks).await)
    };
    let (result, (call_id, end)) = tokio::join!(client.call(&params), answering);
    assert_eq!((result.expect("a result").meta.call_id, end), (Some(call_id), AskEnd::Answered));
    daemon.stop();
}

#[tokio::test]
async fn who_cannot_be_asked_is_no_reason_to_wait() {
    let sandbox = asking();
    let daemon = sandbox.serve();
    // A script, and a client that says it can be asked and follows no questions.
    let ran = daemon.plugd(&["--output", "json", "call", "ask.sure"]).expect(1).json();
    assert_eq!(ran["error"]["name"], "nobody_to_ask", "{ran:#}");
    assert!(ran["error"]["hint"].as_str().is_some_and(|hint| hint.contains("asks.subscribe")), "{ran:#}");
    let deaf = daemon.client().await.call(&call("ask.sure", &json!({}))).await.expect("a result");
    assert_eq!(error(&deaf), (4001, "nobody_to_ask"));
    // One that follows but does not say so for this call.
    let (client, _asks) = somebody(&daemon).await;
    let unasked = client.call(&CallParams::new("ask.sure")).await.expect("a result");
    assert_eq!(error(&unasked), (4001, "nobody_to_ask"));
    // Outside of any call.
    daemon.plugd(&["call", "ask.after"]).expect(0);
    eventually("the plugin is told", || sandbox.read("plugins/ask/later").contains("-32602"));
    daemon.stop();
}

#[tokio::test]
async fn a_question_ends_by_no_by_time_and_with_its_caller() {
    let sandbox = Sandbox::new("");
    let brief = format!("{}token_ttl = \"1s\"\n", sandbox.python("brief", ASKER));
    sandbox.configure(&format!("{}{brief}", sandbox.python("ask", ASKER)));
    let daemon = sandbox.serve();
    let (client, mut asks) = somebody(&daemon).await;
    let declining = async {
        let ask = asked(&mut asks).await;
        let no = AnswerParams { decline: true, answer: None, ..answer(&ask, "") };
        client.answer(&no).await.expect("it is waited for");
        ended(&mut asks).await
    };
    let sure = call("ask.sure", &json!({}));
    let (result, end) = tokio::join!(client.call(&sure), declining);
    assert_eq!((error(&result.expect("a result")), end), ((4001, "declined"), AskEnd::Declined));

    let ignoring = async {
        let ask = asked(&mut asks).await;
        (ended(&mut asks).await, ask)
    };
    let sure = call("brief.sure", &json!({}));
    let (result, (end, ask)) = tokio::join!(client.call(&sure), ignoring);
    assert_eq!((error(&result.expect("a result")), end), ((4001, "expired"), AskEnd::Expired));
    match client.answer(&answer(&ask, true)).await {
        Err(ClientError::Command(error)) => assert_eq!(error.name, "unknown_token"),
        other => panic!("expected an error, got {:?}", other.map(|report| report.call_id)),
    }
    daemon.stop();
}

#[test]
fn the_questions_of_a_caller_who_goes_away_end() {
    let sandbox = asking();
    let daemon = sandbox.serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ask = runtime.block_on(async {
        let (client, mut asks) = somebody(&daemon).await;
        let sure = call("ask.sure", &json!({}));
        tokio::select! {
            result = client.call(&sure) => panic!("{result:?}"),
            ask = asked(&mut asks) => ask,
        }
    });
    // With it goes the connection.
    drop(runtime);
    eventually("the plugin is told", || ended_with_its_caller(&sandbox));
    daemon.plugd(&["answer", &ask.token, "yes"]).expect(4);
    let events = daemon.json(&["events"]);
    let answered = events.as_array().expect("a list").iter().find(|event| event["kind"] == "call.answered");
    assert_eq!(answered.expect("it is told")["reason"], "cancelled", "{events:#}");
    daemon.stop();
}
