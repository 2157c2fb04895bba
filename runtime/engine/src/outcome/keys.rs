//! A caller's key: the same key with the same call runs once, and a repeat gets the same answer.
//!
//! Within one engine the first call with a key holds a claim, and whoever comes with the same key
//! waits for it. What must outlive the engine is in the store: that a call is about to run, written
//! before it is handed over, and its answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plugd_protocol::control::AnsweredFrom;
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, CallResult, Outcome, Status};
use plugd_store::{KeyState, KeyedCall, Store, StoreError};
use plugd_supervisor::driver::Answered;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};

use super::keyed::{
    check, conflict, digest, hint_for_good, kept_no_more, outcome_unknown, program, still_runs,
};
use super::record::begun;
use super::recording::{not_recorded, refused_by_store, stored_by};
use super::retry::repeatable;
use super::untold::{CameTo, Left, Untold};
use crate::call::{Origin, Trail};
use crate::config::TIMEOUT_DEFAULT;
use crate::registry::RegisteredOperation;

/// What a call with a key is told while nobody has seen to a record that was lost.
const FORGOTTEN: &str = "the record of calls was lost and begun anew: whether a call with this key ran before is not known, and this one ran; `plugd doctor` names the reason and the damaged file, and this is said until that is removed";

/// How often another process is asked whether its call with the key has ended.
const OTHER_PROCESS_EVERY: Duration = Duration::from_millis(100);

/// The keys whose calls this engine has under way. The lock is held for one operation on the table.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    claimed: HashMap<Scope, Claimed>,
    /// What calls came to that ended here and of which the store was not, or may not have been, told.
    untold: Untold,
}

/// A key is the caller's own: two callers may use the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    caller: Option<Arc<str>>,
    key: Arc<str>,
}

#[derive(Debug)]
struct Claimed {
    call: KeyedCall,
    /// Closed when the call is over.
    over: watch::Receiver<()>,
}

/// The right to run with a key; whoever comes with the same key waits until it is dropped.
///
/// Dropped after the call began and before its end is recorded, what came of the call cannot be known.
pub(crate) struct Claim {
    keys: Arc<Keys>,
    store: Option<Store>,
    call: KeyedCall,
    /// Whether the store knows that it runs.
    begun: bool,
    _over: watch::Sender<()>,
}

/// What an earlier call with a key came to.
pub(crate) enum Earlier {
    /// It ended so; the trail says from which call it is.
    Ended(Result<Answered, CallError>),
    /// It runs in the background.
    Runs(CallId),
}

/// Looks for an earlier call with the same key, and waits for its end where it runs.
///
/// Without one, the trail holds the claim from now on.
///
/// # Errors
/// 1001 for what is no key, 1008 where it stands for another call, 6011 where what came of its call
/// cannot be known, 5001 where that still runs when the time is over.
pub(crate) async fn earlier(
    trail: &mut Trail,
    operation: &RegisteredOperation,
) -> Result<Option<Earlier>, CallError> {
    let Some(key) = trail.request.key.clone() else { return Ok(None) };
    check(&key)?;
    let program = trail.engine.config().plugins.get(&operation.id.plugin).and_then(program);
    let call = KeyedCall {
        caller: trail.request.caller.clone(),
        key,
        operation: operation.id.clone(),
        arguments_digest: digest(trail.given(), program.as_deref()),
        call_id: trail.call_id.clone(),
        at: trail.at,
        idempotent: repeatable(&operation.operation),
    };
    let store = trail.engine.shared().recording.store().cloned();
    let patience = Patience::of(trail, operation);
    let claim = match claim(&trail.engine.shared().outcomes.keys, call, store, &patience).await? {
        Ok(claim) => claim,
        Err(running) => return Ok(Some(Earlier::Runs(running))),
    };
    match claim.known(&patience).await? {
        None => {
            trail.claim = Some(claim);
            Ok(None)
        }
        Some(meant) => meant.told(trail).map(Some),
    }
}

/// Writes down that the call is about to run; after that it never runs a second time by its key.
///
/// # Errors
/// 9005 where that cannot be written, and a second run could do harm; 5001 where it is not in time.
pub(crate) async fn begin(
    trail: &mut Trail,
    operation: &RegisteredOperation,
) -> Result<Option<Earlier>, CallError> {
    let patience = Patience::of(trail, operation);
    if trail.claim.is_none() {
        return Ok(None);
    }
    let row = trail.engine.shared().recording.store().map(|store| begun(store, trail));
    let Some(claim) = &mut trail.claim else { return Ok(None) };
    // What is declared may have changed since.
    claim.call.idempotent = repeatable(&operation.operation);
    loop {
        let begun = match &claim.store {
            Some(store) => {
                let within = patience.ends.saturating_duration_since(Instant::now());
                let begun = store.begin_with(&claim.call, row.clone(), Some(within)).await;
                match begun {
                    Err(error @ StoreError::Late) => return Err(refused_by_store(&error)),
                    begun => begun.map_err(|error| refused_by_store(&error)),
                }
            }
            None => {
                Err(trail.engine.store().err().unwrap_or_else(|| not_recorded("the store was not there")))
            }
        };
        let begun = match begun {
            // The store was not told that an earlier call is over. That did not run, or may run again.
            Ok(KeyState::Running { call_id }) if claim.is_over(&call_id) => match claim.tell(&patience).await
            {
                Ok(()) => continue,
                Err(error) => Err(error),
            },
            begun => begun,
        };
        match begun {
            Ok(KeyState::New) => {
                claim.begun = true;
                let forgotten = claim.store.as_ref().is_some_and(has_forgotten) && !claim.call.idempotent;
                trail.warnings.extend(forgotten.then(|| FORGOTTEN.to_owned()));
                claim.keys.with(|table| table.untold.forget(&Scope::of(&claim.call)));
                return Ok(None);
            }
            // Another process was faster.
            Ok(state) => {
                if let Some(meant) = claim.meaning(state, &patience).await? {
                    trail.claim = None;
                    return meant.told(trail).map(Some);
                }
            }
            Err(error) if claim.call.idempotent => {
                let warning = format!("a repeat with this key runs again: {}", error.message);
                trail.warnings.push(warning);
                return Ok(None);
            }
            Err(error) => {
                return Err(error.hint(match trail.engine.config().record {
                    Some(_) => "nothing was run: mend what `plugd doctor` names, or call without a key where a second run does no harm",
                    None => "nothing was run: a key needs the record, so switch that on, or call without a key where a second run does no harm",
                }));
            }
        }
    }
}

/// Whether keys that were given before may be unknown to the store.
fn has_forgotten(store: &Store) -> bool {
    let health = store.health();
    health.moved_aside.is_some_and(|aside| aside.to.exists())
        || health.set_aside_before.is_some()
        || health.begun_anew.is_some()
}

/// Takes note of how the call ended, its data still whole; the key is free again where it did not run.
///
/// Whether that is what the key stands for from now on.
pub(crate) async fn answered(trail: &mut Trail, result: &CallResult) -> bool {
    let Some(mut claim) = trail.claim.take() else { return false };
    let Some(store) = claim.store.clone() else { return false };
    if !claim.begun {
        // An answer from the cache is the answer to this key, too.
        let from_cache = result.status == Status::Ok && trail.answered_from.is_some();
        let begun = async { trail.written_in_time(store.begin(&claim.call)).await };
        claim.begun = from_cache && matches!(begun.await, Ok(KeyState::New));
        if !claim.begun {
            return false;
        }
    }
    let runs_anew = claim.runs_anew_after(result);
    let written = match (runs_anew, to_raw_value(result)) {
        (false, Ok(json)) => trail.written_in_time(store.answer(&claim.call, &json)).await,
        (true, _) | (_, Err(_)) => trail.written_in_time(store.forget_key(&claim.call)).await,
    };
    if let Err(error) = written {
        tracing::warn!(call_id = %claim.call.call_id, %error, "the answer to a key is not kept");
        claim.leave(result);
        // As long as this engine lives it is known here; later, that it came to no end that is known.
        store.abandon_key(&claim.call);
    }
    claim.begun = false;
    !runs_anew
}

/// The error of a call whose key stands for it from now on: to call again is no way out.
pub(crate) fn for_good(result: &mut CallResult) {
    let invites = |error: &CallError| error.retryable || error.outcome == Outcome::Unknown;
    if let Some(error) = result.error.as_mut().filter(|error| invites(error)) {
        error.retryable = false;
        error.hint = Some(hint_for_good(error.outcome).to_owned());
    }
}

/// The same for a call whose caller has gone; never waits.
pub(crate) fn answered_now(trail: &mut Trail, result: &CallResult) {
    let Some(mut claim) = trail.claim.take().filter(|claim| claim.begun) else { return };
    let Some(store) = claim.store.clone() else { return };
    match (claim.runs_anew_after(result), to_raw_value(result)) {
        (false, Ok(json)) => store.answer_now(&claim.call, &json),
        (true, _) | (_, Err(_)) => store.forget_key_now(&claim.call),
    }
    // Whether that comes to be written is not known.
    claim.leave(result);
    claim.begun = false;
}

/// How long to wait for an earlier call, and whether to wait at all.
struct Patience {
    background: bool,
    ends: Instant,
}

impl Patience {
    fn of(trail: &Trail, operation: &RegisteredOperation) -> Patience {
        let background = operation.operation.long_running
            && !trail.request.wait
            && matches!(trail.request.origin, Origin::Caller);
        let declared = operation.operation.timeout_ms.map(Duration::from_millis);
        let ends = Instant::now() + declared.unwrap_or(TIMEOUT_DEFAULT);
        Patience { background, ends: trail.request.hard_deadline.unwrap_or(ends) }
    }
}

/// A recorded answer.
struct Recorded {
    call_id: CallId,
    result: Box<RawValue>,
}

/// What a key stands for.
enum Meant {
    Answer(Recorded),
    Runs(CallId),
}

impl Meant {
    /// The same in the form of a run's end; the trail is told from which call it is.
    fn told(self, trail: &mut Trail) -> Result<Earlier, CallError> {
        let Recorded { call_id, result } = match self {
            Meant::Runs(call_id) => return Ok(Earlier::Runs(call_id)),
            Meant::Answer(recorded) => recorded,
        };
        let result: CallResult = serde_json::from_str(result.get()).map_err(|error| {
            tracing::warn!(%call_id, %error, "the answer to a key cannot be read");
            kept_no_more(&call_id)
        })?;
        trail.generation = result.meta.generation;
        trail.warnings = result.meta.warnings;
        trail.answered_from = Some((AnsweredFrom::Key, call_id));
        let next_actions = result.next_actions;
        let ended = match (result.data, result.error) {
            (Some(data), None) => Ok(Answered {
                data,
                summary: result.summary,
                next_actions: to_raw_value(&next_actions).ok().filter(|_| !next_actions.is_empty()),
                took: Duration::from_micros(result.meta.run_us),
            }),
            // However often it is repeated, with this key it is the answer.
            (_, Some(error)) => {
                let hint = hint_for_good(error.outcome);
                Err(CallError { retryable: false, ..error }.hint(hint))
            }
            (None, None) => Err(CallError::new(ErrorKind::Internal, "a recorded answer says nothing")),
        };
        Ok(Earlier::Ended(ended))
    }
}

impl Claim {
    /// Whether a repeat runs, after a call that ended so.
    fn runs_anew_after(&self, result: &CallResult) -> bool {
        match result.error.as_ref().map(|error| error.outcome) {
            Some(Outcome::NotRun) => true,
            Some(Outcome::Unknown) => self.call.idempotent,
            Some(Outcome::Completed) | None => false,
        }
    }

    /// Remembers how the call ended, for the store may not.
    fn leave(&self, result: &CallResult) {
        let came_to = match self.runs_anew_after(result) {
            true => CameTo::Nothing,
            false => CameTo::Answer(to_raw_value(result).ok()),
        };
        self.keys.leave(&self.call, came_to);
    }

    /// Whether that call, which the store takes for one that runs, has ended here.
    fn is_over(&self, call_id: &CallId) -> bool {
        self.keys.left(&self.call).is_some_and(|left| left.call.call_id == *call_id)
    }

    /// Tells the store that the latest call with the key is over, after which it may run again.
    async fn tell(&self, patience: &Patience) -> Result<(), CallError> {
        let (Some(store), Some(left)) = (&self.store, self.keys.left(&self.call)) else { return Ok(()) };
        let told = stored_by(Some(patience.ends), store.forget_key(&left.call)).await;
        told.map_err(|error| refused_by_store(&error))
    }

    /// What this engine alone may know of the key.
    fn known_here(&self) -> Result<Option<Meant>, CallError> {
        let Some(Left { call: first, came_to }) = self.keys.left(&self.call) else { return Ok(None) };
        match came_to {
            CameTo::Nothing => Ok(None),
            CameTo::Unknown if self.call.idempotent => Ok(None),
            CameTo::Unknown | CameTo::Answer(_) if !is_same(&first, &self.call) => {
                Err(conflict(&first.call_id))
            }
            CameTo::Unknown => Err(outcome_unknown(&first.call_id)),
            CameTo::Answer(None) => Err(kept_no_more(&first.call_id)),
            CameTo::Answer(Some(result)) => {
                Ok(Some(Meant::Answer(Recorded { call_id: first.call_id, result })))
            }
        }
    }

    /// What the store knows of the key.
    async fn known(&self, patience: &Patience) -> Result<Option<Meant>, CallError> {
        if let Some(meant) = self.known_here()? {
            return Ok(Some(meant));
        }
        let Some(store) = &self.store else { return Ok(None) };
        match stored_by(Some(patience.ends), store.key(&self.call)).await {
            Ok(state) => self.meaning(state, patience).await,
            // Whether it can be done without is decided before it runs.
            Err(error) => {
                tracing::warn!(%error, "a key cannot be looked up");
                Ok(None)
            }
        }
    }

    /// What a state of the key means for this call; a call of another process is waited for.
    async fn meaning(&self, mut state: KeyState, patience: &Patience) -> Result<Option<Meant>, CallError> {
        loop {
            match state {
                KeyState::New => return Ok(None),
                KeyState::Answered { call_id, result } => {
                    return Ok(Some(Meant::Answer(Recorded { call_id, result })));
                }
                KeyState::Conflict { call_id } => return Err(conflict(&call_id)),
                KeyState::OutcomeUnknown { call_id, .. } => return Err(outcome_unknown(&call_id)),
                KeyState::Forgotten { call_id, .. } => return Err(kept_no_more(&call_id)),
                // It is this engine's, which knows better; where it was written, that may not be yet.
                KeyState::Running { call_id } if self.is_over(&call_id) => return Ok(None),
                KeyState::Running { call_id } if patience.background => {
                    return Ok(Some(Meant::Runs(call_id)));
                }
                KeyState::Running { call_id } if Instant::now() >= patience.ends => {
                    return Err(still_runs(&call_id));
                }
                KeyState::Running { .. } => {}
            }
            sleep(OTHER_PROCESS_EVERY).await;
            let Some(store) = &self.store else { return Ok(None) };
            state = match stored_by(Some(patience.ends), store.key(&self.call)).await {
                // Nothing else is known of it.
                Err(StoreError::Late) => state,
                looked => looked.map_err(|error| refused_by_store(&error))?,
            };
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(store) = self.store.as_ref().filter(|_| self.begun) {
            store.abandon_key(&self.call);
            self.keys.leave(&self.call, CameTo::Unknown);
        }
        self.keys.with(|table| table.claimed.remove(&Scope::of(&self.call)));
    }
}

impl Scope {
    pub(super) fn of(call: &KeyedCall) -> Scope {
        Scope { caller: call.caller.clone(), key: Arc::clone(&call.key) }
    }
}

/// Claims a key, once whoever has it within this engine is done; the call that runs, where it is not waited for.
async fn claim(
    keys: &Arc<Keys>,
    call: KeyedCall,
    store: Option<Store>,
    patience: &Patience,
) -> Result<Result<Claim, CallId>, CallError> {
    loop {
        let (running, mut over) = match keys.take(&call) {
            Ok(over) => {
                return Ok(Ok(Claim { keys: Arc::clone(keys), store, call, begun: false, _over: over }));
            }
            Err(Taken { same: false, by, .. }) => return Err(conflict(&by)),
            Err(Taken { by, .. }) if patience.background => return Ok(Err(by)),
            Err(Taken { by, over, .. }) => (by, over),
        };
        // It is never sent anything: it closes.
        let closed = async { while over.changed().await.is_ok() {} };
        if timeout_at(patience.ends.into(), closed).await.is_err() {
            return Err(still_runs(&running));
        }
    }
}

/// That somebody has a key.
struct Taken {
    by: CallId,
    /// Whether it is for the same call.
    same: bool,
    over: watch::Receiver<()>,
}

impl Keys {
    fn take(&self, call: &KeyedCall) -> Result<watch::Sender<()>, Taken> {
        let scope = Scope::of(call);
        self.with(|table| {
            if let Some(claimed) = table.claimed.get(&scope) {
                let by = claimed.call.call_id.clone();
                return Err(Taken { by, same: is_same(&claimed.call, call), over: claimed.over.clone() });
            }
            let (sender, over) = watch::channel(());
            table.claimed.insert(scope, Claimed { call: call.clone(), over });
            Ok(sender)
        })
    }

    /// Remembers what came of a call.
    fn leave(&self, call: &KeyedCall, came_to: CameTo) {
        self.with(|table| table.untold.put(Scope::of(call), Left { call: call.clone(), came_to }));
    }

    /// What the latest call with the key has left behind, where the store may not know it.
    fn left(&self, call: &KeyedCall) -> Option<Left> {
        self.with(|table| table.untold.get(&Scope::of(call)))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Table) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether two calls with one key are of the same operation with the same arguments.
fn is_same(first: &KeyedCall, other: &KeyedCall) -> bool {
    first.operation == other.operation && first.arguments_digest == other.arguments_digest
}

#[cfg(test)]
mod tests;
