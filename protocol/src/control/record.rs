//! The record of calls: what was called, by whom, with what, and how it went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{LogEntry, UnixMillis};
use crate::error::CallError;
use crate::name::{CallId, OperationId, PluginName};
use crate::result::Status;

/// Params of `calls`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallsParams {
    /// Only this plugin's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
    /// Only this operation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Only those that ended so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Only this caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The profile this is done as: only what that may use is listed; none is the owner of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_caller: Option<String>,
    /// Only this session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only those that arrived then or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Only those that arrived before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// At most this many, the latest; 50 unless said, 1 to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// The answer to `calls`: the latest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallsReport {
    /// The calls.
    pub calls: Vec<CallRow>,
}

/// One recorded call, in short.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallRow {
    /// Its id.
    pub call_id: CallId,
    /// When it arrived.
    pub at: UnixMillis,
    /// What was called; as it was written where nothing of that name exists.
    pub operation: String,
    /// Who called: a profile's name, `plugin:NAME`, or none for the owner of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// How it ended.
    pub status: Status,
    /// The error's number, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// The result's summary, or the error's message, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Microseconds in all.
    pub duration_us: u64,
    /// How often it was tried.
    pub attempt: u32,
}

/// Params of `calls.show`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallsShowParams {
    /// The call.
    pub call_id: CallId,
    /// The profile this is done as; none is the owner of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// The answer to `calls.show`: everything that is kept of one call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallDetail {
    /// In short.
    pub call: CallRow,
    /// The version of the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_version: Option<String>,
    /// Which run of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its trace, 32 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The call it was made for, where a plugin made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<CallId>,
    /// The caller's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Arguments as they came, sensitive fields masked; clipped at 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
    /// Arguments as they ran, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The first 2 KiB of the data, sensitive fields masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// Whether an earlier answer was given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_from: Option<AnsweredFrom>,
    /// Bytes of arguments.
    pub argument_bytes: u64,
    /// Bytes of data.
    pub data_bytes: u64,
    /// When it came to each stage, in microseconds after it arrived.
    pub stages: Vec<StageTime>,
    /// What its plugins logged meanwhile, in order.
    pub log: Vec<LogEntry>,
}

/// Where an answer that was not run for came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredFrom {
    /// The same call within the operation's `cache_ttl`.
    Cache,
    /// An earlier call with the same key.
    Key,
}

/// When a call came to a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageTime {
    /// The stage it entered.
    pub stage: Stage,
    /// Microseconds after it arrived.
    pub at_us: u64,
}

/// The stages of a call, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The operation was found and the caller may use it.
    Resolved,
    /// The arguments are in order.
    Checked,
    /// A person was asked.
    Asked,
    /// A person agreed, or none had to.
    Confirmed,
    /// It waits for a lane.
    Queued,
    /// A run got it.
    Started,
    /// The plugin answered, or will not.
    Answered,
    /// The result has its shape.
    Shaped,
}

/// Params of `calls.stats`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallsStatsParams {
    /// Only this plugin's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
    /// Only those that arrived then or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// The profile this is done as; none is the owner of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// The answer to `calls.stats`: the most called first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallsStatsReport {
    /// Each operation that was called.
    pub operations: Vec<OperationStats>,
}

/// How one operation does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OperationStats {
    /// The operation, as it was called.
    pub operation: String,
    /// How often.
    pub count: u64,
    /// How many of these came to an end of their own.
    ///
    /// Not one that got an earlier answer, of a key or the cache, and not one that stopped to ask.
    /// Share and times are theirs, and 0 where there is none.
    #[serde(default)]
    pub ended: u64,
    /// How many of a hundred of those ended `ok`.
    pub ok_percent: f64,
    /// Half of those took at most so many microseconds.
    pub p50_us: u64,
    /// Of a hundred of those, 95 took at most so many microseconds.
    pub p95_us: u64,
    /// What is wrong with arguments most often: at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argument_errors: Vec<ArgumentErrorCount>,
}

/// A mistake in arguments, and how often it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentErrorCount {
    /// Where: a JSON Pointer into the arguments.
    pub path: String,
    /// What kind of problem, as in an error's details.
    pub problem: String,
    /// How often.
    pub count: u64,
}

/// Params of `jobs`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsParams {
    /// Only those that run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
    /// The profile this is done as; none is the owner of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// The answer to `jobs`: the latest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JobsReport {
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// A call that runs in the background, or did.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// The call's id, which is the job's.
    pub call_id: CallId,
    /// What was called.
    pub operation: OperationId,
    /// Who called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// When it arrived.
    pub at: UnixMillis,
    /// `pending` while it runs, then how it ended.
    pub status: Status,
    /// The latest progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<JobProgress>,
    /// The result's summary or the error's message, once it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobProgress {
    /// How much is done.
    pub done: f64,
    /// Of how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Params of `jobs.wait`, which answers with the job's `CallResult`: `pending` where the wait was too short.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsWaitParams {
    /// The job.
    pub call_id: CallId,
    /// How long to wait, in milliseconds; a minute unless said, at most an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the result is wanted whole, however large.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// The profile this is done as; none is the owner of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// Params of `result`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultParams {
    /// The reference: a result's `page.ref`, which is its call's id.
    pub reference: CallId,
    /// A JSON Pointer to the part that is wanted; the whole unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The first item of an array, or character of anything else; 0 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// At most so many items or characters, at least 1; what fits a page unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Whether as much is wanted at once as an answer may hold, and not what fits a page.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// The profile this is done as; none is the owner of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// The answer to `result`: one page of a result that is kept.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResultReport {
    /// The call it is the result of.
    pub call_id: CallId,
    /// What was called.
    pub operation: String,
    /// The page: an array's items, an object or a scalar whole where it fits, else JSON text as a string.
    #[schemars(with = "serde_json::Value")]
    pub data: Box<RawValue>,
    /// Where in the whole this is.
    pub page: crate::result::Page,
}
