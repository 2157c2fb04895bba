//! Calls in the background: started, followed, waited for, cancelled, and what is left of them.

use plugd_tests::{Daemon, Ran, Sandbox, eventually, kill};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A long-running operation that tells how far it is and waits for the file `go`.
const REPORTS: &str = r#"
OPERATIONS = [{"name": "make", "long_running": True, "input_schema": {"type": "object"}}]
MANIFEST = {"features": {"concurrency": 4}}

def handle(operation, arguments, params):
    call_id = params["context"]["call_id"]
    mark("ran", call_id)
    send({"jsonrpc": "2.0", "method": "progress", "params": {"call_id": call_id, "done": 1, "total": 4, "message": "reading"}})
    while not os.path.exists("go"):
        time.sleep(0.01)
    text = {"text": "x" * arguments["size"]} if "size" in arguments else {}
    return {"data": {"pages": arguments.get("pages", 3), **text}}
"#;

fn reports() -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("reports", REPORTS);
    sandbox.configure(&format!("{table}drain_timeout = \"200ms\"\nshutdown_timeout = \"200ms\"\n"));
    sandbox
}

fn runs(sandbox: &Sandbox) -> usize {
    sandbox.read("plugins/reports/ran").lines().count()
}

fn call(sandbox: &Sandbox, args: &[&str]) -> Ran {
    sandbox.plugd(&[&["--output", "json", "call", "reports.make"], args].concat())
}

/// Starts a job and waits until it runs; gives its id.
fn started(sandbox: &Sandbox, args: &[&str]) -> String {
    let before = runs(sandbox);
    let pending = call(sandbox, args).expect(0).json();
    assert_eq!(pending["status"], "pending", "{pending:#}");
    assert_eq!(pending["meta"]["operation"], "reports.make", "{pending:#}");
    eventually("it runs", || runs(sandbox) == before + 1);
    pending["meta"]["call_id"].as_str().expect("an id").to_owned()
}

fn job(daemon: &Daemon<'_>, id: &str) -> Value {
    let report = daemon.json(&["jobs"]);
    let jobs = report["jobs"].as_array().expect("a list");
    jobs.iter()
        .find(|job| job["call_id"] == id)
        .unwrap_or_else(|| panic!("{id} is not listed: {report:#}"))
        .clone()
}

#[test]
fn r_x15_a_job_outlives_its_caller_and_tells_how_far_it_is() {
    let sandbox = reports();
    let daemon = sandbox.serve();
    // `plugd call` has ended when this comes back.
    let id = started(&sandbox, &["pages:=7"]);
    eventually("it tells how far it is", || job(&daemon, &id)["progress"]["done"] == 1.0);
    let running = job(&daemon, &id);
    assert_eq!(
        (&running["status"], &running["operation"]),
        (&json!("pending"), &json!("reports.make")),
        "{running:#}"
    );
    assert_eq!(
        (&running["progress"]["total"], &running["progress"]["message"]),
        (&json!(4.0), &json!("reading"))
    );
    let late = daemon.plugd(&["--output", "json", "jobs", "wait", &id, "--timeout", "50ms"]).json();
    assert_eq!((&late["status"], &late["meta"]["call_id"]), (&json!("pending"), &json!(id)), "{late:#}");

    sandbox.write("plugins/reports/go", "");
    let result = daemon.plugd(&["--output", "json", "jobs", "wait", &id]).expect(0).json();
    assert_eq!((&result["status"], &result["data"]), (&json!("ok"), &json!({"pages": 7})), "{result:#}");
    assert_eq!(result["meta"]["call_id"], id.as_str(), "{result:#}");
    let ended = job(&daemon, &id);
    assert_eq!(
        (&ended["status"], &ended["summary"]),
        (&json!("ok"), &json!("an object with 1 key: pages")),
        "{ended:#}"
    );
    assert_eq!(daemon.json(&["jobs", "--running"])["jobs"], json!([]));
    let row = daemon.json(&["calls", "show", &id]);
    assert_eq!(row["call"]["status"], "ok", "{row:#}");
    daemon.stop();

    let daemon = sandbox.serve();
    let kept = daemon.plugd(&["--output", "json", "jobs", "wait", &id]).expect(0).json();
    assert_eq!(kept["data"], json!({"pages": 7}), "its result outlives the daemon: {kept:#}");
    let waited = call(&sandbox, &["--wait"]).expect(0).json();
    assert_eq!(waited["data"], json!({"pages": 3}), "--wait: as any call: {waited:#}");
    let unknown = daemon.plugd(&["--output", "json", "jobs", "wait", "nobody"]).expect(4).json();
    assert_eq!(unknown["error"]["code"], 1005, "{unknown:#}");
    daemon.stop();
}

#[test]
fn a_job_is_cancelled_by_its_id() {
    let sandbox = reports();
    let daemon = sandbox.serve();
    let id = started(&sandbox, &[]);
    daemon.plugd(&["jobs", "cancel", &id]).expect(0);
    let result = daemon.plugd(&["--output", "json", "jobs", "wait", &id]).expect(5).json();
    assert_eq!(
        (&result["status"], &result["error"]["code"]),
        (&json!("cancelled"), &json!(5003)),
        "{result:#}"
    );
    assert_eq!(job(&daemon, &id)["status"], "cancelled");
    sandbox.write("plugins/reports/go", "");
    daemon.stop();
}

#[test]
fn a_job_that_runs_when_the_daemon_goes_is_ended_by_name() {
    let sandbox = reports();
    let mut daemon = sandbox.serve();
    let id = started(&sandbox, &[]);
    daemon.plugd(&["shutdown"]).expect(0);
    daemon.wait();
    drop(daemon);
    let daemon = sandbox.serve();
    let ended = job(&daemon, &id);
    assert_eq!(ended["status"], "error", "{ended:#}");
    let result = daemon.plugd(&["--output", "json", "jobs", "wait", &id]).expect(6).json();
    assert_eq!(
        (&result["error"]["name"], &result["error"]["outcome"]),
        (&json!("shutting_down"), &json!("unknown"))
    );
    daemon.stop();
}

#[test]
fn a_job_of_a_daemon_that_was_killed_says_that_its_outcome_is_unknown() {
    let sandbox = reports();
    let mut daemon = sandbox.serve();
    let id = started(&sandbox, &["--key", "report-1"]);
    let again = call(&sandbox, &["--key", "report-1"]).expect(0).json();
    assert_eq!(
        (&again["status"], &again["meta"]["call_id"]),
        (&json!("pending"), &json!(id)),
        "the same job: {again:#}"
    );
    kill(daemon.pid(), Signal::KILL);
    daemon.wait();
    drop(daemon);
    sandbox.write("plugins/reports/go", "");

    let daemon = sandbox.serve();
    let ended = job(&daemon, &id);
    assert_eq!(ended["status"], "error", "{ended:#}");
    let shown = daemon.json(&["calls", "show", &id]);
    assert_eq!((&shown["error"]["code"], &shown["key"]), (&json!(6011), &json!("report-1")), "{shown:#}");
    let result = daemon.plugd(&["--output", "json", "jobs", "wait", &id]).expect(6).json();
    assert_eq!(
        (&result["error"]["code"], &result["error"]["outcome"]),
        (&json!(6011), &json!("unknown")),
        "{result:#}"
    );
    let repeat = call(&sandbox, &["--key", "report-1"]).expect(6).json();
    assert_eq!((&repeat["error"]["code"], runs(&sandbox)), (&json!(6011), 1), "{repeat:#}");
    daemon.stop();
}

/// One that waits for its turn has not run, and that is known.
#[test]
fn a_job_that_was_never_handed_over_has_not_run_when_the_daemon_is_killed() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}concurrency = 1\n", sandbox.python("reports", REPORTS)));
    let mut daemon = sandbox.serve();
    let ran = started(&sandbox, &[]);
    let waits = call(&sandbox, &["pages:=7"]).expect(0).json();
    let waited = waits["meta"]["call_id"].as_str().expect("an id").to_owned();
    kill(daemon.pid(), Signal::KILL);
    daemon.wait();
    drop(daemon);

    let daemon = sandbox.serve();
    for (id, code, outcome) in [(&ran, 6011, "unknown"), (&waited, 6008, "not_run")] {
        let result = daemon.plugd(&["--output", "json", "jobs", "wait", id]).json();
        let error = &result["error"];
        assert_eq!((&error["code"], &error["outcome"]), (&json!(code), &json!(outcome)), "{result:#}");
    }
    let shown = daemon.json(&["calls", "show", &waited]);
    assert!(
        shown["given"].to_string().contains("pages") && shown["error"]["outcome"] == "not_run",
        "{shown:#}"
    );
    daemon.stop();
}

/// Row X15: what an operation gets from its declaration alone. The plugin's code knows nothing of it.
#[test]
fn r_x15_a_plugin_of_fifteen_lines_gets_its_policies_from_its_manifest() {
    const PLUGIN: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
s='"input_schema":{"type":"object"}'
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
  *'"method":"describe"'*) answer "{\"protocol\":1,\"name\":\"small\",\"version\":\"1\",\"operations\":[
{\"name\":\"drop\",\"effects\":{\"destructive\":true},$s},{\"name\":\"slow\",\"timeout_ms\":200,$s},
{\"name\":\"once\",\"effects\":{\"idempotent\":true},$s},{\"name\":\"make\",\"long_running\":true,$s}]}" | tr -d '\n'; echo ;;
  *'"operation":"slow"'*) ;;
  *'"operation":"once"'*) [ -e tried ] || { touch tried; exit 1; }; answer '{"data":"done"}' ;;
  *'"method":"call"'*) answer '{"data":"done"}' ;;
  *'"method":'*) [ "$id" = "$line" ] || answer '{}' ;;
  esac
done
"#;
    assert!(PLUGIN.lines().count() <= 15);
    let sandbox = Sandbox::new("");
    sandbox.program("plugins/small/main.sh", PLUGIN);
    sandbox.configure("[plugins.small]\ncommand = [\"sh\", \"main.sh\"]\ncwd = \"plugins/small\"\nrestart = { backoff = \"20ms\" }\n");
    let daemon = sandbox.serve();
    let call = |operation: &str| daemon.plugd(&["--output", "json", "call", operation]);
    assert_eq!(call("small.drop").expect(8).json()["status"], "needs_confirmation");
    assert_eq!(daemon.json(&["call", "small.drop", "--yes"])["data"], "done");
    assert_eq!(call("small.slow").expect(5).json()["error"]["name"], "timed_out");
    let retried = call("small.once").expect(0).json();
    assert_eq!((&retried["data"], &retried["meta"]["attempt"]), (&json!("done"), &json!(2)), "{retried:#}");
    let pending = call("small.make").expect(0).json();
    assert_eq!(pending["status"], "pending", "{pending:#}");
    let id = pending["meta"]["call_id"].as_str().expect("an id");
    assert_eq!(daemon.plugd(&["--output", "json", "jobs", "wait", id]).expect(0).json()["data"], "done");
    daemon.stop();
}

/// Its result is there once it has ended, and not only for whoever waits.
#[test]
fn what_a_job_gave_can_be_read_though_nobody_waited_for_it() {
    let sandbox = reports();
    let daemon = sandbox.serve();
    let id = started(&sandbox, &["pages:=7", "size:=200000"]);
    let early = daemon.plugd(&["--output", "json", "result", &id]).expect(4).json();
    let message = early["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("still runs"), "{early:#}");
    sandbox.write("plugins/reports/go", "");
    eventually("it ends", || job(&daemon, &id)["status"] == "ok");
    let part = daemon.plugd(&["--output", "json", "result", &format!("{id}/pages")]).expect(0).json();
    assert_eq!(part["data"], 7, "{part:#}");
    daemon.stop();
}

#[test]
fn a_wait_of_no_time_answers_at_once_with_how_it_is() {
    let sandbox = reports();
    let daemon = sandbox.serve();
    let id = started(&sandbox, &[]);
    let wait = || sandbox.plugd(&["--output", "json", "jobs", "wait", &id, "--timeout", "0s"]);
    assert_eq!(wait().expect(5).json()["status"], "pending");
    sandbox.write("plugins/reports/go", "");
    sandbox.plugd(&["jobs", "wait", &id]).expect(0);
    assert_eq!(wait().expect(0).json()["data"]["pages"], 3);
    daemon.stop();
    assert_eq!(wait().expect(0).json()["data"]["pages"], 3, "also of what is kept");
}
