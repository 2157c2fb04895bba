//! What plugins logged and what happened.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UnixMillis;
use crate::name::{CallId, OperationId, PluginName};
use crate::plugin::LogLevel;
use crate::result::Status;

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
    /// Only entries of this level, and more serious ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<LogLevel>,
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
    /// The session of that call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The trace of that call, 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
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
    /// `plugin.<state>`, `plugin.removed`, `plugin.manifest_changed`, `plugin.claims_changed`,
    /// `run.replaced`, `run.reconfigured`, `run.took_over`, `run.spare_ready`, `run.spare_failed`, `call.started`, `call.finished`, `call.progress`, `call.partial`,
    /// `call.asked`, `call.answered`, `registry.changed`, `registry.overlap`, `config.reloaded`, `config.refused` or
    /// `events.dropped`.
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
