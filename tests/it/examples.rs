//! The example plugins of every SDK as they stand: kept to the protocol, well declared, tested, and used.

mod calls;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plugd_tests::{Sandbox, eventually, plugd};
use serde_json::json;

use crate::languages::there_is;

/// What an example takes to run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    /// This program, which says with this argument that it works.
    By(&'static str, &'static str),
    /// Go, built into its folder by `make examples`.
    InGo,
    /// Rust, built beside the program under test.
    InRust,
}

const PYTHON: Made = Made::By("python3", "--version");
const NODE: Made = Made::By("node", "--version");

/// The examples, with what each takes.
const EXAMPLES: &[(&str, Made)] = &[
    ("calculator", NODE),
    ("cities", PYTHON),
    ("hello", Made::By("jq", "--version")),
    ("mail", NODE),
    ("orders", PYTHON),
    ("patrol", Made::InRust),
    ("search", Made::InGo),
    ("vocabulary", Made::InGo),
];

/// The folder of an example in the repository.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../example-plugins").join(name);
    folder.canonicalize().expect("the example is there")
}

/// Puts an example into the sandbox as `plugins/NAME`; where the machine lacks what it takes, says so, and gives `false`.
fn place(sandbox: &Sandbox, name: &str) -> bool {
    let (_, made) = EXAMPLES.iter().find(|(known, _)| *known == name).expect("it is in the table");
    let runs = match made {
        Made::By(program, sign) => there_is(program, &[sign]),
        Made::InGo => there_is("go", &["version"]),
        Made::InRust => true,
    };
    if !runs {
        return false;
    }
    let target = sandbox.path().join("plugins");
    std::fs::create_dir_all(&target).expect("a folder is made");
    // The SDK is a link in the repository; a copy has it in its folder, as a plugin elsewhere would.
    let copied = Command::new("cp").arg("-RL").arg(folder(name)).arg(&target).status();
    assert!(copied.expect("cp runs").success(), "{name} is copied");
    let program = target.join(name).join("bin").join(name);
    if *made == Made::InRust {
        let built = plugd().with_file_name(name);
        assert!(built.exists(), "{} is missing: run `make test`, which builds it", built.display());
        std::fs::create_dir_all(program.parent().expect("it has a folder")).expect("a folder is made");
        std::fs::copy(built, &program).expect("the program is copied");
    } else if *made == Made::InGo {
        let built = folder(name).join("bin").join(name);
        assert!(program.exists(), "{} is missing: run `make test`, which builds it", built.display());
    }
    true
}

/// A sandbox whose daemon finds the examples by scanning; `None` where the machine lacks what one of them takes.
fn scanned(names: &[&str], more: &str) -> Option<Sandbox> {
    let sandbox = Sandbox::new(&format!("[scan]\ndirs = [\"plugins\"]\n\n{more}"));
    names.iter().all(|name| place(&sandbox, name)).then_some(sandbox)
}

/// `plugd check`, with what only reads called, and `plugd lint`: nothing fails, and nothing is to be said better.
#[track_caller]
fn is_as_it_should_be(name: &str) {
    let Some(sandbox) = scanned(&[name], "") else { return };
    let path = format!("./plugins/{name}");
    let checked = sandbox.plugd(&["--output", "json", "check", &path, "--call"]);
    let report = checked.json();
    let scenarios = report["plugins"][0]["conformance"]["scenarios"].as_array().expect("scenarios");
    let failed: Vec<_> = scenarios.iter().filter(|scenario| scenario["outcome"] == "failed").collect();
    assert!(failed.is_empty() && scenarios.len() > 40, "{name}: {failed:#?}");
    assert_eq!((checked.code, &report["ok"]), (0, &json!(true)), "{name}: {report:#}");
    let linted = sandbox.plugd(&["lint", &path]);
    assert_eq!(linted.code, 0, "{linted:?}");
    eventually("nothing of it is left", || sandbox.processes_in("").is_empty());
}

#[test]
fn the_example_calculator_is_as_it_should_be() {
    is_as_it_should_be("calculator");
}

#[test]
fn the_example_cities_is_as_it_should_be() {
    is_as_it_should_be("cities");
}

#[test]
fn the_example_hello_is_as_it_should_be_and_has_fewer_than_forty_lines() {
    let text = std::fs::read_to_string(folder("hello").join("hello.sh")).expect("it is there");
    assert!(text.lines().count() < 40, "{text}");
    is_as_it_should_be("hello");
}

#[test]
fn the_example_mail_is_as_it_should_be() {
    is_as_it_should_be("mail");
}

#[test]
fn the_example_orders_is_as_it_should_be() {
    is_as_it_should_be("orders");
}

#[test]
fn the_example_patrol_is_as_it_should_be() {
    is_as_it_should_be("patrol");
}

#[test]
fn the_example_search_is_as_it_should_be() {
    is_as_it_should_be("search");
}

#[test]
fn the_example_vocabulary_is_as_it_should_be() {
    is_as_it_should_be("vocabulary");
}

/// The tests that each example has of its own, in its language's own framework.
#[test]
fn the_tests_of_the_examples_pass() {
    let suites: &[(&str, &[&str])] = &[
        ("calculator", &["node", "--test"]),
        ("cities", &["python3", "-m", "unittest"]),
        ("hello", &["sh", "test.sh"]),
        ("mail", &["node", "--test"]),
        ("orders", &["python3", "-m", "unittest"]),
        ("search", &["go", "test", "./..."]),
        ("vocabulary", &["go", "test", "./..."]),
    ];
    for (name, command) in suites {
        let sandbox = Sandbox::new("");
        if !place(&sandbox, name) {
            continue;
        }
        // What Go compiles names the SDK by its place in the repository.
        let at = if command[0] == "go" { folder(name) } else { sandbox.path().join("plugins").join(name) };
        let mut run = Command::new(command[0]);
        // Node tells its tests by this whether they run within others.
        run.args(&command[1..]).current_dir(at).env_remove("NODE_TEST_CONTEXT").stdin(Stdio::null());
        let ran = run.output().expect("its tests run");
        assert!(ran.status.success(), "{name}: {ran:?}");
    }
}

/// Every example beside every other one: no two seem to be for the same.
#[test]
fn no_two_examples_overlap() {
    let sandbox = Sandbox::new("[scan]\ndirs = [\"plugins\"]\n");
    let old = ["clock", "logs", "weather"];
    for name in old {
        let target = sandbox.path().join("plugins");
        std::fs::create_dir_all(&target).expect("a folder is made");
        let copied = Command::new("cp").arg("-RL").arg(folder(name)).arg(&target).status();
        assert!(copied.expect("cp runs").success(), "{name} is copied");
    }
    let placed: Vec<&str> =
        EXAMPLES.iter().map(|(name, _)| *name).filter(|name| place(&sandbox, name)).collect();
    let linted = sandbox.plugd(&["--output", "json", "lint"]);
    let report = linted.json();
    assert_eq!((linted.code, &report["findings"]), (0, &json!([])), "{report:#}");
    let operations = report["operations"].as_u64().expect("their number");
    assert!(operations >= (placed.len() + old.len()) as u64, "{report:#}");
}

/// Where a compiler was missing, so is the program: its plugin says so, and the others go on.
#[test]
fn an_example_that_was_not_built_keeps_no_other_one_from_working() {
    let Some(sandbox) = scanned(&["cities"], "") else { return };
    sandbox.write("plugins/search/plugin.toml", "command = [\"./bin/search\"]\n");
    let daemon = sandbox.serve();
    let parsed = daemon.json(&["call", "cities.parse", "text=我明天去北京"]);
    assert_eq!(parsed["data"]["name"], "Beijing", "{parsed:#}");
    let missing = daemon.plugd(&["call", "search.find_pages", "query=x"]).expect(6);
    assert!(missing.stderr.contains("search is failed"), "{missing:?}");
    let status = daemon.status("search").to_string();
    assert!(status.contains("plugins/search/bin/search not found"), "{status}");
    let listed = daemon.plugd(&["list"]).expect(0);
    assert!(listed.stdout.contains("cities.parse"), "{listed:?}");
    daemon.stop();
}

/// Says past the test's captured output what is left untested; where nothing may be, that is a failure.
fn skipped(why: &str) {
    let all = std::env::var("PLUGD_TEST_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(!all, "SKIPPED: {why}, and PLUGD_TEST_REQUIRE_ALL=1 allows no skip");
    writeln!(std::io::stderr(), "\nSKIPPED: {why}\n").expect("stderr is open");
}
