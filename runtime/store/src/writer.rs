//! The one thread that writes: batches in transactions, and what is over removed in between.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plugd_protocol::control::UnixMillis;
use rusqlite::{Connection, TransactionBehavior};

use crate::condition::Condition;
use crate::error::{StoreError, in_words, is_damage, is_fatal};
use crate::file::{FileIdentity, Opened, empty_log, is_empty, reopen};
use crate::kept;
use crate::line::Line;
use crate::owners::Owners;
use crate::queue::{BATCH_ROWS, Load, Queue, Turn};
use crate::readers::Readers;
use crate::retention::{ROWS_AT_ONCE, Retention, prune, sweep};
use crate::rows::{Rows, unix_now};

/// How often is looked for what is over.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// A transaction has about so small a part of what the file may hold: it is pruned in between.
const BATCH_SHARE: u64 = 32;

/// What befell a file that has not its name any more.
pub(crate) const LOST: &str = "was moved or deleted under plugd";

/// What befell a file that has its name, and nothing else.
const EMPTIED: &str = "was emptied under plugd";

/// Something that somebody waits for. It may be done twice, where the first time came to nothing.
pub(crate) trait Act: Send {
    /// Whether it must be on the disk before anybody hears of it, and not only with the kernel.
    fn durable(&self) -> bool;
    /// Does it, within a transaction.
    fn act(&mut self, place: &mut Place<'_>) -> rusqlite::Result<()>;
    /// Tells whoever waits: it was committed, or why not.
    fn tell(self: Box<Self>, path: &Path, committed: Result<(), StoreError>);
}

/// Where acts are done.
pub(crate) struct Place<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) rows: &'a mut Rows,
    pub(crate) owners: &'a Owners,
    pub(crate) keep: &'a Retention,
    pub(crate) now: UnixMillis,
    /// Set where something was deleted that nobody may find any more.
    pub(crate) forgets: &'a Cell<bool>,
}

/// What the thread and the handle share.
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    pub(crate) keep: Retention,
    pub(crate) queue: Queue,
    pub(crate) readers: Readers,
    pub(crate) owners: Owners,
    pub(crate) condition: Condition,
    /// Which file is written; none while there is none.
    pub(crate) identity: Mutex<Option<FileIdentity>>,
}

impl Shared {
    /// Whether the file that is written has lost its name, or what was in it.
    pub(crate) fn has_lost_file(&self) -> bool {
        let identity = self.identity();
        identity.is_some() && (FileIdentity::of(&self.path) != identity || is_empty(&self.path))
    }

    fn identity(&self) -> Option<FileIdentity> {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_now(&self, identity: Option<FileIdentity>) {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = identity;
    }
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    /// None while it cannot be opened.
    connection: Option<Connection>,
    rows: Rows,
    forgets: Cell<bool>,
    /// Batches that had been dealt with at the sweep before.
    log_seen: u64,
    /// Whether SQLite waits for the disk at each commit.
    durable: Option<bool>,
    sweep_at: Instant,
    pruning: bool,
}

/// Marks the end, also where the thread panics.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.readers.replace();
        self.0.owners.leave();
        self.0.queue.end();
    }
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, opened: Opened) -> Writer {
        Writer {
            shared,
            connection: Some(opened.connection),
            rows: Rows::default(),
            forgets: Cell::new(false),
            log_seen: 0,
            durable: None,
            sweep_at: Instant::now() + SWEEP_EVERY,
            pruning: false,
        }
    }

    /// Writes until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let _ending = Ending(Arc::clone(&self.shared));
        let mut load = Load::default();
        loop {
            match self.shared.queue.next(&mut load, self.sweep_at) {
                Turn::Batch => {
                    self.unload(&mut load);
                    load.clear();
                }
                Turn::Idle => {}
                Turn::End => break,
            }
            if Instant::now() >= self.sweep_at {
                self.sweep();
            }
        }
        // Processes that live no minute remove something, too: each of them more than it has added.
        self.sweep();
        self.empty_log();
        // The last connection that is closed writes the log back: no reader may be left. Whoever
        // waits for the end waits for that, too.
        self.shared.readers.replace();
        self.connection = None;
    }

    /// Writes all that was taken, in transactions that are small beside the file.
    fn unload(&mut self, load: &mut Load) {
        let mut acts = std::mem::take(&mut load.acts);
        let bytes_at_once = usize::try_from(self.shared.keep.bytes / BATCH_SHARE).unwrap_or(usize::MAX);
        let (mut left, mut rows_left, mut room_left) = (&*load.lines, load.rows, load.room);
        while rows_left > 0 || !acts.is_empty() {
            let (mut lines, all) = (Vec::with_capacity(rows_left.min(BATCH_ROWS)), left.len());
            while lines.len() < rows_left.min(BATCH_ROWS) && all - left.len() < bytes_at_once {
                match Line::take_from(&mut left) {
                    Ok(line) => lines.push(line),
                    // What was written here is read here: it does not come to this.
                    Err(_) => {
                        self.shared.condition.dropped((rows_left - lines.len()) as u64);
                        rows_left = lines.len();
                    }
                }
            }
            let room = if lines.len() == rows_left { room_left } else { room_left / rows_left * lines.len() };
            rows_left -= lines.len();
            room_left -= room;
            let acts = if rows_left == 0 { std::mem::take(&mut acts) } else { Vec::new() };
            self.batch(lines, acts);
            self.shared.queue.free(room);
        }
    }

    fn batch(&mut self, mut lines: Vec<Line<'_>>, mut acts: Vec<Box<dyn Act>>) {
        let count = lines.len();
        let outcome = self.write(&mut lines, &mut acts);
        match &outcome {
            Ok(without_row) => {
                self.shared.condition.written();
                if *without_row > 0 {
                    self.shared.condition.dropped(*without_row);
                }
            }
            Err(error) => {
                self.shared.condition.dropped(count as u64);
                self.shared.condition.failed(&reason(error));
            }
        }
        for act in acts {
            act.tell(&self.shared.path, outcome.as_ref().map(|_| ()).map_err(Clone::clone));
        }
        self.shared.condition.batch_done();
        if outcome.is_ok() {
            self.prune(count);
        }
    }

    /// Writes a batch, into a new file where this one proves damaged; how many rows could not be.
    fn write(&mut self, rows: &mut [Line<'_>], acts: &mut [Box<dyn Act>]) -> Result<u64, StoreError> {
        self.follow_file()?;
        rows.sort_by_key(|line| line.number.map(|call| call.number));
        match self.commit(rows, acts) {
            Ok(without_row) => Ok(without_row),
            Err(error) if is_damage(&error) => {
                self.replace(&in_words(&error))?;
                self.commit(rows, acts).map_err(|error| StoreError::of(&self.shared.path, &error))
            }
            Err(error) => Err(StoreError::of(&self.shared.path, &error)),
        }
    }

    fn commit(&mut self, rows: &[Line<'_>], acts: &mut [Box<dyn Act>]) -> rusqlite::Result<u64> {
        let Some(connection) = &mut self.connection else {
            return Err(rusqlite::Error::InvalidPath(self.shared.path.clone()));
        };
        let durable = acts.iter().any(|act| act.durable());
        if self.durable != Some(durable) {
            connection.pragma_update(None, "synchronous", if durable { "full" } else { "normal" })?;
            self.durable = Some(durable);
        }
        let written = transact(connection, &mut self.rows, &self.shared, &self.forgets, rows, acts);
        if written.is_err() {
            self.rows.forget();
        }
        written
    }

    /// Goes on in a new file where this one has lost its name, another has taken it, or it is empty.
    fn follow_file(&mut self) -> Result<(), StoreError> {
        if self.connection.is_some() && !self.shared.has_lost_file() {
            return Ok(());
        }
        let lost = self.connection.is_some();
        let why = if lost && is_empty(&self.shared.path) { EMPTIED } else { LOST };
        if lost {
            tracing::warn!(path = %self.shared.path.display(), "the record of calls {why}: it goes on in a new file, and keys of earlier calls are unknown now");
            self.shared.condition.begun_anew(why);
        }
        if why == LOST {
            self.shared.is_now(None);
        }
        self.replace(why)
    }

    /// Opens the file anew; what is damaged is moved aside.
    fn replace(&mut self, reason: &str) -> Result<(), StoreError> {
        self.connection = None;
        self.rows.forget();
        self.durable = None;
        let Shared { path, owners, .. } = &*self.shared;
        owners.stay(path).map_err(|error| StoreError::unusable(path, error.to_string()))?;
        let opened = reopen(path, owners, self.shared.identity(), reason)?;
        self.connection = Some(opened.connection);
        self.shared.is_now(opened.identity);
        if let Some(moved) = opened.moved_aside {
            self.shared.condition.moved(moved);
        }
        self.shared.readers.replace();
        Ok(())
    }

    /// Removes the oldest rows where the file is too full, more of them than were just written.
    fn prune(&mut self, written: usize) {
        for _ in 0..=2 * written / ROWS_AT_ONCE {
            let Some(connection) = &mut self.connection else { return };
            match prune(connection, &self.shared.keep, &self.shared.owners, self.pruning) {
                Ok(more) => self.pruning = more,
                Err(error) => return self.not_removed(&error),
            }
            if !self.pruning {
                return;
            }
        }
    }

    fn sweep(&mut self) {
        if let Err(error) = self.follow_file() {
            self.shared.condition.failed(&reason(&error));
        }
        let Some(connection) = &mut self.connection else {
            self.sweep_at = Instant::now() + SWEEP_EVERY;
            return;
        };
        let swept = sweep(connection, &self.shared.keep, &self.shared.owners, &self.forgets);
        let more = swept.as_ref().is_ok_and(|more| *more);
        self.sweep_at = Instant::now() + if more { Duration::ZERO } else { SWEEP_EVERY };
        match swept {
            Ok(_) => self.prune(0),
            Err(error) => self.not_removed(&error),
        }
        // Where nothing was written for a while, nobody waits for this.
        if !more && (self.forgets.get() || self.shared.condition.batches() == self.log_seen) {
            self.empty_log();
        }
        self.log_seen = self.shared.condition.batches();
    }

    /// Takes out of the log what was deleted from the file.
    fn empty_log(&mut self) {
        let Some(connection) = &self.connection else { return };
        match empty_log(connection) {
            Ok(()) => self.forgets.set(false),
            Err(error) => tracing::debug!(%error, "the record's log could not be emptied"),
        }
    }

    fn not_removed(&mut self, error: &rusqlite::Error) {
        let reason = in_words(error);
        if is_damage(error)
            && let Err(error) = self.replace(&reason)
        {
            self.shared.condition.failed(&self::reason(&error));
        } else {
            tracing::debug!(reason, "what is over could not be removed from the record");
        }
    }
}

/// One transaction; how many rows could not be written.
fn transact(
    connection: &mut Connection,
    rows: &mut Rows,
    shared: &Shared,
    forgets: &Cell<bool>,
    batch: &[Line<'_>],
    acts: &mut [Box<dyn Act>],
) -> rusqlite::Result<u64> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let without_row = rows.insert_all(&transaction, batch)?;
    for row in batch.iter().filter(|row| row.whole.is_some()) {
        let place = Place {
            connection: &transaction,
            rows,
            owners: &shared.owners,
            keep: &shared.keep,
            now: unix_now(),
            forgets,
        };
        match kept::keep_beside(&place, row) {
            Err(error) if is_fatal(&error) => return Err(error),
            // Nobody was promised it.
            Ok(()) | Err(_) => {}
        }
    }
    for act in acts {
        let savepoint = transaction.savepoint()?;
        let mut place = Place {
            connection: &savepoint,
            rows,
            owners: &shared.owners,
            keep: &shared.keep,
            now: unix_now(),
            forgets,
        };
        match act.act(&mut place) {
            Ok(()) => savepoint.commit()?,
            Err(error) if is_fatal(&error) => return Err(error),
            // What has failed keeps its reason and is undone alone.
            Err(_) => {
                savepoint.finish()?;
                rows.forget_kinds();
            }
        }
    }
    rows.settle(&transaction)?;
    transaction.commit()?;
    Ok(without_row)
}

fn reason(error: &StoreError) -> String {
    match error {
        StoreError::Unusable { reason, .. } => reason.clone(),
        StoreError::Newer { .. } | StoreError::Late | StoreError::Closed => error.to_string(),
    }
}
