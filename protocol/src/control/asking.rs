//! Questions to the person behind a call, and their answers.

use schemars::JsonSchema;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{JobProgress, UnixMillis};
use crate::name::{CallId, OperationId};
use crate::plugin::Question;
use crate::result::CallResult;

/// Questions that wait for their answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Ask {
    /// What to answer with; good for one answer.
    pub token: String,
    /// The call that waits.
    pub call_id: CallId,
    /// What was called.
    pub operation: OperationId,
    /// What asks, where that is another operation, which what was called uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<OperationId>,
    /// What is asked.
    pub questions: Vec<Question>,
    /// The final arguments, where it is asked whether the call may run with them; sensitive fields masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// Until when it can be answered.
    pub expires: UnixMillis,
}

/// Params of `asks.subscribe`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AsksParams {
    /// Whether to tell of the progress of these calls as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

/// An item of `asks.subscribe`: first the questions, later that they need no answer any more.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AskNotice {
    /// A call is so far.
    Progress(AskProgress),
    /// Somebody is asked.
    Asked(Ask),
    /// The token is no longer good.
    Ended(AskEnded),
}

/// By hand, for serde cannot pass schemas as they are written through an untagged enum.
impl<'de> Deserialize<'de> for AskNotice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AskNotice, D::Error> {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            ended: Option<IgnoredAny>,
            #[serde(default)]
            progress: Option<IgnoredAny>,
        }
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let probe: Probe = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        match (probe.ended, probe.progress) {
            (Some(_), _) => serde_json::from_str(raw.get()).map(AskNotice::Ended),
            (None, Some(_)) => serde_json::from_str(raw.get()).map(AskNotice::Progress),
            (None, None) => serde_json::from_str(raw.get()).map(AskNotice::Asked),
        }
        .map_err(D::Error::custom)
    }
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskProgress {
    /// The call that was made.
    pub call_id: CallId,
    /// What tells of its progress: what was called, or an operation which that uses.
    pub operation: OperationId,
    /// How far it is.
    pub progress: JobProgress,
}

/// That questions no longer wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskEnded {
    /// Their token.
    pub token: String,
    /// What became of them.
    pub ended: AskEnd,
}

/// What became of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskEnd {
    /// They were answered, by whomever.
    Answered,
    /// Somebody said that there will be no answer.
    Declined,
    /// Nobody answered in time.
    Expired,
    /// The call that waited is over.
    Cancelled,
}

/// Params of `answer`; not `Debug`, for there may be secrets in it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerParams {
    /// The question's token.
    pub token: String,
    /// The answers by name.
    #[serde(default)]
    pub answers: serde_json::Map<String, serde_json::Value>,
    /// The answer, where there is only one question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<serde_json::Value>,
    /// Whether whoever was asked will not answer, or says no; a plugin that asked is told so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decline: bool,
    /// Whether whoever answers agrees to what the call does, where that is asked or will be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm: bool,
    /// Whether what is asked besides can be put to whoever answers: its client follows `asks`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_ask: bool,
    /// The profile that answers; none is the owner of the socket. The call goes on as the caller who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

impl AnswerParams {
    /// An answer that says nothing yet.
    pub fn new(token: impl Into<String>) -> AnswerParams {
        AnswerParams {
            token: token.into(),
            answers: serde_json::Map::new(),
            answer: None,
            decline: false,
            confirm: false,
            can_ask: false,
            caller: None,
        }
    }
}

/// The answer to `answer`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AnswerReport {
    /// The call that goes on.
    pub call_id: CallId,
    /// How it ended, where it had stopped to be carried on by this answer; absent where whoever
    /// made it still waits for its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_reads_back_as_it_was_written() {
        for written in [
            r#"{"token":"t","call_id":"c","operation":"a.b","questions":[{"name":"n","schema":{"maximum":1.10},"prompt":"?"}],"expires":5}"#,
            r#"{"token":"t","ended":"expired"}"#,
            r#"{"call_id":"c","operation":"a.b","progress":{"done":1.0,"total":2.5}}"#,
        ] {
            let notice: AskNotice = serde_json::from_str(written).expect("it reads");
            assert_eq!(serde_json::to_string(&notice).expect("it writes"), written);
        }
    }
}
