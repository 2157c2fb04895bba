//! Kinds of calls: what was called, by whom, and how it ended, as one small number in a row.
//!
//! There are few kinds and many calls, so one index of kinds answers every question that names an
//! operation, a plugin, a caller or a status. Kinds are never deleted, so a number that is known
//! here stays right while others write to the same file.

use std::collections::HashMap;

use plugd_protocol::Status;
use rusqlite::{Connection, OptionalExtension, params};

use crate::line::Line;
use crate::packed::{of_word, word};

/// The numbers that are known already.
#[derive(Default)]
pub(crate) struct Kinds {
    /// By the plugin and its operation.
    by_operation: HashMap<Box<str>, HashMap<Box<str>, Vec<Known>>>,
    of_nothing: Vec<Known>,
}

struct Known {
    caller: Option<Box<str>>,
    status: Status,
    number: i64,
}

/// A kind as it stands in the file.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) number: i64,
    /// None where what was called does not exist.
    pub(crate) operation: Option<String>,
    pub(crate) caller: Option<String>,
    pub(crate) status: Status,
}

impl Kinds {
    /// The number of a row's kind; a new kind is written down.
    pub(crate) fn number(&mut self, connection: &Connection, line: &Line<'_>) -> rusqlite::Result<i64> {
        let known = match &line.operation {
            Some((plugin, name)) => self
                .by_operation
                .get(&**plugin)
                .and_then(|of_plugin| of_plugin.get(&**name))
                .map(Vec::as_slice),
            None => Some(&*self.of_nothing),
        };
        let caller = line.caller.as_deref();
        let same = |known: &&Known| known.status == line.status && known.caller.as_deref() == caller;
        if let Some(known) = known.unwrap_or_default().iter().find(same) {
            return Ok(known.number);
        }
        let operation = line.operation_id().unwrap_or_default();
        let number = number_in(connection, &operation, caller.unwrap_or_default(), line.status)?;
        let known = Known { caller: caller.map(Into::into), status: line.status, number };
        match &line.operation {
            Some((plugin, name)) => {
                let of_plugin = self.by_operation.entry((**plugin).into()).or_default();
                of_plugin.entry((**name).into()).or_default().push(known);
            }
            None => self.of_nothing.push(known),
        }
        Ok(number)
    }

    /// Forgets what may have been rolled back.
    pub(crate) fn clear(&mut self) {
        self.by_operation.clear();
        self.of_nothing.clear();
    }
}

fn number_in(
    connection: &Connection,
    operation: &str,
    caller: &str,
    status: Status,
) -> rusqlite::Result<i64> {
    let status = word(&status);
    let known = connection
        .prepare_cached("SELECT id FROM kinds WHERE operation = ?1 AND caller = ?2 AND status = ?3")?
        .query_row(params![operation, caller, status], |row| row.get(0))
        .optional()?;
    match known {
        Some(number) => Ok(number),
        None => connection
            .prepare_cached("INSERT INTO kinds (operation, caller, status) VALUES (?1, ?2, ?3)")?
            .insert(params![operation, caller, status]),
    }
}

/// All kinds of which this holds.
pub(crate) fn kinds_where(
    connection: &Connection,
    holds: impl Fn(&Kind) -> bool,
) -> rusqlite::Result<Vec<Kind>> {
    let mut statement = connection.prepare_cached("SELECT id, operation, caller, status FROM kinds")?;
    let mut rows = statement.query([])?;
    let mut kinds = Vec::new();
    let named = |name: String| (!name.is_empty()).then_some(name);
    while let Some(row) = rows.next()? {
        // A status that a newer plugd has added cannot be told here.
        let Some(status) = of_word(row.get(3)?) else { continue };
        let kind =
            Kind { number: row.get(0)?, operation: named(row.get(1)?), caller: named(row.get(2)?), status };
        if holds(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// Whether an operation is one of a plugin's.
pub(crate) fn is_of_plugin(operation: &str, plugin: &str) -> bool {
    operation.split_once('.').is_some_and(|(of, _)| of == plugin)
}
