//! Calls that have a row from their beginning: those with a key, and jobs. One whose store is gone
//! before its end is given it here, so that whoever is told of such a call finds it.

use plugd_protocol::control::UnixMillis;
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, CallResult, OperationId, Outcome, Status};
use rusqlite::{Connection, OptionalExtension, params};

use crate::packed::{Id, IdText, count, millis_of};
use crate::row::{Called, Row};
use crate::writer::Place;

/// A row that waits for its end.
struct Begun {
    number: i64,
    call_id: CallId,
    at: UnixMillis,
    operation: OperationId,
    caller: String,
    key: Option<String>,
}

/// What else is known of such a call.
struct Known {
    owner: Option<i64>,
    /// Its `CallResult`, where one is kept.
    text: Option<String>,
}

/// Gives rows their end where nobody is left who could.
pub(crate) fn end_begun(place: &mut Place<'_>) -> rusqlite::Result<()> {
    for begun in all(place.connection)? {
        let known = [of_key(place.connection, &begun)?, of_job(place.connection, &begun)?];
        let lives = |known: &Known| known.owner.is_some_and(|owner| place.owners.lives(owner));
        if known.iter().flatten().any(lives) {
            continue;
        }
        let kept = known.into_iter().flatten().filter_map(|known| known.text);
        let result = kept.filter_map(|text| serde_json::from_str::<CallResult>(&text).ok()).next();
        let ended = ended(&begun, result);
        place.rows.end(place.connection, begun.number, &ended)?;
    }
    Ok(())
}

fn all(connection: &Connection) -> rusqlite::Result<Vec<Begun>> {
    let sql = "SELECT calls.id, call, late_ms, operation, caller, key
               FROM calls INDEXED BY calls_begun JOIN kinds ON kinds.id = calls.kind WHERE duration_us < 0";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let Ok(operation) = OperationId::parse(row.get_ref(3)?.as_str()?) else { continue };
        let (number, late_ms): (i64, i64) = (row.get(0)?, row.get(2)?);
        found.push(Begun {
            number,
            call_id: row.get::<_, IdText>(1)?.into(),
            at: UnixMillis(count(millis_of(number).saturating_add(late_ms))),
            operation,
            caller: row.get(4)?,
            key: row.get(5)?,
        });
    }
    Ok(found)
}

fn of_key(connection: &Connection, begun: &Begun) -> rusqlite::Result<Option<Known>> {
    let sql = "SELECT owner, text FROM keys LEFT JOIN kept ON kept.id = keys.answer
               WHERE caller = ?1 AND key = ?2 AND call = ?3";
    let of = params![begun.caller, begun.key, Id::of(begun.call_id.as_str())];
    connection.prepare_cached(sql)?.query_row(of, known).optional()
}

fn of_job(connection: &Connection, begun: &Begun) -> rusqlite::Result<Option<Known>> {
    let sql = "SELECT owner, text FROM jobs LEFT JOIN kept ON kept.id = jobs.result WHERE call = ?1";
    connection.prepare_cached(sql)?.query_row([Id::of(begun.call_id.as_str())], known).optional()
}

fn known(row: &rusqlite::Row<'_>) -> rusqlite::Result<Known> {
    Ok(Known { owner: row.get(0)?, text: row.get(1)? })
}

/// How such a call ended: as its result says, where that is kept.
fn ended(begun: &Begun, result: Option<CallResult>) -> Row {
    let called = Called::Operation(begun.operation.clone());
    let mut row = Row::new(begun.call_id.clone(), begun.at, called, Status::Error);
    row.caller = Some(begun.caller.as_str()).filter(|caller| !caller.is_empty()).map(Into::into);
    match result {
        Some(result) => {
            row.status = result.status;
            row.duration_us = result.meta.run_us;
            row.summary = result.summary.map(Into::into);
            row.error = result.error.map(Box::new);
        }
        None => {
            let message =
                format!("plugd ended while {} was under way: whether it ran is not known", begun.operation);
            row.error =
                Some(Box::new(CallError::new(ErrorKind::OutcomeUnknown, message).outcome(Outcome::Unknown)));
        }
    }
    row
}
