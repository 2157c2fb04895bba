//! What of a plugin's failures its callers see, and what only the log has.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("it is no text: {value}"))
}

const LEDGER: &str = r#"
SECRET = {"type": "object", "properties": {"password": {"type": "string", "writeOnly": True}, "user": {"type": "string"}}}
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("connect", "shout", "remote", "internal")]
OPERATIONS.append({"name": "login", "input_schema": SECRET})

def handle(operation, arguments, params):
    if operation == "connect":
        try:
            raise ConnectionError("cannot reach postgres://shop:hunter2@db.internal:5432/orders")
        except ConnectionError:
            import traceback
            raise Failure(traceback.format_exc(), hint="look at " + os.path.abspath(__file__))
    if operation == "shout":
        raise Failure("x" * 1000000)
    if operation == "remote":
        raise Failure("the order is closed", name="order_closed", code=7)
    if operation == "internal":
        raise Failure("I am plugd", name="internal", code=9001)
    raise Failure("no user %(user)s with password %(password)s" % arguments)
"#;

fn ledger(more: &str) -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("ledger", LEDGER);
    sandbox.configure(&format!("{table}{more}"));
    sandbox
}

#[test]
fn r_e5_no_stack_path_or_connection_string_reaches_a_caller_and_the_log_has_them() {
    let sandbox = ledger("");
    let daemon = sandbox.serve();
    let failed = daemon.plugd(&["--output", "json", "call", "ledger.connect"]).expect(1);
    for secret in ["hunter2", "db.internal", "Traceback", "line ", "/plugins/ledger"] {
        assert!(!failed.stdout.contains(secret), "{secret}: {}", failed.stdout);
    }
    let failed = failed.json();
    assert_eq!(failed["error"]["message"], "ConnectionError: cannot reach postgres://***", "{failed:#}");
    assert_eq!(failed["error"]["hint"], "look at …/main.py", "{failed:#}");

    let id = text(&failed["meta"]["call_id"]);
    let row = daemon.json(&["calls", "show", id]);
    let log = row["log"].to_string();
    assert!(log.contains("Traceback") && log.contains("hunter2@db.internal"), "{row:#}");
    assert!(!row["error"].to_string().contains("hunter2"), "{row:#}");
    daemon.stop();
}

/// Row E5: the last words of a process are in the error of its call.
#[test]
fn what_a_process_says_at_its_end_is_no_way_around_that() {
    const DIES: &str = r#"
if os.path.exists("broken"):
    raise SystemExit(open("broken").read())

def handle(operation, arguments, params):
    print("postgres://shop:hunter2@db.internal/orders is lost", file=sys.stderr, flush=True)
    os._exit(3)
"#;
    let sandbox = Sandbox::new("");
    let table = sandbox.python("dies", DIES);
    sandbox.configure(&format!("{table}restart = {{ backoff = \"10ms\", max = 2 }}\n"));
    let daemon = sandbox.serve();
    let died = daemon.plugd(&["--output", "json", "call", "dies.echo"]).expect(6);
    assert!(
        died.stdout.contains("postgres://***") && died.stdout.contains("exit status 3"),
        "{}",
        died.stdout
    );
    assert!(!died.stdout.contains("hunter2"), "{}", died.stdout);
    assert!(daemon.plugd(&["logs", "dies"]).stdout.contains("hunter2"), "the log has it");
    daemon.stop();

    sandbox.write("plugins/dies/broken", "cannot open /srv/ledger/secrets/key.pem with mysql://a:b@c/d");
    std::fs::remove_dir_all(sandbox.path().join("state")).expect("nothing is remembered");
    let daemon = sandbox.serve();
    daemon.wait_for_state("dies", "failed");
    for operation in ["dies.echo", "dies.other"] {
        let failed = daemon.plugd(&["--output", "json", "call", operation]).expect(6);
        let message = failed.json()["error"]["message"].clone();
        let message = text(&message);
        assert!(message.contains("cannot open …/key.pem with mysql://***"), "{message}");
    }
    daemon.stop();
}

#[test]
fn r_e6_a_long_message_is_clipped_and_says_so() {
    let sandbox = ledger("");
    let daemon = sandbox.serve();
    let failed = daemon.plugd(&["--output", "json", "call", "ledger.shout"]).expect(1).json();
    let message = text(&failed["error"]["message"]);
    assert!(message.chars().count() < 2_100 && message.contains("more characters]"), "{}", message.len());
    daemon.stop();
}

/// Rows E8 and T12.
#[test]
fn r_e8_a_remotes_own_code_is_a_failure_of_the_plugins_class_with_its_name() {
    let sandbox = ledger("");
    let daemon = sandbox.serve();
    let failed = daemon.plugd(&["--output", "json", "call", "ledger.remote"]).expect(1).json();
    let error = &failed["error"];
    assert_eq!((&error["code"], &error["name"]), (&json!(4001), &json!("order_closed")), "{failed:#}");
    assert_eq!(error["message"], "the order is closed", "{failed:#}");
    let failed = daemon.plugd(&["--output", "json", "call", "ledger.internal"]).expect(1).json();
    assert_eq!(failed["error"]["code"], 4001, "whatever it says, it is no fault of plugd's: {failed:#}");
    daemon.stop();
}

#[test]
fn a_declared_secret_among_the_arguments_is_in_no_error_log_or_record() {
    let sandbox = ledger("");
    let daemon = sandbox.serve();
    let failed =
        daemon.plugd(&["--output", "json", "call", "ledger.login", "user=ada", "password=s3cr3t-XYZ"]);
    let failed = failed.expect(1).json();
    assert_eq!(failed["error"]["message"], "no user ada with password ***", "{failed:#}");
    let row =
        daemon.plugd(&["--output", "json", "calls", "show", text(&failed["meta"]["call_id"])]).expect(0);
    assert!(!row.stdout.contains("s3cr3t") && row.stdout.contains("ada"), "{}", row.stdout);
    let log = daemon.plugd(&["logs", "ledger"]).expect(0);
    assert!(!log.stdout.contains("s3cr3t"), "{}", log.stdout);
    daemon.stop();
}

/// Row T12: answers of every odd form, by a plugin that gives back what it is told to.
#[test]
fn r_t12_no_behaviour_of_a_plugin_is_called_a_fault_of_plugd() {
    const ODD: &str = r#"
def answer_call(message):
    answer = message["params"]["arguments"]["answer"].replace("ID", str(message["id"]))
    raw((answer + "\n").encode())
"#;
    let sandbox = Sandbox::new("");
    let table = sandbox.python("odd", ODD);
    sandbox.configure(&format!("{table}restart = {{ backoff = \"10ms\", max = 1000 }}\n"));
    let daemon = sandbox.serve();
    let cause = r#"{"operation":"a.b","call_id":"c","error":{"code":9001,"name":"internal","message":"m","retryable":false,"outcome":"unknown"}}"#;
    let errors = [
        r#"{"code":9001,"message":"internal"}"#,
        r#"{"code":-32603,"message":"internal error"}"#,
        r#"{"code":-32601,"message":"unknown"}"#,
        r#"{"code":-32800,"message":"cancelled"}"#,
        r#"{"code":3,"message":"","data":{"name":"internal","hint":"","retryable":true}}"#,
        r#"{"code":4,"message":"m","data":{"name":"not_recorded"}}"#,
        r#"{"code":9223372036854775807,"message":"m","data":[]}"#,
        r#"{"code":1.5,"message":"m"}"#,
        r#"{"code":"1","message":"m"}"#,
        r#"{"message":"m"}"#,
        r#"{"code":2,"message":null}"#,
        r#"[]"#,
        r#""text""#,
        r#"null"#,
    ];
    let mut answers: Vec<String> =
        errors.iter().map(|error| format!(r#"{{"jsonrpc":"2.0","id":ID,"error":{error}}}"#)).collect();
    answers.push(format!(
        r#"{{"jsonrpc":"2.0","id":ID,"error":{{"code":3,"message":"m","data":{{"cause":{cause}}}}}}}"#
    ));
    for result in [
        "null",
        "{}",
        "[]",
        "3",
        r#"{"data":1,"summary":3}"#,
        r#"{"data":1,"next_actions":{}}"#,
        r#"{"data""#,
    ] {
        answers.push(format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{result}}}"#));
    }
    for answer in answers {
        let arguments = json!({ "answer": answer }).to_string();
        let result = daemon.json(&["call", "odd.echo", "--json", &arguments, "--timeout", "2s"]);
        let code = result["error"]["code"].as_u64().unwrap_or(0);
        assert!(code < 9000 && result["status"] != "pending", "{answer}: {result:#}");
    }
    daemon.stop();
}

#[test]
fn c145_what_a_plugin_tells_of_its_variables_stays_with_it() {
    const SECRET: &str = "s3cr3t-XYZ";
    // This one comes from plugd's own environment.
    const PASSED: &str = "k3y-98765";
    const OPENS: &str = r#"
def on_init(params):
    raise Failure("cannot open with %s and %s" % (os.environ["API_TOKEN"], os.environ["PASSED"]))
"#;
    const CRASHES: &str = r#"
OPERATIONS.append({"name": "crash", "input_schema": {"type": "object"}})
OPERATIONS.append({"name": "tell", "input_schema": {"type": "object"}})
def handle(operation, arguments, params):
    if operation == "tell":
        raise Failure("the token %s is refused" % os.environ["API_TOKEN"])
    os._exit(3)
"#;
    let sandbox = Sandbox::new("");
    let env = format!("env = {{ API_TOKEN = \"{SECRET}\" }}\nrestart = {{ backoff = \"20ms\" }}\n");
    let crashes = sandbox.python("crashes", CRASHES);
    sandbox.program("plugins/refuses/main.sh", "exit 1\n");
    let refuses =
        "[plugins.refuses]\ncommand = [\"sh\", \"main.sh\"]\ncwd = \"plugins/refuses\"\nstart = \"eager\"\n";
    let missing = "[plugins.missing]\ncommand = [\"./no-such-program\"]\nstart = \"eager\"\n";
    let opens = format!("{}start = \"eager\"\npass_env = [\"PASSED\"]\n", sandbox.python("opens", OPENS));
    sandbox.configure(&format!("{crashes}{env}{refuses}{env}{missing}{env}{opens}{env}"));
    let log = std::fs::File::create(sandbox.path().join("daemon.log")).expect("a log file");
    let mut serve = sandbox.command(&["--output", "json", "--log", "debug", "serve"]);
    serve.env("PASSED", PASSED);
    let daemon = sandbox.serve_by(serve, log.into());
    daemon.wait_for_state("missing", "failed");
    let opens = daemon.wait_for_state("opens", "disabled");
    assert!(text(&opens["reason"]).ends_with("init failed: cannot open with *** and ***"), "{opens:#}");
    let told = daemon.json(&["call", "crashes.tell"]);
    assert_eq!(told["error"]["message"], "the token *** is refused", "{told:#}");
    let mut outputs = vec![told.to_string()];
    for args in [
        &["call", "crashes.crash"][..],
        &["call", "refuses.echo", "--timeout", "1s"],
        &["call", "missing.echo"],
        &["call", "opens.echo"],
        &["status"],
        &["list"],
        &["describe", "crashes"],
        &["doctor"],
        &["events"],
        &["calls"],
        &["config", "show"],
        &["logs", "crashes"],
        &["logs", "refuses"],
        &["logs", "opens"],
    ] {
        let ran = daemon.plugd(&[&["--output", "json"], args].concat());
        outputs.push(format!("{args:?}: {}{}", ran.stdout, ran.stderr));
    }
    outputs.push(sandbox.read("daemon.log"));
    for output in outputs {
        assert!(!output.contains(SECRET) && !output.contains(PASSED), "{output}");
    }
    daemon.stop();
}
