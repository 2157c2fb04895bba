//! Calls in the background, and how far a call is.

use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

use crate::asking::Terminal;

/// Works until it is let go, telling how far it is.
const WORKER: &str = r#"
def progress(params, done, message):
    send({"jsonrpc": "2.0", "method": "progress", "params": {"call_id": params["context"]["call_id"],
        "done": done, "total": 4, "message": message}})

def handle(operation, arguments, params):
    mark("began", params["context"]["call_id"])
    progress(params, 2, "half\x1b[2J way")
    while not os.path.exists("go"):
        time.sleep(0.01)
    progress(params, 3, "nearly")
    if arguments.get("fail"):
        raise Failure("it broke")
    if operation == "rows":
        return {"data": list(range(30000))}
    return {"data": {"made": 4}, "summary": "4 made"}

OPERATIONS = [{"name": name, "input_schema": {"type": "object", "properties": {"fail": {"type": "boolean"}}},
    "long_running": name != "short"} for name in ("build", "short", "rows")]
MANIFEST = {"features": {"concurrency": 8, "cancel": True}}
"#;

fn worker() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("work", WORKER));
    sandbox
}

fn begin(daemon: &Daemon<'_>, words: &[&str]) -> String {
    let result =
        daemon.plugd(&[&["--output", "json", "call", "work.build"], words].concat()).expect(0).json();
    assert_eq!((&result["status"], &result["data"]), (&json!("pending"), &Value::Null), "{result:#}");
    result["meta"]["call_id"].as_str().unwrap_or_else(|| panic!("{result:#}")).to_owned()
}

fn job(daemon: &Daemon<'_>, id: &str) -> Value {
    let report = daemon.json(&["jobs"]);
    let jobs = report["jobs"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    jobs.iter().find(|job| job["call_id"] == id).unwrap_or_else(|| panic!("{id}: {report:#}")).clone()
}

#[test]
fn a_job_is_begun_looked_at_waited_for_and_its_end_kept() {
    let sandbox = worker();
    let daemon = sandbox.serve();
    let text = daemon.plugd(&["call", "work.build"]).expect(0).stdout;
    assert!(text.starts_with("work.build runs in the background as "), "{text}");
    assert!(text.contains("\n  plugd jobs wait ") && text.lines().count() == 2, "it is said once: {text}");
    let (good, bad) = (begin(&daemon, &[]), begin(&daemon, &["fail=true"]));
    eventually("it tells how far it is", || job(&daemon, &good)["progress"]["done"] == 2.0);
    assert_eq!(daemon.json(&["jobs", "--running"])["jobs"].as_array().map(Vec::len), Some(3));
    let table = daemon.plugd(&["jobs"]).expect(0).stdout;
    assert!(table.contains(&good) && table.contains("running") && table.contains("2 of 4"), "{table}");

    // A wait that is too short says that it runs on; no number of it, and not the job's end.
    let waited =
        daemon.plugd(&["--output", "json", "jobs", "wait", &good, "--timeout", "100ms"]).expect(5).json();
    assert_eq!(waited["status"], "pending", "{waited:#}");

    sandbox.write("plugins/work/go", "");
    let ended = daemon.plugd(&["--output", "data", "jobs", "wait", &good]).expect(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("{\"made\": 4}\n", ""));
    let failed = daemon.plugd(&["--output", "json", "jobs", "wait", &bad]).expect(1).json();
    assert_eq!(failed["error"]["message"], "it broke", "{failed:#}");
    assert_eq!(
        (&job(&daemon, &good)["status"], &job(&daemon, &bad)["status"]),
        (&json!("ok"), &json!("error"))
    );
    assert_eq!(job(&daemon, &good)["summary"], "4 made");
    daemon.plugd(&["jobs", "wait", "0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10"]).expect(4);
    daemon.stop();
    // How it ended is known without a daemon, and in the next one.
    let kept = sandbox.plugd(&["--output", "data", "jobs", "wait", &good]).expect(0);
    assert_eq!(kept.stdout, "{\"made\": 4}\n");
    assert_eq!(sandbox.json(&["jobs"])["jobs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_job_is_cancelled_and_can_be_waited_for_from_the_start() {
    let sandbox = worker();
    let daemon = sandbox.serve();
    let id = begin(&daemon, &[]);
    eventually("it runs", || sandbox.read("plugins/work/began").contains(&id));
    daemon.plugd(&["jobs", "cancel", &id]).expect(0);
    let ended = daemon.plugd(&["--output", "json", "jobs", "wait", &id]).expect(5).json();
    assert_eq!(ended["status"], "cancelled", "{ended:#}");
    daemon.plugd(&["jobs", "cancel", &id]).expect(4);
    daemon.plugd(&["jobs", "--running", "wait", &id]).expect(2);
    sandbox.write("plugins/work/go", "");
    assert_eq!(daemon.json(&["call", "--wait", "work.build"])["data"], json!({"made": 4}));
    daemon.stop();
    // Without a daemon nothing could go on in the background.
    assert_eq!(sandbox.json(&["call", "work.build"])["data"], json!({"made": 4}));
}

/// What was drawn on the last line, and that it was taken away.
#[track_caller]
fn expect_bar(screen: &str) {
    assert!(
        screen.contains("[##########..........]  50 %") && screen.contains("half\\u{1b}[2J way"),
        "{screen:?}"
    );
    assert!(screen.trim_end().ends_with("\r\u{1b}[K"), "it is gone in the end: {screen:?}");
}

#[test]
fn how_far_a_call_is_stands_on_the_last_line_of_a_terminal_until_it_ends() {
    let sandbox = worker();
    for daemon in [None, Some(sandbox.serve())] {
        let args = ["--output", "data", "call", "work.short"];
        let terminal = Terminal::run(&sandbox, &args, &[]);
        eventually("the bar is drawn", || terminal.screen().contains("50 %"));
        sandbox.write("plugins/work/go", "");
        assert_eq!(terminal.data(), json!({"made": 4}));
        expect_bar(&sandbox.read("terminal/screen"));
        // Where nobody looks, nothing is drawn.
        let ran = sandbox.plugd(&args).expect(0);
        assert_eq!(ran.stderr, "");
        let quiet = Terminal::run(&sandbox, &[&args[..], &["--quiet"]].concat(), &[]);
        assert_eq!(quiet.data(), json!({"made": 4}));
        assert_eq!(sandbox.read("terminal/screen"), "");
        std::fs::remove_file(sandbox.path().join("plugins/work/go")).expect("it was there");
        if let Some(daemon) = daemon {
            daemon.stop();
        }
    }
}

#[test]
fn how_far_a_job_is_is_drawn_while_it_is_waited_for_and_ctrl_c_ends_only_that() {
    let sandbox = worker();
    let daemon = sandbox.serve();
    let id = begin(&daemon, &[]);
    eventually("it tells how far it is", || job(&daemon, &id)["progress"]["done"] == 2.0);
    // One document all the same.
    let json = ["--output", "json", "jobs", "wait", &id];
    let (code, stdout) = Terminal::run(&sandbox, &json, &[("50 %", 0.0, "\u{3}")]).end();
    let document: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    assert_eq!(
        (code, &document["status"], &document["meta"]["call_id"]),
        (130, &json!("pending"), &json!(id)),
        "{document:#}"
    );
    sandbox.write("terminal/screen", "");
    let wait = ["--output", "data", "jobs", "wait", &id];
    let (code, _) = Terminal::run(&sandbox, &wait, &[("50 %", 0.0, "\u{3}")]).end();
    assert_eq!(code, 130);
    assert!(
        sandbox.read("terminal/screen").contains("the job goes on"),
        "{}",
        sandbox.read("terminal/screen")
    );
    assert_eq!(job(&daemon, &id)["status"], "pending");
    sandbox.write("terminal/screen", "");
    let terminal = Terminal::run(&sandbox, &wait, &[]);
    eventually("the bar is drawn", || terminal.screen().contains("50 %"));
    sandbox.write("plugins/work/go", "");
    assert_eq!(terminal.data(), json!({"made": 4}));
    expect_bar(&sandbox.read("terminal/screen"));
    daemon.stop();
}

#[test]
fn scripts_get_all_of_a_job_they_waited_for_unless_they_want_pages() {
    let sandbox = worker();
    let daemon = sandbox.serve();
    sandbox.write("plugins/work/go", "");
    let begun = daemon.json(&["call", "work.rows"]);
    let id = begun["meta"]["call_id"].as_str().expect("an id");
    let length = |value: &Value| value.as_array().map(Vec::len);
    for _ in 0..2 {
        let data = daemon.plugd(&["--output", "data", "jobs", "wait", id]).expect(0);
        assert_eq!((length(&data.json()), data.stderr.as_str()), (Some(30_000), ""));
    }
    let whole = daemon.json(&["jobs", "wait", id]);
    assert_eq!((length(&whole["data"]), &whole["page"]), (Some(30_000), &Value::Null));
    let page = daemon.json(&["jobs", "wait", id, "--page"]);
    assert!(length(&page["data"]).is_some_and(|length| length < 30_000), "{:#}", page["page"]);
    assert_eq!(page["page"]["total"], 30_000, "{:#}", page["page"]);
    let text = daemon.plugd(&["jobs", "wait", id]).expect(0).stdout;
    assert!(text.contains("plugd result "), "people get pages: {text}");
    let text = daemon.plugd(&["jobs", "wait", id, "--whole"]).expect(0).stdout;
    assert!(!text.contains("plugd result "), "{text}");
    daemon.plugd(&["jobs", "wait", id, "--whole", "--page"]).expect(2);
    daemon.stop();
    let data = sandbox.plugd(&["--output", "data", "jobs", "wait", id]).expect(0);
    assert_eq!(length(&data.json()), Some(30_000), "without a daemon, too");
}

#[test]
fn where_only_data_is_printed_a_job_is_named_beside_it() {
    let sandbox = worker();
    let daemon = sandbox.serve();
    let begun = daemon.plugd(&["--output", "data", "--quiet", "call", "work.build"]).expect(0);
    assert_eq!(begun.stdout, "");
    let jobs = daemon.json(&["jobs"]);
    let id = jobs["jobs"][0]["call_id"].as_str().unwrap_or_else(|| panic!("{jobs:#}"));
    let (said, command) = begun.stderr.split_once('\n').expect("two lines");
    assert!(said.contains("runs in the background"), "{begun:?}");
    assert!(
        command.trim().starts_with("plugd --config ") && command.trim().ends_with(&format!("jobs wait {id}")),
        "it can be pasted: {begun:?}"
    );
    sandbox.write("plugins/work/go", "");
    daemon.plugd(&["--output", "data", "jobs", "wait", id]).expect(0);
    daemon.stop();
}
