//! The conversation: reads the host's messages, runs calls beside the reading, answers.

use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use plugd_protocol::error::{RpcError, rpc_code};
use plugd_protocol::frame::{DEFAULT_FRAME_LIMIT, Decoder, Frame};
use plugd_protocol::message::{self, Message};
use plugd_protocol::negotiation::{Offer, PROTOCOL_VERSIONS};
use plugd_protocol::plugin::{CallParams, CancelParams, InitParams, ReloadParams, ShutdownParams, method};
use plugd_protocol::{CallId, Manifest};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::context::{Context, InitContext};
use crate::error::Error;
use crate::operation::Run;
use crate::plugin::{Init, Plugin, Reload, Shutdown};
use crate::pool::Pool;
use crate::wire::{HostAnswer, Wire, lock};

/// Bytes asked for in one read.
const READ_SIZE: usize = 64 * 1024;

/// After the end of input, answers that are nearly there still go out: for a conversation piped in
/// by hand. A host that is gone is noticed by the first write.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// A plugin in conversation with its host.
pub(crate) struct Session<S>(Arc<Inner<S>>);

struct Inner<S> {
    wire: Arc<Wire>,
    manifest: Manifest,
    operations: Vec<(String, Run<S>)>,
    init: Init<S>,
    reload: Option<Reload<S>>,
    shutdown: Option<Shutdown<S>>,
    state: Mutex<State<S>>,
    state_changed: Condvar,
    active: Mutex<Vec<Context>>,
    /// Requests being worked on beside the reading.
    pending: Mutex<usize>,
    pending_changed: Condvar,
    pool: Pool,
}

enum State<S> {
    Unopened,
    Opening,
    Open(Arc<S>),
    Closed,
}

impl<S: Send + Sync + 'static> Session<S> {
    pub(crate) fn new(plugin: Plugin<S>, manifest: Manifest, wire: Wire) -> Session<S> {
        let lanes = manifest.features.concurrency;
        let Plugin { operations, init, ready, reload, shutdown, .. } = plugin;
        Session(Arc::new(Inner {
            wire: Arc::new(wire),
            manifest,
            operations: operations.into_iter().map(|operation| (operation.name, operation.run)).collect(),
            init,
            reload,
            shutdown,
            state: Mutex::new(ready.map_or(State::Unopened, |state| State::Open(Arc::new(state)))),
            state_changed: Condvar::new(),
            active: Mutex::new(Vec::new()),
            pending: Mutex::new(0),
            pending_changed: Condvar::new(),
            pool: Pool::new(lanes),
        }))
    }

    /// Reads until the input ends.
    pub(crate) fn serve(&self, mut input: impl Read) {
        let mut decoder = Decoder::new(DEFAULT_FRAME_LIMIT);
        let mut chunk = vec![0; READ_SIZE];
        loop {
            match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => decoder.push(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            }
            while let Some(frame) = decoder.next_frame() {
                self.take(frame);
            }
        }
        if let Some(frame) = decoder.finish() {
            self.take(frame);
        }
        self.0.wire.no_more_answers();
        self.0.wait_for_pending(LAST_WORDS);
    }

    fn take(&self, frame: Frame<'_>) {
        let line = match frame {
            Frame::Line(line) => line,
            Frame::TooLong { head } => return self.refuse_too_long(head),
        };
        match Message::parse(line) {
            Ok(Message::Request { id, method, params }) => self.request(id, &method, params),
            Ok(Message::Notification { method, params }) => self.0.notification(&method, params),
            Ok(Message::Response { id, answer }) => self.0.response(line, id, answer.err()),
            Err(error) => complain(&format!("skipped a line from the host: {error}")),
        }
    }

    fn refuse_too_long(&self, head: &[u8]) {
        let text = format!("a message of more than {DEFAULT_FRAME_LIMIT} bytes cannot be read");
        complain(&text);
        let id = message::id_in_head(head).and_then(|id| RawValue::from_string(id.to_string()).ok());
        if let Some(id) = id {
            self.0.wire.refuse(&id, &RpcError::new(rpc_code::INVALID_PARAMS, text));
        }
    }

    fn request(&self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        let wire = &self.0.wire;
        let outcome = match method {
            method::DESCRIBE => self.0.describe(params).map(|()| wire.answer(id, &self.0.manifest)),
            method::PING => {
                wire.answer(id, &Nothing {});
                Ok(())
            }
            method::CALL => self.call(id, params),
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
    }

    fn call(&self, id: &RawValue, params: Option<&RawValue>) -> Result<(), RpcError> {
        let CallParams { operation, arguments, context } = parse(method::CALL, params)?;
        let at = self.0.operations.iter().position(|(name, _)| *name == *operation);
        let Some(at) = at else {
            let names: Vec<&str> = self.0.operations.iter().map(|(name, _)| name.as_str()).collect();
            let text = format!(
                "{} has no operation {operation:?}; it has {}",
                self.0.manifest.name,
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            );
            return Err(RpcError::new(rpc_code::METHOD_NOT_FOUND, text));
        };
        let (id, arguments) = (id.to_owned(), arguments.to_owned());
        let context = Context::new(Arc::clone(&self.0.wire), context);
        lock(&self.0.active).push(context.clone());
        let inner = Arc::clone(&self.0);
        let call_id = context.call_id().clone();
        self.0.begin();
        let taken = self.0.pool.run(Box::new(move || {
            let reply = inner.run(at, &arguments, &context);
            inner.leave_active(context.call_id());
            match reply {
                Ok(reply) => inner.wire.answer(&id, &reply),
                Err(error) => inner.wire.refuse(&id, &error.to_rpc()),
            }
            drop(context);
            inner.end();
        }));
        if !taken {
            self.0.leave_active(&call_id);
            self.0.end();
            let error = Error::new("overloaded", "too many calls at once").retryable();
            return Err(error.to_rpc());
        }
        Ok(())
    }

    fn init(&self, id: &RawValue, params: Option<&RawValue>) -> Result<(), RpcError> {
        let params: InitParams = parse(method::INIT, params)?;
        self.0.wire.set_log_level(params.log_level);
        self.0.set_state(State::Opening);
        let (inner, id) = (Arc::clone(&self.0), id.to_owned());
        self.beside("init", move || {
            let context = InitContext {
                wire: Arc::clone(&inner.wire),
                data_dir: params.data_dir,
                locale: params.locale,
            };
            match guarded("init", || (inner.init)(&params.config, &context)) {
                Ok(state) => {
                    inner.set_state(State::Open(Arc::new(state)));
                    inner.wire.answer(&id, &Nothing {});
                }
                Err(error) => {
                    inner.set_state(State::Unopened);
                    inner.wire.refuse(&id, &error.to_rpc());
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
                guarded("reload", || apply(&params.config, &state))
            });
            match applied {
                Ok(()) => inner.wire.answer(&id, &Nothing {}),
                Err(error) => inner.wire.refuse(&id, &error.to_rpc()),
            }
        })
    }

    fn shutdown(&self, id: &RawValue, params: Option<&RawValue>) -> Result<(), RpcError> {
        let grace = parse::<ShutdownParams<'_>>(method::SHUTDOWN, params)
            .map_or(LAST_WORDS, |params| Duration::from_millis(params.grace_ms));
        let (inner, id) = (Arc::clone(&self.0), id.to_owned());
        self.beside("shutdown", move || {
            // Half of it for the calls, half for the release; this thread is the one pending.
            inner.wait_for_others(grace / 2);
            let state = std::mem::replace(&mut *lock(&inner.state), State::Closed);
            let released = guarded("shutdown", || {
                let State::Open(state) = state else { return Ok(()) };
                inner.shutdown.as_ref().map_or(Ok(()), |release| release(&state))
            });
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
        self.0.begin();
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            work();
            inner.end();
        });
        spawned.map(drop).map_err(|error| {
            self.0.end();
            RpcError::new(rpc_code::INTERNAL, format!("cannot start a thread: {error}"))
        })
    }
}

impl<S> Inner<S> {
    /// Checks that host and plugin have a protocol version in common.
    fn describe(&self, params: Option<&RawValue>) -> Result<(), RpcError> {
        #[derive(Deserialize)]
        struct OfferOnly {
            protocol: Offer,
        }
        // Someone who asks by hand may offer nothing; the manifest says what is spoken here.
        let Ok(OfferOnly { protocol }) = parse(method::DESCRIBE, params) else { return Ok(()) };
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
            let calls: Vec<Context> =
                lock(&self.active).iter().filter(|call| *call.call_id() == call_id).cloned().collect();
            calls.iter().for_each(Context::cancel);
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

    fn run(
        &self,
        at: usize,
        arguments: &RawValue,
        context: &Context,
    ) -> Result<crate::operation::RawReply, Error> {
        let (name, run) = &self.operations[at];
        let state = self.opened()?;
        guarded(name, || run(arguments, &state, context))
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

    fn leave_active(&self, call_id: &CallId) {
        let mut active = lock(&self.active);
        if let Some(at) = active.iter().position(|call| call.call_id() == call_id) {
            active.swap_remove(at);
        }
    }

    fn begin(&self) {
        *lock(&self.pending) += 1;
    }

    fn end(&self) {
        *lock(&self.pending) -= 1;
        self.pending_changed.notify_all();
    }

    fn wait_for_pending(&self, timeout: Duration) {
        self.wait_until_pending_is_at_most(0, timeout);
    }

    fn wait_for_others(&self, timeout: Duration) {
        self.wait_until_pending_is_at_most(1, timeout);
    }

    fn wait_until_pending_is_at_most(&self, most: usize, timeout: Duration) {
        let waited =
            self.pending_changed.wait_timeout_while(lock(&self.pending), timeout, |pending| *pending > most);
        drop(waited);
    }
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

/// Runs the author's code; a panic there fails this one request.
///
/// Where and why it panicked is on stderr by then: the panic hook writes it.
fn guarded<T>(what: &str, run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Error::coded(rpc_code::HANDLER_FAILED, format!("{what} failed unexpectedly: it panicked"))
            .hint("this is a fault in the plugin; its log says where"))
    })
}

fn complain(text: &str) {
    // Where even stderr is gone, nobody is left to be told.
    drop(writeln!(io::stderr(), "{text}"));
}
