//! How the program and its plugins are.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ClaimsChanged, EffectsBacking, UnixMillis};
use crate::name::{CallId, OperationId, PluginName};

/// Params of `status`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusParams {
    /// Only this plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
}

/// The answer to `status`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StatusReport {
    /// The program itself.
    pub daemon: DaemonStatus,
    /// Every plugin, by name.
    pub plugins: Vec<PluginStatus>,
}

/// How the program itself is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// `ok`, or `degraded` while a plugin is failed, disabled or blocked.
    pub health: Health,
    /// The config file in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The control socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// How often the configuration was applied.
    pub config_generation: u64,
    /// Since when it is up.
    pub since: UnixMillis,
    /// Why calls are not recorded, while they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_recorded: Option<String>,
    /// Why the record was begun anew since plugd is up, and where the one before lies: it could not be
    /// read, or was taken away. Keys, tokens and results of then are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_begun_anew: Option<String>,
    /// Calls in flight or waiting.
    pub calls: Vec<ActiveCall>,
}

/// Whether everything that should run can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Yes.
    Ok,
    /// Some plugin cannot.
    Degraded,
}

/// A call that has not ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ActiveCall {
    /// Its id.
    pub call_id: CallId,
    /// What was called.
    pub operation: OperationId,
    /// Since when.
    pub since: UnixMillis,
    /// Whether it waits for a person's answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asking: bool,
}

/// The state a plugin is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginState {
    /// Known, never started.
    Registered,
    /// Its process runs and is not ready yet.
    Starting,
    /// Ready for calls.
    Ready,
    /// Ready, with calls in flight.
    Busy,
    /// Not running; the first call starts it.
    Idle,
    /// It failed and is about to be started again.
    Backoff,
    /// Something it requires is not there.
    Blocked,
    /// It cannot be used until its configuration or its program changes.
    Disabled,
    /// It was given up.
    Failed,
    /// It is being stopped.
    Stopping,
    /// An operator stopped it.
    Stopped,
}

/// How one plugin is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PluginStatus {
    /// Its name.
    pub name: PluginName,
    /// Its state.
    pub state: PluginState,
    /// Why it is in that state, where it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<PluginName>,
    /// Its version, once it was described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Which run it is in; 0 before the first.
    pub generation: u64,
    /// Since when it is in its state.
    pub since: UnixMillis,
    /// How often it was started to serve; being described does not count.
    pub starts: u64,
    /// Restarts nobody asked for that count towards giving up.
    pub restarts: u32,
    /// When it will be tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_start: Option<UnixMillis>,
    /// How its last run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_exit: Option<ExitReport>,
    /// How long `describe` took last, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub describe_ms: Option<u64>,
    /// How long `init` took last, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_ms: Option<u64>,
    /// Calls it takes at once.
    pub concurrency: u32,
    /// Calls in flight.
    pub in_flight: u32,
    /// Calls waiting.
    pub queued: u32,
    /// Lines on stdout that were no messages.
    pub stray_lines: u64,
    /// Answers nobody waited for: of an unknown id, or given twice.
    pub unmatched_answers: u64,
    /// How its latest runs ended, oldest first; at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exits: Vec<ExitReport>,
    /// Set while what is configured is not what runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_required: Option<RestartRequired>,
    /// The run that is about to take over from the one that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacing: Option<u64>,
    /// The run that would take the place of the one that serves; only where `spares` asks for one, while it serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<SpareStatus>,
    /// What its process is held to, as `what: how`; only while it runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub enforced: BTreeMap<String, String>,
    /// What it should be held to and is not, as `what: why`; only while it runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_enforced: BTreeMap<String, String>,
    /// What stands behind the effects it declares, where it declares any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effects: Option<EffectsBacking>,
    /// What it declares otherwise than before, though its version is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims_changed: Option<ClaimsChanged>,
}

/// How the run is that would take the place of the one that serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpareStatus {
    /// Which run, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Whether it would take over at once.
    pub ready: bool,
    /// What the last one failed of, until one is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// When the next one is made, where that waits out a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_start: Option<UnixMillis>,
}

/// Why a plugin goes on with an older configuration or program than there is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestartRequired {
    /// What changed, such as `config.cache_ttl`, `env.LOG` or `file main.py`.
    pub changed: Vec<String>,
    /// Why the change was not taken up.
    pub reason: String,
}

impl RestartRequired {
    /// The reason where nothing failed: the configuration wants it so.
    pub const MANUAL: &str = "on_change is manual";

    /// Whether it waits for an operator, and not because something failed.
    pub fn is_manual(&self) -> bool {
        self.reason == RestartRequired::MANUAL
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExitReport {
    /// Which run.
    pub generation: u64,
    /// In words: `exit status 3`, `killed by signal 9 (SIGKILL)`.
    pub text: String,
    /// The exit code, where it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal, where one ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// When.
    pub at: UnixMillis,
    /// Whether it ended a run that served or was to, and nobody asked for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
    /// Whether the kernel ended it because its memory was used up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oom: bool,
    /// The last lines on its stderr.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr_tail: Vec<String>,
}
