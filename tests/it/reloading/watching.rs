//! `[daemon] watch = true`: what is saved is taken up once the writing is over, and nothing else is.

use std::fs;
use std::process::{Command, Stdio};

use plugd_tests::{Daemon, Sandbox, eventually};
use serde_json::{Value, json};

use super::{FP, TELLER, data, events_of, expect_reloads, rewrite};

/// Another teller, under a name.
fn other(sandbox: &Sandbox, name: &str) -> String {
    sandbox.python(name, TELLER)
}

fn watched(tables: &str) -> String {
    format!("watch = true\n\n{tables}")
}

/// Waits until `fp` answers as a version.
#[track_caller]
fn wait_for_version(daemon: &Daemon<'_>, version: &str) {
    eventually("the saved version serves", || data(daemon, "fp.show")["version"] == version);
}

/// Each plugin's name, process and run.
fn runs(daemon: &Daemon<'_>) -> Vec<Value> {
    let status = daemon.json(&["status"]);
    let plugins = status["plugins"].as_array().expect("a list");
    plugins.iter().map(|plugin| json!([plugin["name"], plugin["pid"], plugin["generation"]])).collect()
}

#[test]
fn r_l15_with_watch_a_saved_program_reloads_that_plugin_and_without_it_only_a_reload_does() {
    let unwatched = Sandbox::new("");
    rewrite(&unwatched, "one", "");
    unwatched.configure(FP);
    let watching = Sandbox::new("");
    rewrite(&watching, "one", "");
    watching.configure(&watched(&format!("{FP}{}", other(&watching, "other"))));
    let (still, daemon) = (unwatched.serve(), watching.serve());
    let untouched = (data(&daemon, "other.show"), data(&still, "fp.show"));
    data(&daemon, "fp.show");
    let generation = daemon.status("fp")["generation"].clone();

    // Saved first where nobody watches: what is seen there had longer to happen.
    rewrite(&unwatched, "two", "");
    rewrite(&watching, "two", "");
    wait_for_version(&daemon, "two");
    assert_eq!(daemon.status("fp")["generation"].as_u64(), generation.as_u64().map(|run| run + 1));
    assert_eq!(data(&daemon, "other.show"), untouched.0, "the other was not touched");
    assert_eq!(data(&still, "fp.show"), untouched.1, "without watch nothing moves");
    assert!(events_of(&still, "config.reloaded").is_empty());
    still.plugd(&["reload"]).expect(0);
    assert_eq!(data(&still, "fp.show")["version"], "two");
    daemon.stop();
    still.stop();
}

#[test]
fn a_save_by_renaming_is_one_reload() {
    let sandbox = Sandbox::new("");
    rewrite(&sandbox, "one", "");
    sandbox.configure(&watched(FP));
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    let first = daemon.status("fp")["generation"].as_u64().expect("a run");
    for (turn, version) in [(1, "two"), (2, "three")] {
        // As editors do it: the old one away, the new one beside it and then in its place.
        let main = sandbox.path().join("plugins/fp/main.py");
        let before = fs::read_to_string(&main).expect("it is there");
        fs::rename(&main, main.with_extension("py~")).expect("the old one is kept");
        let program =
            before.replace("\"one\"", &format!("{version:?}")).replace("\"two\"", &format!("{version:?}"));
        sandbox.program("plugins/fp/.main.py.tmp", &program);
        fs::rename(sandbox.path().join("plugins/fp/.main.py.tmp"), &main)
            .expect("the new one takes its place");
        wait_for_version(&daemon, version);
        // A second reload for the first save would have come before that for the second.
        assert_eq!(daemon.status("fp")["generation"].as_u64(), Some(first + turn));
        expect_reloads(&daemon, usize::try_from(turn).expect("small"));
    }
    daemon.stop();
}

#[test]
fn a_file_that_is_being_written_is_not_taken_up_before_it_is_whole() {
    let sandbox = Sandbox::new("");
    rewrite(&sandbox, "one", "");
    let tables = format!("{FP}{}", other(&sandbox, "kept"));
    sandbox.configure(&watched(&tables));
    let mut daemon = sandbox.serve();
    // Should the writer be held up for long, the empty file is refused.
    daemon.expect_errors();
    let kept = (data(&daemon, "fp.show"), data(&daemon, "kept.show"));

    // What stands there in between is a right configuration, of fewer plugins.
    let head = sandbox.read("plugd.toml");
    let (half, rest) = head.split_at(head.find("[plugins.kept]").expect("its table"));
    sandbox.write("half", half);
    sandbox.write("rest", &format!("{rest}{}", other(&sandbox, "late")));
    let writer = "
import time
half, rest = open('half').read(), open('rest').read()
with open('plugd.toml', 'w') as file:
    for part in ('', half, rest):
        file.write(part)
        file.flush()
        time.sleep(0.2)
";
    let mut write = Command::new("python3");
    write.args(["-c", writer]).current_dir(sandbox.path()).stdin(Stdio::null());
    assert!(write.status().expect("python3 runs").success());
    eventually("the whole file is taken up", || {
        daemon.json(&["list"])["plugins"].as_array().map(Vec::len) == Some(3)
    });
    expect_reloads(&daemon, 1);
    assert!(events_of(&daemon, "plugin.removed").is_empty(), "no plugin was away meanwhile");
    assert_eq!((data(&daemon, "fp.show"), data(&daemon, "kept.show")), kept);
    daemon.stop();
}

#[test]
fn plugins_that_come_and_go_in_a_scanned_folder_are_noticed() {
    let sandbox = Sandbox::new("watch = true\n\n[scan]\ndirs = [\"plugins\"]\n");
    sandbox.fixture("bare.sh", "plugins/here/main.sh");
    sandbox.write("plugins/here/plugin.toml", "command = [\"sh\", \"main.sh\"]\n");
    let daemon = sandbox.serve();
    let here = data(&daemon, "here.pid");
    let names = || {
        let list = daemon.json(&["list"]);
        let plugins = list["plugins"].as_array().expect("a list").clone();
        plugins.iter().map(|plugin| plugin["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    sandbox.fixture("bare.sh", "plugins/there/main.sh");
    sandbox.write("plugins/there/plugin.toml", "command = [\"sh\", \"main.sh\"]\n");
    eventually("the new one is listed", || names() == ["here", "there"]);
    assert!(data(&daemon, "there.pid").is_object());

    sandbox.write("plugins/there/plugin.toml", "command = [\"sh\", \"main.sh\"]\nenabled = false\n");
    eventually("its own file is watched", || daemon.status("there")["state"] == "disabled");
    fs::remove_dir_all(sandbox.path().join("plugins/there")).expect("it is removed");
    eventually("what is gone is gone", || names() == ["here"]);
    assert_eq!(data(&daemon, "here.pid"), here, "and the other never noticed");
    daemon.stop();
}

#[test]
fn an_operators_stop_stays_though_what_it_stopped_is_saved_again() {
    let sandbox = Sandbox::new("");
    rewrite(&sandbox, "one", "");
    let tables = format!("{FP}start = \"eager\"\n{}", other(&sandbox, "other"));
    sandbox.configure(&watched(&tables));
    let daemon = sandbox.serve();
    daemon.wait_for_state("fp", "ready");
    daemon.plugd(&["stop", "fp"]).expect(0);
    rewrite(&sandbox, "two", "");
    sandbox.configure(&watched(&format!("{tables}env = {{ FOO = \"new\" }}\n")));
    eventually("the change is taken up", || data(&daemon, "other.show")["foo"] == "new");
    assert_eq!(daemon.status("fp")["state"], "stopped");
    daemon.plugd(&["start", "fp"]).expect(0);
    assert_eq!(data(&daemon, "fp.show")["version"], "two");
    daemon.stop();
}

#[test]
fn what_plugins_and_plugd_write_themselves_is_no_change() {
    let sandbox = Sandbox::new("");
    rewrite(&sandbox, "one", "");
    // Beside its program it leaves notes, and what Python compiles lies there, too.
    let noisy = format!(
        "{TELLER}\nimport tidings\nfor _ in range(20): print('noise', file=sys.stderr, flush=True)\n"
    );
    sandbox.write("plugins/noisy/tidings.py", "NEWS = 1\n");
    let table = sandbox.python("noisy", &noisy);
    sandbox.configure(&watched(&format!("{FP}{table}")));
    let daemon = sandbox.serve();
    data(&daemon, "fp.show");
    let before = data(&daemon, "noisy.show");
    eventually("its log is written", || sandbox.read("state/logs/noisy.log").contains("noise"));
    sandbox.write("plugins/noisy/notes", "more\n");
    let runs_before = runs(&daemon);
    rewrite(&sandbox, "two", "");
    wait_for_version(&daemon, "two");
    // That is the one for the program that was saved.
    expect_reloads(&daemon, 1);
    assert_eq!(data(&daemon, "noisy.show"), before);
    let noisy = |runs: &[Value]| runs.iter().find(|run| run[0] == "noisy").cloned();
    assert_eq!(noisy(&runs(&daemon)), noisy(&runs_before));
    daemon.stop();
}
