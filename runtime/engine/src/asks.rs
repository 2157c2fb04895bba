//! Questions to the person behind a call, from who asks to the answer.
//!
//! A plugin asks by `host/ask`, the pipeline for what is missing and for consent. A question waits under
//! a token, in a table, while its call waits. Whoever has the token can answer; whoever made the
//! outermost call is told of it. The call's clocks stand still meanwhile, so what bounds the wait is
//! `token_ttl`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plugd_protocol::control::{
    AnswerParams, AnswerReport, Ask, AskEnd, AskEnded, AskNotice, AskProgress, Event, UnixMillis,
};
use plugd_protocol::error::{ErrorData, ErrorKind, rpc_code};
use plugd_protocol::plugin::{HostAskResult, Question};
use plugd_protocol::{CallError, CallId, OperationId, RpcError};
use plugd_supervisor::driver::{HostAsk, unix_now};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::answers::{Questions, completing, contradictory};
use crate::engine::{Engine, Shared};
use crate::events::happening;
use crate::failure::seconds;
use crate::registry::RegisteredOperation;

/// The name of the question whether a call may run.
pub(crate) const CONFIRM: &str = "confirm";

/// So many answers to what a call lacks may not fit; then it ends with what is wrong with the last.
const TRIES_MAX: u32 = 3;

/// The way to whoever made a call: its questions go into a channel, and where wanted its progress.
///
/// What does not fit into the channel at once is not asked, and the plugin is told so. When the
/// channel is closed, what is open ends.
#[derive(Debug, Clone)]
pub struct Asker {
    notices: mpsc::Sender<AskNotice>,
    can_ask: bool,
    progress: bool,
    /// The call that was made, once it is known.
    outermost: Option<(CallId, OperationId)>,
}

impl Asker {
    /// Tells of questions through this channel.
    pub fn new(notices: mpsc::Sender<AskNotice>) -> Asker {
        Asker { notices, can_ask: true, progress: false, outermost: None }
    }

    /// A way to whoever cannot be asked anything.
    pub fn silent(notices: mpsc::Sender<AskNotice>) -> Asker {
        Asker { can_ask: false, ..Asker::new(notices) }
    }

    /// The same way, which tells of progress, too.
    #[must_use]
    pub fn with_progress(self) -> Asker {
        Asker { progress: true, ..self }
    }

    /// Whether questions go this way.
    pub(crate) fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// Tells how far a call is, by the params of its plugin's `progress`.
    pub(crate) fn tell_progress(&self, call_id: &CallId, operation: OperationId, params: &str) {
        // Half of the room is for questions.
        if !self.progress || self.notices.capacity() <= self.notices.max_capacity() / 2 {
            return;
        }
        let Ok(progress) = serde_json::from_str(params) else { return };
        let call_id = self.outermost.as_ref().map_or(call_id, |(call_id, _)| call_id).clone();
        let notice = AskNotice::Progress(AskProgress { call_id, operation, progress });
        // The next one tells more.
        let _behind = self.notices.try_send(notice);
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
    check: Arc<Check>,
    /// How many answers that do not fit are still told to whoever gave them.
    tries: u32,
    reply: oneshot::Sender<Reply>,
}

/// What answers must be.
pub(crate) enum Check {
    /// Each one what its question wants.
    Each(Questions),
    /// All together what brings this call on.
    Arguments {
        /// The operation that is called.
        operation: Arc<RegisteredOperation>,
        /// The arguments as far as they are known.
        known: Box<RawValue>,
    },
}

/// Not `Debug`, for there may be secrets in it.
enum Reply {
    Answered(Map<String, Value>),
    Declined,
    /// Too many answers did not fit; why the last one did not.
    Wrong(CallError),
}

/// What is asked, on whose behalf, and whom.
pub(crate) struct Asking {
    /// The call that waits for it.
    pub(crate) call_id: CallId,
    /// What that call is of.
    pub(crate) operation: OperationId,
    pub(crate) asker: Asker,
    pub(crate) questions: Vec<Question>,
    pub(crate) check: Check,
    /// The final arguments, where it is asked whether to run with them.
    pub(crate) arguments: Option<Value>,
    /// How long it may wait.
    pub(crate) wait: Duration,
}

/// Why there is no answer.
pub(crate) enum NotAnswered {
    /// There is nobody to ask, or nobody any more.
    Nobody,
    /// Whoever was asked will not answer.
    Declined,
    /// Nobody answered in time.
    Expired,
    /// Too many answers did not fit.
    Wrong(CallError),
}

impl Check {
    /// The answers as whoever asked gets them.
    fn check(&self, params: &AnswerParams) -> Result<Map<String, Value>, CallError> {
        match self {
            Check::Each(questions) => {
                let mut answers = params.answers.clone();
                let agrees = params.confirm && questions.has(CONFIRM);
                if agrees && params.answer.is_none() && !answers.contains_key(CONFIRM) {
                    answers.insert(CONFIRM.to_owned(), true.into());
                }
                let answers = questions.check(answers, params.answer.clone())?;
                match answers.get(CONFIRM) {
                    Some(said) if agrees && said.as_bool() == Some(false) => Err(contradictory()),
                    Some(_) | None => Ok(answers),
                }
            }
            Check::Arguments { operation, known } => completing(operation, known, params),
        }
    }

    /// How many answers that do not fit are told to whoever gave them. A plugin's questions wait for as long as it does.
    fn tries(&self) -> u32 {
        match self {
            Check::Each(_) => u32::MAX,
            Check::Arguments { .. } => TRIES_MAX,
        }
    }
}

impl Asks {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Open>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self, token: &str) -> Result<Open, CallError> {
        self.with(|open| open.remove(token)).ok_or_else(unknown_token)
    }

    /// The call that waits under a token.
    pub(crate) fn waiting(&self, token: &str) -> Option<CallId> {
        self.with(|open| open.get(token).map(|open| open.call_id.clone()))
    }

    /// Answers, or declines, what waits under a token; none where nothing does here.
    pub(crate) fn answer(&self, params: &AnswerParams) -> Option<Result<AnswerReport, CallError>> {
        let token = &params.token;
        let check = self.with(|open| open.get(token).map(|open| Arc::clone(&open.check)))?;
        let reply = match params.decline {
            true => Ok(Reply::Declined),
            false => check.check(params).map(Reply::Answered),
        };
        Some(reply.map_or_else(|error| Err(self.wrong(token, error)), |reply| self.reply(token, reply)))
    }

    fn reply(&self, token: &str, reply: Reply) -> Result<AnswerReport, CallError> {
        // Two may answer at once: the first has it.
        let open = self.take(token)?;
        open.reply.send(reply).map_err(|_call_is_over| unknown_token())?;
        Ok(AnswerReport { call_id: open.call_id, result: None })
    }

    /// Counts an answer that does not fit; after too many of them the call is told instead.
    fn wrong(&self, token: &str, error: CallError) -> CallError {
        let last = self.with(|all| {
            let open = all.get_mut(token)?;
            open.tries = open.tries.saturating_sub(1);
            (open.tries == 0).then(|| all.remove(token)).flatten()
        });
        if let Some(open) = last {
            let _call_is_over =
                open.reply.send(Reply::Wrong(error.clone().hint(ErrorKind::InvalidArguments.hint())));
        }
        error
    }
}

impl Engine {
    /// Asks whoever made the call that a plugin works for.
    pub(crate) async fn ask_for_plugin(&self, ask: HostAsk) -> Result<HostAskResult, RpcError> {
        let behind = self.shared().calls.behind(&ask.call_id);
        let Some((operation, Some(asker))) = behind else { return Err(nobody_to_ask()) };
        let wait = self.token_ttl(&ask.plugin);
        let questions = Questions::compile(&ask.questions)
            .map_err(|problem| RpcError::new(rpc_code::INVALID_PARAMS, problem))?;
        let asking = Asking {
            call_id: ask.call_id,
            operation,
            asker,
            questions: ask.questions,
            check: Check::Each(questions),
            arguments: None,
            wait,
        };
        match self.ask(asking).await {
            Ok(answers) => Ok(HostAskResult { answers }),
            Err(NotAnswered::Declined) => {
                let message = "whoever was asked will not answer";
                Err(failed("declined", message, "call again, and answer what it asks"))
            }
            Err(NotAnswered::Expired) => {
                let message = format!("nobody answered within {}", seconds(wait));
                Err(failed("expired", &message, "call again, and answer sooner or raise token_ttl"))
            }
            Err(NotAnswered::Nobody | NotAnswered::Wrong(_)) => Err(nobody_to_ask()),
        }
    }

    /// Asks whoever made a call, and waits for the answer.
    ///
    /// # Cancel safety
    /// Dropping the future takes the questions back.
    pub(crate) async fn ask(&self, asking: Asking) -> Result<Map<String, Value>, NotAnswered> {
        let shared = self.shared();
        let Asking { call_id: waits, operation, asker, questions, check, arguments, wait } = asking;
        if !asker.can_ask() {
            return Err(NotAnswered::Nobody);
        }
        let names = questions.iter().map(|question| question.name.clone()).collect();
        let (reply, replied) = oneshot::channel();
        let (call_id, called) = asker.outermost.clone().unwrap_or_else(|| (waits.clone(), operation.clone()));
        let token = Uuid::new_v4().to_string();
        let tries = check.tries();
        let open = Open { call_id: call_id.clone(), check: Arc::new(check), tries, reply };
        shared.asks.with(|asks| asks.insert(token.clone(), open));
        let notice = AskNotice::Asked(Ask {
            token: token.clone(),
            call_id,
            asked_by: (called != operation).then(|| operation.clone()),
            operation: called,
            questions,
            arguments,
            expires: later(wait),
        });
        if asker.notices.try_send(notice).is_err() {
            shared.asks.with(|asks| asks.remove(&token));
            return Err(NotAnswered::Nobody);
        }
        let mut waiting = Waiting {
            shared,
            notices: &asker.notices,
            ended: AskEnd::Cancelled,
            call_id: waits,
            token,
            operation,
        };
        waiting.tell_asked(names);
        let replied = tokio::select! {
            replied = replied => replied,
            () = tokio::time::sleep(wait) => {
                waiting.ended = AskEnd::Expired;
                return Err(NotAnswered::Expired);
            }
            () = asker.notices.closed() => return Err(NotAnswered::Nobody),
        };
        match replied {
            Ok(Reply::Answered(answers)) => {
                waiting.ended = AskEnd::Answered;
                Ok(answers)
            }
            Ok(Reply::Declined) => {
                waiting.ended = AskEnd::Declined;
                Err(NotAnswered::Declined)
            }
            Ok(Reply::Wrong(error)) => Err(NotAnswered::Wrong(error)),
            Err(_table_dropped) => Err(NotAnswered::Nobody),
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

/// The moment that is so long from now.
pub(crate) fn later(wait: Duration) -> UnixMillis {
    UnixMillis(unix_now().0.saturating_add(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
}

pub(crate) fn unknown_token() -> CallError {
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
