//! The host's end of the pipes: what it sends, and what it makes of what comes.

use std::collections::HashMap;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use plugd_protocol::CallId;
use plugd_protocol::error::{RpcError, rpc_code};
use plugd_protocol::frame::{DEFAULT_FRAME_LIMIT, Decoder, Frame};
use plugd_protocol::message::{self, Message};
use plugd_protocol::plugin::{
    HostAskParams, HostCallParams, LogParams, PartialParams, ProgressParams, Question, method,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::reply::{Progress, TestReply};
use crate::error::Error;
use crate::wire::lock;

/// A test that waits longer than this has found a plugin that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What another plugin is played by: arguments in, data out.
pub(super) type OtherPlugin = Box<dyn FnMut(Value) -> Result<Value, Error> + Send>;

/// The host's end, as the test's threads share it.
pub(super) struct Shared {
    /// `None` once the host has hung up.
    to_plugin: Mutex<Option<PipeWriter>>,
    /// By the id of the request, in flight or over.
    requests: Mutex<HashMap<u64, TestReply>>,
    changed: Condvar,
    pub(super) others: Mutex<HashMap<String, OtherPlugin>>,
    pub(super) person: Mutex<Option<Person>>,
}

/// Whom the questions are put to: a name and a prompt in, an answer out.
pub(super) type Person = Box<dyn FnMut(&str, &str) -> Result<Value, Error> + Send>;

impl Shared {
    pub(super) fn new(to_plugin: PipeWriter) -> Shared {
        Shared {
            to_plugin: Mutex::new(Some(to_plugin)),
            requests: Mutex::new(HashMap::new()),
            changed: Condvar::new(),
            others: Mutex::new(HashMap::new()),
            person: Mutex::new(None),
        }
    }

    /// Closes the pipe to the plugin.
    pub(super) fn hang_up(&self) {
        *lock(&self.to_plugin) = None;
    }

    pub(super) fn send_request(&self, id: u64, method: &str, params: &Value) {
        lock(&self.requests).insert(id, TestReply::default());
        let mut line = Vec::new();
        message::write_request(&mut line, id, method, params).expect("a JSON value is JSON");
        self.send(&line);
    }

    pub(super) fn send_notification(&self, method: &str, params: &Value) {
        let mut line = Vec::new();
        message::write_notification(&mut line, method, params).expect("a JSON value is JSON");
        self.send(&line);
    }

    /// A plugin that hung up is noticed by whoever waits for its answer.
    fn send(&self, line: &[u8]) {
        if let Some(to_plugin) = lock(&self.to_plugin).as_mut() {
            drop(to_plugin.write_all(line));
        }
    }

    pub(super) fn wait(&self, id: u64, until: impl Fn(&TestReply) -> bool) -> TestReply {
        let not_yet = |requests: &mut HashMap<u64, TestReply>| !requests.get(&id).is_some_and(&until);
        let waited = self.changed.wait_timeout_while(lock(&self.requests), PATIENCE, not_yet);
        let (requests, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "the plugin did not answer within {PATIENCE:?}");
        requests.get(&id).cloned().unwrap_or_default()
    }

    pub(super) fn listen(&self, mut from_plugin: PipeReader) {
        let mut decoder = Decoder::new(DEFAULT_FRAME_LIMIT);
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from_plugin.read(&mut chunk) {
            decoder.push(&chunk[..length]);
            while let Some(frame) = decoder.next_frame() {
                if let Frame::Line(line) = frame {
                    self.take(line);
                }
            }
        }
    }

    fn take(&self, line: &[u8]) {
        match Message::parse(line) {
            Ok(Message::Response { id: Some(id), answer }) => {
                self.response(message::host_id(id), line, answer.err());
            }
            Ok(Message::Notification { method, params }) => self.notification(&method, params),
            Ok(Message::Request { id, method, params }) => self.request(id, &method, params),
            Ok(Message::Response { id: None, .. }) | Err(_) => {}
        }
    }

    fn response(&self, id: Option<u64>, line: &[u8], error: Option<RpcError>) {
        let whole = message::whole_result(line).ok().and_then(|raw| serde_json::from_str(raw.get()).ok());
        self.record(id, |reply| match (error, whole) {
            (Some(error), _) => reply.result = Some(Err(Error::from_rpc(error))),
            (None, whole) => {
                let mut whole: Value = whole.unwrap_or_default();
                reply.summary = whole.get("summary").and_then(Value::as_str).map(str::to_owned);
                reply.next_actions =
                    whole.get("next_actions").and_then(Value::as_array).cloned().unwrap_or_default();
                reply.result = Some(Ok(whole.get_mut("data").map(Value::take).unwrap_or(whole)));
            }
        });
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        let json = params.map_or("{}", RawValue::get);
        let id = |call_id: Option<CallId>| call_id.and_then(|call_id| call_id.as_str().parse().ok());
        match method {
            method::LOG => {
                let Ok(log) = serde_json::from_str::<LogParams<'_>>(json) else { return };
                self.record(id(log.call_id), |reply| reply.logs.push((log.level, log.message.into())));
            }
            method::PROGRESS => {
                let Ok(progress) = serde_json::from_str::<ProgressParams<'_>>(json) else { return };
                let ProgressParams { call_id, done, total, message } = progress;
                let message = message.map(Into::into);
                self.record(id(call_id), |reply| reply.progress.push(Progress { done, total, message }));
            }
            method::PARTIAL => {
                let Ok(partial) = serde_json::from_str::<PartialParams<'_>>(json) else { return };
                let piece = serde_json::from_str(partial.data.get()).unwrap_or_default();
                self.record(id(Some(partial.call_id)), |reply| reply.partials.push(piece));
            }
            _ => {}
        }
    }

    fn request(&self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        let params = params.map_or("{}", RawValue::get);
        let (answer, code) = match method {
            method::HOST_ASK => (self.ask(params), rpc_code::HOST_ASK_FAILED),
            _ => (self.answer(params), rpc_code::HOST_CALL_FAILED),
        };
        let mut line = Vec::new();
        match answer {
            Ok(result) => message::write_result(&mut line, id, &result),
            Err(error) => message::write_error(&mut line, id, &RpcError { code, ..error.to_rpc() }),
        }
        .expect("a JSON value is JSON");
        self.send(&line);
    }

    fn ask(&self, params: &str) -> Result<Value, Error> {
        let params: HostAskParams = serde_json::from_str(params)?;
        let mut person = lock(&self.person);
        let person = person.as_mut().ok_or_else(|| {
            Error::new("nobody_to_ask", "this test plays nobody to ask: see Host::answer_asks")
        })?;
        let answer =
            |question: Question| Ok((question.name.clone(), person(&question.name, &question.prompt)?));
        let answers: serde_json::Map<_, _> =
            params.questions.into_iter().map(answer).collect::<Result<_, Error>>()?;
        Ok(json!({ "answers": answers }))
    }

    fn answer(&self, params: &str) -> Result<Value, Error> {
        let params: HostCallParams<'_> = serde_json::from_str(params)?;
        let arguments = params.arguments.map_or(Ok(json!({})), |raw| serde_json::from_str(raw.get()))?;
        let mut others = lock(&self.others);
        let other = others.get_mut(&*params.operation).ok_or_else(|| {
            Error::message(format!("this test plays no {}: see Host::answer_call", params.operation))
        })?;
        Ok(json!({"data": other(arguments)?, "call_id": "inner"}))
    }

    fn record(&self, id: Option<u64>, change: impl FnOnce(&mut TestReply)) {
        let mut requests = lock(&self.requests);
        if let Some(reply) = id.and_then(|id| requests.get_mut(&id)) {
            change(reply);
            self.changed.notify_all();
        }
    }
}
