//! Configurations as people write them, right and wrong, and what becomes of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plugd_protocol::PluginName;
use plugd_protocol::control::Source;
use plugd_protocol::manifest::OnLoss;
use serde_json::json;

use super::*;

mod scanning;

fn environment() -> Environment {
    Environment::of([("HOME", "/home/a"), ("PATH", "/usr/bin:/bin"), ("XDG_RUNTIME_DIR", "/run/user/1")])
}

fn parsed(text: &str) -> Config {
    Config::parse(text, Path::new("/srv/plugd.toml"), &environment()).expect("the configuration is right")
}

fn plugin(text: &str) -> PluginConfig {
    let config = parsed(text);
    config.plugins.into_values().next().expect("one plugin")
}

/// Each problem of a file as it is shown, the file's name left out.
fn problems(text: &str) -> Vec<String> {
    let error = Config::parse(text, Path::new("plugd.toml"), &environment()).expect_err("must be refused");
    error.to_string().lines().map(|line| line.trim_start_matches("plugd.toml: ").to_owned()).collect()
}

fn name(text: &str) -> PluginName {
    PluginName::new(text).expect("a name")
}

#[test]
fn no_plugin_has_the_name_of_plugd_itself() {
    let told = problems("[plugins.plugd]\ncommand = [\"w\"]\n");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("is the name of what plugd itself offers"), "{told:?}");
}

#[test]
fn each_mistake_is_named_with_its_line_and_what_would_be_right() {
    let in_plugin = |line: &str| format!("[plugins.w]\ncommand = [\"w\"]\n{line}\n");
    let duration = "expected a duration such as \"5s\", \"250ms\", \"10m\" or \"1m30s\"";
    let table = [
        ("timout = \"5s\"", "unknown key plugins.w.timout: did you mean timeout?".to_owned()),
        ("timeout = 5", format!("plugins.w.timeout: {duration}, got the integer 5")),
        ("term_timeout = \"5 parsecs\"", format!("plugins.w.term_timeout: {duration}, got the string \"5 parsecs\"")),
        (
            "timeout = \"2h\"",
            "plugins.w.timeout: expected a duration of more than nothing and at most \"1h\", got the string \"2h\"".into(),
        ),
        ("concurrency = 0", "plugins.w.concurrency: expected a whole number of at least 1, got the integer 0".into()),
        (
            "queue_length = 1000000000000",
            "plugins.w.queue_length: expected a whole number from 1 to 4294967295, got the integer 1000000000000".into(),
        ),
        ("enabled = \"yes\"", "plugins.w.enabled: expected true or false, got the string \"yes\"".into()),
        ("start = \"early\"", "plugins.w.start: expected \"lazy\" or \"eager\", got the string \"early\"".into()),
        ("protocol = \"mcp\"", "plugins.w.protocol: \"mcp\" is not supported yet by this version of plugd".into()),
        (
            "requires = { auth = \"one\" }",
            "plugins.w.requires.auth: expected a version range such as \">=1.0\", \"^2\" or \"*\", got the string \"one\"".into(),
        ),
        ("env = { TOKEN = 5 }", "plugins.w.env.TOKEN: expected a string, or false to unset the variable, got an integer".into()),
        (
            "frame_limit = \"16 MegaByte\"",
            "plugins.w.frame_limit: expected a size such as \"16MiB\" or a number of bytes, got the string \"16 MegaByte\"".into(),
        ),
        (
            "requires = { auth = { version = \"1\", on_loss = \"panic\" } }",
            "plugins.w.requires.auth.on_loss: expected \"stay\" or \"restart\" or \"stop\", got the string \"panic\"".into(),
        ),
        (
            "rlimits = { open_files = 0 }",
            "plugins.w.rlimits.open_files: expected a whole number of at least 8, got the integer 0".into(),
        ),
        ("rlimits = { open_flies = 9 }", "unknown key plugins.w.rlimits.open_flies: did you mean open_files?".into()),
        (
            "cgroup = { memory_max = \"much\" }",
            "plugins.w.cgroup.memory_max: expected a size such as \"16MiB\" or a number of bytes, got the string \"much\"".into(),
        ),
        (
            "sandbox = \"readonly\"",
            "plugins.w.sandbox: expected \"none\" or \"read_only\", got the string \"readonly\"".into(),
        ),
        (
            "manifest_sha256 = \"12ab\"",
            "plugins.w.manifest_sha256: expected 64 hexadecimal digits, the manifest sha256 that `plugd describe \
             NAME` shows, got the string \"12ab\""
                .into(),
        ),
        ("restart = { polcy = \"never\" }", "unknown key plugins.w.restart.polcy: did you mean policy?".into()),
        (
            "restart = \"sometimes\"",
            "plugins.w.restart: expected \"on-failure\" or \"always\" or \"never\", got the string \"sometimes\"".into(),
        ),
        ("[plugins.w.config]\nx = nan", String::new()),
    ];
    for (line, expected) in table {
        let found = problems(&in_plugin(line));
        if expected.is_empty() {
            assert_eq!(found, ["line 4: plugins.w.config.x: expected a finite number, got a number"]);
        } else {
            assert_eq!(found, [format!("line 3: {expected}")], "{line}");
        }
    }
}

#[test]
fn mistakes_in_how_a_plugin_is_built_are_named() {
    let in_plugin = |line: &str| problems(&format!("[plugins.w]\ncommand = [\"w\"]\n{line}\n"));
    assert_eq!(
        in_plugin("dev = { build = \"make\" }"),
        ["line 3: plugins.w.dev.build: expected a program and its arguments, such as \
          [\"python3\", \"mailbox.py\"], got a string"]
    );
    assert_eq!(
        in_plugin("dev = { bild = [\"make\"] }"),
        ["line 3: unknown key plugins.w.dev.bild: did you mean build?"]
    );
}

#[test]
fn mistakes_in_how_a_plugin_runs_are_named() {
    let in_plugin = |lines: &str| problems(&format!("[plugins.w]\ncommand = [\"w\"]\n{lines}\n"));
    assert_eq!(in_plugin("spares = 2"), ["line 3: plugins.w.spares: expected 0 or 1, got the integer 2"]);
    assert_eq!(
        in_plugin("spares = 1\nrestart = \"never\""),
        [
            "line 1: plugins.w.spares: expected 0 where restart is \"never\", got 1: a spare takes the place of a \
          plugin that ended, which that forbids; leave one of the two out"
        ]
    );
    assert_eq!(
        in_plugin("stdio = \"socket\""),
        ["line 3: plugins.w.stdio: expected \"pipes\" or \"socketpair\", got the string \"socket\""]
    );
}

#[test]
fn mistakes_outside_a_plugin_are_named_too() {
    let table = [
        ("[deamon]\nsocket = \"x\"", "line 1: unknown key deamon: did you mean daemon?"),
        ("[limits]\nqueue_lenght = 3", "line 2: unknown key limits.queue_lenght: did you mean queue_length?"),
        (
            "plugins = 3",
            "line 1: plugins: expected a table with a plugin's name for each key, got the integer 3",
        ),
        ("[callers.ci]\nalow = []", "line 2: unknown key callers.ci.alow: did you mean allow?"),
        (
            "[callers.ci]\nuid = 0",
            "line 2: callers.ci.uid: the control socket takes its owner's connections alone: a profile is chosen by --as NAME",
        ),
        (
            "[callers.ci]\nallow = [\"orders\"]",
            "line 2: callers.ci.allow: expected plugin.operation, or a pattern such as \"orders.*\", got the string \"orders\"",
        ),
        (
            "[callers.\"plugin:ci\"]\nallow = []",
            "line 1: callers: \"plugin:ci\" is not a caller's name: expected 1 to 64 letters, digits, '_' or '-', beginning with a letter or digit",
        ),
        (
            "[plugins.\"a.b\"]\ncommand = [\"x\"]",
            "line 1: plugins: \"a.b\" is not a plugin name: expected 1 to 64 letters, digits, '_' or '-', beginning with a letter or digit",
        ),
        (
            "[plugins.w]\ncommand = []",
            "line 2: plugins.w.command: the command is empty: expected a program and its arguments, such as [\"python3\", \"mailbox.py\"]",
        ),
        (
            "[plugins.w]\nenabled = true",
            "line 1: plugins.w.command is missing, and no scanned folder has a plugin of that name: add command = [\"PROGRAM\"]",
        ),
        (
            "[plugins.w]\ncommand = [\"w\"]\n[plugins.w.manifest]\noperations = []",
            "line 1: plugins.w.manifest: the manifest has no \"version\": add \"version\": \"1.0.0\"",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(problems(text), [expected], "{text}");
    }
    assert!(problems("[daemon\nx = 1")[0].starts_with("line 1: "), "{:?}", problems("[daemon\nx = 1"));
    assert!(
        problems("a = 1\na = 2")[0].starts_with("line 2: duplicate key"),
        "{:?}",
        problems("a = 1\na = 2")
    );
}

#[test]
fn every_wrong_pattern_of_a_list_is_named() {
    let found = problems("[callers.ci]\nallow = [\"a b\", \"c.*\", \"d e\", 5]");
    assert_eq!(found.len(), 3, "{found:?}");
    for (found, got) in found.iter().zip(["string \"a b\"", "string \"d e\"", "integer 5"]) {
        assert!(found.ends_with(got), "{found}");
    }
}

#[test]
fn all_mistakes_are_reported_at_once_in_the_order_of_their_lines() {
    let text = "[daemon]\nsokcet = \"x\"\n[plugins.a]\ncommand = \"a\"\ntimeout = 1\n[plugins.b]\nprio = 1\n";
    let lines: Vec<String> = problems(text)
        .iter()
        .map(|problem| problem.split(": ").next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(lines, ["line 2", "line 4", "line 5", "line 6", "line 7"]);
}

#[test]
fn a_secret_value_is_neither_in_an_error_nor_shown() {
    let wrong = problems("[plugins.w]\ncommand = [\"w\"]\nenv = { T = [\"s3cr3t\"] }\nconfig = \"s3cr3t\"");
    assert!(!wrong.join("").contains("s3cr3t"), "{wrong:?}");
    let right = "[plugins.w]\ncommand = [\"w\", \"--key=s3cr3t\"]\nenv = { T = \"s3cr3t\", U = false }\n[plugins.w.config]\na = { b = [\"s3cr3t\"] }";
    let config = parsed(right);
    let shown = config.show();
    assert_eq!(shown["plugins"]["w"]["env"], json!({"T": "***", "U": false}));
    assert_eq!(shown["plugins"]["w"]["config"], json!({"a": {"b": "***"}}));
    assert!(!format!("{config:?} {shown}").contains("s3cr3t"));
}

/// A plugin of which everything is said that can be.
const EVERYTHING: &str = r#"[plugins.mailbox]
        command = ["python3", "mailbox.py"]
        cwd = "w"
        protocol = "plugd"
        start = "eager"
        enabled = false
        priority = -10
        requires = { auth = ">=1.0", cities = { version = "^2", optional = true, on_loss = "restart" } }
        env = { LOG = "debug", LANG = false }
        pass_env = ["HTTPS_PROXY"]
        concurrency = 4
        timeout = "1m30s"
        stall_timeout = false
        restart = { policy = "always", backoff = "1s", max = 2, jitter = 0 }
        idle_timeout = "10m"
        on_change = "manual"
        strict = true
        manifest_sha256 = "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"
        start_timeout_max = "10m"
        unkillable_timeout = "5s"
        sandbox = "read_only"
        stdio = "socketpair"
        spares = 1
        rlimits = { open_files = 64, address_space = "1GiB", cpu_time = "1m500ms" }
        dev = { build = ["make", "it"], ignore = ["notes.db"] }
        [plugins.mailbox.cgroup]
        memory_max = "256MiB"
        pids_max = 20
        [plugins.mailbox.config]
        cache_ttl = 60
        since = 2024-12-15
        [plugins.mailbox.manifest]
        version = "1.0.0"
        operations = []
        "#;

#[test]
fn everything_that_can_be_said_of_a_plugin_is_taken_up() {
    let plugin = plugin(EVERYTHING);
    assert_eq!(plugin.source, Source::Config { file: "/srv/plugd.toml".to_owned() });
    assert_eq!((plugin.start, plugin.enabled, plugin.priority), (StartMode::Eager, false, Some(-10)));
    assert_eq!(plugin.cwd, Path::new("/srv/w"));
    assert!(plugin.requires[&name("cities")].optional && !plugin.requires[&name("auth")].optional);
    assert_eq!(plugin.env["LANG"], None);
    assert_eq!(plugin.concurrency, Some(4));
    assert_eq!(plugin.limits.timeout, Some(Duration::from_secs(90)));
    assert_eq!(plugin.limits.stall_timeout, Some(None));
    assert_eq!(plugin.restart.mode, RestartMode::Always);
    assert_eq!((plugin.restart.backoff, plugin.restart.max), (Duration::from_secs(1), 2));
    assert_eq!(plugin.restart.window, RestartPolicy::default().window);
    assert_eq!(plugin.idle_timeout, Some(Duration::from_secs(600)));
    assert_eq!((plugin.on_change, plugin.strict), (OnChange::Manual, true));
    assert_eq!(plugin.config, json!({"cache_ttl": 60, "since": "2024-12-15"}));
    let waits = (plugin.limits.start_timeout_max, plugin.limits.unkillable_timeout);
    assert_eq!(waits, (Duration::from_secs(600), Duration::from_secs(5)));
    assert_eq!(plugin.requires[&name("cities")].on_loss, OnLoss::Restart);
    assert_eq!(plugin.requires[&name("auth")].on_loss, OnLoss::Stay);
    // A CPU limit is in whole seconds, and never less than was asked for.
    let rlimits = Rlimits {
        open_files: Some(64),
        address_space: Some(1 << 30),
        cpu_time: Some(61),
        ..Rlimits::default()
    };
    assert_eq!(plugin.rlimits, rlimits);
    assert_eq!(rlimits.core_size, Some(0), "no plugin dumps core unless it is told to");
    assert_eq!(plugin.cgroup, CgroupLimits { memory_max: Some(256 << 20), pids_max: Some(20) });
    assert_eq!(plugin.sandbox, Sandbox::ReadOnly);
    assert_eq!((plugin.stdio, plugin.spare), (Stdio::Socketpair, true));
    assert_eq!(
        (plugin.dev.build.join(" "), plugin.dev.ignore.join(" ")),
        ("make it".into(), "notes.db".into())
    );
    assert_eq!(plugin.manifest_sha256, Some("0123456789abcdef".repeat(4)));
    let manifest = json!({"version": "1.0.0", "operations": [], "protocol": 1, "name": "mailbox"});
    assert_eq!(plugin.manifest, Some(manifest));
}

#[test]
fn the_most_specific_limit_wins() {
    let config = parsed(
        "[limits]\nqueue_length = 8\nterm_timeout = \"1s\"\nidle_timeout = \"5m\"\ncall_depth = 4\nlog_size = \"1 MiB\"\n
         [plugins.a]\ncommand = [\"a\"]\nqueue_length = 9\nidle_timeout = false\n[plugins.b]\ncommand = [\"b\"]\nframe_limit = 4096\n",
    );
    let (a, b) = (&config.plugins[&name("a")], &config.plugins[&name("b")]);
    assert_eq!((config.limits.queue_length, a.limits.queue_length, b.limits.queue_length), (8, 9, 8));
    assert_eq!(a.limits.term_timeout, Duration::from_secs(1));
    assert_eq!(a.limits.kill_timeout, Limits::default().kill_timeout);
    assert_eq!((a.idle_timeout, b.idle_timeout), (None, Some(Duration::from_secs(300))));
    assert_eq!((a.limits.timeout, a.limits.stall_timeout), (None, None));
    assert_eq!((a.limits.call_depth, a.limits.log_size), (4, 1 << 20));
    assert_eq!((a.limits.frame_limit, b.limits.frame_limit), (16 << 20, 4096));
}

#[test]
fn a_program_is_found_in_the_plugins_folder_or_on_the_path() {
    let program = |command: &str| plugin(&format!("[plugins.w]\ncommand = [\"{command}\"]\n")).program;
    assert_eq!(program("bin/mailbox"), Path::new("/srv/bin/mailbox"));
    assert_eq!(program("/opt/mailbox"), Path::new("/opt/mailbox"));
    assert_eq!(program("no-such-program-anywhere"), Path::new("no-such-program-anywhere"));
    assert!(["/usr/bin/sh", "/bin/sh"].map(PathBuf::from).contains(&program("sh")));
    let moved = plugin("[plugins.w]\ncommand = [\"./w\"]\ncwd = \"/opt\"\n");
    assert_eq!(moved.program, Path::new("/opt/./w"));
}

#[test]
fn a_plugin_gets_the_allowlist_and_what_is_configured_and_nothing_else() {
    let plugin = plugin(
        "[plugins.w]\ncommand = [\"w\"]\nenv = { LOG = \"x\", LANG = false, PYTHONUTF8 = \"0\" }\npass_env = [\"PROXY\"]\n",
    );
    let host = Environment::of([
        ("PATH", "/bin"),
        ("LANG", "C"),
        ("LC_ALL", "C"),
        ("PLUGD_X", "1"),
        ("PROXY", "p"),
        ("AWS_SECRET", "s"),
        ("LD_PRELOAD", "evil.so"),
    ]);
    let variables: Vec<String> =
        plugin.environment(&host).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let expected =
        ["LC_ALL=C", "LOG=x", "PATH=/bin", "PLUGD_X=1", "PROXY=p", "PYTHONUNBUFFERED=1", "PYTHONUTF8=0"];
    assert_eq!(variables, expected);
}

#[test]
fn a_project_has_its_own_socket_and_state() {
    let at = |path: &str| Config::parse("", Path::new(path), &environment()).expect("empty is right");
    let (one, other, shared) =
        (at("/srv/a/plugd.toml"), at("/srv/b/plugd.toml"), at("/home/a/.config/plugd/plugd.toml"));
    assert_eq!(shared.socket, Path::new("/run/user/1/plugd/plugd.sock"));
    assert_eq!(shared.state_dir, Path::new("/home/a/.local/state/plugd"));
    assert_eq!(one.socket.parent(), Some(Path::new("/run/user/1/plugd")));
    assert_eq!(one.socket, at("/srv/a/plugd.toml").socket);
    assert_ne!(one.socket, other.socket);
    assert_ne!(one.state_dir, other.state_dir);
    let stem = one.socket.file_stem().and_then(|stem| stem.to_str()).expect("UTF-8");
    assert_eq!((stem.len(), one.state_dir.ends_with(stem)), (16, true));

    let bare = Environment::of([("HOME", "/home/a")]);
    let config = Config::parse("", Path::new("/srv/a/plugd.toml"), &bare).expect("right");
    assert_eq!(config.socket, config.state_dir.join("plugd.sock"));
    assert!(!one.watch && one.parent_death_signal && one.cgroups);
    let set = parsed(
        "[daemon]\nsocket = \"run/p.sock\"\nstate_dir = \"/var/p\"\nwatch = true\nparent_death_signal = false\ncgroups = false\n",
    );
    assert_eq!((set.socket, set.state_dir), ("/srv/run/p.sock".into(), "/var/p".into()));
    assert!(set.watch && !set.parent_death_signal && !set.cgroups);
}

#[test]
fn what_is_kept_of_calls_can_be_said_and_switched_off() {
    let day = Duration::from_secs(24 * 60 * 60);
    let kept = |text: &str| parsed(text).record.map(|keep| (keep.age, keep.bytes));
    assert_eq!(kept(""), Some((30 * day, 1 << 30)));
    assert_eq!(kept("[record]\nkeep_for = \"7d\"\nkeep_size = \"64MiB\"\n"), Some((7 * day, 64 << 20)));
    assert_eq!(kept("[record]\nenabled = false\n"), None);
    assert!(problems("[record]\nkeep_days = 3\n")[0].contains("keep_days"));
}

#[test]
fn a_socket_path_too_long_is_refused_with_what_to_do() {
    let long = "x".repeat(120);
    let found = problems(&format!("[daemon]\nsocket = \"/{long}\"\n"));
    assert!(found[0].contains("is 121 bytes long") && found[0].contains("under [daemon]"), "{found:?}");
    let homeless = Config::parse("", Path::new("/srv/plugd.toml"), &Environment::default());
    assert!(homeless.expect_err("no state").to_string().contains("set state_dir under [daemon]"));
}

#[test]
fn a_file_is_looked_for_where_the_manual_says() {
    let root = tempfile::tempdir().expect("a folder");
    let home = root.path().join("home");
    let project = root.path().join("project");
    for dir in [&home.join(".config/plugd"), &project] {
        fs::create_dir_all(dir).expect("a folder");
    }
    let environment =
        Environment::of([("HOME", home.to_str().expect("UTF-8")), ("XDG_CONFIG_DIRS", "/nowhere")]);
    let found = |explicit: Option<&str>| Config::find_from(explicit.map(Path::new), &project, &environment);
    let shared = home.join(".config/plugd/plugd.toml");
    let own = project.join("plugd.toml");

    let nothing = found(None);
    assert_eq!(nothing.file, None);
    assert_eq!(nothing.searched, [own.clone(), shared.clone(), "/nowhere/plugd/plugd.toml".into()]);
    let empty = Config::open(&nothing, &environment).expect("nothing is configured");
    assert_eq!((empty.plugins.len(), &empty.searched), (0, &nothing.searched));

    fs::write(&shared, "").expect("written");
    assert_eq!(found(None).file, Some(shared));
    fs::write(&own, "").expect("written");
    assert_eq!(found(None).file, Some(own));
    let named = found(Some("other.toml"));
    assert_eq!(named.file, Some(project.join("other.toml")));
    let error = Config::open(&named, &environment).expect_err("it is not there").to_string();
    assert!(error.ends_with("other.toml: cannot be read: there is nothing of that name"), "{error}");
    let by_variable = Environment::of([("PLUGD_CONFIG", "/etc/p.toml")]);
    assert_eq!(Config::find_from(None, &project, &by_variable).file, Some("/etc/p.toml".into()));
}

#[test]
fn the_published_schema_is_the_files_own() {
    let schema = schema();
    let text = serde_json::value::to_raw_value(&schema).expect("JSON");
    let contract = plugd_contract::Contract::compile(&text).expect("a schema plugd itself accepts");
    let right = json!({
        "daemon": {"socket": "s"},
        "scan": {"dirs": ["p"]},
        "limits": {"timeout": "5s", "call_depth": 3},
        "plugins": {"w": {"command": ["w"], "restart": "never", "timeout": "1m30s", "config": {"a": 1},
            "requires": {"auth": {"version": ">=1.0", "on_loss": "stop"}}, "env": {"A": "b", "C": false},
            "frame_limit": "16MiB", "rlimits": {"core_size": 0}, "cgroup": {"pids_max": 9},
            "sandbox": "read_only", "stdio": "socketpair", "spares": 1, "dev": {"build": ["make"]}}},
    });
    assert_eq!(contract.check_value(&right), Ok(()));
    for wrong in [
        json!({"deamon": {}}),
        json!({"plugins": {"w": {"timout": "5s"}}}),
        json!({"plugins": {"w": {"timeout": 5}}}),
        json!({"plugins": {"w": {"restart": {"polcy": "never"}}}}),
    ] {
        assert!(contract.check_value(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn durations_and_sizes_read_as_people_write_them() {
    let durations = [
        ("5s", Some(5_000)),
        ("250ms", Some(250)),
        ("1m30s", Some(90_000)),
        ("2h", Some(7_200_000)),
        ("1h 5m", Some(3_900_000)),
        ("10 s", Some(10_000)),
        ("0s", Some(0)),
        ("", None),
        ("5", None),
        ("s", None),
        ("-5s", None),
        ("1.5s", None),
        ("99999999999999999999s", None),
        ("9999999999999999999h", None),
    ];
    for (text, millis) in durations {
        assert_eq!(value::parse_duration(text), millis.map(Duration::from_millis), "{text:?}");
    }
    let sizes = [
        ("16MiB", Some(16 << 20)),
        ("10 MiB", Some(10 << 20)),
        ("10kB", Some(10_000)),
        ("7", Some(7)),
        ("7 apples", None),
        ("99999999999GiB", None),
    ];
    for (text, bytes) in sizes {
        assert_eq!(value::parse_size(text), bytes, "{text:?}");
    }
    for text in ["250ms", "1m30s", "24h", "0s"] {
        assert_eq!(value::duration_text(value::parse_duration(text).expect("a duration")), text);
    }
}
