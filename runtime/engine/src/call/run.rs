//! A call on its way through a run of its plugin: waiting for a lane, running, tried again where that does no harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plugd_contract::Prepared;
use plugd_protocol::{CallError, PluginName};
use plugd_supervisor::driver::{Answered, CallRequest, Lineage, Patience, RunFailure};
use serde_json::value::RawValue;

use super::arguments::{invalid, problems};
use super::trail::{Stopped, Trail};
use super::{Origin, Request, ended_by};
use crate::config::{TIMEOUT_DEFAULT, TIMEOUT_MAX};
use crate::engine::Engine;
use crate::failure::{not_admitted, removed_meanwhile, run_failure};
use crate::outcome::{jobs, keys, record, retry};
use crate::registry::{RegisteredOperation, Snapshot};

/// How long a call may take for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) run: Duration,
    pub(crate) stall: Option<Duration>,
    pub(crate) patience: Patience,
}

impl Times {
    /// The most specific wins: the caller, then the configuration, then the manifest.
    pub(crate) fn of(engine: &Engine, request: &Request, operation: &RegisteredOperation) -> Times {
        let config = engine.config();
        let limits = config.plugins.get(&operation.id.plugin).map_or(config.limits, |plugin| plugin.limits);
        let declared = &operation.operation;
        let default = if declared.long_running { TIMEOUT_MAX } else { TIMEOUT_DEFAULT };
        let declared_run = declared.timeout_ms.map(Duration::from_millis);
        let run = request.timeout.or(limits.timeout).or(declared_run).unwrap_or(default).min(TIMEOUT_MAX);
        let declared_stall = declared.stall_timeout_ms.map(Duration::from_millis);
        Times {
            run,
            stall: limits.stall_timeout.unwrap_or(declared_stall),
            patience: Patience { hard: request.hard_deadline, unavailable: run, queue: limits.queue_timeout },
        }
    }

    /// When an equal call that runs is waited for no longer.
    pub(super) fn ends(self, now: Instant) -> Instant {
        let ends = now + self.run;
        self.patience.hard.map_or(ends, |hard| hard.min(ends))
    }

    /// What is left of them for another attempt, where a run got the first one then.
    fn left_since(self, handed_over: Instant) -> Times {
        let ends = handed_over + self.run;
        let left = ends.saturating_duration_since(Instant::now());
        let hard = self.patience.hard.map_or(ends, |hard| hard.min(ends));
        let patience = Patience { hard: Some(hard), unavailable: left, queue: self.patience.queue };
        Times { run: left, patience, ..self }
    }
}

/// How an attempt ends without an answer.
enum Unanswered {
    /// It failed so, and a second attempt may do better and does no harm.
    TryAgain(CallError),
    /// That is the end of the call.
    ForGood(Stopped),
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Unanswered {
        Unanswered::ForGood(error.into())
    }
}

impl From<Stopped> for Unanswered {
    fn from(stopped: Stopped) -> Unanswered {
        Unanswered::ForGood(stopped)
    }
}

impl Engine {
    /// Runs the call, and once more where the first attempt failed and a second one does no harm.
    pub(super) async fn run_it(
        &self,
        times: Times,
        mut declared: Arc<Snapshot>,
        trail: &mut Trail,
        delivered: &AtomicBool,
    ) -> Result<Answered, Stopped> {
        let first = match self.attempt(1, times, &mut declared, trail, delivered).await {
            Ok(answered) => return Ok(answered),
            Err(Unanswered::ForGood(stopped)) => return Err(stopped),
            Err(Unanswered::TryAgain(error)) => error,
        };
        let left = times.left_since(trail.handed_over().unwrap_or_else(Instant::now));
        match self.attempt(2, left, &mut declared, trail, delivered).await {
            // No run got it again: what is known is how the first attempt ended.
            Err(_) if trail.attempt == 1 => Err(first.into()),
            Err(Unanswered::ForGood(stopped)) => Err(stopped),
            Err(Unanswered::TryAgain(error)) => Err(error.into()),
            Ok(answered) => Ok(answered),
        }
    }

    /// Waits for a lane and runs the call there; a run that ends before it got the call is passed over.
    async fn attempt(
        &self,
        attempt: u32,
        times: Times,
        declared: &mut Arc<Snapshot>,
        trail: &mut Trail,
        delivered: &AtomicBool,
    ) -> Result<Answered, Unanswered> {
        let plugin = trail.called().id.plugin.clone();
        // A second attempt is of a call that began with the first.
        let mut begun = attempt > 1;
        loop {
            let admitted = self.plugins().admit(&plugin, times.patience).await;
            let lease =
                admitted.map_err(|failure| self.unless_removed(&plugin, not_admitted(&plugin, failure)))?;
            if let Some(operation) = self.declared_anew(declared, trail.called())? {
                // Who is asked meanwhile holds no lane.
                drop(lease);
                Box::pin(self.make_ready_again(trail, &operation)).await?;
                continue;
            }
            if !std::mem::replace(&mut begun, true) {
                if let Some(earlier) = keys::begin(trail, &Arc::clone(trail.called())).await? {
                    return Ok(ended_by(earlier)??);
                }
                jobs::handing_over(trail).await?;
                if trail.is_carried_on {
                    Box::pin(record::note_begun(trail)).await;
                }
            }
            let call = request_for(trail, attempt, times);
            trail.hand_over(&lease, &call);
            delivered.store(true, Ordering::Relaxed);
            let sandbox = lease.sandbox();
            match lease.run(call).await {
                Ok(answered) => return Ok(answered),
                Err(failure) => {
                    let died = matches!(failure, RunFailure::Died { .. });
                    if let Some(error) = run_failure(&plugin, sandbox, failure) {
                        let error = self.unless_removed(&plugin, error);
                        let again = retry::again(&trail.called().operation, &error, died, attempt);
                        return Err(if again { Unanswered::TryAgain(error) } else { error.into() });
                    }
                    trail.not_handed_over();
                    // What an earlier attempt delivered stays delivered.
                    delivered.store(trail.handed_over().is_some(), Ordering::Relaxed);
                }
            }
        }
    }

    /// The operation as it is declared now, where that is not as it was found.
    fn declared_anew(
        &self,
        declared: &mut Arc<Snapshot>,
        operation: &Arc<RegisteredOperation>,
    ) -> Result<Option<Arc<RegisteredOperation>>, CallError> {
        let now = self.shared().registry.snapshot();
        if Arc::ptr_eq(&now, declared) {
            return Ok(None);
        }
        let identity = operation.id.to_string();
        let anew = now.operation(&identity).ok_or_else(|| now.unknown(&identity))?;
        let anew = (!Arc::ptr_eq(anew, operation)).then(|| Arc::clone(anew));
        *declared = now;
        Ok(anew)
    }

    /// Looks again whether the call may run, by what is declared now.
    async fn make_ready_again(
        &self,
        trail: &mut Trail,
        operation: &Arc<RegisteredOperation>,
    ) -> Result<(), Stopped> {
        let profile = self.profile_of(&trail.request)?;
        self.authorise(&trail.request, profile.as_deref(), operation)?;
        trail.operation = Some(Arc::clone(operation));
        let contract = operation.contract()?;
        let run: &RawValue = trail.run_as().expect("what waits to run has arguments");
        let arguments = match contract.prepare(run) {
            Prepared::Fits => None,
            Prepared::Ready { arguments, .. } => Some(arguments),
            Prepared::Missing { known, .. } => {
                return Err(invalid(operation, problems(contract, &known)).into());
            }
            Prepared::Wrong(problems) => return Err(invalid(operation, problems).into()),
        };
        if let Some(arguments) = arguments {
            let before = trail.arguments.run.take();
            let before = before.or_else(|| trail.sent.as_ref().map(|sent| sent.arguments.clone()));
            trail.arguments.given = trail.arguments.given.take().or(before);
            trail.arguments.run = Some(arguments);
        }
        self.confirm(trail, operation).await
    }

    /// The error, or a truer one where the plugin is configured no more.
    fn unless_removed(&self, plugin: &PluginName, error: CallError) -> CallError {
        match self.config().plugins.contains_key(plugin) {
            true => error,
            false => removed_meanwhile(plugin, error),
        }
    }
}

/// The call as the plugin is to get it; the same as last time where nothing differs.
fn request_for(trail: &mut Trail, attempt: u32, times: Times) -> Arc<CallRequest> {
    let run = trail.arguments.run.take();
    let arguments = match (run, &trail.sent) {
        (None, Some(sent)) if sent.attempt == attempt => return Arc::clone(sent),
        (None, Some(sent)) => sent.arguments.clone(),
        (run, _) => run.expect("what runs has arguments"),
    };
    let request = &trail.request;
    let lineage = match &request.origin {
        Origin::Caller => Lineage::default(),
        Origin::Plugin { lineage, .. } => lineage.clone(),
    };
    Arc::new(CallRequest {
        operation: trail.called().id.operation.clone(),
        arguments,
        call_id: trail.call_id.clone(),
        session: request.session.clone(),
        traceparent: request.traceparent.clone(),
        caller: request.caller.clone(),
        key: request.key.clone(),
        attempt,
        timeout: times.run,
        stall_timeout: times.stall,
        hard_deadline: if request.inherited.is_none() { times.patience.hard } else { None },
        inherited: request.inherited.clone(),
        lineage,
    })
}
