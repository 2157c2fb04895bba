//! `plugd dev`: what is saved is taken up, what fails leaves the run before, what is typed is called.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plugd_tests::{Ran, Sandbox, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::languages::there_is;
use crate::new::{frugal, scaffold, turn};

/// A build of the SDK and what it needs, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(300);

/// A `plugd dev` whose lines the test types; both its outputs are seen as one.
struct Dev {
    child: Child,
    stdin: Option<ChildStdin>,
    seen: Arc<Mutex<String>>,
    /// So much of it was waited for already.
    read: usize,
}

impl Dev {
    fn start(sandbox: &Sandbox, path: &str) -> Dev {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let mut command = sandbox.command(&["dev", path]);
        fs::create_dir_all(sandbox.path().join("tmp")).expect("a folder");
        command.env("TMPDIR", sandbox.path().join("tmp"));
        command.stdin(Stdio::piped()).stdout(writer.try_clone().expect("a copy")).stderr(writer);
        frugal(&mut command);
        let mut child = command.spawn().expect("plugd runs");
        drop(command);
        let seen = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut piece) {
                shared.lock().expect("nobody panics").push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        Dev { stdin: child.stdin.take(), child, seen, read: 0 }
    }

    /// Types a line.
    fn type_(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        writeln!(stdin, "{line}").expect("it reads");
    }

    /// Waits until it says that, and gives all that came since what was waited for before.
    #[track_caller]
    fn wait_for(&mut self, expected: &str) -> String {
        let ends = Instant::now() + PATIENCE;
        loop {
            let seen = self.seen.lock().expect("nobody panics").clone();
            if let Some(at) = seen[self.read..].find(expected) {
                let end = self.read + at + expected.len();
                let came = seen[self.read..end].to_owned();
                self.read = end;
                return came;
            }
            assert!(Instant::now() < ends, "it never said {expected:?} after:\n{}", &seen[..self.read]);
            let over = self.child.try_wait().expect("it can be asked");
            assert!(over.is_none(), "it ended ({over:?}) before it said {expected:?}:\n{seen}");
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Closes stdin and waits for the end: its exit code.
    #[track_caller]
    fn end(mut self) -> i32 {
        drop(self.stdin.take());
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Replaces a part of a file, which must be there.
#[track_caller]
fn edit(sandbox: &Sandbox, file: &str, from: &str, to: &str) {
    let text = sandbox.read(file);
    assert!(text.contains(from), "{file} has no {from:?}: {text}");
    sandbox.write(file, &text.replace(from, to));
}

/// An edit shows in the next call, one that cannot work leaves what ran, and what is declared less well is told.
#[track_caller]
fn check(lang: &str, source: &str, broken: (&str, &str), complaint: &str) {
    let _turn = turn(lang);
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, lang);
    let source = format!("greet/{source}");
    let mut dev = Dev::start(&sandbox, "./greet");
    dev.wait_for("greet runs (");
    dev.type_("hello name=World");
    let came = dev.wait_for("← ok, ");
    assert!(
        came.contains("→ greet.hello {\"name\":\"World\"}") && came.contains("Hello, World!\n"),
        "{came}"
    );
    assert!(came.contains("log info greeting World") || lang == "sh", "{came}");

    // Typed right after the save: the answer is already the new one's.
    edit(&sandbox, &source, "Hello, ", "Good day, ");
    dev.type_("hello name=World");
    let came = dev.wait_for("← ok, ");
    assert!(came.contains("Good day, World!\n"), "{came}");

    edit(&sandbox, &source, broken.0, broken.1);
    dev.type_("hello name=Ada");
    let came = dev.wait_for("← ok, ");
    assert!(came.contains(complaint) && came.contains("mend it and save"), "{came}");
    assert!(came.contains("Good day, Ada!\n"), "the run before goes on: {came}");
    assert!(
        came.contains("warning: what was saved last is not taken up, and the program of before"),
        "{came}"
    );
    edit(&sandbox, &source, broken.1, broken.0);
    dev.wait_for("greet runs (");

    edit(&sandbox, &source, "Greets somebody by name. Gives one friendly line back.", "Greets.");
    let came = dev.wait_for("its description is one phrase");
    assert!(came.contains("changed: ") && came.contains("lint:"), "{came}");
    dev.type_("hello name=");
    dev.wait_for("← error, ");
    assert_eq!(dev.end(), 1, "the exit code of the last call");
    eventually("no process is left", || sandbox.processes_in("").is_empty());
}

#[test]
fn a_plugin_in_python_is_taken_up_as_it_is_saved() {
    check("python", "plugin.py", ("who = name", "who = ((name"), "SyntaxError");
}

#[test]
fn a_plugin_in_node_is_taken_up_as_it_is_saved() {
    if there_is("node", &["--version"]) {
        check("node", "plugin.js", ("const who = ", "const who = (("), "SyntaxError");
    }
}

#[test]
fn a_plugin_in_go_is_built_as_it_is_saved() {
    if there_is("go", &["version"]) {
        check("go", "main.go", ("who := ", "who := (("), "`go build -o bin/greet .` failed");
    }
}

#[test]
fn a_plugin_in_rust_is_built_as_it_is_saved() {
    check("rust", "src/main.rs", ("let who = ", "let who = (("), "`cargo build --target-dir target` failed");
}

#[test]
fn a_plugin_in_sh_is_taken_up_as_it_is_saved() {
    if there_is("awk", &["BEGIN { exit 0 }"]) {
        check("sh", "plugin.sh", ("while IFS=", "while ( IFS="), "yntax error");
    }
}

/// Row U4: from nothing to a tool for the weather that works, by what the README of a new plugin says.
#[test]
fn u4_a_new_plugin_becomes_a_tool_for_the_weather_by_editing_one_function() {
    let sandbox = Sandbox::new("");
    sandbox.plugd(&["new", "weather", "--lang", "python"]).expect(0);
    let readme = sandbox.read("weather/README.md");
    assert!(readme.contains("`plugd dev .`") && readme.contains("`hello` in `plugin.py`"), "{readme}");
    let source = "weather/plugin.py";
    let mut dev = Dev::start(&sandbox, "./weather");
    dev.wait_for("weather runs (");
    // One function, and what is declared of it.
    let text = sandbox.read(source);
    let (before, function) = text.split_once("@plugin.operation(").expect("an operation");
    let (_, after) = function.split_once("\n\n\n").expect("two empty lines end it");
    let forecast = r#"@plugin.operation(
    when_to_use="Somebody asks what the weather will be.",
    examples=["will it rain in Berlin tomorrow?"],
    read_only=True,
    idempotent=True,
)
def forecast(city: Annotated[str, "A city, such as Berlin."], days: Annotated[int, "For how many days."] = 1) -> list[dict]:
    """Foretells the weather of a city. Gives one entry a day, tomorrow first."""
    if city == "Atlantis":
        raise Error("no_such_city", f"nobody knows {city}", hint="cities are those of the atlas")
    return [{"day": day + 1, "sky": "clear", "celsius": 20 + day} for day in range(days)]"#;
    sandbox.write(source, &format!("{before}{forecast}\n\n\n{after}"));
    dev.wait_for("weather runs (");
    assert!(dev.wait_for(": forecast").len() < 40);
    dev.type_("forecast city=Berlin days=2");
    let came = dev.wait_for("← ok, ");
    assert!(came.contains("clear") && came.contains("21"), "{came}");
    dev.type_("forecast city=Atlantis");
    let came = dev.wait_for("← error, ");
    assert!(came.contains("no_such_city: nobody knows Atlantis"), "{came}");
    dev.type_("forecast city=Berlin days=1");
    dev.wait_for("← ok, ");
    assert_eq!(dev.end(), 0);
    let called =
        sandbox.plugd(&["--output", "json", "call", "./weather", "forecast", "city=Berlin"]).expect(0).json();
    assert_eq!(called["data"][0]["celsius"], 20, "{called:#}");
}

#[test]
fn what_does_not_start_is_not_tried_in_vain_and_starts_once_it_is_mended() {
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, "python");
    edit(&sandbox, "greet/plugin.py", "def hello(", "def hello((");
    let mut dev = Dev::start(&sandbox, "./greet");
    let came = dev.wait_for("mend it and save");
    assert_eq!(came.matches("SyntaxError: ").count(), 2, "its stderr, and why it is down: {came}");
    dev.type_("hello name=World");
    dev.wait_for("error 6007 unavailable: greet does not run: ");
    edit(&sandbox, "greet/plugin.py", "def hello((", "def hello(");
    dev.wait_for("greet runs (");
    dev.type_("hello name=World");
    dev.wait_for("Hello, World!\n");

    // Its table is taken up, too, where it can be read.
    let table = sandbox.read("greet/plugin.toml");
    sandbox.write("greet/plugin.toml", &format!("{table}confg = {{}}\n"));
    dev.wait_for("plugin.toml: line 3: unknown key confg: did you mean config?");
    dev.type_("hello name=World");
    dev.wait_for("← ok, ");
    sandbox.write("greet/plugin.toml", &format!("{table}env = {{ A = \"1\" }}\n"));
    dev.wait_for("greet runs (");
    assert_eq!(dev.end(), 0);
}

#[test]
fn a_program_is_run_with_its_arguments_and_what_lies_beside_it() {
    let sandbox = Sandbox::new("");
    let table = sandbox.python("odd", "import words\ndef handle(operation, arguments, params):\n    return {'data': [words.WORD, sys.argv[1:]]}\n");
    assert!(table.contains("main.py"));
    sandbox.write("plugins/odd/words.py", "WORD = 'one'\n");
    let script = "printf 'list\\n# nothing\\necho\\nquit\\necho\\n' | \"$0\" dev plugins/odd/main.py --output json -- -v 2>said";
    let ran = plugd_tests::shell(&sandbox, script).expect(0);
    let documents: Vec<Value> =
        ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(documents.len(), 2, "{ran:?} {}", sandbox.read("said"));
    assert_eq!(documents[1]["data"], serde_json::json!(["one", ["-v"]]), "{documents:?}");

    let mut dev = Dev::start(&sandbox, "plugins/odd/main.py");
    dev.wait_for("main runs (");
    sandbox.write("plugins/odd/words.py", "WORD = 'another'\n");
    let came = dev.wait_for("main runs (");
    assert!(came.contains("changed: words.py"), "{came}");
    dev.type_("echo");
    dev.wait_for("another");
    assert_eq!(dev.end(), 0);
}

#[test]
fn lines_that_mean_nothing_are_told_and_what_is_no_file_is_refused() {
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, "python");
    let mut dev = Dev::start(&sandbox, "./greet");
    dev.type_("help");
    assert!(dev.wait_for("so do Ctrl-D and Ctrl-C").contains("OPERATION name=value"));
    dev.type_("describe hello");
    dev.wait_for("Who is greeted.");
    dev.type_("lint");
    dev.wait_for("nothing was found in 1 operation");
    dev.type_("hello name='Ada");
    dev.wait_for("missing closing quote");
    dev.type_("helo name=Ada");
    dev.wait_for("did you mean greet.hello?");
    dev.type_("reload");
    dev.wait_for("greet runs (");
    dev.type_("logs 5");
    dev.type_("nmae");
    dev.wait_for("error 1003");
    assert_eq!(dev.end(), 4);
    let ran = sandbox.plugd(&["dev", "./nothing"]).expect(2);
    assert!(ran.stderr.contains("cannot use ./nothing"), "{ran:?}");
}

/// Operations that go wrong in the ways there are.
const WRONG: &str = r#"
import os
OPERATIONS = [{"name": name, "input_schema": {"type": "object", "properties": {}}}
    for name in ("fine", "dies", "raises", "asks", "waits")]
def handle(operation, arguments, params):
    if operation == "dies":
        os._exit(3)
    if operation == "raises":
        raise Failure("it broke", code=2)
    if operation == "asks":
        raise Failure("it is closed", code=1)
    if operation == "waits":
        time.sleep(60)
    return {"data": [1, 2]}
"#;

/// One object a line for each line that is typed, and no word of a command that does not reach it.
#[test]
fn under_output_json_each_line_is_answered_by_one_object() {
    let sandbox = Sandbox::new("");
    sandbox.python("odd", WRONG);
    let lines: &[(&str, &str)] = &[
        ("help", "/commands/0/line"),
        ("list", "/operations/0/name"),
        ("describe fine", "/operations/0/name"),
        ("fine --help", "/operations/0/name"),
        ("lint", "/findings"),
        ("logs 5", "/entries"),
        ("reload", "/runs"),
        ("fine", "/data/1"),
        ("fine --explain", "/operation"),
        ("list all", "/error/message"),
        ("plugd call ./odd fine", "/error/message"),
        ("fine --nope", "/error/message"),
        ("fine text=1 text=2", "/error/hint"),
        ("describe fien", "/error/hint"),
        ("fien", "/error/hint"),
        ("other.fine", "/error/hint"),
        ("raises", "/error/hint"),
        ("asks", "/error/message"),
        ("waits --timeout 200ms", "/error/message"),
        ("dies", "/error/hint"),
    ];
    let typed: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    sandbox.write("typed", &format!("\n# nothing\n{typed}quit\nfine\n"));
    let ran = plugd_tests::shell(&sandbox, "\"$0\" dev plugins/odd/main.py --output json <typed 2>said");
    let documents: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let said = sandbox.read("said");
    assert_eq!(documents.len(), lines.len(), "{documents:#?} {said}");
    for ((line, pointer), document) in lines.iter().zip(&documents) {
        assert!(document.is_object() && document.pointer(pointer).is_some(), "{line}: {document:#}");
        assert!(!document["error"].to_string().contains("`plugd "), "{line}: {document:#}");
    }
    assert_eq!((&documents[6]["plugin"], &documents[6]["runs"]), (&"main".into(), &true.into()));
    assert!(!said.contains("`plugd ") && said.contains("main runs ("), "{said}");

    // What is saved does not run; what ran before does.
    sandbox.write("typed", "fine\nreload\nfine\n");
    let break_it =
        "(until grep -q '→' said 2>/dev/null; do sleep 0.05; done; echo '((' >>plugins/odd/main.py) & ";
    let lines = "(sed -n 1p typed; until grep -q 'mend it' said; do sleep 0.05; done; sed -n 2,3p typed)";
    let script = format!(": >said; {break_it}{lines} | \"$0\" dev plugins/odd/main.py --output json 2>said");
    let ran = plugd_tests::shell(&sandbox, &script).expect(0);
    let documents: Vec<Value> =
        ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(documents.len(), 3, "{ran:?} {}", sandbox.read("said"));
    assert_eq!(documents[1]["runs"], true, "{documents:#?}");
    assert!(documents[1]["reason"].as_str().is_some_and(|why| why.contains("SyntaxError")), "{documents:#?}");
    assert_eq!(documents[2]["data"], serde_json::json!([1, 2]));
}

#[test]
fn what_is_down_has_a_way_on_that_the_prompt_has() {
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, "python");
    edit(&sandbox, "greet/plugin.py", "def hello(", "def hello((");
    let mut dev = Dev::start(&sandbox, "./greet");
    dev.wait_for("mend it and save");
    dev.type_("hello name=World");
    let came = dev.wait_for("hint: mend it and save: then it is started");
    dev.type_("describe nothing");
    let came = format!("{came}{}", dev.wait_for("error 1003"));
    dev.type_("plugd list");
    let came = format!("{came}{}", dev.wait_for("without plugd"));
    assert!(!came.contains("`plugd "), "{came}");
    dev.end();

    // What it requires is no fault of its own.
    sandbox.python("needy", "MANIFEST['requires'] = {'mailbox': '>=1.0'}\n");
    let mut dev = Dev::start(&sandbox, "plugins/needy/main.py");
    dev.wait_for("only this plugin runs here: name it and what it requires");
    dev.type_("echo");
    let came = dev.wait_for("hint: only this plugin runs here");
    assert!(came.contains("mailbox") && !came.contains("mend it and save"), "{came}");
    dev.end();
}

#[test]
fn where_nobody_can_be_asked_the_line_says_what_is_missing() {
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, "python");
    edit(&sandbox, "greet/plugin.py", "    read_only=True,\n", "    destructive=True,\n");
    let mut dev = Dev::start(&sandbox, "./greet");
    dev.type_("hello");
    let came = dev.wait_for("← needs_input");
    assert!(came.contains("call it again with what is missing") && !came.contains("plugd answer"), "{came}");
    dev.type_("hello name=Ada");
    assert!(dev.wait_for("← needs_confirmation").contains("call it again with --yes"));
    dev.type_("hello name=Ada --yes");
    dev.wait_for("Hello, Ada!");
    dev.type_("hello --explain name=Ada");
    dev.wait_for("confirmation  needed");
    assert_eq!(dev.end(), 0);
}

/// What it keeps is its own: neither the record nor the state of a daemon beside it knows of it.
#[test]
fn it_runs_beside_a_daemon_that_does_not_notice() {
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, "python");
    sandbox.configure("[plugins.greet]\ncommand = [\"python3\", \"plugin.py\"]\ncwd = \"greet\"\n");
    let daemon = sandbox.serve();
    let mut dev = Dev::start(&sandbox, "./greet");
    dev.wait_for("greet runs (");
    dev.type_("hello name=World");
    dev.wait_for("← ok, ");
    assert_eq!(dev.end(), 0);
    assert_eq!(daemon.json(&["calls"])["calls"], serde_json::json!([]));
    assert_eq!(daemon.json(&["call", "greet.hello", "name=Ada"])["data"], "Hello, Ada!");
    daemon.stop();
}

/// SIGTERM ends it, and all that it started, also while a build hangs.
#[test]
fn it_leaves_nothing_when_it_is_ended() {
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, "python");
    let end = |mut dev: Dev| {
        plugd_tests::kill(dev.child.id(), Signal::TERM);
        assert_eq!(dev.child.wait().expect("it ends").code(), Some(130));
        eventually("no process is left", || sandbox.processes_in("").is_empty());
        let left: Vec<_> = fs::read_dir(sandbox.path().join("tmp")).expect("it is there").flatten().collect();
        assert!(left.is_empty(), "its state is gone: {left:?}");
    };
    let mut dev = Dev::start(&sandbox, "./greet");
    dev.wait_for("greet runs (");
    end(dev);
    let table = sandbox.read("greet/plugin.toml");
    let build = "[dev]\nbuild = [\"sh\", \"-c\", \"sleep 600 & echo hangs; wait\"]\n";
    sandbox.write("greet/plugin.toml", &format!("{table}{build}"));
    let mut dev = Dev::start(&sandbox, "./greet");
    dev.wait_for("  hangs");
    end(dev);
}

/// At a terminal: a prompt that completes, questions, what happens above it, and Ctrl-D.
#[test]
fn at_a_terminal_there_is_a_prompt_that_completes() {
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, "python");
    let edit = "sed -i s/Hello/Welcome/ greet/plugin.py";
    let steps = serde_json::json!([
        ["greet> ", 0.1, "hell\t"],
        ["hello ", 0.1, "n\t"],
        ["name=", 0.1, "World\r"],
        ["Hello, World!", 0.1, ""],
        [" before", 0.2, "hello\r"],
        ["[ask] Who is greeted: ", 0.1, "Ada\r"],
        ["Hello, Ada!", 0, ""],
        [" before", 0.2, "hello name=half"],
        // Saved while a line is half typed: what happens stands above it, and it is there as before.
        ["greet runs (", 0.2, "-typed\r"],
        ["Welcome, half-typed!", 0, ""],
        [" before", 0.2, "\u{4}"],
    ]);
    let saver = format!(
        "(until grep -q 'hello name=half' terminal/screen 2>/dev/null; do sleep 0.05; done; {edit}) & exec \"$@\""
    );
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/terminal.py");
    let plain = sandbox.command(&["dev", "./greet"]);
    let mut command = Command::new("timeout");
    command
        .args(["120", "sh", "-c", &saver, "sh", "python3"])
        .arg(fixture)
        .arg(sandbox.path().join("terminal"));
    command.arg(steps.to_string()).arg(plain.get_program()).args(plain.get_args());
    command.env("TERMINAL_HAS_STDOUT", "1").env("TERM", "xterm").env("NO_COLOR", "1");
    command.current_dir(sandbox.path()).stdin(Stdio::null());
    let ran: Ran = command.output().expect("it runs").into();
    let screen = sandbox.read("terminal/screen");
    assert_eq!(ran.code, 0, "{ran:?}\n{screen}");
    assert!(screen.contains("Welcome, half-typed!") && screen.contains("changed: plugin.py"), "{screen}");
    eventually("no process is left", || sandbox.processes_in("").is_empty());
}
