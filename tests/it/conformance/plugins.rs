//! Plugins that are as they should be pass every scenario, with an SDK and without, in every language.
//!
//! To add one, say in [`PLUGINS`] how it is started; what only reads is called with its own examples.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plugd_tests::Sandbox;

use super::{check, names, scenario};
use crate::languages::{from_the_protocol_page, there_is};

/// How a plugin is had.
enum From {
    /// This program of the protocol's page.
    Page(&'static str),
    /// This fixture, with these words before its name.
    Fixture(&'static str, &'static str),
    /// This command; `ROOT` in it is the repository.
    Command(&'static str),
    /// A Java fixture, compiled first: that takes longer than all scenarios.
    Java(&'static str),
    /// A Go program, built first.
    Go(&'static str),
    /// This folder of the repository, with a `plugin.toml`.
    Folder(&'static str),
}

/// A plugin that must pass: its name, how it is had, what must be there with a sign that it works, and how it
/// is called: `--call` calls all that only reads, `--call=NAME` one alone.
type Plugin = (&'static str, From, &'static [&'static str], &'static str);

/// What must be there.
const JQ: &[&str] = &["jq", "-n", "1"];
const PERL: &[&str] = &["perl", "-MJSON::PP", "-e", "1"];
const NODE: &[&str] = &["node", "--version"];
const RUBY: &[&str] = &["ruby", "-rjson", "-e", "1"];
const JAVA: &[&str] = &["javac", "-version"];
const GO: &[&str] = &["go", "version"];

/// The plugins that must pass, without failures.
const PLUGINS: &[Plugin] = &[
    ("greet.sh", From::Page("greet.sh"), JQ, "--call"),
    ("dice.pl", From::Page("dice.pl"), PERL, "--call"),
    ("echo.py", From::Fixture("python3", "echo.py"), &[], "--call"),
    ("echo.js", From::Fixture("node", "echo.js"), NODE, "--call"),
    ("echo.pl", From::Fixture("perl", "echo.pl"), PERL, "--call"),
    ("echo_jq.sh", From::Fixture("sh", "echo_jq.sh"), JQ, "--call"),
    ("echo.rb", From::Fixture("ruby", "echo.rb"), RUBY, "--call"),
    ("Echo.java", From::Java("Echo"), JAVA, "--call"),
    ("clock", From::Folder("example-plugins/clock"), &[], "--call"),
    ("logs", From::Folder("example-plugins/logs"), &[], "--call"),
    ("weather", From::Folder("example-plugins/weather"), &[], "--call"),
    (
        "sdk for Python",
        From::Command(
            "env PYTHONPATH=ROOT/plugin-sdk/python/src python3 ROOT/plugin-sdk/python/tests/golden.py",
        ),
        &[],
        "--call=greet",
    ),
    ("sdk for Node", From::Command("node ROOT/plugin-sdk/node/test/golden.js"), NODE, "--call=greet"),
    ("sdk for Go", From::Go("plugin-sdk/go/internal/golden"), GO, "--call=greet"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_owned()
}

/// Puts a plugin into a sandbox, and gives the path to check.
fn place(sandbox: &Sandbox, from: &From) -> String {
    let root = root();
    let start = |command: &str| {
        sandbox.program("plugins/start", &format!("#!/bin/sh\nexec {command}\n"));
        "plugins/start".to_owned()
    };
    match from {
        From::Page(name) => {
            sandbox.program(&format!("plugins/{name}"), &from_the_protocol_page(name));
            format!("plugins/{name}")
        }
        From::Fixture(words, name) => {
            sandbox.fixture(name, &format!("plugins/{name}"));
            start(&format!("{words} {name}"))
        }
        From::Command(command) => start(&command.replace("ROOT", &root.to_string_lossy())),
        From::Java(class) => {
            let source = sandbox.fixture(&format!("{class}.java"), &format!("plugins/{class}.java"));
            built(Command::new("javac").arg("-d").arg(sandbox.path().join("plugins")).arg(source));
            start(&format!("java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp . {class}"))
        }
        From::Go(folder) => {
            sandbox.write("plugins/README", "built here");
            let output = sandbox.path().join("plugins/program");
            built(
                Command::new("go").args(["build", "-o"]).arg(output).arg(".").current_dir(root.join(folder)),
            );
            "plugins/program".to_owned()
        }
        From::Folder(folder) => root.join(folder).to_string_lossy().into_owned(),
    }
}

#[track_caller]
fn built(command: &mut Command) {
    let output = command.output().expect("it runs, as was tried");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Checks one plugin with all scenarios, and calls of it.
#[track_caller]
fn passes(name: &str) {
    let (_, from, needs, call) =
        PLUGINS.iter().find(|(known, _, _, _)| *known == name).expect("it is in the table");
    if let [program, args @ ..] = needs
        && !there_is(program, args)
    {
        return;
    }
    let sandbox = Sandbox::new("");
    let path = place(&sandbox, from);
    let (ran, report) = check(&sandbox, &[&path, call]);
    assert_eq!(names(&report, "failed"), [], "{name}: {:?}", names(&report, "warned"));
    assert_eq!((ran.code, &report["ok"]), (0, &true.into()), "{name}: {report:#}");
    let outcome = &scenario(&report, "answers_calls")["outcome"];
    let reads = report["plugins"][0]["operations"].as_array().into_iter().flatten();
    let reads = reads.filter(|operation| operation["tried"]["answered"] == true).count();
    assert_eq!(*outcome == "passed", reads > 0, "{name}: {report:#}");
}

#[test]
fn plugins_made_with_an_sdk_pass() {
    passes("sdk for Python");
    passes("sdk for Node");
    passes("sdk for Go");
}

#[test]
fn the_plugins_of_the_protocol_page_pass() {
    passes("greet.sh");
    passes("dice.pl");
}

#[test]
fn plugins_in_python_and_node_without_an_sdk_pass() {
    passes("echo.py");
    passes("echo.js");
}

#[test]
fn plugins_in_perl_and_sh_without_an_sdk_pass() {
    passes("echo.pl");
    passes("echo_jq.sh");
}

#[test]
fn a_plugin_in_ruby_without_an_sdk_passes() {
    passes("echo.rb");
}

#[test]
fn a_plugin_in_java_without_an_sdk_passes() {
    passes("Echo.java");
}

#[test]
fn the_example_plugins_pass() {
    passes("clock");
    passes("logs");
    passes("weather");
}

/// The Rust example, where it was built: it lies beside the test, not in its own folder.
#[test]
fn the_example_with_the_rust_sdk_passes() {
    let test = std::env::current_exe().expect("the test has a path");
    let program = test.parent().and_then(Path::parent).expect("target/<profile>/deps/test").join("tickets");
    assert!(program.exists(), "{} is missing: run the tests by `make test`", program.display());
    let sandbox = Sandbox::new("");
    let data = root().join("example-plugins/tickets/tickets.json");
    fs::copy(data, sandbox.path().join("tickets.json")).expect("its data is copied");
    sandbox.program("tickets", &format!("#!/bin/sh\nexec {program:?}\n"));
    let (ran, report) = check(&sandbox, &["./tickets", "--call"]);
    assert_eq!(names(&report, "failed"), [], "{:?}", names(&report, "warned"));
    assert_eq!(ran.code, 0, "{report:#}");
}
