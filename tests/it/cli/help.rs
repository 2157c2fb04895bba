//! What the program tells about itself, and about a configuration that is wrong.

use plugd_tests::Sandbox;
use serde_json::{Value, json};

/// Every command there is.
pub(super) const COMMANDS: &[&str] = &[
    "serve",
    "shutdown",
    "status",
    "list",
    "doctor",
    "describe",
    "tools",
    "new",
    "dev",
    "check",
    "lint",
    "call",
    "calls",
    "result",
    "jobs",
    "cancel",
    "answer",
    "start",
    "stop",
    "restart",
    "reload",
    "add",
    "remove",
    "enable",
    "disable",
    "logs",
    "events",
    "graph",
    "config",
    "completions",
];

#[test]
fn every_command_has_help_and_the_program_names_every_command() {
    let sandbox = Sandbox::new("");
    let all = sandbox.plugd(&["--help"]).expect(0).stdout;
    for command in COMMANDS {
        assert!(
            all.lines().any(|line| line.trim_start().starts_with(&format!("{command} "))),
            "{command} in {all}"
        );
        let help = sandbox.plugd(&[command, "--help"]).expect(0);
        assert!(help.stdout.contains("Example") && help.stderr.is_empty(), "{command}: {help:?}");
    }
    let named: Vec<&str> = all
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert_eq!(named, COMMANDS, "no command is missing from this test");
    for action in ["check", "show", "schema"] {
        sandbox.plugd(&["config", action, "--help"]).expect(0);
    }
    let version = sandbox.plugd(&["--version"]).expect(0).stdout;
    assert!(version.starts_with("plugd 0."), "{version}");
}

/// What is prose is broken where the next word does not fit, and nowhere else.
#[test]
fn help_texts_are_wrapped_once() {
    const WIDTH: usize = 100;
    let sandbox = Sandbox::new("");
    for command in COMMANDS {
        let help = sandbox.plugd(&[command, "--help"]).expect(0).stdout;
        let lines: Vec<&str> = help.lines().skip_while(|line| *line != "Global options:").collect();
        for pair in lines.windows(2) {
            let is_prose = |line: &str| line.starts_with(char::is_alphanumeric) && !line.ends_with(':');
            if is_prose(pair[0]) && is_prose(pair[1]) {
                let next = pair[1].split(' ').next().unwrap_or_default();
                let length = pair[0].chars().count() + 1 + next.chars().count();
                assert!(length > WIDTH, "{command}: {:?} is broken before {next:?}", pair[0]);
            }
        }
    }
}

#[test]
fn completions_are_made_for_each_shell() {
    let sandbox = Sandbox::new("");
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.plugd(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("plugd") && script.contains("shutdown"), "{shell}: {script}");
    }
    sandbox.plugd(&["completions", "cmd.exe"]).expect(2);
}

#[test]
fn a_wrong_configuration_is_told_with_file_line_key_and_the_nearest_key() {
    let sandbox = Sandbox::new("");
    // Four lines come before: the sandbox's own.
    sandbox
        .configure("[plugins.a]\ncomand = [\"x\"]\n\n[plugins.b]\ncommand = [\"x\"]\ntimeout = \"soon\"\n");
    let ran = sandbox.plugd(&["config", "check"]).expect(2);
    let text = sandbox.read("plugd.toml");
    for (key, wrong) in [("plugins.a.comand", "comand ="), ("plugins.b.timeout", "timeout =")] {
        let line = text.lines().position(|line| line.starts_with(wrong)).expect("it is there") + 1;
        let told = ran.stderr.lines().find(|told| told.contains(key));
        let told = told.unwrap_or_else(|| panic!("{key} is told: {ran:?}"));
        assert!(told.contains("plugd.toml") && told.contains(&format!("line {line}:")), "{told}");
    }
    assert!(ran.stderr.contains("did you mean command?"), "{ran:?}");
    let document = sandbox.plugd(&["--output", "json", "config", "check"]).expect(2).json();
    assert_eq!(document["error"]["name"], "invalid_config", "{document:#}");
    for words in [&["list"][..], &["serve"], &["call", "a.b"]] {
        let refused = sandbox.plugd(words).expect(2);
        assert!(refused.stderr.contains("comand"), "{refused:?}");
    }

    sandbox.configure("");
    let right = sandbox.plugd(&["--output", "json", "config", "check"]).expect(0).json();
    assert_eq!(right["ok"], true, "{right:#}");
}

#[test]
fn the_schema_of_the_configuration_is_a_schema_and_knows_right_from_wrong() {
    let sandbox = Sandbox::new("");
    let schema = sandbox.plugd(&["config", "schema"]).expect(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(jsonschema::meta::is_valid(&schema), "{schema:#}");
    let validator = jsonschema::validator_for(&schema).expect("it compiles");
    let right: &[Value] = &[
        json!({}),
        json!({"daemon": {"socket": "run/plugd.sock"}, "scan": {"dirs": ["plugins"]}}),
        json!({"plugins": {"weather": {"command": ["python3", "weather.py"], "start": "eager", "timeout": "5s",
            "requires": {"auth": ">=1.0"}, "restart": {"backoff": "50ms"}, "config": {"cache_ttl": 60}}}}),
    ];
    for config in right {
        let problems: Vec<String> = validator.iter_errors(config).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{config}: {problems:?}");
    }
    let wrong = [
        json!({"demon": {}}),
        json!({"plugins": {"a": {"comand": ["x"]}}}),
        json!({"plugins": {"a": {"command": "x"}}}),
        json!({"plugins": {"a": {"command": ["x"], "start": "sometimes"}}}),
    ];
    for config in wrong {
        assert!(!validator.is_valid(&config), "{config}");
    }
}
