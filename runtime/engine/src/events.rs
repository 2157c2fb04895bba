//! What happened: the latest events kept, all of them passed to whoever follows.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use plugd_protocol::control::{Event, EventsParams, UnixMillis};
use plugd_supervisor::driver::unix_now;
use tokio::sync::broadcast;

/// So many of the latest events can be read back.
const EVENTS_KEPT: usize = 1_000;

/// A follower that is further behind than this loses the oldest; nobody waits for it.
const FOLLOWERS_BEHIND_MAX: usize = 1_024;

/// How many are given where the request does not say.
pub(crate) const TAIL_DEFAULT: u32 = 200;

/// The events of one engine. The lock is held to append or to copy, never across an await.
#[derive(Debug)]
pub(crate) struct Events {
    latest: Mutex<Latest>,
    followers: broadcast::Sender<Event>,
}

#[derive(Debug, Default)]
struct Latest {
    last_seq: u64,
    events: VecDeque<Event>,
}

/// An event without number and time, to be filled in where it differs from this.
pub(crate) fn happening(kind: impl Into<Cow<'static, str>>) -> Event {
    Event {
        seq: 0,
        at: UnixMillis(0),
        kind: kind.into(),
        plugin: None,
        generation: None,
        reason: None,
        call_id: None,
        operation: None,
        status: None,
        duration_us: None,
        detail: None,
    }
}

impl Events {
    pub(crate) fn new() -> Events {
        Events { latest: Mutex::default(), followers: broadcast::Sender::new(FOLLOWERS_BEHIND_MAX) }
    }

    /// Numbers an event, says when it was where that is open, keeps it and passes it on; never waits.
    pub(crate) fn emit(&self, mut event: Event) {
        if event.at == UnixMillis(0) {
            event.at = unix_now();
        }
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.last_seq += 1;
        event.seq = latest.last_seq;
        if latest.events.len() == EVENTS_KEPT {
            latest.events.pop_front();
        }
        // Sent under the lock, so that followers see the numbers in order.
        if self.followers.receiver_count() > 0 {
            let _none = self.followers.send(event.clone());
        }
        latest.events.push_back(event);
    }

    /// The latest events that match, oldest first.
    pub(crate) fn latest(&self, params: &EventsParams) -> Vec<Event> {
        let tail = params.tail.unwrap_or(TAIL_DEFAULT) as usize;
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let matching = latest.events.iter().rev().filter(|event| matches(params, event));
        let mut events: Vec<Event> = matching.take(tail).cloned().collect();
        drop(latest);
        events.reverse();
        events
    }

    pub(crate) fn follow(&self) -> broadcast::Receiver<Event> {
        self.followers.subscribe()
    }
}

/// Whether an event is one that was asked for.
pub fn matches(params: &EventsParams, event: &Event) -> bool {
    params.plugin.is_none() || params.plugin == event.plugin
}
