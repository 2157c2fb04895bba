//! Everything about one call: who asked, how long there is, and how to speak to the host meanwhile.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plugd_protocol::CallId;
use plugd_protocol::plugin::{CallContext, LogLevel, PartialParams, method};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::amount::{Amount, Total};
use crate::cancel::Cancel;
use crate::error::Error;
use crate::finite::Finite;
use crate::telling::{Origin, log, log_levels, progress, tell_fault, trace_id};
use crate::wire::{Wire, lock};

/// No call is given longer than this, whatever its deadline says.
const TIME_LEFT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// One call: who asked, how long there is, and how to speak to the host meanwhile.
///
/// Hand it on to whatever works for the call: it is cheap to clone, and may go to other threads.
/// There is nothing ambient; two calls at once share nothing through it.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
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
    cancel: Cancel,
}

/// How long people were asked, counted once where several questions are open.
#[derive(Default)]
struct PeopleTook {
    open: u32,
    since: Option<Instant>,
    before: Duration,
}

impl Context {
    pub(crate) fn new(wire: Arc<Wire>, call: CallContext<'_>) -> Context {
        let time_left = Duration::from_millis(call.deadline_ms).min(TIME_LEFT_MAX);
        Context(Arc::new(Inner {
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
            cancel: Cancel::default(),
        }))
    }

    /// A call without a host, for tests of handlers as plain functions.
    ///
    /// It has 30 seconds; what it logs is lost, and what it asks of the host fails. Where those matter,
    /// use [`testing::Host`](crate::testing::Host).
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

    /// The trace the call belongs to: the 32 hexadecimal digits of its [`traceparent`](Self::traceparent).
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent().and_then(trace_id)
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
        self.0.cancel.is_set()
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
        self.0.wire.standby().call_waits();
        self.0.cancel.wait(timeout)
    }

    /// Writes a line to the plugin's log, under this call's id and trace.
    ///
    /// Lines below the level that the host asks for are not sent.
    pub fn log(&self, level: LogLevel, message: impl fmt::Display) {
        log(&self.0.wire, self.origin(), level, &message);
    }

    log_levels!();

    /// Says how far the call is: `done` of `total`, in any numbers, or `None` where the total is not known.
    ///
    /// It puts off a stall timeout, never the deadline. A few a second are plenty.
    ///
    /// ```
    /// # let cx = plugd_sdk::Context::for_test();
    /// # let files = ["a", "b"];
    /// cx.progress(1, files.len(), "indexing");
    /// cx.progress(0.5, 1, "half of it");
    /// cx.progress(7, None, "who knows of how many");
    /// ```
    pub fn progress(&self, done: impl Amount, total: impl Total, message: &str) {
        progress(&self.0.wire, self.origin(), done.amount(), total.total(), message);
    }

    /// Sends a piece of the result ahead of it.
    ///
    /// # Errors
    /// When the piece cannot be written as JSON, or is too large for a message.
    pub fn partial<T: Serialize>(&self, piece: &T) -> Result<(), Error> {
        let data = to_raw_value(&Finite(piece))?;
        let params = PartialParams { call_id: self.0.call_id.clone(), data: &data };
        self.0.wire.notify(method::PARTIAL, &params)
    }

    /// Tells the log of a fault in the handler.
    pub(crate) fn tell_fault(&self, text: &str) {
        tell_fault(&self.0.wire, self.origin(), text);
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.0.wire
    }

    /// Ready once the call is cancelled.
    #[cfg(feature = "async")]
    pub(crate) fn poll_cancelled(&self, task: &std::task::Context<'_>) -> std::task::Poll<()> {
        self.0.cancel.poll(task)
    }

    /// Has the deadline move for as long as this is held, as the host's does.
    pub(crate) fn while_people_are_asked(&self) -> impl Drop {
        let mut people = lock(&self.0.people_took);
        people.open += 1;
        people.since.get_or_insert_with(Instant::now);
        drop(people);
        PeopleAreAsked(Arc::clone(&self.0))
    }

    pub(crate) fn cancel(&self) {
        self.0.cancel.set();
        self.0.wire.call_cancelled(&self.0.call_id);
    }

    fn origin(&self) -> Origin<'_> {
        Origin { call_id: Some(&self.0.call_id), trace_id: self.trace_id() }
    }
}

struct PeopleAreAsked(Arc<Inner>);

impl Drop for PeopleAreAsked {
    fn drop(&mut self) {
        let mut people = lock(&self.0.people_took);
        people.open -= 1;
        if people.open == 0
            && let Some(since) = people.since.take()
        {
            people.before += since.elapsed();
        }
    }
}

/// Shows the call's id.
impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Context").field("call_id", &self.0.call_id).finish_non_exhaustive()
    }
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
    fn without_a_host_a_call_of_another_plugin_fails_at_once() {
        let error = Context::for_test().call::<()>("weather.get_weather", &()).expect_err("no host");
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
