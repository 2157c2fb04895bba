//! Questions to the record: the latest calls of a kind, and one call in full.
//!
//! A list is answered from the index of kinds, one look for each kind that fits, so it does not
//! matter how many calls there are of others.

use std::collections::HashMap;
use std::sync::Arc;

use plugd_protocol::CallId;
use plugd_protocol::control::{CallDetail, CallRow, CallsParams, UnixMillis};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::kinds::{Kind, is_of_plugin, kinds_where};
use crate::packed::{
    CallNumber, Id, IdText, TraceText, count, first_number, millis_of, of_word, unpack_stages,
};
use crate::rows::SAME_NUMBER_MAX;

/// So many are listed where the request does not say.
const LIMIT_DEFAULT: u32 = 50;

/// At most so many are listed.
const LIMIT_MAX: u32 = 1_000;

/// What a call in short is made from.
const SHORT: &str = "id, call, kind, late_ms, duration_us, attempt, code, written, summary";

/// Which rows, by number.
#[derive(Clone, Copy)]
struct Between {
    first: i64,
    last: i64,
    limit: i64,
}

/// Whether somebody may see the calls of an operation.
pub type Sees = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The latest calls that fit, the latest arrival first.
pub(crate) fn list(
    connection: &Connection,
    params: &CallsParams,
    sees: Option<&Sees>,
) -> rusqlite::Result<Vec<CallRow>> {
    let seen = |kind: &Kind| {
        sees.is_none_or(|sees| kind.operation.as_deref().is_some_and(|operation| sees(operation)))
    };
    let kinds = kinds_where(connection, |kind| fits(kind, params) && seen(kind))?;
    let kinds: HashMap<i64, Kind> = kinds.into_iter().map(|kind| (kind.number, kind)).collect();
    let between = Between {
        first: params.since.map_or(0, first_number),
        last: params.until.map_or(i64::MAX, |until| first_number(until) - 1),
        limit: i64::from(params.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX)),
    };
    let numbers = match &params.session {
        Some(session) => of_session(connection, session, &kinds, params, between)?,
        None if sees.is_none() && names_no_kind(params) => latest(connection, between)?,
        None => of_kinds(connection, &kinds, params, between)?,
    };
    let sql = format!("SELECT {SHORT} FROM calls WHERE id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut calls = Vec::with_capacity(numbers.len());
    for number in numbers {
        calls.push(statement.query_row([number], |row| short(row, &kinds))?);
    }
    Ok(calls.into_iter().flatten().collect())
}

/// Everything about one call, without its log lines.
pub(crate) fn detail(connection: &Connection, id: &CallId) -> rusqlite::Result<Option<CallDetail>> {
    let Some(CallNumber { number: first, id }) = CallNumber::of(id) else { return Ok(None) };
    let sql = format!(
        "SELECT {SHORT}, answered_from, plugin_version, generation, session, trace, parent, key, argument_bytes,
                data_bytes, stages, error, given, run, data
         FROM calls WHERE id BETWEEN ?1 AND ?2 AND call = ?3"
    );
    let kinds = kinds_where(connection, |_| true)?;
    let kinds: HashMap<i64, Kind> = kinds.into_iter().map(|kind| (kind.number, kind)).collect();
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params![first, first + SAME_NUMBER_MAX - 1, id], |row| full(row, &kinds))
        .optional()?;
    Ok(found.flatten())
}

/// Whether a call of this kind may be one that was asked for.
fn fits(kind: &Kind, params: &CallsParams) -> bool {
    let operation = kind.operation.as_deref();
    let of_plugin = |plugin: &str| operation.is_some_and(|operation| is_of_plugin(operation, plugin));
    // What does not exist is of one kind, whatever was written: that is looked at row by row.
    params.plugin.as_ref().is_none_or(|plugin| of_plugin(plugin.as_str()))
        && params
            .operation
            .as_deref()
            .is_none_or(|wanted| operation.is_none_or(|operation| operation == wanted))
        && params.caller.as_deref().is_none_or(|caller| kind.caller.as_deref() == Some(caller))
        && params.status.is_none_or(|status| kind.status == status)
}

fn names_no_kind(params: &CallsParams) -> bool {
    params.plugin.is_none()
        && params.operation.is_none()
        && params.caller.is_none()
        && params.status.is_none()
}

fn latest(connection: &Connection, between: Between) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT id FROM calls WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3";
    let Between { first, last, limit } = between;
    connection.prepare_cached(sql)?.query_map([first, last, limit], |row| row.get(0))?.collect()
}

/// The latest of several kinds: the latest of each, and of those the latest.
fn of_kinds(
    connection: &Connection,
    kinds: &HashMap<i64, Kind>,
    params: &CallsParams,
    mut between: Between,
) -> rusqlite::Result<Vec<i64>> {
    let by_kind = "SELECT id FROM calls WHERE kind = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id DESC LIMIT ?4";
    let as_written = "SELECT id FROM calls WHERE kind = ?1 AND id BETWEEN ?2 AND ?3 AND written = ?5
                      ORDER BY id DESC LIMIT ?4";
    let limit = usize::try_from(between.limit).unwrap_or_default();
    let mut numbers: Vec<i64> = Vec::new();
    for kind in kinds.values() {
        let Between { first, last, limit: at_most } = between;
        let found: rusqlite::Result<Vec<i64>> = match &params.operation {
            Some(written) if kind.operation.is_none() => connection
                .prepare_cached(as_written)?
                .query_map(params![kind.number, first, last, at_most, written], |row| row.get(0))?
                .collect(),
            Some(_) | None => connection
                .prepare_cached(by_kind)?
                .query_map([kind.number, first, last, at_most], |row| row.get(0))?
                .collect(),
        };
        numbers.extend(found?);
        numbers.sort_unstable_by(|one, other| other.cmp(one));
        numbers.truncate(limit);
        // What comes before the last of enough is not wanted of the next kind.
        if numbers.len() == limit {
            between.first = between.first.max(*numbers.last().unwrap_or(&0));
        }
    }
    Ok(numbers)
}

/// Of one session: there are few, so each is looked at.
fn of_session(
    connection: &Connection,
    session: &str,
    kinds: &HashMap<i64, Kind>,
    params: &CallsParams,
    between: Between,
) -> rusqlite::Result<Vec<i64>> {
    let sql =
        "SELECT id, kind, written FROM calls WHERE session = ?1 AND id BETWEEN ?2 AND ?3 ORDER BY id DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![Id::of(session), between.first, between.last])?;
    let limit = usize::try_from(between.limit).unwrap_or_default();
    let mut numbers = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(kind) = kinds.get(&row.get(1)?) else { continue };
        let written: Option<String> = row.get(2)?;
        let as_asked = kind.operation.is_some() || params.operation.is_none() || params.operation == written;
        if as_asked {
            numbers.push(row.get(0)?);
        }
        if numbers.len() == limit {
            break;
        }
    }
    Ok(numbers)
}

/// A call in short, from [`SHORT`]; none where its kind is not known here.
fn short(row: &Row<'_>, kinds: &HashMap<i64, Kind>) -> rusqlite::Result<Option<CallRow>> {
    let Some(kind) = kinds.get(&row.get(2)?) else { return Ok(None) };
    let (number, late_ms): (i64, i64) = (row.get(0)?, row.get(3)?);
    let operation = match &kind.operation {
        Some(operation) => operation.clone(),
        None => row.get::<_, Option<String>>(7)?.unwrap_or_default(),
    };
    Ok(Some(CallRow {
        call_id: row.get::<_, IdText>(1)?.into(),
        at: UnixMillis(count(millis_of(number).saturating_add(late_ms))),
        operation,
        caller: kind.caller.clone(),
        status: kind.status,
        code: row.get(6)?,
        summary: row.get(8)?,
        duration_us: count(row.get(4)?),
        attempt: row.get(5)?,
    }))
}

fn full(row: &Row<'_>, kinds: &HashMap<i64, Kind>) -> rusqlite::Result<Option<CallDetail>> {
    let Some(call) = short(row, kinds)? else { return Ok(None) };
    let error: Option<String> = row.get(19)?;
    Ok(Some(CallDetail {
        call,
        answered_from: row.get::<_, Option<String>>(9)?.and_then(of_word),
        plugin_version: row.get(10)?,
        generation: row.get::<_, Option<i64>>(11)?.map(count),
        session: row.get::<_, Option<IdText>>(12)?.map(|session| session.0),
        trace_id: row.get::<_, Option<TraceText>>(13)?.map(|trace| trace.0),
        parent: row.get::<_, Option<IdText>>(14)?.map(CallId::from),
        key: row.get(15)?,
        argument_bytes: count(row.get(16)?),
        data_bytes: count(row.get(17)?),
        stages: unpack_stages(row.get_ref(18)?.as_blob()?),
        error: error.and_then(|error| serde_json::from_str(&error).ok()),
        given: row.get(20)?,
        run: row.get(21)?,
        data: row.get(22)?,
        log: Vec::new(),
    }))
}
