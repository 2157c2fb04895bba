//! The bounded queue in front of the thread that writes.
//!
//! What it holds is bounded in bytes, and a row counts at least a kilobyte. The thread is woken for
//! the first entry and then when a batch is full, when somebody waits for the disk, or after a
//! while: a row costs no wake-up of its own. The lock is held to append a row's bytes, and to take
//! all.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::line::Line;
use crate::writer::Act;

/// The queue holds so much; beyond that, whoever has more must wait or go without.
pub(crate) const QUEUE_BYTES: usize = 16 * 1024 * 1024;

/// So many rows make a batch; a transaction has no more. Pages of indices are written once for each
/// transaction that touches them, so with 512 they are most of what is written.
pub(crate) const BATCH_ROWS: usize = 2048;

/// A row waits no longer than this for others to be written with it.
const BATCH_WINDOW: Duration = Duration::from_millis(50);

/// What waits to be written.
#[derive(Default)]
pub(crate) struct Load {
    /// Rows, as [`Line`]s one after the other.
    pub(crate) lines: Vec<u8>,
    /// How many.
    pub(crate) rows: usize,
    /// What somebody waits for; it comes after the rows.
    pub(crate) acts: Vec<Box<dyn Act>>,
    /// How much of the queue it takes.
    pub(crate) room: usize,
}

impl Load {
    fn is_empty(&self) -> bool {
        self.rows == 0 && self.acts.is_empty()
    }

    /// Forgets what was written; room for twice as much stays.
    pub(crate) fn clear(&mut self) {
        let used = self.lines.len();
        self.lines.clear();
        self.lines.shrink_to(2 * used);
        (self.rows, self.room) = (0, 0);
        self.acts.clear();
    }
}

/// What the writing thread is to do next.
pub(crate) enum Turn {
    /// Write what was taken.
    Batch,
    /// Nothing has come until the given moment.
    Idle,
    /// Leave: all is written, and nothing more will come.
    End,
}

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// For the thread that writes.
    filled: Condvar,
    /// For whoever waits for its end.
    ended: Condvar,
    room: Semaphore,
}

#[derive(Default)]
struct Waiting {
    load: Load,
    urgent: bool,
    closing: bool,
    ended: bool,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue {
            waiting: Mutex::default(),
            filled: Condvar::new(),
            ended: Condvar::new(),
            room: Semaphore::new(QUEUE_BYTES),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room where there is some at once.
    pub(crate) fn try_room(&self, bytes: usize) -> bool {
        self.room.try_acquire_many(share(bytes)).map(|permit| permit.forget()).is_ok()
    }

    /// Waits for room; there is none any more once the queue is closed.
    pub(crate) async fn room(&self, bytes: usize) -> bool {
        self.room.acquire_many(share(bytes)).await.map(|permit| permit.forget()).is_ok()
    }

    /// About how much of it is taken.
    pub(crate) fn taken(&self) -> usize {
        QUEUE_BYTES.saturating_sub(self.room.available_permits())
    }

    /// Gives room back.
    pub(crate) fn free(&self, bytes: usize) {
        self.room.add_permits(bytes);
    }

    /// Appends a row that has room; false where the queue is closed.
    pub(crate) fn push_row(&self, line: &Line<'_>, bytes: usize) -> bool {
        self.push(bytes, false, |load| {
            let written = line.append_to(&mut load.lines).is_ok();
            load.rows += usize::from(written);
            written
        })
    }

    /// Appends what somebody waits for and has room; false where the queue is closed.
    pub(crate) fn push_act(&self, act: Box<dyn Act>, bytes: usize) -> bool {
        self.push(bytes, true, |load| {
            load.acts.push(act);
            true
        })
    }

    fn push(&self, bytes: usize, urgent: bool, append: impl FnOnce(&mut Load) -> bool) -> bool {
        let mut waiting = self.lock();
        let was_empty = waiting.load.is_empty();
        if waiting.closing || waiting.ended || !append(&mut waiting.load) {
            drop(waiting);
            self.free(bytes);
            return false;
        }
        waiting.load.room += bytes;
        waiting.urgent |= urgent;
        let full = waiting.load.rows == BATCH_ROWS;
        drop(waiting);
        if urgent || was_empty || full {
            self.filled.notify_one();
        }
        true
    }

    /// Takes all that waits, as soon as it is a batch; for the one thread that writes.
    pub(crate) fn next(&self, into: &mut Load, wake_at: Instant) -> Turn {
        let mut waiting = self.lock();
        while waiting.load.is_empty() && !waiting.closing {
            let Some(left) = left_until(wake_at) else { return Turn::Idle };
            waiting = wait(&self.filled, waiting, left);
        }
        let until = Instant::now() + BATCH_WINDOW;
        while !waiting.urgent && !waiting.closing && waiting.load.rows < BATCH_ROWS {
            let Some(left) = left_until(until) else { break };
            waiting = wait(&self.filled, waiting, left);
        }
        waiting.urgent = false;
        std::mem::swap(&mut waiting.load, into);
        if into.is_empty() && waiting.closing { Turn::End } else { Turn::Batch }
    }

    /// Nothing more is taken; what waits is still written.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.room.close();
        self.filled.notify_one();
    }

    /// The thread has ended.
    pub(crate) fn end(&self) {
        let mut waiting = self.lock();
        waiting.closing = true;
        waiting.ended = true;
        waiting.load = Load::default();
        drop(waiting);
        self.room.close();
        self.ended.notify_all();
    }

    /// Waits for the thread's end, but no longer than this.
    pub(crate) fn await_end(&self, at_most: Duration) {
        let until = Instant::now() + at_most;
        let mut waiting = self.lock();
        while !waiting.ended {
            let Some(left) = left_until(until) else { return };
            waiting = wait(&self.ended, waiting, left);
        }
    }
}

fn wait<'a>(condvar: &Condvar, guard: MutexGuard<'a, Waiting>, left: Duration) -> MutexGuard<'a, Waiting> {
    condvar.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
}

fn left_until(moment: Instant) -> Option<Duration> {
    let left = moment.saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left)
}

/// What is larger than the whole queue takes all of it.
pub(crate) fn bounded(bytes: usize) -> usize {
    bytes.min(QUEUE_BYTES)
}

fn share(bytes: usize) -> u32 {
    u32::try_from(bounded(bytes)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use plugd_protocol::control::UnixMillis;
    use plugd_protocol::{CallId, Status};

    use super::*;
    use crate::row::{Called, Row};

    fn push(queue: &Queue) -> bool {
        let row = Row::new(CallId::new("c"), UnixMillis(1), Called::Unknown("x".into()), Status::Ok);
        queue.push_row(&Line::of(&row), 0)
    }

    #[test]
    fn there_is_room_for_so_much_and_then_none_until_some_is_given_back() {
        let queue = Queue::new();
        assert!(queue.try_room(QUEUE_BYTES - 10) && !queue.try_room(11) && queue.try_room(10));
        queue.free(11);
        assert!(queue.try_room(11));
    }

    #[test]
    fn what_was_queued_before_the_end_is_still_taken() {
        let queue = Queue::new();
        assert!(push(&queue));
        queue.close();
        assert!(!push(&queue));
        let (mut taken, now) = (Load::default(), Instant::now());
        assert!(matches!(queue.next(&mut taken, now), Turn::Batch));
        assert_eq!((taken.rows, taken.acts.len()), (1, 0));
        taken.clear();
        assert!(matches!(queue.next(&mut taken, now), Turn::End));
    }

    #[test]
    fn an_empty_queue_lets_the_thread_do_other_things() {
        let queue = Queue::new();
        assert!(matches!(queue.next(&mut Load::default(), Instant::now()), Turn::Idle));
    }
}
