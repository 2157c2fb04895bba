//! A plugin's program replaced by one in another language: nobody above it notices.

use std::thread;

use plugd_protocol::control::CallParams;
use plugd_protocol::{CallResult, Status};
use plugd_tests::{Sandbox, eventually};
use serde_json::{Value, json};

use crate::languages::there_is;

const PYTHON: &str = r#"
MANIFEST = json.load(open("manifest.json"))

def handle(operation, arguments, params):
    mark("ran_by", "python")
    return {"data": {"id": arguments["id"], "step": "review"}, "summary": "in review"}
"#;

const NODE: &str = r#"'use strict';
const fs = require('node:fs');
const readline = require('node:readline');

function look({ arguments: { id } }) {
  fs.appendFileSync('ran_by', 'node\n');
  return { data: { id, step: 'review' }, summary: 'in review' };
}

const requests = {
  describe: () => JSON.parse(fs.readFileSync('manifest.json', 'utf8')),
  init: () => ({}),
  shutdown: () => ({}),
  call: look,
};
const input = readline.createInterface({ input: process.stdin });

input.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined || method === undefined) return;
  const known = Object.hasOwn(requests, method);
  const answer = known ? { result: requests[method](params) } : { error: { code: -32601, message: 'unknown method' } };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...answer }) + '\n');
  if (method === 'shutdown') input.close();
});
"#;

fn manifest() -> Value {
    json!({"protocol": 1, "name": "tickets", "version": "1.0.0", "features": {"concurrency": 2}, "operations": [{
        "name": "query_status", "description": "Tells how far a ticket is. Knows open ones only.",
        "input_schema": {"type": "object", "required": ["id"],
            "properties": {"id": {"type": "string", "description": "The ticket's number", "pattern": "^TK-"}}},
        "output_schema": {"type": "object", "properties": {"step": {"type": "string"}}, "required": ["step"]},
    }]})
}

/// What a session keeps of a result: all but what is of that one call.
fn kept(result: &CallResult) -> (Status, Option<&str>, Option<Value>) {
    let data = result.data.as_ref().map(|data| serde_json::from_str(data.get()).expect("JSON"));
    (result.status, result.summary.as_deref(), data)
}

/// Row L19.
#[tokio::test]
async fn r_l19_tickets_in_python_become_tickets_in_node_and_an_open_session_goes_on() {
    if !there_is("node", &["--version"]) {
        return;
    }
    let sandbox = Sandbox::new("");
    let python = sandbox.python("tickets", PYTHON);
    sandbox.write("plugins/tickets/manifest.json", &manifest().to_string());
    sandbox.write("plugins/tickets/main.js", NODE);
    sandbox.configure(&python);
    let daemon = sandbox.serve();
    let client = daemon.client().await;
    let params = CallParams::new("tickets.query_status").arguments(r#"{"id":"TK-1"}"#).expect("JSON");
    let params = CallParams { session: Some("open".to_owned()), ..params };
    let before = client.call(&params).await.expect("a result");
    assert_eq!(before.status, Status::Ok, "{before:?}");
    let told = || {
        let forms = ["openai", "anthropic", "mcp"];
        forms.map(|form| daemon.plugd(&["tools", "--for", form]).expect(0).stdout)
    };
    let tools = told();
    let ran_by = || sandbox.read("plugins/tickets/ran_by").lines().last().unwrap_or_default().to_owned();
    assert_eq!(ran_by(), "python");

    sandbox.configure(&python.replace(r#"["python3", "main.py"]"#, r#"["node", "main.js"]"#));
    thread::scope(|scope| {
        // Calls go on meanwhile, and not one of them fails.
        scope.spawn(|| {
            eventually("the other program answers", || {
                let result = daemon.json(&["call", "tickets.query_status", "id=TK-2", "--session", "open"]);
                assert_eq!((&result["status"], &result["data"]["id"]), (&json!("ok"), &json!("TK-2")));
                ran_by() == "node"
            });
        });
        daemon.plugd(&["reload"]).expect(0);
    });

    assert_eq!(told(), tools, "byte for byte");
    let after = client.call(&params).await.expect("a result");
    assert_eq!((ran_by().as_str(), kept(&after)), ("node", kept(&before)));
    assert_eq!(daemon.plugd(&["call", "tickets.query_status", "id=1"]).expect(3).stdout, "");
    drop(client);
    daemon.stop();
}
