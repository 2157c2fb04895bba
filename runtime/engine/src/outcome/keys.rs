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
use plugd_store::{KeyState, KeyedCall, Store};
use plugd_supervisor::driver::Answered;
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};

use super::canonical::canonical;
use super::recording::{not_recorded, refused_by_store};
use super::retry::repeatable;
use crate::call::{Origin, Trail};
use crate::config::TIMEOUT_DEFAULT;
use crate::registry::RegisteredOperation;

/// A key is at most so many bytes: it is a name, not a place for data.
const KEY_MAX_BYTES: usize = 256;

/// How often another process is asked whether its call with the key has ended.
const OTHER_PROCESS_EVERY: Duration = Duration::from_millis(100);

/// The keys whose calls this engine has under way. The lock is held for one operation on the table.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    claimed: HashMap<Scope, Claimed>,
}

/// A key is the caller's own: two callers may use the same one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Scope {
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
    let call = KeyedCall {
        caller: trail.request.caller.clone(),
        key,
        operation: operation.id.clone(),
        arguments_digest: digest(trail.given()),
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
/// 9005 where that cannot be written, and a second run could do harm.
pub(crate) async fn begin(
    trail: &mut Trail,
    operation: &RegisteredOperation,
) -> Result<Option<Earlier>, CallError> {
    let patience = Patience::of(trail, operation);
    let Some(claim) = &mut trail.claim else { return Ok(None) };
    // What is declared may have changed since.
    claim.call.idempotent = repeatable(&operation.operation);
    loop {
        let begun = match &claim.store {
            Some(store) => store.begin(&claim.call).await.map_err(|error| refused_by_store(&error)),
            None => Err(not_recorded("there is no store")),
        };
        match begun {
            Ok(KeyState::New) => {
                claim.begun = true;
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
                return Err(error.hint(
                    "nothing was run: mend what `plugd doctor` names, or call without a key where a second run does no harm",
                ));
            }
        }
    }
}

/// Takes note of how the call ended, its data still whole; the key is free again where it did not run.
pub(crate) async fn answered(trail: &mut Trail, result: &CallResult) {
    let Some(mut claim) = trail.claim.take() else { return };
    let Some(store) = claim.store.clone() else { return };
    if !claim.begun {
        // An answer from the cache is the answer to this key, too.
        let from_cache = result.status == Status::Ok && trail.answered_from.is_some();
        claim.begun = from_cache && matches!(store.begin(&claim.call).await, Ok(KeyState::New));
        if !claim.begun {
            return;
        }
    }
    let runs_anew = match result.error.as_ref().map(|error| error.outcome) {
        Some(Outcome::NotRun) => true,
        Some(Outcome::Unknown) => claim.call.idempotent,
        Some(Outcome::Completed) | None => false,
    };
    let written = match (runs_anew, to_raw_value(result)) {
        (false, Ok(json)) => store.answer(&claim.call, &json).await,
        (true, _) | (_, Err(_)) => store.forget_key(&claim.call).await,
    };
    match written {
        Ok(()) => claim.begun = false,
        // Dropped as begun: it will not run a second time.
        Err(error) => {
            tracing::warn!(call_id = %claim.call.call_id, %error, "the answer to a key is not kept")
        }
    }
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
            (_, Some(error)) => Err(error),
            (None, None) => Err(CallError::new(ErrorKind::Internal, "a recorded answer says nothing")),
        };
        Ok(Earlier::Ended(ended))
    }
}

impl Claim {
    /// What the store knows of the key.
    async fn known(&self, patience: &Patience) -> Result<Option<Meant>, CallError> {
        let Some(store) = &self.store else { return Ok(None) };
        match store.key(&self.call).await {
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
            state = store.key(&self.call).await.map_err(|error| refused_by_store(&error))?;
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(store) = self.store.as_ref().filter(|_| self.begun) {
            store.abandon_key(&self.call);
        }
        let scope = Scope::of(&self.call);
        let mut table = self.keys.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.claimed.remove(&scope);
    }
}

impl Scope {
    fn of(call: &KeyedCall) -> Scope {
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
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let scope = Scope::of(call);
        if let Some(claimed) = table.claimed.get(&scope) {
            let first = &claimed.call;
            return Err(Taken {
                by: first.call_id.clone(),
                same: first.operation == call.operation && first.arguments_digest == call.arguments_digest,
                over: claimed.over.clone(),
            });
        }
        let (sender, over) = watch::channel(());
        table.claimed.insert(scope, Claimed { call: call.clone(), over });
        Ok(sender)
    }
}

/// Whether a text can be a key.
fn check(key: &str) -> Result<(), CallError> {
    let what = match key {
        "" => "it is empty".to_owned(),
        key if key.len() > KEY_MAX_BYTES => format!("it has {} bytes", key.len()),
        key if key.contains(char::is_control) => "it has control characters in it".to_owned(),
        _ => return Ok(()),
    };
    let message = format!("a key is 1 to {KEY_MAX_BYTES} bytes of text without control characters: {what}");
    Err(CallError::new(ErrorKind::MalformedRequest, message))
}

/// By which the same arguments are known again; none are an empty object.
fn digest(given: Option<&RawValue>) -> [u8; 32] {
    let text = given.map(canonical).filter(|text| text != "null");
    Sha256::digest(text.unwrap_or_else(|| "{}".to_owned())).into()
}

fn conflict(first: &CallId) -> CallError {
    CallError::new(
        ErrorKind::KeyConflict,
        format!("the key stands for the call {first}, of another operation or with other arguments"),
    )
}

fn outcome_unknown(first: &CallId) -> CallError {
    CallError::new(
        ErrorKind::OutcomeUnknown,
        format!(
            "the call {first} with this key was under way and came to no end: whether it ran cannot be known"
        ),
    )
    .outcome(Outcome::Unknown)
}

fn kept_no_more(first: &CallId) -> CallError {
    CallError::new(
        ErrorKind::UnknownResult,
        format!("the call {first} with this key ran to its end, but its answer is kept no more"),
    )
    .outcome(Outcome::Completed)
    .hint("it is not run again; take a new key for a new call")
}

fn still_runs(first: &CallId) -> CallError {
    CallError::new(ErrorKind::TimedOut, format!("the call {first} with this key still runs"))
        .outcome(Outcome::Unknown)
        .hint("it goes on; repeat the call with the same key to get its answer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_protocol::OperationId;
    use plugd_protocol::control::UnixMillis;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("JSON")
    }

    fn call(key: &str, arguments: &str) -> KeyedCall {
        KeyedCall {
            caller: None,
            key: key.into(),
            operation: OperationId::parse("shop.order").expect("an operation"),
            arguments_digest: digest(Some(&raw(arguments))),
            call_id: CallId::new("c1"),
            at: UnixMillis(1),
            idempotent: false,
        }
    }

    fn patience(within: Duration) -> Patience {
        Patience { background: false, ends: Instant::now() + within }
    }

    #[test]
    fn a_key_is_a_short_line_of_text() {
        let long = "k".repeat(KEY_MAX_BYTES + 1);
        for bad in ["", "a\nb", "\u{1b}[2J", long.as_str()] {
            assert_eq!(check(bad).expect_err(bad).code, ErrorKind::MalformedRequest.code());
        }
        for good in ["k", "订单-1", &long[1..]] {
            check(good).expect(good);
        }
    }

    #[test]
    fn no_arguments_are_the_same_as_an_empty_object() {
        assert_eq!(digest(None), digest(Some(&raw("{}"))));
        assert_eq!(digest(Some(&raw("null"))), digest(Some(&raw("{ }"))));
        assert_ne!(digest(Some(&raw("{\"a\":1}"))), digest(Some(&raw("{\"a\":1.0}"))));
    }

    /// Row X11.
    #[tokio::test]
    async fn r_x11_one_call_has_a_key_at_a_time_and_others_wait_for_it() {
        let keys = Arc::new(Keys::default());
        let claimed = |call, within| {
            let keys = Arc::clone(&keys);
            async move { claim(&keys, call, None, &patience(within)).await }
        };
        let minute = Duration::from_secs(60);
        let first = claimed(call("k", "{}"), minute).await.expect("free").expect("free");
        let other = claimed(call("k", r#"{"a":1}"#), minute).await.err().expect("a conflict");
        assert_eq!(other.code, ErrorKind::KeyConflict.code());
        let late = claimed(call("k", "{}"), Duration::from_millis(10)).await.err().expect("it still runs");
        assert_eq!((late.code, late.outcome), (ErrorKind::TimedOut.code(), Outcome::Unknown));
        claimed(call("other", "{}"), minute).await.expect("another key").expect("free");
        let background = Patience { background: true, ends: Instant::now() };
        let runs = claim(&keys, call("k", "{}"), None, &background).await.expect("it runs").err();
        assert_eq!(runs, Some(CallId::new("c1")));

        let waits = tokio::spawn(claimed(call("k", "{}"), minute));
        tokio::task::yield_now().await;
        drop(first);
        assert!(waits.await.expect("no panic").expect("free").is_ok());
        assert!(keys.0.lock().unwrap().claimed.is_empty());
    }
}
