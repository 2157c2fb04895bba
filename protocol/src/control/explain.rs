//! What a call would do, without doing it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{PluginState, Source};
use crate::error::{ArgumentProblem, CallError};
use crate::manifest::Effects;
use crate::name::OperationId;
use crate::plugin::Question;

/// The answer to `call.explain`: what would run, where, with what, and what comes before it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// The operation that would run.
    pub operation: OperationId,
    /// What it was called by, where that is another spelling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_for: Option<String>,
    /// The version of its plugin.
    pub plugin_version: String,
    /// Where the plugin came from.
    pub source: Source,
    /// The program that would run.
    pub path: String,
    /// How the plugin is; one that is not up is started for the call where its state allows.
    pub state: PluginState,
    /// Why it is in that state, where it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The profile that calls; none is the owner of the socket, who may do everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Why the call would not be let through at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<CallError>,
    /// The arguments as they were given, sensitive fields masked.
    #[schemars(with = "serde_json::Value")]
    pub given: Box<RawValue>,
    /// The arguments as the plugin would get them, sensitive fields masked; none where they do not fit
    /// or something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub arguments: Option<Box<RawValue>>,
    /// Whether the plugin would get them just as they were given, also where they are masked here.
    #[serde(default)]
    pub unchanged: bool,
    /// What is wrong with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<ArgumentProblem>,
    /// What would be asked for first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Question>,
    /// What the operation says it does to the world.
    pub effects: Effects,
    /// Whether a person must agree.
    pub confirmation: Confirmation,
    /// For how many seconds an earlier answer to the same would do, where one may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_ttl: Option<u64>,
    /// What becomes of the key, where one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyPlan>,
    /// Whether it would be tried a second time after a crash.
    pub retried: bool,
    /// Whether it would run in the background.
    pub background: bool,
    /// How long it may run, in milliseconds.
    pub timeout_ms: u64,
    /// How long it may go without progress, in milliseconds; no limit where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_timeout_ms: Option<u64>,
    /// How long it may wait for a lane, in milliseconds.
    pub queue_timeout_ms: u64,
    /// Data of more bytes is given in pages; no limit where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_limit: Option<u64>,
}

/// Whether a person must agree before a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confirmation {
    /// It runs without.
    NotNeeded,
    /// It needs one, and it was given with the call.
    Given,
    /// It would wait for one.
    Needed,
}

/// What becomes of a call's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyPlan {
    /// It is noted before the call runs: a repeat gets the same answer, and never a second run.
    NotedBefore,
    /// It is noted with the answer: a repeat gets it, and one that was never answered runs anew.
    NotedAfter,
}
