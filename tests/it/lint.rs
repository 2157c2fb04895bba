//! `plugd lint`: what is said about declarations, of plugins that are configured and of files.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

/// A Python plugin that declares these operations.
fn declaring(sandbox: &Sandbox, name: &str, declarations: &Value) -> String {
    let text = declarations.to_string();
    sandbox.python(name, &format!("OPERATIONS = json.loads({text:?})\n"))
}

/// An operation that nothing is wrong with.
fn good(name: &str) -> Value {
    json!({
        "name": name, "description": "Gives how far a ticket is. The answer has every step.",
        "when_to_use": "Someone asks how far a ticket is.", "when_not_to_use": "The number is not known.",
        "input_schema": {"type": "object"}, "effects": {"read_only": true},
    })
}

fn about(subject_description: (&str, &str)) -> Value {
    let (name, description) = subject_description;
    let mut declared = good(name);
    declared["description"] = description.into();
    declared["when_to_use"] = format!("{name} is asked for.").into();
    declared
}

/// The rules of a report, each with what it is about.
fn rules(report: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().unwrap_or_else(|| panic!("no findings: {report:#}"));
    findings.iter().map(|finding| (text(finding, "subject"), text(finding, "rule"))).collect()
}

#[test]
fn what_is_well_declared_exits_0_and_each_thing_that_is_not_is_named() {
    let sandbox = Sandbox::new("");
    let well = declaring(&sandbox, "well", &json!([good("query_status")]));
    sandbox.configure(&well);
    let ran = sandbox.plugd(&["lint"]).expect(0);
    assert_eq!(ran.stdout, "nothing was found in 1 operation\n");
    let bad = json!([{
        "name": "process", "description": "处理工单",
        "input_schema": {"type": "object", "properties": {"ticket_id": {"type": "string"}}},
    }]);
    sandbox.configure(&[well, declaring(&sandbox, "bad", &bad)].join("\n"));
    let daemon = sandbox.serve();
    let ran = daemon.plugd(&["--output", "json", "lint"]).expect(1);
    let report = ran.json();
    let found = rules(&report);
    let expected = [
        "vague_name",
        "short_description",
        "no_when_to_use",
        "undescribed_parameter",
        "identifier_without_pattern",
        "undeclared_effects",
    ];
    assert_eq!(found, expected.map(|rule| ("bad.process".to_owned(), rule.to_owned())), "{report:#}");
    assert_eq!(report["operations"], 2);
    for finding in report["findings"].as_array().expect("a list") {
        for part in ["path", "message", "hint"] {
            assert!(finding[part].as_str().is_some_and(|text| !text.is_empty()), "{part}: {finding:#}");
        }
    }
    let shown = daemon.plugd(&["lint", "bad"]).expect(1).stdout;
    assert!(
        shown.contains("bad.process\n  vague_name at /name: ")
            && shown.ends_with("6 findings in 1 operation\n"),
        "{shown}"
    );
    daemon.plugd(&["lint", "well"]).expect(0);
    daemon.plugd(&["lint", "wel"]).expect(4);
    daemon.stop();
}

#[test]
fn r10_an_overlap_is_one_warning_that_names_both_until_a_boundary_is_stated() {
    let sandbox = Sandbox::new("");
    let declare = |name: &str, limits: &str| {
        let mut declared = about(("look_up", "Look up information. The answer is a text."));
        declared["when_not_to_use"] = limits.into();
        declaring(&sandbox, name, &json!([declared]))
    };
    let live = declare("live", "Nothing is asked.");
    let archive = declare("archive", "Nothing is asked.");
    sandbox.configure(&[live.clone(), archive.clone()].join("\n"));
    let daemon = sandbox.serve();
    let report = daemon.plugd(&["--output", "json", "lint"]).expect(1).json();
    assert_eq!(rules(&report), [("archive.look_up".to_owned(), "overlap".to_owned())], "{report:#}");
    let finding = &report["findings"][0];
    let (message, hint) =
        (finding["message"].as_str().expect("text"), finding["hint"].as_str().expect("text"));
    for part in ["archive.look_up", "live.look_up", "information"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(hint.contains("when_not_to_use") && hint.contains("live.look_up"), "{hint}");
    for named in ["live", "archive"] {
        let of_one = daemon.plugd(&["--output", "json", "lint", named]).expect(1).json();
        assert_eq!(rules(&of_one).len(), 1, "{named} is one of the pair: {of_one:#}");
    }
    daemon.stop();
    // The cure: one of them says what the other is for.
    declare("archive", "Data of this year is asked for: use live.look_up.");
    let daemon = sandbox.serve();
    daemon.plugd(&["lint"]).expect(0);
    daemon.stop();
}

#[test]
fn c167_each_similar_pair_is_listed_once_also_after_a_restart() {
    let sandbox = Sandbox::new("");
    let text = "Searches the workspace for matches. Gives the matching places.";
    let names = ["search_file", "search_file_content", "search_directory", "search_code", "search_text"];
    let similar: Vec<Value> = names.iter().map(|name| about((name, text))).collect();
    let ide = declaring(&sandbox, "ide", &Value::from(similar));
    let clock = about(("get_time", "Gives the current time of a city. Daylight saving is counted."));
    let clock = declaring(&sandbox, "clock", &json!([clock]));
    let one = declaring(&sandbox, "one", &json!([about(("find_a", "搜索文件。返回文件列表。"))]));
    let two = declaring(&sandbox, "two", &json!([about(("find_b", "查找文件。返回文件列表。"))]));
    sandbox.configure(&[ide, clock, one, two].join("\n"));
    let mut reports = Vec::new();
    for _ in 0..2 {
        let daemon = sandbox.serve();
        let report = daemon.plugd(&["--output", "json", "lint"]).expect(1).json();
        let mut messages: Vec<&str> = report["findings"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|finding| finding["message"].as_str().expect("text"))
            .collect();
        assert_eq!(messages.len(), 5 * 4 / 2 + 1, "{report:#}");
        assert!(messages.iter().any(|message| message.contains("one.find_a and two.find_b")), "{report:#}");
        assert!(!messages.iter().any(|message| message.contains("clock")), "{report:#}");
        messages.sort_unstable();
        messages.dedup();
        assert_eq!(messages.len(), 11, "no pair twice");
        reports.push(report.clone());
        daemon.stop();
    }
    assert_eq!(reports[0], reports[1]);
}

#[test]
fn r9_what_cannot_be_used_is_found_before_any_call_with_its_place() {
    let sandbox = Sandbox::new("");
    let schema = json!({"type": "object", "properties": {"n": {"type": "intger"}}});
    let mut bad = good("bad");
    bad["input_schema"] = schema;
    declaring(&sandbox, "fp", &json!([good("query_status"), bad]));
    for command in ["check", "lint"] {
        let ran = sandbox.plugd(&[command, "plugins/fp/main.py"]);
        assert_ne!(ran.code, 0, "{ran:?}");
        assert!(
            ran.stdout.contains("main.bad") && ran.stdout.contains("/properties/n"),
            "{command}: {ran:?}"
        );
    }
}

#[test]
fn a_path_needs_no_configuration_and_a_folder_is_as_good_as_a_program() {
    let sandbox = Sandbox::new("");
    declaring(&sandbox, "tickets", &json!([good("query_status")]));
    sandbox.plugd(&["lint", "plugins/tickets/main.py"]).expect(0);
    sandbox.plugd(&["lint", "./plugins/tickets"]).expect(2);
    sandbox.write("plugins/tickets/plugin.toml", "command = [\"./main.py\"]\n");
    let ran = sandbox.plugd(&["--output", "json", "lint", "./plugins/tickets"]).expect(0);
    assert_eq!(ran.json()["operations"], 1);
    let twice = sandbox.plugd(&["lint", "./plugins/tickets", "tickets"]).expect(2);
    assert!(twice.stderr.contains("one kind at a time"), "{twice:?}");
    sandbox.program("broken.py", "#!/bin/sh\nexit 3\n");
    sandbox.plugd(&["lint", "./broken.py"]).expect(6);
}

#[test]
fn the_example_plugins_are_declared_as_they_should_be() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../example-plugins");
    let examples = examples.canonicalize().expect("they are there");
    let sandbox = Sandbox::new(&format!("[scan]\ndirs = [{:?}]\n", examples.display().to_string()));
    // Those in compiled languages are there once they were made.
    let made = ["clock", "logs", "weather"];
    let ran = sandbox.plugd(&[&["lint"][..], &made].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
}
