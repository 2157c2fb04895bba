//! The way to the host: one writer, and the answers this side waits for.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plugd_protocol::CallId;
use plugd_protocol::error::{RpcError, rpc_code};
use plugd_protocol::frame::DEFAULT_FRAME_LIMIT;
use plugd_protocol::message;
use plugd_protocol::plugin::LogLevel;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::offered::{Offered, Service};
use crate::standby::Standby;

/// Locks, also after a panic elsewhere: what is guarded here is whole between statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The host's side of the conversation, as threads of the plugin see it.
pub(crate) struct Wire {
    /// `None` once nobody listens any more.
    out: Mutex<Option<Box<dyn Write + Send>>>,
    /// `None` once no answer can come any more.
    waiting: Mutex<Option<HashMap<u64, Waiting>>>,
    next_id: AtomicU64,
    log_level: AtomicU8,
    offered: Offered,
    /// Has the answers read while a call waits for one.
    standby: Arc<Standby>,
    /// Ends the process; does nothing where the plugin runs within a test.
    leave: fn(),
}

struct Waiting {
    call_id: CallId,
    tell: Box<dyn FnOnce(HostAnswer) + Send>,
}

/// How a request to the host ended.
pub(crate) enum HostAnswer {
    /// With this whole result.
    Result(Box<RawValue>),
    /// With an error.
    Error(RpcError),
    /// Not: the call it belonged to was cancelled.
    Cancelled,
    /// Not: the host is gone.
    HostGone,
}

impl Wire {
    /// A wire over `out` that calls `leave` when the other end is gone.
    pub(crate) fn new(out: Box<dyn Write + Send>, leave: fn()) -> Wire {
        Wire {
            out: Mutex::new(Some(out)),
            waiting: Mutex::new(Some(HashMap::new())),
            next_id: AtomicU64::new(1),
            log_level: AtomicU8::new(LogLevel::Trace as u8),
            offered: Offered::unknown(),
            standby: Arc::default(),
            leave,
        }
    }

    /// A wire without another end: what is said is lost, what is asked fails at once.
    pub(crate) fn loose() -> Wire {
        let wire = Wire { offered: Offered::all(), ..Wire::new(Box::new(std::io::sink()), || {}) };
        wire.no_more_answers();
        wire
    }

    /// Ends the process, where it is the plugin's own.
    pub(crate) fn leave(&self) {
        (self.leave)();
    }

    pub(crate) fn standby(&self) -> Arc<Standby> {
        Arc::clone(&self.standby)
    }

    /// Takes note of what the host offers, by its words in `describe`.
    pub(crate) fn set_offered(&self, features: &[String]) {
        self.offered.set(features);
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    /// Whether the host wants lines of this level.
    pub(crate) fn wants(&self, level: LogLevel) -> bool {
        level as u8 >= self.log_level.load(Ordering::Relaxed)
    }

    pub(crate) fn notify<P: Serialize>(&self, method: &str, params: &P) -> Result<(), Error> {
        let mut line = Vec::new();
        message::write_notification(&mut line, method, params)?;
        self.send_within_limit(&line, method)
    }

    /// Answers a request with a result.
    pub(crate) fn answer<R: Serialize>(&self, id: &RawValue, result: &R) {
        let mut line = Vec::new();
        match message::write_result(&mut line, id, result) {
            Ok(()) => self.answer_line(id, &line),
            Err(error) => self.refuse(id, &RpcError::new(rpc_code::INTERNAL, error.to_string())),
        }
    }

    /// Answers a request with a line already written; with an error where it is too long.
    pub(crate) fn answer_line(&self, id: &RawValue, line: &[u8]) {
        if let Err(error) = self.send_within_limit(line, "the result") {
            self.refuse(id, &error.to_rpc());
        }
    }

    /// Answers a request with an error.
    pub(crate) fn refuse(&self, id: &RawValue, error: &RpcError) {
        let mut line = Vec::new();
        if message::write_error(&mut line, id, error).is_ok() {
            self.send(&line);
        }
    }

    /// Asks the host something on behalf of a call.
    ///
    /// `tell` gets exactly one answer, whatever happens to call and host, on any thread.
    pub(crate) fn ask<P: Serialize>(
        &self,
        call_id: &CallId,
        service: Service,
        params: &P,
        tell: impl FnOnce(HostAnswer) + Send + 'static,
    ) -> Result<(), Error> {
        self.offered.check(service)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut line = Vec::new();
        message::write_request(&mut line, id, service.method(), params)?;
        within_limit(&line, service.method())?;
        let waiting = Waiting { call_id: call_id.clone(), tell: Box::new(tell) };
        let unheard = match &mut *lock(&self.waiting) {
            Some(all) => {
                all.insert(id, waiting);
                None
            }
            None => Some(waiting),
        };
        match unheard {
            Some(waiting) => (waiting.tell)(HostAnswer::HostGone),
            None => {
                self.send(&line);
                self.standby.call_waits();
            }
        }
        Ok(())
    }

    /// Hands an answer to whoever waits for it; late and unknown ones are dropped.
    pub(crate) fn answered(&self, id: u64, answer: HostAnswer) {
        let waiting = lock(&self.waiting).as_mut().and_then(|waiting| waiting.remove(&id));
        if let Some(waiting) = waiting {
            (waiting.tell)(answer);
        }
    }

    /// Tells all who wait on behalf of a cancelled call.
    pub(crate) fn call_cancelled(&self, call_id: &CallId) {
        let mut of_call = Vec::new();
        if let Some(all) = lock(&self.waiting).as_mut() {
            of_call.extend(all.extract_if(|_, waiting| waiting.call_id == *call_id));
        }
        of_call.into_iter().for_each(|(_, waiting)| (waiting.tell)(HostAnswer::Cancelled));
    }

    /// Tells all who wait for an answer: none will come.
    pub(crate) fn no_more_answers(&self) {
        let all = lock(&self.waiting).take();
        all.into_iter().flatten().for_each(|(_, waiting)| (waiting.tell)(HostAnswer::HostGone));
    }

    fn send_within_limit(&self, line: &[u8], what: &str) -> Result<(), Error> {
        within_limit(line, what)?;
        self.send(line);
        Ok(())
    }

    /// Nobody reads a broken pipe again, so a failed write is the end of the plugin.
    fn send(&self, line: &[u8]) {
        let mut out = lock(&self.out);
        let Some(writer) = out.as_mut() else { return };
        if writer.write_all(line).and_then(|()| writer.flush()).is_err() {
            *out = None;
            drop(out);
            self.leave();
        }
    }
}

/// The host takes no longer line, its end not counted.
fn within_limit(line: &[u8], what: &str) -> Result<(), Error> {
    let length = line.len().saturating_sub(1);
    if length <= DEFAULT_FRAME_LIMIT {
        return Ok(());
    }
    let text = format!("{what} is {length} bytes long, and a message at most {DEFAULT_FRAME_LIMIT}");
    Err(Error::new("too_large", text).hint("give less at once, such as a page or the path of a file"))
}
