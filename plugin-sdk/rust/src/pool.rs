//! Threads for calls: as many as the plugin declares lanes, started when first needed.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::wire::lock;

/// Calls that may wait for a thread. A host sends no more than the declared lanes at once, so this
/// only bounds what a broken one can pile up.
const WAITING_MAX: usize = 1024;

/// One call to run.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// At most a fixed number of threads, and the calls waiting for one.
pub(crate) struct Pool {
    lanes: usize,
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Pool {
    pub(crate) fn new(lanes: u32) -> Pool {
        let shared = Shared { queue: Mutex::new(Queue::default()), changed: Condvar::new() };
        Pool { lanes: lanes as usize, shared: Arc::new(shared) }
    }

    /// Runs a job on a thread of the pool; `false` when no more can wait.
    pub(crate) fn run(&self, job: Job) -> bool {
        let mut queue = lock(&self.shared.queue);
        if queue.jobs.len() >= WAITING_MAX {
            return false;
        }
        queue.jobs.push_back(job);
        if queue.jobs.len() > queue.idle && queue.threads < self.lanes {
            let shared = Arc::clone(&self.shared);
            let name = format!("call-{}", queue.threads + 1);
            match std::thread::Builder::new().name(name).spawn(move || shared.work()) {
                Ok(_) => queue.threads += 1,
                // The threads there are will come to it; without any, nobody would.
                Err(_) if queue.threads > 0 => {}
                Err(_) => {
                    queue.jobs.pop_back();
                    return false;
                }
            }
        }
        drop(queue);
        self.shared.changed.notify_one();
        true
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                job();
                queue = lock(&self.queue);
            } else if queue.closed {
                return;
            } else {
                queue.idle += 1;
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
        }
    }
}
