//! The calls a run has handed over and that have not ended.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use plugd_protocol::CallId;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::door::{Answered, Heard, RunFailure};
use super::host::Lineage;

/// The one id table of a run.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    calls: HashMap<u64, Call>,
}

/// A call the plugin has.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) call_id: CallId,
    /// Taken when the caller has been answered; the call itself may go on.
    pub(crate) reply: Option<oneshot::Sender<Result<Answered, RunFailure>>>,
    pub(crate) delivered: Instant,
    pub(crate) deadline: Instant,
    pub(crate) timeout: Duration,
    pub(crate) stall: Option<Stall>,
    /// What the run had written by then that was no answer to anything.
    pub(crate) heard_before: Heard,
    /// When the plugin was told to stop it.
    pub(crate) cancelled: Option<Instant>,
    pub(crate) lineage: Lineage,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) traceparent: Option<Arc<str>>,
    /// The calls it makes to other plugins: each ends when its sender is dropped.
    pub(crate) host_calls: Vec<oneshot::Sender<Infallible>>,
    /// Held until the plugin has answered.
    pub(crate) _lane: OwnedSemaphorePermit,
}

/// How long a call may go without progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stall {
    pub(crate) allowed: Duration,
    pub(crate) at: Instant,
}

impl Call {
    /// Gives the caller its answer, once.
    pub(crate) fn answer(&mut self, outcome: Result<Answered, RunFailure>) {
        if let Some(reply) = self.reply.take() {
            // A caller that has gone away wants no answer.
            let _gone = reply.send(outcome);
        }
    }

    /// Notes that the plugin is told to stop it; what it does elsewhere stops, too.
    fn cancel(&mut self, now: Instant) -> CallId {
        self.cancelled = Some(now);
        self.host_calls.clear();
        self.call_id.clone()
    }

    /// When something must be done about it: its deadline, or its stall.
    fn due(&self) -> Instant {
        self.stall.map_or(self.deadline, |stall| stall.at.min(self.deadline))
    }

    fn late(&self, now: Instant, heard: Heard) -> Option<RunFailure> {
        if self.deadline <= now {
            return Some(RunFailure::TimedOut { after: self.timeout, heard: heard.since(self.heard_before) });
        }
        let stall = self.stall.filter(|stall| stall.at <= now)?;
        Some(RunFailure::Stalled { after: stall.allowed })
    }
}

impl InFlight {
    pub(crate) fn open(&mut self, id: u64, call: Call) {
        self.calls.insert(id, call);
    }

    pub(crate) fn close(&mut self, id: u64) -> Option<Call> {
        self.calls.remove(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether anybody still waits for one of them.
    pub(crate) fn awaited(&self) -> bool {
        self.calls.values().any(|call| call.cancelled.is_none())
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Call> + '_ {
        self.calls.drain().map(|(_, call)| call)
    }

    /// The call of that id.
    pub(crate) fn by_call_id(&mut self, call_id: &CallId) -> Option<&mut Call> {
        self.calls.values_mut().find(|call| call.call_id == *call_id)
    }

    /// The only call there is.
    pub(crate) fn only(&mut self) -> Option<&mut Call> {
        let mut calls = self.calls.values_mut();
        match (calls.next(), calls.next()) {
            (Some(call), None) => Some(call),
            _ => None,
        }
    }

    /// Answers every call that is late and returns the ids of those to cancel.
    pub(crate) fn expire(&mut self, now: Instant, heard: Heard) -> Vec<CallId> {
        let mut cancel = Vec::new();
        for call in self.calls.values_mut().filter(|call| call.cancelled.is_none()) {
            if let Some(failure) = call.late(now, heard) {
                call.answer(Err(failure));
                cancel.push(call.cancel(now));
            }
        }
        cancel
    }

    /// Finds the calls whose callers have gone away and returns their ids, to cancel.
    pub(crate) fn abandoned(&mut self, now: Instant) -> Vec<CallId> {
        let mut cancel = Vec::new();
        for call in self.calls.values_mut().filter(|call| call.cancelled.is_none()) {
            if call.reply.as_ref().is_none_or(oneshot::Sender::is_closed) {
                cancel.push(call.cancel(now));
            }
        }
        cancel
    }

    /// Whether every lane is held by a call that was cancelled longer than `grace` ago.
    pub(crate) fn stuck(&self, now: Instant, lanes: usize, grace: Duration) -> bool {
        let stuck = |call: &Call| call.cancelled.is_some_and(|since| since + grace <= now);
        self.calls.len() >= lanes && self.calls.values().all(stuck)
    }

    /// When something must be done next; a cancelled call is looked at once, after its grace.
    pub(crate) fn due(&self, now: Instant, grace: Duration) -> Option<Instant> {
        let due = |call: &Call| match call.cancelled {
            None => Some(call.due()),
            Some(since) => Some(since + grace).filter(|graced| *graced > now),
        };
        self.calls.values().filter_map(due).min()
    }
}
