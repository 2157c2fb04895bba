//! Tokens: each is good for one answer, and lives until it expires, also beyond this process.

use plugd_protocol::control::UnixMillis;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::value::RawValue;

use crate::error::StoreError;
use crate::kept::{Purpose, drop_text, keep, raw};
use crate::packed::{count, number};
use crate::rows::unix_now;
use crate::store::{Commit, Store};
use crate::writer::Place;

/// What a token is worth.
#[derive(Debug, Clone)]
pub enum TokenState {
    /// It waits for its answer.
    Open {
        /// What it carries on.
        json: Box<RawValue>,
        /// Until when.
        expires: UnixMillis,
    },
    /// It has had one: this.
    Decided(String),
    /// There is none, or it has expired.
    Unknown,
}

impl Store {
    /// Keeps what a token carries on, until it expires.
    ///
    /// # Cancel safety
    /// Dropping the future takes the token back: it is worth nothing here.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn put_token(
        &self,
        token: &str,
        json: &RawValue,
        expires: UnixMillis,
    ) -> Result<(), StoreError> {
        let mut putting = Putting { store: self, token, given_up: true };
        let (token, json) = (token.to_owned(), json.to_owned());
        let put = self.write(Commit::Written, json.get().len(), move |place| {
            let kept = keep(place, Purpose::Token, expires, json.get())?;
            let sql = "INSERT INTO tokens (token, expires, kept) VALUES (?1, ?2, ?3)";
            place.connection.prepare_cached(sql)?.execute(params![token, number(expires.0), kept])?;
            Ok(())
        });
        let put = put.await;
        putting.given_up = false;
        put
    }

    /// Looks what a token is worth; it keeps its worth.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn token(&self, token: &str) -> Result<TokenState, StoreError> {
        let token = token.to_owned();
        self.read(move |connection| Ok(look(connection, &token, unix_now())?.0)).await
    }

    /// Takes a token and notes what was decided. Of all who try only one gets [`TokenState::Open`];
    /// that is on the disk then.
    ///
    /// # Errors
    /// Where it cannot be written: then it is still good.
    pub async fn take_token(&self, token: &str, decided: &str) -> Result<TokenState, StoreError> {
        let (token, decided) = (token.to_owned(), decided.to_owned());
        self.write(Commit::Durable, 0, move |place| take(place, &token, &decided)).await
    }

    /// Says more of how a token was decided; one that still waits stays as it is.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub async fn note_token(&self, token: &str, decided: &str) -> Result<(), StoreError> {
        let (token, decided) = (token.to_owned(), decided.to_owned());
        self.write(Commit::Written, 0, move |place| {
            let sql = "UPDATE tokens SET decided = ?2 WHERE token = ?1 AND decided IS NOT NULL";
            place.connection.prepare_cached(sql)?.execute([&token, &decided])?;
            Ok(())
        })
        .await
    }
}

/// A token that is being put: it is taken back where nobody waits for it any more.
struct Putting<'a> {
    store: &'a Store,
    token: &'a str,
    given_up: bool,
}

impl Drop for Putting<'_> {
    fn drop(&mut self) {
        if self.given_up {
            let token = self.token.to_owned();
            // It comes after what puts the token, if that is under way.
            self.store.send(move |place| take_back(place, &token));
        }
    }
}

fn take_back(place: &mut Place<'_>, token: &str) -> rusqlite::Result<()> {
    let (_, kept) = look(place.connection, token, UnixMillis(0))?;
    drop_text(place.connection, kept)?;
    place.connection.prepare_cached("DELETE FROM tokens WHERE token = ?1")?.execute([token])?;
    place.forgets.set(true);
    Ok(())
}

fn take(place: &mut Place<'_>, token: &str, decided: &str) -> rusqlite::Result<TokenState> {
    let (state, kept) = look(place.connection, token, place.now)?;
    if matches!(state, TokenState::Open { .. }) {
        let sql = "UPDATE tokens SET decided = ?2 WHERE token = ?1";
        place.connection.prepare_cached(sql)?.execute([token, decided])?;
        drop_text(place.connection, kept)?;
        place.forgets.set(true);
    }
    Ok(state)
}

/// What a token is worth, and the number of its text.
fn look(
    connection: &Connection,
    token: &str,
    now: UnixMillis,
) -> rusqlite::Result<(TokenState, Option<i64>)> {
    let sql = "SELECT decided, text, expires, kept FROM tokens LEFT JOIN kept ON kept.id = tokens.kept
               WHERE token = ?1 AND expires > ?2";
    let known = connection
        .prepare_cached(sql)?
        .query_row(params![token, number(now.0)], |row| {
            let (decided, text): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
            Ok((decided, text, row.get::<_, i64>(2)?, row.get(3)?))
        })
        .optional()?;
    Ok(match known {
        Some((Some(decided), _, _, kept)) => (TokenState::Decided(decided), kept),
        Some((None, Some(text), expires, kept)) => {
            (TokenState::Open { json: raw(text)?, expires: UnixMillis(count(expires)) }, kept)
        }
        // Newer ones took the room of what it carried on.
        Some((None, None, _, _)) | None => (TokenState::Unknown, None),
    })
}
