//! What a plugin asks of the host while it works on a call: other plugins, and people.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Instant;

use plugd_protocol::RpcError;
use plugd_protocol::error::{ErrorData, clip, rpc_code};
use plugd_protocol::message::{write_error, write_result};
use plugd_protocol::plugin::{HostAskParams, HostAskResult, HostCallParams, QUESTIONS_MAX, Question, method};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;

use super::deadline::Held;
use super::host::{HostAsk, HostCall, HostReply, Lineage};
use super::run::Run;
use crate::machine::Fact;

/// So many requests of one run can be outside at once.
const HOST_CALLS_MAX: usize = 64;

/// A plugin may ask so often at once, all its calls together; each may hold several questions.
const ASKS_MAX: usize = 8;

/// A prompt is clipped to this many characters: a few lines on a terminal.
const PROMPT_MAX_CHARS: usize = 2_000;

/// A question's name is at most this long.
const NAME_MAX: usize = 64;

/// An answer to a request of the plugin, to be sent back.
pub(super) struct HostAnswer {
    id: Box<RawValue>,
    outcome: Result<HostResult, RpcError>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum HostResult {
    Call(HostReply),
    Ask(HostAskResult),
}

impl Run {
    pub(super) fn read_request(&mut self, id: &RawValue, name: &str, params: Option<&RawValue>) {
        if name == method::DESCRIBE && !self.described {
            self.setup = None;
            let reason = "it gives back what it is sent: not a plugin".to_owned();
            return self.report(Fact::DescribeRefused { reason });
        }
        let params = params.map_or("{}", RawValue::get);
        let unreadable = |error: serde_json::Error| invalid(&error.to_string());
        let begun = match name {
            method::HOST_CALL => serde_json::from_str(params)
                .map_err(unreadable)
                .and_then(|params: HostCallParams<'_>| self.host_call(id, params)),
            method::HOST_ASK => serde_json::from_str(params)
                .map_err(unreadable)
                .and_then(|params: HostAskParams| self.host_ask(id, params)),
            _ => {
                let message = format!("the host has no method {name:?}");
                Err(RpcError::new(rpc_code::METHOD_NOT_FOUND, message))
            }
        };
        if let Err(error) = begun {
            self.answer_plugin(id, Err(error));
        }
    }

    fn host_call(&mut self, id: &RawValue, params: HostCallParams<'_>) -> Result<(), RpcError> {
        if self.requests.len() >= HOST_CALLS_MAX {
            return Err(RpcError::new(
                rpc_code::HOST_CALL_FAILED,
                format!("{HOST_CALLS_MAX} host/calls of this plugin are already in flight"),
            ));
        }
        let parent = self.calls.meant(params.call_id.as_ref()).map_err(invalid)?;
        let mut call = HostCall {
            plugin: self.plugin.clone(),
            belongs_to: None,
            lineage: Lineage::default(),
            deadline: None,
            operation: params.operation.into_owned(),
            arguments: params.arguments.map(ToOwned::to_owned),
            session: None,
            traceparent: None,
        };
        let parent_ended = parent.map(|parent| {
            call.belongs_to = Some(parent.call_id.clone());
            call.lineage = parent.lineage.clone();
            call.deadline = Some(parent.ends(Instant::now()).clone());
            call.session.clone_from(&parent.session);
            call.traceparent.clone_from(&parent.traceparent);
            parent.host_calls.hold()
        });
        let answered = self.host.call(call);
        self.answer_later(id, async move { unless_over(answered, parent_ended).await.map(HostResult::Call) });
        Ok(())
    }

    fn host_ask(&mut self, id: &RawValue, params: HostAskParams) -> Result<(), RpcError> {
        let questions = well_formed(params.questions)?;
        if self.calls.open_asks() >= ASKS_MAX {
            let data = ErrorData { name: Some("too_many_questions".into()), ..ErrorData::default() };
            return Err(RpcError {
                code: rpc_code::HOST_ASK_FAILED,
                message: format!("{ASKS_MAX} host/asks of this plugin wait for their answers already"),
                data: to_raw_value(&data).ok(),
            });
        }
        let call = self.calls.meant(params.call_id.as_ref()).map_err(invalid)?;
        let call = call.ok_or_else(|| {
            invalid("host/ask belongs to a call, and none is in flight: there is nobody behind it to ask")
        })?;
        if call.cancelled.is_some() {
            return Err(over());
        }
        let ask = HostAsk { plugin: self.plugin.clone(), call_id: call.call_id.clone(), questions };
        let held = Held::clocks_of(&call.lineage);
        let call_ended = call.asks.hold();
        let answered = self.host.ask(ask);
        self.answer_later(id, async move {
            let outcome = unless_over(answered, Some(call_ended)).await.map(HostResult::Ask);
            drop(held);
            outcome
        });
        Ok(())
    }

    /// Sends an answer back once it is there.
    fn answer_later(
        &mut self,
        id: &RawValue,
        outcome: impl Future<Output = Result<HostResult, RpcError>> + Send + 'static,
    ) {
        let id = id.to_owned();
        self.requests.spawn(async move { HostAnswer { id, outcome: outcome.await } });
    }

    /// Sends back what another plugin or a person answered.
    pub(super) fn send_host_answer(&mut self, answer: HostAnswer) {
        match answer.outcome {
            Ok(result) => self.answer_plugin(&answer.id, Ok(&result)),
            Err(error) => self.answer_plugin(&answer.id, Err(error)),
        }
    }

    fn answer_plugin(&mut self, id: &RawValue, outcome: Result<&HostResult, RpcError>) {
        let buffer = self.outbound.buffer();
        let before = buffer.len();
        let written = match &outcome {
            Ok(result) => write_result(buffer, id, result),
            Err(error) => write_error(buffer, id, error),
        };
        if buffer.len() - before > self.settings.frame_limit {
            buffer.truncate(before);
            let message =
                format!("the answer is above the frame limit of {} bytes", self.settings.frame_limit);
            return self.answer_plugin(id, Err(RpcError::new(rpc_code::HOST_CALL_FAILED, message)));
        }
        if let Err(error) = written {
            tracing::error!(plugin = %self.plugin, %error, "an answer cannot be written");
        }
    }
}

/// Waits for an outcome, at most until the call it belongs to is over.
async fn unless_over<T>(
    outcome: impl Future<Output = Result<T, RpcError>>,
    ended: Option<oneshot::Receiver<Infallible>>,
) -> Result<T, RpcError> {
    let ended = async {
        match ended {
            Some(ended) => drop(ended.await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        outcome = outcome => outcome,
        () = ended => Err(over()),
    }
}

fn over() -> RpcError {
    RpcError::new(rpc_code::CANCELLED, "the call that this one belongs to is over")
}

fn invalid(message: &str) -> RpcError {
    RpcError::new(rpc_code::INVALID_PARAMS, message)
}

/// The questions with their prompts clipped, where they can be asked.
fn well_formed(mut questions: Vec<Question>) -> Result<Vec<Question>, RpcError> {
    if questions.is_empty() || questions.len() > QUESTIONS_MAX {
        let count = questions.len();
        return Err(invalid(&format!("questions: expected 1 to {QUESTIONS_MAX}, got {count}")));
    }
    let mut seen = BTreeSet::new();
    for question in &mut questions {
        let name = &question.name;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(plain) {
            let name = clip(name.clone(), NAME_MAX);
            return Err(invalid(&format!(
                "questions: a name is 1 to {NAME_MAX} letters, digits, '_', '-' and '.', got {name:?}"
            )));
        }
        if !seen.insert(name.clone()) {
            return Err(invalid(&format!("questions: the name {name:?} is given twice")));
        }
        question.prompt = clip(std::mem::take(&mut question.prompt), PROMPT_MAX_CHARS);
    }
    Ok(questions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<Question> {
        let question = |name: &&str| Question {
            name: (*name).to_owned(),
            schema: None,
            prompt: "?".repeat(10_000),
            sensitive: false,
        };
        names.iter().map(question).collect()
    }

    #[test]
    fn questions_are_bounded_and_told_apart_by_name() {
        let asked = well_formed(named(&["user.name", "pass-word_2"])).unwrap();
        assert!(asked.iter().all(|question| question.prompt.chars().count() < 2_100));
        let many: Vec<String> = (0..=QUESTIONS_MAX).map(|index| index.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for bad in [&many[..], &[], &[""], &["a b"], &["a", "a"], &["\u{1b}[2J"], &["é"]] {
            let error = well_formed(named(bad)).unwrap_err();
            assert_eq!(error.code, rpc_code::INVALID_PARAMS, "{bad:?}");
        }
    }
}
