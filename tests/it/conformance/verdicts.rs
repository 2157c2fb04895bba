//! One verdict: what people read, the JSON report, JUnit and the exit code say the same.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

use super::{check, names, scenario, scenarios};

/// What reads, and takes nothing.
fn reads(name: &str) -> Value {
    json!({"name": name, "input_schema": {"type": "object", "properties": {}}, "effects": {"read_only": true}})
}

/// Writes the plugin `lib` with these operations, definitions and members of its manifest.
fn lib(sandbox: &Sandbox, operations: &[Value], definitions: &str) {
    let operations = Value::from(operations.to_vec()).to_string();
    sandbox.python("lib", &format!("OPERATIONS = json.loads({operations:?})\n{definitions}"));
}

const LIB: &str = "plugins/lib/main.py";

/// The verdict in all of its forms.
struct Verdict {
    code: i32,
    text: String,
    report: Value,
    junit: String,
}

#[track_caller]
fn verdict(sandbox: &Sandbox, args: &[&str]) -> Verdict {
    let (ran, report) = check(sandbox, args);
    let shown = sandbox.plugd(&[&["check", "--junit", "check.xml"], args].concat());
    assert_eq!(ran.code, shown.code, "{report:#}\n{}", shown.stdout);
    assert_eq!(report["ok"], (ran.code == 0), "{report:#}");
    assert_eq!(shown.stdout.contains(" is well: "), ran.code == 0, "{}", shown.stdout);
    let junit = sandbox.read("check.xml");
    assert_eq!(junit.contains("<failure"), ran.code != 0, "{junit}");
    Verdict { code: ran.code, text: shown.stdout, report, junit }
}

/// How the call of the nth operation came out.
fn tried(report: &Value, nth: usize) -> (&Value, String) {
    let tried = &report["plugins"][0]["operations"][nth]["tried"];
    (&tried["outcome"], tried["remarks"].to_string())
}

#[test]
fn what_is_required_and_not_here_is_named_and_is_no_fault() {
    let sandbox = Sandbox::new("");
    let definitions = "
MANIFEST = {'requires': {'nowhere': '*'}}
def handle(operation, arguments, params):
    if operation == 'far':
        came = host_call('nowhere.look', {}, params['context']['call_id'])
        error = came['error']
        raise Failure(error['message'], code=3, **error['data'])
    return {'data': {'found': 1}}
";
    lib(&sandbox, &[reads("near"), reads("far")], definitions);
    let only = "--only=answers_calls,asks_the_host_for_what_there_is";
    let told = verdict(&sandbox, &[LIB, "--call", only]);
    assert_eq!(told.code, 0, "{}", told.text);
    assert!(told.text.contains("requires nowhere, which is not here: calls that need it were not tried"));
    assert!(
        !told.text.contains("cannot be called") && !told.text.contains("not configured"),
        "{}",
        told.text
    );
    let plugin = &told.report["plugins"][0];
    assert_eq!(plugin["absent"], json!(["nowhere"]), "{plugin:#}");
    assert_eq!(tried(&told.report, 0).0, "skipped", "{plugin:#}");
    let called = scenario(&told.report, "answers_calls");
    assert_eq!(called["outcome"], "passed", "{called:#}");
    assert_eq!(called["note"], "1 called; not tried: far (it needs nowhere, which is not here)");
    assert!(told.junit.contains("<skipped message=\"it requires nowhere, which is not here\"/>"));
    // With its path it is here.
    sandbox.python("nowhere", "OPERATIONS[0]['name'] = 'look'");
    for (name, path) in [("lib", LIB), ("nowhere", "plugins/nowhere/main.py")] {
        sandbox.write(&format!("{name}/plugin.toml"), &format!("command = [\"../{path}\"]\n"));
    }
    let told = verdict(&sandbox, &["./lib", "./nowhere", "--only=answers_calls"]);
    assert_eq!((told.code, &told.report["plugins"][0]["absent"]), (0, &Value::Null), "{}", told.text);
}

#[test]
fn an_error_in_its_own_words_is_a_warning_everywhere() {
    let sandbox = Sandbox::new("");
    let definitions = "
def handle(operation, arguments, params):
    raise Failure('there is no ticket', name='ticket_not_found', hint='numbers look like TK-1')
";
    lib(&sandbox, &[reads("look")], definitions);
    let args = [LIB, "--call", "--only=answers_calls,needs_little_memory"];
    let told = verdict(&sandbox, &args);
    assert_eq!(told.code, 0, "{}", told.text);
    let (outcome, remarks) = tried(&told.report, 0);
    assert_eq!(outcome, "warned", "{remarks}");
    assert!(remarks.contains("4001 ticket_not_found: there is no ticket"), "{remarks}");
    assert_eq!(scenario(&told.report, "answers_calls")["outcome"], "warned");
    assert_eq!(
        scenario(&told.report, "needs_little_memory")["outcome"],
        "skipped",
        "no data, no memory of it"
    );
    for part in [
        "tried: warning: with {}: it failed: 4001",
        "warning: answers_calls  look fails with its own examples",
    ] {
        assert!(told.text.contains(part), "{part}: {}", told.text);
    }
    assert!(told.junit.contains("<system-out>it failed: 4001 ticket_not_found"), "{}", told.junit);
    let strict = verdict(&sandbox, &[&args[..], &["--strict"]].concat());
    assert_eq!(strict.code, 6, "{}", strict.text);
    assert!(strict.text.contains("what is warned of counts under --strict"), "{}", strict.text);
    // The same of a plugin in the configuration.
    sandbox.configure("[plugins.lib]\ncommand = [\"./plugins/lib/main.py\"]\n");
    sandbox.plugd(&["check", "lib", "--call"]).expect(0);
    sandbox.plugd(&["check", "lib", "--call", "--strict"]).expect(6);
}

#[test]
fn a_handler_that_fails_on_its_own_example_fails_the_check() {
    let sandbox = Sandbox::new("");
    for (failure, found) in [
        ("Failure('KeyError: city', code=2)", "the handler of look failed with its own examples (error 2)"),
        ("Failure('what?', code=-32601)", "look is declared, and a call of it is answered with error -32601"),
        ("Failure('stopped', code=-32800)", "look answers that it was cancelled (error -32800)"),
    ] {
        lib(
            &sandbox,
            &[reads("look")],
            &format!("\ndef handle(operation, arguments, params):\n    raise {failure}\n"),
        );
        let told = verdict(&sandbox, &[LIB, "--call", "--only=answers_calls"]);
        assert_eq!((told.code, tried(&told.report, 0).0), (6, &json!("failed")), "{}", told.text);
        assert_eq!(scenario(&told.report, "answers_calls")["outcome"], "failed");
        assert!(told.text.contains(&format!("failed: answers_calls  {found}")), "{found}: {}", told.text);
    }
}

#[test]
fn examples_that_do_not_fit_their_own_schema_fail_the_check() {
    let sandbox = Sandbox::new("");
    let mut look = reads("look");
    look["input_schema"] = json!({"type": "object", "required": ["days"], "properties": {
        "days": {"type": "integer", "minimum": 1, "examples": [0]}}});
    lib(&sandbox, &[look], "");
    let told = verdict(&sandbox, &[LIB, "--call", "--only=answers_calls"]);
    assert_eq!(told.code, 6, "{}", told.text);
    assert!(
        told.text.contains("the examples of look do not fit its own input_schema: days: "),
        "{}",
        told.text
    );
}

#[test]
fn examples_within_objects_and_lists_are_found() {
    let sandbox = Sandbox::new("");
    let mail = json!({"type": "object", "required": ["mail"], "properties": {
        "mail": {"type": "string", "examples": ["ada@example.org"]}}});
    let mut open = reads("open");
    open["effects"] = json!({});
    open["input_schema"] = json!({"type": "object", "required": ["owner", "guests"], "properties": {
        "owner": {"$ref": "#/$defs/mail"}, "guests": {"type": "array", "items": {"$ref": "#/$defs/mail"}}},
        "$defs": {"mail": mail}});
    let mut shut = open.clone();
    shut["name"] = "shut".into();
    shut["input_schema"]["$defs"]["mail"]["properties"]["mail"] = json!({"type": "string"});
    lib(&sandbox, &[open, shut], "");
    let only = "--only=answers_calls";
    let told = verdict(&sandbox, &[LIB, "--call=open", only]);
    assert_eq!(told.code, 0, "{}", told.text);
    let expected = json!({"owner": {"mail": "ada@example.org"}, "guests": [{"mail": "ada@example.org"}]});
    assert_eq!(told.report["plugins"][0]["operations"][0]["tried"]["arguments"], expected, "{}", told.text);
    assert_eq!(scenario(&told.report, "answers_calls")["note"], "1 called");
    // Who names one wants it called.
    let told = sandbox.plugd(&["check", LIB, "--call=lib.shut", only]).expect(4).stderr;
    assert!(told.contains("there is no plugin \"lib\""), "it is called by its file: {told}");
    let told = verdict(&sandbox, &[LIB, "--call=main.shut", only]);
    assert_eq!((told.code, tried(&told.report, 1).0), (0, &json!("warned")), "{}", told.text);
    let told = verdict(&sandbox, &[LIB, "--call=shut", only]);
    assert_eq!((told.code, tried(&told.report, 1).0), (0, &json!("warned")), "{}", told.text);
    assert!(
        told.text.contains("shut was not called: owner.mail is required and has no example"),
        "{}",
        told.text
    );
    assert!(told.text.contains("fix: give owner.mail an example, under `examples` in input_schema"));
}

#[test]
fn what_saw_nothing_has_not_passed() {
    let sandbox = Sandbox::new("");
    sandbox.write("plugins/gone/plugin.toml", "command = [\"./nowhere\"]\n");
    let (ran, report) = check(&sandbox, &["./plugins/gone"]);
    assert_eq!((ran.code, names(&report, "passed")), (6, vec![]), "{report:#}");
    assert_eq!(names(&report, "failed").len(), 1, "{report:#}");
    assert_eq!(names(&report, "skipped").len(), scenarios(&report).len() - 1);
    assert_eq!(scenario(&report, "writes_messages_only")["note"], "it wrote nothing to stdout");
    let text = sandbox.plugd(&["check", "./plugins/gone"]).expect(6).stdout;
    assert!(text.contains("conformance: 0 scenarios passed, 1 failed, "), "{text}");
    // Of one that is there, what it never does is not said to be right.
    lib(&sandbox, &[reads("look")], "");
    let (_, report) =
        check(&sandbox, &[LIB, "--only=asks_the_host_for_what_there_is,tells_of_its_own_calls"]);
    assert_eq!(names(&report, "skipped").len(), 2, "{report:#}");
}

#[test]
fn one_cause_is_told_once() {
    let sandbox = Sandbox::new("");
    // It answers what it knows, and is silent about the rest.
    let program = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    known = {"describe": {"protocol": 1, "name": "x", "version": "1", "operations": []}, "init": {}, "shutdown": {}}
    if message["method"] in known:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": known[message["method"]]}), flush=True)
    if message["method"] == "shutdown":
        break
"#;
    sandbox.program("plugins/x/main.py", program);
    let (ran, report) = check(&sandbox, &["plugins/x/main.py"]);
    let failed: Vec<&str> = names(&report, "failed").into_iter().map(|(name, _)| name).collect();
    assert_eq!((ran.code, failed), (6, vec!["refuses_an_unknown_method"]), "{report:#}");
    for name in ["reads_a_large_line", "does_not_grow", "gives_back_ids_as_they_came"] {
        let note = scenario(&report, name)["note"].to_string();
        assert!(note.contains("mend refuses_an_unknown_method first"), "{name}: {note}");
    }
    // An id that is written into the program is told from no answer at all.
    let fixed = program.replace("message[\"id\"], \"result\"", "1, \"result\"");
    sandbox.program("plugins/x/main.py", &fixed);
    let (_, report) = check(&sandbox, &["plugins/x/main.py", "--only=answers_init"]);
    let found = scenario(&report, "answers_init")["findings"].to_string();
    assert!(found.contains("no answer to init with its id, 2: what came has another one"), "{found}");
}
