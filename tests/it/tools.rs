//! What models are offered: one name and one description in every dialect, and nothing that cannot run.

mod checked;
mod names;
mod offer;

use plugd_tests::{Daemon, Ran, Sandbox};
use serde_json::Value;

/// The dialects there are.
const DIALECTS: [&str; 3] = ["openai", "anthropic", "mcp"];

/// Operations of a Python plugin, as the fixture takes them.
fn operations(declarations: &[Value]) -> String {
    let text = Value::from(declarations.to_vec()).to_string();
    format!("OPERATIONS = json.loads({text:?})\n")
}

/// The array that a program hands to a model.
#[track_caller]
fn exported(ran: Ran) -> Vec<Value> {
    let ran = ran.expect(0);
    match serde_json::from_str(&ran.stdout) {
        Ok(Value::Array(tools)) => tools,
        other => panic!("stdout is no array: {other:?}: {ran:?}"),
    }
}

/// The ids of what is offered, what plugd itself offers left out.
#[track_caller]
fn offered(daemon: &Daemon<'_>, options: &[&str]) -> Vec<String> {
    let report = daemon.json(&[&["tools"], options].concat());
    assert!(report["tools"].is_array(), "no list: {report:#}");
    ids(&report["tools"])
}

/// The ids in a list; one that is empty may be left out.
fn ids(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    let ids = all.map(|one| one["id"].as_str().expect("an id").to_owned());
    ids.filter(|id| !id.starts_with("plugd.")).collect()
}

/// Where a dialect has a name and a description.
fn told(tool: &Value) -> (&str, &str) {
    let tool = tool.get("function").unwrap_or(tool);
    let text = |key: &str| tool[key].as_str().unwrap_or_else(|| panic!("no {key}: {tool:#}"));
    (text("name"), text("description"))
}

/// A sandbox with the plugins of the given names, each offering `send_email` and `ping`.
fn mailers(names: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new("");
    let definitions = r#"
OPERATIONS = [
    {"name": "send_email", "category": "mail", "description": "Sends an email. It leaves at once.",
     "input_schema": {"type": "object", "properties": {"to": {"type": "string"}}}, "effects": {"read_only": False}},
    {"name": "ping", "description": "Says that it is there.", "input_schema": {"type": "object"}, "effects": {"read_only": True}},
]


def handle(operation, arguments, params):
    mark("called", operation)
    return {"data": {"in": os.path.basename(os.getcwd()), "pid": os.getpid()}}
"#;
    let tables: Vec<String> = names.iter().map(|name| sandbox.python(name, definitions)).collect();
    sandbox.configure(&tables.join("\n"));
    sandbox
}
