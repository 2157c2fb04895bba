//! Texts that are kept whole, each for a purpose, and the results of calls among them.

use plugd_protocol::CallId;
use plugd_protocol::control::UnixMillis;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::value::RawValue;

use crate::error::StoreError;
use crate::line::Line;
use crate::packed::{Id, count, number};
use crate::retention::RESULTS_KEPT;
use crate::store::{Commit, Store};
use crate::writer::Place;

/// Data that nobody was promised to find again is kept while no more than this waits to be written.
const DATA_WAITING: usize = 4 * 1024 * 1024;

/// A text counts so much more than it is long, so that many short ones are bounded as well.
const TEXT_BYTES: u64 = 128;

/// What a text is kept for; each purpose has bytes of its own, so that none drives out another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A result that is read by pages.
    Result,
    /// Data of a call that nobody was promised to find again.
    Data,
    /// The answer to a call with a key.
    Key,
    /// The result of a job.
    Job,
    /// What a token carries on.
    Token,
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Purpose::Result => "result",
            Purpose::Data => "data",
            Purpose::Key => "key",
            Purpose::Job => "job",
            Purpose::Token => "token",
        }
    }
}

/// A result that is kept.
#[derive(Debug, Clone)]
pub struct Kept {
    /// What was called.
    pub operation: String,
    /// The whole data.
    pub data: Box<RawValue>,
}

impl Store {
    /// Keeps a result, to be read by pages: for a week, and within a quarter of the store's bytes,
    /// where the oldest go first. It waits until that is written.
    ///
    /// # Errors
    /// Where it cannot be.
    pub async fn keep_result(&self, id: &CallId, operation: &str, data: &RawValue) -> Result<(), StoreError> {
        let (id, operation, data) = (id.clone(), operation.to_owned(), data.to_owned());
        self.write(Commit::Written, data.get().len(), move |place| {
            keep_as(place, Purpose::Result, id.as_str(), &operation, data.get())
        })
        .await
    }

    /// Whether there is time to keep data that nobody was promised to find again.
    pub fn has_time_for_data(&self) -> bool {
        self.shared().queue.taken() < DATA_WAITING
    }

    /// A result that is kept, if it is.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn result(&self, id: &CallId) -> Result<Option<Kept>, StoreError> {
        let id = id.clone();
        self.read_after_writing(move |connection| {
            connection
                .prepare_cached(
                    "SELECT operation, text FROM results JOIN kept ON kept.id = results.kept WHERE call = ?1",
                )?
                .query_row([Id::of(id.as_str())], |row| {
                    Ok(Kept { operation: row.get(0)?, data: raw(row.get(1)?)? })
                })
                .optional()
        })
        .await
    }
}

/// Keeps data that came with a row.
pub(crate) fn keep_beside(place: &Place<'_>, line: &Line<'_>) -> rusqlite::Result<()> {
    match (&line.whole, line.operation_id()) {
        (Some(data), Some(operation)) => keep_as(place, Purpose::Data, &line.call_id, &operation, data),
        (Some(_), None) | (None, _) => Ok(()),
    }
}

fn keep_as(
    place: &Place<'_>,
    purpose: Purpose,
    id: &str,
    operation: &str,
    data: &str,
) -> rusqlite::Result<()> {
    let call = Id::of(id);
    forget_result(place.connection, &call)?;
    let kept = keep(place, purpose, later(place.now, RESULTS_KEPT), data)?;
    place
        .connection
        .prepare_cached("INSERT INTO results (call, operation, kept) VALUES (?1, ?2, ?3)")?
        .execute(params![call, operation, kept])?;
    Ok(())
}

fn forget_result(connection: &Connection, call: &Id<'_>) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM kept WHERE id = (SELECT kept FROM results WHERE call = ?1)")?
        .execute([call])
        .map(drop)
}

/// Keeps a text, and drops the oldest of its purpose where they are too many; its number.
pub(crate) fn keep(
    place: &Place<'_>,
    purpose: Purpose,
    until: UnixMillis,
    text: &str,
) -> rusqlite::Result<i64> {
    let connection = place.connection;
    let bytes = text.len() as u64 + TEXT_BYTES;
    let kept = connection
        .prepare_cached("INSERT INTO kept (purpose, until, bytes, text) VALUES (?1, ?2, ?3, ?4)")?
        .insert(params![purpose.word(), number(until.0), number(bytes), text])?;
    let allowed = place.keep.bytes_for(purpose);
    loop {
        let all: i64 = connection
            .prepare_cached("SELECT bytes FROM kept_bytes WHERE purpose = ?1")?
            .query_row([purpose.word()], |row| row.get(0))?;
        // What is kept last is kept, whatever its size: somebody has just been promised it.
        if count(all) <= allowed.max(bytes) {
            return Ok(kept);
        }
        let dropped = connection
            .prepare_cached(
                "DELETE FROM kept WHERE id = (SELECT min(id) FROM kept WHERE purpose = ?1 AND id <> ?2)",
            )?
            .execute(params![purpose.word(), kept])?;
        if dropped == 0 {
            return Ok(kept);
        }
        place.forgets.set(true);
    }
}

/// Drops a text; what names it goes, or names nothing any more.
pub(crate) fn drop_text(connection: &Connection, kept: Option<i64>) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM kept WHERE id = ?1")?.execute([kept]).map(drop)
}

/// A text that was JSON when it was written.
pub(crate) fn raw(text: String) -> rusqlite::Result<Box<RawValue>> {
    RawValue::from_string(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
    })
}

/// So much later.
pub(crate) fn later(now: UnixMillis, by: std::time::Duration) -> UnixMillis {
    UnixMillis(now.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
}
