//! Scanned folders: what is a plugin there, what is passed over, and what is broken.

use super::*;

/// A folder of plugins: each file with its text, executable where its name ends in `!`.
fn folder(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name.trim_end_matches('!'));
        fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        fs::write(&path, text).expect("written");
        let mode = if name.ends_with('!') { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
    }
}

fn scanned(root: &Path, text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, &root.join("plugd.toml"), &environment())
}

#[test]
fn a_scan_takes_up_plugins_and_says_what_it_passed_over() {
    let root = tempfile::tempdir().expect("a folder");
    let plugin_toml =
        "command = [\"./run\", \"-v\"]\npriority = 5\nenv = { A = \"1\" }\n[config]\na = { x = 1, y = 2 }\n";
    folder(
        root.path(),
        &[
            ("plugins/mailbox/plugin.toml", plugin_toml),
            ("plugins/greet.py!", ""),
            ("plugins/notes.txt", ""),
            ("plugins/later.sh", "#!/bin/sh\n"),
            ("plugins/empty/readme", ""),
            ("plugins/_draft/plugin.toml", "nonsense"),
            ("plugins/.hidden!", ""),
            ("plugins/greet.py~!", ""),
            ("plugins/my tool!", ""),
        ],
    );
    let text = "[scan]\ndirs = [\"plugins\", \"./plugins\"]\n[plugins.mailbox]\nenabled = false\nenv = { B = \"2\" }\nconfig = { a = { y = 3 } }\n";
    let config = scanned(root.path(), text).expect("right");
    let dir = fs::canonicalize(root.path()).expect("there").join("plugins");
    let names: Vec<&str> = config.plugins.keys().map(PluginName::as_str).collect();
    assert_eq!(names, ["greet", "mailbox"]);
    let greet = &config.plugins[&name("greet")];
    assert_eq!((&greet.program, &greet.cwd), (&dir.join("greet.py"), &dir));
    let mailbox = &config.plugins[&name("mailbox")];
    assert_eq!(mailbox.source, Source::Scan { dir: dir.display().to_string() });
    assert_eq!((mailbox.enabled, mailbox.priority), (false, Some(5)));
    assert_eq!((&mailbox.cwd, &mailbox.program), (&dir.join("mailbox"), &dir.join("mailbox/./run")));
    assert_eq!(mailbox.config, json!({"a": {"x": 1, "y": 3}}));
    assert_eq!(mailbox.env.len(), 2);
    let skipped: Vec<String> = config
        .skipped
        .iter()
        .map(|skipped| format!("{}: {}", skipped.path.rsplit('/').next().unwrap_or_default(), skipped.reason))
        .collect();
    assert_eq!(
        skipped,
        [
            ".hidden: names that begin with _ or . are passed over",
            "_draft: names that begin with _ or . are passed over",
            "empty: the folder has no plugin.toml",
            "greet.py~: it looks like a backup copy",
            "later.sh: it is not executable: chmod +x makes it a plugin",
            "my tool: \"my tool\" is not a plugin name: expected 1 to 64 letters, digits, '_' or '-', beginning with a letter or digit",
            "notes.txt: it is no program",
        ]
    );
}

#[test]
fn of_a_name_offered_twice_none_is_taken_up_in_whatever_order_and_what_is_configured_stays() {
    let root = tempfile::tempdir().expect("a folder");
    let plugin_toml = "command = [\"./run\"]\n";
    folder(
        root.path(),
        &[("a/mailbox/plugin.toml", plugin_toml), ("b/mailbox.sh!", ""), ("a/other.sh!", "")],
    );
    let told = |text: &str| {
        let config = scanned(root.path(), text).expect("the others run");
        let names: Vec<String> = config.plugins.keys().map(ToString::to_string).collect();
        let broken = config.broken.iter().flat_map(|broken| &broken.problems).map(ToString::to_string);
        (names.join(" "), broken.collect::<Vec<_>>().join("\n"))
    };
    let forwards = told("[scan]\ndirs = [\"a\", \"b\"]\n");
    assert_eq!(forwards, told("[scan]\ndirs = [\"b\", \"a\"]\n"));
    let (names, problem) = forwards;
    assert_eq!(names, "other");
    assert!(problem.contains("the plugin mailbox is there 2 times: "), "{problem}");
    assert!(problem.contains("/a/mailbox and ") && problem.contains("/b/mailbox.sh: rename"), "{problem}");
    let (names, problem) = told("[scan]\ndirs = [\"a\"]\n[plugins.mailbox]\ncommand = [\"w\"]\n");
    assert_eq!(names, "mailbox other");
    assert!(problem.contains("line 3: the plugin mailbox is there 2 times"), "{problem}");
    assert!(problem.contains("plugd.toml: rename or remove all but one; until then the one of"), "{problem}");
}

#[test]
fn a_table_for_a_scanned_file_that_is_passed_over_keeps_nothing_else_from_running() {
    let root = tempfile::tempdir().expect("a folder");
    folder(root.path(), &[("p/later.sh", "#!/bin/sh\n"), ("p/right.sh!", "")]);
    let config =
        scanned(root.path(), "[scan]\ndirs = [\"p\"]\n[plugins.later]\npriority = 1\n").expect("it runs");
    assert_eq!(config.plugins.keys().map(PluginName::as_str).collect::<Vec<_>>(), ["right"]);
    let problem = config.broken[0].problems[0].to_string();
    assert!(problem.contains("line 3: plugins.later.command is missing, and "), "{problem}");
    assert!(problem.contains("/p/later.sh was passed over: it is not executable"), "{problem}");
}

#[test]
fn a_fault_in_a_scanned_folder_names_its_own_file_and_keeps_nothing_else_from_running() {
    let root = tempfile::tempdir().expect("a folder");
    folder(
        root.path(),
        &[
            ("p/a/plugin.toml", "command = [\"a\"]\ntimout = 1\n"),
            ("p/b/plugin.toml", "priority = 1\n"),
            ("p/c/plugin.toml", "command = [\"c\"]\nmanifest = { version = 3 }\n"),
            ("p/right.sh!", ""),
        ],
    );
    let text =
        "[scan]\ndirs = [\"p\", \"gone\"]\n[plugins.a]\nenabled = true\n[plugins.lost]\nenabled = true\n";
    let config = scanned(root.path(), text).expect("the others run");
    assert_eq!(config.plugins.keys().map(PluginName::as_str).collect::<Vec<_>>(), ["right"]);
    let broken: Vec<String> =
        config.broken.iter().flat_map(|broken| &broken.problems).map(ToString::to_string).collect();
    let expected = [
        "p/a/plugin.toml: line 2: unknown key timout: did you mean timeout?",
        "p/b/plugin.toml: command is missing",
        "/gone: cannot be scanned: there is nothing of that name",
        "line 5: plugins.lost.command is missing, and no scanned folder has a plugin of that name",
        "p/c/plugin.toml: plugins.c.manifest: ",
    ];
    assert_eq!(broken.len(), expected.len(), "{broken:#?}");
    for expected in expected {
        assert!(broken.iter().any(|problem| problem.contains(expected)), "{expected}: {broken:#?}");
        let reason = expected.rsplit_once("plugin.toml: ").map_or(expected, |(_, reason)| reason);
        let reason = reason.trim_start_matches("/gone: ");
        assert!(config.skipped.iter().any(|skipped| skipped.reason.contains(reason)), "{:?}", config.skipped);
    }
    let alone = scanned(root.path(), "[scan]\ndirs = [\"p\"]\n[plugins.lost]\nenabled = true\n");
    assert!(alone.is_err(), "every folder could be looked into: the name is a slip");
}

#[test]
fn what_breaks_in_a_scanned_folder_takes_nothing_away_that_runs() {
    let root = tempfile::tempdir().expect("a folder");
    let right = "command = [\"./run\"]\n";
    folder(root.path(), &[("p/a/plugin.toml", right), ("q/b.sh!", "")]);
    let text = "[daemon]\nstate_dir = \"state\"\n[scan]\ndirs = [\"p\", \"q\"]\n";
    let file = root.path().join("plugd.toml");
    fs::write(&file, text).expect("written");
    let running = Config::load(&file).expect("right");
    folder(root.path(), &[("p/new/plugin.toml", "command = [")]);
    let again = running.again(&file).expect("one that was never there keeps nobody from reloading");
    assert_eq!((again.plugins.len(), again.broken.len()), (2, 1));
    folder(root.path(), &[("p/a/plugin.toml", "command = [")]);
    let error = again.again(&file).expect_err("a would go").to_string();
    assert!(error.contains("p/a/plugin.toml: line 1: ") && !error.contains("p/new"), "{error}");
    folder(root.path(), &[("p/a/plugin.toml", right)]);
    fs::remove_dir_all(root.path().join("q")).expect("removed");
    let error = again.again(&file).expect_err("b would go").to_string();
    assert!(error.contains("q: cannot be scanned: "), "{error}");
    assert_eq!(Config::load(&file).expect("a start is another matter").plugins.len(), 1);
}
