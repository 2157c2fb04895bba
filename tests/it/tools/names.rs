//! Names: every spelling leads to one operation, the same in every dialect and every run.

use std::collections::{BTreeMap, BTreeSet};

use plugd_tests::{Sandbox, eventually};
use serde_json::{Value, json};

use super::*;

fn declare(name: &str) -> Value {
    json!({"name": name, "description": "Gives back what it got.", "input_schema": {"type": "object"}})
}

/// Plugins whose names and operations are spelled alike unless care is taken.
fn lookalikes() -> Sandbox {
    let sandbox = Sandbox::new("");
    let long = "p".repeat(40);
    let plugins: [(&str, Vec<Value>); 6] = [
        ("a", vec![declare("b"), declare("b__c"), declare("_b")]),
        ("a__b", vec![declare("c")]),
        ("a_", vec![declare("b")]),
        ("my-Plugin_2", vec![declare("query_status")]),
        (
            &long,
            vec![
                declare("list_everything_there_is_of_today"),
                declare("list_everything_there_is_of_tomorrow"),
            ],
        ),
        ("other", vec![declare("a__b")]),
    ];
    let answers = "
def handle(operation, arguments, params):
    return {'data': {'in': os.path.basename(os.getcwd()), 'operation': operation}}
";
    let table =
        |(name, declared): &(&str, Vec<Value>)| sandbox.python(name, &(operations(declared) + answers));
    let tables: Vec<String> = plugins.iter().map(table).collect();
    sandbox.configure(&tables.join("\n"));
    sandbox
}

#[test]
fn r14_c116_every_exported_name_is_legal_and_calls_its_operation_in_every_run() {
    let sandbox = lookalikes();
    let daemon = sandbox.serve();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for dialect in DIALECTS {
        let report = daemon.json(&["tools", "--for", dialect]);
        let tools = report["tools"].as_array().expect("a list");
        let of_dialect: BTreeMap<String, String> = tools
            .iter()
            .map(|tool| {
                let (name, _) = told(&tool["declaration"]);
                assert_eq!(tool["name"], name, "{tool:#}");
                (name.to_owned(), tool["id"].as_str().expect("an id").to_owned())
            })
            .collect();
        assert_eq!(of_dialect.len(), tools.len(), "no two have one name: {report:#}");
        assert!(names.is_empty() || names == of_dialect, "{dialect} has other names: {of_dialect:#?}");
        names = of_dialect;
    }
    assert_eq!(names.len(), 9 + 1, "all of them, and plugd's own: {names:#?}");
    let ids: BTreeSet<&String> = names.values().collect();
    assert_eq!(ids.len(), names.len());
    for (name, id) in names.iter().filter(|(_, id)| !id.starts_with("plugd.")) {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        assert!(name.len() <= 64 && name.bytes().all(legal), "{name}");
        let call = daemon.json(&["call", name]);
        let (plugin, operation) = id.split_once('.').expect("an id");
        assert_eq!(call["meta"]["operation"], *id, "{name}: {call:#}");
        assert_eq!(call["data"], json!({"in": plugin, "operation": operation}), "{name}");
        assert_eq!(daemon.json(&["tools", name])["tools"][0]["id"], *id, "{name}");
        // Of a plugin that has that very name the whole is described.
        let described = if name == "a__b" { id } else { name };
        let described = daemon.json(&["describe", described]);
        assert_eq!(described["exported"][0]["name"], *name, "{described:#}");
        assert_eq!(described["operations"].as_array().map(Vec::len), Some(1), "{described:#}");
    }
    daemon.stop();
    let daemon = sandbox.serve();
    for (name, id) in &names {
        assert_eq!(daemon.json(&["tools", name])["tools"][0]["id"], *id, "the same in the next run");
    }
    daemon.stop();
    let name = names.keys().find(|name| name.starts_with("pppp")).expect("a long one");
    assert_eq!(sandbox.json(&["call", name])["status"], "ok", "without a daemon as well");
    assert_eq!(sandbox.json(&["call", "my-Plugin_2__query_status"])["status"], "ok");
}

#[test]
fn r14_a_name_in_camel_case_is_refused_with_the_one_to_write() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("tickets", &operations(&[declare("queryTicketStatus"), declare("list_open")]));
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    assert_eq!(offered(&daemon, &[]), ["tickets.list_open"], "the rest of the plugin works");
    let report = daemon.json(&["tools", "--all"]);
    let bad = &report["not_offered"][0];
    assert_eq!(bad["id"], "tickets.queryTicketStatus", "{report:#}");
    assert!(
        bad["reason"].as_str().expect("a reason").contains("did you mean \"query_ticket_status\""),
        "{bad:#}"
    );
    daemon.stop();
}

#[test]
fn c113_two_plugins_with_an_operation_of_one_name_both_work_and_the_bare_name_is_an_error_in_either_order() {
    let mut errors = Vec::new();
    for order in [["first", "second"], ["second", "first"]] {
        let sandbox = mailers(&order);
        let daemon = sandbox.serve();
        for plugin in order {
            assert_eq!(daemon.json(&["call", &format!("{plugin}.send_email")])["data"]["in"], plugin);
            assert_eq!(daemon.json(&["call", &format!("{plugin}__send_email")])["data"]["in"], plugin);
        }
        let list = daemon.json(&["list"]);
        assert_eq!(list["plugins"].as_array().map(Vec::len), Some(2), "{list:#}");
        let names: Vec<Value> = exported(daemon.plugd(&["tools", "--for", "openai", "--category", "mail"]));
        let names: Vec<&str> = names.iter().map(|tool| told(tool).0).collect();
        assert_eq!(names, ["first__send_email", "second__send_email"]);
        let before = sandbox.read("plugins/first/called") + &sandbox.read("plugins/second/called");
        let refused = daemon.plugd(&["--output", "json", "call", "send_email"]).expect(4).json();
        let error = &refused["error"];
        assert_eq!(error["name"], "ambiguous_operation", "{refused:#}");
        let text = error["message"].as_str().expect("a message");
        assert!(text.contains("first.send_email") && text.contains("second.send_email"), "{text}");
        assert!(error["hint"].as_str().expect("a hint").contains("plugin.operation"), "{error:#}");
        let after = sandbox.read("plugins/first/called") + &sandbox.read("plugins/second/called");
        assert_eq!(after, before, "neither was run");
        errors.push(error.clone());
        daemon.stop();
    }
    assert_eq!(errors[0], errors[1], "the order means nothing");
}

#[test]
fn c115_identity_is_the_configured_name_whatever_a_plugin_calls_itself() {
    let sandbox = Sandbox::new("");
    let definitions = "
MANIFEST = {'name': 'demo'}
def handle(operation, arguments, params):
    return {'data': {'pid': os.getpid()}}
";
    sandbox.python("shared", definitions);
    let table = |name: &str| {
        format!(
            "[plugins.{name}]\ncommand = [\"python3\", \"main.py\"]\ncwd = \"plugins/shared\"\nstart = \"eager\"\n"
        )
    };
    sandbox.configure(&[table("p1"), table("p2")].join("\n"));
    let daemon = sandbox.serve();
    for name in ["p1", "p2"] {
        let pid = daemon.wait_for_state(name, "ready")["pid"].clone();
        assert_eq!(daemon.json(&["call", &format!("{name}.echo")])["data"]["pid"], pid, "{name}");
        eventually("the other name is warned of", || {
            daemon.said_of(name).iter().any(|line| line.contains("WARN") && line.contains("demo"))
        });
    }
    assert_eq!(offered(&daemon, &[]), ["p1.echo", "p2.echo"]);
    daemon.plugd(&["call", "demo.echo"]).expect(4);
    daemon.stop();
}

#[test]
fn c119_a_mistyped_name_gets_the_nearest_and_runs_nothing() {
    let sandbox = Sandbox::new("");
    let definitions = operations(&[declare("delete_file"), declare("delete_files")])
        + "
def handle(operation, arguments, params):
    mark('deleted', operation)
    return {'data': None}
";
    sandbox.configure(&sandbox.python("fs", &definitions));
    let daemon = sandbox.serve();
    for (written, nearest) in [
        ("fs.delete_fil", "fs.delete_file"),
        ("delete_fil", "delete_file"),
        ("fs__delete_fil", "fs__delete_file"),
    ] {
        let refused = daemon.plugd(&["--output", "json", "call", written, "path=x"]).expect(4).json();
        assert_eq!(refused["error"]["name"], "unknown_operation", "{refused:#}");
        let hint = refused["error"]["hint"].as_str().expect("a hint");
        assert!(hint.contains(&format!("did you mean {nearest}?")), "{written}: {hint}");
    }
    let refused = daemon.plugd(&["--output", "json", "tools", "fs.delete_fil"]).expect(4).json();
    assert!(refused["error"]["hint"].as_str().expect("a hint").contains("fs.delete_file"), "{refused:#}");
    assert_eq!(sandbox.read("plugins/fs/deleted"), "", "nothing was run");
    daemon.stop();
}
