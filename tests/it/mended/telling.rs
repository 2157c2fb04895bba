//! Why a plugin does not run, or ended, is told by the line that says it, once, and blames nobody else.

use plugd_tests::{Sandbox, eventually};
use serde_json::Value;

/// What Node writes as it dies: the last line is its version.
const NODE_DIES: &str = "cat >&2 <<'END'\n/p/a.js:1\nfunction f() { throw new TypeError('no such pet') }\n               ^\n\n\
    TypeError: no such pet\n    at f (/p/a.js:1:22)\n    at node:internal/main/run_main_module:28:49\n\n\
    Node.js v20.20.2\nEND\nexit 1\n";

const TOLD: &str = "exit status 1; it said on stderr: TypeError: no such pet";

#[track_caller]
fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
}

/// The findings of `plugd doctor` about a plugin, as far as they are more than ok.
fn findings(sandbox: &Sandbox, plugin: &str) -> Vec<Value> {
    let report = sandbox.json(&["doctor", plugin]);
    report["findings"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_crash_is_told_by_the_line_that_says_why_at_the_start_in_a_call_and_in_a_reload() {
    let sandbox = Sandbox::new("");
    let crashes = sandbox.python(
        "crashes",
        "def handle(operation, arguments, params):\n    os._exit(os.system('sh ./die.sh') >> 8)\n",
    );
    sandbox.write("plugins/crashes/die.sh", NODE_DIES);
    sandbox.program("plugins/starts/main.sh", &format!("#!/bin/sh\n{NODE_DIES}"));
    let good = sandbox.shell("good");
    sandbox.configure(&format!("{crashes}{good}[plugins.starts]\ncommand = [\"plugins/starts/main.sh\"]\n"));
    let daemon = sandbox.serve();
    contains(&daemon.plugd(&["call", "crashes.echo"]).expect(6).stderr, &[TOLD]);
    let start = daemon.plugd(&["--output", "json", "start", "starts"]).expect(6).json();
    contains(start["plugins"][0]["reason"].as_str().expect("a reason"), &[TOLD]);
    contains(&daemon.plugd(&["doctor", "starts"]).stdout, &[TOLD, "stderr:     at f (/p/a.js:1:22)"]);
    daemon.plugd(&["call", "good.pid"]).expect(0);
    sandbox.program("plugins/good/main.sh", NODE_DIES);
    contains(&daemon.plugd(&["reload", "good"]).expect(6).stderr, &["goes on as it was", TOLD]);
    contains(&daemon.plugd(&["status", "good"]).stdout, &["it said on stderr: TypeError: no such pet"]);
    daemon.plugd(&["call", "good.pid"]).expect(0);
    daemon.stop();
}

#[test]
fn a_program_that_ends_well_and_never_serves_is_asked_whether_it_does() {
    let sandbox = Sandbox::new("");
    sandbox.program("ends.sh", "#!/bin/sh\nexit 0\n");
    sandbox.configure("[plugins.ends]\ncommand = [\"./ends.sh\"]\n");
    let why = "exit status 0 before it answered describe: does it call serve()";
    let called = sandbox.plugd(&["call", "ends.echo", "--timeout", "2s"]);
    assert_ne!(called.code, 0, "{called:?}");
    contains(&called.stderr, &[why]);
    contains(&sandbox.plugd(&["call", "./ends.sh", "echo", "--timeout", "2s"]).stderr, &[why]);
    let daemon = sandbox.serve();
    daemon.plugd(&["start", "ends"]).expect(6);
    contains(&daemon.plugd(&["status", "ends"]).stdout, &[why]);
    contains(&daemon.plugd(&["doctor", "ends"]).stdout, &[why]);
    daemon.stop();
}

#[test]
fn a_reload_of_a_plugin_that_does_not_run_says_what_would_keep_it_from_running() {
    let sandbox = Sandbox::new("");
    let schema = r#"MANIFEST = {"name": "fp", "config_schema": {"type": "object", "properties": {"greeting": {"type": "string"}}}}"#;
    let table = sandbox.python("fp", schema);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.plugd(&["describe", "fp"]).expect(0);
    eventually("it does not run", || daemon.status("fp")["pid"].is_null());
    let why = "cannot run: config.greeting: expected a string";
    sandbox.configure(&format!("{table}config = {{ greeting = 5 }}\n"));
    contains(&daemon.plugd(&["reload"]).expect(6).stdout, &["fp: it ", why]);
    let one = daemon.plugd(&["reload", "fp"]).expect(6);
    contains(&one.stderr, &["fp ", why, "mend it, then `plugd reload fp`"]);
    let found = findings(&sandbox, "fp");
    assert_eq!((found.len(), &found[0]["severity"]), (1, &"problem".into()), "one verdict: {found:#?}");
    contains(&found[0]["message"].to_string(), &[why]);
    sandbox.configure(&table);
    daemon.plugd(&["reload"]).expect(0);
    daemon.plugd(&["reload", "fp"]).expect(0);
    daemon.plugd(&["call", "fp.echo"]).expect(0);
    daemon.stop();
}

#[test]
fn what_plugd_ended_itself_is_no_crash() {
    let sandbox = Sandbox::new("");
    // It leaves neither at the end of its stdin nor, while it starts, in any other way but by a signal.
    let slow = "def on_init(params):\n    mark('inits')\n    time.sleep(600)\n";
    let imports = "import time\ndef mark(name):\n    open(name, 'a').write('x')\n";
    let table = sandbox.python("slow", &format!("{imports}{slow}"));
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "slow.echo", "--timeout", "300ms"]).expect(5);
    eventually("it starts", || !sandbox.read("plugins/slow/inits").is_empty());
    daemon.plugd(&["stop", "slow"]).expect(0);
    let exit = daemon.status("slow")["last_exit"].clone();
    assert_eq!((&exit["signal"], &exit["unasked"]), (&15.into(), &Value::Null), "{exit:#}");
    assert_eq!(exit["text"], "killed by signal 15 (SIGTERM) by plugd");
    let told = daemon.plugd(&["doctor", "slow"]).stdout;
    contains(&told, &["slow is stopped by an operator"]);
    assert!(!told.contains("SIGTERM") && !told.contains("ended"), "{told}");
    daemon.stop();
}

#[test]
fn copies_and_strays_in_a_scanned_folder_stop_nothing_else() {
    let sandbox = Sandbox::new("[scan]\ndirs = [\".\", \"p\"]\n");
    let good = std::fs::read_to_string(sandbox.fixture("bare.sh", "p/good")).expect("it is there");
    for copy in ["good~", "good.bak", "good.old", "good.orig", "good.save", ".good.swp", "#good#", "4913"] {
        sandbox.program(&format!("p/{copy}"), &good);
    }
    sandbox.write("p/notes.txt", "not a program");
    sandbox.write("p/later.sh", "#!/bin/sh\n");
    sandbox.program("p/twice.sh", &good);
    sandbox.program("p/twice.py", &good);
    let listed = sandbox.plugd(&["--output", "json", "list"]).expect(0).json();
    let names: Vec<&Value> =
        listed["plugins"].as_array().expect("plugins").iter().map(|plugin| &plugin["name"]).collect();
    assert_eq!(names, ["good"], "{listed:#}");
    sandbox.plugd(&["call", "good.pid"]).expect(0);
    let passed_over = |name: &str| {
        let all = listed["skipped"].as_array().expect("skipped");
        let of_name = |skipped: &&Value| skipped["path"].as_str().is_some_and(|path| path.ends_with(name));
        all.iter().find(of_name).map(|skipped| skipped["reason"].clone()).unwrap_or_default()
    };
    assert_eq!(passed_over("/good.old"), "it looks like a backup copy");
    assert_eq!(passed_over("/notes.txt"), "it is no program");
    assert_eq!(passed_over("/plugd.toml"), "it is no program");
    assert_eq!(passed_over("/later.sh"), "it is not executable: chmod +x makes it a plugin");
    // The operator is told of the two of one name, by the plugin's name as well.
    let why = "the plugin twice is there 2 times: ";
    contains(
        &sandbox.plugd(&["doctor"]).expect(6).stdout,
        &[why, "twice.py", "twice.sh", "none of them is used"],
    );
    contains(&sandbox.plugd(&["call", "twice.pid"]).expect(4).stderr, &[why]);
    contains(&sandbox.plugd(&["config", "check"]).expect(2).stderr, &[why]);
    // What is configured by name is not taken away by a file that appears, nor does a copy do it.
    let daemon = sandbox.serve();
    daemon.plugd(&["call", "good.pid"]).expect(0);
    let pid = daemon.status("good")["pid"].clone();
    sandbox.program("p/good.backup", &good);
    daemon.plugd(&["reload"]).expect(0);
    assert_eq!(daemon.status("good")["pid"], pid, "the same process");
    daemon.stop();
}

#[test]
fn a_damaged_record_is_told_once_and_in_plain_words() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.shell("good"));
    sandbox.plugd(&["call", "good.pid"]).expect(0);
    sandbox.write("state/plugd.db", &"this is no record ".repeat(1_000));
    for _ in 0..2 {
        let doctor = sandbox.plugd(&["doctor"]).expect(0);
        let told = format!("{}{}", doctor.stdout, doctor.stderr);
        contains(
            &told,
            &[
                "the record of calls was damaged and has been moved to ",
                "plugd.db.corrupt-",
                "remove that file",
            ],
        );
        assert_eq!(told.matches("record of calls").count(), 1, "{told}");
        assert!(!told.contains("not a database"), "{told}");
    }
    let daemon = sandbox.serve();
    let told = daemon.plugd(&["doctor"]).expect(0).stdout;
    assert_eq!(told.matches("record of calls").count(), 1, "{told}");
    daemon.stop();
}

#[test]
fn a_line_that_a_call_began_is_that_calls_own_and_not_glued_to_the_next() {
    let sandbox = Sandbox::new("");
    let halves = "def handle(operation, arguments, params):\n    sys.stderr.write('half of ' + str(arguments['n']))\n    \
                  sys.stderr.flush()\n    return {'data': None}\n";
    sandbox.configure(&sandbox.python("fp", halves));
    let daemon = sandbox.serve();
    let call = |n: u8| daemon.json(&["call", "fp.echo", &format!("n:={n}")])["meta"]["call_id"].clone();
    for n in [1, 2] {
        let id = call(n);
        let shown = daemon.plugd(&["calls", "show", id.as_str().expect("an id")]).expect(0).stdout;
        contains(&shown, &[&format!("fp stderr info half of {n}\n")]);
    }
    daemon.stop();
}
