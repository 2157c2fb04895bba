//! The control API: what a client and the daemon say to each other.
//!
//! JSON-RPC 2.0 over the daemon's Unix socket, by HTTP POST to `/` or by WebSocket. Methods are
//! the command line's verbs, params its options. A call always yields a
//! [`CallResult`](crate::result::CallResult); JSON-RPC errors are for malformed requests and for
//! commands that cannot be carried out, whose `data` is a [`CallError`](crate::error::CallError).

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::manifest::{Features, Operation, Quarantined, Requirement};
use crate::name::{CallId, OperationId, PluginName};
use crate::plugin::LogLevel;
use crate::result::Status;

/// The names of the methods.
pub mod method {
    /// Run an operation: [`CallParams`](super::CallParams) → `CallResult`.
    pub const CALL: &str = "call";
    /// Stop a call: [`CancelParams`](super::CancelParams) → [`CancelReport`](super::CancelReport).
    pub const CANCEL: &str = "cancel";
    /// How everything is: [`StatusParams`](super::StatusParams) → [`StatusReport`](super::StatusReport).
    pub const STATUS: &str = "status";
    /// What there is: [`ListParams`](super::ListParams) → [`ListReport`](super::ListReport).
    pub const LIST: &str = "list";
    /// One plugin or operation: [`DescribeParams`](super::DescribeParams) → [`Description`](super::Description).
    pub const DESCRIBE: &str = "describe";
    /// Start plugins: [`PluginsParams`](super::PluginsParams) → [`StartReport`](super::StartReport).
    pub const START: &str = "start";
    /// Stop plugins and keep them stopped: [`PluginsParams`](super::PluginsParams) → [`StopReport`](super::StopReport).
    pub const STOP: &str = "stop";
    /// Stop and start plugins: [`PluginsParams`](super::PluginsParams) → [`StartReport`](super::StartReport).
    pub const RESTART: &str = "restart";
    /// Apply the config, or take up one plugin anew: [`ReloadParams`](super::ReloadParams) → [`ReloadReport`](super::ReloadReport).
    pub const RELOAD: &str = "reload";
    /// Stop everything and leave: no params → [`StopReport`](super::StopReport).
    pub const SHUTDOWN: &str = "shutdown";
    /// Log entries: [`LogsParams`](super::LogsParams) → a list of [`LogEntry`](super::LogEntry).
    pub const LOGS: &str = "logs";
    /// Subscribe to log entries; notifications are called `logs`.
    pub const LOGS_SUBSCRIBE: &str = "logs.subscribe";
    /// End that subscription.
    pub const LOGS_UNSUBSCRIBE: &str = "logs.unsubscribe";
    /// The latest events: [`EventsParams`](super::EventsParams) → a list of [`Event`](super::Event).
    pub const EVENTS: &str = "events";
    /// Subscribe to events; notifications are called `events`.
    pub const EVENTS_SUBSCRIBE: &str = "events.subscribe";
    /// End that subscription.
    pub const EVENTS_UNSUBSCRIBE: &str = "events.unsubscribe";
    /// Who requires whom: no params → [`GraphReport`](super::GraphReport).
    pub const GRAPH: &str = "graph";
    /// This API as an OpenRPC document.
    pub const DISCOVER: &str = "rpc.discover";
}

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct UnixMillis(pub u64);

/// Params of `call`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallParams {
    /// `plugin.operation`, or an operation's bare name while it is unambiguous.
    pub operation: String,
    /// An object; absent or `null` is `{}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub arguments: Option<Box<RawValue>>,
    /// Milliseconds for everything together, starting the plugin included; at most an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The session it belongs to, handed on to the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// W3C trace context, handed on to the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl CallParams {
    /// A call without arguments.
    pub fn new(operation: impl Into<String>) -> CallParams {
        CallParams { operation: operation.into(), arguments: None, timeout_ms: None, session: None, traceparent: None }
    }

    /// The same call with these arguments, as JSON text.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub fn arguments(mut self, json: &str) -> serde_json::Result<CallParams> {
        self.arguments = Some(RawValue::from_string(json.to_owned())?);
        Ok(self)
    }
}

/// Params of `cancel`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelParams {
    /// The call to stop.
    pub call_id: CallId,
}

/// The answer to `cancel`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CancelReport {
    /// The call.
    pub call_id: CallId,
    /// Whether it was still running.
    pub cancelled: bool,
}

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
    /// Answers nobody waited for: late, unknown or given twice.
    pub unmatched_answers: u64,
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
    /// The last lines on its stderr.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr_tail: Vec<String>,
}

/// Params of `list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Only plugins in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PluginState>,
}

/// The answer to `list`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListReport {
    /// Every plugin, by name.
    pub plugins: Vec<PluginListing>,
    /// The config file in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Each folder that was scanned.
    pub looked_in: Vec<String>,
    /// What was found there and passed over.
    pub skipped: Vec<Skipped>,
}

/// A file that a scan passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Which.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// One plugin in a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PluginListing {
    /// Its name.
    pub name: PluginName,
    /// Its state.
    pub state: PluginState,
    /// Why it is in that state, where it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the configuration allows it.
    pub enabled: bool,
    /// Larger starts earlier within a level.
    pub priority: i32,
    /// Its version, once it was described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it came from.
    pub source: Source,
    /// Its program.
    pub path: String,
    /// SHA-256 of the program, in hexadecimal, where it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What it offers.
    pub operations: Vec<OperationListing>,
}

/// Where a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// A table in the config file.
    Config {
        /// The file.
        file: String,
    },
    /// Found in a scanned folder.
    Scan {
        /// The folder.
        dir: String,
    },
    /// Given by the program that embeds the engine.
    Embedded,
}

/// One operation in a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OperationListing {
    /// Its identity.
    pub id: OperationId,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Params of `describe`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DescribeParams {
    /// A plugin's name, or an operation's.
    pub name: String,
}

/// The answer to `describe`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// The plugin.
    pub plugin: PluginListing,
    /// What it requires, its manifest and the configuration taken together.
    pub requires: BTreeMap<PluginName, Requirement>,
    /// What it can do beyond the least.
    pub features: Features,
    /// JSON Schema of its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub config_schema: Option<Box<RawValue>>,
    /// Its operations, or the one asked for.
    pub operations: Vec<Operation>,
    /// Operations it declares that are not offered.
    pub quarantined: Vec<Quarantined>,
}

/// Params of `start`, `stop` and `restart`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginsParams {
    /// Which plugins.
    pub plugins: Vec<PluginName>,
}

/// The answer to `start` and `restart`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StartReport {
    /// Each plugin asked for, in the state it came to.
    pub plugins: Vec<PluginStatus>,
}

/// The answer to `stop` and `shutdown`: each plugin that was running, in the order they ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StopReport {
    /// How each ended.
    pub plugins: Vec<Stopped>,
}

/// How one plugin was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    /// Which.
    pub name: PluginName,
    /// How it ended.
    pub ended: Ended,
    /// How long that took, in milliseconds.
    pub took_ms: u64,
}

/// What made a plugin end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It was not running.
    NotRunning,
    /// It left when asked.
    Exited,
    /// SIGTERM ended it.
    Terminated,
    /// SIGKILL ended it.
    Killed,
    /// Not even that.
    Unkillable,
}

/// Params of `reload`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReloadParams {
    /// Only this plugin, even if nothing about it changed; otherwise the config file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
}

/// The answer to `reload`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReloadReport {
    /// How often the configuration was applied, this time included.
    pub config_generation: u64,
    /// Plugins that are new.
    pub added: Vec<PluginName>,
    /// Plugins that are gone.
    pub removed: Vec<PluginName>,
    /// Plugins that were taken up anew.
    pub changed: Vec<PluginName>,
    /// Plugins that were not touched.
    pub unchanged: Vec<PluginName>,
}

/// Params of `logs` and `logs.subscribe`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogsParams {
    /// Only this plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
    /// Only this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// At most this many, the latest; 200 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogEntry {
    /// When.
    pub at: UnixMillis,
    /// Which plugin.
    pub plugin: PluginName,
    /// Which run of it.
    pub generation: u64,
    /// How it came.
    pub stream: LogStream,
    /// How serious it is.
    pub level: LogLevel,
    /// The call it belongs or fell into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The line, clipped at 8 KiB.
    pub text: String,
}

/// How a log line came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// A `log` notification.
    Log,
    /// A line on stderr.
    Stderr,
    /// A line on stdout that was no message.
    Stray,
    /// What plugd says about the plugin.
    Runtime,
}

/// Params of `events` and `events.subscribe`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    /// Only this plugin's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
    /// At most this many, the latest; 200 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<u32>,
}

/// Something that happened.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number, growing by one.
    pub seq: u64,
    /// When.
    pub at: UnixMillis,
    /// `plugin.<state>`, `plugin.removed`, `call.started`, `call.finished`, `call.progress`,
    /// `call.partial`, `registry.changed`, `config.reloaded` or `events.dropped`.
    pub kind: Cow<'static, str>,
    /// Which plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
    /// Which run of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// Why, where it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// Which operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// How a finished call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// How long a finished call took in all, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// The params of a progress or a partial result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<serde_json::Value>,
}

/// The answer to `graph`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GraphReport {
    /// Every plugin in the order they start, with its level.
    pub nodes: Vec<GraphNode>,
    /// Who requires whom.
    pub edges: Vec<GraphEdge>,
    /// Each cycle, as the path round it.
    pub cycles: Vec<Vec<PluginName>>,
}

/// A plugin in the graph.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GraphNode {
    /// Its name.
    pub name: PluginName,
    /// Its state.
    pub state: PluginState,
    /// The level it starts in; 0 requires nothing. Absent for what can never start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
}

/// A requirement in the graph.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct GraphEdge {
    /// Who requires.
    pub from: PluginName,
    /// Whom.
    pub to: PluginName,
    /// The versions that will do.
    pub version: String,
    /// Whether it can do without.
    pub optional: bool,
    /// Whether there is no such plugin.
    pub missing: bool,
}
