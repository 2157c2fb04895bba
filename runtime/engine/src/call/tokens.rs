//! Calls that stopped for a person: kept under a token, and carried on by its answer.
//!
//! They lie in the store, so that a daemon may end meanwhile. Where that cannot take one, it is kept
//! in memory for as long as this engine lives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plugd_protocol::control::{AnswerParams, AnswerReport, Source, StageTime, UnixMillis};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, CallResult, OperationId, PluginName};
use plugd_store::TokenState;
use plugd_supervisor::driver::unix_now;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::decided::{self, CarriedOn, DECLINED, Lies};
use super::trail::{Stopped, Trail};
use super::{Known, Origin, Request, confirm};
use crate::answers::{completing, contradictory};
use crate::asks::{later, unknown_token};
use crate::calls::Via;
use crate::engine::{Engine, Opening};
use crate::outcome::recording::{a_moment_more, refused_by_store, stored_by};
use crate::registry::RegisteredOperation;

/// What to do where a token cannot be looked up.
const WAITS_ON: &str =
    "nothing was run, and a token that waits stays good: mend what `plugd doctor` names, then answer again";

/// So many calls wait in memory at most; beyond it the one that expires first goes.
const IN_MEMORY_MAX: usize = 1_000;

/// The calls that wait and that the store could not take. The lock is held for one operation.
#[derive(Default)]
pub(crate) struct Tokens {
    waiting: Mutex<HashMap<String, InMemory>>,
    /// Those of them and of the store's that were answered, and whose calls have not ended.
    pub(super) carried_on: CarriedOn,
}

struct InMemory {
    expires: UnixMillis,
    state: Result<Box<RawValue>, String>,
}

/// A call that stopped. Its arguments are in it as they are, secrets included: the store's file is
/// its owner's alone.
#[derive(Serialize, Deserialize)]
struct Kept {
    call_id: CallId,
    at: UnixMillis,
    operation: OperationId,
    waits_for: WaitsFor,
    /// The arguments as they came.
    given: Box<RawValue>,
    /// As far as they are known.
    known: Box<RawValue>,
    caller: Option<String>,
    session: Option<String>,
    traceparent: Option<String>,
    key: Option<String>,
    timeout_ms: Option<u64>,
    confirmed: bool,
    wait: bool,
    whole: bool,
    notes: Vec<String>,
    stages: Vec<StageTime>,
    /// Microseconds that it took until it stopped.
    spent_us: u64,
}

/// What a call that stopped waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WaitsFor {
    /// Values that are missing.
    Input,
    /// That somebody agrees.
    Confirmation,
}

/// What was said.
enum Said {
    /// These values, which fit so far.
    Values(Map<String, Value>),
    Yes,
    No,
}

impl Engine {
    /// How long a question about a plugin's call can be answered.
    pub(crate) fn token_ttl(&self, plugin: &PluginName) -> Duration {
        let config = self.config();
        config.plugins.get(plugin).map_or(config.limits, |plugin| plugin.limits).token_ttl
    }

    /// Whether the call can be carried on later: an engine that is opened for one call of plugins that
    /// are configured nowhere is gone by then, and no other one would find the operation.
    fn can_be_carried_on(&self, operation: &RegisteredOperation) -> bool {
        let config = self.config();
        let plugin = config.plugins.get(&operation.id.plugin);
        self.opening() == Opening::Everything
            || plugin.is_some_and(|plugin| !matches!(plugin.source, Source::Embedded))
    }

    /// Keeps a call under a new token, where an answer can carry it on.
    pub(super) async fn keep(
        &self,
        trail: &Trail,
        operation: &RegisteredOperation,
        known: &RawValue,
        waits_for: WaitsFor,
    ) -> Option<(String, UnixMillis)> {
        if !self.can_be_carried_on(operation) {
            return None;
        }
        let token = Uuid::new_v4().to_string();
        let expires = later(self.token_ttl(&operation.id.plugin));
        let request = &trail.request;
        let text = |text: &Option<Arc<str>>| text.as_deref().map(ToOwned::to_owned);
        let kept = Kept {
            call_id: trail.call_id.clone(),
            at: trail.at,
            operation: operation.id.clone(),
            waits_for,
            given: trail.given().unwrap_or(known).to_owned(),
            known: known.to_owned(),
            caller: text(&request.caller),
            session: text(&request.session),
            traceparent: text(&request.traceparent),
            key: text(&request.key),
            timeout_ms: request.timeout.and_then(|timeout| u64::try_from(timeout.as_millis()).ok()),
            confirmed: request.confirmed,
            wait: request.wait,
            whole: request.whole,
            notes: trail.notes.clone(),
            stages: trail.stages().collect(),
            spent_us: u64::try_from(trail.elapsed().as_micros()).unwrap_or(u64::MAX),
        };
        let kept = to_raw_value(&kept).expect("what is kept of a call is JSON");
        let stored = match self.shared().recording.store() {
            Some(store) => {
                let put = trail.written_in_time(store.put_token(&token, &kept, expires)).await;
                put.map_err(|error| error.to_string())
            }
            None => Err("nothing can be kept".to_owned()),
        };
        if let Err(reason) = stored {
            // An engine that was opened for one call is gone before anybody answers.
            if self.opening() == Opening::OnDemand {
                tracing::warn!(call_id = %trail.call_id, reason, "a call cannot wait for a person");
                return None;
            }
            tracing::warn!(call_id = %trail.call_id, reason, "a call that waits for a person is kept in memory only");
            self.shared().tokens.put(token.clone(), expires, kept);
        }
        Some((token, expires))
    }

    /// Answers what a call asks, or agrees to it, or declines.
    ///
    /// Where whoever made the call waits for it, it goes on there. A call that had stopped is carried
    /// on here, under its own id, as the caller who made it; its result comes back. What it needs
    /// besides is put to the asker.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call that is carried on.
    ///
    /// # Errors
    /// 1007 where nothing waits under the token; 2001 where an answer does not fit, 7004 or 7005 where
    /// the profile that answers may not use what waits: then the token stays good.
    pub async fn answer(&self, params: AnswerParams, via: Via) -> Result<AnswerReport, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        if params.decline && params.confirm {
            return Err(contradictory());
        }
        let waiting = self.shared().asks.waiting(&params.token);
        if let Some((operation, _)) = waiting.and_then(|call_id| self.shared().calls.behind(&call_id)) {
            self.may_see(profile.as_deref(), &operation.to_string())?;
        }
        if let Some(answered) = self.shared().asks.answer(&params) {
            return answered;
        }
        let kept = read(&self.token(&params.token, None).await?)?;
        self.may_see(profile.as_deref(), &kept.operation.to_string())?;
        let said = self.said(&params, &kept).await?;
        let decided = match said {
            Said::Values(_) | Said::Yes => decided::answered(&kept.call_id),
            Said::No => DECLINED.to_owned(),
        };
        let _carrying_on = self.shared().tokens.carried_on.enter(&params.token);
        // Two may answer at once: the first has it.
        let kept = read(&self.token(&params.token, Some(&decided)).await?)?;
        let call_id = kept.call_id.clone();
        let result = self.carry_on(kept, said, params.confirm, via).await;
        if let Some(newer) = result.pending.as_ref().and_then(|pending| pending.token.as_deref()) {
            self.stopped_again(&params.token, newer).await;
        }
        Ok(AnswerReport { call_id, result: Some(result) })
    }

    /// What lies under a token; it is used up where it is said how that was decided.
    async fn token(&self, token: &str, decided: Option<&str>) -> Result<Box<RawValue>, CallError> {
        if let Some(state) = self.shared().tokens.look(token, decided) {
            return match state {
                Ok(kept) => Ok(kept),
                Err(how) => Err(self.used(token, &how, Lies::InMemory, decided.is_some()).await),
            };
        }
        // Where nothing is to be kept there are no others.
        let store = match self.store() {
            Ok(store) => store,
            Err(_) if self.config().record.is_none() => return Err(unknown_token()),
            Err(error) => return Err(error.hint(WAITS_ON)),
        };
        let state = match decided {
            Some(decided) => store.take_token(token, decided).await,
            None => store.token(token).await,
        };
        match state {
            Ok(TokenState::Open { json, .. }) => Ok(json),
            Ok(TokenState::Decided(how)) => {
                Err(self.used(token, &how, Lies::Stored, decided.is_some()).await)
            }
            Ok(TokenState::Unknown) => Err(unknown_token()),
            Err(error) => Err(refused_by_store(&error).hint(WAITS_ON)),
        }
    }

    /// Notes under which token a call waits now, for whoever comes with the one before.
    async fn stopped_again(&self, token: &str, newer: &str) {
        let how = decided::stopped_again(newer);
        if self.shared().tokens.note(token, &how) {
            return;
        }
        // It is written all the same, and who comes with the older one before that learns less.
        let until = Some(a_moment_more(Instant::now()));
        if let Some(store) = self.shared().recording.store()
            && let Err(error) = stored_by(until, store.note_token(token, &how)).await
        {
            tracing::warn!(%error, "a token's successor is not noted");
        }
    }

    /// What an answer says, where it fits what the call waits for.
    async fn said(&self, params: &AnswerParams, kept: &Kept) -> Result<Said, CallError> {
        if params.decline {
            return Ok(Said::No);
        }
        match kept.waits_for {
            WaitsFor::Confirmation => {
                confirm::answered(params).map(|yes| if yes { Said::Yes } else { Said::No })
            }
            WaitsFor::Input => {
                let operation = self.look_for(&kept.operation.to_string(), None).await?;
                completing(&operation, &kept.known, params).map(Said::Values)
            }
        }
    }

    /// Takes a call that had stopped through its stages again.
    async fn carry_on(&self, kept: Kept, said: Said, confirmed: bool, via: Via) -> CallResult {
        // A yes to what was shown is none to whatever else.
        let confirmed = kept.confirmed || (confirmed && kept.waits_for == WaitsFor::Input);
        let (answers, agreed_to, refused) = match said {
            Said::Values(answers) => (answers, None, false),
            Said::Yes => (Map::new(), Some(kept.known.get().to_owned()), false),
            Said::No => (Map::new(), None, true),
        };
        let request = Request {
            operation: kept.operation.to_string(),
            arguments: Some(kept.given),
            known: Some(Known { arguments: kept.known, answers }),
            timeout: kept.timeout_ms.map(Duration::from_millis),
            hard_deadline: None,
            inherited: None,
            via,
            session: kept.session.map(Into::into),
            traceparent: kept.traceparent.map(Into::into),
            key: kept.key.map(Into::into),
            caller: kept.caller.map(Into::into),
            parent: None,
            confirmed,
            wait: kept.wait,
            whole: kept.whole,
            origin: Origin::Caller,
        };
        let spent = Duration::from_micros(kept.spent_us);
        let mut trail = Trail::carried_on(self, kept.call_id, kept.at, request, &kept.stages, spent);
        trail.agreed_to = agreed_to;
        trail.is_carried_on = true;
        trail.notes = kept.notes;
        if refused { self.end_refused(trail).await } else { self.go(trail).await }
    }

    /// Ends a call that somebody does not want.
    async fn end_refused(&self, mut trail: Box<Trail>) -> CallResult {
        let snapshot = self.shared().registry.snapshot();
        if let Some(operation) = snapshot.operation(&trail.request.operation) {
            trail.resolved(operation);
        }
        let error = confirm::refused(&trail.request.operation);
        let result = trail.result_of(Err(Stopped::Failed(error)));
        trail.close(result).await
    }
}

impl Tokens {
    fn put(&self, token: String, expires: UnixMillis, kept: Box<RawValue>) {
        self.with(|all| {
            all.retain(|_, waiting| waiting.expires > unix_now());
            if all.len() >= IN_MEMORY_MAX {
                let first = all.iter().min_by_key(|(_, waiting)| waiting.expires);
                let first = first.map(|(token, _)| token.clone());
                first.map(|first| all.remove(&first));
            }
            all.insert(token, InMemory { expires, state: Ok(kept) });
        });
    }

    /// What lies under a token, where anything does; it is used up where it is said how.
    fn look(&self, token: &str, decided: Option<&str>) -> Option<Result<Box<RawValue>, String>> {
        self.with(|all| {
            let waiting = all.get_mut(token).filter(|waiting| waiting.expires > unix_now())?;
            let state = waiting.state.clone();
            if let (Some(decided), Ok(_)) = (decided, &state) {
                waiting.state = Err(decided.to_owned());
            }
            Some(state)
        })
    }

    /// Whether a token lies here alone.
    pub(super) fn has(&self, token: &str) -> bool {
        self.with(|all| all.contains_key(token))
    }

    /// Says more of how a token was decided, where it lies here.
    fn note(&self, token: &str, how: &str) -> bool {
        self.with(|all| all.get_mut(token).map(|waiting| waiting.state = Err(how.to_owned())).is_some())
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, InMemory>) -> T) -> T {
        act(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn read(kept: &RawValue) -> Result<Kept, CallError> {
    serde_json::from_str(kept.get()).map_err(|error| {
        let message = format!("the call under this token was kept by another version of plugd: {error}");
        CallError::new(ErrorKind::UnknownToken, message).hint("make the call again")
    })
}
