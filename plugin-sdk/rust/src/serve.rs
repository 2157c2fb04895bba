//! The conversation: reads the host's messages, runs calls, answers.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use plugd_protocol::Manifest;
use plugd_protocol::error::{RpcError, rpc_code};
use plugd_protocol::frame::{DEFAULT_FRAME_LIMIT, Frame};
use plugd_protocol::message::{self, Message};
use plugd_protocol::negotiation::{Offer, PROTOCOL_VERSIONS};
use plugd_protocol::plugin::{CallParams, CancelParams, InitParams, ReloadParams, ShutdownParams, method};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::calls::{Call, Calls, Entered};
use crate::context::Context;
use crate::error::Error;
use crate::guard::guarded;
use crate::init::{InitContext, Logger};
use crate::operation::{Asked, Run};
use crate::plugin::{Init, Plugin, Reload, Shutdown};
use crate::telling::{Origin, tell_fault};
use crate::turns::{Input, Turns};
use crate::wire::{HostAnswer, Wire, lock};

/// After the end of input, answers that are nearly there still go out: for a conversation piped in
/// by hand. A host that is gone is noticed by the first write.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Room for answers that a thread keeps: what the largest of them took beyond it is given back.
const LINE_KEPT: usize = 1024 * 1024;

/// A plugin in conversation with its host.
pub(crate) struct Session<S>(Arc<Inner<S>>);

struct Inner<S> {
    wire: Arc<Wire>,
    turns: Turns,
    calls: Calls,
    manifest: Manifest,
    operations: Vec<(String, Run<S>)>,
    init: Init<S>,
    reload: Option<Reload<S>>,
    shutdown: Option<Shutdown<S>>,
    state: Mutex<State<S>>,
    state_changed: Condvar,
    /// Whether a `shutdown` has come.
    is_closing: AtomicBool,
}

enum State<S> {
    Unopened,
    Opening,
    Open(Arc<S>),
    Closed,
}

impl<S: Send + Sync + 'static> Session<S> {
    pub(crate) fn new(plugin: Plugin<S>, manifest: Manifest, input: OwnedFd, wire: Wire) -> Session<S> {
        let lanes = manifest.features.concurrency;
        let Plugin { operations, init, ready, reload, shutdown, .. } = plugin;
        Session(Arc::new(Inner {
            turns: Turns::new(input, lanes, wire.standby()),
            calls: Calls::new(lanes),
            wire: Arc::new(wire),
            manifest,
            operations: operations.into_iter().map(|operation| (operation.name, operation.run)).collect(),
            init,
            reload,
            shutdown,
            state: Mutex::new(ready.map_or(State::Unopened, |state| State::Open(Arc::new(state)))),
            state_changed: Condvar::new(),
            is_closing: AtomicBool::new(false),
        }))
    }

    /// Reads and works until the input ends.
    pub(crate) fn serve(self) {
        if !self.call_for_help() {
            self.work();
        }
        self.0.calls.wait_for_end();
        self.0.calls.wait_until_open_are(0, LAST_WORDS);
    }

    /// Starts a thread to read, if there should be one more; `false` where it could not be had.
    fn call_for_help(&self) -> bool {
        if !self.0.turns.wants_a_thread() {
            return true;
        }
        let session = Session(Arc::clone(&self.0));
        let spawned = std::thread::Builder::new().name("calls".to_owned()).spawn(move || session.work());
        if let Err(error) = &spawned {
            // What the host says is then heard only between calls.
            self.0.turns.had_no_thread();
            complain(&format!("cannot start a thread: {error}"));
        }
        spawned.is_ok()
    }

    /// One of the threads: reads when it is its turn, and runs the call that it read.
    fn work(&self) {
        let mut line = Vec::new();
        while let Some(mut input) = self.0.turns.next() {
            let mut call = self.read_a_call(&mut input);
            drop(input);
            if call.is_some() {
                self.call_for_help();
            }
            while let Some(running) = call {
                self.0.turns.run(|| self.0.run(&running, &mut line));
                call = self.0.calls.leave(running.context.call_id());
            }
        }
    }

    /// Reads until there is a call to be run, or nothing more to be read.
    fn read_a_call(&self, input: &mut Input) -> Option<Call> {
        loop {
            while let Some(frame) = input.decoder.next_frame() {
                if let Some(call) = self.take(frame) {
                    return Some(call);
                }
            }
            if !input.fill() {
                let last = input.decoder.finish().and_then(|frame| self.take(frame));
                self.0.wire.no_more_answers();
                self.0.calls.end();
                self.0.turns.end();
                return last;
            }
        }
    }

    /// Handles a message; gives the call in it, if it is this thread's to run.
    fn take(&self, frame: Frame<'_>) -> Option<Call> {
        let line = match frame {
            Frame::Line(line) => line,
            Frame::TooLong { head } => {
                self.refuse_too_long(head);
                return None;
            }
        };
        if let Some((id, params)) = call_at_once(line) {
            return self.0.call(id, params);
        }
        match Message::parse(line) {
            Ok(Message::Request { id, method, params }) => return self.request(id, &method, params),
            Ok(Message::Notification { method, params }) => self.0.notification(&method, params),
            Ok(Message::Response { id, answer }) => self.0.response(line, id, answer.err()),
            Err(error) => complain(&format!("skipped a line from the host: {error}")),
        }
        None
    }

    fn refuse_too_long(&self, head: &[u8]) {
        let text = format!("a message of more than {DEFAULT_FRAME_LIMIT} bytes cannot be read");
        complain(&text);
        let id = message::id_in_head(head).and_then(|id| RawValue::from_string(id.to_string()).ok());
        if let Some(id) = id {
            self.0.wire.refuse(&id, &RpcError::new(rpc_code::INVALID_PARAMS, text));
        }
    }

    fn request(&self, id: &RawValue, method: &str, params: Option<&RawValue>) -> Option<Call> {
        let wire = &self.0.wire;
        let outcome = match method {
            method::CALL => match parse(method, params) {
                Ok(params) => return self.0.call(id.to_owned(), params),
                Err(error) => Err(error),
            },
            method::DESCRIBE => self.0.describe(params).map(|()| wire.answer(id, &self.0.manifest)),
            method::PING => {
                wire.answer(id, &Nothing {});
                Ok(())
            }
            method::INIT => self.init(id, params),
            method::RELOAD if self.0.reload.is_some() => self.reload(id, params),
            method::SHUTDOWN => self.shutdown(id, params),
            _ => {
                let text = format!("{} does not know the method {method:?}", self.0.manifest.name);
                Err(RpcError::new(rpc_code::METHOD_NOT_FOUND, text))
            }
        };
        if let Err(error) = outcome {
            wire.refuse(id, &error);
        }
        None
    }

    fn init(&self, id: &RawValue, params: Option<&RawValue>) -> Result<(), RpcError> {
        let params: InitParams = parse(method::INIT, params)?;
        self.0.wire.set_log_level(params.log_level);
        self.0.set_state(State::Opening);
        let (inner, id) = (Arc::clone(&self.0), id.to_owned());
        self.beside("init", move || {
            let logger = Logger::new(Arc::clone(&inner.wire));
            let context = InitContext { logger, data_dir: params.data_dir, locale: params.locale };
            match guarded("init", |text| inner.tell_fault(text), || (inner.init)(&params.config, &context)) {
                // Said first: calls that are there already wait for the state.
                Ok(state) => {
                    inner.wire.answer(&id, &Nothing {});
                    inner.set_state(State::Open(Arc::new(state)));
                }
                Err(error) => {
                    inner.wire.refuse(&id, &error.to_rpc());
                    inner.set_state(State::Unopened);
                }
            }
        })
    }

    fn reload(&self, id: &RawValue, params: Option<&RawValue>) -> Result<(), RpcError> {
        let params: ReloadParams = parse(method::RELOAD, params)?;
        let (inner, id) = (Arc::clone(&self.0), id.to_owned());
        self.beside("reload", move || {
            let applied = inner.opened().and_then(|state| {
                let Some(apply) = &inner.reload else { return Ok(()) };
                guarded("reload", |text| inner.tell_fault(text), || apply(&params.config, &state))
            });
            match applied {
                Ok(()) => inner.wire.answer(&id, &Nothing {}),
                Err(error) => inner.wire.refuse(&id, &error.to_rpc()),
            }
        })
    }

    fn shutdown(&self, id: &RawValue, params: Option<&RawValue>) -> Result<(), RpcError> {
        if self.0.is_closing.swap(true, Ordering::Relaxed) {
            // It is under way already, and ends the process.
            self.0.wire.answer(id, &Nothing {});
            return Ok(());
        }
        let grace = parse::<ShutdownParams<'_>>(method::SHUTDOWN, params)
            .map_or(LAST_WORDS, |params| Duration::from_millis(params.grace_ms));
        let (inner, id) = (Arc::clone(&self.0), id.to_owned());
        self.beside("shutdown", move || {
            // Half of it for the calls, half for the release; this one is open itself.
            inner.calls.wait_until_open_are(1, grace / 2);
            let state = std::mem::replace(&mut *lock(&inner.state), State::Closed);
            let released = guarded(
                "shutdown",
                |text| inner.tell_fault(text),
                || {
                    let State::Open(state) = state else { return Ok(()) };
                    inner.shutdown.as_ref().map_or(Ok(()), |release| release(&state))
                },
            );
            match released {
                Ok(()) => inner.wire.answer(&id, &Nothing {}),
                Err(error) => inner.wire.refuse(&id, &error.to_rpc()),
            }
            inner.wire.leave();
        })
    }

    /// Works on a request on a thread of its own, so that the reading goes on.
    fn beside(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), RpcError> {
        let inner = Arc::clone(&self.0);
        self.0.calls.begin_beside();
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            work();
            inner.calls.end_beside();
        });
        spawned.map(drop).map_err(|error| {
            self.0.calls.end_beside();
            RpcError::new(rpc_code::INTERNAL, format!("cannot start a thread: {error}"))
        })
    }
}

impl<S> Inner<S> {
    /// Takes a call; gives it back if it is to be run by this thread.
    fn call(&self, id: Box<RawValue>, params: CallParams<'_>) -> Option<Call> {
        let CallParams { operation, arguments, context } = params;
        let Some(at) = self.operations.iter().position(|(name, _)| *name == *operation) else {
            self.wire.refuse(&id, &self.no_such_operation(&operation));
            return None;
        };
        let context = Context::new(Arc::clone(&self.wire), context);
        let call = Call { id, operation: at, arguments: arguments.to_owned(), context };
        match self.calls.enter(call) {
            Entered::Runs(call) => Some(call),
            Entered::Waits => None,
            Entered::Refused(call) => {
                let error = Error::new("overloaded", "too many calls at once").retryable();
                self.wire.refuse(&call.id, &error.to_rpc());
                None
            }
        }
    }

    fn no_such_operation(&self, operation: &str) -> RpcError {
        let names: Vec<&str> = self.operations.iter().map(|(name, _)| name.as_str()).collect();
        let text = format!(
            "{} has no operation {operation:?}; it has {}",
            self.manifest.name,
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        );
        RpcError::new(rpc_code::METHOD_NOT_FOUND, text)
    }

    /// Checks that host and plugin have a protocol version in common.
    fn describe(&self, params: Option<&RawValue>) -> Result<(), RpcError> {
        #[derive(Deserialize)]
        struct OfferOnly {
            protocol: Offer,
        }
        // Someone who asks by hand may offer nothing; the manifest says what is spoken here.
        let Ok(OfferOnly { protocol }) = parse(method::DESCRIBE, params) else { return Ok(()) };
        self.wire.set_offered(&protocol.features);
        if protocol.pick(PROTOCOL_VERSIONS).is_some() {
            return Ok(());
        }
        let host_is_older =
            protocol.versions.iter().all(|version| PROTOCOL_VERSIONS.iter().all(|ours| version < ours));
        let advice = if host_is_older { "upgrade plugd" } else { "upgrade the plugin" };
        let text = format!(
            "the plugin speaks protocol version {} and the host speaks {}: {advice}",
            listed(PROTOCOL_VERSIONS),
            listed(&protocol.versions)
        );
        Err(Error::coded(rpc_code::INVALID_PARAMS, text).to_rpc())
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        if method == method::CANCEL
            && let Ok(CancelParams { call_id }) = parse(method, params)
        {
            self.calls.of_id(&call_id).iter().for_each(Context::cancel);
        }
    }

    fn response(&self, line: &[u8], id: Option<&RawValue>, error: Option<RpcError>) {
        let Some(id) = id.and_then(message::host_id) else { return };
        let answer = match (error, message::whole_result(line)) {
            (Some(error), _) => HostAnswer::Error(error),
            (None, Ok(whole)) => HostAnswer::Result(whole.to_owned()),
            (None, Err(error)) => HostAnswer::Error(RpcError::new(rpc_code::INTERNAL, error.to_string())),
        };
        self.wire.answered(id, answer);
    }

    /// Runs a call to its answer; `line` is room for it.
    fn run(&self, call: &Call, line: &mut Vec<u8>) {
        let Call { id, operation, arguments, context } = call;
        let (name, run) = &self.operations[*operation];
        let written = self.opened().and_then(|state| {
            let tell = |text: &str| context.tell_fault(text);
            guarded(name, tell, || run(Asked { id, arguments }, &state, context, line))
        });
        match written {
            Ok(()) => self.wire.answer_line(id, line),
            Err(error) => self.wire.refuse(id, &error.to_rpc()),
        }
        line.clear();
        line.shrink_to(LINE_KEPT);
    }

    /// Tells the log of a fault in a hook.
    fn tell_fault(&self, text: &str) {
        tell_fault(&self.wire, Origin::default(), text);
    }

    /// The state, once an `init` under way has ended.
    fn opened(&self) -> Result<Arc<S>, Error> {
        let opening = |state: &mut State<S>| matches!(state, State::Opening);
        let state = self.state_changed.wait_while(lock(&self.state), opening);
        match &*state.unwrap_or_else(PoisonError::into_inner) {
            State::Open(state) => Ok(Arc::clone(state)),
            State::Unopened | State::Opening => {
                Err(Error::new("not_initialised", "the plugin has not been initialised: send init first"))
            }
            State::Closed => Err(Error::new("shutting_down", "the plugin is shutting down").retryable()),
        }
    }

    fn set_state(&self, state: State<S>) {
        *lock(&self.state) = state;
        self.state_changed.notify_all();
    }
}

/// A call that is spelt as most are, read in one go; any other spelling takes the long way.
fn call_at_once(line: &[u8]) -> Option<(Box<RawValue>, CallParams<'_>)> {
    let (id, method, rest) = message::request_front(line)?;
    if method != method::CALL {
        return None;
    }
    let mut params = serde_json::Deserializer::from_str(rest).into_iter();
    let read = params.next()?.ok()?;
    (&rest[params.byte_offset()..] == "}").then_some((id.to_owned(), read))
}

/// An empty object.
#[derive(serde::Serialize)]
struct Nothing {}

fn listed(versions: &[u32]) -> String {
    versions.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

fn parse<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, RpcError> {
    let json = params.map_or("{}", RawValue::get);
    serde_json::from_str(json)
        .map_err(|error| RpcError::new(rpc_code::INVALID_PARAMS, format!("the params of {method}: {error}")))
}

fn complain(text: &str) {
    // On a line of its own, whatever was printed last. Where even stderr is gone, nobody is left to be told.
    drop(writeln!(io::stderr(), "\n{text}"));
}
