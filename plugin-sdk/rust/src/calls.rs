//! The calls there are: which lanes they take, which wait for one, and when all are over.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use plugd_protocol::CallId;
use serde_json::value::RawValue;

use crate::context::Context;
use crate::wire::lock;

/// Calls that may wait for a lane. A host sends no more than the declared lanes at once, so this only
/// bounds what a broken one can pile up.
const WAITING_MAX: usize = 1024;

/// One call, ready to run.
pub(crate) struct Call {
    /// The request's id.
    pub(crate) id: Box<RawValue>,
    /// Which of the plugin's operations.
    pub(crate) operation: usize,
    pub(crate) arguments: Box<RawValue>,
    pub(crate) context: Context,
}

/// What became of a call that came.
pub(crate) enum Entered {
    /// It has a lane: whoever gets it runs it.
    Runs(Call),
    /// It waits for one.
    Waits,
    /// Too many wait already.
    Refused(Call),
}

/// The lanes, and all that is being worked on.
pub(crate) struct Calls {
    state: Mutex<State>,
    /// Tells that there is nothing more to be read.
    ended: Condvar,
    /// Tells that something is over.
    fewer: Condvar,
}

struct State {
    free_lanes: u32,
    waiting: VecDeque<Call>,
    /// Every call that has come and is not over.
    open: Vec<Context>,
    /// Other requests that are being worked on, on threads of their own.
    beside: usize,
    /// Whether there is nothing more to be read.
    ended: bool,
    /// Whether a thread waits until fewer are open: while calls come and go none does, and is told.
    counted_down: bool,
}

impl Calls {
    pub(crate) fn new(lanes: u32) -> Calls {
        let state = State {
            free_lanes: lanes,
            waiting: VecDeque::new(),
            open: Vec::new(),
            beside: 0,
            ended: false,
            counted_down: false,
        };
        Calls { state: Mutex::new(state), ended: Condvar::new(), fewer: Condvar::new() }
    }

    /// Gives a call a lane, if one is free.
    pub(crate) fn enter(&self, call: Call) -> Entered {
        let mut state = lock(&self.state);
        if state.free_lanes == 0 && state.waiting.len() >= WAITING_MAX {
            return Entered::Refused(call);
        }
        state.open.push(call.context.clone());
        if state.free_lanes == 0 {
            state.waiting.push_back(call);
            return Entered::Waits;
        }
        state.free_lanes -= 1;
        Entered::Runs(call)
    }

    /// Notes that a call was answered; gives the next one for its lane.
    pub(crate) fn leave(&self, call_id: &CallId) -> Option<Call> {
        let mut state = lock(&self.state);
        if let Some(at) = state.open.iter().position(|call| call.call_id() == call_id) {
            state.open.swap_remove(at);
        }
        self.tell(&state);
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.free_lanes += 1;
        }
        next
    }

    /// The calls of that id which are not over.
    pub(crate) fn of_id(&self, call_id: &CallId) -> Vec<Context> {
        lock(&self.state).open.iter().filter(|call| call.call_id() == call_id).cloned().collect()
    }

    /// Notes that a request is worked on beside the calls.
    pub(crate) fn begin_beside(&self) {
        lock(&self.state).beside += 1;
    }

    /// Notes that it was answered.
    pub(crate) fn end_beside(&self) {
        let mut state = lock(&self.state);
        state.beside -= 1;
        self.tell(&state);
    }

    /// Notes that there is nothing more to be read.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.ended.notify_all();
    }

    /// Waits until there is nothing more to be read.
    pub(crate) fn wait_for_end(&self) {
        let waited = self.ended.wait_while(lock(&self.state), |state| !state.ended);
        drop(waited);
    }

    /// Waits until at most so many calls and other requests are open.
    pub(crate) fn wait_until_open_are(&self, most: usize, timeout: Duration) {
        let mut state = lock(&self.state);
        state.counted_down = true;
        let too_many = |state: &mut State| state.open.len() + state.beside > most;
        let waited = self.fewer.wait_timeout_while(state, timeout, too_many);
        drop(waited);
    }

    fn tell(&self, state: &State) {
        if state.counted_down {
            self.fewer.notify_all();
        }
    }
}
