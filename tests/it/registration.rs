//! How plugins come to be known: found in folders or configured, by names that are unique.

use std::fs;
use std::process::Command;

use plugd_tests::{Daemon, Sandbox};
use serde_json::{Value, json};

/// An sh plugin in a folder that is scanned, with these lines in its `plugin.toml`.
fn scanned(sandbox: &Sandbox, folder: &str, name: &str, lines: &str) {
    sandbox.fixture("bare.sh", &format!("{folder}/{name}/main.sh"));
    let file = format!("{folder}/{name}/plugin.toml");
    sandbox.write(&file, &format!("command = [\"sh\", \"main.sh\"]\n{lines}"));
}

/// Each plugin's process, run and number of starts.
fn runs(daemon: &Daemon<'_>) -> Vec<Value> {
    let status = daemon.json(&["status"]);
    let plugins = status["plugins"].as_array().expect("a list").clone();
    let run = |plugin: Value| json!([plugin["name"], plugin["pid"], plugin["generation"], plugin["starts"]]);
    plugins.into_iter().map(run).collect()
}

fn names(list: &Value) -> Vec<String> {
    let plugins = list["plugins"].as_array().expect("a list");
    plugins.iter().map(|plugin| plugin["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn r1_a_new_plugin_is_an_addition_that_touches_no_other() {
    let sandbox = Sandbox::new("[scan]\ndirs = [\"plugins\"]\n");
    for number in 1..=10 {
        scanned(&sandbox, "plugins", &format!("plugin_{number:02}"), "start = \"eager\"\n");
    }
    let daemon = sandbox.serve();
    for number in 1..=10 {
        daemon.wait_for_state(&format!("plugin_{number:02}"), "ready");
    }
    let before = runs(&daemon);
    let program = fs::metadata(plugd_tests::plugd()).expect("the program").modified().expect("a time");

    scanned(&sandbox, "plugins", "zz_eleventh", "");
    let reload = daemon.json(&["reload"]);
    assert_eq!(reload["added"], json!(["zz_eleventh"]), "{reload:#}");
    assert_eq!(reload["unchanged"].as_array().expect("a list").len(), 10, "{reload:#}");

    assert_eq!(names(&daemon.json(&["list"])).len(), 11);
    let call = daemon.json(&["call", "zz_eleventh.pid"]);
    assert_eq!(call["status"], "ok", "{call:#}");
    assert_eq!(runs(&daemon)[..10], before, "the ten keep process and run");
    let after = fs::metadata(plugd_tests::plugd()).expect("the program").modified().expect("a time");
    assert_eq!(after, program, "nothing was rebuilt");
    daemon.stop();
}

#[test]
fn r3_a_name_offered_twice_is_an_error_that_names_both_places_in_either_order() {
    let sandbox = Sandbox::new("");
    scanned(&sandbox, "here", "weather", "");
    scanned(&sandbox, "there", "weather", "");
    let mut messages = Vec::new();
    for dirs in ["\"here\", \"there\"", "\"there\", \"here\""] {
        sandbox.configure(&format!("[scan]\ndirs = [{dirs}]\n"));
        let check = sandbox.plugd(&["config", "check"]).expect(2);
        for folder in ["here/weather", "there/weather"] {
            let path = sandbox.path().join(folder).display().to_string();
            assert!(check.stderr.contains(&path), "{path} is not named: {}", check.stderr);
        }
        messages.push(check.stderr);
    }
    assert_eq!(messages[0], messages[1], "the order of the folders means nothing");
}

#[test]
fn r3_a_plugin_both_configured_and_found_is_an_error_and_a_reload_with_it_changes_nothing() {
    let sandbox = Sandbox::new("[scan]\ndirs = [\"here\"]\n");
    scanned(&sandbox, "here", "weather", "start = \"eager\"\n");
    let daemon = sandbox.serve();
    let before = daemon.wait_for_state("weather", "ready");

    sandbox.configure(&format!("[scan]\ndirs = [\"here\"]\n{}", sandbox.shell("weather")));
    let check = sandbox.plugd(&["config", "check"]).expect(2);
    assert!(check.stderr.contains("plugd.toml") && check.stderr.contains("here/weather"), "{}", check.stderr);
    daemon.plugd(&["reload"]).expect(2);

    let after = daemon.status("weather");
    assert_eq!((&after["pid"], &after["generation"]), (&before["pid"], &before["generation"]), "{after:#}");
    daemon.stop();
}

#[test]
fn r4_what_is_not_named_never_runs_and_a_list_says_where_each_plugin_came_from() {
    let sandbox = Sandbox::new("");
    let configured = sandbox.shell("configured");
    sandbox.program("elsewhere/stranger", "#!/bin/sh\necho started >> started\n");
    scanned(&sandbox, "found", "in_a_folder", "");
    sandbox.configure(&format!("[scan]\ndirs = [\"found\"]\n{configured}"));
    let daemon = sandbox.serve();

    let list = daemon.json(&["list"]);
    assert_eq!(names(&list), ["configured", "in_a_folder"], "{list:#}");
    let [configured, found] = [&list["plugins"][0], &list["plugins"][1]];
    let file = sandbox.path().join("plugd.toml").canonicalize().expect("it exists");
    let stated = configured["source"]["file"].as_str().expect("a file");
    assert_eq!(configured["source"]["kind"], "config", "{configured:#}");
    assert_eq!(fs::canonicalize(stated).expect("it exists"), file);
    let dir = sandbox.path().join("found").display().to_string();
    assert_eq!(found["source"], json!({"kind": "scan", "dir": dir}), "{found:#}");

    for (plugin, program) in
        [(configured, "plugins/configured/main.sh"), (found, "found/in_a_folder/main.sh")]
    {
        let path = sandbox.path().join(program);
        assert_eq!(plugin["path"], path.display().to_string());
        let sum = Command::new("sha256sum").arg(&path).output().expect("sha256sum runs").stdout;
        let sum = String::from_utf8(sum).expect("text");
        assert_eq!(plugin["digest"].as_str(), sum.split(' ').next(), "{plugin:#}");
    }
    assert_eq!(sandbox.read("elsewhere/started"), "", "the stranger was never started");
    daemon.stop();
}

#[test]
fn r5_a_file_copied_into_the_folder_is_found_with_the_next_reload() {
    let sandbox = Sandbox::new("[scan]\ndirs = [\"plugins\"]\n");
    sandbox.write("plugins/README", "");
    let daemon = sandbox.serve();
    assert!(names(&daemon.json(&["list"])).is_empty());

    sandbox.python("source", "OPERATIONS[0]['name'] = 'hello'");
    fs::rename(sandbox.path().join("plugins/source/main.py"), sandbox.path().join("greet.py"))
        .expect("it moves");
    fs::copy(sandbox.path().join("greet.py"), sandbox.path().join("plugins/greet.py")).expect("it is copied");
    let reload = daemon.json(&["reload"]);
    assert_eq!(reload["added"], json!(["greet"]), "{reload:#}");
    let call = daemon.json(&["call", "greet.hello", "name=Ada"]);
    assert_eq!(call["data"], json!({"name": "Ada"}), "{call:#}");
    daemon.stop();
}

#[test]
fn r6_a_scan_passes_over_helpers_and_backups_and_says_so() {
    let sandbox = Sandbox::new("[scan]\ndirs = [\"plugins\"]\n");
    for name in ["_common.py", "weather.py~", ".weather.py.swp"] {
        sandbox.program(&format!("plugins/{name}"), "#!/bin/sh\necho started >> started\n");
    }
    let daemon = sandbox.serve();
    let list = daemon.json(&["list"]);
    assert!(names(&list).is_empty(), "{list:#}");
    let skipped = list["skipped"].as_array().expect("a list");
    assert_eq!(skipped.len(), 3, "{list:#}");
    assert!(skipped.iter().all(|one| !one["reason"].as_str().expect("a reason").is_empty()), "{list:#}");
    assert_eq!(sandbox.read("plugins/started"), "", "none of them was run");
    daemon.stop();
}

#[test]
fn r7_the_configuration_alone_disables_orders_and_configures_plugins() {
    let sandbox = Sandbox::new("");
    let definitions = "
MANIFEST = {'config_schema': {'type': 'object', 'properties': {'api_timeout': {'type': 'integer', 'default': 30}}}}
CONFIG = {}
def on_init(params):
    CONFIG.update(params['config'])
    return {}
def handle(operation, arguments, params):
    return {'data': CONFIG}
";
    let weather = sandbox.python("weather", definitions);
    let archive = sandbox.shell("archive");
    sandbox.configure(&format!("{weather}\n{archive}"));
    let daemon = sandbox.serve();
    assert_eq!(daemon.json(&["call", "weather.echo"])["data"]["api_timeout"], 30);
    assert_eq!(daemon.json(&["call", "archive.pid"])["status"], "ok");

    let weather = format!("{weather}priority = 5\nconfig.api_timeout = 5\n");
    sandbox.configure(&format!("{weather}\n{archive}enabled = false\n"));
    let reload = daemon.json(&["reload"]);
    assert_eq!(reload["changed"], json!(["archive", "weather"]), "{reload:#}");

    assert_eq!(daemon.json(&["call", "weather.echo"])["data"]["api_timeout"], 5);
    daemon.wait_for_state("archive", "disabled");
    let list = daemon.json(&["list"]);
    let [archive, weather] = [&list["plugins"][0], &list["plugins"][1]];
    assert_eq!((&weather["priority"], &weather["enabled"]), (&json!(5), &json!(true)), "{list:#}");
    assert_eq!((&archive["enabled"], &archive["state"]), (&json!(false), &json!("disabled")), "{list:#}");
    let refused = daemon.plugd(&["--output", "json", "call", "archive.pid"]).expect(6).json();
    assert_eq!(refused["error"]["name"], "disabled", "{refused:#}");
    daemon.stop();
}

#[test]
fn r13_an_unknown_name_gets_the_nearest_and_runs_nothing() {
    let sandbox = Sandbox::new("");
    let definitions = "OPERATIONS[0]['name'] = 'query_status'\nmark('spawned')";
    let table = sandbox.python("tickets", definitions);
    sandbox.configure(&table);
    let daemon = sandbox.serve();
    daemon.json(&["list"]);
    let before = (sandbox.read("plugins/tickets/spawned"), daemon.status("tickets")["generation"].clone());

    let cases = [
        ("tickets.query_statuss", "unknown_operation", "tickets.query_status"),
        ("query_statuss", "unknown_operation", "query_status"),
        ("ticketz.query_status", "unknown_plugin", "tickets"),
    ];
    for (written, name, nearest) in cases {
        let result = daemon.plugd(&["--output", "json", "call", written]).expect(4).json();
        assert_eq!(
            (&result["status"], &result["error"]["name"]),
            (&json!("error"), &json!(name)),
            "{result:#}"
        );
        assert_eq!(result["error"]["outcome"], "not_run", "{result:#}");
        let hint = result["error"]["hint"].as_str().expect("a hint");
        assert!(hint.contains(&format!("did you mean {nearest}?")), "{hint}");
    }
    let after = (sandbox.read("plugins/tickets/spawned"), daemon.status("tickets")["generation"].clone());
    assert_eq!(after, before, "nothing was spawned");
    daemon.stop();
}

#[test]
fn r16_an_empty_list_says_which_file_was_read_and_where_was_looked() {
    let sandbox = Sandbox::new("[scan]\ndirs = [\"plugins\", \"more\"]\n");
    sandbox.write("plugins/notes.txt", "");
    sandbox.write("more/.keep", "");
    let file = sandbox.path().join("plugd.toml").display().to_string();
    let folders = ["plugins", "more"].map(|folder| sandbox.path().join(folder).display().to_string());
    let explains = || {
        let text = sandbox.plugd(&["list"]).expect(0).stdout;
        assert!(text.contains(&file), "{text}");
        assert!(folders.iter().all(|folder| text.contains(folder)), "{text}");
        assert!(text.contains("notes.txt: it is no program"), "what was passed over is said: {text}");
        let list = sandbox.json(&["list"]);
        assert_eq!((&list["config"], &list["looked_in"]), (&json!(file), &json!(folders)), "{list:#}");
    };
    explains();
    let daemon = sandbox.serve();
    explains();
    daemon.stop();
}

#[test]
fn r17_a_version_is_shown_everywhere_and_a_manifest_without_one_is_refused_with_a_fix() {
    let sandbox = Sandbox::new("");
    let versioned = format!("{}env = {{ VERSION = \"2.3.4\" }}\n", sandbox.shell("versioned"));
    let bare = sandbox.shell("bare");
    let text = sandbox.read("plugins/bare/main.sh");
    let without = text.replace("\\\"version\\\":\\\"${VERSION:-1.0.0}\\\",", "");
    assert_ne!(text, without, "the fixture changed");
    sandbox.write("plugins/bare/main.sh", &without);
    sandbox.configure(&format!("{versioned}\n{bare}"));
    let daemon = sandbox.serve();

    assert_eq!(daemon.json(&["describe", "versioned"])["plugin"]["version"], "2.3.4");
    assert_eq!(daemon.json(&["call", "versioned.pid"])["meta"]["plugin_version"], "2.3.4");
    let refused = daemon.wait_for_state("bare", "disabled");
    let reason = refused["reason"].as_str().expect("a reason");
    assert!(reason.contains("no \"version\": add \"version\": \"1.0.0\""), "{reason}");
    daemon.stop();
}
