//! Answers given again: `cache_ttl` of read-only operations, and equal calls at once.

use std::thread;

use plugd_tests::{Daemon, Ran, Sandbox, eventually};
use serde_json::{Value, json};

/// An operation that counts its runs in the file `ran`, and waits for the file `go` where it is told to.
const TICKETS: &str = r#"
QUERY = {"name": "query_status", "effects": {"read_only": True}, "cache_ttl": 60,
         "input_schema": {"type": "object", "properties": {"id": {"type": "string"}, "waits": {"type": "boolean", "default": False}}}}
OPERATIONS = [QUERY, {**QUERY, "name": "brief", "cache_ttl": 1}, {**QUERY, "name": "write", "effects": {}}]
MANIFEST = {"features": {"concurrency": 4}}

def handle(operation, arguments, params):
    mark("ran")
    while arguments["waits"] and not os.path.exists("go"):
        time.sleep(0.01)
    if os.path.exists("fails"):
        raise Failure("the ledger is locked")
    return {"data": {"run": len(open("ran").read().splitlines())}, "summary": "in review"}
"#;

fn tickets() -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("tickets", TICKETS);
    sandbox.configure(&format!("{table}\n[callers.ci]\n"));
    sandbox
}

fn runs(sandbox: &Sandbox) -> usize {
    sandbox.read("plugins/tickets/ran").lines().count()
}

fn call(sandbox: &Sandbox, args: &[&str]) -> Ran {
    sandbox.plugd(&[&["--output", "json", "call", "--timeout", "60s"], args].concat())
}

/// The ids of the calls under way.
fn under_way(daemon: &Daemon<'_>) -> Vec<String> {
    let status = daemon.json(&["status"]);
    let calls = status["daemon"]["calls"].as_array().expect("a list").iter();
    calls.map(|call| call["call_id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn r_x12_the_same_question_is_answered_from_the_cache() {
    let sandbox = tickets();
    let daemon = sandbox.serve();
    let first = call(&sandbox, &["tickets.query_status", "id=TK-1"]).expect(0).json();
    assert_eq!(first["meta"]["cached"], Value::Null, "{first:#}");
    let again = call(&sandbox, &["tickets.query_status", "waits=false", "id=TK-1"]).expect(0).json();
    assert_eq!(again["meta"]["cached"], true, "the same final arguments: {again:#}");
    assert_eq!((&again["data"], &again["summary"]), (&first["data"], &first["summary"]), "{again:#}");
    assert_eq!((&again["meta"]["answer_of"], runs(&sandbox)), (&first["meta"]["call_id"], 1));

    for other in [
        &["tickets.query_status", "id=TK-2"][..],
        &["tickets.query_status", "id=TK-1", "--as", "ci"],
        &["tickets.write", "id=TK-1"],
        &["tickets.write", "id=TK-1"],
    ] {
        let ran = call(&sandbox, other).expect(0).json();
        assert_eq!(ran["meta"]["cached"], Value::Null, "{other:?}: {ran:#}");
    }
    assert_eq!(runs(&sandbox), 5);
    let row = &daemon.json(&["calls", "show", again["meta"]["call_id"].as_str().expect("an id")]);
    assert_eq!(row["answered_from"], "cache", "{row:#}");

    let first = call(&sandbox, &["tickets.brief"]).expect(0).json();
    eventually("its time is over", || call(&sandbox, &["tickets.brief"]).json()["data"] != first["data"]);
    daemon.stop();
}

/// Row X12: two at once.
#[test]
fn equal_calls_at_once_run_once() {
    let sandbox = tickets();
    let daemon = sandbox.serve();
    let ask = || call(&sandbox, &["tickets.query_status", "waits=true"]).expect(0).json();
    let results = thread::scope(|scope| {
        let callers = [(); 3].map(|()| scope.spawn(ask));
        eventually("all have come", || under_way(&daemon).len() == 3 && runs(&sandbox) == 1);
        sandbox.write("plugins/tickets/go", "");
        callers.map(|caller| caller.join().expect("it ends"))
    });
    assert_eq!(runs(&sandbox), 1);
    let cached = results.iter().filter(|result| result["meta"]["cached"] == true).count();
    assert_eq!(cached, 2, "{results:#?}");
    daemon.stop();
}

#[test]
fn who_waits_for_an_equal_call_inherits_neither_its_cancel_nor_its_failure() {
    let sandbox = tickets();
    let daemon = sandbox.serve();
    let ask = || call(&sandbox, &["tickets.query_status", "waits=true"]).json();
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(ask);
        eventually("the first one runs", || runs(&sandbox) == 1);
        let leads = under_way(&daemon)[0].clone();
        let second = scope.spawn(ask);
        eventually("the second one waits", || under_way(&daemon).len() == 2);
        daemon.plugd(&["cancel", &leads]).expect(0);
        eventually("the second one runs", || runs(&sandbox) == 2);
        sandbox.write("plugins/tickets/go", "");
        (first.join().expect("it ends"), second.join().expect("it ends"))
    });
    assert_eq!(
        (&first["status"], &second["status"]),
        (&json!("cancelled"), &json!("ok")),
        "{first:#} {second:#}"
    );

    sandbox.write("plugins/tickets/fails", "");
    let failed = call(&sandbox, &["tickets.query_status", "id=TK-9"]).expect(1).json();
    assert_eq!(failed["error"]["message"], "the ledger is locked", "{failed:#}");
    std::fs::remove_file(sandbox.path().join("plugins/tickets/fails")).expect("it was there");
    let ran = call(&sandbox, &["tickets.query_status", "id=TK-9"]).expect(0).json();
    assert_eq!(ran["meta"]["cached"], Value::Null, "a failure is not kept: {ran:#}");
    daemon.stop();
}

#[test]
fn a_change_of_the_plugin_empties_its_answers() {
    let sandbox = tickets();
    let daemon = sandbox.serve();
    let ask = || call(&sandbox, &["tickets.query_status"]).expect(0).json();
    let runs_before = |result: &Value| result["data"]["run"].as_u64().expect("a number");
    let first = ask();
    assert_eq!(ask()["meta"]["cached"], true);
    daemon.plugd(&["reload", "tickets"]).expect(0);
    let replaced = ask();
    assert_eq!(runs_before(&replaced), runs_before(&first) + 1, "{replaced:#}");
    assert_eq!(ask()["meta"]["cached"], true);
    let table = "[plugins.tickets]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/tickets\"\nenv = { A = \"1\" }\n";
    sandbox.configure(table);
    daemon.plugd(&["reload"]).expect(0);
    let configured = ask();
    assert_eq!(runs_before(&configured), runs_before(&replaced) + 1, "{configured:#}");
    daemon.stop();
}
