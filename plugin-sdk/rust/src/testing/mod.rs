//! A host in memory, for an author's tests of a whole plugin.
//!
//! The plugin runs in threads of the test and speaks the real protocol over a pipe; only the
//! process is missing, and the host's validation: arguments arrive as the test gives them.
//!
//! ```
//! use plugd_sdk::{Plugin, operation, testing::Host};
//! use serde_json::json;
//!
//! #[operation(read_only)]
//! fn double(value: i64) -> i64 {
//!     value * 2
//! }
//!
//! let host = Host::new(Plugin::new("maths", "1.0.0").operation(double::operation()));
//! assert_eq!(host.call("double", json!({"value": 21})).data(), json!(42));
//! ```

use std::io::{self, PipeReader, PipeWriter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use plugd_protocol::negotiation::Offer;
use plugd_protocol::plugin::method;
use plugd_protocol::{CallId, Manifest};
use serde_json::{Value, json};

use crate::amount::Amount;
use crate::error::Error;
use crate::plugin::Plugin;
use crate::serve::Session;
use crate::wire::{Wire, lock};

mod reply;
mod shared;

pub use reply::{Progress, TestReply};
use shared::Shared;

/// Takes a plugin in and gives both ends of the conversation: for tests of the protocol itself.
///
/// What is written are messages of the host, one a line; what is read are the plugin's. Its end comes
/// once the writing end was dropped and the plugin has done with it.
///
/// # Panics
/// When the plugin is declared wrongly.
pub fn connect<S: Send + Sync + 'static>(plugin: Plugin<S>) -> (PipeWriter, PipeReader) {
    let (to_plugin, from_plugin, _serving) = take_in(plugin);
    (to_plugin, from_plugin)
}

fn take_in<S: Send + Sync + 'static>(plugin: Plugin<S>) -> (PipeWriter, PipeReader, JoinHandle<()>) {
    let manifest = plugin.manifest().unwrap_or_else(|error| panic!("{error}"));
    let (plugin_input, to_plugin) = io::pipe().expect("the system has pipes to give");
    let (from_plugin, plugin_output) = io::pipe().expect("the system has pipes to give");
    let wire = Wire::new(Box::new(plugin_output), || {});
    let session = Session::new(plugin, manifest, plugin_input.into(), wire);
    (to_plugin, from_plugin, std::thread::spawn(move || session.serve()))
}

/// Runs a plugin within a test and calls it.
pub struct Host {
    shared: Arc<Shared>,
    config: Value,
    deadline: Duration,
    started: OnceLock<Result<(), Error>>,
    next_id: AtomicU64,
    serving: Option<JoinHandle<()>>,
}

/// A call under way.
#[must_use = "a call is only over once it was waited for"]
pub struct RunningCall<'a> {
    host: &'a Host,
    call_id: CallId,
}

impl Host {
    /// Takes a plugin in; it is described and initialised at the first call.
    ///
    /// # Panics
    /// When the plugin is declared wrongly.
    pub fn new<S: Send + Sync + 'static>(plugin: Plugin<S>) -> Host {
        let (to_plugin, from_plugin, serving) = take_in(plugin);
        let shared = Arc::new(Shared::new(to_plugin));
        let listener = Arc::clone(&shared);
        // Ends when the plugin's threads have all let go of the pipe.
        std::thread::spawn(move || listener.listen(from_plugin));
        Host {
            shared,
            config: json!({}),
            deadline: Duration::from_secs(30),
            started: OnceLock::new(),
            next_id: AtomicU64::new(1),
            serving: Some(serving),
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
    pub fn answer_call(
        self,
        operation: &str,
        answer: impl FnMut(Value) -> Result<Value, Error> + Send + 'static,
    ) -> Host {
        lock(&self.shared.others).insert(operation.to_owned(), Box::new(answer));
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
        self.shared.hang_up();
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
    pub fn wait_for_progress(&self, done: impl Amount) {
        let done = done.amount();
        let there = |reply: &TestReply| reply.progress.iter().any(|progress| progress.done >= done);
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
