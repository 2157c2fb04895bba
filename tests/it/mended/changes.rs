//! Faults that people met when they changed what there is, each with the right outcome.

use std::process::Stdio;

use plugd_tests::{Sandbox, eventually};
use serde_json::{Value, json};

use crate::reloading::{data, events_of, text};

/// A program that ends before it says a word.
const BROKEN: &str = "#!/bin/sh\necho 'there is no such module' >&2\nexit 1\n";

/// The plugins `p0`, `p1` and so on.
fn many(sandbox: &Sandbox, count: usize) -> Vec<String> {
    let names: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
    let tables: String = names.iter().map(|name| sandbox.shell(name)).collect();
    sandbox.configure(&tables);
    names
}

/// Runs one command a name, all at once; their exit codes.
fn all_at_once(sandbox: &Sandbox, names: &[String], command: impl Fn(&str) -> Vec<String>) -> Vec<i32> {
    let begin = |name: &String| {
        let words = command(name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let quiet = || Stdio::null();
        sandbox.command(&words).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().expect("plugd runs")
    };
    let children: Vec<_> = names.iter().map(begin).collect();
    let code = |mut child: std::process::Child| child.wait().expect("plugd ends").code().unwrap_or(-1);
    children.into_iter().map(code).collect()
}

/// The plugins that are listed in a state.
#[track_caller]
fn listed(list: &Value, state: Option<&str>) -> Vec<String> {
    let plugins = list["plugins"].as_array().expect("a list").iter();
    let plugins = plugins.filter(|plugin| state.is_none_or(|state| plugin["state"] == state));
    plugins.map(|plugin| text(&plugin["name"]).to_owned()).collect()
}

#[test]
fn changes_made_at_once_without_a_daemon_all_hold() {
    let sandbox = Sandbox::new("");
    let names = many(&sandbox, 6);
    let disable = |name: &str| vec!["disable".to_owned(), name.to_owned()];
    assert_eq!(all_at_once(&sandbox, &names, disable), [0; 6]);
    assert_eq!(listed(&sandbox.json(&["list"]), Some("disabled")), names);
    let remove = |name: &str| vec!["remove".to_owned(), name.to_owned()];
    assert_eq!(all_at_once(&sandbox, &names, remove), [0; 6]);
    assert!(listed(&sandbox.json(&["list"]), None).is_empty());

    let add =
        |name: &str| ["add", &format!("plugins/{name}/main.sh"), "--name", "same"].map(str::to_owned).into();
    let codes = all_at_once(&sandbox, &names, add);
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "one of them has the name: {codes:?}");
}

#[test]
fn a_change_made_while_a_daemon_starts_is_in_effect_there() {
    let sandbox = Sandbox::new("");
    let names = many(&sandbox, 3);
    for round in 0..3 {
        let (what, state) = if round % 2 == 0 { ("disable", true) } else { ("enable", false) };
        std::thread::scope(|scope| {
            let changing = scope.spawn(|| {
                let change = |name: &str| vec![what.to_owned(), name.to_owned()];
                all_at_once(&sandbox, &names, change)
            });
            let daemon = sandbox.serve();
            let codes = changing.join().expect("the commands end");
            assert_eq!(codes, [0; 3], "round {round}");
            let disabled = listed(&daemon.json(&["list"]), Some("disabled"));
            assert_eq!(disabled == names, state, "round {round}: {disabled:?}");
            daemon.stop();
        });
    }
}

#[test]
fn a_reload_says_what_it_took_up_and_cannot_run() {
    let sandbox = Sandbox::new("");
    let idle = sandbox.shell("idle");
    let manual = format!("{}on_change = \"manual\"\n", sandbox.shell("manual"));
    sandbox.configure(&format!("{idle}{manual}"));
    let daemon = sandbox.serve();
    for plugin in ["idle", "manual"] {
        eventually("it is described", || daemon.status(plugin)["state"] == "idle");
    }
    data(&daemon, "manual.pid");
    sandbox.program("plugins/idle/main.sh", BROKEN);
    sandbox.program("plugins/manual/main.sh", BROKEN);
    let eager = format!("{}start = \"eager\"\n", sandbox.shell("eager"));
    sandbox.write("plugins/eager/refuses", "no licence");
    // It waits for one that waits out its failure: the reload does not wait along.
    let needs = format!("{}start = \"eager\"\nrequires = {{ broken = \"*\" }}\n", sandbox.shell("needs"));
    sandbox.program("broken.sh", BROKEN);
    let new =
        "[plugins.broken]\ncommand = [\"./broken.sh\"]\n[plugins.missing]\ncommand = [\"./missing.sh\"]\n";
    sandbox.configure(&format!("{idle}{manual}{eager}{needs}{new}"));
    let ran = daemon.plugd(&["--output", "json", "reload"]).expect(6);
    let report = ran.json();
    assert_eq!(report["added"], json!(["broken", "eager", "missing", "needs"]), "{report:#}");
    assert_eq!(report["restart_required"], json!(["manual"]), "{report:#}");
    let failed = report["failed"].as_object().expect("some failed");
    let names: Vec<&str> = failed.keys().map(String::as_str).collect();
    assert_eq!(names, ["broken", "eager", "idle", "missing"], "{report:#}");
    assert!(text(&failed["eager"]).contains("no licence"), "{report:#}");
    assert!(text(&failed["idle"]).contains("exit status 1"), "{report:#}");
    let told = daemon.plugd(&["reload"]).stdout;
    assert!(told.contains("restart required: manual: "), "{told}");
    daemon.stop();
}

#[test]
fn a_reload_that_leaves_only_the_deliberate_behind_is_none_that_failed() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&format!("{}on_change = \"manual\"\n", sandbox.shell("manual")));
    let daemon = sandbox.serve();
    data(&daemon, "manual.pid");
    sandbox.program("plugins/manual/main.sh", BROKEN);
    let report = daemon.plugd(&["--output", "json", "reload"]).expect(0).json();
    assert_eq!(report["restart_required"], json!(["manual"]), "{report:#}");
    assert!(report["failed"].is_null(), "{report:#}");
    assert!(events_of(&daemon, "run.refused").is_empty(), "nothing was tried");
    daemon.stop();
}

#[test]
fn a_reload_after_which_a_working_plugin_would_not_start_again_says_so() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("odd");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    data(&daemon, "odd.pid");
    sandbox.configure(&format!("{table}[plugins.odd.requires]\nnosuch = \"*\"\n"));
    let ran = daemon.plugd(&["reload"]).expect(6);
    assert!(ran.stdout.contains("odd") && ran.stdout.contains("nosuch"), "{ran:?}");
    data(&daemon, "odd.pid");
    // As long as that is so.
    daemon.plugd(&["reload"]).expect(6);
    let other = sandbox.shell("other");
    let needs = |version: &str| format!("{table}{other}[plugins.odd.requires]\nother = \"{version}\"\n");
    sandbox.configure(&needs("1"));
    daemon.plugd(&["reload"]).expect(0);
    sandbox.configure(&needs("2"));
    let report = daemon.plugd(&["--output", "json", "reload"]).expect(6).json();
    assert!(text(&report["failed"]["odd"]).contains("other"), "{report:#}");
    daemon.stop();
}

#[test]
fn a_change_that_is_not_taken_up_is_an_event_and_an_error_of_its_own() {
    let sandbox = Sandbox::new("");
    sandbox.configure(&sandbox.shell("fp"));
    let daemon = sandbox.serve();
    let before = data(&daemon, "fp.pid");
    for turn in 1..=2 {
        sandbox.program("plugins/fp/main.sh", &format!("{BROKEN}# {turn}\n"));
        let ran = daemon.plugd(&["--output", "json", "reload", "fp"]).expect(6);
        assert_eq!(ran.json()["error"]["name"], "not_replaced", "{ran:?}");
        let refused = events_of(&daemon, "run.refused");
        assert_eq!(refused.len(), turn, "{refused:#?}");
        let last = refused.last().expect("one");
        assert!(text(&last["reason"]).contains("exit status 1"), "{last:#}");
        assert_eq!(last["generation"], daemon.status("fp")["generation"], "{last:#}");
    }
    assert_eq!(data(&daemon, "fp.pid"), before);
    daemon.stop();
}

#[test]
fn a_save_right_after_watching_was_switched_on_is_taken_up() {
    let sandbox = Sandbox::new("");
    let program = |mark: &str| {
        "OPERATIONS = [{'name': 'show', 'input_schema': {'type': 'object'}}]\n\
         def handle(operation, arguments, params):\n    return {'data': 'MARK'}\n"
            .replace("MARK", mark)
    };
    let table = sandbox.python("fp", &program("one"));
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    assert_eq!(data(&daemon, "fp.show"), "one");
    sandbox.configure(&format!("watch = true\n{table}"));
    daemon.plugd(&["reload"]).expect(0);
    sandbox.python("fp", &program("two"));
    eventually("the saved program serves", || data(&daemon, "fp.show") == "two");
    daemon.stop();
}

#[test]
fn an_added_plugin_says_where_it_went_and_an_added_one_that_was_removed_is_forgotten() {
    let sandbox = Sandbox::new("");
    sandbox.shell("late");
    let ran = sandbox.plugd(&["add", "plugins/late/main.sh", "--name", "late"]).expect(0);
    let file = sandbox.path().join("plugd.toml");
    assert!(ran.stdout.contains(&format!("to the configuration {}", file.display())), "{ran:?}");
    sandbox.plugd(&["remove", "late"]).expect(0);
    let ran = sandbox.plugd(&["add", "late"]);
    assert!(ran.code != 0 && ran.stderr.contains("forgotten once it is removed"), "{ran:?}");
    assert!(!ran.stderr.contains("./late"), "{ran:?}");
    sandbox.write("folder/readme", "");
    for (path, said) in
        [("plugd.toml", "plugd.toml is not executable"), ("./folder", "is a folder without a plugin.toml")]
    {
        let ran = sandbox.plugd(&["add", path, "--name", "x"]).expect(2);
        assert!(ran.stderr.contains(said), "{path}: {ran:?}");
    }
}

#[test]
fn a_reload_names_every_problem_of_the_configuration_up_to_what_can_be_read() {
    let sandbox = Sandbox::new("");
    let table = sandbox.shell("fp");
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    let wrong = |count: usize| {
        let plugin = |number| format!("[plugins.x{number}]\ncommand = [\"sh\"]\nno_such_key = {number}\n");
        sandbox.configure(&format!("{table}{}", (0..count).map(plugin).collect::<String>()));
    };
    wrong(60);
    let refused = daemon.plugd(&["--output", "json", "reload"]).expect(2).json();
    let message = text(&refused["error"]["message"]);
    assert!((0..60).all(|number| message.contains(&format!("unknown key plugins.x{number}."))), "{message}");
    assert!(!message.contains("more"), "{message}");
    // An event has the beginning.
    let events = daemon.json(&["events"]);
    let events = events.as_array().expect("a list").iter();
    let reason = events.rev().find(|event| event["kind"] == "config.refused").expect("it is told");
    let reason = text(&reason["reason"]);
    assert!(reason.chars().count() < 2_100 && reason.ends_with("more characters]"), "{reason}");
    // Of very many the first are named, and how many there are.
    wrong(1_000);
    let refused = daemon.plugd(&["--output", "json", "reload"]).expect(2).json();
    let message = text(&refused["error"]["message"]);
    assert!(message.len() < 66_000, "{}", message.len());
    let (named, last) = (message.lines().count() - 1, message.lines().last().unwrap_or_default());
    assert_eq!(last, format!("and {} more problems: `plugd config check` names them all", 1_000 - named));
    daemon.stop();
}
