//! What is said where something goes wrong: what to do next is always something that can be done.

use std::process::{Command, Stdio};

use plugd_tests::{Ran, Sandbox};
use serde_json::json;

use crate::asking::Terminal;

/// Fails in every way; `plan` and `wipe` lack something.
const ODD: &str = r#"
TO = {"type": "object", "description": "Where it goes", "properties": {
    "street": {"type": "string", "description": "The street"},
    "zip": {"type": "integer", "description": "The code"},
    "speed": {"enum": ["slow", "fast"], "default": "slow"}}, "required": ["street", "zip"]}
DAYS = {"days": {"type": "integer", "description": "How long"}}
PIN = {"pin": {"type": "string", "x-sensitive": True}}
OPERATIONS = [{"name": name, "input_schema": {"type": "object"}} for name in ("die", "fault", "unnamed", "named", "lines")]
OPERATIONS += [
    {"name": "plan", "input_schema": {"type": "object", "properties": {**DAYS, **PIN, "city": {"type": "string"}}, "required": ["days"]}},
    {"name": "wipe", "input_schema": {"type": "object", "properties": DAYS}, "confirm": "always"},
    {"name": "send", "input_schema": {"type": "object", "properties": {"to": TO}, "required": ["to"]}},
    {"name": "nothing", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}]

def handle(operation, arguments, params):
    if operation == "die":
        os._exit(3)
    if operation == "fault":
        print("the stack of it", file=sys.stderr, flush=True)
        raise Failure("oh", 2)
    if operation == "unnamed":
        raise Failure("it did not work")
    if operation == "named":
        raise Failure("sold out", name="sold_out")
    if operation == "lines":
        raise Failure("first\nsecond", name="two_lines", hint="do this\nthen that")
    return {"data": arguments}
"#;

/// What only a configuration or a daemon makes true.
const ELSEWHERE: &[&str] =
    &["plugd list", "plugd reload", "plugd start", "plugd status", "by itself", "mend it and save"];

fn odd() -> (Sandbox, String) {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("odd", ODD);
    (sandbox, table)
}

/// Runs a command as somebody does who has no configuration at all.
fn without_config(sandbox: &Sandbox, args: &[&str]) -> Ran {
    let mut command = Command::new(plugd_tests::plugd());
    command.current_dir(sandbox.path().join("plugins")).args(args).stdin(Stdio::null());
    for (variable, folder) in
        [("XDG_STATE_HOME", "own/state"), ("XDG_CONFIG_HOME", "own/config"), ("XDG_RUNTIME_DIR", "own/run")]
    {
        command.env(variable, sandbox.path().join(folder));
    }
    command.env_remove("PLUGD_CONFIG").output().expect("plugd runs").into()
}

/// The command between two backticks that begins so, without its first word.
#[track_caller]
fn advised(told: &str, begins: &str) -> Vec<String> {
    let (_, rest) = told.split_once(&format!("`{begins}")).unwrap_or_else(|| panic!("{begins}: {told}"));
    let line = format!("{begins}{}", rest.split('`').next().unwrap_or_default());
    line.split(' ').skip(1).map(str::to_owned).collect()
}

#[test]
fn what_a_call_by_path_advises_can_be_done_without_a_configuration() {
    let (sandbox, _) = odd();
    let call = |operation: &str, code| {
        let ran = without_config(&sandbox, &["call", "./odd/main.py", operation]).expect(code);
        for words in ELSEWHERE {
            assert!(!ran.stderr.contains(words), "{operation}: {words}: {}", ran.stderr);
        }
        ran.stderr
    };
    // What ends without a word has nothing in the log.
    assert!(call("die", 6).contains("`plugd check ./odd/main.py` says more"));
    for operation in ["fault", "unnamed"] {
        let told = call(operation, 1);
        let logs = advised(&told, "plugd logs");
        let words: Vec<&str> = logs.iter().map(String::as_str).collect();
        let said = without_config(&sandbox, &words).expect(0).stdout;
        assert!(operation != "fault" || said.contains("the stack of it"), "{told}\n{said}");
    }
    assert!(call("dei", 4).contains("did you mean main.die? It was not run; it has die, "));
    let other = without_config(&sandbox, &["call", "./odd/main.py", "other.op"]).expect(4).stderr;
    assert!(other.contains("hint: it has die, "), "{other}");
    // Where other commands look elsewhere the file is named.
    let told = sandbox.plugd(&["call", "./plugins/odd/main.py", "fault"]).expect(1).stderr;
    let file =
        told.split("a fault in the plugin: ").nth(1).and_then(|hint| hint.split(" has the stack").next());
    let log =
        std::fs::read_to_string(file.unwrap_or_default()).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert!(log.contains("the stack of it"), "{log}");
}

#[test]
fn a_plugin_by_path_that_cannot_start_is_checked_or_called_again() {
    let sandbox = Sandbox::new("");
    sandbox
        .program("plugins/broken/main.py", "#!/usr/bin/env python3\nimport sys\nsys.exit('no such word')\n");
    sandbox.python("refuses", "def on_init(params):\n    raise Failure('no key')\n");
    sandbox.python("needy", "MANIFEST = {'requires': {'other': '*'}}\n");
    for plugin in ["broken", "refuses", "needy"] {
        let path = format!("./{plugin}/main.py");
        let told = without_config(&sandbox, &["call", &path, "echo", "--timeout", "3s"]);
        assert!([5, 6].contains(&told.code), "{told:?}");
        for words in ELSEWHERE.iter().chain(&["retryable"]) {
            assert!(!told.stderr.contains(words) || told.code == 5, "{plugin}: {words}: {}", told.stderr);
        }
        assert!(told.stderr.contains("  hint: "), "{plugin}: {}", told.stderr);
    }
}

#[test]
fn whoever_types_the_command_is_told_which_file_is_missing() {
    let sandbox = Sandbox::new("");
    let text = "command = [\"./bin/lost\"]\n[dev]\nbuild = [\"make\", \"lost\"]\n";
    sandbox.write("plugins/lost/plugin.toml", text);
    let program = sandbox.path().canonicalize().expect("it is there").join("plugins/lost/bin/lost");
    let program = program.to_string_lossy();
    let told = without_config(&sandbox, &["call", "./lost", "op"]).expect(6).stderr;
    assert!(told.contains(&*program) && !told.contains("[path]"), "{told}");
    assert!(told.contains("hint: `make lost` in ") && told.contains(", then call again"), "{told}");
    sandbox.configure("[scan]\ndirs = [\"plugins\"]\n");
    let checked = sandbox.plugd(&["config", "check"]);
    let here = [
        format!("{}{}", checked.stdout, checked.stderr),
        sandbox.plugd(&["call", "lost.op"]).expect(6).stderr,
        sandbox.plugd(&["doctor", "lost"]).stdout,
    ];
    for told in here {
        assert!(told.contains(&*program) && !told.contains("[path]"), "{told}");
    }
}

#[test]
fn a_call_by_path_that_stopped_shows_the_command_to_go_on_with() {
    let (sandbox, _) = odd();
    let last_line = |args: &[&str]| {
        let told = without_config(&sandbox, args).expect(8).stderr;
        told.trim_end().lines().last().unwrap_or_default().trim().to_owned()
    };
    let call = ["call", "./odd/main.py"];
    let plan = last_line(&[&call[..], &["plan", "city=New York", "pin=1234"]].concat());
    assert_eq!(plan, "plugd call ./odd/main.py plan 'city=New York' 'pin=…' days=…");
    assert_eq!(
        last_line(&[&call[..], &["wipe", "days=3"]].concat()),
        "plugd call ./odd/main.py wipe days=3 --yes"
    );
    let send = last_line(&[&call[..], &["send", r#"to:={"street":"Main St"}"#]].concat());
    assert_eq!(send, r#"plugd call ./odd/main.py send to:='{"street":"Main St","zip":"…"}'"#);
    let json =
        without_config(&sandbox, &["--output", "json", "call", "./odd/main.py", "wipe"]).expect(8).json();
    let hint = json["error"]["hint"].as_str().expect("a hint");
    assert_eq!(hint, "call again: `plugd --output json call ./odd/main.py wipe --yes`");
}

#[test]
fn an_object_is_asked_for_and_described_by_what_is_in_it() {
    let (sandbox, table) = odd();
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let told = daemon.plugd(&["call", "odd.send"]).expect(8).stderr;
    for part in ["street", "The street", "required", "zip", "integer", r#"to:='{"street":"…","zip":…}'"#]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let answer = r#"{"street": "Main St", "zip": 3}"#;
    let asked = r#"Where it goes (as JSON: {"street":"…","zip":…}): "#;
    let sent = Terminal::run(
        &sandbox,
        &["--output", "data", "call", "odd.send"],
        &[(asked, 0.0, &format!("{answer}\n"))],
    );
    assert_eq!(sent.data(), json!({"to": {"street": "Main St", "zip": 3, "speed": "slow"}}));
    assert!(sandbox.read("terminal/screen").contains("The code"), "{}", sandbox.read("terminal/screen"));
    let shown = daemon.plugd(&["describe", "odd.send"]).expect(0).stdout;
    assert!(shown.contains("      street") && shown.contains("\"slow\"|\"fast\"=\"slow\""), "{shown}");
    let told = daemon.plugd(&["call", "odd.send", "to.street=Main St", "to.zip=3"]).expect(3).stderr;
    assert!(told.contains("\"to.street\" is no argument: to is an object"), "{told}");
    assert!(told.contains(r#"write 'to:={"street":"Main St","zip":3}'"#), "{told}");
    daemon.stop();
}

#[test]
fn only_errors_that_explain_nothing_point_at_the_log() {
    let (sandbox, table) = odd();
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let told = |operation: &str| daemon.plugd(&["call", &format!("odd.{operation}")]).expect(1).stderr;
    assert_eq!(told("named"), "error 4001 sold_out: sold out\n");
    assert!(told("unnamed").contains("`plugd logs odd`"));
    assert!(told("fault").contains("`plugd logs odd`"));
    let lines = told("lines");
    assert!(lines.contains("hint: do this then that") && !lines.contains("\\u{"), "{lines}");
    daemon.stop();
}

#[test]
fn an_operation_that_takes_nothing_says_so() {
    let (sandbox, table) = odd();
    sandbox.configure(&table);
    let told = sandbox.plugd(&["call", "odd.nothing", "x=1"]).expect(3).stderr;
    assert!(told.contains("x: expected no arguments: none are taken"), "{told}");
    let shown = sandbox.plugd(&["describe", "odd.nothing"]).expect(0).stdout;
    assert!(shown.contains("  arguments: none\n"), "{shown}");
}
