//! What the host and a plugin say to each other, method by method.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::name::CallId;
use crate::negotiation::Offer;

/// The names of the methods.
pub mod method {
    /// Host → plugin: say what you are.
    pub const DESCRIBE: &str = "describe";
    /// Host → plugin: open your resources.
    pub const INIT: &str = "init";
    /// Host → plugin: run an operation.
    pub const CALL: &str = "call";
    /// Host → plugin, a notification: stop a call.
    pub const CANCEL: &str = "cancel";
    /// Host → plugin: are you there?
    pub const PING: &str = "ping";
    /// Host → plugin: here is your new configuration.
    pub const RELOAD: &str = "reload";
    /// Host → plugin, a notification: something happened.
    pub const EVENT: &str = "event";
    /// Host → plugin: release what you hold and leave.
    pub const SHUTDOWN: &str = "shutdown";
    /// Plugin → host, a notification: a line for the log.
    pub const LOG: &str = "log";
    /// Plugin → host, a notification: how far a call is.
    pub const PROGRESS: &str = "progress";
    /// Plugin → host, a notification: a piece of a call's result.
    pub const PARTIAL: &str = "partial";
    /// Plugin → host, a notification: describe me again.
    pub const MANIFEST_CHANGED: &str = "manifest_changed";
    /// Plugin → host: use another plugin.
    pub const HOST_CALL: &str = "host/call";
    /// Plugin → host: ask the person behind a call.
    pub const HOST_ASK: &str = "host/ask";
}

/// Params of `describe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribeParams {
    /// The host's versions and features.
    pub protocol: Offer,
    /// Who asks.
    pub host: HostInfo,
}

/// Who the host is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostInfo {
    /// The program's name.
    pub name: Cow<'static, str>,
    /// Its version.
    pub version: Cow<'static, str>,
}

/// Params of `init`.
#[derive(Debug, Serialize, Deserialize)]
pub struct InitParams {
    /// The plugin's configuration, defaults filled in; an object.
    #[serde(default = "no_config")]
    pub config: Box<RawValue>,
    /// A folder of the plugin's own that outlives its runs.
    #[serde(default)]
    pub data_dir: String,
    /// The language to speak, a BCP 47 tag.
    #[serde(default = "default_locale")]
    pub locale: String,
    /// The least level worth sending with `log`.
    #[serde(default = "default_log_level")]
    pub log_level: LogLevel,
}

fn no_config() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an empty object is JSON")
}

fn default_locale() -> String {
    "en".to_owned()
}

fn default_log_level() -> LogLevel {
    LogLevel::Info
}

/// Params of `call`.
#[derive(Debug, Serialize, Deserialize)]
pub struct CallParams<'a> {
    /// The operation, by its name in the manifest.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// Its arguments, an object.
    #[serde(borrow)]
    pub arguments: &'a RawValue,
    /// All else that belongs to this call.
    #[serde(borrow)]
    pub context: CallContext<'a>,
}

/// Everything about one request; nothing of it is kept anywhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallContext<'a> {
    /// The call's id.
    pub call_id: CallId,
    /// The session it belongs to.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// W3C trace context.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Cow<'a, str>>,
    /// Milliseconds left when the call was handed over.
    pub deadline_ms: u64,
    /// 1, or more where an idempotent call is tried again.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// The caller's key for running this once.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
    /// Who calls: a caller's profile, or `plugin:NAME`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Cow<'a, str>>,
    /// The language the caller speaks.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<Cow<'a, str>>,
}

fn first_attempt() -> u32 {
    1
}

/// Params of `cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelParams {
    /// The call to stop.
    pub call_id: CallId,
}

/// Params of `reload`; an answer without an error means that the new configuration is in use.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReloadParams {
    /// The plugin's new configuration, defaults filled in; an object.
    #[serde(default = "no_config")]
    pub config: Box<RawValue>,
}

/// Params of `shutdown`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutdownParams<'a> {
    /// Why: `stop`, `restart`, `reload`, `idle` or `exit`.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// How long the plugin has before stdin closes, in milliseconds.
    pub grace_ms: u64,
}

/// Params of `log`.
#[derive(Debug, Deserialize, Serialize)]
pub struct LogParams<'a> {
    /// How serious it is.
    #[serde(default = "default_log_level")]
    pub level: LogLevel,
    /// The line.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
    /// The call it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The trace it belongs to: the 32 hexadecimal digits of that call's `traceparent`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Cow<'a, str>>,
}

/// How serious a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", from = "String")]
#[schemars(!from)]
pub enum LogLevel {
    /// Very detailed.
    Trace,
    /// For finding faults.
    Debug,
    /// Normal; also what an unknown level counts as.
    Info,
    /// Odd, but handled.
    Warn,
    /// Something failed.
    Error,
}

impl From<String> for LogLevel {
    fn from(level: String) -> LogLevel {
        match level.to_ascii_lowercase().as_str() {
            "trace" => LogLevel::Trace,
            "debug" => LogLevel::Debug,
            "warn" | "warning" => LogLevel::Warn,
            "error" | "critical" | "fatal" => LogLevel::Error,
            _ => LogLevel::Info,
        }
    }
}

/// Params of `progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressParams<'a> {
    /// The call that advances; absent while starting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// How much is done.
    #[serde(default)]
    pub done: f64,
    /// Of how much, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What is being done.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
}

/// Params of `partial`.
#[derive(Debug, Serialize, Deserialize)]
pub struct PartialParams<'a> {
    /// The call it belongs to.
    pub call_id: CallId,
    /// The piece.
    #[serde(borrow)]
    pub data: &'a RawValue,
}

/// Params of `host/call`.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostCallParams<'a> {
    /// The call on whose behalf this is; may be left out while exactly one is in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The other plugin's operation, `plugin.operation`.
    #[serde(borrow)]
    pub operation: Cow<'a, str>,
    /// Its arguments; none is `{}`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<&'a RawValue>,
}

/// The result of `host/call`; a failure is a JSON-RPC error whose data carries the `cause`.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostCallResult<'a> {
    /// What the other plugin gave.
    #[serde(borrow)]
    pub data: &'a RawValue,
    /// Its one line about it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Cow<'a, str>>,
    /// The inner call's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

/// At most this many questions may be asked at once.
pub const QUESTIONS_MAX: usize = 16;

/// Params of `host/ask`: only while a call is in flight, on whose behalf it asks.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostAskParams {
    /// The call on whose behalf this is; may be left out while exactly one is in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// What to ask, at most [`QUESTIONS_MAX`] at once.
    pub questions: Vec<Question>,
}

/// One question to a person.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Under which name the answer comes back.
    pub name: String,
    /// JSON Schema of the answer; absent is any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub schema: Option<Box<RawValue>>,
    /// The question in words.
    pub prompt: String,
    /// Whether the answer is a secret: not echoed, not logged, not recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
}

/// The result of `host/ask`; who declines or cannot be asked gives a JSON-RPC error.
///
/// Not `Debug`, for there may be secrets in it.
#[derive(Serialize, Deserialize)]
pub struct HostAskResult {
    /// The answers by name; each fits the question's schema.
    pub answers: serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_from_another_host_needs_no_optional_member() {
        let params: CallParams<'_> = serde_json::from_str(
            r#"{"operation":"now","arguments":{},"context":{"call_id":"c-1","deadline_ms":5,"new":1},"new":2}"#,
        )
        .expect("tolerated");
        assert_eq!((params.operation.as_ref(), params.context.attempt), ("now", 1));
    }

    #[test]
    fn an_unknown_log_level_counts_as_info() {
        let log: LogParams<'_> =
            serde_json::from_str(r#"{"level":"notice","message":"x"}"#).expect("tolerated");
        assert_eq!(log.level, LogLevel::Info);
    }
}
