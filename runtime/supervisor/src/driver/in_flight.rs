//! The calls a run has handed over and that have not ended.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use plugd_protocol::CallId;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::deadline::Deadline;
use super::door::{Answered, Heard, RunFailure};
use super::host::Lineage;

/// How often a clock that stands still is looked at, at most: it may go on at any time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The one id table of a run.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// By numbers of our own.
    calls: HashMap<u64, Call, RandomState>,
}

/// A call the plugin has.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) call_id: CallId,
    /// Taken when the caller has been answered; the call itself may go on.
    pub(crate) reply: Option<oneshot::Sender<Result<Answered, RunFailure>>>,
    pub(crate) delivered: Instant,
    pub(crate) deadlines: Deadlines,
    pub(crate) timeout: Duration,
    pub(crate) stall: Option<Stall>,
    /// What the run had written by then that was no answer to anything.
    pub(crate) heard_before: Heard,
    /// When the plugin was told to stop it.
    pub(crate) cancelled: Option<Instant>,
    pub(crate) lineage: Lineage,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) traceparent: Option<Arc<str>>,
    /// The calls it makes to other plugins.
    pub(crate) host_calls: Holds,
    /// What it asks people.
    pub(crate) asks: Holds,
    /// Held until the plugin has answered.
    pub(crate) _lane: OwnedSemaphorePermit,
}

/// When a call must have ended.
#[derive(Debug)]
pub(crate) struct Deadlines {
    pub(crate) own: Deadline,
    /// That of the calls that wait for it, by their clocks.
    pub(crate) inherited: Option<Deadline>,
}

/// How long a call may go without progress.
#[derive(Debug)]
pub(crate) struct Stall {
    allowed: Duration,
    at: Deadline,
}

/// What goes on elsewhere on a call's behalf: each ends when its sender is dropped.
#[derive(Debug, Default)]
pub(crate) struct Holds(Vec<oneshot::Sender<Infallible>>);

impl Deadlines {
    /// The one that comes first, as things are now.
    pub(crate) fn first(&self, now: Instant) -> &Deadline {
        match &self.inherited {
            Some(inherited) if inherited.moment(now) < self.own.moment(now) => inherited,
            _ => &self.own,
        }
    }
}

impl Stall {
    pub(crate) fn begin(allowed: Duration, now: Instant, lineage: &Lineage) -> Stall {
        Stall { allowed, at: Deadline::new(now + allowed, now, lineage) }
    }
}

impl Holds {
    /// One more thing that goes on; the receiver tells when it is to end.
    pub(crate) fn hold(&mut self) -> oneshot::Receiver<Infallible> {
        let (held, ended) = oneshot::channel();
        self.0.retain(|other| !other.is_closed());
        self.0.push(held);
        ended
    }

    fn count(&self) -> usize {
        self.0.iter().filter(|held| !held.is_closed()).count()
    }

    fn end(&mut self) {
        self.0.clear();
    }
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
        self.host_calls.end();
        self.asks.end();
        self.call_id.clone()
    }

    /// Notes that it advances.
    pub(crate) fn progressed(&mut self, now: Instant) {
        if let Some(stall) = &mut self.stall {
            *stall = Stall::begin(stall.allowed, now, &self.lineage);
        }
    }

    /// The deadline that what it does elsewhere inherits.
    pub(crate) fn ends(&self, now: Instant) -> &Deadline {
        self.deadlines.first(now)
    }

    /// When something must be done about it: its deadline, or its stall.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let ends = self.ends(now);
        let first = self
            .stall
            .as_ref()
            .map_or(ends, |stall| if stall.at.moment(now) < ends.moment(now) { &stall.at } else { ends });
        // A clock that stands still is looked at again, but not all the time.
        let earliest = if first.stands() { now + LOOK_AGAIN } else { now };
        first.moment(now).max(earliest)
    }

    fn late(&self, now: Instant, heard: Heard) -> Option<RunFailure> {
        if self.ends(now).moment(now) <= now {
            return Some(RunFailure::TimedOut { after: self.timeout, heard: heard.since(self.heard_before) });
        }
        let stall = self.stall.as_ref().filter(|stall| stall.at.moment(now) <= now)?;
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

    /// The ids of all calls.
    pub(crate) fn open_ids(&self) -> Vec<CallId> {
        self.calls.values().map(|call| call.call_id.clone()).collect()
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

    /// The call that a request of the plugin is about: the one it names, or the only one; `None`
    /// where none is in flight.
    pub(crate) fn meant(&mut self, call_id: Option<&CallId>) -> Result<Option<&mut Call>, &'static str> {
        match call_id {
            Some(call_id) => match self.by_call_id(call_id) {
                Some(call) => Ok(Some(call)),
                None => Err("no call with that call_id is in flight"),
            },
            None if self.calls.len() > 1 => Err("several calls are in flight: say which by call_id"),
            None => Ok(self.only()),
        }
    }

    /// How many times people are asked something now.
    pub(crate) fn open_asks(&self) -> usize {
        self.calls.values().map(|call| call.asks.count()).sum()
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
            None => Some(call.due(now)),
            Some(since) => Some(since + grace).filter(|graced| *graced > now),
        };
        self.calls.values().filter_map(due).min()
    }
}
