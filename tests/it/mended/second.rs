//! What one caller gave stays with them, what failed is not called well, and advice works as it is given.

use plugd_tests::{Sandbox, eventually};
use serde_json::json;

const SLOW: &str = r#"
OPERATIONS = [{"name": "slow", "input_schema": {}, "long_running": True}]

def handle(operation, arguments, params):
    time.sleep(60)
"#;

#[test]
fn a_profile_stops_no_call_that_it_may_not_see() {
    let sandbox = Sandbox::new("");
    let callers = "[callers.hello]\nallow = [\"hello.*\"]\n[callers.slow]\nallow = [\"fp.*\"]\n";
    sandbox.configure(&format!("{}{callers}", sandbox.python("fp", &format!("import time\n{SLOW}"))));
    let daemon = sandbox.serve();
    let job = daemon.json(&["call", "fp.slow"]);
    let id = job["meta"]["call_id"].as_str().unwrap_or_else(|| panic!("no id: {job:#}"));
    let refused = |args: &[&str], exit: i32, code: u16| {
        let error =
            daemon.plugd(&[&["--output", "json"], args].concat()).expect(exit).json()["error"].clone();
        assert_eq!(error["code"], code, "{args:?}: {error:#}");
    };
    for (caller, exit, code) in [("hello", 7, 7004), ("nobody", 4, 1010)] {
        refused(&["--as", caller, "cancel", id], exit, code);
        refused(&["--as", caller, "jobs", "cancel", id], exit, code);
    }
    let running = daemon.json(&["jobs", "--running"]);
    assert_eq!(running["jobs"].as_array().map(Vec::len), Some(1), "{running:#}");
    refused(&["--as", "slow", "cancel", "0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10"], 4, 1005);
    daemon.plugd(&["--as", "slow", "cancel", id]).expect(0);
    eventually("it is stopped", || daemon.json(&["jobs", "--running"])["jobs"] == json!([]));
    daemon.stop();
}

#[test]
fn the_words_of_a_plugin_that_died_are_those_of_that_call() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python(
        "fp",
        r#"
sys.stderr.write("warming up\\n")
sys.stderr.flush()

def handle(operation, arguments, params):
    if "say" in arguments:
        sys.stderr.write(arguments["say"] + "\\n")
        sys.stderr.flush()
    if arguments.get("die"):
        os._exit(7)
    return {"data": 1}
"#
        .replace("\\\\", "\\")
        .as_str(),
    );
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let message = |args: &[&str]| {
        let error = daemon.json(&[&["call", "fp.echo"], args].concat())["error"].clone();
        error["message"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(message(&["say=looking up patient-4711"]), "");
    let told = message(&["die:=true"]);
    assert!(told.contains("exit status 7; it said on stderr: warming up"), "{told}");
    // Its operator reads all of it.
    assert!(daemon.status("fp")["last_exit"]["stderr_tail"].to_string().contains("patient-4711"));
    let told = message(&["say=no such table", "die:=true"]);
    assert!(told.ends_with("exit status 7; it said on stderr: no such table"), "{told}");
    // Nor is it told to whoever waits for it in vain.
    for _ in 0..6 {
        let told = message(&["--timeout", "300ms"]);
        assert!(!told.contains("patient") && !told.contains("no such table"), "{told}");
        message(&["say=looking up patient-4711", "die:=true", "--timeout", "300ms"]);
    }
    for args in [&["call", "fp.echo", "--explain"][..], &["list"], &["tools", "--all"]] {
        let told = daemon.json(args).to_string();
        assert!(!told.contains("patient"), "{args:?}: {told}");
    }
    daemon.stop();
}
