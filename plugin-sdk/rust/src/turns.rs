//! Threads that take turns at reading: a call runs on the thread that read it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use plugd_protocol::frame::{DEFAULT_FRAME_LIMIT, Decoder};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::standby::Standby;
use crate::wire::lock;

/// Whose turn it is to read.
///
/// With one lane there are two threads. One reads a call and runs it, which costs nothing but the
/// handler's own time; the other stands by, and takes over the reading where a handler runs for more
/// than a moment or waits for the host. So a cancel, a ping, an answer and the end are heard meanwhile.
/// With more lanes there is one thread more than lanes, and whichever is free reads at once.
pub(crate) struct Turns {
    /// Held by the thread that reads.
    input: Mutex<Input>,
    standby: Arc<Standby>,
    /// Threads that wait for their turn; counted where there are several lanes.
    free: AtomicUsize,
    threads: AtomicUsize,
    threads_max: usize,
}

/// What the host writes, as far as it has come.
pub(crate) struct Input {
    pub(crate) decoder: Decoder,
    pipe: OwnedFd,
    ended: bool,
}

impl Input {
    /// Waits for more bytes; `false` once there are no more to come.
    pub(crate) fn fill(&mut self) -> bool {
        loop {
            match rustix::io::read(&self.pipe, spare_capacity(self.decoder.room())) {
                Ok(1..) => return true,
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => {
                    self.ended = true;
                    return false;
                }
            }
        }
    }
}

impl Turns {
    pub(crate) fn new(pipe: OwnedFd, lanes: u32, standby: Arc<Standby>) -> Turns {
        let input = Input { decoder: Decoder::new(DEFAULT_FRAME_LIMIT), pipe, ended: false };
        Turns {
            input: Mutex::new(input),
            standby,
            free: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            threads_max: lanes as usize + 1,
        }
    }

    /// Waits until it is this thread's turn to read; `None` once there is nothing more to be read.
    pub(crate) fn next(&self) -> Option<MutexGuard<'_, Input>> {
        let input = if self.is_one_lane() {
            self.try_next().or_else(|| self.standby.wait(|| self.try_next()))?
        } else {
            self.free.fetch_add(1, Ordering::SeqCst);
            let input = lock(&self.input);
            self.free.fetch_sub(1, Ordering::SeqCst);
            input
        };
        if input.ended { None } else { Some(input) }
    }

    fn try_next(&self) -> Option<MutexGuard<'_, Input>> {
        match self.input.try_lock() {
            Ok(input) => Some(input),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Runs a call on this thread, which has given up its turn.
    pub(crate) fn run(&self, call: impl FnOnce()) {
        if self.is_one_lane() {
            self.standby.call_begins();
            call();
            self.standby.call_ends();
        } else {
            call();
        }
    }

    /// Counts one thread more, if there is none to read while this one runs a call.
    pub(crate) fn wants_a_thread(&self) -> bool {
        let more = |threads| (threads < self.threads_max).then_some(threads + 1);
        let all_busy = self.is_one_lane() || self.free.load(Ordering::SeqCst) == 0;
        all_busy && self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    /// Takes the count of a thread back that could not be had.
    pub(crate) fn had_no_thread(&self) {
        self.threads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Lets go of the threads that wait for their turn.
    pub(crate) fn end(&self) {
        self.standby.is_over();
    }

    fn is_one_lane(&self) -> bool {
        self.threads_max == 2
    }
}
