//! What whoever comes with a token that was used is told: that its call goes on, that it has ended, or
//! that nobody can know whether it ran.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use plugd_protocol::control::CallDetail;
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, Outcome, Status};

use crate::engine::Engine;

/// What is kept of a token that was answered, before the id of its call.
const ANSWERED: &str = "answered ";

/// The same where the answer was a no.
pub(super) const DECLINED: &str = "declined";

/// The same where the call stopped again; the newer token follows.
const STOPPED_AGAIN: &str = "answered, then ";

/// The tokens whose calls are carried on just now, and by how many who try. The lock is held for one
/// operation.
#[derive(Debug, Default)]
pub(super) struct CarriedOn(Mutex<HashMap<String, u32>>);

/// That somebody carries on the call of a token, or is about to try.
pub(super) struct CarryingOn<'e> {
    all: &'e CarriedOn,
    token: &'e str,
}

impl CarriedOn {
    /// Says that somebody is about to take a token: before that, so that nobody else finds it used and
    /// its call nowhere.
    pub(super) fn enter<'e>(&'e self, token: &'e str) -> CarryingOn<'e> {
        self.with(|all| *all.entry(token.to_owned()).or_default() += 1);
        CarryingOn { all: self, token }
    }

    fn count(&self, token: &str) -> u32 {
        self.with(|all| all.get(token).copied().unwrap_or_default())
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, u32>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for CarryingOn<'_> {
    fn drop(&mut self) {
        self.all.with(|all| {
            let left = all.get(self.token).copied().unwrap_or_default().saturating_sub(1);
            match left {
                0 => all.remove(self.token),
                left => all.insert(self.token.to_owned(), left),
            }
        });
    }
}

/// How a token was decided by an answer with which its call goes on.
pub(super) fn answered(call_id: &CallId) -> String {
    format!("{ANSWERED}{call_id}")
}

/// How a token was decided whose call stopped again, under a newer one.
pub(super) fn stopped_again(newer: &str) -> String {
    format!("{STOPPED_AGAIN}{newer}")
}

/// Where a token lies that was used.
pub(super) enum Lies {
    /// With this engine alone, which lives.
    InMemory,
    /// In the store: its call may have been another engine's.
    Stored,
}

impl Engine {
    /// The error for a token that was used.
    ///
    /// `trying` says that whoever asks has entered it as carried on, too.
    pub(super) async fn used(&self, token: &str, how: &str, lies: Lies, trying: bool) -> CallError {
        if let Some(newer) = how.strip_prefix(STOPPED_AGAIN) {
            let message =
                format!("already decided: answered; the call stopped again and waits under {newer}");
            return CallError::new(ErrorKind::UnknownToken, message)
                .hint(format!("use the newer token: `plugd answer {newer}` with values, --yes or --no"));
        }
        let Some(call_id) = how.strip_prefix(ANSWERED).map(CallId::new) else {
            return CallError::new(ErrorKind::UnknownToken, format!("already decided: {how}"))
                .hint("the no stands and nothing was run; whoever wants it after all makes a new call");
        };
        let carried_on = self.shared().tokens.carried_on.count(token) > u32::from(trying);
        if carried_on || self.shared().calls.behind(&call_id).is_some() {
            return answered_before(Outcome::Unknown).hint(format!(
                "its call {call_id} goes on: once it has ended, `plugd calls show {call_id}` says how"
            ));
        }
        let recorded = match self.store() {
            Ok(store) => store.call(&call_id).await.ok().flatten(),
            Err(_) => None,
        };
        match (recorded.as_ref().and_then(outcome_of), lies) {
            (Some(outcome), _) => answered_before(outcome)
                .hint(format!("its call {call_id} has ended: `plugd calls show {call_id}` says how")),
            (None, Lies::InMemory) => answered_before(Outcome::Unknown)
                .hint(format!("its call {call_id} has ended, and how is not recorded")),
            (None, Lies::Stored) => outcome_unknown(&call_id),
        }
    }
}

/// How a recorded call ended; none where that says that nobody knows, or that it waits for a person.
fn outcome_of(detail: &CallDetail) -> Option<Outcome> {
    let error = detail.error.as_ref();
    match detail.call.status {
        Status::Error if error.is_some_and(|error| error.code == ErrorKind::OutcomeUnknown.code()) => None,
        Status::Ok => Some(Outcome::Completed),
        Status::Error | Status::Cancelled => Some(error.map_or(Outcome::Unknown, |error| error.outcome)),
        // It waits, for a person or in the background.
        _ => None,
    }
}

fn answered_before(outcome: Outcome) -> CallError {
    CallError::new(ErrorKind::UnknownToken, "already decided: answered").outcome(outcome)
}

/// The error for a call that was agreed to and came to no end.
fn outcome_unknown(call_id: &CallId) -> CallError {
    let message = format!(
        "already decided: answered; its call {call_id} was under way then and came to no end that is known: \
         whether it ran cannot be known"
    );
    CallError::new(ErrorKind::OutcomeUnknown, message).outcome(Outcome::Unknown)
}
