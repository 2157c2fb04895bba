//! What is offered and what is not, when that changes, and how it is written.

use plugd_tests::{Sandbox, eventually};
use serde_json::{Value, json};

use super::*;

/// One operation whose declaration uses what dialects do not all take.
fn rich() -> Value {
    json!({
        "name": "query_status", "title": "Ticket status", "category": "tickets",
        "description": "Gives how far\na ticket is.\r\n\nKnows open ones only.",
        "when_to_use": "Someone asks how far a ticket is.",
        "when_not_to_use": "The number is not known:\nask for it.",
        "examples": ["where is TK-1"],
        "input_schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "properties": {"id": {"$ref": "#/definitions/id"}, "title": {"type": "string"}},
            "anyOf": [{"required": ["id"]}, {"required": ["title"]}],
            "definitions": {"id": {"type": "string", "pattern": "^TK-"}},
        },
        "output_schema": {"type": "object", "properties": {"step": {"type": "string"}}},
        "effects": {"read_only": true, "idempotent": true},
    })
}

#[test]
fn d4_d17_each_dialect_gets_its_form_and_everyone_the_same_words_on_one_line() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.python("tickets", &operations(&[rich()])));
    let daemon = sandbox.serve();
    let told_all = "Gives how far a ticket is. Knows open ones only. When to use: Someone asks how far a ticket is. \
                    When not to use: The number is not known: ask for it. Examples: “where is TK-1”.";
    for dialect in DIALECTS {
        let tools = exported(daemon.plugd(&["tools", "tickets.query_status", "--for", dialect]));
        assert_eq!(told(&tools[0]), ("tickets__query_status", told_all), "{dialect}");
        let text = tools[0].to_string();
        assert!(!text.contains("$schema") && text.contains("#/$defs/id"), "{dialect}: {text}");
    }
    let own = daemon.json(&["tools", "tickets.query_status"]);
    assert_eq!(own["tools"][0]["declaration"]["description"], told_all);
    let described = daemon.json(&["describe", "tickets.query_status"]);
    assert_eq!(described["exported"][0]["description"], told_all);
    assert!(daemon.plugd(&["describe", "tickets"]).expect(0).stdout.contains(told_all));

    let openai = exported(daemon.plugd(&["tools", "tickets.query_status", "--for", "openai"]));
    let parameters = &openai[0]["function"]["parameters"];
    assert_eq!((&openai[0]["type"], &parameters["type"]), (&json!("function"), &json!("object")));
    assert!(
        parameters.get("anyOf").is_none() && parameters["properties"]["title"].is_object(),
        "{parameters:#}"
    );
    assert_eq!(parameters["description"], "Needs one of these: id; title.");
    let mcp = exported(daemon.plugd(&["tools", "tickets.query_status", "--for", "mcp"]));
    assert_eq!(mcp[0]["title"], "Ticket status");
    assert_eq!(mcp[0]["inputSchema"]["anyOf"].as_array().map(Vec::len), Some(2), "{mcp:#?}");
    assert_eq!(mcp[0]["annotations"], json!({"readOnlyHint": true, "idempotentHint": true}));
    assert_eq!(mcp[0]["outputSchema"]["properties"]["step"]["type"], "string");
    // What was folded for a model is still checked as it was declared.
    daemon.plugd(&["call", "tickets__query_status", "id=TK-1"]).expect(0);
    daemon.plugd(&["call", "tickets__query_status", "id=1"]).expect(3);
    daemon.stop();
}

#[test]
fn r18_what_cannot_run_is_not_offered_and_all_explains_it_while_a_restart_changes_nothing() {
    let sandbox = Sandbox::new("");
    let well = sandbox.shell("well");
    let forbidden = sandbox.shell("forbidden");
    let blocked = format!("{}requires = {{ nowhere = \"*\" }}\n", sandbox.shell("blocked"));
    let fails = format!("{}start = \"eager\"\n[plugins.fails.restart]\nmax = 0\n", sandbox.shell("fails"));
    let slow = format!(
        "{}start = \"eager\"\n[plugins.slow.restart]\nbackoff = \"5m\"\nbackoff_cap = \"10m\"\n",
        sandbox.shell("slow")
    );
    let service =
        operations(&[json!({"name": "cities", "audience": "plugins", "input_schema": {"type": "object"}})]);
    let service = sandbox.python("service", &service);
    sandbox.configure(&[well, forbidden, blocked, fails, slow, service].join("\n"));
    let daemon = sandbox.serve();
    assert!(offered(&daemon, &[]).contains(&"forbidden.pid".to_owned()), "at first it is there");
    daemon.plugd(&["disable", "forbidden"]).expect(0);
    daemon.plugd(&["call", "fails.crash"]).expect(6);
    daemon.wait_for_state("fails", "failed");
    daemon.plugd(&["call", "slow.crash"]).expect(6);
    daemon.wait_for_state("slow", "backoff");
    daemon.plugd(&["stop", "well"]).expect(0);
    assert_eq!(offered(&daemon, &[]), ["slow.crash", "slow.pid"], "what comes back by itself stays");
    daemon.plugd(&["start", "well"]).expect(0);

    assert_eq!(offered(&daemon, &["--all"]), ["slow.crash", "slow.pid", "well.crash", "well.pid"]);
    let report = daemon.json(&["tools", "--all"]);
    let reason = |id: &str| {
        let all = report["not_offered"].as_array().expect("a list");
        let one = all.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{id}: {report:#}"));
        (
            one["state"].as_str().expect("a state").to_owned(),
            one["reason"].as_str().expect("a reason").to_owned(),
        )
    };
    for (id, state, part) in [
        ("forbidden.pid", "disabled", "forbidden is disabled"),
        ("blocked.pid", "blocked", "nowhere"),
        ("fails.pid", "failed", "fails is failed"),
    ] {
        let (found, why) = reason(id);
        assert!(found == state && why.contains(part), "{id} is {found}: {why}");
    }
    assert!(reason("service.cities").1.contains("service"));
    let shown = daemon.plugd(&["tools", "--all"]).expect(0).stdout;
    assert!(shown.contains("not offered:\n") && shown.contains("blocked.pid"), "{shown}");
    // For programs the reasons stand beside the array.
    let ran = daemon.plugd(&["tools", "--all", "--for", "mcp"]);
    assert!(ran.stderr.contains("blocked.pid"), "{ran:?}");
    assert_eq!(exported(ran).len(), 4 + 1);
    let refused = daemon.plugd(&["--output", "json", "tools", "fails.pid"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "failed", "{refused:#}");
    daemon.plugd(&["tools", "service.cities"]).expect(4);
    daemon.stop();
}

#[test]
fn r15_a_removed_plugin_leaves_every_list_at_once_and_subscribers_hear_of_it() {
    let sandbox = mailers(&["weather", "other"]);
    let daemon = sandbox.serve();
    assert_eq!(offered(&daemon, &[]).len(), 4);
    daemon.plugd(&["remove", "weather"]).expect(0);
    assert_eq!(offered(&daemon, &[]), ["other.ping", "other.send_email"]);
    assert_eq!(ids(&daemon.json(&["tools", "--all"])["not_offered"]), Vec::<String>::new());
    let stale = daemon.plugd(&["--output", "json", "call", "weather.ping"]).expect(4).json();
    assert_eq!(stale["error"]["outcome"], "not_run", "{stale:#}");
    let near = daemon.plugd(&["--output", "json", "call", "weather__ping"]).expect(4).json();
    assert!(near["error"]["hint"].as_str().expect("a hint").contains("other__ping"), "{near:#}");
    eventually("the change of the registry is told", || {
        let events = daemon.json(&["events"]);
        let events = events.as_array().expect("a list");
        let removed = events.iter().position(|event| event["kind"] == "plugin.removed");
        let changed = |event: &Value| event["kind"] == "registry.changed" && event["plugin"] == "weather";
        removed.is_some() && events.iter().filter(|event| changed(event)).count() >= 2
    });
    daemon.plugd(&["add", "weather"]).expect(0);
    assert_eq!(offered(&daemon, &[]).len(), 4, "and back at once");
    daemon.stop();
}

#[test]
fn c132_a_manifest_that_changes_shows_in_what_is_exported_and_a_burst_is_few_requests() {
    let sandbox = Sandbox::new("");
    let definitions = r#"
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("grow", "less")]
OPERATIONS.append({"name": "typed", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}})


def counted(lines):
    for line in lines:
        if json.loads(line).get("method") == "describe":
            mark("described")
        yield line


class Stdin:
    buffer = counted(sys.stdin.buffer)


sys.stdin = Stdin


def handle(operation, arguments, params):
    if operation == "grow":
        OPERATIONS[:] = [one for one in OPERATIONS if one["name"] == "grow"]
        OPERATIONS.append({"name": "more", "input_schema": {"type": "object"}})
        OPERATIONS.append({"name": "typed", "input_schema": {"type": "object", "properties": {"n": {"type": "string"}}}})
        for _ in range(100):
            send({"jsonrpc": "2.0", "method": "manifest_changed"})
    return {"data": arguments}
"#;
    sandbox.configure(&sandbox.python("fp", definitions));
    let daemon = sandbox.serve();
    assert_eq!(offered(&daemon, &[]), ["fp.grow", "fp.less", "fp.typed"]);
    let type_of_n = || {
        let tools = exported(daemon.plugd(&["tools", "fp.typed", "--for", "openai"]));
        tools[0].pointer("/function/parameters/properties/n/type").cloned()
    };
    assert_eq!(type_of_n(), Some(json!("integer")));
    let described = sandbox.read("plugins/fp/described").lines().count();
    daemon.plugd(&["call", "fp.grow"]).expect(0);
    eventually("one more, one less, one changed", || {
        offered(&daemon, &[]) == ["fp.grow", "fp.more", "fp.typed"] && type_of_n() == Some(json!("string"))
    });
    daemon.plugd(&["call", "fp.typed", "n:=3"]).expect(3);
    daemon.plugd(&["call", "fp__less"]).expect(4);
    let again = sandbox.read("plugins/fp/described").lines().count() - described;
    assert!((1..=10).contains(&again), "a hundred notifications were {again} requests");
    daemon.stop();
}

#[test]
fn d7_d20_tools_are_listed_by_category_and_with_their_sizes() {
    let sandbox = mailers(&["mail"]);
    let daemon = sandbox.serve();
    let report = daemon.json(&["tools", "--categories"]);
    let counts: Vec<(&str, u64)> = report["categories"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|category| {
            (category["name"].as_str().expect("a name"), category["tools"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(counts, [("mail", 1), ("other", 1), ("plugd", 1)], "{report:#}");
    let shown = daemon.plugd(&["tools", "--categories"]).expect(0).stdout;
    assert!(shown.contains("mail   1 tool\n"), "{shown}");
    assert_eq!(offered(&daemon, &["--category", "mail"]), ["mail.send_email"]);
    assert_eq!(offered(&daemon, &["mail.send_email"]), ["mail.send_email"]);
    daemon.plugd(&["tools", "--category", "mial"]).expect(4);

    let report = daemon.json(&["tools", "--for", "anthropic"]);
    let tools = report["tools"].as_array().expect("a list");
    let mut total = 0;
    for tool in tools {
        let bytes = u64::try_from(tool["declaration"].to_string().len()).expect("small");
        assert_eq!(tool["bytes"], bytes, "{tool:#}");
        total += bytes;
    }
    assert_eq!(report["bytes"], total);
    let shown = daemon.plugd(&["tools", "--for", "anthropic", "--sizes"]).expect(0).stdout;
    assert!(
        shown.contains("mail__send_email") && shown.ends_with(&format!("3 tools: {total} bytes\n")),
        "{shown}"
    );
    daemon.stop();
}

#[test]
fn d1_one_description_is_enough_to_list_lint_export_and_check_arguments() {
    let sandbox = Sandbox::new("");
    let definitions = format!("mark('spawned')\n{}", operations(&[rich()]));
    sandbox.configure(&sandbox.python("tickets", &definitions));
    let daemon = sandbox.serve();
    daemon.plugd(&["list"]).expect(0);
    for args in [&["describe", "tickets"][..], &["tools"], &["tools", "--for", "openai"]] {
        daemon.plugd(args).expect(0);
    }
    daemon.plugd(&["lint"]).expect(1);
    daemon.plugd(&["call", "tickets.query_status", "id=1"]).expect(3);
    assert_eq!(daemon.status("tickets")["starts"], 0);
    assert_eq!(sandbox.read("plugins/tickets/spawned").lines().count(), 1, "it was only described");
    daemon.stop();
}

#[test]
fn a_caller_is_offered_what_its_profile_allows_and_learns_of_nothing_else() {
    let sandbox = mailers(&["mail", "other"]);
    let config = sandbox.read("plugd.toml").split_once("\n\n").expect("a body").1.to_owned();
    sandbox.configure(&format!("{config}\n[callers.bot]\nallow = [\"mail.*\"]\ndeny = [\"mail.ping\"]\n[callers.nobody]\nallow = []\n"));
    let daemon = sandbox.serve();
    assert_eq!(offered(&daemon, &["--as", "bot"]), ["mail.send_email"]);
    assert_eq!(ids(&daemon.json(&["tools", "--as", "bot", "--all"])["not_offered"]), Vec::<String>::new());
    daemon.plugd(&["tools", "other.ping", "--as", "bot"]).expect(7);
    let shown = daemon.plugd(&["tools", "--as", "nobody"]).expect(0).stdout;
    assert!(shown.contains("`plugd tools --all --as nobody` says"), "{shown}");
    let shown = daemon.plugd(&["tools", "--all", "--as", "nobody"]).expect(0).stdout;
    assert!(shown.contains("the profile nobody under [callers] allows none"), "{shown}");
    let unknown = daemon.plugd(&["--output", "json", "tools", "--as", "bto"]).json();
    assert_eq!(unknown["error"]["name"], "unknown_caller", "{unknown:#}");
    daemon.stop();
}

#[test]
fn r11_add_and_check_end_with_each_exported_name_and_fail_where_one_cannot_be_called() {
    let sandbox = Sandbox::new("");
    sandbox.python("tickets", &operations(&[rich()]));
    sandbox
        .python("spoilt", &operations(&[rich(), json!({"name": "bad", "input_schema": {"type": "objct"}})]));
    let check = sandbox.plugd(&["check", "plugins/tickets/main.py"]).expect(0);
    for part in
        ["main.query_status  main__query_status", "found: as main.query_status", "filled: ", "fails: after"]
    {
        assert!(check.stdout.contains(part), "{part}: {check:?}");
    }
    let daemon = sandbox.serve();
    let added = daemon.plugd(&["add", "plugins/tickets/main.py", "--name", "tickets"]).expect(0);
    let exported = daemon.json(&["tools", "tickets.query_status", "--for", "openai"]);
    let bytes = &exported["tools"][0]["bytes"];
    let line = format!("  tickets.query_status  tickets__query_status  {bytes} bytes\n");
    assert!(added.stdout.contains(&line), "{line}: {added:?}");

    let ran =
        daemon.plugd(&["--output", "json", "add", "plugins/spoilt/main.py", "--name", "spoilt"]).expect(6);
    let report = ran.json();
    let bad = report["exported"].as_array().expect("a list").iter().find(|one| one["id"] == "spoilt.bad");
    assert!(
        bad.expect("it is named")["unreachable"].as_str().expect("why").contains("input_schema"),
        "{report:#}"
    );
    daemon.plugd(&["check", "tickets"]).expect(0);
    let checked = daemon.plugd(&["check", "spoilt"]).expect(6);
    assert!(checked.stdout.contains("spoilt.bad  cannot be called: input_schema"), "{checked:?}");
    let checked = daemon.plugd(&["--output", "json", "check"]).expect(6).json();
    assert_eq!(
        (&checked["ok"], checked["plugins"].as_array().map(Vec::len)),
        (&json!(false), Some(2)),
        "{checked:#}"
    );
    daemon.stop();
}

#[test]
fn an_empty_offer_is_an_empty_array_and_says_where_to_look() {
    let sandbox = Sandbox::new("");
    let shown = sandbox.plugd(&["tools"]).expect(0).stdout;
    assert!(shown.starts_with("no tools are offered\n"), "{shown}");
    assert_eq!(exported(sandbox.plugd(&["tools", "--for", "openai"])), Vec::<Value>::new());
    assert_eq!(sandbox.json(&["tools"])["tools"], json!([]));
}

#[test]
fn o5_check_tries_what_only_reads_with_its_own_examples_and_says_what_is_no_result() {
    let sandbox = Sandbox::new("");
    let declare = |name: &str, read_only: bool| {
        json!({
            "name": name, "description": "Tells something. It is said at once.", "effects": {"read_only": read_only},
            "input_schema": {"type": "object", "properties": {"id": {"type": "string", "examples": ["TK-1"]}}, "required": ["id"]},
            "output_schema": {"type": "object", "properties": {"step": {"type": "string"}}},
        })
    };
    let mut bare = declare("bare", true);
    bare["output_schema"] = json!({});
    let declared =
        operations(&[declare("good", true), declare("lacks", true), bare, declare("writes", false)]);
    let definitions = declared
        + "
def handle(operation, arguments, params):
    mark('called', operation)
    return {'data': {'good': {'step': arguments['id']}, 'lacks': {'other': 1}, 'bare': 'ok'}[operation]}
";
    let table = sandbox.python("fp", &definitions);
    // By its name: the scenarios that a path is put to have tests of their own.
    sandbox.configure(&table);
    sandbox.plugd(&["check", "fp"]).expect(0);
    assert_eq!(sandbox.read("plugins/fp/called"), "", "nothing is called unasked");
    let shown = sandbox.plugd(&["check", "fp", "--call"]).expect(0).stdout;
    assert_eq!(sandbox.read("plugins/fp/called"), "good\nlacks\nbare\n");
    for part in [
        "it answers {\"id\":\"TK-1\"}",
        "its data lacks step",
        "a bare word, \"ok\"",
        "not declared read-only",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_path_is_checked_alone_even_where_it_requires_another_plugin() {
    let sandbox = Sandbox::new("");
    sandbox.python("fp", "MANIFEST = {'requires': {'nowhere': '*'}}");
    let checked = sandbox.plugd(&["check", "plugins/fp/main.py"]).expect(0);
    assert!(checked.stdout.contains("nowhere"), "what it waits for is said: {checked:?}");
}
