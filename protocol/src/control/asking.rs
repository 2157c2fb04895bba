//! Questions to the person behind a call, and their answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UnixMillis;
use crate::name::{CallId, OperationId};
use crate::plugin::Question;

/// Questions that wait for their answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Ask {
    /// What to answer with; good for one answer.
    pub token: String,
    /// The call that waits.
    pub call_id: CallId,
    /// What was called.
    pub operation: OperationId,
    /// What is asked.
    pub questions: Vec<Question>,
    /// Until when it can be answered.
    pub expires: UnixMillis,
}

/// Params of `answer`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerParams {
    /// The question's token.
    pub token: String,
    /// The answers by name.
    #[serde(default)]
    pub answers: serde_json::Map<String, serde_json::Value>,
    /// Whether whoever was asked will not answer; the plugin is told so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decline: bool,
}

/// The answer to `answer`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnswerReport {
    /// The call that goes on.
    pub call_id: CallId,
}
