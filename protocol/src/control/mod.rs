//! The control API: what a client and the daemon say to each other.
//!
//! JSON-RPC 2.0 over the daemon's Unix socket, by HTTP POST to `/` or by WebSocket. Methods are
//! the command line's verbs, params its options. A call always yields a
//! [`CallResult`](crate::result::CallResult); JSON-RPC errors are for malformed requests and for
//! commands that cannot be carried out, whose `data` is a [`CallError`](crate::error::CallError).

mod asking;
mod change;
mod claims;
mod conformance;
mod doctor;
mod explain;
mod history;
mod listing;
mod record;
mod status;
mod tools;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use asking::{AnswerParams, AnswerReport, Ask, AskEnd, AskEnded, AskNotice, AskProgress, AsksParams};
pub use change::{AddParams, AddReport, ChangeReport};
pub use claims::{ClaimChange, ClaimPart, ClaimsChanged, EffectsBacking};
pub use conformance::{ConformanceReport, ScenarioFinding, ScenarioOutcome, ScenarioReport};
pub use doctor::{DoctorReport, Finding, Severity};
pub use explain::{Confirmation, Explanation, KeyPlan};
pub use history::{Event, EventsParams, LogEntry, LogStream, LogsParams};
pub use listing::{
    DescribeParams, Description, ListParams, ListReport, OperationListing, PluginListing, Skipped, Source,
};
pub use record::{
    AnsweredFrom, ArgumentErrorCount, CallDetail, CallRow, CallsParams, CallsReport, CallsShowParams,
    CallsStatsParams, CallsStatsReport, Job, JobProgress, JobsParams, JobsReport, JobsWaitParams,
    OperationStats, ResultParams, ResultReport, Stage, StageTime,
};
pub use status::{
    ActiveCall, DaemonStatus, ExitReport, Health, PluginState, PluginStatus, RestartRequired, SpareStatus,
    StatusParams, StatusReport,
};

pub use tools::{
    Category, CheckReport, CheckedOperation, CheckedPlugin, Dialect, Exported, LintFinding, LintParams,
    LintReport, NotOffered, Tool, ToolsParams, ToolsReport, Tried,
};

use crate::manifest::OnLoss;
use crate::name::{CallId, PluginName};

/// The names of the methods.
pub mod method {
    /// Run an operation: [`CallParams`](super::CallParams) → `CallResult`.
    pub const CALL: &str = "call";
    /// What a call would do: [`CallParams`](super::CallParams) → [`Explanation`](super::Explanation). Nothing runs.
    pub const CALL_EXPLAIN: &str = "call.explain";
    /// Stop a call: [`CancelParams`](super::CancelParams) → [`CancelReport`](super::CancelReport).
    pub const CANCEL: &str = "cancel";
    /// Stop the calls made through this connection: no params → [`CancelMineReport`](super::CancelMineReport).
    pub const CANCEL_MINE: &str = "cancel.mine";
    /// Recorded calls: [`CallsParams`](super::CallsParams) → [`CallsReport`](super::CallsReport).
    pub const CALLS: &str = "calls";
    /// One recorded call: [`CallsShowParams`](super::CallsShowParams) → [`CallDetail`](super::CallDetail).
    pub const CALLS_SHOW: &str = "calls.show";
    /// How operations do: [`CallsStatsParams`](super::CallsStatsParams) → [`CallsStatsReport`](super::CallsStatsReport).
    pub const CALLS_STATS: &str = "calls.stats";
    /// Calls in the background: [`JobsParams`](super::JobsParams) → [`JobsReport`](super::JobsReport).
    pub const JOBS: &str = "jobs";
    /// Wait for one of them: [`JobsWaitParams`](super::JobsWaitParams) → `CallResult`.
    pub const JOBS_WAIT: &str = "jobs.wait";
    /// A page of a kept result: [`ResultParams`](super::ResultParams) → [`ResultReport`](super::ResultReport).
    pub const RESULT: &str = "result";
    /// What is offered to models: [`ToolsParams`](super::ToolsParams) → [`ToolsReport`](super::ToolsReport).
    pub const TOOLS: &str = "tools";
    /// What declarations could say better: [`LintParams`](super::LintParams) → [`LintReport`](super::LintReport).
    pub const LINT: &str = "lint";
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
    /// Add a plugin: [`AddParams`](super::AddParams) → [`AddReport`](super::AddReport).
    pub const ADD: &str = "add";
    /// Remove plugins: [`PluginsParams`](super::PluginsParams) → [`ChangeReport`](super::ChangeReport).
    pub const REMOVE: &str = "remove";
    /// Allow plugins: [`PluginsParams`](super::PluginsParams) → [`ChangeReport`](super::ChangeReport).
    pub const ENABLE: &str = "enable";
    /// Forbid plugins: [`PluginsParams`](super::PluginsParams) → [`ChangeReport`](super::ChangeReport).
    pub const DISABLE: &str = "disable";
    /// What is wrong and what to do: [`StatusParams`](super::StatusParams) → [`DoctorReport`](super::DoctorReport).
    pub const DOCTOR: &str = "doctor";
    /// Answer an open question: [`AnswerParams`](super::AnswerParams) → [`AnswerReport`](super::AnswerReport).
    pub const ANSWER: &str = "answer";
    /// Subscribe to the questions of this connection's calls: [`AsksParams`](super::AsksParams);
    /// notifications are called `ask`, each an [`AskNotice`](super::AskNotice).
    pub const ASKS_SUBSCRIBE: &str = "asks.subscribe";
    /// End that subscription.
    pub const ASKS_UNSUBSCRIBE: &str = "asks.unsubscribe";
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
    /// Whether questions of this call can be put to whoever called: its client follows `asks`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_ask: bool,
    /// The caller's name for this very call: the same key runs once, a repeat gets the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// That whoever calls agrees to what the call does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
    /// The profile to call as, of those in `[callers]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Whether to wait for the end of a long-running operation rather than get a job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// Whether the result is wanted whole, however large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
}

impl CallParams {
    /// A call without arguments.
    pub fn new(operation: impl Into<String>) -> CallParams {
        CallParams {
            operation: operation.into(),
            arguments: None,
            timeout_ms: None,
            session: None,
            traceparent: None,
            can_ask: false,
            key: None,
            confirm: false,
            caller: None,
            wait: false,
            whole: false,
        }
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
    /// The profile this is done as; none is the owner of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// The answer to `cancel`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CancelReport {
    /// The call.
    pub call_id: CallId,
    /// Whether it was still running.
    pub cancelled: bool,
}

/// The answer to `cancel.mine`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelMineReport {
    /// The calls that were still running; each is answered as cancelled where it was made.
    pub call_ids: Vec<CallId>,
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
    /// Plugins that go on as they were although something changed: `status` says what, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart_required: Vec<PluginName>,
    /// Plugins that were to be taken up, served until now, or were given up before, and are not as configured,
    /// with the reason: the old one goes on, or they are down. None that was left alone on purpose is here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<PluginName, String>,
    /// The run that each plugin taken up anew is in now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generations: BTreeMap<PluginName, u64>,
    /// What plugins were found to claim otherwise than before under the same version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claims_changed: BTreeMap<PluginName, ClaimsChanged>,
    /// Tables of the file that changed and are read only when plugd starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_start: Vec<String>,
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
    /// Why it is in that state, where it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    /// What becomes of who requires when the other one is lost; absent where it stays up.
    #[serde(default, skip_serializing_if = "OnLoss::is_stay")]
    pub on_loss: OnLoss,
}
