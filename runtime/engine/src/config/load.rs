//! From files to the configuration: read, scan, merge, fill in what nobody said.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use plugd_contract::nearest;
use plugd_protocol::control::Source;
use plugd_protocol::{Manifest, PluginName};
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, ConfigProblem};
use super::file::{ConfigFile, GlobalLimitsFile, LimitsFile, PluginFile, RestartFile};
use super::find::{Found, Places, SOCKET_PATH_MAX};
use super::form::{At, Layer, Read, Reader};
use super::scan::{Scanned, reason, scan};
use super::{Config, Environment, Limits, OnChange, PluginConfig, RestartMode, RestartPolicy, StartMode};

pub(super) fn open(found: &Found, environment: &Environment) -> Result<Config, ConfigError> {
    let mut config = match &found.file {
        None => {
            let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
            assemble(ConfigFile::default(), None, folder, environment, Vec::new())?
        }
        Some(path) => {
            let text = fs::read_to_string(path).map_err(|error| ConfigError {
                problems: vec![ConfigProblem::of_file(path, format!("cannot be read: {}", reason(&error)))],
            })?;
            parse(&text, path, environment)?
        }
    };
    config.searched.clone_from(&found.searched);
    Ok(config)
}

/// Where a daemon of this file listens, also while the rest of the file is wrong.
pub(super) fn socket(path: &Path, environment: &Environment) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let text = fs::read_to_string(&path).ok()?;
    let daemon = read_form::<ConfigFile>(&text, &path, &mut Vec::new())?.daemon.unwrap_or_default();
    let dir = path.parent()?;
    let places = Places::of(Some(&path), environment);
    let state_dir = daemon.state_dir.map(|written| dir.join(written)).or(places.state_dir.clone());
    daemon.socket.map(|written| dir.join(written)).or_else(|| Some(places.socket(&state_dir?)))
}

pub(super) fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Config, ConfigError> {
    let mut problems = Vec::new();
    let file: Option<ConfigFile> = read_form(text, path, &mut problems);
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = full.parent().unwrap_or(Path::new("/"));
    // One file has one socket, by whatever links it is reached.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    match file {
        Some(file) => assemble(file, Some(path), folder, environment, problems),
        None => Err(ConfigError { problems }),
    }
}

/// Reads a form from a whole file; `None` where the file is not TOML at all.
pub(super) fn read_form<T: Read>(text: &str, path: &Path, problems: &mut Vec<ConfigProblem>) -> Option<T> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { file: path, text, problems };
    if !errors.is_empty() {
        for error in errors {
            let line = error.span().map(|span| reader.line(span.start));
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            reader.problems.push(ConfigProblem { line, ..ConfigProblem::of_file(path, message) });
        }
        return None;
    }
    let span = table.span();
    let value = toml::Spanned::new(span, DeValue::Table(table.into_inner()));
    T::read(&value, "", &mut reader)
}

fn assemble(
    file: ConfigFile,
    path: Option<&Path>,
    dir: PathBuf,
    environment: &Environment,
    mut problems: Vec<ConfigProblem>,
) -> Result<Config, ConfigError> {
    let daemon = file.daemon.unwrap_or_default();
    let global = file.limits.unwrap_or_default();
    let full_path = path.and_then(Path::file_name).map(|name| dir.join(name));
    let places = Places::of(full_path.as_deref(), environment);
    let state_dir = daemon.state_dir.map(|written| under(&dir, written)).or(places.state_dir.clone());
    let state_dir = state_dir.unwrap_or_else(|| {
        let message = "neither HOME nor XDG_STATE_HOME is set: set state_dir under [daemon]";
        problems.push(problem(path, None, "daemon.state_dir", message));
        PathBuf::new()
    });
    let socket = daemon.socket.map_or_else(|| places.socket(&state_dir), |written| under(&dir, written));
    check_socket(&socket, path, &mut problems);

    let scan_dirs: Vec<PathBuf> = file
        .scan
        .and_then(|scan| scan.dirs)
        .unwrap_or_default()
        .iter()
        .map(|written| under(&dir, written))
        .collect();
    let mut findings = scan(&scan_dirs);
    problems.append(&mut findings.problems);
    let entries = merge(file.plugins.unwrap_or_default(), findings.plugins, path, &dir, &mut problems);

    let mut plugins = BTreeMap::new();
    for (name, entry) in entries {
        match entry.resolve(&name, &global, environment) {
            Ok(plugin) => drop(plugins.insert(name, plugin)),
            Err(message) => {
                let key = format!("plugins.{name}.manifest");
                let message = format!("{key}: {message}");
                problems.push(problem(Some(&entry.file), entry.line, &key, &message));
            }
        }
    }
    if !problems.is_empty() {
        problems.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        return Err(ConfigError { problems });
    }
    Ok(Config {
        file: full_path,
        searched: Vec::new(),
        dir,
        socket,
        state_dir,
        watch: daemon.watch.unwrap_or(false),
        scan_dirs,
        skipped: findings.skipped,
        limits: limits(&global.limits, &global),
        plugins,
    })
}

fn problem(file: Option<&Path>, line: Option<usize>, key: &str, message: &str) -> ConfigProblem {
    let (key, message) = (key.to_owned(), message.to_owned());
    ConfigProblem { file: file.map(Path::to_owned), line, key, message, suggestion: None }
}

fn check_socket(socket: &Path, file: Option<&Path>, problems: &mut Vec<ConfigProblem>) {
    let length = socket.as_os_str().len();
    if length > SOCKET_PATH_MAX {
        let message = format!(
            "the control socket's path is {length} bytes long, and a Unix socket's can be at most \
             {SOCKET_PATH_MAX}: set a shorter one with socket under [daemon] ({})",
            socket.display()
        );
        problems.push(problem(file, None, "daemon.socket", &message));
    }
}

/// A plugin with all that was said of it.
struct Entry {
    form: PluginFile,
    source: Source,
    /// The folder it runs in.
    folder: PathBuf,
    /// Where to point when something is wrong with it.
    file: PathBuf,
    line: Option<usize>,
}

/// Puts the plugins of the file and of the folders together; a name is offered once.
fn merge(
    written: BTreeMap<PluginName, At<PluginFile>>,
    scanned: Vec<Scanned>,
    path: Option<&Path>,
    dir: &Path,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<PluginName, Entry> {
    let mut offered: BTreeMap<PluginName, Vec<Scanned>> = BTreeMap::new();
    for plugin in scanned {
        offered.entry(plugin.name.clone()).or_default().push(plugin);
    }
    for (name, plugins) in &mut offered {
        plugins.sort_by(|one, other| one.path.cmp(&other.path));
        let own = written.get(name).filter(|own| own.value.command.is_some());
        if plugins.len() + usize::from(own.is_some()) > 1 {
            let mut places: Vec<String> =
                plugins.iter().map(|plugin| plugin.path.display().to_string()).collect();
            places.extend(own.and(path).map(|path| path.display().to_string()));
            let line = own.map(|own| own.line);
            problems.push(duplicate(name, &places, path, line));
        }
    }
    let mut entries = BTreeMap::new();
    let file = path.map(Path::to_owned).unwrap_or_default();
    for (name, At { line, value: form }) in written {
        let scanned = offered.remove(&name).and_then(|plugins| plugins.into_iter().next());
        let entry = match scanned {
            Some(scanned) => over_scanned(form, scanned, dir),
            None if form.command.is_none() => {
                let key = format!("plugins.{name}.command");
                // A command that is wrong, or a folder whose own file is, has been reported as that.
                if problems.iter().any(|problem| problem.key == key || is_in_folder(problem, &name)) {
                    continue;
                }
                let message = format!(
                    "{key} is missing, and no scanned folder has a plugin of that name: add command = [\"PROGRAM\"]"
                );
                let suggestion =
                    nearest(name.as_str(), offered.keys().map(PluginName::as_str)).map(str::to_owned);
                problems.push(ConfigProblem { suggestion, ..problem(path, Some(line), &key, &message) });
                continue;
            }
            None => {
                let folder = form.cwd.as_ref().map_or_else(|| dir.to_owned(), |cwd| under(dir, cwd));
                let source = Source::Config { file: file.display().to_string() };
                Entry { form, source, folder, file: file.clone(), line: Some(line) }
            }
        };
        entries.insert(name, entry);
    }
    for (name, plugins) in offered {
        entries.extend(plugins.into_iter().next().map(|scanned| {
            let dir = scanned.folder.clone();
            (name, over_scanned(PluginFile::default(), scanned, &dir))
        }));
    }
    entries
}

fn is_in_folder(problem: &ConfigProblem, name: &PluginName) -> bool {
    let folder = problem.file.as_deref().and_then(Path::parent).and_then(Path::file_name);
    problem.file.as_deref().is_some_and(|file| file.ends_with(super::scan::PLUGIN_FILE))
        && folder.is_some_and(|folder| folder == name.as_str())
}

fn duplicate(
    name: &PluginName,
    places: &[String],
    path: Option<&Path>,
    line: Option<usize>,
) -> ConfigProblem {
    let key = format!("plugins.{name}");
    let message = format!(
        "the plugin {name} is there {} times: {}: rename or remove all but one",
        places.len(),
        places.join(" and ")
    );
    problem(path, line, &key, &message)
}

/// What the file says of a scanned plugin, laid over what its own folder says.
fn over_scanned(written: PluginFile, scanned: Scanned, dir: &Path) -> Entry {
    let folder = match (&written.cwd, &scanned.form.cwd) {
        (Some(cwd), _) => under(dir, cwd),
        (None, Some(cwd)) => under(&scanned.folder, cwd),
        (None, None) => scanned.folder.clone(),
    };
    let own_file = scanned.path.join(super::scan::PLUGIN_FILE);
    Entry {
        form: written.over(scanned.form),
        source: Source::Scan { dir: scanned.dir.display().to_string() },
        folder,
        file: if own_file.is_file() { own_file } else { scanned.path },
        line: None,
    }
}

impl Entry {
    /// The plugin as the program uses it, or what is wrong with its manifest.
    fn resolve(
        &self,
        name: &PluginName,
        global: &GlobalLimitsFile,
        environment: &Environment,
    ) -> Result<PluginConfig, String> {
        let form = self.form.clone();
        let manifest = match form.manifest {
            Some(table) => Some(manifest(name, table.0)?),
            None => None,
        };
        let chosen = form.limits.over(global.limits.clone());
        let mut plugin = PluginConfig {
            name: name.clone(),
            source: self.source.clone(),
            command: form.command.map(|words| words.0).unwrap_or_default(),
            program: PathBuf::new(),
            cwd: self.folder.clone(),
            start: form.start.unwrap_or(StartMode::Lazy),
            enabled: form.enabled.unwrap_or(true),
            priority: form.priority,
            requires: form
                .requires
                .unwrap_or_default()
                .into_iter()
                .map(|(name, need)| (name, need.0))
                .collect(),
            env: form.env.map(|variables| variables.0).unwrap_or_default(),
            pass_env: form.pass_env.unwrap_or_default(),
            concurrency: form.concurrency.map(|count| count.0),
            restart: restart(&form.restart.unwrap_or_default().0),
            limits: limits(&chosen, global),
            idle_timeout: chosen.idle_timeout.and_then(|period| period.0),
            on_change: form.on_change.unwrap_or(OnChange::Replace),
            strict: form.strict.unwrap_or(false),
            config: form.config.map(|table| table.0).unwrap_or_default().into(),
            manifest,
        };
        plugin.program = program(&plugin, environment);
        Ok(plugin)
    }
}

/// A declared manifest, completed with what goes without saying.
fn manifest(
    name: &PluginName,
    mut declared: serde_json::Map<String, serde_json::Value>,
) -> Result<serde_json::Value, String> {
    declared.entry("protocol").or_insert_with(|| plugd_protocol::PROTOCOL_VERSION.into());
    declared.entry("name").or_insert_with(|| name.as_str().into());
    let value = serde_json::Value::Object(declared);
    Manifest::parse(&value.to_string()).map_err(|error| error.to_string())?;
    Ok(value)
}

/// The first word of a command: in the plugin's folder if it has a slash, else on its PATH.
fn program(plugin: &PluginConfig, host: &Environment) -> PathBuf {
    let Some(word) = plugin.command.first() else { return PathBuf::new() };
    if word.contains('/') {
        return under(&plugin.cwd, word);
    }
    let variables = plugin.environment(host);
    let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
    let candidates = path.unwrap_or_default().split(':').filter(|dir| dir.starts_with('/'));
    candidates
        .map(|dir| Path::new(dir).join(word))
        .find(|candidate| is_executable(candidate))
        .unwrap_or_else(|| PathBuf::from(word))
}

/// A path as written, from a folder on; a `.` in it says nothing and is left out.
fn under(dir: &Path, written: impl AsRef<Path>) -> PathBuf {
    dir.join(written).components().collect()
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn limits(chosen: &LimitsFile, global: &GlobalLimitsFile) -> Limits {
    let default = Limits::default();
    let frame_limit = chosen.frame_limit.and_then(|size| usize::try_from(size.0).ok());
    Limits {
        describe_timeout: chosen.describe_timeout.map_or(default.describe_timeout, |period| period.0),
        init_timeout: chosen.init_timeout.map_or(default.init_timeout, |period| period.0),
        timeout: chosen.timeout.map(|time| time.0),
        stall_timeout: chosen.stall_timeout.map(|period| period.0),
        queue_timeout: chosen.queue_timeout.map_or(default.queue_timeout, |period| period.0),
        queue_length: chosen.queue_length.map_or(default.queue_length, |length| length.0 as usize),
        cancel_grace: chosen.cancel_grace.map_or(default.cancel_grace, |period| period.0),
        drain_timeout: chosen.drain_timeout.map_or(default.drain_timeout, |period| period.0),
        shutdown_timeout: chosen.shutdown_timeout.map_or(default.shutdown_timeout, |period| period.0),
        term_timeout: chosen.term_timeout.map_or(default.term_timeout, |period| period.0),
        kill_timeout: chosen.kill_timeout.map_or(default.kill_timeout, |period| period.0),
        frame_limit: frame_limit.unwrap_or(default.frame_limit),
        log_size: chosen.log_size.map_or(default.log_size, |size| size.0),
        token_ttl: chosen.token_ttl.map_or(default.token_ttl, |period| period.0),
        ping_interval: chosen.ping_interval.map_or(default.ping_interval, |period| period.0),
        ping_misses: chosen.ping_misses.map_or(default.ping_misses, |count| count.0),
        call_depth: global.call_depth.map_or(default.call_depth, |count| count.0),
    }
}

fn restart(chosen: &RestartFile) -> RestartPolicy {
    let default = RestartPolicy::default();
    RestartPolicy {
        mode: chosen.policy.unwrap_or(RestartMode::OnFailure),
        backoff: chosen.backoff.map_or(default.backoff, |period| period.0),
        backoff_cap: chosen.backoff_cap.map_or(default.backoff_cap, |period| period.0),
        window: chosen.window.map_or(default.window, |period| period.0),
        max: chosen.max.unwrap_or(default.max),
        stable_after: chosen.stable_after.map_or(default.stable_after, |period| period.0),
        reset_after: chosen.reset_after.map_or(default.reset_after, |period| period.0),
        probe_interval: chosen.probe_interval.map_or(default.probe_interval, |period| period.0),
        jitter: chosen.jitter.map_or(default.jitter, |share| share.0),
    }
}
