//! One call from its name to its result: its stages, in order.

mod arguments;
mod authorise;
mod confirm;
mod decided;
mod explain;
mod resolve;
mod run;
mod tokens;
mod trail;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plugd_protocol::control::{AnsweredFrom, CallParams, Stage};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, CallResult, Outcome, PluginName};
use plugd_supervisor::driver::{Answered, Deadline, Lineage};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use crate::calls::{Arriving, Listed, Via};
use crate::config::TIMEOUT_MAX;
use crate::engine::Engine;
use crate::outcome::cache::Look;
use crate::outcome::keys::{self, Earlier};
use crate::outcome::{builtin, jobs, results};
use crate::registry::{RegisteredOperation, Snapshot};

pub(crate) use arguments::in_words;
pub(crate) use run::Times;
pub(crate) use tokens::Tokens;
pub(crate) use trail::{Stopped, Trail, ended};

/// A call as it arrives.
pub(crate) struct Request {
    /// The name as it was written.
    pub(crate) operation: String,
    /// What was given; the trail takes it.
    pub(crate) arguments: Option<Box<RawValue>>,
    /// What is known already, where the call had stopped and is carried on.
    pub(crate) known: Option<Known>,
    /// What the caller allows for everything together.
    pub(crate) timeout: Option<Duration>,
    pub(crate) hard_deadline: Option<Instant>,
    /// When the call that waits for it must have ended.
    pub(crate) inherited: Option<Deadline>,
    /// Whom its questions go to, and what it is made through.
    pub(crate) via: Via,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) traceparent: Option<Arc<str>>,
    /// The caller's key for running this once.
    pub(crate) key: Option<Arc<str>>,
    /// Who calls: a profile, or `plugin:NAME`; none is the owner.
    pub(crate) caller: Option<Arc<str>>,
    /// The call it is made for, where a plugin makes it.
    pub(crate) parent: Option<CallId>,
    /// Whether whoever calls agrees to what it does.
    pub(crate) confirmed: bool,
    /// Whether to wait for the end of what takes long.
    pub(crate) wait: bool,
    /// Whether the result is wanted whole.
    pub(crate) whole: bool,
    pub(crate) origin: Origin,
}

/// What a call had come to when it stopped, and what was said since.
pub(crate) struct Known {
    pub(crate) arguments: Box<RawValue>,
    pub(crate) answers: serde_json::Map<String, serde_json::Value>,
}

/// Where a call comes from.
pub(crate) enum Origin {
    /// A script, a program, a person.
    Caller,
    /// Another plugin, through these.
    Plugin { name: PluginName, lineage: Lineage },
}

/// A call that may run: what was called stands in its trail.
pub(crate) struct Ready {
    /// The declarations it was found in.
    declared: Arc<Snapshot>,
    active: Active,
}

impl Ready {
    /// Takes note that whoever made the call no longer waits for it.
    pub(crate) fn let_go(&self) {
        self.active.listed.let_go();
    }
}

/// What comes after a call was found to be in order.
enum Next {
    /// It runs.
    Run(Ready),
    /// It has run already, for its key.
    Ended(Result<Answered, CallError>),
}

/// A call's place among those that have not ended.
struct Active {
    listed: Listed,
    /// Its beginning, which also tells when it is to be stopped.
    arriving: Arriving,
}

impl Engine {
    /// Runs one call; it always ends in one result.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call: the plugin is told once.
    pub async fn call(&self, params: CallParams) -> CallResult {
        self.call_via(params, Via::default()).await
    }

    /// Runs one call whose questions go to whoever made it; without an asker it stops where it needs a
    /// person, and `answer` carries it on.
    ///
    /// # Cancel safety
    /// As [`Engine::call`].
    pub async fn call_via(&self, params: CallParams, via: Via) -> CallResult {
        self.run(Request::of_caller(params, via)).await
    }

    pub(crate) async fn run(&self, request: Request) -> CallResult {
        self.go(Trail::begin(self, request)).await
    }

    /// Takes a call through its stages.
    async fn go(&self, mut trail: Box<Trail>) -> CallResult {
        let result = match self.made_ready(&mut trail).await {
            // What is rare has its state apart: every call in flight would have room for it.
            Ok(Next::Run(ready)) if trail.goes_to_background() => {
                return Box::pin(jobs::begin(trail, ready)).await;
            }
            Ok(Next::Run(ready)) => self.run_ready(ready, &mut trail).await,
            Ok(Next::Ended(outcome)) => trail.result_of(outcome.map_err(Stopped::Failed)),
            Err(stopped) => trail.result_of(Err(stopped)),
        };
        trail.close(result).await
    }

    /// The stages before anything runs: what is called, by whom, with what, and whether it may.
    async fn made_ready(&self, trail: &mut Trail) -> Result<Next, Stopped> {
        trail.request.take_up_deadline()?;
        let profile = self.profile_of(&trail.request)?;
        let mut arriving = self.shared().calls.arrive(&trail.call_id, trail.at, trail.request.via.connection);
        let operation = tokio::select! {
            biased;
            operation = self.resolve(&trail.request, profile.as_deref()) => operation?,
            () = self::cancelled(&mut arriving.cancelled) => return Err(cancel(Outcome::NotRun).into()),
        };
        let declared = self.shared().registry.snapshot();
        trail.resolved(&operation);
        self.authorise(&trail.request, profile.as_deref(), &operation)?;
        let listed = self.enter(&mut arriving, trail, &operation);
        let stages = async {
            if let Some(earlier) = keys::earlier(trail, &operation).await? {
                return ended_by(earlier).map(Some);
            }
            let operation = self.complete_arguments(trail, operation).await?;
            trail.note(Stage::Checked);
            if confirm::is_due(&operation.operation) {
                self.confirm(trail, &operation).await?;
                trail.note(Stage::Confirmed);
            } else {
                trail.pass(Stage::Confirmed, Stage::Checked);
            }
            Ok(None)
        };
        let ended = tokio::select! {
            biased;
            ended = stages => ended?,
            () = self::cancelled(&mut arriving.cancelled) => return Err(cancel(Outcome::NotRun).into()),
        };
        Ok(match ended {
            Some(outcome) => Next::Ended(outcome),
            None => Next::Run(Ready { declared, active: Active { listed, arriving } }),
        })
    }

    /// The stages that run it; its result is whole, and [`Trail::close`] is still to come.
    pub(crate) async fn run_ready(&self, ready: Ready, trail: &mut Trail) -> CallResult {
        let Ready { declared, active: Active { listed, mut arriving } } = ready;
        let delivered = AtomicBool::new(false);
        let outcome = tokio::select! {
            biased;
            outcome = self.answer_of(declared, trail, &delivered) => outcome,
            () = self::cancelled(&mut arriving.cancelled) => {
                let outcome = if delivered.load(Ordering::Relaxed) { Outcome::Unknown } else { Outcome::NotRun };
                Err(cancel(outcome).into())
            }
        };
        drop(listed);
        trail.note_answered();
        trail.result_of(outcome)
    }

    /// The answer to a call: an equal call's where that may be given again, its plugin's otherwise.
    async fn answer_of(
        &self,
        declared: Arc<Snapshot>,
        trail: &mut Trail,
        delivered: &AtomicBool,
    ) -> Result<Answered, Stopped> {
        let operation = Arc::clone(trail.called());
        let arguments = trail.run_as().expect("what runs has arguments");
        let times = Times::of(self, &trail.request, &operation);
        let now = Instant::now();
        let ends = times.ends(now).into();
        if builtin::is_builtin(&operation.id) {
            let read = builtin::run(trail, &operation, arguments);
            return match timeout_at(ends, read).await {
                Ok(answered) => Ok(answered?),
                Err(_late) => {
                    let message = format!("{} took too long to read what is kept", operation.id);
                    Err(CallError::new(ErrorKind::TimedOut, message).outcome(Outcome::NotRun).into())
                }
            };
        }
        let look = self.shared().outcomes.cache.look(&operation, arguments, trail.request.caller.as_deref());
        let lead = match timeout_at(ends, look).await {
            Ok(Look::Earlier(kept)) => {
                trail.answered_from = Some((AnsweredFrom::Cache, kept.call_id().clone()));
                return Ok(kept.answered());
            }
            Ok(Look::Lead(lead)) => {
                trail.note(Stage::Queued);
                Some(lead)
            }
            Ok(Look::Off) => {
                trail.note_at(Stage::Queued, now);
                None
            }
            Err(_late) => {
                let message = format!("an equal call of {} took too long to wait for", operation.id);
                return Err(CallError::new(ErrorKind::QueueTimedOut, message).into());
            }
        };
        let answered = self.run_it(times, declared, trail, delivered).await?;
        // From an earlier call of the same key, in another process: that was checked then.
        if trail.answered_from.is_none() {
            let operation = trail.called();
            let strict = self.is_strict(&operation.id.plugin);
            match results::check_output(operation, &answered.data, strict) {
                Ok(warning) => trail.warnings.extend(warning),
                Err(error) => {
                    trail.withheld = Some(answered.data);
                    return Err(error.into());
                }
            }
        }
        if let Some(lead) = lead {
            lead.keep(&answered, &trail.call_id);
        }
        Ok(answered)
    }

    fn is_strict(&self, plugin: &PluginName) -> bool {
        self.config().plugins.get(plugin).is_some_and(|plugin| plugin.strict)
    }

    fn enter(&self, arriving: &mut Arriving, trail: &mut Trail, operation: &RegisteredOperation) -> Listed {
        let via = std::mem::take(&mut trail.request.via);
        self.shared().calls.enter(arriving, operation.id.clone(), trail.at, via)
    }
}

impl Request {
    fn of_caller(params: CallParams, via: Via) -> Request {
        Request {
            operation: params.operation,
            arguments: params.arguments,
            known: None,
            timeout: params.timeout_ms.map(Duration::from_millis),
            hard_deadline: None,
            inherited: None,
            via,
            session: params.session.map(Into::into),
            traceparent: params.traceparent.map(Into::into),
            key: params.key.map(Into::into),
            caller: params.caller.map(Into::into),
            parent: None,
            confirmed: params.confirm,
            wait: params.wait,
            whole: params.whole,
            origin: Origin::Caller,
        }
    }

    /// What the caller allows covers everything from now on, finding out what there is included.
    fn take_up_deadline(&mut self) -> Result<(), CallError> {
        if self.timeout.is_some_and(|timeout| timeout.is_zero() || timeout > TIMEOUT_MAX) {
            let message = "the timeout must be more than nothing and at most an hour, such as 5s";
            return Err(CallError::new(ErrorKind::MalformedRequest, message));
        }
        let asked = self.timeout.map(|timeout| Instant::now() + timeout);
        self.hard_deadline = [asked, self.hard_deadline].into_iter().flatten().min();
        Ok(())
    }
}

impl Trail {
    /// Whether whoever calls gets a job and not the answer.
    fn goes_to_background(&self) -> bool {
        let long_running = self.called().operation.long_running;
        long_running && !self.request.wait && matches!(self.request.origin, Origin::Caller)
    }
}

/// What an earlier call with the same key means for this one.
fn ended_by(earlier: Earlier) -> Result<Result<Answered, CallError>, Stopped> {
    match earlier {
        Earlier::Ended(outcome) => Ok(outcome),
        Earlier::Runs(call_id) => Err(Stopped::Runs(call_id)),
    }
}

/// Resolves when somebody wants the call stopped.
async fn cancelled(wish: &mut oneshot::Receiver<()>) {
    // An entry that is taken out without a word was not cancelled.
    if wish.await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn cancel(outcome: Outcome) -> CallError {
    CallError::new(ErrorKind::Cancelled, "the call was cancelled").outcome(outcome)
}
