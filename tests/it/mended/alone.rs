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
