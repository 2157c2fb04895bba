//! Rows into the file: one insertion each, and what is counted of them with the same transaction.

use std::time::{SystemTime, UNIX_EPOCH};

use plugd_protocol::CallError;
use plugd_protocol::control::UnixMillis;
use rusqlite::{Connection, OptionalExtension, Statement, ToSql, params};

use crate::error::is_fatal;
use crate::kinds::Kinds;
use crate::packed::{CallNumber, Id, Trace, count, first_number, millis_of, number, pack_stages, word};
use crate::row::{Called, Row};
use crate::tallies::{Tallies, second};

/// So many rows in a line may have wanted the same number; a call that finds no free one has no row.
pub(crate) const SAME_NUMBER_MAX: i64 = 64;

/// An error's text in a row is at most so many bytes; beyond that its details are left out.
const ERROR_MAX: usize = 16 * 1024;

/// So many details of an error are kept.
const DETAILS_MAX: usize = 32;

const INSERT: &str = "
    INSERT INTO calls (id, call, kind, late_ms, duration_us, attempt, code, written, summary, answered_from,
        plugin_version, generation, session, trace, parent, key, argument_bytes, data_bytes, stages, error,
        given, run, data)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)
    ON CONFLICT DO NOTHING";

/// What rows need besides the file.
#[derive(Default)]
pub(crate) struct Rows {
    kinds: Kinds,
    tallies: Tallies,
}

impl Rows {
    /// Writes rows; how many calls have none afterwards.
    ///
    /// # Errors
    /// Where nothing more can be written. What cannot be of one row alone is counted.
    pub(crate) fn insert_all(&mut self, connection: &Connection, rows: &[Box<Row>]) -> rusqlite::Result<u64> {
        let mut insert = connection.prepare_cached(INSERT)?;
        let mut without_row = 0;
        for row in rows {
            match self.insert_by(connection, &mut insert, row) {
                Ok(true) => {}
                Ok(false) => without_row += 1,
                Err(error) if is_fatal(&error) => return Err(error),
                Err(error) => {
                    tracing::debug!(call_id = %row.call_id, %error, "a call could not be recorded");
                    without_row += 1;
                }
            }
        }
        Ok(without_row)
    }

    /// Writes a row; one of the same call is replaced.
    ///
    /// Whether there is a row afterwards: not where its id is no UUIDv7.
    pub(crate) fn insert(&mut self, connection: &Connection, row: &Row) -> rusqlite::Result<bool> {
        let mut insert = connection.prepare_cached(INSERT)?;
        self.insert_by(connection, &mut insert, row)
    }

    /// Writes the row of a call that begins, where there is none of it. It counts when it ends.
    pub(crate) fn begin(&mut self, connection: &Connection, row: &Row) -> rusqlite::Result<()> {
        let Some(CallNumber { number, id }) = CallNumber::of(&row.call_id) else { return Ok(()) };
        if has_row(connection, number, &id)? {
            return Ok(());
        }
        let kind = self.kinds.number(connection, row)?;
        let mut insert = connection.prepare_cached(INSERT)?;
        let mut new = New { row, id, kind, begins: true, insert: &mut insert };
        for free in number..number + SAME_NUMBER_MAX {
            if new.insert_at(free)? {
                break;
            }
        }
        Ok(())
    }

    /// Gives a row that a call had from its beginning the end that it came to.
    pub(crate) fn end(&mut self, connection: &Connection, number: i64, ended: &Row) -> rusqlite::Result<()> {
        let kind = self.kinds.number(connection, ended)?;
        let code = ended.error.as_ref().map(|error| error.code);
        let error = ended.error.as_deref().map(packed_error);
        connection
            .prepare_cached(
                "UPDATE calls SET kind = ?2, duration_us = ?3, code = ?4, summary = ?5, error = ?6 WHERE id = ?1",
            )?
            .execute(params![
                number,
                kind,
                self::number(ended.duration_us),
                code,
                ended.summary_line(),
                error.flatten()
            ])?;
        self.tallies.count(second(ended.at.0), kind, own_time(ended), 1);
        Ok(())
    }

    fn insert_by(
        &mut self,
        connection: &Connection,
        insert: &mut Statement<'_>,
        row: &Row,
    ) -> rusqlite::Result<bool> {
        let Some(CallNumber { number, id }) = CallNumber::of(&row.call_id) else { return Ok(false) };
        let kind = self.kinds.number(connection, row)?;
        let mut new = New { row, id, kind, begins: false, insert };
        if !new.insert_at(number)? && !self.insert_beside(connection, number, &mut new)? {
            return Ok(false);
        }
        let arrived = second(row.at.0);
        self.tallies.count(arrived, kind, own_time(row), 1);
        if let (Called::Operation(id), Some(error)) = (&row.called, &row.error) {
            self.tallies.count_mistakes(arrived, &id.to_string(), error);
        }
        Ok(true)
    }

    /// Where the number is taken: by an older row of this call, or by another call.
    fn insert_beside(
        &mut self,
        connection: &Connection,
        wanted: i64,
        new: &mut New<'_, '_>,
    ) -> rusqlite::Result<bool> {
        let older = connection
            .prepare_cached(
                "SELECT id, kind, duration_us, late_ms, answered_from IS NULL FROM calls WHERE id BETWEEN ?1 AND ?2 AND call = ?3",
            )?
            .query_row(params![wanted, wanted + SAME_NUMBER_MAX - 1, new.id], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?])
            })
            .optional()?;
        if let Some([older, older_kind, duration_us, late_ms, ran]) = older {
            connection.prepare_cached("DELETE FROM calls WHERE id = ?1")?.execute([older])?;
            let arrived = (millis_of(older) + late_ms) / 1000;
            if duration_us >= 0 {
                let own = (ran != 0).then(|| count(duration_us));
                self.tallies.count(arrived, older_kind, own, -1);
            }
            return new.insert_at(older);
        }
        for free in wanted + 1..wanted + SAME_NUMBER_MAX {
            if new.insert_at(free)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes what was counted.
    pub(crate) fn settle(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.tallies.write(connection)
    }

    /// Forgets kinds that may have been rolled back; what was counted stays.
    pub(crate) fn forget_kinds(&mut self) {
        self.kinds.clear();
    }

    /// Forgets all that may have been rolled back.
    pub(crate) fn forget(&mut self) {
        self.kinds.clear();
        self.tallies.clear();
    }
}

/// How long it took itself, where that was not another call's answer.
fn own_time(row: &Row) -> Option<u64> {
    row.answered_from.is_none().then_some(row.duration_us)
}

/// Whether there is a row of a call already.
pub(crate) fn has_row(connection: &Connection, number: i64, id: &[u8; 16]) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM calls WHERE id BETWEEN ?1 AND ?2 AND call = ?3")?
        .exists(params![number, number + SAME_NUMBER_MAX - 1, id])
}

/// A row on its way into the file.
struct New<'r, 's> {
    row: &'r Row,
    id: [u8; 16],
    kind: i64,
    /// Whether its end is to come.
    begins: bool,
    insert: &'r mut Statement<'s>,
}

impl New<'_, '_> {
    /// Whether the number was free, so that the row is there now.
    fn insert_at(&mut self, at: i64) -> rusqlite::Result<bool> {
        let row = self.row;
        let written = match &row.called {
            Called::Operation(_) => None,
            Called::Unknown(written) => Some(&**written),
        };
        let late_ms = number(row.at.0) - millis_of(at);
        let summary = row.summary_line();
        let code = row.error.as_ref().map(|error| error.code);
        let answered_from = row.answered_from.as_ref().map(word);
        let session = row.session.as_deref().map(Id::of);
        let trace = row.trace_id.as_deref().map(Trace::of);
        let parent = row.parent.as_ref().map(|parent| Id::of(parent.as_str()));
        let stages = pack_stages(&row.stages);
        let error = row.error.as_deref().map(packed_error);
        let duration = if self.begins { -1 } else { number(row.duration_us) };
        let generation = row.generation.map(number);
        let (argument_bytes, data_bytes) = (number(row.argument_bytes), number(row.data_bytes));
        let values: [&dyn ToSql; 23] = [
            &at,
            &self.id,
            &self.kind,
            &late_ms,
            &duration,
            &row.attempt,
            &code,
            &written,
            &summary,
            &answered_from,
            &row.plugin_version,
            &generation,
            &session,
            &trace,
            &parent,
            &row.key,
            &argument_bytes,
            &data_bytes,
            &stages,
            &error,
            &row.given,
            &row.run,
            &row.data,
        ];
        Ok(self.insert.execute(&values[..])? > 0)
    }
}

/// An error as JSON, within bounds.
fn packed_error(error: &CallError) -> Option<String> {
    let text = serde_json::to_string(error).ok()?;
    if text.len() <= ERROR_MAX {
        return Some(text);
    }
    let mut shorter = error.clone();
    shorter.details.truncate(DETAILS_MAX);
    let text = serde_json::to_string(&shorter).ok().filter(|text| text.len() <= ERROR_MAX);
    if text.is_some() {
        return text;
    }
    shorter.details.clear();
    shorter.cause = None;
    serde_json::to_string(&shorter).ok()
}

/// What the clock says.
pub(crate) fn unix_now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The least number of rows that arrived so long ago or later.
pub(crate) fn first_number_since(now: UnixMillis, age: std::time::Duration) -> i64 {
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    first_number(UnixMillis(now.0.saturating_sub(age)))
}
