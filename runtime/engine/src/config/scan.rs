//! Folders whose plugins are taken up: what is found there, and what is passed over and why.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use plugd_protocol::PluginName;
use plugd_protocol::control::{Skipped, Source};
use plugd_supervisor::driver::is_program;

use super::error::ConfigProblem;
use super::file::PluginFile;
use super::load::read_form;
use super::value::Words;
use super::{Config, OWN_NAME, OWN_NAME_TAKEN, PluginConfig};

/// The file that makes a folder a plugin.
pub(super) const PLUGIN_FILE: &str = "plugin.toml";

/// What editors, people and package managers leave beside a file, and its copy keeps its mode.
const BACKUP_ENDINGS: &[&str] = &[
    "~",
    "#",
    ".swp",
    ".swo",
    ".swx",
    ".bak",
    ".backup",
    ".old",
    ".orig",
    ".save",
    ".sav",
    ".rej",
    ".tmp",
    ".temp",
    ".part",
    "___jb_tmp___",
    "___jb_old___",
    ".dpkg-old",
    ".dpkg-new",
    ".dpkg-dist",
    ".rpmnew",
    ".rpmsave",
];

/// Vim writes a file of this name to find out whether it may.
const VIM_TRIES: &str = "4913";

/// A plugin found in a folder.
pub(super) struct Scanned {
    pub(super) name: PluginName,
    /// The folder or the executable.
    pub(super) path: PathBuf,
    /// The scanned folder it was found in.
    pub(super) dir: PathBuf,
    /// The folder it runs in unless it says otherwise.
    pub(super) folder: PathBuf,
    pub(super) form: PluginFile,
}

/// What a scan of all folders gave.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) plugins: Vec<Scanned>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) broken: Vec<Broken>,
}

/// What was found and cannot be used; that keeps nothing else from running.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    /// The plugin it would be; `None` for a scanned folder that cannot be read.
    pub(crate) plugin: Option<PluginName>,
    /// Its file, or that folder.
    pub(super) path: PathBuf,
    /// What is wrong with it; never empty.
    pub(crate) problems: Vec<ConfigProblem>,
}

/// Why an entry is no plugin: passed over, or broken.
enum NoPlugin {
    Skipped(String),
    Broken(Broken),
}

/// Scans folders in the order given; a folder named twice counts once.
pub(super) fn scan(dirs: &[PathBuf]) -> Findings {
    let mut findings = Findings::default();
    let mut seen = BTreeSet::new();
    for dir in dirs {
        if !seen.insert(fs::canonicalize(dir).unwrap_or_else(|_| dir.clone())) {
            continue;
        }
        match names_in(dir) {
            Ok(paths) => paths.into_iter().for_each(|path| findings.entry(dir, path)),
            Err(error) => {
                let message = format!("cannot be scanned: {}", reason(&error));
                let key = "scan.dirs".to_owned();
                let problems = vec![ConfigProblem { key, ..ConfigProblem::of_file(dir, message) }];
                findings.broken.push(Broken { plugin: None, path: dir.clone(), problems });
            }
        }
    }
    findings
}

/// The entries of a folder by name, for the order on a disk means nothing.
fn names_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

impl Findings {
    fn entry(&mut self, dir: &Path, path: PathBuf) {
        let found = plugin_at(&path);
        match found {
            Ok((name, folder, form)) => {
                let dir = dir.to_owned();
                self.plugins.push(Scanned { name, path, dir, folder, form });
            }
            Err(NoPlugin::Skipped(reason)) => {
                self.skipped.push(Skipped { path: path.display().to_string(), reason });
            }
            Err(NoPlugin::Broken(broken)) => self.broken.push(broken),
        }
    }
}

impl Broken {
    /// Whether plugins run that are to go on as they were, and cannot be told from this any more.
    pub(super) fn concerns(&self, running: &Config) -> bool {
        let concerned = |plugin: &PluginConfig| match (&plugin.source, &self.plugin) {
            (Source::Scan { dir }, None) => self.path == Path::new(dir),
            (source, Some(name)) => matches!(source, Source::Scan { .. }) && plugin.name == *name,
            (_, None) => false,
        };
        running.plugins.values().any(concerned)
    }

    /// How a listing of what was passed over has it.
    pub(super) fn skipped(&self) -> Skipped {
        let unplaced = |problem: &ConfigProblem| ConfigProblem { file: None, ..problem.clone() }.to_string();
        let reasons: Vec<String> = self.problems.iter().map(unplaced).collect();
        Skipped { path: self.path.display().to_string(), reason: reasons.join("; ") }
    }
}

fn plugin_at(path: &Path) -> Result<(PluginName, PathBuf, PluginFile), NoPlugin> {
    let skipped = |reason: &str| NoPlugin::Skipped(reason.to_owned());
    let file_name =
        path.file_name().and_then(|name| name.to_str()).ok_or_else(|| skipped("its name is not UTF-8"))?;
    if let Some(reason) = passed_over(file_name) {
        return Err(skipped(reason));
    }
    let metadata = fs::metadata(path)
        .map_err(|error| NoPlugin::Skipped(format!("it cannot be read: {}", reason(&error))))?;
    if metadata.is_dir() {
        let file = path.join(PLUGIN_FILE);
        if !file.is_file() {
            return Err(skipped("the folder has no plugin.toml"));
        }
        let name = name_of(file_name)?;
        let form = match folder_form(&file) {
            Ok(form) => form,
            Err(problems) => {
                return Err(NoPlugin::Broken(Broken { plugin: Some(name), path: file, problems }));
            }
        };
        return Ok((name, path.to_owned(), form));
    }
    if !metadata.is_file() {
        return Err(skipped("it is neither a file nor a folder"));
    }
    if !is_executable(&metadata) {
        return Err(skipped(match is_program(path) {
            true => "it is not executable: chmod +x makes it a plugin",
            false => "it is no program",
        }));
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(file_name);
    let name = name_of(stem)?;
    let command = Some(Words(vec![path.display().to_string()]));
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    Ok((name, folder, PluginFile { command, ..PluginFile::default() }))
}

/// Why an entry of that name is no plugin, whatever it is.
fn passed_over(file_name: &str) -> Option<&'static str> {
    if file_name.starts_with(['_', '.']) {
        return Some("names that begin with _ or . are passed over");
    }
    let is_backup = file_name == VIM_TRIES || BACKUP_ENDINGS.iter().any(|ending| file_name.ends_with(ending));
    is_backup.then_some("it looks like a backup copy")
}

fn is_executable(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// The files of a scanned folder that make plugins, as far as their names and modes tell.
pub(crate) fn files_of(dir: &Path) -> Vec<PathBuf> {
    let of_entry = |path: PathBuf| {
        let file_name = path.file_name().and_then(|name| name.to_str())?;
        let metadata = fs::metadata(&path).ok().filter(|_| passed_over(file_name).is_none())?;
        match metadata.is_dir() {
            true => Some(path.join(PLUGIN_FILE)).filter(|file| file.is_file()),
            false => Some(path).filter(|_| metadata.is_file() && is_executable(&metadata)),
        }
    };
    names_in(dir).unwrap_or_default().into_iter().filter_map(of_entry).collect()
}

fn name_of(text: &str) -> Result<PluginName, NoPlugin> {
    match PluginName::new(text) {
        Ok(name) if name.as_str() == OWN_NAME => Err(NoPlugin::Skipped(OWN_NAME_TAKEN.to_owned())),
        named => named.map_err(|error| NoPlugin::Skipped(error.to_string())),
    }
}

fn folder_form(file: &Path) -> Result<PluginFile, Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let text = fs::read_to_string(file)
        .map_err(|error| vec![ConfigProblem::of_file(file, format!("cannot be read: {}", reason(&error)))])?;
    let form: Option<PluginFile> = read_form(&text, file, &mut problems);
    match form {
        Some(form) if problems.is_empty() && form.command.is_none() => {
            let message = "command is missing: add command = [\"./PROGRAM\"]";
            let key = "command".to_owned();
            Err(vec![ConfigProblem { key, ..ConfigProblem::of_file(file, message) }])
        }
        Some(form) if problems.is_empty() => Ok(form),
        _ => Err(problems),
    }
}

/// What the system says, without its error number.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is nothing of that name".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::NotADirectory => "it is not a folder".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}
