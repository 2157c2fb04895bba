//! The way to the host: one writer, and the answers this side waits for.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use plugd_protocol::CallId;
use plugd_protocol::error::RpcError;
use plugd_protocol::message;
use plugd_protocol::plugin::LogLevel;
use serde::Serialize;
use serde_json::value::RawValue;

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
    /// Ends the process; does nothing where the plugin runs within a test.
    leave: fn(),
}

struct Waiting {
    call_id: CallId,
    answer: SyncSender<HostAnswer>,
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
            leave,
        }
    }

    /// A wire without another end: what is said is lost, what is asked fails at once.
    pub(crate) fn loose() -> Wire {
        let wire = Wire::new(Box::new(std::io::sink()), || {});
        wire.no_more_answers();
        wire
    }

    /// Ends the process, where it is the plugin's own.
    pub(crate) fn leave(&self) {
        (self.leave)();
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    /// Whether the host wants lines of this level.
    pub(crate) fn wants(&self, level: LogLevel) -> bool {
        level as u8 >= self.log_level.load(Ordering::Relaxed)
    }

    pub(crate) fn notify<P: Serialize>(&self, method: &str, params: &P) -> serde_json::Result<()> {
        let mut line = Vec::new();
        message::write_notification(&mut line, method, params)?;
        self.send(&line);
        Ok(())
    }

    /// Answers a request with a result.
    pub(crate) fn answer<R: Serialize>(&self, id: &RawValue, result: &R) {
        let mut line = Vec::new();
        match message::write_result(&mut line, id, result) {
            Ok(()) => self.send(&line),
            Err(error) => self.refuse(id, &RpcError::new(-32603, error.to_string())),
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
    /// The answer arrives in the channel, exactly one, whatever happens to call and host.
    pub(crate) fn ask<P: Serialize>(
        &self,
        call_id: &CallId,
        method: &str,
        params: &P,
    ) -> serde_json::Result<Receiver<HostAnswer>> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut line = Vec::new();
        message::write_request(&mut line, id, method, params)?;
        let (answer, receiver) = sync_channel(1);
        match &mut *lock(&self.waiting) {
            Some(waiting) => {
                waiting.insert(id, Waiting { call_id: call_id.clone(), answer });
            }
            None => drop(answer.try_send(HostAnswer::HostGone)),
        }
        self.send(&line);
        Ok(receiver)
    }

    /// Hands an answer to the thread that waits for it; late and unknown ones are dropped.
    pub(crate) fn answered(&self, id: u64, answer: HostAnswer) {
        let waiting = lock(&self.waiting).as_mut().and_then(|waiting| waiting.remove(&id));
        if let Some(waiting) = waiting {
            // The channel has room for the one answer; a waiter that gave up needs none.
            drop(waiting.answer.try_send(answer));
        }
    }

    /// Wakes all threads that wait on behalf of a cancelled call.
    pub(crate) fn call_cancelled(&self, call_id: &CallId) {
        if let Some(all) = lock(&self.waiting).as_mut() {
            for (_, waiting) in all.extract_if(|_, waiting| waiting.call_id == *call_id) {
                drop(waiting.answer.try_send(HostAnswer::Cancelled));
            }
        }
    }

    /// Wakes all threads that wait for an answer: none will come.
    pub(crate) fn no_more_answers(&self) {
        for (_, waiting) in lock(&self.waiting).take().into_iter().flatten() {
            drop(waiting.answer.try_send(HostAnswer::HostGone));
        }
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
