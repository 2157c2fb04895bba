//! Exactly one answer: what is known of the keys that callers give.
//!
//! A key belongs to its caller. A call that may not run twice is written down before it runs, with
//! the store that runs it as its owner. An owner that is gone without an answer leaves a call whose
//! outcome nobody knows.

use std::sync::Arc;
use std::time::Duration;

use plugd_protocol::control::UnixMillis;
use plugd_protocol::{CallId, OperationId};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::error::StoreError;
use crate::kept::{Purpose, drop_text, keep, later, raw};
use crate::owners::Owners;
use crate::packed::{Id, IdText, count, number};
use crate::row::Row;
use crate::store::{Commit, Store};
use crate::writer::Place;

/// A call with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedCall {
    /// Whose key it is; none is the owner of the socket.
    pub caller: Option<Arc<str>>,
    /// The key.
    pub key: Arc<str>,
    /// What is called.
    pub operation: OperationId,
    /// A digest of the arguments.
    pub arguments_digest: [u8; 32],
    /// The id of this call.
    pub call_id: CallId,
    /// When it arrived.
    pub at: UnixMillis,
    /// Whether it may run again where its outcome is not known.
    pub idempotent: bool,
}

/// What is known of a key.
#[derive(Debug, Clone)]
pub enum KeyState {
    /// Nothing, or nothing that keeps the call from running.
    New,
    /// That call has it and runs.
    Running {
        /// Which.
        call_id: CallId,
    },
    /// That call was answered.
    Answered {
        /// Which.
        call_id: CallId,
        /// How: its `CallResult`.
        result: Box<RawValue>,
    },
    /// That call was answered, but the answer is kept no more: newer ones took its room.
    Forgotten {
        /// Which.
        call_id: CallId,
        /// When it arrived.
        at: UnixMillis,
    },
    /// plugd ended while that call was under way: whether it ran is not known.
    OutcomeUnknown {
        /// Which.
        call_id: CallId,
        /// When it arrived.
        at: UnixMillis,
    },
    /// That call was for another operation, or had other arguments.
    Conflict {
        /// Which.
        call_id: CallId,
    },
}

impl Store {
    /// What is known of a call's key; nothing is changed.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn key(&self, call: &KeyedCall) -> Result<KeyState, StoreError> {
        let (call, shared) = (call.clone(), Arc::clone(self.shared()));
        self.read(move |connection| state(connection, &shared.owners, &call)).await
    }

    /// Takes a key for a call that is about to run; [`KeyState::New`] says that it is the call's now.
    ///
    /// Then that is on the disk, unless the call is idempotent: for such a call it is enough that
    /// it survives the daemon.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn begin(&self, call: &KeyedCall) -> Result<KeyState, StoreError> {
        self.begin_with(call, None, None).await
    }

    /// The same, with the row that the call has from now on, and within a time. A key that was not
    /// got in time, or that nobody waited for, is given back: its call must not run.
    ///
    /// # Errors
    /// Where it cannot be written; [`StoreError::Late`] where not in time.
    pub async fn begin_with(
        &self,
        call: &KeyedCall,
        row: Option<Row>,
        within: Option<Duration>,
    ) -> Result<KeyState, StoreError> {
        let commit = if call.idempotent { Commit::Written } else { Commit::Durable };
        let (keyed, row) = (call.clone(), row.map(Row::bounded));
        let bytes = call.key.len() + row.as_ref().map_or(0, Row::bytes);
        let mut taking = Taking { store: self, call, given_up: true };
        let begun = self.write(commit, bytes, move |place| {
            let known = begin(place, &keyed)?;
            if let (KeyState::New, Some(row)) = (&known, &row) {
                place.rows.begin(place.connection, row)?;
            }
            Ok(known)
        });
        let begun = timeout(within.unwrap_or(Duration::MAX), begun).await;
        taking.given_up = begun.is_err();
        begun.unwrap_or(Err(StoreError::Late))
    }

    /// Notes the answer, to be given to whoever comes with the same key.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn answer(&self, call: &KeyedCall, result: &RawValue) -> Result<(), StoreError> {
        let (call, result) = (call.clone(), result.to_owned());
        self.write(Commit::Written, result.get().len(), move |place| answer(place, &call, &result)).await
    }

    /// The same without waiting, for an answer that says little: its caller has gone.
    pub fn answer_now(&self, call: &KeyedCall, result: &RawValue) {
        let (call, result) = (call.clone(), result.to_owned());
        self.send(move |place| answer(place, &call, &result));
    }

    /// Gives a key back: its call did not run after all.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn forget_key(&self, call: &KeyedCall) -> Result<(), StoreError> {
        let call = call.clone();
        self.write(Commit::Written, 0, move |place| forget(place, &call)).await
    }

    /// The same without waiting.
    pub fn forget_key_now(&self, call: &KeyedCall) {
        let call = call.clone();
        self.send(move |place| forget(place, &call));
    }

    /// Notes that the outcome of a call cannot be known; it never waits.
    pub fn abandon_key(&self, call: &KeyedCall) {
        let call = call.clone();
        self.send(move |place| {
            let sql = "UPDATE keys SET owner = NULL WHERE caller = ?1 AND key = ?2 AND call = ?3";
            let (caller, id) = (call.caller.as_deref().unwrap_or_default(), Id::of(call.call_id.as_str()));
            place.connection.prepare_cached(sql)?.execute(params![caller, call.key, id])
        });
    }
}

/// A key that is being taken: it is given back where nobody waits for it any more.
struct Taking<'a> {
    store: &'a Store,
    call: &'a KeyedCall,
    given_up: bool,
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        if self.given_up {
            // It comes after what takes the key, if that is under way.
            self.store.forget_key_now(self.call);
        }
    }
}

fn forget(place: &mut Place<'_>, call: &KeyedCall) -> rusqlite::Result<()> {
    let sql = "DELETE FROM keys WHERE caller = ?1 AND key = ?2 AND call = ?3 AND answered = 0";
    let (caller, id) = (call.caller.as_deref().unwrap_or_default(), Id::of(call.call_id.as_str()));
    place.connection.prepare_cached(sql)?.execute(params![caller, call.key, id])?;
    Ok(())
}

fn begin(place: &mut Place<'_>, call: &KeyedCall) -> rusqlite::Result<KeyState> {
    let known = state(place.connection, place.owners, call)?;
    if matches!(known, KeyState::New) {
        place
            .connection
            .prepare_cached(
                "INSERT OR REPLACE INTO keys (caller, key, operation, digest, call, at, idempotent, owner)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                call.caller.as_deref().unwrap_or_default(),
                call.key,
                call.operation.to_string(),
                call.arguments_digest,
                Id::of(call.call_id.as_str()),
                number(call.at.0),
                call.idempotent,
                place.owners.own(),
            ])?;
    }
    Ok(known)
}

fn answer(place: &mut Place<'_>, call: &KeyedCall, result: &RawValue) -> rusqlite::Result<()> {
    let (caller, id) = (call.caller.as_deref().unwrap_or_default(), Id::of(call.call_id.as_str()));
    let older: Option<Option<i64>> = place
        .connection
        .prepare_cached("SELECT answer FROM keys WHERE caller = ?1 AND key = ?2 AND call = ?3")?
        .query_row(params![caller, call.key, id], |row| row.get(0))
        .optional()?;
    // Where the key is not this call's any more there is nothing to note.
    let Some(older) = older else { return Ok(()) };
    drop_text(place.connection, older)?;
    let until = later(call.at, place.keep.age);
    let kept = keep(place, Purpose::Key, until, result.get())?;
    place
        .connection
        .prepare_cached("UPDATE keys SET answered = 1, answer = ?4, owner = NULL WHERE caller = ?1 AND key = ?2 AND call = ?3")?
        .execute(params![caller, call.key, id, kept])?;
    Ok(())
}

/// A key as it stands in the file.
struct Known {
    same: bool,
    call_id: CallId,
    at: UnixMillis,
    owner: Option<i64>,
    answered: bool,
    text: Option<String>,
}

fn state(connection: &Connection, owners: &Owners, call: &KeyedCall) -> rusqlite::Result<KeyState> {
    let known = connection
        .prepare_cached(
            "SELECT operation, digest, call, at, owner, answered, text
             FROM keys LEFT JOIN kept ON kept.id = keys.answer WHERE caller = ?1 AND key = ?2",
        )?
        .query_row(params![call.caller.as_deref().unwrap_or_default(), call.key], |row| {
            let operation = row.get_ref(0)?.as_str()? == call.operation.to_string();
            Ok(Known {
                same: operation && row.get_ref(1)?.as_blob()? == call.arguments_digest,
                call_id: row.get::<_, IdText>(2)?.into(),
                at: UnixMillis(count(row.get(3)?)),
                owner: row.get(4)?,
                answered: row.get(5)?,
                text: row.get(6)?,
            })
        })
        .optional()?;
    let Some(Known { same, call_id, at, owner, answered, text }) = known else { return Ok(KeyState::New) };
    if !same {
        return Ok(KeyState::Conflict { call_id });
    }
    if answered {
        return match text {
            Some(text) => Ok(KeyState::Answered { call_id, result: raw(text)? }),
            None => Ok(KeyState::Forgotten { call_id, at }),
        };
    }
    Ok(match owner {
        Some(owner) if owners.lives(owner) => KeyState::Running { call_id },
        Some(_) | None if call.idempotent => KeyState::New,
        Some(_) | None => KeyState::OutcomeUnknown { call_id, at },
    })
}
