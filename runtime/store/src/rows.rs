//! Rows into the file: one insertion each, and what is counted of them with the same transaction.

use std::time::{SystemTime, UNIX_EPOCH};

use plugd_protocol::control::UnixMillis;
use rusqlite::{Connection, OptionalExtension, Statement, ToSql, params};

use crate::error::is_fatal;
use crate::kinds::Kinds;
use crate::line::Line;
use crate::packed::{CallNumber, Id, Trace, count, first_number, millis_of, number, word};
use crate::row::Row;
use crate::tallies::{Tallies, second};

/// So many rows in a line may have wanted the same number; a call that finds no free one has no row.
pub(crate) const SAME_NUMBER_MAX: i64 = 64;

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
    pub(crate) fn insert_all(&mut self, connection: &Connection, rows: &[Line<'_>]) -> rusqlite::Result<u64> {
        let mut insert = connection.prepare_cached(INSERT)?;
        let mut without_row = 0;
        for row in rows {
            match self.insert_by(connection, &mut insert, row) {
                Ok(true) => {}
                Ok(false) => without_row += 1,
                Err(error) if is_fatal(&error) => return Err(error),
                Err(error) => {
                    tracing::debug!(call_id = &*row.call_id, %error, "a call could not be recorded");
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
        self.insert_by(connection, &mut insert, &Line::of(row))
    }

    /// Writes the row of a call that begins, where there is none of it. It counts when it ends.
    pub(crate) fn begin(&mut self, connection: &Connection, row: &Row) -> rusqlite::Result<()> {
        let line = Line::of(row);
        let Some(CallNumber { number, id }) = line.number else { return Ok(()) };
        if has_row(connection, number, &id)? {
            return Ok(());
        }
        let kind = self.kinds.number(connection, &line)?;
        let mut insert = connection.prepare_cached(INSERT)?;
        let mut new = New { line: &line, id, kind, begins: true, insert: &mut insert };
        for free in number..number + SAME_NUMBER_MAX {
            if new.insert_at(free)? {
                break;
            }
        }
        Ok(())
    }

    /// Gives a row that a call had from its beginning the end that it came to.
    pub(crate) fn end(&mut self, connection: &Connection, number: i64, ended: &Row) -> rusqlite::Result<()> {
        let line = Line::of(ended);
        let kind = self.kinds.number(connection, &line)?;
        connection
            .prepare_cached(
                "UPDATE calls SET kind = ?2, duration_us = ?3, code = ?4, summary = ?5, error = ?6 WHERE id = ?1",
            )?
            .execute(params![
                number,
                kind,
                self::number(line.duration_us),
                line.code,
                line.summary,
                line.error,
            ])?;
        self.tallies.count(second(line.at.0), kind, line.own_time(), 1);
        Ok(())
    }

    fn insert_by(
        &mut self,
        connection: &Connection,
        insert: &mut Statement<'_>,
        line: &Line<'_>,
    ) -> rusqlite::Result<bool> {
        let Some(CallNumber { number, id }) = line.number else { return Ok(false) };
        let kind = self.kinds.number(connection, line)?;
        let mut new = New { line, id, kind, begins: false, insert };
        if !new.insert_at(number)? && !self.insert_beside(connection, number, &mut new)? {
            return Ok(false);
        }
        let arrived = second(line.at.0);
        self.tallies.count(arrived, kind, line.own_time(), 1);
        if let Some(operation) = line.operation_id().filter(|_| !line.problems.is_empty()) {
            self.tallies.count_mistakes(arrived, &operation, &line.problems);
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

/// Whether there is a row of a call already.
pub(crate) fn has_row(connection: &Connection, number: i64, id: &[u8; 16]) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM calls WHERE id BETWEEN ?1 AND ?2 AND call = ?3")?
        .exists(params![number, number + SAME_NUMBER_MAX - 1, id])
}

/// A row on its way into the file.
struct New<'r, 's> {
    line: &'r Line<'r>,
    id: [u8; 16],
    kind: i64,
    /// Whether its end is to come.
    begins: bool,
    insert: &'r mut Statement<'s>,
}

impl New<'_, '_> {
    /// Whether the number was free, so that the row is there now.
    fn insert_at(&mut self, at: i64) -> rusqlite::Result<bool> {
        let line = self.line;
        let late_ms = number(line.at.0) - millis_of(at);
        let answered_from = line.answered_from.as_ref().map(word);
        let session = line.session.as_deref().map(Id::of);
        let trace = line.trace_id.as_deref().map(Trace::of);
        let parent = line.parent.as_deref().map(Id::of);
        let duration = if self.begins { -1 } else { number(line.duration_us) };
        let generation = line.generation.map(number);
        let (argument_bytes, data_bytes) = (number(line.argument_bytes), number(line.data_bytes));
        let values: [&dyn ToSql; 23] = [
            &at,
            &self.id,
            &self.kind,
            &late_ms,
            &duration,
            &line.attempt,
            &line.code,
            &line.written,
            &line.summary,
            &answered_from,
            &line.plugin_version,
            &generation,
            &session,
            &trace,
            &parent,
            &line.key,
            &argument_bytes,
            &data_bytes,
            &line.stages,
            &line.error,
            &line.given,
            &line.run,
            &line.data,
        ];
        Ok(self.insert.execute(&values[..])? > 0)
    }
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
