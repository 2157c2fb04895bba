//! When the thread that stands by is to take over the reading.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::wire::lock;

/// How often the thread that stands by looks while calls come; a call that it sees twice is a long one.
///
/// What the host says meanwhile is heard within two of these, and a look takes some microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// No call runs.
const NONE: u64 = 0;

/// What the thread that stands by goes by while the other one reads or runs a call.
///
/// A call pays for it with one store and one load. Nothing wakes while no calls come.
#[derive(Default)]
pub(crate) struct Standby {
    /// The number of the latest call.
    latest: AtomicU64,
    /// The number of the call that runs, or [`NONE`].
    running: AtomicU64,
    /// The number of the call that waits for the host.
    waiting: AtomicU64,
    /// Whether the thread sleeps until a call begins.
    asleep: AtomicBool,
    over: AtomicBool,
    bed: Mutex<()>,
    woken: Condvar,
}

impl Standby {
    /// Says that a call begins to run; only one runs at a time.
    pub(crate) fn call_begins(&self) {
        let number = self.latest.load(Ordering::Relaxed) + 1;
        self.latest.store(number, Ordering::Relaxed);
        // In one order with what the thread does as it goes to sleep: one of the two sees the other.
        self.running.store(number, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Says that the call has ended.
    pub(crate) fn call_ends(&self) {
        self.running.store(NONE, Ordering::Release);
    }

    /// Says that the call that runs waits for something that has to be read.
    pub(crate) fn call_waits(&self) {
        let running = self.running.load(Ordering::Acquire);
        if running != NONE {
            self.waiting.store(running, Ordering::SeqCst);
            self.wake();
        }
    }

    /// Says that there is nothing more to read.
    pub(crate) fn is_over(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Waits until it is needed and `take` gives what it then needs; `None` when it is over.
    pub(crate) fn wait<T>(&self, take: impl Fn() -> Option<T>) -> Option<T> {
        let (mut seen, mut latest) = (NONE, self.latest.load(Ordering::Relaxed));
        let mut bed = lock(&self.bed);
        while !self.over.load(Ordering::SeqCst) {
            let running = self.running.load(Ordering::SeqCst);
            let is_long = running == seen || running == self.waiting.load(Ordering::SeqCst);
            if running != NONE
                && is_long
                && let Some(taken) = take()
            {
                return Some(taken);
            }
            let latest_now = self.latest.load(Ordering::Relaxed);
            if running == NONE && latest_now == latest {
                self.asleep.store(true, Ordering::SeqCst);
                if self.running.load(Ordering::SeqCst) == NONE && !self.over.load(Ordering::SeqCst) {
                    bed = self.woken.wait(bed).unwrap_or_else(PoisonError::into_inner);
                }
                self.asleep.store(false, Ordering::SeqCst);
            } else {
                bed = self.woken.wait_timeout(bed, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
            }
            (seen, latest) = (running, latest_now);
        }
        None
    }

    fn wake(&self) {
        // Whoever is about to wait holds this until it does.
        drop(lock(&self.bed));
        self.woken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// A thread that stands by, and what says that it has taken over.
    fn standing_by() -> (Arc<Standby>, Receiver<bool>) {
        let standby = Arc::new(Standby::default());
        let (sender, taken) = channel();
        let it = Arc::clone(&standby);
        std::thread::spawn(move || sender.send(it.wait(|| Some(())).is_some()));
        (standby, taken)
    }

    #[test]
    fn a_call_that_takes_long_is_taken_over_from() {
        let (standby, taken) = standing_by();
        standby.call_begins();
        assert_eq!(taken.recv_timeout(Duration::from_secs(10)), Ok(true));
    }

    #[test]
    fn a_call_that_waits_is_taken_over_from_at_once() {
        let (standby, taken) = standing_by();
        standby.call_begins();
        standby.call_waits();
        assert_eq!(taken.recv_timeout(Duration::from_secs(10)), Ok(true));
    }

    #[test]
    fn the_end_is_heard_whether_calls_come_or_not() {
        for calls in [0, 1_000] {
            let (standby, ended) = (Arc::new(Standby::default()), channel());
            let it = Arc::clone(&standby);
            // What it would take over is never to be had.
            std::thread::spawn(move || ended.0.send(it.wait(|| None::<()>)));
            for _ in 0..calls {
                standby.call_begins();
                standby.call_ends();
            }
            standby.is_over();
            assert_eq!(ended.1.recv_timeout(Duration::from_secs(10)), Ok(None));
        }
    }
}
