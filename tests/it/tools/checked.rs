//! What `plugd check` finds of declarations that cannot be used, and how it words what can.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

use super::*;

/// An operation that takes this.
fn taking(name: &str, schema: &Value) -> Value {
    json!({
        "name": name, "description": "Tells something. It is said at once.", "when_to_use": "It is asked for.",
        "effects": {"read_only": true}, "input_schema": schema,
    })
}

#[test]
fn check_waits_for_what_runs_in_the_background() {
    let sandbox = Sandbox::new("");
    let mut inventory = taking("inventory", &json!({"type": "object"}));
    inventory["long_running"] = true.into();
    let definitions = operations(&[inventory])
        + "
def handle(operation, arguments, params):
    return {'data': {'books': 5000}}
";
    sandbox.configure(&sandbox.python("lib", &definitions));
    for daemon in [None, Some(sandbox.serve())] {
        let shown = sandbox.plugd(&["check", "lib", "--call"]).expect(0).stdout;
        assert!(shown.contains("tried: it answers {}\n"), "{shown}");
        assert!(
            shown.contains("fails: after 1h, or ") && shown.contains("in the background, as a job"),
            "{shown}"
        );
        if let Some(daemon) = daemon {
            daemon.stop();
        }
    }
}

#[test]
fn what_no_call_can_be_made_of_is_said_by_check_and_add() {
    let sandbox = Sandbox::new("");
    let city = json!({"city": {"type": "string", "description": "The city."}});
    let misspelt = json!({"type": "object", "properties": city, "required": ["ctiy"]});
    let mut open = misspelt.clone();
    open["additionalProperties"] = true.into();
    let to = json!({"to": {"type": "object", "properties": city, "required": ["ctiy"], "description": "Where to."}});
    let list = operations(&[
        taking("ask", &misspelt),
        taking("all", &json!({"type": "array"})),
        taking("open", &open),
        taking("some", &json!({"type": "object", "properties": to})),
    ]);
    sandbox.python("odd", &list);
    let daemon = sandbox.serve();
    daemon.plugd(&["add", "plugins/odd/main.py", "--name", "odd"]).expect(6);
    let checked = daemon.plugd(&["check", "odd"]).expect(6).stdout;
    for part in [
        "odd.ask  cannot be called: input_schema: \"ctiy\" is required and not declared",
        "did you mean city?",
        "odd.all  cannot be called: input_schema: arguments are always one JSON object",
        "odd.open  odd__open",
        "required_undeclared at /input_schema/properties/to/required",
    ] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    // What no call fits is offered to nobody; what some fit is.
    assert_eq!(offered(&daemon, &[]), ["odd.open", "odd.some"]);
    let refused = daemon.json(&["call", "odd.ask", "city=Rome"])["error"].clone();
    assert_eq!((&refused["code"], &refused["outcome"]), (&json!(1003), &json!("not_run")), "{refused:#}");
    assert_eq!(daemon.plugd(&["call", "odd.open", "city=Rome", "ctiy=Roma"]).expect(0).code, 0);
    daemon.plugd(&["call", "odd.some", "to:={\"city\":\"Rome\"}"]).expect(3);
    daemon.plugd(&["call", "odd.some"]).expect(0);
    // What is told of one operation is not told of another.
    let described = daemon.plugd(&["describe", "odd.open"]).expect(0).stdout;
    assert!(!described.contains("not offered"), "{described}");
    daemon.stop();
}

#[test]
fn check_shows_defaults_that_do_not_fit_and_words_that_nobody_knows() {
    let sandbox = Sandbox::new("");
    let mut operation = taking(
        "look",
        &json!({"type": "object", "required": ["owner"], "properties": {
            "count": {"type": "integer", "default": "three", "description": "How many."},
            "owner": {"type": "object", "description": "Whose.", "required": ["mail"],
                "properties": {"mail": {"type": "string", "sensitive": true, "description": "An address."}}}}}),
    );
    operation["cache_tll"] = 5.into();
    operation["timeout_ms"] = 86_400_000.into();
    sandbox.python("lib", &operations(&[operation]));
    let shown = sandbox.plugd(&["check", "plugins/lib/main.py"]).expect(0).stdout;
    for part in [
        "default_does_not_fit at /input_schema/properties/count/default: its default string \"three\"",
        "did you mean x-sensitive?",
        "did you mean cache_ttl?",
        "setting_without_effect at /timeout_ms",
        "filled: owner must be given, or is asked for; count may be given; within them owner.mail must be given",
        "fails: after 1h, or ",
        "it declares no examples",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn a_tool_has_one_size_wherever_it_is_told() {
    let sandbox = mailers(&["mail"]);
    let of = |words: &[&str]| {
        let report = sandbox.json(&[&["tools", "mail.send_email"], words].concat());
        report["tools"][0]["bytes"].as_u64().expect("a size")
    };
    let bytes = of(&["--for", "openai"]);
    assert_eq!(of(&[]), bytes);
    let shown = sandbox.plugd(&["check", "mail"]).expect(0).stdout;
    assert!(shown.contains(&format!("mail__send_email  {bytes} bytes")), "{shown}");
}

#[test]
fn hints_lead_to_where_help_is() {
    let sandbox = mailers(&["mail"]);
    sandbox.write("empty/README", "nothing");
    for (words, code, hint) in [
        (&["call", "mail.send_email", "ada"][..], 2, "`plugd call --help` shows"),
        (&["call", "mail.send_email", "to:=ada"], 3, "to=VALUE is text"),
        (&["check", "mail.send_email"], 2, ""),
        (&["add", "./empty"], 2, ""),
    ] {
        let told = sandbox.plugd(words).expect(code).stderr;
        match hint {
            "" => assert!(!told.contains("hint:"), "{told}"),
            hint => assert!(told.contains(hint), "{hint}: {told}"),
        }
    }
    let told = sandbox.plugd(&["check", "mail.send_email"]).expect(2).stderr;
    assert!(told.contains("mail.send_email is an operation: name its plugin, mail"), "{told}");
    sandbox.program("mute.sh", "#!/bin/sh\nexit 3\n");
    let told = sandbox.plugd(&["call", "./mute.sh", "go_there"]).stderr;
    assert!(!told.contains("hint: `plugd logs"), "{told}");
}
