//! Profiles of callers: what each sees, and that it is what each may call.

use plugd_daemon::client::ClientError;
use plugd_protocol::CallId;
use plugd_protocol::control::{
    AnswerParams, CallParams, CallsParams, CallsShowParams, CallsStatsParams, JobsParams, JobsWaitParams,
    ResultParams,
};
use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

const DEPLOY: &str = r#"
OPERATIONS = [
    {"name": "service", "description": "Deploys a service. Not for trying out.", "input_schema": {}, "scope": "deploy"},
    {"name": "state", "description": "Tells what is deployed. It changes nothing.", "input_schema": {}},
    {"name": "wipe", "description": "Takes everything down. There is no way back.", "input_schema": {}}]

def on_init(params):
    mark("inits")
    return {}
"#;

const HTTP: &str = r#"
OPERATIONS = [{"name": "request", "description": "Sends a request. For other plugins.", "input_schema": {}, "audience": "plugins"}]
"#;

/// Uses `http.request`.
const WEB: &str = r#"
MANIFEST = {"requires": {"http": "*"}}
OPERATIONS = [{"name": "fetch", "description": "Fetches a page. It is read only.", "input_schema": {}}]

def handle(operation, arguments, params):
    return {"data": host_call("http.request", {"page": 1}, params["context"]["call_id"])["result"]["data"]}
"#;

const CALLERS: &str = r#"
[callers.guest]
allow = ["deploy.s*", "web.*"]

[callers.ci]
deny = ["*.wipe"]
scopes = ["deploy"]
"#;

fn office() -> Sandbox {
    let sandbox = Sandbox::new("");
    let plugins = [("deploy", DEPLOY), ("http", HTTP), ("web", WEB)];
    let tables: Vec<String> = plugins.iter().map(|(name, text)| sandbox.python(name, text)).collect();
    sandbox.configure(&format!("{}{CALLERS}", tables.join("\n")));
    sandbox
}

/// How a call as this caller ends: the exit code, and the error's number or the status.
fn call(daemon: &Daemon<'_>, caller: &str, operation: &str) -> (i32, Value) {
    let ran = daemon.plugd(&["--output", "json", "--as", caller, "call", operation]);
    let result = ran.json();
    let code = &result["error"]["code"];
    (ran.code, if code.is_null() { result["status"].clone() } else { code.clone() })
}

/// The operations in a list, as this caller sees it.
fn listed(daemon: &Daemon<'_>, caller: &str) -> Vec<String> {
    let list = daemon.json(&["--as", caller, "list"]);
    let plugins = list["plugins"].as_array().expect("plugins").iter();
    let operations = plugins.flat_map(|plugin| plugin["operations"].as_array().expect("operations"));
    operations.map(|operation| operation["id"].as_str().expect("an id").to_owned()).collect()
}

fn tools(daemon: &Daemon<'_>, caller: &str) -> Vec<String> {
    let report = daemon.json(&["--as", caller, "tools"]);
    let tools = report["tools"].as_array().unwrap_or_else(|| panic!("tools: {report:#}")).iter();
    let mut ids: Vec<String> = tools.map(|tool| tool["id"].as_str().expect("an id").to_owned()).collect();
    ids.retain(|id| !id.starts_with("plugd."));
    ids.sort();
    ids
}

/// Row P1.
#[test]
fn r_p1_without_the_scope_a_call_is_refused_and_nothing_is_started() {
    let sandbox = office();
    let daemon = sandbox.serve();
    // Everything is described, which is no start of the plugin's own.
    daemon.json(&["list"]);
    assert_eq!(call(&daemon, "guest", "deploy.service"), (7, json!(7005)));
    assert_eq!(call(&daemon, "guest", "deploy.wipe"), (7, json!(7004)));
    assert_eq!(
        call(&daemon, "ci", "deploy.wipe"),
        (7, json!(7004)),
        "what is denied is, whatever is allowed"
    );
    assert_eq!(sandbox.read("plugins/deploy/inits"), "");
    assert_eq!(call(&daemon, "ci", "deploy.service"), (0, json!("ok")));
    assert_eq!(call(&daemon, "guest", "deploy.state"), (0, json!("ok")));
    assert_eq!(call(&daemon, "guset", "deploy.state"), (4, json!(1010)));
    let unknown = daemon.json(&["--as", "guset", "call", "deploy.state"])["error"].clone();
    assert!(unknown["hint"].as_str().expect("a hint").contains("guest"), "{unknown:#}");
    // Whoever says nothing is the owner.
    assert_eq!(daemon.json(&["call", "deploy.wipe"])["status"], "ok");
    daemon.stop();
}

#[test]
fn r_p1_without_a_daemon_a_caller_that_may_not_starts_nothing_either() {
    let sandbox = office();
    sandbox.plugd(&["--as", "guest", "call", "deploy.wipe"]).expect(7);
    assert_eq!(sandbox.read("plugins/deploy/inits"), "");
}

/// Row P2: what is listed is what can be called.
#[test]
fn r_p2_listing_and_calling_agree() {
    let sandbox = office();
    let daemon = sandbox.serve();
    for (caller, expected) in [
        ("guest", &["deploy.state", "web.fetch"][..]),
        ("ci", &["deploy.service", "deploy.state", "web.fetch"]),
    ] {
        assert_eq!(listed(&daemon, caller), expected, "{caller}");
        assert_eq!(tools(&daemon, caller), expected, "{caller}");
        for id in ["deploy.service", "deploy.state", "deploy.wipe", "http.request", "web.fetch"] {
            let may = expected.contains(&id);
            assert_eq!(call(&daemon, caller, id).0 == 0, may, "{caller} {id}");
            let described = daemon.plugd(&["--as", caller, "describe", id]);
            assert_eq!(described.code, if may { 0 } else { 7 }, "{caller} {id}: {described:?}");
        }
    }
    let described = daemon.json(&["--as", "guest", "describe", "deploy"]);
    let names: Vec<&Value> =
        described["operations"].as_array().expect("operations").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["state"], "{described:#}");
    // A slip is helped with what the caller may use, and with nothing else.
    let slip = daemon.json(&["--as", "guest", "call", "deploy.sate"])["error"].clone();
    assert!(slip["hint"].as_str().expect("a hint").contains("deploy.state"), "{slip:#}");
    let hidden = daemon.json(&["--as", "guest", "call", "wipee"])["error"].clone();
    assert!(!hidden.to_string().contains("deploy.wipe"), "{hidden:#}");
    daemon.stop();
}

/// Row S9.
#[test]
fn r_s9_a_service_is_for_plugins_and_the_owner() {
    let sandbox = office();
    let daemon = sandbox.serve();
    let report = daemon.json(&["tools"]);
    assert!(!report.to_string().contains("http.request"), "{report:#}");
    assert_eq!(daemon.json(&["--as", "guest", "call", "web.fetch"])["data"], json!({"page": 1}));
    assert_eq!(call(&daemon, "ci", "http.request"), (7, json!(7004)));
    assert_eq!(daemon.json(&["call", "http.request"])["status"], "ok", "an operator may");
    daemon.stop();
}

/// A profile that is taken away meanwhile counts for a call that is carried on.
#[tokio::test]
async fn who_may_no_more_does_not_by_an_old_token() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "mail",
        "OPERATIONS[0]['effects'] = {'destructive': True}\ndef handle(operation, arguments, params):\n    mark('sent')\n    return {'data': 1}\n",
    );
    sandbox.configure(&format!("{table}\n[callers.bot]\nallow = [\"mail.*\"]\n"));
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let params = CallParams { caller: Some("bot".to_owned()), ..CallParams::new("mail.echo") };
    let stopped = client.call(&params).await.expect("a result");
    let token = stopped.pending.and_then(|pending| pending.token).expect("it waits");
    sandbox.configure(&format!("{table}\n[callers.bot]\nallow = []\n"));
    daemon.plugd(&["reload"]).expect(0);
    daemon.plugd(&["answer", &token, "--yes"]).expect(7);
    assert_eq!(sandbox.read("plugins/mail/sent"), "");
    daemon.stop();
}

/// Whoever may not make a call neither sees it nor reads what it gave.
#[tokio::test]
async fn a_caller_sees_and_reads_only_calls_that_it_could_make() {
    let sandbox = office();
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let id_of = |result: Value| CallId::new(result["meta"]["call_id"].as_str().expect("an id"));
    let wiped = id_of(daemon.json(&["call", "deploy.wipe"]));
    let state = id_of(daemon.json(&["call", "deploy.state"]));
    let guest = || Some("guest".to_owned());

    let listed = |as_caller| CallsParams { as_caller, ..CallsParams::default() };
    let calls = client.calls(&listed(guest())).await.expect("a list").calls;
    assert_eq!(calls.iter().map(|row| &row.call_id).collect::<Vec<_>>(), [&state]);
    assert_eq!(client.calls(&listed(None)).await.expect("a list").calls.len(), 2);
    let stats = CallsStatsParams { caller: guest(), ..CallsStatsParams::default() };
    let stats = client.calls_stats(&stats).await.expect("statistics").operations;
    assert_eq!(stats.iter().map(|row| row.operation.as_str()).collect::<Vec<_>>(), ["deploy.state"]);

    let read = |reference: &CallId, caller| ResultParams {
        reference: reference.clone(),
        pointer: None,
        offset: None,
        limit: None,
        whole: false,
        caller,
    };
    let show = |call_id: &CallId, caller| CallsShowParams { call_id: call_id.clone(), caller };
    for (caller, call, code) in [
        (guest(), &wiped, 7004),
        (Some("guset".to_owned()), &state, 1010),
        (guest(), &state, 0),
        (None, &wiped, 0),
    ] {
        let result = client.result(&read(call, caller.clone())).await.map(drop);
        assert_eq!(code_of(result), code, "{caller:?} {call}");
        let shown = client.call_detail(&show(call, caller.clone())).await.map(drop);
        assert_eq!(code_of(shown), code, "{caller:?} {call}");
    }
    let through_plugd = CallParams { caller: guest(), ..CallParams::new("plugd.read_result") };
    let through_plugd = through_plugd.arguments(&json!({"ref": wiped}).to_string()).expect("JSON");
    let told = client.call(&through_plugd).await.expect("a result");
    assert_eq!(told.error.map(|error| error.code), Some(7004));
    daemon.stop();
}

/// The number of the error, or 0.
fn code_of(outcome: Result<(), ClientError>) -> u16 {
    match outcome {
        Ok(()) => 0,
        Err(ClientError::Command(error)) => error.code,
        Err(other) => panic!("{other}"),
    }
}

/// Jobs and tokens are calls, too.
#[tokio::test]
async fn a_caller_waits_for_and_answers_only_calls_that_it_could_make() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "mail",
        "OPERATIONS = [{'name': 'send', 'input_schema': {}, 'effects': {'destructive': True}}, {'name': 'sort', 'input_schema': {}, 'long_running': True}]\ndef handle(operation, arguments, params):\n    mark(operation)\n    return {'data': 1}\n",
    );
    sandbox.configure(&format!("{table}\n[callers.bot]\ndeny = [\"mail.*\"]\n"));
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let bot = || Some("bot".to_owned());
    let job =
        client.call(&CallParams::new("mail.sort")).await.expect("a result").meta.call_id.expect("an id");
    let wait = |caller| JobsWaitParams { call_id: job.clone(), timeout_ms: None, whole: false, caller };
    let refused = client.jobs_wait(&wait(bot())).await.expect("a result");
    assert_eq!(refused.error.map(|error| error.code), Some(7004));
    assert_eq!(client.jobs_wait(&wait(None)).await.expect("a result").exit_code(), 0);
    let jobs = |caller| JobsParams { running: false, caller };
    assert_eq!(client.jobs(&jobs(bot())).await.expect("a list").jobs.len(), 0);
    assert_eq!(client.jobs(&jobs(None)).await.expect("a list").jobs.len(), 1);

    let stopped = client.call(&CallParams::new("mail.send")).await.expect("a result");
    let token = stopped.pending.and_then(|pending| pending.token).expect("it waits");
    let yes = |caller| AnswerParams { confirm: true, caller, ..AnswerParams::new(&token) };
    assert_eq!(code_of(client.answer(&yes(bot())).await.map(drop)), 7004);
    assert_eq!(sandbox.read("plugins/mail/send"), "");
    let report = client.answer(&yes(None)).await.expect("the token stayed good");
    assert_eq!(report.result.map(|result| result.exit_code()), Some(0));
    daemon.stop();
}
