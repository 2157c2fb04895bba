//! The kit itself: what it is told, what it writes, and that it leaves nothing behind.

use std::fs;
use std::process::Stdio;

use plugd_tests::{Sandbox, eventually, kill};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{check, names, scenario, scenarios};

/// The fixture without a sin, in a sandbox.
fn good() -> Sandbox {
    let sandbox = Sandbox::new("");
    sandbox.fixture("misbehave.py", "plugins/good/misbehave.py");
    sandbox
}

const GOOD: &str = "plugins/good/misbehave.py";

#[test]
fn a_good_plugin_passes_all_of_it() {
    let sandbox = good();
    let (ran, report) = check(&sandbox, &[GOOD, "--call=echo,misbehave.sleep"]);
    assert_eq!(names(&report, "failed"), [], "{report:#}");
    // A loaded machine may be slow to start it.
    let warned = names(&report, "warned");
    assert!(warned.iter().all(|(name, _)| *name == "starts_soon"), "{warned:#?}");
    assert_eq!((ran.code, &report["ok"]), (0, &json!(true)));
    let all = scenarios(&report);
    assert!(all.len() > 45 && names(&report, "passed").len() > 40, "{report:#}");
    for skipped in names(&report, "skipped") {
        assert!(scenario(&report, skipped.0)["note"].is_string(), "{skipped:?}");
    }
    assert!(
        all.iter().all(|one| one["spec"].as_str().is_some_and(|spec| spec.starts_with("docs/protocol.md#")))
    );
}

#[test]
fn what_is_wrong_is_told_with_evidence_what_to_do_and_where_it_is_specified() {
    let sandbox = good();
    let args = [
        "check",
        GOOD,
        "--only",
        "answers_calls,writes_messages_only",
        "--call=echo",
        "--timeout",
        "2s",
        "--",
        "--html",
    ];
    let told = sandbox.plugd(&args).expect(6).stdout;
    for part in [
        "conformance: 0 scenarios passed, 2 failed in ",
        "failed: writes_messages_only  a line on stdout that is no message, 4 times",
        "← <html>",
        "fix: write messages alone to stdout",
        "see: docs/protocol.md#frames",
        "failed: answers_calls  echo: no answer to call within 2.0s",
        "\"method\":\"call\",\"params\":{\"operation\":\"echo\"",
        "not all of it keeps to the protocol",
        "    found: as misbehave.echo",
        "    filled: nothing is needed",
        "    fails: after 30s",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn ci_gets_junit_and_warnings_fail_only_when_they_should() {
    let sandbox = good();
    let args = |strict: &'static [&'static str], last: &'static [&'static str]| {
        let first = ["check", GOOD, "--only=is_quiet_when_idle,starts_soon", "--junit", "check.xml"];
        [&first[..], strict, last].concat()
    };
    sandbox.plugd(&args(&[], &["--", "--slow-describe=2.2"])).expect(0);
    let written = sandbox.read("check.xml");
    assert!(written.contains("<system-out>described after "), "{written}");
    sandbox.plugd(&args(&["--strict"], &["--", "--slow-describe=2.2"])).expect(6);
    let written = sandbox.read("check.xml");
    assert!(written.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites"), "{written}");
    assert!(
        written.contains("name=\"starts_soon\"") && written.contains("<failure message=\"described"),
        "{written}"
    );
    assert!(written.contains("failures=\"1\" skipped=\"0\""), "{written}");
    sandbox.plugd(&["check", GOOD, "--only=starts_soon", "--junit", "no/such/folder.xml"]).expect(2);
}

#[test]
fn what_cannot_be_meant_is_said_at_once() {
    let sandbox = good();
    for (args, code, said) in [
        (&["check", GOOD, "--only", "answers_call"][..], 2, "answers_calls"),
        (&["check", "bad", "--only", "answers_calls"], 2, "scenarios are run with an executable"),
        (&["check", "bad", "--", "-v"], 2, "arguments after -- are those of one executable"),
        (&["check", GOOD, GOOD, "--", "-v"], 2, "arguments after -- are those of one executable"),
        (&["check", GOOD, "--run"], 2, "unexpected argument '--run'"),
        (&["check", GOOD, "--only=answers_calls", "--call=ehco"], 4, "did you mean misbehave.echo?"),
    ] {
        let ran = sandbox.plugd(args).expect(code);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(said), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_configured_plugin_is_not_put_to_the_test() {
    let sandbox = Sandbox::new("");
    let table = sandbox.misbehaving("good", &[]);
    sandbox.configure(&table);
    let (ran, report) = check(&sandbox, &["good"]);
    assert_eq!(ran.code, 0, "{report:#}");
    assert!(report["plugins"][0].get("conformance").is_none(), "{report:#}");
}

#[test]
fn a_folder_is_checked_with_its_own_configuration_and_secrets_are_not_shown() {
    let sandbox = Sandbox::new("");
    let definitions = "
MANIFEST = {'config_schema': {'type': 'object', 'required': ['city'], 'properties': {'city': {'type': 'string'}}}}
def on_init(params):
    if params['config'].get('city') != 'Bonn':
        raise Failure('no city but Bonn, and not with ' + os.environ['API_TOKEN'])
    return {}
";
    sandbox.python("lib", definitions);
    let table = |city: &str| {
        format!(
            "command = [\"./main.py\"]\nenv = {{ API_TOKEN = \"opensesame\" }}\nconfig = {{ city = \"{city}\" }}\n"
        )
    };
    let only = "--only=answers_init,survives_a_config_that_does_not_fit,does_not_grow";
    sandbox.write("plugins/lib/plugin.toml", &table("Bonn"));
    let (ran, report) = check(&sandbox, &["./plugins/lib", only]);
    assert_eq!((ran.code, names(&report, "passed").len()), (0, 3), "{report:#}");
    sandbox.write("plugins/lib/plugin.toml", &table("Rome"));
    let (ran, report) = check(&sandbox, &["./plugins/lib", only]);
    assert_eq!(ran.code, 6, "{report:#}");
    let found = scenario(&report, "answers_init")["findings"].to_string();
    assert!(found.contains("init was refused: no city but Bonn, and not with ***"), "{found}");
    assert!(!report["plugins"][0]["conformance"].to_string().contains("opensesame"), "{report:#}");
    assert_eq!(scenario(&report, "does_not_grow")["note"], "it did not come up");
    sandbox.write("plugins/lib/plugin.toml", "command = [\"./main.py\"]\n");
    let (_, report) = check(&sandbox, &["./plugins/lib", only]);
    let note = scenario(&report, "answers_init")["note"].to_string();
    assert!(note.contains("it needs configuration (config"), "{note}");
}

#[test]
fn what_is_declared_and_not_so_is_found() {
    let sandbox = Sandbox::new("");
    let operations = json!([
        {"name": "counts", "input_schema": {}, "effects": {"read_only": true, "idempotent": true}},
        {"name": "writes", "input_schema": {}, "effects": {"read_only": true}},
        {"name": "other", "input_schema": {}, "effects": {"read_only": true}, "output_schema": {"type": "integer"}},
        {"name": "lax", "input_schema": {"type": "object", "properties": {"a": {"type": ["string", "object"]}, "b": {"type": "string"}}}},
    ]);
    let definitions = format!(
        "OPERATIONS = json.loads({:?})\nTURNS = []
def handle(operation, arguments, params):
    TURNS.append(1)
    if operation == 'writes':
        mark('written')
    return {{'data': len(TURNS) if operation == 'counts' else 'text'}}
",
        operations.to_string()
    );
    sandbox.python("lib", &definitions);
    let only = "--only=is_idempotent_where_declared,changes_nothing_where_read_only,fits_its_output_schema,keeps_bad_arguments_away";
    // The fixture does not answer what raised: in a sandbox `writes` is waited for.
    let (ran, report) = check(&sandbox, &["plugins/lib/main.py", "--call", "--timeout", "3s", only]);
    assert_eq!(ran.code, 6, "{report:#}");
    let found = |name: &str| scenario(&report, name)["findings"].to_string();
    assert!(
        found("is_idempotent_where_declared").contains("counts declares idempotent, and answers otherwise")
    );
    let changed = found("changes_nothing_where_read_only");
    assert!(changed.contains("writes declares read_only, and changes files"), "{changed}");
    assert!(changed.contains("plugins/lib/written"), "{changed}");
    if landlock() {
        assert!(changed.contains("in a read-only sandbox: writes: no answer to call"), "{changed}");
    }
    assert!(
        found("fits_its_output_schema").contains("the data of other at as a whole: expected"),
        "{report:#}"
    );
    let outcome = |name: &str| scenario(&report, name)["outcome"].clone();
    assert_eq!(outcome("is_idempotent_where_declared"), "warned");
    assert_eq!(outcome("keeps_bad_arguments_away"), "passed");
}

/// Whether this kernel can keep a process from writing.
fn landlock() -> bool {
    fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|modules| modules.contains("landlock"))
}

#[test]
fn somebody_who_interrupts_it_leaves_no_process_behind() {
    let sandbox = good();
    fs::create_dir(sandbox.path().join("tmp")).expect("a folder");
    let mut command = sandbox.command(&["check", GOOD, "--", "--slow-init=600", "--setsid-grandchild"]);
    command.env("TMPDIR", sandbox.path().join("tmp")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = command.spawn().expect("plugd runs");
    // The kit has a folder for data once it has sent `init`.
    let begun = || {
        let folders = fs::read_dir(sandbox.path().join("tmp")).into_iter().flatten().flatten();
        folders.flat_map(|folder| fs::read_dir(folder.path())).flatten().count() > 0
    };
    eventually("the kit has sent init", begun);
    assert!(sandbox.processes_in("plugins").len() > 1, "the plugin and what it started");
    kill(running.id(), Signal::INT);
    assert_eq!(running.wait().expect("it ends").code(), Some(130));
    assert_eq!(sandbox.processes_in("plugins"), [0; 0]);
    assert_eq!(
        fs::read_dir(sandbox.path().join("tmp")).expect("the folder").count(),
        0,
        "its folder is gone"
    );
}

/// Arguments that do not fit are plugd's affair: the plugin does not hear of them. All that it reads is recorded.
#[test]
fn bad_arguments_never_reach_the_plugin() {
    let sandbox = Sandbox::new("");
    let operation = json!([{"name": "book", "input_schema": {
        "type": "object", "required": ["days"], "properties": {
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "city": {"type": "string", "enum": ["Bonn"]},
            "guests": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "open": {"type": "boolean"}, "mail": {"type": "string", "format": "email"}}}}]);
    sandbox.python("book", &format!("OPERATIONS = json.loads({:?})\n", operation.to_string()));
    let command = "[\"sh\", \"-c\", \"tee -a heard | ./main.py\"]";
    sandbox.configure(&format!("[plugins.book]\ncommand = {command}\ncwd = \"plugins/book\"\n"));
    let daemon = sandbox.serve();
    let calls = |heard: &str| heard.lines().filter(|line| line.contains("\"method\":\"call\"")).count();
    let bad = [
        json!([]),
        json!("text"),
        json!({"days": "many"}),
        json!({"days": 0}),
        json!({"days": 15}),
        json!({"days": 1.5}),
        json!({"days": 1, "city": "Rome"}),
        json!({"days": 1, "guests": "Ada"}),
        json!({"days": 1, "guests": ["a", "b", "c"]}),
        json!({"days": 1, "guests": [1]}),
        json!({"days": 1, "open": "perhaps"}),
        json!({"days": 1, "mail": "no"}),
        json!({"days": 1, "dyas": 2}),
        json!({"days": null}),
        json!({"days": {"n": 1}}),
    ];
    daemon.json(&["start", "book"]);
    for arguments in &bad {
        let ran = daemon.plugd(&["--output", "json", "call", "book.book", "--json", &arguments.to_string()]);
        let result: Value = ran.json();
        assert!(matches!(ran.code, 3 | 8), "{arguments}: {result:#}");
        assert_eq!(calls(&sandbox.read("plugins/book/heard")), 0, "{arguments} reached it");
    }
    daemon.plugd(&["call", "book.book", "days=3"]).expect(0);
    assert_eq!(calls(&sandbox.read("plugins/book/heard")), 1, "what fits does");
    daemon.stop();
}
