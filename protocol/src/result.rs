//! What a call ends in: one shape, whatever happened.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::error::CallError;
use crate::name::{CallId, OperationId};
use crate::plugin::Question;

/// The one result of a call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CallResult {
    /// How it ended.
    pub status: Status,
    /// What the plugin gave, exactly as it wrote it; `null` is data too.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub data: Option<Box<RawValue>>,
    /// One line about it, for people and for a model's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// What a caller may want to do next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_actions: Vec<NextAction>,
    /// What a person must say before it can go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Box<Pending>>,
    /// Which part of the data this is, where it is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<Box<Page>>,
    /// About the call itself.
    pub meta: Meta,
}

/// What a person must say before a call can go on: `plugd answer TOKEN` carries it on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Pending {
    /// Good for one answer; absent where nothing outlives the call that could be answered: then it is made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Until when, in milliseconds since 1970-01-01T00:00:00Z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<crate::control::UnixMillis>,
    /// The question in words, in one piece.
    pub prompt: String,
    /// The values that are missing, at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The final arguments that are to be agreed to, sensitive fields masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
}

/// Which part of a result that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// What to ask for it by: `plugd result REF`.
    #[serde(rename = "ref")]
    pub reference: CallId,
    /// A JSON Pointer to the array that is given in pages, where that is a member of the data; the rest is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// What is counted.
    pub unit: PageUnit,
    /// The first on this page.
    pub offset: u64,
    /// How many are on it.
    pub count: u64,
    /// How many there are.
    pub total: u64,
    /// The offset of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Bytes of the whole data.
    pub bytes: u64,
}

/// What a page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageUnit {
    /// The items of an array.
    Items,
    /// The characters of the JSON text.
    Characters,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The plugin answered with data.
    Ok,
    /// It did not; `error` says why.
    Error,
    /// Values are missing that only a person can give.
    NeedsInput,
    /// A person must agree first.
    NeedsConfirmation,
    /// It goes on in the background.
    Pending,
    /// It was cancelled.
    Cancelled,
}

/// A call that may be worth making next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextAction {
    /// The operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Why, for people and models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
}

/// About the call itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// The call's id; none where it failed before it got one, or where its result was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// What was called, once that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationId>,
    /// The version of the plugin that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_version: Option<String>,
    /// Which run of the plugin it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// How often it was tried.
    pub attempt: u32,
    /// Microseconds until it was handed over, or until its end where it never was.
    pub queue_us: u64,
    /// Microseconds from handing over to the answer, or to the end without one.
    pub run_us: u64,
    /// Bytes of arguments as given.
    pub argument_bytes: u64,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Whether the answer is an earlier one's, given within the operation's `cache_ttl`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Whether the answer is that of an earlier call with the same key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
    /// The call that ran, where this is its answer again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_of: Option<CallId>,
    /// What was changed of the arguments to fit their declared types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What is wrong with the plugin's answer that did not keep it from being used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Tells data that is `null` from none.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl CallResult {
    /// The exit code of a command that ended with this result.
    pub fn exit_code(&self) -> u8 {
        match self.status {
            Status::Ok | Status::Pending => 0,
            Status::NeedsInput | Status::NeedsConfirmation => 8,
            Status::Error | Status::Cancelled => self.error.as_ref().map_or(9, CallError::exit_code),
        }
    }
}
