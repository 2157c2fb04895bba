//! What a person configured, as the program uses it: read once, at the door.
//!
//! [`Config::find`] looks for the file, [`Config::open`] reads it with every folder it names.
//! All problems are reported at once, each with its file, line, key and the nearest legal key.

mod environment;
mod error;
mod file;
mod find;
mod form;
mod load;
mod scan;
mod schema;
mod show;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plugd_protocol::PluginName;
use plugd_protocol::control::{Skipped, Source};
use plugd_protocol::manifest::Requirement;

pub use environment::Environment;
pub use error::{ConfigError, ConfigProblem};
pub use file::{Change as OnChange, Policy as RestartMode, Start as StartMode};
pub use find::Found;
pub use schema::schema;
pub use value::TIMEOUT_MAX;

/// A start that keeps reporting progress may take this long altogether.
pub const START_TIMEOUT_MAX: Duration = Duration::from_secs(300);

/// A process that is still there this long after SIGKILL is reported as unkillable.
pub const UNKILLABLE_AFTER: Duration = Duration::from_secs(2);

/// A call runs this long at most where neither caller, configuration nor manifest says.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Everything that is configured.
#[derive(Debug, Clone, PartialEq)]
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
    /// The folders that were scanned.
    pub scan_dirs: Vec<PathBuf>,
    /// What was found there and passed over.
    pub skipped: Vec<Skipped>,
    /// The limits of a plugin that sets none of its own.
    pub limits: Limits,
    /// The plugins, by name.
    pub plugins: BTreeMap<PluginName, PluginConfig>,
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
    /// Its limits and waits.
    pub limits: Limits,
    /// After how long without a call it stops; `None` is never.
    pub idle_timeout: Option<Duration>,
    /// What happens when its configuration or program changes.
    pub on_change: OnChange,
    /// Whether any stray line is a violation.
    pub strict: bool,
    /// Its own configuration, an object; the schema's defaults are not yet in it.
    pub config: serde_json::Value,
    /// Its manifest, where it lies beside the program; `Manifest::parse` has accepted it.
    pub manifest: Option<serde_json::Value>,
}

/// Limits and waits; what the manifest may also say is `None` where the configuration is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long `describe` may take.
    pub describe_timeout: Duration,
    /// How long `init` may take without a sign of progress.
    pub init_timeout: Duration,
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

/// When a plugin whose process ended is started again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RestartPolicy {
    /// Whether at all.
    pub mode: RestartMode,
    /// The first wait; each failure doubles it.
    pub backoff: Duration,
    /// The longest wait.
    pub backoff_cap: Duration,
    /// Failures within this time count together.
    pub window: Duration,
    /// More failures than this within the window and it is given up.
    pub max: u32,
    /// Ready for this long, it is restarted at once.
    pub stable_after: Duration,
    /// Ready for this long, its failures are forgotten.
    pub reset_after: Duration,
    /// How often a plugin that was given up is tried.
    pub probe_interval: Duration,
    /// By what share a wait varies.
    pub jitter: f64,
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
    /// # Errors
    /// [`ConfigError`] with every problem.
    pub fn open(found: &Found, environment: &Environment) -> Result<Config, ConfigError> {
        load::open(found, environment)
    }

    /// Reads a file with the environment of this process.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem; a file that cannot be read is one.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let found = Found { file: Some(path.to_owned()), searched: vec![path.to_owned()] };
        load::open(&found, &Environment::of_process())
    }

    /// Where a daemon of a file listens, as far as that can be read where the file is wrong.
    pub fn socket_of(path: &Path) -> Option<PathBuf> {
        load::socket(path, &Environment::of_process())
    }

    /// Reads the text of a file that would lie at `path`.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem.
    pub fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Config, ConfigError> {
        load::parse(text, path, environment)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        let seconds = Duration::from_secs;
        Limits {
            describe_timeout: seconds(10),
            init_timeout: seconds(30),
            timeout: None,
            stall_timeout: None,
            queue_timeout: seconds(10),
            queue_length: 64,
            cancel_grace: seconds(2),
            drain_timeout: seconds(5),
            shutdown_timeout: seconds(5),
            term_timeout: seconds(3),
            kill_timeout: seconds(3),
            frame_limit: plugd_protocol::frame::DEFAULT_FRAME_LIMIT,
            log_size: 10 * 1024 * 1024,
            token_ttl: seconds(24 * 60 * 60),
            ping_interval: seconds(10),
            ping_misses: 3,
            call_depth: 16,
        }
    }
}

impl Default for RestartPolicy {
    fn default() -> RestartPolicy {
        let seconds = Duration::from_secs;
        RestartPolicy {
            mode: RestartMode::OnFailure,
            backoff: Duration::from_millis(250),
            backoff_cap: seconds(30),
            window: seconds(180),
            max: 5,
            stable_after: seconds(10),
            reset_after: seconds(60),
            probe_interval: seconds(5 * 60),
            jitter: 0.2,
        }
    }
}

impl fmt::Debug for PluginConfig {
    /// The same as `config show`: what may be a secret is masked.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PluginConfig({}: {})", self.name, self.show())
    }
}
