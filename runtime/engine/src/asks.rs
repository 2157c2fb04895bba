//! Questions to the person behind a call, from `host/ask` to the answer.
//!
//! A question waits under a token, in a table, while its call waits in the plugin. Whoever has the
//! token can answer; whoever made the outermost call is told of it. The plugin's clocks stand still
//! meanwhile, so what bounds the wait is `token_ttl`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plugd_protocol::control::{
    AnswerParams, AnswerReport, Ask, AskEnd, AskEnded, AskNotice, Event, UnixMillis,
};
use plugd_protocol::error::{ErrorData, ErrorKind, rpc_code};
use plugd_protocol::plugin::HostAskResult;
use plugd_protocol::{CallError, CallId, OperationId, RpcError};
use plugd_supervisor::driver::{HostAsk, unix_now};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::answers::Questions;
use crate::engine::{Engine, Shared};
use crate::events::happening;
use crate::failure::seconds;

/// The way to whoever made a call: its questions go into a channel.
///
/// What does not fit into the channel at once is not asked, and the plugin is told so. When the
/// channel is closed, what is open ends.
#[derive(Debug, Clone)]
pub struct Asker {
    notices: mpsc::Sender<AskNotice>,
    /// The call that was made, once it is known.
    outermost: Option<(CallId, OperationId)>,
}

impl Asker {
    /// Tells of questions through this channel.
    pub fn new(notices: mpsc::Sender<AskNotice>) -> Asker {
        Asker { notices, outermost: None }
    }

    /// The same way, seen from one of its calls.
    pub(crate) fn of_call(mut self, call_id: &CallId, operation: &OperationId) -> Asker {
        self.outermost.get_or_insert_with(|| (call_id.clone(), operation.clone()));
        self
    }
}

/// The questions that wait, by token. The lock is held for one operation on the table.
#[derive(Default)]
pub(crate) struct Asks(Mutex<HashMap<String, Open>>);

struct Open {
    call_id: CallId,
    questions: Arc<Questions>,
    reply: oneshot::Sender<Reply>,
}

/// Not `Debug`, for there may be secrets in it.
enum Reply {
    Answered(Map<String, Value>),
    Declined,
}

impl Asks {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Open>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self, token: &str) -> Result<Open, CallError> {
        self.with(|open| open.remove(token)).ok_or_else(unknown_token)
    }

    /// Answers, or declines, what waits under a token.
    fn answer(&self, params: AnswerParams) -> Result<AnswerReport, CallError> {
        let token = &params.token;
        let questions = self.with(|open| open.get(token).map(|open| Arc::clone(&open.questions)));
        let questions = questions.ok_or_else(unknown_token)?;
        let reply = match params.decline {
            true => Reply::Declined,
            false => Reply::Answered(questions.check(params.answers, params.answer)?),
        };
        // Two may answer at once: the first has it.
        let open = self.take(token)?;
        open.reply.send(reply).map_err(|_call_is_over| unknown_token())?;
        Ok(AnswerReport { call_id: open.call_id })
    }
}

impl Engine {
    /// Answers questions that wait, or declines them.
    ///
    /// # Errors
    /// 1007 where nothing waits under the token, 2001 where an answer does not fit: then the
    /// questions wait on.
    pub fn answer(&self, params: AnswerParams) -> Result<AnswerReport, CallError> {
        self.shared().asks.answer(params)
    }

    /// Asks whoever made the call that a plugin works for.
    pub(crate) async fn ask_for_plugin(&self, ask: HostAsk) -> Result<HostAskResult, RpcError> {
        let shared = self.shared();
        let behind = shared.calls.behind(&ask.call_id);
        let Some((operation, Some(asker))) = behind else { return Err(nobody_to_ask()) };
        let limits = self.config().plugins.get(&ask.plugin).map(|plugin| plugin.limits);
        let wait = limits.unwrap_or(self.config().limits).token_ttl;
        let names = ask.questions.iter().map(|question| question.name.clone()).collect();
        let questions = Questions::compile(&ask.questions)
            .map_err(|problem| RpcError::new(rpc_code::INVALID_PARAMS, problem))?;

        let (reply, replied) = oneshot::channel();
        let (call_id, called) =
            asker.outermost.clone().unwrap_or_else(|| (ask.call_id.clone(), operation.clone()));
        let token = Uuid::new_v4().to_string();
        let open = Open { call_id: call_id.clone(), questions: Arc::new(questions), reply };
        shared.asks.with(|asks| asks.insert(token.clone(), open));
        let notice = AskNotice::Asked(Ask {
            token: token.clone(),
            call_id,
            asked_by: (called != operation).then(|| operation.clone()),
            operation: called,
            questions: ask.questions,
            expires: later(wait),
        });
        if asker.notices.try_send(notice).is_err() {
            shared.asks.with(|asks| asks.remove(&token));
            return Err(nobody_to_ask());
        }
        let mut waiting = Waiting {
            shared,
            notices: &asker.notices,
            ended: AskEnd::Cancelled,
            call_id: ask.call_id,
            token,
            operation,
        };
        waiting.tell_asked(names);
        let replied = tokio::select! {
            replied = replied => replied,
            () = tokio::time::sleep(wait) => {
                waiting.ended = AskEnd::Expired;
                let message = format!("nobody answered within {}", seconds(wait));
                return Err(failed("expired", &message, "call again, and answer sooner or raise token_ttl"));
            }
            () = asker.notices.closed() => return Err(nobody_to_ask()),
        };
        match replied {
            Ok(Reply::Answered(answers)) => {
                waiting.ended = AskEnd::Answered;
                Ok(HostAskResult { answers })
            }
            Ok(Reply::Declined) => {
                waiting.ended = AskEnd::Declined;
                let message = "whoever was asked will not answer";
                Err(failed("declined", message, "call again, and answer what it asks"))
            }
            Err(_table_dropped) => Err(nobody_to_ask()),
        }
    }
}

/// Questions that wait, until this is dropped: by the reply, by time, or with their call.
struct Waiting<'a> {
    shared: &'a Shared,
    notices: &'a mpsc::Sender<AskNotice>,
    ended: AskEnd,
    token: String,
    call_id: CallId,
    operation: OperationId,
}

impl Waiting<'_> {
    fn tell_asked(&self, names: Vec<String>) {
        self.shared.calls.set_asking(&self.call_id, true);
        self.tell("call.asked", None, Some(serde_json::json!({ "token": self.token, "questions": names })));
    }

    /// What is asked and answered concerns nobody else: an event has names only.
    fn tell(&self, kind: &'static str, reason: Option<&str>, detail: Option<Value>) {
        self.shared.events.emit(Event {
            plugin: Some(self.operation.plugin.clone()),
            operation: Some(self.operation.clone()),
            call_id: Some(self.call_id.clone()),
            reason: reason.map(ToOwned::to_owned),
            detail,
            ..happening(kind)
        });
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.asks.with(|asks| asks.remove(&self.token));
        self.shared.calls.set_asking(&self.call_id, false);
        let reason = match self.ended {
            AskEnd::Answered => None,
            AskEnd::Declined => Some("declined"),
            AskEnd::Expired => Some("expired"),
            AskEnd::Cancelled => Some("cancelled"),
        };
        self.tell("call.answered", reason, None);
        let ended = AskEnded { token: std::mem::take(&mut self.token), ended: self.ended };
        // A reader that is so far behind, or gone, has no use for it.
        let _behind = self.notices.try_send(AskNotice::Ended(ended));
    }
}

fn later(wait: Duration) -> UnixMillis {
    UnixMillis(unix_now().0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
}

fn unknown_token() -> CallError {
    let message = "no question waits under that token: it was answered, it has expired, or its call is over";
    CallError::new(ErrorKind::UnknownToken, message)
}

/// Why a plugin gets no answer.
///
/// The hint is for the caller: a plugin that cannot go on hands the error on as it got it.
fn failed(name: &str, message: &str, hint: &str) -> RpcError {
    let data = ErrorData { name: Some(name.to_owned()), hint: Some(hint.to_owned()), ..ErrorData::default() };
    RpcError { code: rpc_code::HOST_ASK_FAILED, message: message.to_owned(), data: to_raw_value(&data).ok() }
}

fn nobody_to_ask() -> RpcError {
    let hint = "call from a terminal with `plugd call`, or by a WebSocket that follows asks.subscribe, \
        with can_ask true";
    failed("nobody_to_ask", "there is nobody behind this call to ask", hint)
}
