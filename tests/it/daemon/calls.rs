//! Calls over the control API: answered later, looked up, in the background, and told of meanwhile.

use std::time::Duration;

use plugd_daemon::client::{ClientError, Following};
use plugd_protocol::Status;
use plugd_protocol::control::{
    AnswerParams, AskNotice, AsksParams, CallParams, CallsShowParams, JobsWaitParams, ResultParams,
};
use plugd_tests::{Sandbox, eventually};
use serde_json::{Value, json};

use super::control_api::request;

const SHOP: &str = r#"
SCHEMA = {"type": "object", "properties": {"count": {"type": "integer", "description": "How many"}}, "required": ["count"]}
OPERATIONS = [{"name": "buy", "input_schema": SCHEMA, "effects": {"destructive": True}},
    {"name": "list", "input_schema": {}, "result_limit": 1000},
    {"name": "build", "input_schema": {}, "long_running": True}]

def handle(operation, arguments, params):
    send({"jsonrpc": "2.0", "method": "progress", "params": {"call_id": params["context"]["call_id"],
        "done": 1, "total": 2, "message": "half"}})
    if operation == "build":
        while not os.path.exists("go"):
            time.sleep(0.01)
    if operation == "list":
        return {"data": list(range(1000))}
    return {"data": {"done": operation, **arguments}}
"#;

fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("shop", SHOP));
    sandbox
}

#[test]
fn a_call_that_stopped_is_carried_on_by_any_client_and_looked_up_afterwards() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let ask = |method: &str, params: Value| request(&sandbox, method, params)["result"].clone();
    let stopped = ask("call", json!({"operation": "shop.buy", "arguments": {}}));
    assert_eq!(stopped["status"], "needs_input", "{stopped:#}");
    let token = |result: &Value| result["pending"]["token"].clone();
    let answered = ask("answer", json!({"token": token(&stopped), "answers": {"count": 3}}));
    assert_eq!(answered["result"]["status"], "needs_confirmation", "one after the other: {answered:#}");
    let agreed = ask("answer", json!({"token": token(&answered["result"]), "confirm": true}));
    assert_eq!(agreed["result"]["data"], json!({"done": "buy", "count": 3}), "{agreed:#}");
    assert_eq!(
        (&agreed["call_id"], &stopped["meta"]["call_id"]),
        (&agreed["result"]["meta"]["call_id"], &agreed["call_id"])
    );
    let both = ask("call", json!({"operation": "shop.buy"}));
    let both = ask("answer", json!({"token": token(&both), "answers": {"count": 1}, "confirm": true}));
    assert_eq!(both["result"]["status"], "ok", "at once: {both:#}");
    let used = request(&sandbox, "answer", json!({"token": token(&stopped), "answers": {"count": 3}}));
    assert_eq!(used["error"]["data"]["code"], 1007, "{used:#}");

    eventually("both are recorded", || {
        ask("calls", json!({"status": "ok"}))["calls"].as_array().is_some_and(|calls| calls.len() == 2)
    });
    let detail = ask("calls.show", json!({"call_id": agreed["call_id"]}));
    assert_eq!(detail["call"]["status"], "ok", "{detail:#}");
    let stats = ask("calls.stats", json!({"plugin": "shop"}));
    assert_eq!(stats["operations"][0]["count"], 2, "{stats:#}");
    let told =
        ask("call.explain", json!({"operation": "shop.buy", "arguments": {"count": "三"}, "confirm": true}));
    assert_eq!(
        (&told["arguments"]["count"], &told["confirmation"]),
        (&json!(3), &json!("given")),
        "{told:#}"
    );
    for (method, params, code) in [
        ("calls.show", json!({"call_id": "none"}), 1005),
        ("result", json!({"reference": "none"}), 1009),
        ("call.explain", json!({"operation": "shop.nothing"}), 1003),
    ] {
        let failed = request(&sandbox, method, params);
        assert_eq!(failed["error"]["data"]["code"], code, "{method}: {failed:#}");
    }
    let unknown = ask("jobs.wait", json!({"call_id": "none"}));
    assert_eq!(
        (&unknown["status"], &unknown["error"]["code"]),
        (&json!("error"), &json!(1005)),
        "{unknown:#}"
    );
    daemon.stop();
}

#[tokio::test]
async fn a_job_and_a_page_are_asked_for_by_the_calls_id() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let begun = client.call(&CallParams::new("shop.build")).await.expect("a result");
    assert_eq!(begun.status, Status::Pending, "{begun:?}");
    let call_id = begun.meta.call_id.expect("an id");
    let wait = |timeout_ms| JobsWaitParams {
        call_id: call_id.clone(),
        timeout_ms: Some(timeout_ms),
        whole: false,
        caller: None,
    };
    assert_eq!(client.jobs_wait(&wait(50)).await.expect("a result").status, Status::Pending);
    // Whoever waits and goes away does not end it.
    let impatient = daemon.client().await;
    let gone = tokio::time::timeout(Duration::from_millis(50), impatient.jobs_wait(&wait(60_000))).await;
    assert!(gone.is_err());
    drop(impatient);
    sandbox.write("plugins/shop/go", "");
    let ended = client.jobs_wait(&wait(60_000)).await.expect("a result");
    assert_eq!((ended.status, ended.meta.call_id.as_ref()), (Status::Ok, Some(&call_id)), "{ended:?}");
    let detail =
        client.call_detail(&CallsShowParams { call_id, caller: None }).await.expect("it is recorded");
    assert_eq!(detail.call.status, Status::Ok);

    let list = client.call(&CallParams::new("shop.list")).await.expect("a result");
    let page = list.page.expect("it is large");
    assert_eq!((page.offset, page.total), (0, 1000));
    let next = ResultParams {
        reference: page.reference,
        pointer: None,
        offset: page.next,
        limit: Some(2),
        whole: false,
        caller: None,
    };
    let report = client.result(&next).await.expect("it is kept");
    let expected = format!("[{}, {}]", page.count, page.count + 1).replace(' ', "");
    assert_eq!(report.data.get().replace(' ', ""), expected);
    daemon.stop();
}

async fn next(notices: &mut Following<AskNotice>) -> AskNotice {
    let next = tokio::time::timeout(Duration::from_secs(60), notices.next()).await;
    next.expect("something is told").expect("the daemon lives").expect("a notice")
}

#[tokio::test]
async fn a_client_is_told_of_its_own_calls_progress_where_it_wants_to_know() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let (told, other) = (daemon.client().await, daemon.client().await);
    let mut notices = told.follow_asks_with(&AsksParams { progress: true }).await.expect("it can");
    let mut silent = other.follow_asks().await.expect("it can");
    other.call(&CallParams::new("shop.list")).await.expect("a result");
    let call = told.call(&CallParams::new("shop.list")).await.expect("a result");
    match next(&mut notices).await {
        AskNotice::Progress(progress) => {
            assert_eq!(Some(&progress.call_id), call.meta.call_id.as_ref(), "its own call's");
            assert_eq!((progress.progress.done, progress.progress.message.as_deref()), (1.0, Some("half")));
        }
        other => panic!("expected progress, got {other:?}"),
    }
    // It follows without being one that can be asked, unless a call says so.
    let buy = CallParams::new("shop.buy").arguments(r#"{"count":1}"#).expect("JSON");
    assert_eq!(told.call(&buy).await.expect("a result").status, Status::NeedsConfirmation);
    let asking = CallParams { can_ask: true, ..buy };
    let answering = async {
        let AskNotice::Asked(ask) = next(&mut silent).await else { panic!("expected a question") };
        assert_eq!((ask.questions[0].name.as_str(), ask.arguments), ("confirm", Some(json!({"count": 1}))));
        let no = AnswerParams { answer: Some(json!(false)), ..AnswerParams::new(ask.token) };
        other.answer(&no).await
    };
    let (result, answered) = tokio::join!(other.call(&asking), answering);
    assert!(answered.expect("it is waited for").result.is_none(), "the call ends where it was made");
    let error = result.expect("a result").error.expect("a no");
    assert_eq!((error.code, error.exit_code()), (3003, 7));
    match other.answer(&AnswerParams::new("none")).await {
        Err(ClientError::Command(error)) => assert_eq!(error.code, 1007),
        answered => panic!("expected an error, got {:?}", answered.map(|report| report.call_id)),
    }
    daemon.stop();
}
