//! Calls in the background: which run, how the others ended, and what they gave.

use std::sync::Arc;

use plugd_protocol::control::{Job, JobsParams, UnixMillis};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::result::Meta;
use plugd_protocol::{CallError, CallId, CallResult, OperationId, Outcome, Status};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::value::RawValue;

use crate::begun::end_begun;
use crate::error::StoreError;
use crate::kept::{Purpose, drop_text, keep, later, raw};
use crate::packed::{CallNumber, Id, IdText, count, number, of_word, word};
use crate::retention::RESULTS_KEPT;
use crate::row::{Called, Row};
use crate::rows::has_row;
use crate::store::{Commit, Store};
use crate::writer::Place;

/// So many are listed at once.
const LISTED_MAX: i64 = 1_000;

/// A job that begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// The call's id, which is the job's.
    pub call_id: CallId,
    /// What was called.
    pub operation: OperationId,
    /// Who called.
    pub caller: Option<Arc<str>>,
    /// When it arrived.
    pub at: UnixMillis,
}

/// A job, with what it gave.
#[derive(Debug, Clone)]
pub struct JobState {
    /// In short; how far it is, is not known here.
    pub job: Job,
    /// Its `CallResult`: none while it runs, and none where it is kept no more.
    pub result: Option<Box<RawValue>>,
}

impl Store {
    /// Notes that a job begins, and that it is this store's.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn put_job(&self, job: &NewJob) -> Result<(), StoreError> {
        self.put_job_with(job, None).await
    }

    /// The same, with the row that the call has from now on.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn put_job_with(&self, job: &NewJob, row: Option<Row>) -> Result<(), StoreError> {
        let (job, row) = (job.clone(), row.map(Row::bounded));
        self.write(Commit::Written, row.as_ref().map_or(0, Row::bytes), move |place| {
            if let Some(row) = &row {
                place.rows.begin(place.connection, row)?;
            }
            place
                .connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO jobs (call, operation, caller, at, owner, status)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    Id::of(job.call_id.as_str()),
                    job.operation.to_string(),
                    job.caller,
                    number(job.at.0),
                    place.owners.own(),
                    word(&Status::Pending),
                ])?;
            Ok(())
        })
        .await
    }

    /// Notes that a job is handed over to its plugin now; without that it has not run.
    ///
    /// # Errors
    /// Where it cannot be written: then it must not be handed over.
    pub async fn job_is_handed_over(&self, id: &CallId) -> Result<(), StoreError> {
        let id = id.clone();
        self.write(Commit::Written, 0, move |place| {
            let sql = "UPDATE jobs SET handed_over = 1 WHERE call = ?1";
            place.connection.prepare_cached(sql)?.execute([Id::of(id.as_str())]).map(drop)
        })
        .await
    }

    /// Notes how a job ended, and keeps its `CallResult` for a week.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn finish_job(
        &self,
        id: &CallId,
        status: Status,
        summary: Option<&str>,
        result: &RawValue,
    ) -> Result<(), StoreError> {
        let (id, summary, result) = (id.clone(), summary.map(ToOwned::to_owned), result.to_owned());
        self.write(Commit::Written, result.get().len(), move |place| {
            end(place, &Id::of(id.as_str()), status, summary.as_deref(), result.get())
        })
        .await
    }

    /// The jobs there are, the latest first, at most 1,000.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn jobs(&self, params: &JobsParams) -> Result<Vec<Job>, StoreError> {
        self.note_orphans().await?;
        let sql = match params.running {
            true => {
                "SELECT call, operation, caller, at, status, summary FROM jobs WHERE owner IS NOT NULL
                     ORDER BY at DESC LIMIT ?1"
            }
            false => {
                "SELECT call, operation, caller, at, status, summary FROM jobs ORDER BY at DESC LIMIT ?1"
            }
        };
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let jobs = statement.query_map([LISTED_MAX], job_of)?;
            jobs.filter_map(Result::transpose).collect()
        })
        .await
    }

    /// One job, if there is such a one.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn job(&self, id: &CallId) -> Result<Option<JobState>, StoreError> {
        self.note_orphans().await?;
        let id = id.clone();
        self.read(move |connection| {
            let found = connection
                .prepare_cached(
                    "SELECT call, operation, caller, at, status, summary, text
                     FROM jobs LEFT JOIN kept ON kept.id = jobs.result WHERE call = ?1",
                )?
                .query_row([Id::of(id.as_str())], |row| Ok((job_of(row)?, row.get::<_, Option<String>>(6)?)))
                .optional()?;
            let Some((Some(job), text)) = found else { return Ok(None) };
            Ok(Some(JobState { job, result: text.map(raw).transpose()? }))
        })
        .await
    }

    /// Other stores may have come to their end since this one was opened.
    async fn note_orphans(&self) -> Result<(), StoreError> {
        match self.write(Commit::Written, 0, end_orphans).await {
            Err(StoreError::Closed) => Err(StoreError::Closed),
            // What cannot be written may still be read.
            Ok(()) | Err(StoreError::Unusable { .. } | StoreError::Newer { .. } | StoreError::Late) => Ok(()),
        }
    }
}

/// Ends jobs whose owner is gone: what they did is not known.
pub(crate) fn end_orphans(place: &mut Place<'_>) -> rusqlite::Result<()> {
    for owner in owners_of_running(place.connection)? {
        if place.owners.lives(owner) {
            continue;
        }
        let orphans: Vec<(Job, bool)> = {
            let mut statement = place.connection.prepare_cached(
                "SELECT call, operation, caller, at, status, summary, handed_over FROM jobs WHERE owner = ?1",
            )?;
            let jobs = statement.query_map([owner], |row| {
                let handed_over: bool = row.get(6)?;
                Ok(job_of(row)?.map(|job| (job, handed_over)))
            })?;
            jobs.filter_map(Result::transpose).collect::<rusqlite::Result<_>>()?
        };
        for (orphan, handed_over) in orphans {
            end_orphan(place, orphan, handed_over)?;
        }
    }
    end_begun(place)
}

fn owners_of_running(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT DISTINCT owner FROM jobs WHERE owner IS NOT NULL";
    connection.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect()
}

fn end_orphan(place: &mut Place<'_>, orphan: Job, handed_over: bool) -> rusqlite::Result<()> {
    let error = if handed_over { cut_short(&orphan.operation) } else { never_ran(&orphan.operation) };
    let result = CallResult {
        status: Status::Error,
        data: None,
        summary: None,
        error: Some(error.clone()),
        next_actions: Vec::new(),
        pending: None,
        page: None,
        meta: Meta {
            call_id: Some(orphan.call_id.clone()),
            operation: Some(orphan.operation.clone()),
            attempt: 1,
            ..Meta::default()
        },
    };
    let text = serde_json::to_string(&result)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    end(place, &Id::of(orphan.call_id.as_str()), Status::Error, Some(&error.message), &text)?;
    let row = CallNumber::of(&orphan.call_id);
    if row.is_some_and(|row| has_row(place.connection, row.number, &row.id).unwrap_or(false)) {
        // It is given its end with the other rows that wait for one.
        return Ok(());
    }
    let mut row = Row::new(orphan.call_id, orphan.at, Called::Operation(orphan.operation), Status::Error);
    row.caller = orphan.caller.map(Into::into);
    row.error = Some(Box::new(error));
    place.rows.insert(place.connection, &row).map(drop)
}

/// What became of a job that a plugin may have had.
fn cut_short(operation: &OperationId) -> CallError {
    let message = format!(
        "plugd ended while {operation} ran in the background: whether it ran to its end is not known"
    );
    CallError::new(ErrorKind::OutcomeUnknown, message).outcome(Outcome::Unknown)
}

/// What became of a job that waited for its turn.
fn never_ran(operation: &OperationId) -> CallError {
    let message = format!("plugd ended before {operation} was handed over to its plugin: it has not run");
    CallError::new(ErrorKind::ShuttingDown, message).outcome(Outcome::NotRun).hint("call it again")
}

fn end(
    place: &Place<'_>,
    call: &Id<'_>,
    status: Status,
    summary: Option<&str>,
    result: &str,
) -> rusqlite::Result<()> {
    let older: Option<Option<i64>> = place
        .connection
        .prepare_cached("SELECT result FROM jobs WHERE call = ?1")?
        .query_row([call], |row| row.get(0))
        .optional()?;
    let Some(older) = older else { return Ok(()) };
    drop_text(place.connection, older)?;
    let kept = keep(place, Purpose::Job, later(place.now, RESULTS_KEPT), result)?;
    place
        .connection
        .prepare_cached(
            "UPDATE jobs SET owner = NULL, status = ?2, summary = ?3, result = ?4 WHERE call = ?1",
        )?
        .execute(params![call, word(&status), summary, kept])?;
    Ok(())
}

/// A job; none where a newer plugd has written what cannot be told here.
fn job_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Job>> {
    let (operation, status) = (OperationId::parse(row.get_ref(1)?.as_str()?), of_word(row.get(4)?));
    let (Ok(operation), Some(status)) = (operation, status) else { return Ok(None) };
    Ok(Some(Job {
        call_id: row.get::<_, IdText>(0)?.into(),
        operation,
        caller: row.get(2)?,
        at: UnixMillis(count(row.get(3)?)),
        status,
        progress: None,
        summary: row.get(5)?,
    }))
}
