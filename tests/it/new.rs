//! `plugd new`: in every language a folder that works at once, and nothing where it cannot be made.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plugd_tests::{Ran, Sandbox};
use serde_json::{Value, json};

use crate::languages::there_is;

/// The lock of this workspace: what it names has been fetched, so that a build needs no network.
const LOCK: &str = "../Cargo.lock";

/// Plugins in Rust are made in one place, so that what is built of the SDK is built once: one at a time.
static IN_RUST: Mutex<()> = Mutex::new(());

/// A turn at that place, for a test in Rust.
pub(crate) fn turn(lang: &str) -> Option<MutexGuard<'static, ()>> {
    (lang == "rust").then(|| IN_RUST.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Makes a plugin named greet; its report. In Rust the test has its turn.
#[track_caller]
pub(crate) fn scaffold(sandbox: &Sandbox, lang: &str) -> Value {
    let words = ["--output", "json", "new", "greet", "--lang", lang];
    if lang != "rust" {
        return sandbox.plugd(&words).expect(0).json();
    }
    let place = built_in();
    fs::create_dir_all(place.join("target")).expect("a folder for what is built");
    let folder = place.join("greet");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the one before goes");
    }
    let made = sandbox.plugd(&[&words[..], &["--dir", &place.to_string_lossy()]].concat()).expect(0).json();
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(LOCK), folder.join("Cargo.lock"))
        .expect("it is copied");
    symlink("../target", folder.join("target")).expect("a link to what is built");
    symlink(&folder, sandbox.path().join("greet")).expect("a link to the plugin");
    made
}

/// Where plugins in Rust are made and built, beside all else that is built.
fn built_in() -> PathBuf {
    let program = plugd_tests::plugd();
    let target = program.parent().and_then(Path::parent).expect("target/<profile>/plugd");
    target.join("scaffold")
}

/// Lets what builds plugins use no network, and no more of the disk than it must.
pub(crate) fn frugal(command: &mut Command) {
    command.env("CARGO_NET_OFFLINE", "true").env("CARGO_INCREMENTAL", "0");
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
    command.env("GOPROXY", "off").env("GOFLAGS", "-mod=mod");
}

/// Runs a shell command in the sandbox, plugd on its path, without the network.
#[track_caller]
fn run(sandbox: &Sandbox, command: &str) -> Ran {
    let ours = plugd_tests::plugd().parent().expect("it lies in a folder").to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(sandbox.path()).stdin(Stdio::null());
    shell
        .env("PATH", format!("{}:{path}", ours.display()))
        .env("CARGO_TARGET_DIR", built_in().join("target"));
    shell.env_remove("PLUGD_CONFIG").env_remove("PLUGD_AS");
    frugal(&mut shell);
    shell.output().expect("sh runs").into()
}

/// The whole way of a new user: made, built, checked, called, tested, and nothing to be said better.
#[track_caller]
fn check(lang: &str, tests_say: &str) {
    let _turn = turn(lang);
    let sandbox = Sandbox::new("");
    let made = scaffold(&sandbox, lang);
    assert_eq!(
        (&made["plugin"], &made["lang"], &made["missing"]),
        (&json!("greet"), &json!(lang), &json!([]))
    );
    for file in made["files"].as_array().expect("a list of files") {
        let file = sandbox.path().join("greet").join(file.as_str().expect("a path"));
        assert!(file.is_file(), "{}", file.display());
    }
    let next: Vec<&str> =
        made["next"].as_array().expect("a list of commands").iter().filter_map(Value::as_str).collect();
    let (tests, others): (Vec<&str>, Vec<&str>) =
        next.iter().partition(|command| command.contains("test") && command.starts_with("(cd "));
    let (dev, others): (Vec<&str>, Vec<&str>) =
        others.iter().partition(|command| command.starts_with("plugd dev"));
    assert_eq!((tests.len(), dev.len()), (1, 1), "{next:?}");
    for command in others {
        let ran = run(&sandbox, command).expect(0);
        let says = if command.starts_with("plugd call") { "Hello, World!\n" } else { "" };
        assert!(ran.stdout.contains(says), "{command}: {ran:?}");
    }
    let tested = run(&sandbox, tests[0]).expect(0);
    assert!(format!("{}{}", tested.stdout, tested.stderr).contains(tests_say), "{tested:?}");
    let called =
        sandbox.plugd(&["--output", "json", "check", "./greet", "--call", "--strict"]).expect(0).json();
    assert_eq!(called["plugins"][0]["findings"], json!([]), "{called:#}");
    let nobody = sandbox.plugd(&["--output", "json", "call", "./greet", "hello", "name= "]).expect(1).json();
    assert_eq!(nobody["error"]["name"], "nobody_to_greet", "{nobody:#}");
    let readme = sandbox.read("greet/README.md");
    assert!(readme.starts_with("# greet\n") && readme.contains("plugd dev ."), "{readme}");
}

#[test]
fn a_new_plugin_in_python_works_at_once() {
    check("python", "\nOK");
}

#[test]
fn a_new_plugin_in_node_works_at_once() {
    if there_is("node", &["--version"]) {
        check("node", "pass 2");
    }
}

#[test]
fn a_new_plugin_in_go_works_once_it_is_built() {
    if there_is("go", &["version"]) {
        check("go", "ok");
    }
}

#[test]
fn a_new_plugin_in_rust_works_once_it_is_built() {
    check("rust", "2 passed");
}

#[test]
fn a_new_plugin_in_sh_works_at_once() {
    if there_is("awk", &["BEGIN { exit 0 }"]) {
        check("sh", "ok: nobody is not greeted");
    }
}

#[test]
fn what_is_not_built_says_how_to_build_it() {
    let sandbox = Sandbox::new("");
    for (lang, build) in [("go", "go build -o bin/greet ."), ("rust", "cargo build --target-dir target")] {
        sandbox.plugd(&["new", "greet", "--lang", lang, "--dir", "."]).expect(0);
        let expected = format!("not found; build it first: {build}");
        let checked = sandbox.plugd(&["check", "./greet"]).expect(6);
        assert!(checked.stdout.contains(&expected), "{checked:?}");
        let called = sandbox.plugd(&["call", "./greet", "hello", "name=World"]).expect(6);
        assert!(called.stderr.contains(&expected), "{called:?}");
        fs::remove_dir_all(sandbox.path().join("greet")).expect("it goes");
    }
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let sandbox = Sandbox::new("");
    sandbox.write("taken/notes.txt", "mine");
    let entries = || {
        let names = fs::read_dir(sandbox.path()).expect("it is there").flatten();
        names.map(|entry| entry.file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = entries();
    for (words, code, expected) in [
        (&["no such name", "--lang", "go"][..], 2, "\"no such name\" is not a plugin name"),
        (&["plugd", "--lang", "go"], 2, "is the name of what plugd itself offers"),
        (&["greet", "--lang", "cobol"], 2, "possible values: rust, python, node, go, sh"),
        (&["greet"], 2, "expected --lang with one of rust, python, node, go, sh"),
        (&["taken", "--lang", "sh"], 2, "taken is there already"),
        (&["greet", "--lang", "sh", "--dir", "no/where"], 2, "there is no folder no/where"),
        (&["greet", "--lang", "sh", "--dir", "/proc"], 9, "cannot write /proc/greet"),
        (&["--update-sdk", "taken"], 2, "taken has no copy of an SDK"),
    ] {
        let ran = sandbox.plugd(&[&["new"], words].concat());
        assert!(ran.code == code && ran.stderr.contains(expected), "{words:?}: {ran:?}");
        assert_eq!(entries(), before, "{words:?}");
    }
    assert_eq!(sandbox.read("taken/notes.txt"), "mine");
}

#[test]
fn what_is_not_installed_is_said_and_keeps_nothing_from_being_made() {
    let sandbox = Sandbox::new("");
    fs::create_dir(sandbox.path().join("empty")).expect("a folder");
    let mut command = sandbox.command(&["new", "greet", "--lang", "node", "--dir", "empty"]);
    let ran: Ran = command.env("PATH", sandbox.path().join("empty")).output().expect("plugd runs").into();
    assert!(ran.stderr.contains("warning: node is not on PATH"), "{ran:?}");
    assert!(ran.expect(0).stdout.contains("empty/greet/plugin.js"));
    assert!(sandbox.path().join("empty/greet/vendor/plugd-sdk/VENDORED.md").is_file());
}

#[test]
fn the_language_is_asked_for_at_a_terminal() {
    let sandbox = Sandbox::new("");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/terminal.py");
    let plain = sandbox.command(&["new", "greet"]);
    let mut command = Command::new("python3");
    command
        .arg(fixture)
        .arg(sandbox.path().join("terminal"))
        .arg(r#"[["(rust, python, node, go, sh)? ", 0, "sh\n"]]"#);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(sandbox.path()).stdin(Stdio::null());
    let ran: Ran = command.output().expect("python runs").into();
    ran.expect(0);
    assert!(sandbox.path().join("greet/plugin.sh").is_file(), "{}", sandbox.read("terminal/screen"));
}

#[test]
fn a_copy_of_an_sdk_is_renewed_where_it_stands() {
    let sandbox = Sandbox::new("");
    scaffold(&sandbox, "python");
    sandbox.write("greet/plugd_sdk/__init__.py", "raise SystemExit(9)\n");
    sandbox.plugd(&["new", "--update-sdk", "greet"]).expect(0);
    sandbox.plugd(&["call", "./greet", "hello", "name=World"]).expect(0);
}
