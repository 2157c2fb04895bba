//! Plugins that an operator added: each a file in the state folder, in the form of a plugin.toml.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plugd_protocol::PluginName;
use plugd_protocol::control::{AddParams, Skipped, Source};
use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, ConfigProblem};
use super::file::PluginFile;
use super::form::Reader;
use super::load::{read_form, read_form_at};
use super::resolve::Entry;
use super::scan::{PLUGIN_FILE, reason};
use super::{Config, Environment, PluginConfig};
use crate::operator::replace_file;

/// The folder of the state folder that they lie in.
const DIR: &str = "added";

/// A plugin that was added, as its file says.
pub(super) struct Added {
    pub(super) name: PluginName,
    pub(super) entry: Entry,
}

/// What the folder of added plugins gave.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) plugins: Vec<Added>,
    /// Files that cannot be used. They keep nobody from starting: no person wrote them.
    pub(super) skipped: Vec<Skipped>,
}

/// Reads every plugin that was added; one on `PATH` runs in `dir` unless it says otherwise.
pub(super) fn read_all(state_dir: &Path, dir: &Path) -> Findings {
    let mut findings = Findings::default();
    let Ok(entries) = fs::read_dir(state_dir.join(DIR)) else { return findings };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files {
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        let of_ours = file.extension().is_some_and(|ending| ending == "toml");
        let Some(name) = stem.filter(|_| of_ours).and_then(|stem| PluginName::new(stem).ok()) else {
            continue;
        };
        match read_one(&name, &file, dir) {
            Ok(entry) => findings.plugins.push(Added { name, entry }),
            Err(reason) => findings.skipped.push(Skipped { path: file.display().to_string(), reason }),
        }
    }
    findings
}

fn read_one(name: &PluginName, file: &Path, dir: &Path) -> Result<Entry, String> {
    let again = || format!("`plugd remove {name}` and `plugd add` write it anew");
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {}", reason(&error), again()))?;
    let mut problems = Vec::new();
    let form: Option<PluginFile> = read_form(&text, file, &mut problems);
    let entry = form.map(|form| entry(form, "", file, dir, &mut problems));
    match (entry, problems.first()) {
        (Some(entry), None) => Ok(entry),
        (_, problem) => {
            let why = problem.map(|problem| problem.message.clone()).unwrap_or_default();
            Err(format!("{why}: {}", again()))
        }
    }
}

/// A plugin's form with its folder, once it is known to have one.
fn entry(form: PluginFile, key: &str, file: &Path, dir: &Path, problems: &mut Vec<ConfigProblem>) -> Entry {
    let mut wrong = |name: &str, message: &str| {
        let key = super::form::join(key, name);
        let message = format!("{key}{message}");
        problems.push(ConfigProblem { key, ..ConfigProblem::of_file(file, message) });
    };
    let word = form.command.as_ref().and_then(|command| command.0.first()).map(Path::new);
    let (cwd, within) = (form.cwd.as_deref().map(Path::new), word.and_then(Path::parent));
    let folder = match (cwd, word, within) {
        (Some(cwd), _, _) if cwd.is_absolute() => cwd,
        (Some(_), _, _) => {
            wrong("cwd", ": expected an absolute path");
            dir
        }
        (None, Some(word), Some(within)) if word.is_absolute() => within,
        (None, Some(word), _) if word.components().count() > 1 || word.starts_with(".") => {
            wrong("command", ": a relative path needs a cwd that it starts from");
            dir
        }
        (None, _, _) => dir,
    };
    if form.command.is_none() {
        wrong("command", " is missing: add command = [\"PROGRAM\"]");
    }
    Entry {
        folder: folder.to_owned(),
        form,
        source: Source::Added { file: file.display().to_string() },
        file: file.to_owned(),
        line: None,
    }
}

/// The file of an added plugin.
pub(super) fn file_of(state_dir: &Path, name: &PluginName) -> PathBuf {
    state_dir.join(DIR).join(format!("{name}.toml"))
}

/// The text of the file for a plugin that is to be added, and the plugin as it is to be used.
///
/// # Errors
/// Everything that is wrong with it, named as in the config file.
pub(crate) fn compose(
    config: &Config,
    params: &AddParams,
    environment: &Environment,
) -> Result<(String, PluginConfig), ConfigError> {
    let key = format!("plugins.{}", params.name);
    let file = file_of(&config.state_dir, &params.name);
    let mut problems = Vec::new();
    nulls(&params.plugin, &key, &file, &mut problems);
    let text = match problems.is_empty() {
        true => toml::Table::try_from(&params.plugin).and_then(|table| toml::to_string(&table)),
        false => Ok(String::new()),
    };
    let text = text.unwrap_or_else(|error| {
        let message = format!("{key}: {error}");
        problems.push(ConfigProblem { key: key.clone(), ..ConfigProblem::of_file(&file, message) });
        String::new()
    });
    let mut plugin = None;
    if problems.is_empty()
        && let Some(form) = read_form_at::<PluginFile>(&text, &file, &key, &mut problems)
    {
        let command_is_wrong = problems.iter().any(|problem| problem.key == format!("{key}.command"));
        if !command_is_wrong {
            let entry = entry(form, &key, &file, &config.dir, &mut problems);
            plugin = entry
                .resolve(&params.name, &config.defaults, environment)
                .map_err(|(member, message)| {
                    let key = format!("{key}.{member}");
                    problems.push(ConfigProblem::of_file(&file, format!("{key}: {message}")));
                })
                .ok();
        }
    }
    match plugin {
        Some(plugin) if problems.is_empty() => Ok((text, plugin)),
        // The file is not there yet: nobody could look at it.
        _ => {
            let unplaced = |problem| ConfigProblem { file: None, line: None, ..problem };
            Err(ConfigError { problems: problems.into_iter().map(unplaced).collect() })
        }
    }
}

impl Config {
    /// These places with nothing but plugins given as for `add`; nothing of them is kept.
    ///
    /// # Errors
    /// Everything that is wrong with the first one that cannot be used.
    pub fn with_given(self, given: &[AddParams], environment: &Environment) -> Result<Config, ConfigError> {
        let mut plugins = BTreeMap::new();
        for params in given {
            let (_, mut plugin) = compose(&self, params, environment)?;
            plugin.source = Source::Embedded;
            plugins.insert(params.name.clone(), plugin);
        }
        Ok(self.with_only(plugins))
    }
}

/// TOML has no null: each is named, for the serializer would only say that there is one.
fn nulls(table: &Map<String, Value>, key: &str, file: &Path, problems: &mut Vec<ConfigProblem>) {
    for (name, value) in table {
        let key = super::form::join(key, name);
        match value {
            Value::Null => {
                let message = format!("{key}: null means nothing here: leave the key out");
                problems.push(ConfigProblem { key, ..ConfigProblem::of_file(file, message) });
            }
            Value::Object(members) => nulls(members, &key, file, problems),
            Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Keeps an added plugin.
///
/// # Errors
/// The state folder cannot be written to.
pub(crate) fn keep(state_dir: &Path, name: &PluginName, text: &str) -> io::Result<()> {
    replace_file(&file_of(state_dir, name), text.as_bytes())
}

/// Forgets an added plugin; true when there was one.
///
/// # Errors
/// Its file cannot be removed.
pub(crate) fn forget(state_dir: &Path, name: &PluginName) -> io::Result<bool> {
    match fs::remove_file(file_of(state_dir, name)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// What the plugin.toml of a folder says, in the form `add` takes it; the folder is its `cwd`.
///
/// # Errors
/// [`ConfigError`] where there is no such file, or it is no TOML.
pub fn folder_as_written(folder: &Path) -> Result<Map<String, Value>, ConfigError> {
    let file = folder.join(PLUGIN_FILE);
    let text = fs::read_to_string(&file).map_err(|error| ConfigError {
        problems: vec![ConfigProblem::of_file(&file, format!("cannot be read: {}", reason(&error)))],
    })?;
    let mut problems = Vec::new();
    // Read by the form first: its messages have the lines of the file.
    let _form: Option<PluginFile> = read_form(&text, &file, &mut problems);
    let (table, _) = DeTable::parse_recoverable(&text);
    let span = table.span();
    let value = toml::Spanned::new(span, DeValue::Table(table.into_inner()));
    let mut reader = Reader { file: &file, text: &text, problems: &mut problems };
    let read = super::value::json(&value, "", &mut reader);
    match read {
        Some(Value::Object(mut plugin)) if problems.is_empty() => {
            let cwd = plugin.get("cwd").and_then(Value::as_str).unwrap_or(".");
            let cwd = super::resolve::under(folder, cwd);
            plugin.insert("cwd".to_owned(), cwd.display().to_string().into());
            Ok(plugin)
        }
        _ => Err(ConfigError { problems }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Found;
    use crate::operator::Operator;
    use serde_json::json;

    struct World {
        dir: tempfile::TempDir,
    }

    impl World {
        /// A configuration with its state beside it.
        fn new(text: &str) -> World {
            let world = World { dir: tempfile::tempdir().unwrap() };
            world.write("plugd.toml", &format!("[daemon]\nstate_dir = \"state\"\n{text}"));
            world
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn state(&self) -> PathBuf {
            fs::canonicalize(self.dir.path()).unwrap().join("state")
        }

        fn read(&self) -> Result<Config, ConfigError> {
            let file = self.dir.path().join("plugd.toml");
            Config::open(
                &Found { file: Some(file.clone()), searched: vec![file] },
                &Environment::of_process(),
            )
        }

        fn compose(&self, name: &str, plugin: Value) -> Result<(String, PluginConfig), String> {
            let Value::Object(plugin) = plugin else { panic!("a table") };
            let params = AddParams { name: self::name(name), plugin };
            compose(&self.read().unwrap(), &params, &Environment::of_process())
                .map_err(|error| error.to_string())
        }
    }

    fn name(text: &str) -> PluginName {
        PluginName::new(text).unwrap()
    }

    const CONFIGURED: &str = "[limits]\ntimeout = \"7s\"\n[plugins.a]\ncommand = [\"sh\"]\nenabled = false\n";

    #[test]
    fn what_was_added_is_there_at_the_next_start_as_it_was_added() {
        let world = World::new(CONFIGURED);
        let said = json!({
            "command": ["./b.sh", "-v"], "cwd": "/opt/b", "env": {"A": "x\u{7f}\n\"'", "B": false}, "priority": -1,
            "restart": {"policy": "never"}, "config": {"list": [1, {"x": 2.5}], "deep": {"s": "天"}, "first": true},
        });
        let (text, plugin) = world.compose("b", said.clone()).unwrap();
        assert_eq!(plugin.limits.timeout, Some(std::time::Duration::from_secs(7)), "the file's own default");
        assert_eq!((&plugin.cwd, &plugin.config), (&PathBuf::from("/opt/b"), &said["config"]));
        keep(&world.state(), &name("b"), &text).unwrap();
        let read = world.read().unwrap().plugins.remove(&name("b")).unwrap();
        assert_eq!(read, plugin);
        let file = world.state().join("added/b.toml").display().to_string();
        assert_eq!(read.source, Source::Added { file });
        assert!(forget(&world.state(), &name("b")).unwrap());
        assert!(!forget(&world.state(), &name("b")).unwrap());
        assert_eq!(world.read().unwrap().plugins.len(), 1);
    }

    #[test]
    fn what_is_wrong_with_it_is_said_as_of_the_file() {
        let world = World::new("");
        let cases = [
            (
                json!({"command": ["x"], "timout": "5s"}),
                "unknown key plugins.b.timout: did you mean timeout?",
            ),
            (json!({"command": []}), "plugins.b.command: the command is empty: expected a program"),
            (json!({"priority": 3}), "plugins.b.command is missing: add command = [\"PROGRAM\"]"),
            (
                json!({"command": ["./x"]}),
                "plugins.b.command: a relative path needs a cwd that it starts from",
            ),
            (json!({"command": ["x"], "cwd": "here"}), "plugins.b.cwd: expected an absolute path"),
            (json!({"command": ["x"], "env": {"A": null}}), "plugins.b.env.A: null means nothing here"),
            (
                json!({"command": ["x"], "manifest": {}}),
                "plugins.b.manifest: the manifest has no \"version\"",
            ),
            (json!({"command": ["x"], "config": {"n": 18446744073709551615u64}}), "plugins.b: "),
        ];
        for (said, expected) in cases {
            let error = world.compose("b", said.clone()).unwrap_err();
            assert!(error.starts_with(expected) && error.lines().count() == 1, "{said}: {error}");
        }
    }

    #[test]
    fn a_program_runs_in_its_own_folder_unless_it_says_otherwise() {
        let world = World::new("");
        let folder = |said: Value| world.compose("b", said).unwrap().1.cwd;
        assert_eq!(folder(json!({"command": ["/opt/b/run"]})), Path::new("/opt/b"));
        assert_eq!(folder(json!({"command": ["sh"]})), fs::canonicalize(world.dir.path()).unwrap());
    }

    #[test]
    fn a_name_that_is_configured_too_names_both_places_and_the_way_out() {
        let world = World::new(CONFIGURED);
        world.write("state/added/a.toml", "command = [\"sh\"]\n");
        let error = world.read().unwrap_err().to_string();
        assert!(error.contains("plugd.toml: line 5: the plugin a is there 2 times: "), "{error}");
        assert!(
            error.contains("/state/added/a.toml: rename or remove all but one; `plugd remove a`"),
            "{error}"
        );
        let file = world.dir.path().join("plugd.toml");
        assert!(Config::forget_added(&file, &name("a")).unwrap());
        assert!(world.read().is_ok());
    }

    #[test]
    fn where_the_daemon_is_can_be_read_of_a_file_that_breaks_off() {
        let world = World::new("");
        let file = world.dir.path().join("plugd.toml");
        let state = world.state();
        for broken in ["[plugins.a", "[plugins.a]\ncommand = [\"sh\"", "[plugins.a]\ncommand = 3\nx = = 1\n"]
        {
            world.write("plugd.toml", &format!("[daemon]\nstate_dir = \"state\"\nsocket = \"s\"\n{broken}"));
            assert!(world.read().is_err(), "{broken}");
            assert_eq!(Config::socket_of(&file), Some(state.with_file_name("s")), "{broken}");
            keep(&state, &name("b"), "command = [\"sh\"]\n").unwrap();
            assert!(Config::forget_added(&file, &name("b")).unwrap(), "{broken}");
        }
    }

    #[test]
    fn a_broken_file_of_ours_keeps_nobody_from_starting() {
        let world = World::new(CONFIGURED);
        world.write("state/added/b.toml", "command = [\"sh\"");
        world.write("state/added/c.toml", "command = [\"sh\"]\ntimout = 1\n");
        world.write("state/added/.d.toml.7", "half");
        let config = world.read().unwrap();
        assert_eq!(config.plugins.len(), 1);
        let skipped: Vec<&str> = config.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
        assert_eq!(skipped.len(), 2, "{skipped:?}");
        assert!(
            skipped[1].starts_with("unknown key timout") && skipped[1].contains("plugd remove c"),
            "{skipped:?}"
        );
    }

    #[test]
    fn an_operator_overrules_the_files_until_told_otherwise() {
        let world = World::new(&format!("{CONFIGURED}[plugins.c]\ncommand = [\"sh\"]\n"));
        let operator = Operator {
            removed: [name("c"), name("gone")].into(),
            enabled: [(name("a"), true), (name("gone"), false)].into(),
            stopped: [name("a")].into(),
            unreadable: None,
        };
        operator.save(&world.state()).unwrap();
        let mut config = world.read().unwrap();
        assert_eq!(config.plugins.keys().collect::<Vec<_>>(), [&name("a")]);
        assert_eq!(config.removed.keys().collect::<Vec<_>>(), [&name("c")]);
        let a = &config.plugins[&name("a")];
        assert!(a.enabled && !a.enabled_as_written);
        config.obey(Operator::default());
        assert_eq!((config.plugins.len(), config.removed.len()), (2, 0));
        assert!(!config.plugins[&name("a")].enabled);
        let parsed =
            Config::parse(CONFIGURED, &world.dir.path().join("plugd.toml"), &Environment::of_process());
        assert!(!parsed.unwrap().plugins[&name("a")].enabled, "a text by itself knows no operator");
    }

    #[test]
    fn what_others_changed_is_learnt_and_what_could_not_be_written_stands() {
        let world = World::new(&format!("{CONFIGURED}[plugins.c]\ncommand = [\"sh\"]\n"));
        let (text, _) = world.compose("b", json!({"command": ["/bin/sh"]})).unwrap();
        keep(&world.state(), &name("b"), &text).unwrap();
        let mut running = world.read().unwrap();
        assert!(running.refreshed().is_none(), "nobody changed anything");
        // Decided here, with a state folder that took nothing.
        running.obey(Operator { stopped: [name("a")].into(), ..Operator::default() });
        assert!(running.refreshed().is_none());

        forget(&world.state(), &name("b")).unwrap();
        keep(&world.state(), &name("d"), &text).unwrap();
        keep(&world.state(), &name("a"), &text).unwrap();
        let learnt = running.refreshed().unwrap();
        assert_eq!(learnt.plugins.keys().collect::<Vec<_>>(), [&name("a"), &name("c"), &name("d")]);
        assert!(!learnt.plugins[&name("a")].is_added(), "a name that is configured stays what it is");
        assert_eq!(learnt.operator, running.operator);

        let elsewhere = Operator { removed: [name("c")].into(), ..Operator::default() };
        elsewhere.save(&world.state()).unwrap();
        let learnt = learnt.refreshed().unwrap();
        assert_eq!(learnt.removed.keys().collect::<Vec<_>>(), [&name("c")]);
        assert_eq!(learnt.operator, elsewhere, "what was written last counts");
        world.write("state/operator.json", "{");
        assert!(learnt.refreshed().is_none(), "what cannot be read changes nothing");
    }

    #[test]
    fn a_running_engine_keeps_its_places_and_no_plugin_goes_by_an_empty_file() {
        let world = World::new(CONFIGURED);
        let file = world.dir.path().join("plugd.toml");
        let running = world.read().unwrap();
        world.write(
            "plugd.toml",
            "[daemon]\nstate_dir = \"other\"\nsocket = \"s\"\n[plugins.b]\ncommand = [\"sh\"]\n",
        );
        let again = running.again(&file).unwrap();
        assert_eq!((&again.state_dir, &again.socket), (&running.state_dir, &running.socket));
        assert_eq!(again.plugins.keys().collect::<Vec<_>>(), [&name("b")]);
        world.write("plugd.toml", " \n\n");
        let error = running.again(&file).unwrap_err().to_string();
        assert!(error.ends_with("the file is empty: what runs goes on as before"), "{error}");
    }
}
