//! Calls that stop for a person and are carried on by a token: once, as they were, by whoever holds it.

use std::time::{Duration, Instant};

use plugd_daemon::client::{Client, ClientError, Following};
use plugd_protocol::control::{AnswerParams, Ask, AskNotice, CallParams};
use plugd_protocol::{CallError, CallResult, Status};
use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

/// Sends what may not be taken back, and takes note of it.
const MAIL: &str = r#"
def text(description, **more):
    return {"type": "string", "description": description, **more}

MAIL = {"type": "object", "properties": {
    "to": text("Who gets it"), "copies": {"type": "integer", "description": "How many", "minimum": 1, "default": 1},
    "password": text("The password of the account", writeOnly=True)}, "required": ["to"]}
CITY = {"type": "object", "properties": {"city": text("Which city"), "days": {"type": "integer", "description": "How many days"}},
    "required": ["city", "days"]}
OPERATIONS = [{"name": "send", "input_schema": MAIL, "effects": {"destructive": True}}, {"name": "look", "input_schema": CITY}]
MANIFEST = {"features": {"concurrency": 4}}

def handle(operation, arguments, params):
    mark(operation, json.dumps(arguments))
    return {"data": arguments}
"#;

fn mail() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("mail", MAIL));
    sandbox
}

/// What was done with these arguments, a line each.
fn done(sandbox: &Sandbox, operation: &str) -> Vec<Value> {
    let lines = sandbox.read(&format!("plugins/mail/{operation}"));
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn params(operation: &str, arguments: &Value) -> CallParams {
    CallParams::new(operation).arguments(&arguments.to_string()).expect("JSON")
}

async fn call(client: &Client, operation: &str, arguments: &Value) -> CallResult {
    client.call(&params(operation, arguments)).await.expect("a result")
}

fn token(result: &CallResult) -> String {
    result
        .pending
        .as_ref()
        .unwrap_or_else(|| panic!("it waits: {result:?}"))
        .token
        .clone()
        .expect("it can be answered")
}

fn yes(token: &str) -> AnswerParams {
    AnswerParams { confirm: true, ..AnswerParams::new(token) }
}

fn values(token: &str, answers: Value) -> AnswerParams {
    AnswerParams { answers: answers.as_object().cloned().expect("an object"), ..AnswerParams::new(token) }
}

/// The result of the call that an answer carries on.
async fn carried_on(client: &Client, params: &AnswerParams) -> CallResult {
    let report = client.answer(params).await.unwrap_or_else(|error| panic!("{error}"));
    report.result.expect("it had stopped")
}

/// The error of an answer that is refused.
async fn refused(client: &Client, params: &AnswerParams) -> CallError {
    match client.answer(params).await {
        Err(ClientError::Command(error)) => *error,
        other => panic!("expected an error, got {:?}", other.map(|report| report.call_id)),
    }
}

#[tokio::test]
async fn what_is_to_be_agreed_to_is_shown_without_its_secrets_and_runs_once() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let stopped =
        call(&client, "mail.send", &json!({"to": "Ada", "copies": "三", "password": "hunter2"})).await;
    assert_eq!((stopped.status, stopped.exit_code()), (Status::NeedsConfirmation, 8));
    assert_eq!(stopped.error.as_ref().map(|error| error.code), Some(3002));
    let pending = stopped.pending.clone().expect("it waits");
    assert_eq!(
        pending.arguments,
        Some(json!({"to": "Ada", "copies": 3, "password": "***"})),
        "the final ones"
    );
    assert!(!format!("{stopped:?}").contains("hunter2"));
    assert_eq!(done(&sandbox, "send"), [] as [Value; 0]);

    let result = carried_on(&client, &yes(&token(&stopped))).await;
    assert_eq!(
        (result.status, &result.meta.call_id),
        (Status::Ok, &stopped.meta.call_id),
        "it is the same call"
    );
    assert_eq!(done(&sandbox, "send"), [json!({"to": "Ada", "copies": 3, "password": "hunter2"})]);
    let error = refused(&client, &yes(&token(&stopped))).await;
    assert_eq!((error.code, error.message.as_str()), (1007, "already decided: answered"));
    assert_eq!(done(&sandbox, "send").len(), 1);
    daemon.stop();
}

#[tokio::test]
async fn a_call_that_waits_outlives_the_daemon_and_may_stop_again() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let stopped = call(&daemon.client().await, "mail.send", &json!({"password": "p"})).await;
    assert_eq!(stopped.status, Status::NeedsInput, "{stopped:?}");
    let first = token(&stopped);
    daemon.stop();

    let daemon = sandbox.serve();
    let client = daemon.client().await;
    // What does not fit, and nothing at all, leave the token as it is.
    for wrong in [json!({"to": 5.5}), json!({"too": "Ada"}), json!({})] {
        assert_eq!(refused(&client, &values(&first, wrong.clone())).await.code, 2001, "{wrong}");
    }
    let again = carried_on(&client, &values(&first, json!({"to": "Ada"}))).await;
    assert_eq!(again.status, Status::NeedsConfirmation, "{again:?}");
    assert_eq!(again.meta.call_id, stopped.meta.call_id);
    let second = token(&again);
    assert_ne!(first, second);
    let used = refused(&client, &yes(&first)).await;
    assert_eq!(used.code, 1007);
    // It says where the call waits now: nobody need make a second one.
    assert!(used.message.contains(&format!("waits under {second}")), "{used:?}");
    assert!(used.hint.as_ref().is_some_and(|hint| hint.contains(&second)), "{used:?}");
    // Neither a yes nor a no.
    assert_eq!(refused(&client, &AnswerParams::new(&second)).await.code, 2001);
    let result = carried_on(&client, &yes(&second)).await;
    assert_eq!(result.status, Status::Ok, "{result:?}");
    assert_eq!(done(&sandbox, "send"), [json!({"to": "Ada", "copies": 1, "password": "p"})]);

    // One call, one row.
    let calls = daemon.json(&["calls"]);
    let rows = calls["calls"].as_array().expect("calls");
    assert_eq!((rows.len(), &rows[0]["status"]), (1, &json!("ok")), "{calls:#}");
    daemon.stop();
}

#[tokio::test]
async fn whoever_agrees_beforehand_is_not_asked_again() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let stopped = call(&client, "mail.send", &json!({})).await;
    let both = AnswerParams { confirm: true, ..values(&token(&stopped), json!({"to": "Ada"})) };
    assert_eq!(carried_on(&client, &both).await.status, Status::Ok);
    let agreed = CallParams { confirm: true, ..params("mail.send", &json!({"to": "Bob"})) };
    assert_eq!(client.call(&agreed).await.expect("a result").status, Status::Ok);
    // The only question needs no name, and what is typed is read as a call's arguments are.
    let stopped = call(&client, "mail.look", &json!({"city": "Oslo"})).await;
    let answer = AnswerParams { answer: Some("三".into()), ..AnswerParams::new(token(&stopped)) };
    assert_eq!(carried_on(&client, &answer).await.status, Status::Ok);
    assert_eq!(done(&sandbox, "look"), [json!({"city": "Oslo", "days": 3})]);
    daemon.stop();
}

#[tokio::test]
async fn c158_a_no_is_the_end_of_the_call() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let stopped = call(&client, "mail.send", &json!({"to": "Ada"})).await;
    let no = AnswerParams { decline: true, ..AnswerParams::new(token(&stopped)) };
    let result = carried_on(&client, &no).await;
    assert_eq!((result.error.as_ref().map(|error| error.code), result.exit_code()), (Some(3003), 7));
    let error = refused(&client, &yes(&token(&stopped))).await;
    assert_eq!((error.code, error.message.as_str()), (1007, "already decided: declined"));
    // The same call anew asks anew.
    let anew = call(&client, "mail.send", &json!({"to": "Ada"})).await;
    assert_eq!(anew.status, Status::NeedsConfirmation);
    // A no in words is one, too; and a no to a question for values.
    let no = AnswerParams { answer: Some("no".into()), ..AnswerParams::new(token(&anew)) };
    assert_eq!(carried_on(&client, &no).await.exit_code(), 7);
    let stopped = call(&client, "mail.look", &json!({})).await;
    let no = AnswerParams { decline: true, ..AnswerParams::new(token(&stopped)) };
    assert_eq!(carried_on(&client, &no).await.exit_code(), 7);
    assert_eq!((done(&sandbox, "send").len(), done(&sandbox, "look").len()), (0, 0));
    daemon.stop();
}

/// A client that can be asked, with the questions that come to it.
async fn somebody(daemon: &Daemon<'_>) -> (Client, Following<AskNotice>) {
    let client = daemon.client().await;
    let asks = client.follow_asks().await.expect("it can be asked");
    (client, asks)
}

async fn asked(asks: &mut Following<AskNotice>) -> Ask {
    let next = tokio::time::timeout(Duration::from_secs(60), asks.next()).await;
    match next.expect("something is asked").expect("the daemon lives").expect("a notice") {
        AskNotice::Asked(ask) => ask,
        other => panic!("expected a question, got {other:?}"),
    }
}

fn can_ask(operation: &str, arguments: &Value) -> CallParams {
    CallParams { can_ask: true, ..params(operation, arguments) }
}

#[tokio::test]
async fn c164_two_approvals_at_once_are_each_for_their_own_call() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let (one, mut asks_one) = somebody(&daemon).await;
    let (two, mut asks_two) = somebody(&daemon).await;
    let (to_ada, to_bob) =
        (can_ask("mail.send", &json!({"to": "Ada"})), can_ask("mail.send", &json!({"to": "Bob"})));
    let answering = async {
        let (first, second) = (asked(&mut asks_one).await, asked(&mut asks_two).await);
        assert_eq!(first.arguments, Some(json!({"to": "Ada", "copies": 1})));
        assert_eq!(second.arguments, Some(json!({"to": "Bob", "copies": 1})));
        assert_ne!(first.token, second.token);
        two.answer(&yes(&second.token)).await.expect("it is waited for");
        let no = AnswerParams { answer: Some(false.into()), ..AnswerParams::new(&first.token) };
        one.answer(&no).await.expect("it is waited for");
        // Neither can be used again, for whatever call.
        for token in [&first.token, &second.token] {
            assert_eq!(refused(&one, &yes(token)).await.code, 1007);
        }
    };
    let (to_ada, to_bob, ()) = tokio::join!(one.call(&to_ada), two.call(&to_bob), answering);
    let (to_ada, to_bob) = (to_ada.expect("a result"), to_bob.expect("a result"));
    assert_eq!((to_ada.exit_code(), to_bob.exit_code()), (7, 0), "{to_ada:?} {to_bob:?}");
    assert_eq!(done(&sandbox, "send"), [json!({"to": "Bob", "copies": 1})]);
    daemon.stop();
}

#[tokio::test]
async fn who_can_be_asked_is_asked_there_and_told_what_does_not_fit() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let (client, mut asks) = somebody(&daemon).await;
    let look = can_ask("mail.look", &json!({}));
    let answering = async {
        let ask = asked(&mut asks).await;
        let names: Vec<&str> = ask.questions.iter().map(|question| question.name.as_str()).collect();
        assert_eq!(names, ["city", "days"]);
        let error = refused(&client, &values(&ask.token, json!({"city": "Oslo", "days": "soon"}))).await;
        assert_eq!((error.code, error.details[0].path.as_str()), (2001, "/days"));
        let report = client.answer(&values(&ask.token, json!({"city": "Oslo", "days": "2"}))).await;
        assert!(report.expect("it is waited for").result.is_none());
    };
    let (result, ()) = tokio::join!(client.call(&look), answering);
    assert_eq!(result.expect("a result").status, Status::Ok);

    // Whoever cannot say what fits is not asked for ever.
    let wrong = async {
        let ask = asked_after_the_end(&mut asks).await;
        for _ in 0..3 {
            assert_eq!(
                refused(&client, &values(&ask.token, json!({"city": "Oslo", "days": "soon"}))).await.code,
                2001
            );
        }
        assert_eq!(
            refused(&client, &values(&ask.token, json!({"city": "Oslo", "days": 2}))).await.code,
            1007
        );
    };
    let (result, ()) = tokio::join!(client.call(&look), wrong);
    assert_eq!(result.expect("a result").error.map(|error| error.code), Some(2001));
    assert_eq!(done(&sandbox, "look").len(), 1);
    daemon.stop();
}

/// The next question, what is told of earlier ones passed over.
async fn asked_after_the_end(asks: &mut Following<AskNotice>) -> Ask {
    loop {
        let next = tokio::time::timeout(Duration::from_secs(60), asks.next()).await;
        if let AskNotice::Asked(ask) =
            next.expect("something is asked").expect("the daemon lives").expect("a notice")
        {
            return ask;
        }
    }
}

/// The time that a person takes is nobody's: neither the call's deadline counts it, nor its record.
#[tokio::test]
async fn c084_the_time_to_answer_is_charged_to_nobody() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let (client, mut asks) = somebody(&daemon).await;
    let look = CallParams { timeout_ms: Some(4_000), ..can_ask("mail.look", &json!({"city": "Oslo"})) };
    // The plugin is up before the clock begins.
    assert_eq!(call(&client, "mail.look", &json!({"city": "a", "days": 1})).await.status, Status::Ok);
    let answering = async {
        let ask = asked(&mut asks).await;
        // Nothing is told meanwhile, for longer than the call has.
        let nothing = tokio::time::timeout(Duration::from_secs(5), asks.next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        client.answer(&values(&ask.token, json!({"days": 2}))).await.expect("it is waited for");
    };
    let (result, ()) = tokio::join!(client.call(&look), answering);
    let result = result.expect("a result");
    assert_eq!(result.status, Status::Ok, "{result:?}");
    assert!(result.meta.queue_us < 4_000_000, "{result:?}");
    daemon.stop();
}

/// Parts a and b; the terminal's are elsewhere.
#[tokio::test]
async fn c162_who_cannot_be_asked_is_told_at_once_what_is_asked() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let began = Instant::now();
    let script = daemon.plugd(&["call", "mail.send", "to=Ada"]).expect(8);
    assert!(script.stderr.contains("mail.send") && script.stderr.contains("--yes"), "{script:?}");
    let (client, _asks) = somebody(&daemon).await;
    let deaf = call(&client, "mail.look", &json!({"city": "Oslo"})).await;
    let pending = deaf.pending.as_ref().expect("it waits");
    assert_eq!(deaf.status, Status::NeedsInput);
    assert!(pending.prompt.contains("How many days"), "{pending:?}");
    // One that says it can be asked and follows no questions.
    let client = daemon.client().await;
    let deaf = client.call(&can_ask("mail.send", &json!({"to": "Ada"}))).await.expect("a result");
    assert_eq!(deaf.status, Status::NeedsConfirmation);
    assert!(began.elapsed() < Duration::from_secs(20), "nobody waited for a person");
    assert_eq!(done(&sandbox, "send").len(), 0);
    daemon.stop();
}

/// Part c: the call of a client that goes away while it is asked is over, and its plugin knows nothing of it.
#[test]
fn c162_who_goes_away_while_asked_ends_the_call() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let ask = runtime.block_on(async {
        let (client, mut asks) = somebody(&daemon).await;
        let send = can_ask("mail.send", &json!({"to": "Ada"}));
        tokio::select! {
            result = client.call(&send) => panic!("{result:?}"),
            ask = asked(&mut asks) => ask,
        }
    });
    // With it goes the connection.
    drop(runtime);
    let row = || daemon.json(&["calls"])["calls"][0].clone();
    eventually("the call has ended", || row()["call_id"] == ask.call_id.as_str());
    let status = row()["status"].clone();
    assert!(status == "cancelled" || status == "needs_confirmation", "{status}");
    daemon.plugd(&["answer", &ask.token, "--yes"]).expect(4);
    assert_eq!(done(&sandbox, "send").len(), 0);
    daemon.stop();
}

#[test]
fn a_token_that_nobody_used_in_time_is_none() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}token_ttl = \"1s\"\n", sandbox.python("mail", MAIL)));
    let daemon = sandbox.serve();
    let stopped = daemon.plugd(&["--output", "json", "call", "mail.look", "city=Oslo"]).expect(8).json();
    let token = stopped["pending"]["token"].as_str().expect("a token").to_owned();
    // A wrong answer leaves it as it is, for as long as it is good.
    eventually("it has expired", || daemon.plugd(&["answer", &token, "days=soon"]).code == 4);
    daemon.plugd(&["answer", &token, "days=2"]).expect(4);
    assert_eq!(done(&sandbox, "look").len(), 0);
    daemon.stop();
}

/// A new version of the plugin may want other arguments than were agreed to: then it is asked again.
#[tokio::test]
async fn a_yes_is_for_the_arguments_that_were_shown() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let stopped = call(&client, "mail.send", &json!({"to": "Ada"})).await;
    let changed =
        MAIL.replace("\"password\":", "\"loud\": {\"type\": \"boolean\", \"default\": True}, \"password\":");
    sandbox.python("mail", &changed);
    daemon.plugd(&["reload", "mail"]).expect(0);
    let again = carried_on(&client, &yes(&token(&stopped))).await;
    assert_eq!(again.status, Status::NeedsConfirmation, "{again:?}");
    let shown = again.pending.clone().expect("it waits").arguments;
    assert_eq!(shown, Some(json!({"to": "Ada", "copies": 1, "loud": true})));
    assert_eq!(done(&sandbox, "send").len(), 0);
    assert_eq!(carried_on(&client, &yes(&token(&again))).await.status, Status::Ok);
    daemon.stop();
}

/// What a plugin calls was agreed to with the call that it works for.
#[test]
fn what_a_plugin_does_on_a_call_is_not_confirmed_by_itself() {
    let sandbox = Sandbox::new("");
    let front = sandbox.python(
        "front",
        r#"
MANIFEST = {"requires": {"mail": "*"}}
def handle(operation, arguments, params):
    return {"data": host_call("mail.send", {"to": "Ada"}, params["context"]["call_id"])["result"]["data"]}
"#,
    );
    sandbox.configure(&format!("{}\n{front}", sandbox.python("mail", MAIL)));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "front.echo"])["status"], "ok");
    assert_eq!(done(&sandbox, "send").len(), 1);
    daemon.stop();
}

/// A yes beside anything else is a yes to another call than the one that waits.
#[tokio::test]
async fn a_contradictory_or_foreign_answer_is_refused_and_the_token_stays_good() {
    let sandbox = mail();
    let daemon = sandbox.serve();
    let (client, mut asks) = somebody(&daemon).await;
    let stopped = call(&client, "mail.send", &json!({"to": "Ada"})).await;
    let agreeing = |token: &str, more: Value| AnswerParams { confirm: true, ..values(token, more) };
    let contradictory = |token: &str| {
        [
            agreeing(token, json!({"confirm": false})),
            agreeing(token, json!({"to": "Bob"})),
            agreeing(token, json!({"confirm": true, "rubbish": 1})),
            AnswerParams { answer: Some("no".into()), ..yes(token) },
            AnswerParams { decline: true, ..yes(token) },
        ]
    };
    for params in contradictory(&token(&stopped)) {
        assert_eq!(refused(&client, &params).await.code, 2001);
    }
    assert_eq!(done(&sandbox, "send").len(), 0);
    let agreed = agreeing(&token(&stopped), json!({"confirm": "yes"}));
    assert_eq!(carried_on(&client, &agreed).await.status, Status::Ok);

    // The same where whoever called waits for the answer.
    let waits = can_ask("mail.send", &json!({"to": "Eve"}));
    let answering = async {
        let ask = asked_after_the_end(&mut asks).await;
        for params in contradictory(&ask.token) {
            assert_eq!(refused(&client, &params).await.code, 2001);
        }
        client.answer(&yes(&ask.token)).await.expect("it is waited for");
    };
    let (result, ()) = tokio::join!(client.call(&waits), answering);
    assert_eq!(result.expect("a result").status, Status::Ok);
    let to: Vec<Value> = done(&sandbox, "send").iter().map(|sent| sent["to"].clone()).collect();
    assert_eq!(to, ["Ada", "Eve"]);
    daemon.stop();
}
