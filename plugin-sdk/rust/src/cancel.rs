//! Whether a call is cancelled, and how those who wait for that hear of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::wire::lock;

/// Set once, by the host; threads and tasks may wait for it.
#[derive(Default)]
pub(crate) struct Cancel {
    is_set: AtomicBool,
    /// The tasks that wait.
    tasks: Mutex<Vec<Waker>>,
    set: Condvar,
}

impl Cancel {
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self) {
        let tasks = {
            let mut tasks = lock(&self.tasks);
            self.is_set.store(true, Ordering::Relaxed);
            std::mem::take(&mut *tasks)
        };
        self.set.notify_all();
        tasks.into_iter().for_each(Waker::wake);
    }

    /// Blocks until it is set, at most for `timeout`; whether it is.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let waited = self.set.wait_timeout_while(lock(&self.tasks), timeout, |_| !self.is_set());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.is_set()
    }

    /// Ready once it is set.
    #[cfg(feature = "async")]
    pub(crate) fn poll(&self, task: &std::task::Context<'_>) -> std::task::Poll<()> {
        let mut tasks = lock(&self.tasks);
        if self.is_set() {
            return std::task::Poll::Ready(());
        }
        if !tasks.iter().any(|waker| waker.will_wake(task.waker())) {
            tasks.push(task.waker().clone());
        }
        std::task::Poll::Pending
    }
}
