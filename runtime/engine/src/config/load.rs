//! From files to the configuration: read, scan, merge, fill in what nobody said.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plugd_contract::nearest;
use plugd_protocol::PluginName;
use plugd_protocol::control::{Skipped, Source};
use plugd_store::Retention;
use toml::de::{DeTable, DeValue};

use super::added::{self, Added};
use super::callers;
use super::error::{ConfigError, ConfigProblem};
use super::file::{ConfigFile, PluginFile, RecordFile};
use super::find::{Found, Places, SOCKET_PATH_MAX};
use super::form::{At, Layer, Read, Reader};
use super::resolve::{Defaults, Entry, under};
use super::scan::{self, Broken, Scanned, reason};
use super::{Config, Environment, PluginConfig};
use crate::operator::Operator;

/// What is read along with the file.
#[derive(Clone, Copy)]
enum Along<'a> {
    /// Nothing: this text says all there is.
    Nothing,
    /// What an operator changed, from the state folder that the file names.
    Operator,
    /// The same for an engine that runs: its places and its operator's decisions stand.
    Running(&'a Config),
}

/// What is kept of calls; nothing where that is switched off.
fn record(file: RecordFile) -> Option<Retention> {
    let default = Retention::default();
    let keep = Retention {
        age: file.keep_for.map_or(default.age, |period| period.0),
        bytes: file.keep_size.map_or(default.bytes, |size| size.0),
    };
    file.enabled.unwrap_or(true).then_some(keep)
}

pub(super) fn open(found: &Found, environment: &Environment) -> Result<Config, ConfigError> {
    let mut config = match &found.file {
        None => {
            let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
            assemble(ConfigFile::default(), None, folder, environment, Along::Operator, Vec::new())?
        }
        Some(path) => parse_along(&text_of(path)?, path, environment, Along::Operator)?,
    };
    config.searched.clone_from(&found.searched);
    Ok(config)
}

/// Reads the file of a running engine again.
///
/// A file with nothing in it is one that is being written: it takes no plugin away.
pub(super) fn again(running: &Config, path: &Path, environment: &Environment) -> Result<Config, ConfigError> {
    let text = text_of(path)?;
    let of_files = |plugin: &PluginConfig| !plugin.is_added();
    if text.trim().is_empty() && running.plugins.values().any(of_files) {
        let message = "the file is empty: what runs goes on as before";
        return Err(ConfigError { problems: vec![ConfigProblem::of_file(path, message)] });
    }
    let mut config = parse_along(&text, path, environment, Along::Running(running))?;
    config.searched.clone_from(&running.searched);
    config.warn_of_broken();
    Ok(config)
}

/// What is configured with what others changed in the state folder since; `None` where nobody did.
///
/// What stands there as it was left is not read again: it may differ from what is in use, where it
/// could not be written.
pub(super) fn refreshed(running: &Config, environment: &Environment) -> Option<Config> {
    let mut config = running.clone();
    let is_there = |name: &PluginName| added::file_of(&running.state_dir, name).exists();
    config.plugins.retain(|name, plugin| !plugin.is_added() || is_there(name));
    for Added { name, entry } in added::read_all(&running.state_dir, &running.dir).plugins {
        let is_known = config.plugins.contains_key(&name) || config.removed.contains_key(&name);
        if !is_known && let Ok(plugin) = entry.resolve(&name, &config.defaults, environment) {
            config.plugins.insert(name, plugin);
        }
    }
    let kept = Operator::read(&running.state_dir);
    let operator = match kept == running.kept || kept.unreadable.is_some() {
        true => running.operator.clone(),
        false => kept.clone(),
    };
    config.kept = kept;
    config.obey(operator);
    let differs = config.plugins != running.plugins || config.operator != running.operator;
    differs.then_some(config)
}

fn text_of(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|error| ConfigError {
        problems: vec![ConfigProblem::of_file(path, format!("cannot be read: {}", reason(&error)))],
    })
}

/// Where a daemon of this file listens and keeps its state, also while the rest of the file is wrong.
pub(super) fn places(path: &Path, environment: &Environment) -> Option<(PathBuf, PathBuf)> {
    let path = fs::canonicalize(path).ok()?;
    let text = fs::read_to_string(&path).ok()?;
    // What stands before a mistake is read all the same.
    let (table, _) = DeTable::parse_recoverable(&text);
    let mut reader = Reader { file: &path, text: &text, problems: &mut Vec::new() };
    let value = toml::Spanned::new(table.span(), DeValue::Table(table.into_inner()));
    let daemon = ConfigFile::read(&value, "", &mut reader)?.daemon.unwrap_or_default();
    let dir = path.parent()?;
    let places = Places::of(Some(&path), environment);
    let state_dir = daemon.state_dir.map(|written| dir.join(written)).or(places.state_dir.clone())?;
    let socket = daemon.socket.map_or_else(|| places.socket(&state_dir), |written| dir.join(written));
    Some((socket, state_dir))
}

pub(super) fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Config, ConfigError> {
    parse_along(text, path, environment, Along::Nothing)
}

fn parse_along(
    text: &str,
    path: &Path,
    environment: &Environment,
    along: Along<'_>,
) -> Result<Config, ConfigError> {
    let mut problems = Vec::new();
    let file: Option<ConfigFile> = read_form(text, path, &mut problems);
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = full.parent().unwrap_or(Path::new("/"));
    // One file has one socket, by whatever links it is reached.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    match file {
        Some(file) => assemble(file, Some(path), folder, environment, along, problems),
        None => Err(ConfigError { problems }),
    }
}

/// Reads a form from a whole file; `None` where the file is not TOML at all.
pub(super) fn read_form<T: Read>(text: &str, path: &Path, problems: &mut Vec<ConfigProblem>) -> Option<T> {
    read_form_at(text, path, "", problems)
}

/// The same for a file that stands for the table of this key.
pub(super) fn read_form_at<T: Read>(
    text: &str,
    path: &Path,
    key: &str,
    problems: &mut Vec<ConfigProblem>,
) -> Option<T> {
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
    T::read(&value, key, &mut reader)
}

fn assemble(
    file: ConfigFile,
    path: Option<&Path>,
    dir: PathBuf,
    environment: &Environment,
    along: Along<'_>,
    mut problems: Vec<ConfigProblem>,
) -> Result<Config, ConfigError> {
    let daemon = file.daemon.unwrap_or_default();
    let defaults = Defaults(file.limits.unwrap_or_default());
    let full_path = path.and_then(Path::file_name).map(|name| dir.join(name));
    let places = Places::of(full_path.as_deref(), environment);
    let state_dir = match along {
        Along::Running(running) => Some(running.state_dir.clone()),
        Along::Nothing | Along::Operator => {
            daemon.state_dir.map(|written| under(&dir, written)).or(places.state_dir.clone())
        }
    };
    let state_dir = state_dir.unwrap_or_else(|| {
        let message = "neither HOME nor XDG_STATE_HOME is set: set state_dir under [daemon]";
        problems.push(problem(path, None, "daemon.state_dir", message));
        PathBuf::new()
    });
    let mut socket = daemon.socket.map_or_else(|| places.socket(&state_dir), |written| under(&dir, written));
    check_socket(&socket, path, &mut problems);

    let scanned = file.scan.and_then(|scan| scan.dirs).unwrap_or_default();
    let scan_dirs: Vec<PathBuf> = scanned.iter().map(|written| under(&dir, written)).collect();
    let mut findings = scan::scan(&scan_dirs);
    let mut entries = merge(file.plugins.unwrap_or_default(), &mut findings, path, &dir, &mut problems);
    if let Along::Running(running) = along {
        socket.clone_from(&running.socket);
    }
    let (operator, kept, mut added) = of_operator(along, &state_dir, &dir);
    findings.skipped.append(&mut added.skipped);
    merge_added(&mut entries, added.plugins, path, &mut findings.broken, &mut problems);

    let plugins = resolve_all(entries, &defaults, environment, &mut findings.broken, &mut problems);
    let broken = passed_over(&mut findings, along, &mut problems);
    if !problems.is_empty() {
        problems.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        return Err(ConfigError { problems });
    }
    let mut config = Config {
        file: full_path,
        searched: Vec::new(),
        dir,
        socket,
        state_dir,
        watch: daemon.watch.unwrap_or(false),
        parent_death_signal: daemon.parent_death_signal.unwrap_or(true),
        cgroups: daemon.cgroups.unwrap_or(true),
        record: record(file.record.unwrap_or_default()),
        scan_dirs,
        skipped: findings.skipped,
        broken,
        limits: defaults.limits(),
        plugins,
        callers: callers::profiles(file.callers.unwrap_or_default()),
        removed: BTreeMap::new(),
        operator: Operator::default(),
        kept,
        files: None,
        defaults,
    };
    config.obey(operator);
    Ok(config)
}

/// What an operator decided, what of that is kept, and the plugins that were added.
fn of_operator(along: Along<'_>, state_dir: &Path, dir: &Path) -> (Operator, Operator, added::Findings) {
    match along {
        Along::Nothing => (Operator::default(), Operator::default(), added::Findings::default()),
        Along::Operator => {
            let operator = Operator::read(state_dir);
            (operator.clone(), operator, added::read_all(state_dir, dir))
        }
        Along::Running(running) => {
            (running.operator.clone(), running.kept.clone(), added::read_all(state_dir, dir))
        }
    }
}

fn resolve_all(
    entries: BTreeMap<PluginName, Entry>,
    defaults: &Defaults,
    environment: &Environment,
    broken: &mut Vec<Broken>,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<PluginName, PluginConfig> {
    let mut plugins = BTreeMap::new();
    for (name, entry) in entries {
        match entry.resolve(&name, defaults, environment) {
            Ok(plugin) => drop(plugins.insert(name, plugin)),
            Err((key, message)) => {
                let key = format!("plugins.{name}.{key}");
                let message = format!("{key}: {message}");
                let found = problem(Some(&entry.file), entry.line, &key, &message);
                match matches!(entry.source, Source::Scan { .. }) {
                    true => {
                        let (plugin, path) = (Some(name), entry.file);
                        broken.push(Broken { plugin, path, problems: vec![found] });
                    }
                    false => problems.push(found),
                }
            }
        }
    }
    plugins
}

/// Sorts what a scan found broken: passed over, unless plugins run that would go by it.
fn passed_over(
    findings: &mut scan::Findings,
    along: Along<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<Broken> {
    let mut passed_over = Vec::new();
    for mut broken in findings.broken.drain(..) {
        let is_in_use = match along {
            Along::Running(running) => broken.concerns(running),
            Along::Nothing | Along::Operator => false,
        };
        if is_in_use {
            problems.append(&mut broken.problems);
        } else {
            findings.skipped.push(broken.skipped());
            passed_over.push(broken);
        }
    }
    passed_over
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

/// Puts the plugins of the file and of the folders together; a name is offered once.
fn merge(
    written: BTreeMap<PluginName, At<PluginFile>>,
    findings: &mut scan::Findings,
    path: Option<&Path>,
    dir: &Path,
    problems: &mut Vec<ConfigProblem>,
) -> BTreeMap<PluginName, Entry> {
    let mut offered = offered_once(&written, findings, path);
    let mut entries = BTreeMap::new();
    let file = path.map(Path::to_owned).unwrap_or_default();
    for (name, At { line, value: form }) in written {
        let entry = match offered.remove(&name) {
            Some(scanned) => over_scanned(form, scanned, dir),
            None if form.command.is_none() => {
                let names = offered.keys().map(PluginName::as_str);
                no_command(&name, line, names, path, findings, problems);
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
    for (name, scanned) in offered {
        let dir = scanned.folder.clone();
        entries.insert(name, over_scanned(PluginFile::default(), scanned, &dir));
    }
    entries
}

/// The scanned plugins by name. Of those with the name of another none is taken up, and all else runs.
fn offered_once(
    written: &BTreeMap<PluginName, At<PluginFile>>,
    findings: &mut scan::Findings,
    path: Option<&Path>,
) -> BTreeMap<PluginName, Scanned> {
    let mut offered: BTreeMap<PluginName, Vec<Scanned>> = BTreeMap::new();
    for plugin in findings.plugins.drain(..) {
        offered.entry(plugin.name.clone()).or_default().push(plugin);
    }
    let mut once = BTreeMap::new();
    for (name, mut plugins) in offered {
        plugins.sort_by(|one, other| one.path.cmp(&other.path));
        let own = written.get(&name).filter(|own| own.value.command.is_some());
        let mut places: Vec<String> =
            plugins.iter().map(|plugin| plugin.path.display().to_string()).collect();
        places.extend(own.and(path).map(|path| path.display().to_string()));
        if plugins.len() + usize::from(own.is_some()) > 1 {
            let used = match own {
                Some(_) => "until then the one of the configuration file is used",
                None => "until then none of them is used",
            };
            let problem = duplicate(&name, &places, used, path, own.map(|own| own.line));
            let path = plugins.swap_remove(0).path;
            findings.broken.push(Broken { plugin: Some(name), path, problems: vec![problem] });
        } else if let Some(plugin) = plugins.pop() {
            once.insert(name, plugin);
        }
    }
    once
}

/// Takes note of a table without a command whose plugin was not found in a scanned folder.
fn no_command<'a>(
    name: &PluginName,
    line: usize,
    offered: impl Iterator<Item = &'a str>,
    path: Option<&Path>,
    findings: &mut scan::Findings,
    problems: &mut Vec<ConfigProblem>,
) {
    let key = format!("plugins.{name}.command");
    // A command that is wrong, or a folder whose own file is, has been reported as that.
    let is_broken = |broken: &Broken| broken.plugin.as_ref() == Some(name);
    if problems.iter().any(|problem| problem.key == key) || findings.broken.iter().any(is_broken) {
        return;
    }
    let passed_over = findings.skipped.iter().find(|skipped| {
        let stem = Path::new(&skipped.path).file_stem().and_then(|stem| stem.to_str());
        stem == Some(name.as_str())
    });
    let why = match passed_over {
        Some(Skipped { path, reason }) => format!("{path} was passed over: {reason}"),
        None => "no scanned folder has a plugin of that name: add command = [\"PROGRAM\"]".to_owned(),
    };
    let suggestion = nearest(name.as_str(), offered).map(str::to_owned).filter(|_| passed_over.is_none());
    let message = format!("{key} is missing, and {why}");
    let missing = ConfigProblem { suggestion, ..problem(path, Some(line), &key, &message) };
    // It may lie in the folder that cannot be looked into.
    let may_be_there = passed_over.is_some() || findings.broken.iter().any(|broken| broken.plugin.is_none());
    match may_be_there {
        true => {
            let (plugin, path) = (Some(name.clone()), path.map(Path::to_owned).unwrap_or_default());
            findings.broken.push(Broken { plugin, path, problems: vec![missing] });
        }
        false => problems.push(missing),
    }
}

/// Puts the plugins that were added beside those of the files.
fn merge_added(
    entries: &mut BTreeMap<PluginName, Entry>,
    added: Vec<Added>,
    path: Option<&Path>,
    broken: &mut Vec<Broken>,
    problems: &mut Vec<ConfigProblem>,
) {
    for Added { name, entry } in added {
        let Some(own) = entries.get(&name) else {
            entries.insert(name, entry);
            continue;
        };
        let is_scanned = matches!(own.source, Source::Scan { .. });
        let advice = format!("`plugd remove {name}` takes away the one that was added");
        let used = match is_scanned {
            true => format!("{advice}; until then that one is used"),
            false => advice,
        };
        let places = [&own.file, &entry.file].map(|file| file.display().to_string());
        let found = duplicate(&name, &places, &used, path, own.line);
        if is_scanned {
            let path = own.file.clone();
            broken.push(Broken { plugin: Some(name.clone()), path, problems: vec![found] });
            entries.insert(name, entry);
        } else {
            problems.push(found);
        }
    }
}

fn duplicate(
    name: &PluginName,
    places: &[String],
    used: &str,
    path: Option<&Path>,
    line: Option<usize>,
) -> ConfigProblem {
    let key = format!("plugins.{name}");
    let message = format!(
        "the plugin {name} is there {} times: {}: rename or remove all but one; {used}",
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
    let own_file = scanned.path.join(scan::PLUGIN_FILE);
    Entry {
        form: written.over(scanned.form),
        source: Source::Scan { dir: scanned.dir.display().to_string() },
        folder,
        file: if own_file.is_file() { own_file } else { scanned.path },
        line: None,
    }
}
