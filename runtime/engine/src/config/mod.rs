//! What a person configured, as the program uses it: read once, at the door.
//!
//! [`Config::find`] looks for the file, [`Config::open`] reads it with every folder it names.
//! All problems are reported at once, each with its file, line, key and the nearest legal key.

mod added;
mod callers;
mod digest;
mod environment;
mod error;
mod file;
mod find;
mod form;
mod least;
mod load;
mod resolve;
mod scan;
mod schema;
mod show;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plugd_protocol::PluginName;
use plugd_protocol::control::{Skipped, Source};
use plugd_protocol::manifest::Requirement;

use crate::operator::{Operator, Turn};
use crate::watch::Snapshot;
use resolve::Defaults;

pub use added::folder_as_written;
pub(crate) use added::{compose, forget as forget_added, keep as keep_added};
pub use callers::Profile;
pub use environment::Environment;
pub use error::{ConfigError, ConfigProblem};
pub use file::{Change as OnChange, Start as StartMode};
pub use find::Found;
pub use plugd_store::Retention;
pub use plugd_supervisor::driver::{CgroupLimits, Rlimits, Sandbox, Stdio};
pub use plugd_supervisor::machine::{RestartMode, RestartPolicy};
pub(crate) use scan::{Broken, files_of};
pub use schema::schema;
pub use value::TIMEOUT_MAX;

/// A call runs this long at most where neither caller, configuration nor manifest says.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// The name under which plugd offers operations of its own.
pub const OWN_NAME: &str = "plugd";

/// Why no plugin can have it.
pub const OWN_NAME_TAKEN: &str = "\"plugd\" is the name of what plugd itself offers; give it another one";

/// Everything that is configured.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file it was read from.
    pub file: Option<PathBuf>,
    /// Where a file was looked for, in order, up to the one found.
    pub searched: Vec<PathBuf>,
    /// The folder its relative paths start from.
    pub dir: PathBuf,
    /// The control socket.
    pub socket: PathBuf,
    /// Where what must outlive the daemon is kept.
    pub state_dir: PathBuf,
    /// Whether changes are applied by themselves.
    pub watch: bool,
    /// Whether the kernel ends a plugin whose daemon was killed.
    pub parent_death_signal: bool,
    /// Whether each run gets a cgroup of its own, where that is allowed.
    pub cgroups: bool,
    /// What is kept of calls; `None` keeps nothing.
    pub record: Option<Retention>,
    /// The folders that were scanned.
    pub scan_dirs: Vec<PathBuf>,
    /// What was found there and passed over.
    pub skipped: Vec<Skipped>,
    /// What is wrong with plugins found there, and with those folders: the others run all the same.
    pub(crate) broken: Vec<Broken>,
    /// The limits of a plugin that sets none of its own.
    pub limits: Limits,
    /// The plugins, by name.
    pub plugins: BTreeMap<PluginName, PluginConfig>,
    /// What each caller may use, by its profile's name.
    pub callers: BTreeMap<String, Arc<Profile>>,
    /// Plugins that are configured and that an operator removed.
    pub removed: BTreeMap<PluginName, PluginConfig>,
    /// What an operator changed, as far as it was read along.
    pub(crate) operator: Operator,
    /// What of that the state folder said last; it differs where it could not be written.
    pub(crate) kept: Operator,
    /// How its files were when it was read, where they are watched.
    pub(crate) files: Option<Arc<Snapshot>>,
    /// The table `[limits]` as written, for plugins that are added later.
    defaults: Defaults,
}

/// One plugin, as configured.
#[derive(Clone, PartialEq)]
pub struct PluginConfig {
    /// Its name; its identity everywhere.
    pub name: PluginName,
    /// Where it came from.
    pub source: Source,
    /// Its program and arguments as written.
    pub command: Vec<String>,
    /// The program to execute; as written where it was not found.
    pub program: PathBuf,
    /// The folder it runs in.
    pub cwd: PathBuf,
    /// When it starts.
    pub start: StartMode,
    /// Whether it may be used.
    pub enabled: bool,
    /// Whether its files say that it may be used; an operator may say otherwise.
    pub enabled_as_written: bool,
    /// Larger starts earlier within a level; the manifest's where `None`.
    pub priority: Option<i32>,
    /// Requirements added to those of the manifest.
    pub requires: BTreeMap<PluginName, Requirement>,
    /// Variables added to its environment; `None` unsets one.
    pub env: BTreeMap<String, Option<String>>,
    /// Variables passed on from plugd's own environment.
    pub pass_env: Vec<String>,
    /// Calls it gets at once; what the manifest declares where `None`.
    pub concurrency: Option<u32>,
    /// What happens when its process ends.
    pub restart: RestartPolicy,
    /// Whether a process is kept ready to take the place of the one that serves, should it fail.
    pub spare: bool,
    /// Its limits and waits.
    pub limits: Limits,
    /// After how long without a call it stops; `None` is never.
    pub idle_timeout: Option<Duration>,
    /// What happens when its configuration or program changes.
    pub on_change: OnChange,
    /// Whether any stray line is a violation.
    pub strict: bool,
    /// What the kernel lets its process have at most.
    pub rlimits: Rlimits,
    /// What its process and everything it starts may have together.
    pub cgroup: CgroupLimits,
    /// What its process, and everything it starts, is kept from.
    pub sandbox: Sandbox,
    /// What its stdin and stdout are.
    pub stdio: Stdio,
    /// SHA-256 of the one manifest that it may declare, in hexadecimal; any where `None`.
    pub manifest_sha256: Option<String>,
    /// Its own configuration, an object; the schema's defaults are not yet in it.
    pub config: serde_json::Value,
    /// Its manifest, where it lies beside the program; `Manifest::parse` has accepted it.
    pub manifest: Option<serde_json::Value>,
    /// What whoever writes it is helped by.
    pub dev: Dev,
}

/// How a plugin is made from its sources, for whoever writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dev {
    /// The program that makes the plugin's own, and its arguments; nothing where it needs no making.
    pub build: Vec<String>,
    /// Names of files and folders that are no sources.
    pub ignore: Vec<String>,
}

/// Limits and waits; what the manifest may also say is `None` where the configuration is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long `describe` may take.
    pub describe_timeout: Duration,
    /// How long `init` may take without a sign of progress.
    pub init_timeout: Duration,
    /// How long a start may take altogether while it reports progress.
    pub start_timeout_max: Duration,
    /// How long a call may run.
    pub timeout: Option<Duration>,
    /// How long a call may go without progress; `Some(None)` is for ever, whatever the manifest says.
    pub stall_timeout: Option<Option<Duration>>,
    /// How long a call may wait for a free lane.
    pub queue_timeout: Duration,
    /// How many calls may wait.
    pub queue_length: usize,
    /// How long a cancelled call may hold a lane.
    pub cancel_grace: Duration,
    /// How long a stop waits for calls in flight.
    pub drain_timeout: Duration,
    /// How long the answer to `shutdown` may take.
    pub shutdown_timeout: Duration,
    /// How long after stdin closed SIGTERM follows.
    pub term_timeout: Duration,
    /// How long after SIGTERM SIGKILL follows.
    pub kill_timeout: Duration,
    /// How long after SIGKILL a process that is still there is given up.
    pub unkillable_timeout: Duration,
    /// The longest frame in bytes, its newline not counted.
    pub frame_limit: usize,
    /// How many bytes of a plugin's log are kept.
    pub log_size: u64,
    /// How long an open question can be answered.
    pub token_ttl: Duration,
    /// How often an idle plugin that declares it is pinged.
    pub ping_interval: Duration,
    /// How many pings in a row may go unanswered.
    pub ping_misses: u32,
    /// How deeply plugins may call one another.
    pub call_depth: u32,
}

impl Config {
    /// Looks for the file: as given, `PLUGD_CONFIG`, the current folder, the XDG folders.
    pub fn find(explicit: Option<&Path>) -> Found {
        let folder = std::env::current_dir().unwrap_or_default();
        find::find(explicit, &folder, &Environment::of_process())
    }

    /// The same from another folder and environment.
    pub fn find_from(explicit: Option<&Path>, folder: &Path, environment: &Environment) -> Found {
        find::find(explicit, folder, environment)
    }

    /// Reads what was found, or makes the empty configuration where nothing was.
    ///
    /// What an operator changed (`plugd add`, `remove`, `enable`, `disable`, `stop`) is read along
    /// from the state folder.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem.
    pub fn open(found: &Found, environment: &Environment) -> Result<Config, ConfigError> {
        load::open(found, environment)
    }

    /// Reads a file with the environment of this process, as [`Config::open`] does.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem; a file that cannot be read is one.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let found = Found { file: Some(path.to_owned()), searched: vec![path.to_owned()] };
        load::open(&found, &Environment::of_process())
    }

    /// Where a daemon of a file listens, as far as that can be read where the file is wrong.
    pub fn socket_of(path: &Path) -> Option<PathBuf> {
        load::places(path, &Environment::of_process()).map(|(socket, _)| socket)
    }

    /// Takes away a plugin that was added, also while the rest of the file is wrong.
    ///
    /// For a program that finds no daemon to do it. True where there was one of that name.
    ///
    /// # Errors
    /// Its file cannot be removed.
    pub fn forget_added(path: &Path, plugin: &PluginName) -> std::io::Result<bool> {
        match load::places(path, &Environment::of_process()) {
            Some((_, state_dir)) => {
                let _turn = Turn::take(&state_dir)?;
                added::forget(&state_dir, plugin)
            }
            None => Ok(false),
        }
    }

    /// The file read again, for an engine that runs with this configuration: its socket, its state
    /// folder and what an operator decided stand.
    pub(crate) fn again(&self, file: &Path) -> Result<Config, ConfigError> {
        load::again(self, file, &Environment::of_process())
    }

    /// The same with what others changed of it in the state folder meanwhile; `None` where nobody did.
    pub(crate) fn refreshed(&self) -> Option<Config> {
        load::refreshed(self, &Environment::of_process())
    }

    /// Reads the text of a file that would lie at `path`, and nothing that an operator changed.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem.
    pub fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Config, ConfigError> {
        load::parse(text, path, environment)
    }
}

impl Config {
    /// These places with other plugins: none that an operator added, and nothing stopped or removed.
    #[must_use]
    pub fn with_only(mut self, plugins: BTreeMap<PluginName, PluginConfig>) -> Config {
        self.plugins = plugins;
        self.removed.clear();
        self.operator = Operator::default();
        self
    }

    /// What is there and is no plugin, with the reason: passed over in folders, or removed by an operator.
    pub(crate) fn passed_over(&self) -> Vec<Skipped> {
        let removed = self.removed.iter().map(|(name, plugin)| Skipped {
            path: plugin.program.display().to_string(),
            reason: format!("{name} was removed by an operator: `plugd add {name}` restores it"),
        });
        self.skipped.iter().cloned().chain(removed).collect()
    }

    /// Says in the log what is passed over because it is broken.
    pub(crate) fn warn_of_broken(&self) {
        for problem in self.broken.iter().flat_map(|broken| &broken.problems) {
            tracing::warn!("passed over: {problem}");
        }
    }

    /// Takes up an operator's decisions in place of those before.
    pub(crate) fn obey(&mut self, operator: Operator) {
        self.plugins.append(&mut self.removed);
        let plugins = std::mem::take(&mut self.plugins).into_iter();
        (self.removed, self.plugins) =
            plugins.partition(|(name, plugin)| operator.removed.contains(name) && !plugin.is_added());
        for (name, plugin) in &mut self.plugins {
            plugin.enabled = operator.enabled.get(name).copied().unwrap_or(plugin.enabled_as_written);
        }
        self.operator = operator;
    }
}

impl PluginConfig {
    /// Whether an operator added it.
    pub(crate) fn is_added(&self) -> bool {
        matches!(self.source, Source::Added { .. })
    }
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            describe_timeout: seconds(10),
            init_timeout: seconds(30),
            start_timeout_max: seconds(300),
            timeout: None,
            stall_timeout: None,
            queue_timeout: seconds(10),
            queue_length: 64,
            cancel_grace: seconds(2),
            drain_timeout: seconds(5),
            shutdown_timeout: seconds(5),
            term_timeout: seconds(3),
            kill_timeout: seconds(3),
            unkillable_timeout: seconds(2),
            frame_limit: plugd_protocol::frame::DEFAULT_FRAME_LIMIT,
            log_size: 10 * 1024 * 1024,
            token_ttl: seconds(24 * 60 * 60),
            ping_interval: seconds(10),
            ping_misses: 3,
            call_depth: 16,
        }
    }
}

impl fmt::Debug for PluginConfig {
    /// The same as `config show`: what may be a secret is masked.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PluginConfig({}: {})", self.name, self.show())
    }
}
