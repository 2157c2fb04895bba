//! Everything about one call, and the way from it to the host.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plugd_protocol::CallId;
use plugd_protocol::plugin::{
    CallContext, HostCallParams, HostCallResult, LogLevel, LogParams, PartialParams, ProgressParams, method,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::Error;
use crate::wire::{HostAnswer, Wire, lock};

/// No call is given longer than this, whatever its deadline says.
const TIME_LEFT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// One call: who asked, how long there is, and how to speak to the host meanwhile.
///
/// Hand it on to whatever works for the call: it is cheap to clone, and may go to other threads.
/// There is nothing ambient; two calls at once share nothing through it.
#[derive(Clone)]
pub struct Context(Arc<Call>);

struct Call {
    wire: Arc<Wire>,
    call_id: CallId,
    session_id: Option<String>,
    traceparent: Option<String>,
    deadline: Instant,
    /// How long people were asked; the deadline moves by it.
    people_took: Mutex<PeopleTook>,
    attempt: u32,
    idempotency_key: Option<String>,
    caller: Option<String>,
    locale: Option<String>,
    cancelled: Mutex<bool>,
    on_cancel: Condvar,
}

/// How long people were asked, counted once where several questions are open.
#[derive(Default)]
struct PeopleTook {
    open: u32,
    since: Option<Instant>,
    before: Duration,
}

/// What another plugin answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HostReply<T> {
    /// Its data.
    pub data: T,
    /// Its one line about it.
    pub summary: Option<String>,
    /// The id of that call.
    pub call_id: Option<CallId>,
}

impl Context {
    pub(crate) fn new(wire: Arc<Wire>, call: CallContext<'_>) -> Context {
        let time_left = Duration::from_millis(call.deadline_ms).min(TIME_LEFT_MAX);
        Context(Arc::new(Call {
            wire,
            call_id: call.call_id,
            session_id: call.session_id.map(Into::into),
            traceparent: call.traceparent.map(Into::into),
            deadline: Instant::now() + time_left,
            people_took: Mutex::default(),
            attempt: call.attempt,
            idempotency_key: call.idempotency_key.map(Into::into),
            caller: call.caller.map(Into::into),
            locale: call.locale.map(Into::into),
            cancelled: Mutex::new(false),
            on_cancel: Condvar::new(),
        }))
    }

    /// A call without a host, for tests of handlers as plain functions.
    ///
    /// It has 30 seconds; what it logs is lost and its host calls fail. Where those matter, use
    /// [`testing::Host`](crate::testing::Host).
    pub fn for_test() -> Context {
        let call = CallContext {
            call_id: CallId::new("test"),
            session_id: None,
            traceparent: None,
            deadline_ms: 30_000,
            attempt: 1,
            idempotency_key: None,
            caller: None,
            locale: None,
        };
        Context::new(Arc::new(Wire::loose()), call)
    }

    /// The call's id, the host's own.
    pub fn call_id(&self) -> &CallId {
        &self.0.call_id
    }

    /// The session the call belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.0.session_id.as_deref()
    }

    /// The W3C trace context to hand on to remote services.
    pub fn traceparent(&self) -> Option<&str> {
        self.0.traceparent.as_deref()
    }

    /// When the host stops waiting for an answer; later by as long as people took to answer
    /// [`ask`](Context::ask).
    pub fn deadline(&self) -> Instant {
        let people = lock(&self.0.people_took);
        self.0.deadline + people.before + people.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// How long the host still waits; zero once the deadline has passed.
    pub fn time_left(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// 1, or more where the host tries an idempotent call again.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// The caller's key for having this done once.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.0.idempotency_key.as_deref()
    }

    /// Who calls: a caller's profile, or `plugin:NAME`.
    pub fn caller(&self) -> Option<&str> {
        self.0.caller.as_deref()
    }

    /// The language the caller speaks, a BCP 47 tag.
    pub fn locale(&self) -> Option<&str> {
        self.0.locale.as_deref()
    }

    /// Whether the host has asked to stop: after a timeout, too.
    pub fn is_cancelled(&self) -> bool {
        *lock(&self.0.cancelled)
    }

    /// An error once the call is cancelled, for use with `?` between two steps.
    ///
    /// # Errors
    /// [`Error::cancelled`].
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Sleeps until the call is cancelled, at most for `timeout`; whether it is cancelled.
    pub fn wait_cancelled(&self, timeout: Duration) -> bool {
        let cancelled = lock(&self.0.cancelled);
        let waited = self.0.on_cancel.wait_timeout_while(cancelled, timeout, |cancelled| !*cancelled);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Writes a line to the plugin's log, under this call's id.
    pub fn log(&self, level: LogLevel, message: impl fmt::Display) {
        log(&self.0.wire, Some(&self.0.call_id), level, &message);
    }

    /// Logs for finding faults.
    pub fn debug(&self, message: impl fmt::Display) {
        self.log(LogLevel::Debug, message);
    }

    /// Logs something normal.
    pub fn info(&self, message: impl fmt::Display) {
        self.log(LogLevel::Info, message);
    }

    /// Logs something odd that was handled.
    pub fn warn(&self, message: impl fmt::Display) {
        self.log(LogLevel::Warn, message);
    }

    /// Logs a failure.
    pub fn error(&self, message: impl fmt::Display) {
        self.log(LogLevel::Error, message);
    }

    /// Says how far the call is: `done` of `total`, where the total is known.
    pub fn progress(&self, done: u64, total: impl Into<Option<u64>>, message: &str) {
        progress(&self.0.wire, Some(&self.0.call_id), done, total.into(), message);
    }

    /// Sends a piece of the result ahead of it.
    ///
    /// # Errors
    /// When the piece cannot be written as JSON.
    pub fn partial<T: Serialize>(&self, piece: &T) -> Result<(), Error> {
        let data = to_raw_value(piece)?;
        let params = PartialParams { call_id: self.0.call_id.clone(), data: &data };
        Ok(self.0.wire.notify(method::PARTIAL, &params)?)
    }

    /// Uses another plugin's operation, `plugin.operation`, and waits for its answer.
    ///
    /// The manifest must name that plugin: [`Plugin::requires`](crate::Plugin::requires). The inner
    /// call shares this one's deadline, session and trace, and ends when this one is cancelled.
    ///
    /// # Errors
    /// The inner call's failure, with its `cause`: handed on with `?`, the answer to this call
    /// names the plugin that failed. Also when the data is no `T`, and when the deadline passes: the
    /// host then cancels the call.
    pub fn host_call<T: DeserializeOwned>(
        &self,
        operation: &str,
        arguments: &impl Serialize,
    ) -> Result<HostReply<T>, Error> {
        let arguments = to_raw_value(arguments)?;
        let params = HostCallParams {
            call_id: Some(self.0.call_id.clone()),
            operation: operation.into(),
            arguments: Some(&arguments),
        };
        let whole = self.request(method::HOST_CALL, &params, &format!("call {operation}"))?;
        read_reply(operation, whole.get())
    }

    /// Asks the host something and waits: it answers in time, or cancels the call.
    pub(crate) fn request<P: Serialize>(
        &self,
        method: &str,
        params: &P,
        to_what: &str,
    ) -> Result<Box<RawValue>, Error> {
        self.check()?;
        let answer = self.0.wire.ask(&self.0.call_id, method, params)?;
        // A cancel that came just before found nobody waiting yet.
        self.check()?;
        match answer.recv() {
            Ok(HostAnswer::Result(whole)) => Ok(whole),
            Ok(HostAnswer::Error(error)) => Err(Error::from_rpc(error)),
            Ok(HostAnswer::Cancelled) => Err(Error::cancelled()),
            Ok(HostAnswer::HostGone) | Err(_) => {
                Err(Error::new("no_host", format!("there is no host to {to_what} through")))
            }
        }
    }

    /// Has the deadline move by as long as this takes, as the host's does.
    pub(crate) fn while_people_are_asked<T>(&self, ask: impl FnOnce() -> T) -> T {
        {
            let mut people = lock(&self.0.people_took);
            people.open += 1;
            people.since.get_or_insert_with(Instant::now);
        }
        let answered = ask();
        let mut people = lock(&self.0.people_took);
        people.open -= 1;
        if people.open == 0
            && let Some(since) = people.since.take()
        {
            people.before += since.elapsed();
        }
        answered
    }

    pub(crate) fn cancel(&self) {
        *lock(&self.0.cancelled) = true;
        self.0.on_cancel.notify_all();
        self.0.wire.call_cancelled(&self.0.call_id);
    }
}

/// Shows the call's id.
impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Context").field("call_id", &self.0.call_id).finish_non_exhaustive()
    }
}

/// What an [`init`](crate::Plugin::init) knows besides the configuration.
pub struct InitContext {
    pub(crate) wire: Arc<Wire>,
    pub(crate) data_dir: String,
    pub(crate) locale: String,
}

impl InitContext {
    /// A start without a host, for tests of an `init` as a plain function.
    pub fn for_test(data_dir: impl Into<String>) -> InitContext {
        InitContext { wire: Arc::new(Wire::loose()), data_dir: data_dir.into(), locale: "en".to_owned() }
    }

    /// A folder of the plugin's own that outlives its runs.
    pub fn data_dir(&self) -> &std::path::Path {
        std::path::Path::new(&self.data_dir)
    }

    /// The language to speak, a BCP 47 tag.
    pub fn locale(&self) -> &str {
        &self.locale
    }

    /// Writes a line to the plugin's log.
    pub fn log(&self, level: LogLevel, message: impl fmt::Display) {
        log(&self.wire, None, level, &message);
    }

    /// Says how far the start is, and thereby asks for more time (300 s at most).
    pub fn progress(&self, done: u64, total: impl Into<Option<u64>>, message: &str) {
        progress(&self.wire, None, done, total.into(), message);
    }
}

fn log(wire: &Wire, call_id: Option<&CallId>, level: LogLevel, message: &dyn fmt::Display) {
    if wire.wants(level) {
        let params = LogParams { level, message: message.to_string().into(), call_id: call_id.cloned() };
        // Text and an id: there is nothing in it that JSON could refuse.
        drop(wire.notify(method::LOG, &params));
    }
}

fn progress(wire: &Wire, call_id: Option<&CallId>, done: u64, total: Option<u64>, message: &str) {
    let params = ProgressParams {
        call_id: call_id.cloned(),
        done: done as f64,
        total: total.map(|total| total as f64),
        message: (!message.is_empty()).then(|| message.into()),
    };
    // Numbers and text: there is nothing in it that JSON could refuse.
    drop(wire.notify(method::PROGRESS, &params));
}

fn read_reply<T: DeserializeOwned>(operation: &str, whole: &str) -> Result<HostReply<T>, Error> {
    let unexpected = |error: serde_json::Error| {
        Error::new("unexpected_reply", format!("{operation} answered in a form not expected here: {error}"))
    };
    let HostCallResult { data, summary, call_id } = serde_json::from_str(whole).map_err(unexpected)?;
    let data = serde_json::from_str(data.get()).map_err(unexpected)?;
    Ok(HostReply { data, summary: summary.map(Into::into), call_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_goes_to_other_threads() {
        fn travels<T: Send + Sync + Clone + 'static>(_: &T) {}
        travels(&Context::for_test());
    }

    #[test]
    fn cancelling_wakes_who_waits_for_it() {
        let context = Context::for_test();
        assert!(!context.wait_cancelled(Duration::ZERO));
        let waiter = std::thread::spawn({
            let context = context.clone();
            move || context.wait_cancelled(Duration::from_secs(60))
        });
        context.cancel();
        assert!(waiter.join().expect("no panic"));
        assert!(context.check().expect_err("cancelled").is_cancelled());
    }

    #[test]
    fn without_a_host_a_host_call_fails_at_once() {
        let error = Context::for_test().host_call::<()>("weather.get_weather", &()).expect_err("no host");
        assert_eq!(error.name.as_deref(), Some("no_host"));
    }

    #[test]
    fn a_deadline_beyond_all_bounds_is_no_panic() {
        let call: CallContext<'_> =
            serde_json::from_str(r#"{"call_id":"c","deadline_ms":18446744073709551615}"#).expect("valid");
        let context = Context::new(Arc::new(Wire::loose()), call);
        assert!(context.time_left() > Duration::from_secs(60));
    }
}
