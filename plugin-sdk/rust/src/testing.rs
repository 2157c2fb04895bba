//! A host in memory, for an author's tests of a whole plugin.
//!
//! The plugin runs in threads of the test and speaks the real protocol over a pipe; only the
//! process is missing, and the host's validation: arguments arrive as the test gives them.
//!
//! ```
//! use plugd_sdk::{Context, Error, Operation, Plugin, testing::Host};
//! use serde_json::json;
//!
//! fn double(number: Number, _: &Context) -> Result<i64, Error> {
//!     Ok(number.value * 2)
//! }
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Number {
//!     value: i64,
//! }
//!
//! let host = Host::new(Plugin::new("maths", "1.0.0").operation(Operation::new("double", double)));
//! assert_eq!(host.call("double", json!({"value": 21})).data(), json!(42));
//! ```

use std::collections::HashMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use plugd_protocol::error::{RpcError, rpc_code};
use plugd_protocol::frame::{DEFAULT_FRAME_LIMIT, Decoder, Frame};
use plugd_protocol::message::{self, Message};
use plugd_protocol::negotiation::Offer;
use plugd_protocol::plugin::{
    HostAskParams, HostCallParams, LogLevel, LogParams, PartialParams, ProgressParams, Question, method,
};
use plugd_protocol::{CallId, Manifest};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::Error;
use crate::plugin::Plugin;
use crate::serve::Session;
use crate::wire::{Wire, lock};

/// A test that waits longer than this has found a plugin that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a plugin within a test and calls it.
pub struct Host {
    shared: Arc<Shared>,
    config: Value,
    deadline: Duration,
    started: OnceLock<Result<(), Error>>,
    next_id: AtomicU64,
    serving: Option<JoinHandle<()>>,
}

/// How a call went.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TestReply {
    /// Its data, or the plugin's failure.
    pub result: Option<Result<Value, Error>>,
    /// Its one line.
    pub summary: Option<String>,
    /// What it offers to do next.
    pub next_actions: Vec<Value>,
    /// What was logged under its id.
    pub logs: Vec<(LogLevel, String)>,
    /// How far it said it was.
    pub progress: Vec<Progress>,
    /// Pieces sent ahead.
    pub partials: Vec<Value>,
}

/// How far a call said it was.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How much was done.
    pub done: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// What was being done.
    pub message: Option<String>,
}

/// A call under way.
#[must_use = "a call is only over once it was waited for"]
pub struct RunningCall<'a> {
    host: &'a Host,
    call_id: CallId,
}

type HostAnswerer = Box<dyn FnMut(Value) -> Result<Value, Error> + Send>;

struct Shared {
    /// `None` once the host has hung up.
    to_plugin: Mutex<Option<PipeWriter>>,
    /// By the id of the request, in flight or over.
    requests: Mutex<HashMap<u64, TestReply>>,
    changed: Condvar,
    answerers: Mutex<HashMap<String, HostAnswerer>>,
    person: Mutex<Option<Person>>,
}

type Person = Box<dyn FnMut(&str, &str) -> Result<Value, Error> + Send>;

impl Host {
    /// Takes a plugin in; it is described and initialised at the first call.
    ///
    /// # Panics
    /// When the plugin is declared wrongly.
    pub fn new<S: Send + Sync + 'static>(plugin: Plugin<S>) -> Host {
        let manifest = plugin.manifest().unwrap_or_else(|error| panic!("{error}"));
        let (plugin_input, to_plugin) = io::pipe().expect("the system has pipes to give");
        let (from_plugin, plugin_output) = io::pipe().expect("the system has pipes to give");
        let session = Session::new(plugin, manifest, Wire::new(Box::new(plugin_output), || {}));
        let shared = Arc::new(Shared {
            to_plugin: Mutex::new(Some(to_plugin)),
            requests: Mutex::new(HashMap::new()),
            changed: Condvar::new(),
            answerers: Mutex::new(HashMap::new()),
            person: Mutex::new(None),
        });
        let listener = Arc::clone(&shared);
        // Ends when the plugin's threads have all let go of the pipe.
        std::thread::spawn(move || listener.listen(from_plugin));
        Host {
            shared,
            config: json!({}),
            deadline: Duration::from_secs(30),
            started: OnceLock::new(),
            next_id: AtomicU64::new(1),
            serving: Some(std::thread::spawn(move || session.serve(plugin_input))),
        }
    }

    /// The configuration for `init`; its defaults are the plugin's to fill.
    #[must_use]
    pub fn config(mut self, config: Value) -> Host {
        self.config = config;
        self
    }

    /// How long each call has; 30 seconds unless said.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Host {
        self.deadline = deadline;
        self
    }

    /// Plays another plugin: what it answers to `operation`, written as `plugin.operation`.
    #[must_use]
    pub fn answer_host_call(
        self,
        operation: &str,
        answer: impl FnMut(Value) -> Result<Value, Error> + Send + 'static,
    ) -> Host {
        lock(&self.shared.answerers).insert(operation.to_owned(), Box::new(answer));
        self
    }

    /// Plays the person behind the calls: what they answer to the question of that name and prompt.
    /// Without one, there is nobody to ask.
    #[must_use]
    pub fn answer_asks(
        self,
        answer: impl FnMut(&str, &str) -> Result<Value, Error> + Send + 'static,
    ) -> Host {
        *lock(&self.shared.person) = Some(Box::new(answer));
        self
    }

    /// Describes and initialises the plugin, once.
    ///
    /// # Errors
    /// Why the plugin did not start.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn start(&self) -> Result<(), Error> {
        let start = || {
            let offer = json!({"protocol": Offer::of_host(), "host": {"name": "test", "version": "0"}});
            self.request(method::DESCRIBE, offer)?;
            let params = json!({"config": self.config, "data_dir": std::env::temp_dir(), "locale": "en",
                "log_level": "trace"});
            self.request(method::INIT, params).map(drop)
        };
        self.started.get_or_init(start).clone()
    }

    /// What the plugin declares.
    ///
    /// # Panics
    /// When `describe` fails or its answer is no manifest.
    pub fn manifest(&self) -> Manifest {
        let offer = json!({"protocol": Offer::of_host(), "host": {"name": "test", "version": "0"}});
        let manifest =
            self.request(method::DESCRIBE, offer).unwrap_or_else(|error| panic!("describe: {error}"));
        Manifest::parse(&manifest.to_string()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Calls an operation and waits for its end.
    ///
    /// # Panics
    /// When the plugin does not start, or does not answer.
    pub fn call(&self, operation: &str, arguments: Value) -> TestReply {
        self.begin(operation, arguments).wait()
    }

    /// Calls an operation without waiting.
    ///
    /// # Panics
    /// When the plugin does not start.
    pub fn begin(&self, operation: &str, arguments: Value) -> RunningCall<'_> {
        self.start().unwrap_or_else(|error| panic!("the plugin does not start: {error}"));
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let millis = u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX);
        let context =
            json!({"call_id": id.to_string(), "deadline_ms": millis, "attempt": 1, "caller": "test"});
        let params = json!({"operation": operation, "arguments": arguments, "context": context});
        self.shared.send_request(id, method::CALL, &params);
        RunningCall { host: self, call_id: CallId::new(id.to_string()) }
    }

    /// Gives the plugin a changed configuration.
    ///
    /// # Errors
    /// What its `reload` says.
    ///
    /// # Panics
    /// When the plugin does not start, or does not answer.
    pub fn reload(&self, config: &Value) -> Result<(), Error> {
        self.start().unwrap_or_else(|error| panic!("the plugin does not start: {error}"));
        self.request(method::RELOAD, json!({ "config": config })).map(drop)
    }

    /// Tells the plugin to shut down and waits until it has.
    ///
    /// # Errors
    /// What its `shutdown` says.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn shutdown(&self) -> Result<(), Error> {
        self.request(method::SHUTDOWN, json!({"reason": "stop", "grace_ms": 5_000})).map(drop)
    }

    fn request(&self, method: &str, params: Value) -> Result<Value, Error> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.shared.send_request(id, method, &params);
        self.shared.wait(id, |reply| reply.result.is_some()).result.expect("waited for")
    }
}

/// Hangs up, as a host does that dies: the plugin's reading ends.
impl Drop for Host {
    fn drop(&mut self) {
        *lock(&self.shared.to_plugin) = None;
        if let Some(serving) = self.serving.take() {
            drop(serving.join());
        }
    }
}

impl RunningCall<'_> {
    /// Tells the plugin to stop.
    pub fn cancel(&self) {
        self.host.shared.send_notification(method::CANCEL, &json!({"call_id": self.call_id}));
    }

    /// Waits until the call said it was as far as `done`.
    ///
    /// # Panics
    /// When it ends before, or does not get there.
    pub fn wait_for_progress(&self, done: u64) {
        let there = |reply: &TestReply| reply.progress.iter().any(|progress| progress.done >= done as f64);
        let reply = self.host.shared.wait(self.id(), |reply| there(reply) || reply.result.is_some());
        assert!(there(&reply), "the call ended before it was that far: {reply:?}");
    }

    /// Waits for the call's end.
    ///
    /// # Panics
    /// When it does not end.
    pub fn wait(self) -> TestReply {
        self.host.shared.wait(self.id(), |reply| reply.result.is_some())
    }

    fn id(&self) -> u64 {
        self.call_id.as_str().parse().expect("ids of this host are numbers")
    }
}

impl TestReply {
    /// The data of a call that went well.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn data(&self) -> Value {
        match &self.result {
            Some(Ok(data)) => data.clone(),
            other => panic!("expected data, got {other:?}"),
        }
    }

    /// The failure of a call that did not go well.
    ///
    /// # Panics
    /// When it did.
    #[track_caller]
    pub fn error(&self) -> Error {
        match &self.result {
            Some(Err(error)) => error.clone(),
            other => panic!("expected a failure, got {other:?}"),
        }
    }
}

impl Shared {
    fn send_request(&self, id: u64, method: &str, params: &Value) {
        lock(&self.requests).insert(id, TestReply::default());
        let mut line = Vec::new();
        message::write_request(&mut line, id, method, params).expect("a JSON value is JSON");
        self.send(&line);
    }

    fn send_notification(&self, method: &str, params: &Value) {
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

    fn wait(&self, id: u64, until: impl Fn(&TestReply) -> bool) -> TestReply {
        let not_yet = |requests: &mut HashMap<u64, TestReply>| !requests.get(&id).is_some_and(&until);
        let waited = self.changed.wait_timeout_while(lock(&self.requests), PATIENCE, not_yet);
        let (requests, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "the plugin did not answer within {PATIENCE:?}");
        requests.get(&id).cloned().unwrap_or_default()
    }

    fn listen(&self, mut from_plugin: PipeReader) {
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
        let mut answerers = lock(&self.answerers);
        let answerer = answerers.get_mut(&*params.operation).ok_or_else(|| {
            Error::message(format!("this test answers no {}: see Host::answer_host_call", params.operation))
        })?;
        Ok(json!({"data": answerer(arguments)?, "call_id": "inner"}))
    }

    fn record(&self, id: Option<u64>, change: impl FnOnce(&mut TestReply)) {
        let mut requests = lock(&self.requests);
        if let Some(reply) = id.and_then(|id| requests.get_mut(&id)) {
            change(reply);
            self.changed.notify_all();
        }
    }
}
