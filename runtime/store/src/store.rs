//! The handle: rows into the queue, acts through it, questions beside it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use plugd_protocol::CallId;
use plugd_protocol::control::{CallDetail, CallRow, CallsParams, CallsStatsParams, OperationStats};
use rusqlite::Connection;
use tokio::sync::oneshot;
use tokio::time::{timeout, timeout_at};

use crate::aside::{self, MovedAside};
use crate::condition::{Condition, Health};
use crate::error::{StoreError, in_words, is_damage};
use crate::file;
use crate::line::Line;
use crate::owners::Owners;
use crate::queue::{Queue, bounded};
use crate::readers::Readers;
use crate::retention::Retention;
use crate::row::Row;
use crate::writer::{Act, LOST, Place, Shared, Writer};
use crate::{begun, calls, jobs, stats};

/// A row waits no longer than this for a disk that does not move: a call must not hang on it.
const ROOM_AWAITED: Duration = Duration::from_secs(1);

/// So often a disk that moves is waited for again.
const ROOM_AWAITED_TIMES: u32 = 10;

/// What somebody waits for takes at least so much of the queue.
const ACT_BYTES: usize = 1024;

/// How long the last handle that is dropped waits for the queue to be written.
const END_AWAITED: Duration = Duration::from_secs(2);

/// How long [`Store::close`] waits for it.
const CLOSE_AWAITED: Duration = Duration::from_secs(10);

/// A handle to the store; the last one that is dropped closes it.
#[derive(Clone)]
pub struct Store(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It will be written.
    Queued,
    /// It will not, and was counted.
    Dropped,
}

/// Whether an act must be on the disk before it counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// It survives the end of this process.
    Written,
    /// It survives the end of the machine, too.
    Durable,
}

impl Store {
    /// Opens the file, or makes it, and begins to write. It blocks for some milliseconds.
    ///
    /// The folder must be there. A damaged file is moved aside, which is told here, in the log and
    /// in [`Health`]; damage that shows later is answered in the same way. What ran in the
    /// background in a process that is gone gets its end.
    ///
    /// # Errors
    /// [`StoreError::Newer`] for the file of a newer plugd, which stays as it is;
    /// [`StoreError::Unusable`] where it cannot be opened or made.
    pub fn open(path: &Path, keep: Retention) -> Result<(Store, Option<MovedAside>), StoreError> {
        let unusable = |error: std::io::Error| StoreError::unusable(path, error.to_string());
        let owners = Owners::enter(path).map_err(unusable)?;
        let opened = file::open(path, &owners)?;
        let moved_aside = opened.moved_aside.clone();
        let now = moved_aside.as_ref().map(|aside| aside.to.as_path());
        let before = aside::latest(path).filter(|latest| now != Some(latest));
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            keep,
            queue: Queue::new(),
            readers: Readers::new(path),
            owners,
            condition: Condition::good(moved_aside.clone(), before),
            identity: Mutex::new(opened.identity),
        });
        let writer = Writer::new(Arc::clone(&shared), opened);
        let begun = thread::Builder::new().name("plugd-store".to_owned()).spawn(move || writer.run());
        begun.map_err(unusable)?;
        let store = Store(Arc::new(Handle { shared }));
        store.send(jobs::end_orphans);
        Ok((store, moved_aside))
    }

    /// Puts a row into the queue. Under load it waits for room: at most ten seconds, a second where
    /// the disk does not move, and not at all while nothing can be recorded; then the row is
    /// dropped and counted.
    pub async fn record(&self, row: Row) -> Recorded {
        let row = row.bounded();
        let bytes = bounded(row.bytes());
        match self.shared().queue.try_room(bytes) || self.await_room(bytes).await {
            true => self.push_row(&row, bytes),
            false => self.drop_row(),
        }
    }

    async fn await_room(&self, bytes: usize) -> bool {
        let Shared { queue, condition, .. } = &**self.shared();
        for _ in 0..ROOM_AWAITED_TIMES {
            let before = condition.batches();
            if !condition.is_recording() {
                return false;
            }
            match timeout(ROOM_AWAITED, queue.room(bytes)).await {
                Ok(got) => return got,
                Err(_) if condition.batches() == before => break,
                Err(_) => {}
            }
        }
        condition.failed("the disk does not keep up");
        false
    }

    /// The same, but for no longer than until then: what found no room by that is dropped and counted.
    pub async fn record_until(&self, row: Row, until: Instant) -> Recorded {
        let row = row.bounded();
        let bytes = bounded(row.bytes());
        let room = self.shared().queue.try_room(bytes)
            || timeout_at(until.into(), self.await_room(bytes)).await.unwrap_or(false);
        match room {
            true => self.push_row(&row, bytes),
            false => self.drop_row(),
        }
    }

    /// Puts a row into the queue if there is room at once; it never waits.
    pub fn record_now(&self, row: Row) -> Recorded {
        let row = row.bounded();
        let bytes = bounded(row.bytes());
        match self.shared().queue.try_room(bytes) {
            true => self.push_row(&row, bytes),
            false => self.drop_row(),
        }
    }

    fn push_row(&self, row: &Row, bytes: usize) -> Recorded {
        match self.shared().queue.push_row(&Line::of(row), bytes) {
            true => Recorded::Queued,
            false => self.drop_row(),
        }
    }

    fn drop_row(&self) -> Recorded {
        self.shared().condition.dropped(1);
        Recorded::Dropped
    }

    /// Waits until all that was queued before is written.
    ///
    /// # Errors
    /// Where it cannot be.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.write(Commit::Written, 0, |_| Ok(())).await
    }

    /// Writes what is queued and lets go of the file; other handles are of no use afterwards.
    pub async fn close(&self) {
        self.shared().queue.close();
        let shared = Arc::clone(self.shared());
        // Where the runtime is at its end, so is the process, and the last handle waits.
        let _waited = tokio::task::spawn_blocking(move || shared.queue.await_end(CLOSE_AWAITED)).await;
    }

    /// Whether calls are recorded at present.
    pub fn health(&self) -> Health {
        let mut health = self.shared().condition.health();
        // Whoever has seen to it removes it.
        health.set_aside_before.take_if(|file| !file.exists());
        if health.recording && self.shared().has_lost_file() {
            // Said at once, and mended without waiting for a call.
            self.send(|_| Ok(()));
            health.begun_anew.get_or_insert_with(|| LOST.to_owned());
        }
        health
    }

    /// The latest calls of a kind, the latest arrival first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn calls(&self, params: &CallsParams) -> Result<Vec<CallRow>, StoreError> {
        self.calls_seen(params, None).await
    }

    /// The same, of the operations that somebody may see; what does not exist is left out then.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn calls_seen(
        &self,
        params: &CallsParams,
        sees: Option<calls::Sees>,
    ) -> Result<Vec<CallRow>, StoreError> {
        let params = params.clone();
        self.read_after_writing(move |connection| calls::list(connection, &params, sees.as_ref())).await
    }

    /// All that is kept of one call, its log lines left out.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn call(&self, id: &CallId) -> Result<Option<CallDetail>, StoreError> {
        let id = id.clone();
        self.read_after_writing(move |connection| calls::detail(connection, &id)).await
    }

    /// How operations do, the most called first.
    ///
    /// Times are at most 3.2 % too long and never too short. `since` is taken to the full minute
    /// before it within the last two hours, else to the full hour before it. Calls of what does not
    /// exist are one line, `(unknown)`.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn stats(&self, params: &CallsStatsParams) -> Result<Vec<OperationStats>, StoreError> {
        let params = params.clone();
        self.read_after_writing(move |connection| stats::of_operations(connection, &params)).await
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Does something in the next batch, and waits until that is committed.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        commit: Commit,
        bytes: usize,
        act: impl FnMut(&mut Place<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let bytes = bounded(ACT_BYTES + bytes);
        if !self.shared().queue.room(bytes).await {
            return Err(StoreError::Closed);
        }
        let (reply, replied) = oneshot::channel();
        let act = Acting { durable: commit == Commit::Durable, act, outcome: None, reply: Some(reply) };
        if !self.shared().queue.push_act(Box::new(act), bytes) {
            return Err(StoreError::Closed);
        }
        replied.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Has something done in the next batch, and does not wait; not even for room, so it must be small.
    pub(crate) fn send<T: Send + 'static>(
        &self,
        act: impl FnMut(&mut Place<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) {
        let act = Acting { durable: false, act, outcome: None, reply: None };
        // Where the store is closed there is nothing to be done.
        let _queued = self.shared().queue.push_act(Box::new(act), 0);
    }

    /// Asks something on a thread of its own. Where the file proves damaged it is replaced, and the
    /// new one asked.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        question: impl Fn(&Connection) -> rusqlite::Result<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        if self.shared().has_lost_file() {
            // Where it cannot be replaced, what was open is asked.
            let _followed = self.flush().await;
        }
        let question = Arc::new(question);
        let mut replaced = false;
        loop {
            let file = self.shared().readers.file();
            let (shared, asked) = (Arc::clone(self.shared()), Arc::clone(&question));
            let answer =
                tokio::task::spawn_blocking(move || shared.readers.ask(|connection| asked(connection)));
            match answer.await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if is_damage(&error) && !replaced => {
                    replaced = true;
                    self.replace(file, in_words(&error)).await?;
                }
                Ok(Err(error)) => return Err(StoreError::of(&self.shared().path, &error)),
                Err(_runtime_ends) => return Err(StoreError::Closed),
            }
        }
    }

    /// As [`Store::read`], with all that this store was to write before.
    pub(crate) async fn read_after_writing<T: Send + 'static>(
        &self,
        question: impl Fn(&Connection) -> rusqlite::Result<T> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        // Calls that came to no end get it first.
        match self.write(Commit::Written, 0, begun::end_begun).await {
            Err(StoreError::Closed) => Err(StoreError::Closed),
            // What was written before can be read.
            Ok(()) | Err(StoreError::Unusable { .. } | StoreError::Newer { .. } | StoreError::Late) => {
                self.read(question).await
            }
        }
    }

    /// Has the writing thread replace a file that a reader found damaged, unless it has been already.
    async fn replace(&self, file: u64, reason: String) -> Result<(), StoreError> {
        let shared = Arc::clone(self.shared());
        let damaged = move |_: &mut Place<'_>| match shared.readers.file() == file {
            true => Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
                Some(reason.clone()),
            )),
            false => Ok(()),
        };
        self.write(Commit::Written, 0, damaged).await
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.queue.await_end(END_AWAITED);
    }
}

/// An act and whoever waits for it.
struct Acting<F, T> {
    durable: bool,
    act: F,
    outcome: Option<Result<T, String>>,
    reply: Option<oneshot::Sender<Result<T, StoreError>>>,
}

impl<F, T> Act for Acting<F, T>
where
    F: FnMut(&mut Place<'_>) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn durable(&self) -> bool {
        self.durable
    }

    fn act(&mut self, place: &mut Place<'_>) -> rusqlite::Result<()> {
        match (self.act)(place) {
            Ok(done) => {
                self.outcome = Some(Ok(done));
                Ok(())
            }
            Err(error) => {
                self.outcome = Some(Err(in_words(&error)));
                Err(error)
            }
        }
    }

    fn tell(self: Box<Self>, path: &Path, committed: Result<(), StoreError>) {
        let outcome = match (committed, self.outcome) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(done)) => done.map_err(|reason| StoreError::unusable(path, reason)),
            (Ok(()), None) => Err(StoreError::Closed),
        };
        if let Some(reply) = self.reply {
            // Whoever asked may have gone away.
            let _told = reply.send(outcome);
        }
    }
}
