//! One executable, called without any configuration: it is started once, described and called.

use plugd_tests::{Sandbox, eventually};
use serde_json::Value;

/// Notes each start and each request.
const PLUGIN: &str = r#"
OPERATIONS = [{"name": "add", "input_schema": {"type": "object", "required": ["n"],
    "properties": {"n": {"type": "integer"}}}}]
mark("starts", str(os.getpid()))

def handle(operation, arguments, params):
    return {"data": [os.getpid(), arguments["n"]]}
"#;

fn lines(sandbox: &Sandbox, name: &str) -> Vec<String> {
    sandbox.read(name).lines().map(str::to_owned).collect()
}

#[test]
fn a_path_that_is_called_is_started_once_and_described_before() {
    let sandbox = Sandbox::new("");
    sandbox.python("fp", PLUGIN);
    // Words need the schema before the call, JSON does not.
    for (round, arguments) in [&["n=3"][..], &["--json", r#"{"n":3}"#]].into_iter().enumerate() {
        let call = [&["--output", "data", "call", "plugins/fp/main.py", "add"], arguments].concat();
        let data: Value = serde_json::from_str(&sandbox.plugd(&call).expect(0).stdout).expect("JSON");
        let starts = lines(&sandbox, "plugins/fp/starts");
        assert_eq!(starts.len(), round + 1, "{starts:?}");
        assert_eq!((data[0].to_string(), &data[1]), (starts[round].clone(), &3.into()));
    }
    // One that is not called after all is no longer there, either.
    sandbox.plugd(&["call", "plugins/fp/main.py", "add", "n=three"]).expect(3);
    assert_eq!(lines(&sandbox, "plugins/fp/starts").len(), 3);
    eventually("nothing is left", || sandbox.processes_in("plugins").is_empty());
}

#[test]
fn a_state_folder_that_is_a_file_is_found_by_the_check() {
    let sandbox = Sandbox::new("");
    sandbox.write("taken", "");
    for state_dir in ["taken", "taken/below"] {
        sandbox.write("plugd.toml", &format!("[daemon]\nstate_dir = \"{state_dir}\"\n"));
        let check = sandbox.plugd(&["config", "check"]).expect(2);
        assert!(check.stderr.contains("/taken is a file"), "{}", check.stderr);
    }
    sandbox.write("plugd.toml", "[daemon]\nstate_dir = \"yet-to-be-made/state\"\n");
    sandbox.plugd(&["config", "check"]).expect(0);
}

#[test]
fn a_mistake_on_the_command_line_is_one_readable_line_in_json() {
    let sandbox = Sandbox::new("");
    let error = sandbox.plugd(&["--output", "json", "call"]).expect(2).json()["error"].clone();
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("were not provided: <") && !message.contains(":;"), "{message}");
}
