//! How operations are found: listed, by every name, by category; and which names there may be.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

use super::{ended, ids, operations};

fn declare(name: &str, category: Option<&str>) -> Value {
    let mut declared =
        json!({"name": name, "description": "Does its work. No more.", "input_schema": {"type": "object"}});
    if let Some(category) = category {
        declared["category"] = category.into();
    }
    declared
}

/// Tickets, and a calendar that has to do with them.
fn office() -> Sandbox {
    let sandbox = Sandbox::new("");
    let answers = "
def handle(operation, arguments, params):
    return {'data': operation}
";
    let tickets = [declare("query_status", Some("tickets")), declare("close", Some("tickets"))];
    let calendar =
        [declare("book", Some("calendar")), declare("remind", Some("tickets")), declare("ping", None)];
    let tables = [("tickets", &tickets[..]), ("calendar", &calendar[..])]
        .map(|(name, declared)| sandbox.python(name, &(operations(declared) + answers)));
    sandbox.configure(&tables.concat());
    sandbox
}

/// Row R12; that it is as quick among many is the bench's to show.
#[test]
fn r_r12_everything_is_listed_and_each_is_found_by_every_spelling_of_its_name() {
    let sandbox = office();
    let daemon = sandbox.serve();
    let list = daemon.json(&["list"]);
    let plugins = list["plugins"].as_array().expect("a list");
    let all: Vec<&str> = plugins.iter().flat_map(|plugin| ids(&plugin["operations"])).collect();
    let expected =
        ["calendar.book", "calendar.remind", "calendar.ping", "tickets.query_status", "tickets.close"];
    assert_eq!(all.len(), expected.len(), "{list:#}");
    assert!(expected.iter().all(|id| all.contains(id)), "{list:#}");
    for id in expected {
        let (plugin, operation) = id.split_once('.').expect("an id");
        for spelling in [id, &format!("{plugin}__{operation}"), operation] {
            let described = ended(&daemon, 0, &["describe", spelling]);
            assert_eq!(described["plugin"]["name"], plugin, "{spelling}: {described:#}");
            assert_eq!(described["operations"][0]["name"], operation, "{spelling}: {described:#}");
            assert_eq!(described["operations"].as_array().map(Vec::len), Some(1), "{spelling}");
            assert_eq!(ids(&ended(&daemon, 0, &["tools", spelling])["tools"]), [id], "{spelling}");
            let called = ended(&daemon, 0, &["call", spelling]);
            assert_eq!((&called["meta"]["operation"], &called["data"]), (&json!(id), &json!(operation)));
        }
    }
    let whole = ended(&daemon, 0, &["describe", "tickets"]);
    assert_eq!(whole["operations"].as_array().map(Vec::len), Some(2), "{whole:#}");
    for nothing in ["tickets.nothing", "tickets__nothing", "nothing"] {
        for command in ["describe", "tools", "call"] {
            ended(&daemon, 4, &[command, nothing]);
        }
    }
    daemon.stop();
}

/// Row D10.
#[test]
fn r_d10_a_name_is_of_small_letters_digits_and_underscores_or_the_right_one_is_suggested() {
    let longest = "x".repeat(64);
    let too_long = "x".repeat(65);
    let good = ["q", "query_status_2", "_9", &longest];
    let bad = [
        ("queryStatus", Some("query_status")),
        ("query-status", Some("query_status")),
        ("Query Status", Some("query_status")),
        ("QUERY", Some("q_u_e_r_y")),
        ("查询", None),
        (&too_long, None),
    ];
    let names = good.iter().copied().chain(bad.iter().map(|(name, _)| *name));
    let declared: Vec<Value> = names.map(|name| declare(name, None)).collect();
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("fp", &operations(&declared)));
    let daemon = sandbox.serve();
    let report = daemon.json(&["tools", "--all"]);
    let mut offered = ids(&report["tools"]);
    offered.sort_unstable();
    let mut expected = good.map(|name| format!("fp.{name}"));
    expected.sort_unstable();
    assert_eq!(offered, expected, "{report:#}");
    let refused = report["not_offered"].as_array().expect("a list");
    assert_eq!(refused.len(), bad.len(), "{report:#}");
    for (name, suggestion) in bad {
        let found = refused.iter().find(|one| one["id"] == format!("fp.{name}"));
        let reason = found.and_then(|one| one["reason"].as_str()).unwrap_or_else(|| panic!("{report:#}"));
        assert!(reason.contains("expected 1 to 64 of a-z, 0-9 and '_'"), "{name}: {reason}");
        match suggestion {
            Some(right) => assert!(reason.contains(&format!("did you mean {right:?}")), "{name}: {reason}"),
            None => assert!(!reason.contains("did you mean"), "{name}: {reason}"),
        }
    }
    daemon.stop();
}

/// Row D20.
#[test]
fn r_d20_who_looks_for_a_tool_goes_from_the_categories_to_one_and_to_one_tool_of_it() {
    let sandbox = office();
    let daemon = sandbox.serve();
    let report = ended(&daemon, 0, &["tools", "--categories"]);
    let count = |name: &str| {
        let all = report["categories"].as_array().expect("a list");
        all.iter().find(|category| category["name"] == name).map(|category| category["tools"].clone())
    };
    assert_eq!(count("tickets"), Some(json!(3)), "of whichever plugin: {report:#}");
    assert_eq!((count("calendar"), count("other")), (Some(json!(1)), Some(json!(1))), "{report:#}");
    assert_eq!(report["tools"], json!([]), "no tool is told of yet");

    let category = ended(&daemon, 0, &["tools", "--category", "tickets"]);
    assert_eq!(ids(&category["tools"]), ["calendar.remind", "tickets.close", "tickets.query_status"]);
    for tool in category["tools"].as_array().expect("a list") {
        assert_eq!(tool["category"], "tickets", "{tool:#}");
    }
    let one = ended(&daemon, 0, &["tools", "calendar.remind"]);
    assert_eq!(ids(&one["tools"]), ["calendar.remind"]);
    assert_eq!(one["tools"][0], category["tools"][0], "the same tool, alone");
    let bytes = |report: &Value| report["bytes"].as_u64().expect("a size");
    let all = ended(&daemon, 0, &["tools"]);
    assert!(bytes(&one) < bytes(&category) && bytes(&category) < bytes(&all), "each step is smaller");
    daemon.stop();
}
