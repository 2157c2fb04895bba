//! A caller's key, and retries: what runs once, what runs again, and what is said where nobody can know.

use std::process::Stdio;
use std::thread;

use plugd_tests::{Daemon, Ran, Sandbox, eventually, kill};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Operations that leave a line in `ran` each time they run.
const SHOP: &str = r#"
def declared(name, **effects):
    return {"name": name, "input_schema": {"type": "object"}, "effects": effects}

OPERATIONS = [declared("order", read_only=False), declared("put", idempotent=True)]
MANIFEST = {"features": {"concurrency": 4}}

def handle(operation, arguments, params):
    mark("ran", operation)
    attempt = len(open("ran").read().splitlines())
    if arguments.get("die") == "always" or arguments.get("die") == attempt:
        os._exit(1)
    if arguments.get("fail") == "always" or arguments.get("fail") == attempt:
        raise Failure(arguments["why"], code=arguments.get("code", 1), retryable=arguments.get("retryable", False))
    while arguments.get("waits") and not os.path.exists("go"):
        time.sleep(0.01)
    return {"data": {"run": attempt, "key": params["context"].get("idempotency_key")}}
"#;

const QUICK: &str = "restart = { backoff = \"20ms\" }\n";

fn shop() -> Sandbox {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("shop", SHOP);
    sandbox.configure(&format!("{table}{QUICK}"));
    sandbox
}

fn runs(sandbox: &Sandbox) -> usize {
    sandbox.read("plugins/shop/ran").lines().count()
}

fn call(sandbox: &Sandbox, args: &[&str]) -> Ran {
    sandbox.plugd(&[&["--output", "json", "call", "--timeout", "60s"], args].concat())
}

fn kill_daemon(daemon: Daemon<'_>) {
    kill(daemon.pid(), Signal::KILL);
    let mut daemon = daemon;
    daemon.wait();
}

#[test]
fn c153_a_crash_in_mid_call_runs_an_order_once_and_a_put_twice() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let failed = call(&sandbox, &["shop.order", "die=always"]).expect(6).json();
    assert_eq!(
        (&failed["error"]["code"], &failed["error"]["outcome"]),
        (&json!(6001), &json!("unknown")),
        "{failed:#}"
    );
    assert_eq!(runs(&sandbox), 1, "it may have ordered: it does not do so again");
    assert_eq!(failed["meta"]["attempt"], 1, "{failed:#}");

    let put = call(&sandbox, &["shop.put", "die:=2"]).expect(0).json();
    assert_eq!((&put["data"]["run"], &put["meta"]["attempt"]), (&json!(3), &json!(2)), "{put:#}");
    daemon.stop();
}

#[test]
fn c154_only_a_crash_and_what_the_plugin_calls_retryable_are_tried_again() {
    for (arguments, expected, code) in [
        (&["why=no stock", "fail:=1"][..], 1, 1),
        (&["why=a bad parameter", "fail:=1", "code:=-32602"], 1, 1),
        (&["why=try again", "fail:=1", "retryable:=true"], 2, 0),
        (&["die:=1"], 2, 0),
    ] {
        let sandbox = shop();
        let daemon = sandbox.serve();
        let result = call(&sandbox, &[&["shop.put"], arguments].concat()).expect(code).json();
        assert_eq!(runs(&sandbox), expected, "{arguments:?}: {result:#}");
        assert_eq!(result["meta"]["attempt"], expected, "{result:#}");
        if code == 1 {
            let message = result["error"]["message"].as_str().expect("text");
            assert!(arguments[0].ends_with(message), "the original error: {result:#}");
        }
        daemon.stop();
    }
    let sandbox = shop();
    let daemon = sandbox.serve();
    let again = call(&sandbox, &["shop.put", "fail=always", "why=busy", "retryable:=true"]).expect(1).json();
    assert_eq!((runs(&sandbox), &again["error"]["message"]), (2, &json!("busy")), "once more, not for ever");
    daemon.stop();
}

#[test]
fn r_x11_a_repeat_with_the_same_key_gets_the_same_answer_and_runs_nothing() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let keyed = |args: &[&str]| call(&sandbox, &[&["shop.order", "--key", "letter 17"], args].concat());
    let first = keyed(&["n:=1", "to=Ada"]).expect(0).json();
    assert_eq!(first["data"]["key"], "letter 17", "the plugin is told the key: {first:#}");
    let repeat = keyed(&["to=Ada", "n:=1"]).expect(0).json();
    assert_eq!(repeat["data"], first["data"], "{repeat:#}");
    assert_eq!((&repeat["meta"]["replayed"], &first["meta"]["replayed"]), (&json!(true), &Value::Null));
    assert_eq!(repeat["meta"]["answer_of"], first["meta"]["call_id"], "{repeat:#}");
    let other = keyed(&["n:=1.0", "to=Ada"]).expect(2).json();
    assert_eq!(
        (&other["error"]["code"], &other["error"]["outcome"]),
        (&json!(1008), &json!("not_run")),
        "{other:#}"
    );
    let other = call(&sandbox, &["shop.put", "--key", "letter 17", "n:=1", "to=Ada"]).expect(2).json();
    assert_eq!(other["error"]["name"], "key_conflict", "{other:#}");

    kill_daemon(daemon);
    let daemon = sandbox.serve();
    let after = keyed(&["n:=1", "to=Ada"]).expect(0).json();
    assert_eq!((&after["data"], &after["meta"]["replayed"]), (&first["data"], &json!(true)), "{after:#}");
    assert_eq!(runs(&sandbox), 1);

    let own = call(&sandbox, &["shop.order", "--key", "k2", "fail:=2", "why=no stock"]).expect(1).json();
    let repeat = call(&sandbox, &["shop.order", "--key", "k2", "fail:=2", "why=no stock"]).expect(1).json();
    for part in ["code", "message", "outcome"] {
        assert_eq!(repeat["error"][part], own["error"][part], "its own failure is an answer, too");
    }
    assert_eq!(runs(&sandbox), 2);
    daemon.stop();
}

/// A daemon that is killed while a call with a key runs.
#[test]
fn what_nobody_can_know_is_said_and_never_run_again() {
    let sandbox = shop();
    for (operation, code) in [("shop.order", 6), ("shop.put", 0)] {
        let daemon = sandbox.serve();
        let before = runs(&sandbox);
        let args = [operation, "--key", "k1", "waits:=true", "--timeout", "60s"];
        let mut caller = sandbox.command(&[&["call"], &args[..]].concat());
        let caller = caller.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut caller = caller.expect("plugd runs");
        eventually("it runs", || runs(&sandbox) == before + 1);
        kill_daemon(daemon);
        caller.wait().expect("the caller ends");
        sandbox.write("plugins/shop/go", "");

        let daemon = sandbox.serve();
        // The key is the caller's: another operation would be another call with it.
        for _ in 0..2 {
            let repeat =
                sandbox.plugd(&[&["--output", "json", "call"], &args[..]].concat()).expect(code).json();
            if code == 6 {
                let error = &repeat["error"];
                assert_eq!(
                    (&error["code"], &error["outcome"]),
                    (&json!(6011), &json!("unknown")),
                    "{repeat:#}"
                );
                assert_eq!(runs(&sandbox), before + 1, "it is not run again");
                let message = error["message"].as_str().expect("a message");
                let named = message.split(' ').nth(2).expect("the call is named");
                let shown = daemon.json(&["calls", "show", named]);
                assert_eq!(
                    (&shown["error"]["code"], &shown["key"]),
                    (&json!(6011), &json!("k1")),
                    "{shown:#}"
                );
                assert!(
                    shown["given"].to_string().contains("waits"),
                    "what it was to do is known: {shown:#}"
                );
            } else {
                assert_eq!(repeat["status"], "ok", "a second run does no harm: {repeat:#}");
                assert_eq!(runs(&sandbox), before + 2, "and then it is answered");
            }
        }
        daemon.stop();
        std::fs::remove_file(sandbox.path().join("plugins/shop/go")).expect("it was there");
        std::fs::remove_dir_all(sandbox.path().join("state")).expect("keys are forgotten");
    }
}

/// Whoever has lost its answer, and asks again: plugd did not end, so how the call ended is known.
#[test]
fn a_caller_that_goes_away_in_mid_call_is_told_later_that_it_was_cancelled() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let mut command = sandbox.command(&["call", "shop.order", "--key", "k", "waits:=true"]);
    let mut caller = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("plugd runs");
    eventually("it runs", || runs(&sandbox) == 1);
    caller.kill().expect("it was alive");
    caller.wait().expect("it ends");
    sandbox.write("plugins/shop/go", "");
    let repeat = call(&sandbox, &["shop.order", "--key", "k", "waits:=true"]).expect(5).json();
    let error = &repeat["error"];
    assert_eq!((&error["code"], &error["outcome"]), (&json!(5003), &json!("unknown")), "{repeat:#}");
    assert_eq!((&repeat["meta"]["replayed"], runs(&sandbox)), (&json!(true), 1), "{repeat:#}");
    daemon.stop();
}

#[test]
fn two_calls_with_one_key_at_once_run_once() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let keyed = || call(&sandbox, &["shop.order", "--key", "k", "waits:=true"]).expect(0).json();
    let (one, other) = thread::scope(|scope| {
        let (one, other) = (scope.spawn(keyed), scope.spawn(keyed));
        let waiting = || daemon.json(&["status"])["daemon"]["calls"].as_array().map_or(0, Vec::len);
        eventually("both have come", || waiting() == 2 && runs(&sandbox) == 1);
        sandbox.write("plugins/shop/go", "");
        (one.join().expect("it ends"), other.join().expect("it ends"))
    });
    assert_eq!(runs(&sandbox), 1);
    assert_eq!(one["data"], other["data"]);
    let replayed = [&one, &other].map(|result| result["meta"]["replayed"] == true);
    assert!(replayed.contains(&true) && replayed.contains(&false), "{one:#} {other:#}");
    daemon.stop();
}

#[test]
fn a_call_that_did_not_run_leaves_its_key_free() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    daemon.plugd(&["stop", "shop"]).expect(0);
    let refused = call(&sandbox, &["shop.order", "--key", "k"]).expect(6).json();
    assert_eq!(refused["error"]["outcome"], "not_run", "{refused:#}");
    daemon.plugd(&["start", "shop"]).expect(0);
    let ran = call(&sandbox, &["shop.order", "--key", "k"]).expect(0).json();
    assert_eq!((&ran["meta"]["replayed"], runs(&sandbox)), (&Value::Null, 1), "{ran:#}");
    daemon.stop();
}

#[test]
fn a_key_is_a_short_line_of_text() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    for key in ["", "a\nb", "a\u{1b}[2J", &"k".repeat(257)] {
        let refused = call(&sandbox, &["shop.order", "--key", key]).expect(2).json();
        assert_eq!(refused["error"]["code"], 1001, "{key:?}: {refused:#}");
    }
    call(&sandbox, &["shop.order", "--key", &"钥".repeat(85)]).expect(0);
    assert_eq!(runs(&sandbox), 1);
    daemon.stop();
}

/// The file of a plugd that is newer than this one is left alone.
#[test]
fn without_a_store_a_key_promises_nothing_and_calls_without_one_go_on() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    call(&sandbox, &["shop.put"]).expect(0);
    daemon.stop();
    let version = "import sqlite3\nfile = sqlite3.connect('state/plugd.db')\nfile.execute('pragma user_version = 9999')\nfile.commit()\n";
    sandbox.write("newer.py", version);
    let ran = std::process::Command::new("python3").arg("newer.py").current_dir(sandbox.path()).status();
    assert!(ran.expect("python runs").success());

    let daemon = sandbox.serve();
    let refused = call(&sandbox, &["shop.order", "--key", "k"]).expect(9).json();
    let error = &refused["error"];
    assert_eq!(
        (&error["name"], &error["outcome"]),
        (&json!("not_recorded"), &json!("not_run")),
        "{refused:#}"
    );
    assert_eq!(runs(&sandbox), 1, "only the first one ran");
    call(&sandbox, &["shop.order"]).expect(0);
    let put = call(&sandbox, &["shop.put", "--key", "k"]).expect(0).json();
    let warning = put["meta"]["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("a repeat with this key runs again"), "{put:#}");
    let status = daemon.json(&["status"]);
    assert!(status["daemon"]["not_recorded"].is_string(), "{status:#}");
    let findings = daemon.json(&["doctor"]);
    let told = |finding: &Value| {
        finding["message"].as_str().is_some_and(|text| text.starts_with("calls are not recorded"))
    };
    assert!(findings["findings"].as_array().expect("a list").iter().any(told), "{findings:#}");

    // Once the file is out of the way a new one is begun, without a restart.
    std::fs::rename(sandbox.path().join("state/plugd.db"), sandbox.path().join("newer.db")).expect("moved");
    eventually("calls are recorded again", || daemon.json(&["status"])["daemon"]["not_recorded"].is_null());
    call(&sandbox, &["shop.order", "--key", "k"]).expect(0);
    daemon.stop();
}

/// Whoever deletes the record under a daemon takes the keys with it: that is said, and later ones are kept.
#[test]
fn a_record_that_is_deleted_under_the_daemon_is_begun_anew_and_that_is_said() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    call(&sandbox, &["shop.order", "--key", "before"]).expect(0);
    for name in ["plugd.db", "plugd.db-wal", "plugd.db-shm", "plugd.db.owners"] {
        std::fs::remove_file(sandbox.path().join("state").join(name)).expect("it was there");
    }
    let first = call(&sandbox, &["shop.order", "--key", "after"]).expect(0).json();
    let findings = daemon.json(&["doctor"]);
    let told = |finding: &Value| {
        finding["message"].as_str().is_some_and(|text| text.contains("a new one was begun"))
    };
    assert!(findings["findings"].as_array().expect("a list").iter().any(told), "{findings:#}");
    daemon.stop();
    let daemon = sandbox.serve();
    let again = call(&sandbox, &["shop.order", "--key", "after"]).expect(0).json();
    assert_eq!(again["data"], first["data"], "{again:#}");
    daemon.stop();
}

/// With its key a failure is final, whatever it was called when it happened.
#[test]
fn a_failure_that_is_told_again_asks_for_a_new_key_and_not_for_patience() {
    let sandbox = shop();
    let daemon = sandbox.serve();
    let order = ["shop.order", "die=always", "--key", "k"];
    let first = call(&sandbox, &order).expect(6).json();
    assert_eq!(first["error"]["retryable"], false, "the first says so, too: {first:#}");
    assert!(first["error"]["hint"].as_str().is_some_and(|hint| hint.contains("a new key")), "{first:#}");
    let repeat = call(&sandbox, &order).expect(6).json();
    let error = &repeat["error"];
    assert_eq!((&error["code"], &error["message"]), (&json!(6001), &first["error"]["message"]), "{repeat:#}");
    assert_eq!((&error["retryable"], runs(&sandbox)), (&json!(false), 1), "{repeat:#}");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("a new key")), "{repeat:#}");
    daemon.stop();
}
