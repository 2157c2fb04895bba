//! The callers' way to a plugin: wait for it to be up, take a lane, hand over the call.
//!
//! Lanes are permits of the current run's semaphore, held until the plugin has answered. So a
//! call waits in line outside any run: when a run ends its lanes close, and whoever waited for
//! one waits for the next run, within its own deadlines.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plugd_protocol::control::PluginState;
use plugd_protocol::{CallId, OperationName, PluginName, RpcError};
use serde_json::value::RawValue;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{sleep_until, timeout_at};

use super::control::Command;
use super::deadline::Deadline;
use super::exit::ExitRecord;
use super::host::{Lineage, Standing};
use crate::launcher::Sandbox;
use crate::machine::{Generation, StopReason};

/// One plugin, as its callers see it.
#[derive(Debug)]
pub(crate) struct Door {
    name: PluginName,
    availability: watch::Sender<Availability>,
    waiting: AtomicU32,
    queue_length: AtomicU32,
}

/// Whether calls can be handed over.
#[derive(Debug, Clone)]
pub(crate) enum Availability {
    /// Yes, to this run.
    Open(Arc<RunDoor>),
    /// Not now; it is worth waiting.
    Wait { state: PluginState, reason: Option<String> },
    /// No, and waiting does not help.
    Shut { state: PluginState, reason: Option<String> },
}

/// The current run, as callers and the status see it.
#[derive(Debug)]
pub(crate) struct RunDoor {
    pub(crate) generation: Generation,
    /// What its process is kept from.
    pub(crate) sandbox: Sandbox,
    /// A permit a lane; none before the plugin is ready.
    pub(crate) lanes: Arc<Semaphore>,
    pub(crate) calls: mpsc::Sender<RunCall>,
    /// Rung when a caller has gone away; the run then looks which. One ring stands for all.
    pub(crate) abandoned: Notify,
    pub(crate) concurrency: AtomicU32,
    pub(crate) in_flight: AtomicU32,
    pub(crate) stray_lines: AtomicU64,
    pub(crate) unmatched_answers: AtomicU64,
    /// What it is to its plugin until it takes over.
    standing: Standing,
    /// Whether it serves, or is the one that will.
    serves: AtomicBool,
    /// What a candidate or a spare declares, until it takes over.
    manifest: Mutex<Option<Box<RawValue>>>,
    /// What its process is held to, and what not, as what and how or why.
    held: Mutex<(BTreeMap<String, String>, BTreeMap<String, String>)>,
}

/// How long a caller waits before its call runs.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// No longer than this for anything, where the caller said so.
    pub hard: Option<Instant>,
    /// In all, while the plugin keeps failing to start.
    pub unavailable: Duration,
    /// For a free lane of a plugin that is up.
    pub queue: Duration,
}

/// One call, as a plugin is to get it.
#[derive(Debug)]
pub struct CallRequest {
    /// The operation's name within the plugin.
    pub operation: OperationName,
    /// Its arguments: an object.
    pub arguments: Box<RawValue>,
    /// The call's id.
    pub call_id: CallId,
    /// The session it belongs to.
    pub session: Option<Arc<str>>,
    /// W3C trace context.
    pub traceparent: Option<Arc<str>>,
    /// Who calls.
    pub caller: Option<Arc<str>>,
    /// The caller's key for running this once.
    pub key: Option<Arc<str>>,
    /// 1 unless it is tried again.
    pub attempt: u32,
    /// How long it may run once it is handed over.
    pub timeout: Duration,
    /// How long it may go without progress.
    pub stall_timeout: Option<Duration>,
    /// No longer than this, however late it is handed over.
    pub hard_deadline: Option<Instant>,
    /// Nor longer than the calls that wait for it.
    pub inherited: Option<Deadline>,
    /// The plugins it has come through.
    pub lineage: Lineage,
}

/// A call on its way into a run. Dropped unanswered means that it was never delivered.
#[derive(Debug)]
pub(crate) struct RunCall {
    pub(crate) request: Arc<CallRequest>,
    pub(crate) reply: oneshot::Sender<Result<Answered, RunFailure>>,
    pub(crate) lane: OwnedSemaphorePermit,
}

/// What a plugin answered.
#[derive(Debug)]
pub struct Answered {
    /// Its data, as it wrote it.
    pub data: Box<RawValue>,
    /// Its summary.
    pub summary: Option<String>,
    /// What to do next, as it wrote it.
    pub next_actions: Option<Box<RawValue>>,
    /// From handing over to the answer.
    pub took: Duration,
}

/// Why a call was not handed over.
#[derive(Debug)]
pub enum NotAdmitted {
    /// The queue is full.
    Overloaded {
        /// How many wait.
        waiting: u32,
    },
    /// No lane came free in time.
    QueueTimedOut,
    /// The caller's deadline passed before the plugin was up.
    StartTimedOut {
        /// The state it was in.
        state: PluginState,
        /// Why.
        reason: Option<String>,
    },
    /// It failed to start for as long as the call could wait.
    Unavailable {
        /// Why.
        reason: Option<String>,
    },
    /// It is down, and waiting does not help.
    Shut {
        /// The state it is in.
        state: PluginState,
        /// Why.
        reason: Option<String>,
    },
    /// plugd is going.
    Gone,
}

/// Why a call that was handed over has no answer.
#[derive(Debug)]
pub enum RunFailure {
    /// It was not handed over after all: the run ended first. Nothing ran; try the next run.
    NotDelivered,
    /// The plugin answered with an error.
    Plugin(RpcError),
    /// The plugin answered without data.
    MissingData,
    /// A line carries the call's id and is no response.
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// Its answer was above the frame limit.
    FrameTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The arguments are above the frame limit.
    ArgumentsTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// It did not end in time.
    TimedOut {
        /// How long it was given.
        after: Duration,
        /// What the plugin wrote meanwhile that was no answer to anything.
        heard: Heard,
    },
    /// It made no progress for too long.
    Stalled {
        /// How long it was given.
        after: Duration,
    },
    /// The process ended first.
    Died {
        /// How.
        exit: ExitRecord,
        /// What it had done wrong, where it was killed for that.
        fault: Option<String>,
        /// Why it was being stopped, where it was.
        stopping: Option<StopReason>,
    },
}

/// What a plugin wrote during a call that was no answer to anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heard {
    /// Lines on stdout that were no messages.
    pub stray_lines: u64,
    /// Answers whose id nothing waited for.
    pub unmatched_answers: u64,
}

impl RunDoor {
    pub(crate) fn new(
        generation: Generation,
        sandbox: Sandbox,
        calls: mpsc::Sender<RunCall>,
        standing: Standing,
    ) -> RunDoor {
        RunDoor {
            generation,
            sandbox,
            lanes: Arc::new(Semaphore::new(0)),
            calls,
            abandoned: Notify::new(),
            concurrency: AtomicU32::new(1),
            in_flight: AtomicU32::new(0),
            stray_lines: AtomicU64::new(0),
            unmatched_answers: AtomicU64::new(0),
            standing,
            serves: AtomicBool::new(standing == Standing::Serving),
            manifest: Mutex::default(),
            held: Mutex::default(),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        if self.serves.load(Ordering::Relaxed) { Standing::Serving } else { self.standing }
    }

    /// Keeps what a candidate or a spare declares.
    pub(crate) fn keep_manifest(&self, manifest: &RawValue) {
        *lock(&self.manifest) = Some(manifest.to_owned());
    }

    /// What a candidate or a spare declares, while it is one.
    pub(crate) fn manifest(&self) -> Option<Box<RawValue>> {
        lock(&self.manifest).clone()
    }

    /// It serves from now on; what it declared comes back, once, to be registered.
    pub(crate) fn promote(&self) -> Option<Box<RawValue>> {
        self.serves.store(true, Ordering::Relaxed);
        lock(&self.manifest).take()
    }

    /// What its process is held to, and what not.
    pub(crate) fn enforced(&self) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        lock(&self.held).clone()
    }

    /// Takes note of what its process is held to, and what not.
    pub(crate) fn hold(&self, enforced: BTreeMap<String, String>, not_enforced: BTreeMap<String, String>) {
        *lock(&self.held) = (enforced, not_enforced);
    }

    /// Takes note that its process is not held to something after all.
    pub(crate) fn let_go(&self, what: String, why: String) {
        let mut held = lock(&self.held);
        held.0.remove(&what);
        held.1.insert(what, why);
    }

    /// What was heard in this run so far.
    pub(crate) fn heard(&self) -> Heard {
        Heard {
            stray_lines: self.stray_lines.load(Ordering::Relaxed),
            unmatched_answers: self.unmatched_answers.load(Ordering::Relaxed),
        }
    }
}

impl Heard {
    /// What was heard since.
    #[must_use]
    pub fn since(self, earlier: Heard) -> Heard {
        Heard {
            stray_lines: self.stray_lines.saturating_sub(earlier.stray_lines),
            unmatched_answers: self.unmatched_answers.saturating_sub(earlier.unmatched_answers),
        }
    }
}

/// A lane of a run, taken for one call.
#[derive(Debug)]
pub struct Lease {
    run: Arc<RunDoor>,
    lane: OwnedSemaphorePermit,
}

impl Lease {
    /// Which run it is.
    pub fn generation(&self) -> Generation {
        self.run.generation
    }

    /// What its process is kept from; a run that is up is held to that.
    pub fn sandbox(&self) -> Sandbox {
        self.run.sandbox
    }

    /// Hands the call over and waits for its end.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call: the plugin gets one `cancel`, and the lane stays
    /// taken until it has answered.
    ///
    /// # Errors
    /// [`RunFailure`], from which it can be told whether the plugin got the call.
    pub async fn run(self, request: Arc<CallRequest>) -> Result<Answered, RunFailure> {
        let (reply, answer) = oneshot::channel();
        let call = RunCall { request, reply, lane: self.lane };
        if self.run.calls.try_send(call).is_err() {
            return Err(RunFailure::NotDelivered);
        }
        let mut bell = AbandonBell { run: &self.run, armed: true };
        let outcome = answer.await.unwrap_or(Err(RunFailure::NotDelivered));
        bell.armed = false;
        outcome
    }
}

/// Rings when a caller goes away before its answer came.
struct AbandonBell<'a> {
    run: &'a RunDoor,
    armed: bool,
}

impl Drop for AbandonBell<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.run.abandoned.notify_one();
        }
    }
}

impl Door {
    pub(crate) fn new(name: PluginName, queue_length: u32) -> Door {
        let registered = Availability::Wait { state: PluginState::Registered, reason: None };
        Door {
            name,
            availability: watch::Sender::new(registered),
            waiting: AtomicU32::new(0),
            queue_length: AtomicU32::new(queue_length),
        }
    }

    pub(crate) fn set_queue_length(&self, length: u32) {
        self.queue_length.store(length, Ordering::Relaxed);
    }

    pub(crate) fn publish(&self, availability: Availability) {
        self.availability.send_replace(availability);
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Takes a lane of the current run, waiting for both; says that the plugin is wanted when it is not up.
    pub(crate) async fn admit(
        &self,
        patience: Patience,
        commands: &mpsc::Sender<Command>,
    ) -> Result<Lease, NotAdmitted> {
        if let Availability::Open(run) = &*self.availability.borrow()
            && let Ok(lane) = Arc::clone(&run.lanes).try_acquire_owned()
        {
            return Ok(Lease { run: Arc::clone(run), lane });
        }
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _in_line = InLine(&self.waiting);
        if waiting >= self.queue_length.load(Ordering::Relaxed) {
            return Err(NotAdmitted::Overloaded { waiting });
        }
        self.wait_in_line(patience, commands).await
    }

    async fn wait_in_line(
        &self,
        patience: Patience,
        commands: &mpsc::Sender<Command>,
    ) -> Result<Lease, NotAdmitted> {
        let mut watching = self.availability.subscribe();
        let mut unavailable_left = patience.unavailable;
        loop {
            let availability = watching.borrow_and_update().clone();
            match availability {
                Availability::Open(run) => {
                    let queue_ends = Instant::now() + patience.queue;
                    let ends = patience.hard.map_or(queue_ends, |hard| hard.min(queue_ends));
                    match timeout_at(ends.into(), Arc::clone(&run.lanes).acquire_owned()).await {
                        Ok(Ok(lane)) => return Ok(Lease { run, lane }),
                        Err(_late) => return Err(NotAdmitted::QueueTimedOut),
                        // This run takes no more calls; what comes next is about to be published.
                        Ok(Err(_closed)) => watching.changed().await.map_err(|_| NotAdmitted::Gone)?,
                    }
                }
                Availability::Shut { state, reason } => return Err(NotAdmitted::Shut { state, reason }),
                Availability::Wait { state, reason } => {
                    let wanted = Command::Wanted(self.name.clone());
                    commands.send(wanted).await.map_err(|_| NotAdmitted::Gone)?;
                    let since = Instant::now();
                    let failing = state == PluginState::Backoff;
                    let gives_up = failing.then(|| since + unavailable_left);
                    let ends = [patience.hard, gives_up].into_iter().flatten().min();
                    tokio::select! {
                        changed = watching.changed() => changed.map_err(|_| NotAdmitted::Gone)?,
                        () = until(ends) => {
                            return Err(match failing {
                                true => NotAdmitted::Unavailable { reason },
                                false => NotAdmitted::StartTimedOut { state, reason },
                            });
                        }
                    }
                    if failing {
                        unavailable_left = unavailable_left.saturating_sub(since.elapsed());
                    }
                }
            }
        }
    }
}

/// Each holder only moves a value in or out: a panic elsewhere leaves it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a caller as waiting for as long as it lives.
struct InLine<'a>(&'a AtomicU32);

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sleeps until then, or for ever.
pub(crate) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
