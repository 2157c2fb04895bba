//! Everything about one call, from its arrival to its result and to the row that is kept of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::control::{AnsweredFrom, Event, Stage, StageTime, UnixMillis};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::result::{Meta, NextAction, Pending};
use plugd_protocol::{CallError, CallId, CallResult, Outcome, Status};
use plugd_store::StoreError;
use plugd_supervisor::driver::{Answered, CallRequest, Lease, unix_now};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Request;
use crate::engine::Engine;
use crate::events::happening;
use crate::outcome::keys::{self, Claim};
use crate::outcome::recording::{a_moment_more, stored_by};
use crate::outcome::{record, redact, results, retry};
use crate::registry::RegisteredOperation;

/// How many stages there are.
const STAGES: usize = 8;

/// The stages, in the order of their declaration.
const ALL: [Stage; STAGES] = [
    Stage::Resolved,
    Stage::Checked,
    Stage::Asked,
    Stage::Confirmed,
    Stage::Queued,
    Stage::Started,
    Stage::Answered,
    Stage::Shaped,
];

/// What is said of a token that the store could not take.
const NOT_WRITTEN_DOWN: &str =
    "the token is good only while plugd runs: it could not be written down, and `plugd doctor` says why";

/// What is known of a call so far; it goes with the call through all its stages, and nowhere else.
pub(crate) struct Trail {
    pub(crate) engine: Engine,
    pub(crate) call_id: CallId,
    /// When the call came first.
    pub(crate) at: UnixMillis,
    pub(crate) request: Request,
    /// What was called, as it is declared; none where nothing of that name exists.
    pub(crate) operation: Option<Arc<RegisteredOperation>>,
    pub(crate) arguments: Arguments,
    /// What was changed of them to fit their declared types.
    pub(crate) notes: Vec<String>,
    /// The arguments, as they were to run, that a person agreed to.
    pub(crate) agreed_to: Option<String>,
    /// Whether an answer to a token carries it on: whoever repeats that must learn what came of it.
    pub(crate) is_carried_on: bool,
    /// What the plugin got.
    pub(crate) sent: Option<Arc<CallRequest>>,
    /// How often it was tried.
    pub(crate) attempt: u32,
    /// The run of the plugin that got it last.
    pub(crate) generation: Option<u64>,
    /// Where the answer is from, where nothing ran for it, and the call that ran then.
    pub(crate) answered_from: Option<(AnsweredFrom, CallId)>,
    /// What is wrong with the plugin's answer that does not keep it from being used.
    pub(crate) warnings: Vec<String>,
    /// The plugin's data, where it is not handed on for what is wrong with it.
    pub(crate) withheld: Option<Box<RawValue>>,
    /// The right to run with the caller's key, from when it is given to the end of the call.
    pub(crate) claim: Option<Claim>,
    stopwatch: Stopwatch,
    /// Until when it waits for its end to be written down, once it has come to that.
    written_until: Option<Instant>,
    finished: bool,
}

/// The arguments of a call on their way.
#[derive(Default)]
pub(crate) struct Arguments {
    /// As they came; none where they run as they came.
    pub(crate) given: Option<Box<RawValue>>,
    /// As they run; taken when they are sent.
    pub(crate) run: Option<Box<RawValue>>,
    /// The length of what came.
    bytes: u64,
}

/// The times of a call; what people took is not counted.
struct Stopwatch {
    /// When it arrived; for a call that is carried on, as long ago as it had taken before.
    arrived: Instant,
    /// The same in wall time.
    arrived_at: UnixMillis,
    /// How long people took.
    waited_for_people: Duration,
    /// When a run got it.
    handed_over: Option<Instant>,
    /// When its answer was there.
    answered: Option<Instant>,
    /// How long it took in all, once it is over.
    taken: Option<Duration>,
    /// Microseconds until each stage.
    stages: [Option<u64>; STAGES],
}

impl Stopwatch {
    fn taken_by(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.arrived).saturating_sub(self.waited_for_people)
    }
}

/// Why a call ends without an answer.
pub(crate) enum Stopped {
    /// It failed.
    Failed(CallError),
    /// A person must say something first.
    Waits(Box<Waits>),
    /// It goes on in the background, as the call of this id.
    Runs(CallId),
}

/// A call that waits for a person.
pub(crate) struct Waits {
    pub(crate) status: Status,
    pub(crate) error: CallError,
    pub(crate) pending: Pending,
}

impl From<CallError> for Stopped {
    fn from(error: CallError) -> Stopped {
        Stopped::Failed(error)
    }
}

impl Trail {
    /// Boxed, for it is handed from stage to stage and is large.
    pub(crate) fn begin(engine: &Engine, mut request: Request) -> Box<Trail> {
        let uuid = Uuid::now_v7();
        let at = arrival(&uuid);
        let call_id = CallId::new(&*uuid.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        let given = request.arguments.take();
        let bytes = given.as_ref().map_or(0, |given| given.get().len() as u64);
        Box::new(Trail {
            engine: engine.clone(),
            call_id,
            at,
            request,
            operation: None,
            arguments: Arguments { given, run: None, bytes },
            notes: Vec::new(),
            agreed_to: None,
            is_carried_on: false,
            sent: None,
            attempt: 1,
            generation: None,
            answered_from: None,
            warnings: Vec::new(),
            withheld: None,
            claim: None,
            stopwatch: Stopwatch {
                arrived: Instant::now(),
                arrived_at: at,
                waited_for_people: Duration::ZERO,
                handed_over: None,
                answered: None,
                taken: None,
                stages: [None; STAGES],
            },
            written_until: None,
            finished: false,
        })
    }

    /// The trail of a call that had stopped and is carried on: the same call, with what it had taken.
    pub(crate) fn carried_on(
        engine: &Engine,
        call_id: CallId,
        at: UnixMillis,
        request: Request,
        stages: &[StageTime],
        spent: Duration,
    ) -> Box<Trail> {
        let mut trail = Trail::begin(engine, request);
        trail.call_id = call_id;
        trail.at = at;
        if let Some(arrived) = trail.stopwatch.arrived.checked_sub(spent) {
            trail.stopwatch.arrived = arrived;
            let spent = u64::try_from(spent.as_millis()).unwrap_or(u64::MAX);
            trail.stopwatch.arrived_at = UnixMillis(trail.stopwatch.arrived_at.0.saturating_sub(spent));
        }
        for StageTime { stage, at_us } in stages {
            trail.stopwatch.stages[*stage as usize] = Some(*at_us);
        }
        trail
    }

    /// The arguments as they came.
    pub(crate) fn given(&self) -> Option<&RawValue> {
        self.arguments.given.as_deref().or_else(|| self.run_as())
    }

    /// The arguments as they run, where that differs from how they came.
    pub(crate) fn run_with(&self) -> Option<&RawValue> {
        self.arguments.given.as_ref().and_then(|_| self.run_as())
    }

    /// The arguments as they run, once that is known.
    pub(crate) fn run_as(&self) -> Option<&RawValue> {
        self.arguments.run.as_deref().or_else(|| self.sent.as_ref().map(|sent| &*sent.arguments))
    }

    /// Takes note that the call has come to a stage.
    pub(crate) fn note(&mut self, stage: Stage) {
        self.note_at(stage, Instant::now());
    }

    /// The same, where the clock has just been read.
    pub(super) fn note_at(&mut self, stage: Stage, now: Instant) {
        self.stopwatch.stages[stage as usize] = Some(micros(self.stopwatch.taken_by(now)));
    }

    /// Takes note that the call has passed a stage without waiting, as it came to the one before.
    pub(super) fn pass(&mut self, stage: Stage, before: Stage) {
        self.stopwatch.stages[stage as usize] = self.stopwatch.stages[before as usize];
    }

    /// Takes note that its answer is there.
    pub(super) fn note_answered(&mut self) {
        let now = Instant::now();
        self.stopwatch.answered = Some(now);
        self.note_at(Stage::Answered, now);
    }

    /// The stages it has come to, and when.
    pub(crate) fn stages(&self) -> impl Iterator<Item = StageTime> {
        let reached = ALL.into_iter().zip(self.stopwatch.stages);
        reached.filter_map(|(stage, at_us)| Some(StageTime { stage, at_us: at_us? }))
    }

    /// How long it has taken, what people took not counted.
    pub(crate) fn elapsed(&self) -> Duration {
        self.stopwatch.taken.unwrap_or_else(|| self.stopwatch.taken_by(Instant::now()))
    }

    /// Takes note that people took so long: it is charged to nobody.
    pub(crate) fn waited_for_people(&mut self, waited: Duration) {
        self.stopwatch.waited_for_people += waited;
        if let Some(deadline) = &mut self.request.hard_deadline {
            *deadline += waited;
        }
    }

    /// What the store does before the call may run, within the call's own time.
    pub(crate) async fn in_time<T>(
        &self,
        stored: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        stored_by(self.request.hard_deadline, stored).await
    }

    /// What the call can do without: half of the time that is left is for the call itself.
    pub(crate) async fn in_half_the_time<T>(
        &self,
        stored: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let now = Instant::now();
        let half = |ends: Instant| now + ends.saturating_duration_since(now) / 2;
        stored_by(self.request.hard_deadline.map(half), stored).await
    }

    /// What the store keeps of how it ended or where it stopped; that may take a moment longer.
    pub(crate) async fn written_in_time<T>(
        &self,
        stored: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        stored_by(self.written_until(), stored).await
    }

    /// Until when it waits for the store once it has ended or stopped.
    pub(crate) fn written_until(&self) -> Option<Instant> {
        let soon = || self.request.hard_deadline.map(a_moment_more);
        self.written_until.or_else(soon)
    }

    /// What was called, from when that is known.
    pub(crate) fn called(&self) -> &Arc<RegisteredOperation> {
        self.operation.as_ref().expect("what runs was found")
    }

    /// What is called is known.
    pub(super) fn resolved(&mut self, operation: &Arc<RegisteredOperation>) {
        self.operation = Some(Arc::clone(operation));
        self.note(Stage::Resolved);
        self.emit("call.started", Duration::ZERO, None, None);
    }

    /// A run gets it, with what that declares of the operation.
    pub(super) fn hand_over(&mut self, lease: &Lease, call: &Arc<CallRequest>) {
        self.generation = Some(lease.generation().0);
        self.sent = Some(Arc::clone(call));
        self.attempt = call.attempt;
        let now = Instant::now();
        self.stopwatch.handed_over.get_or_insert(now);
        self.note_at(Stage::Started, now);
    }

    /// The run did not get it after all.
    pub(super) fn not_handed_over(&mut self) {
        if self.attempt == 1 {
            self.stopwatch.handed_over = None;
            self.stopwatch.stages[Stage::Started as usize] = None;
        }
        self.attempt = self.attempt.saturating_sub(1).max(1);
    }

    /// When a run got it first.
    pub(super) fn handed_over(&self) -> Option<Instant> {
        self.stopwatch.handed_over
    }

    /// How long it waited, and how long it ran.
    fn times(&self, outcome: &Result<Answered, Stopped>) -> (Duration, Duration) {
        let ended = self.stopwatch.answered.unwrap_or_else(Instant::now);
        let not_run = match outcome {
            Ok(_) => false,
            Err(Stopped::Failed(error)) => error.outcome == Outcome::NotRun,
            Err(Stopped::Waits(_) | Stopped::Runs(_)) => true,
        };
        let Some(handed_over) = self.stopwatch.handed_over.filter(|_| !not_run) else {
            let waited = ended.saturating_duration_since(self.stopwatch.arrived);
            return (waited.saturating_sub(self.stopwatch.waited_for_people), Duration::ZERO);
        };
        let ran = ended.saturating_duration_since(handed_over);
        let ran = match outcome {
            Ok(answered) if self.attempt == 1 => answered.took,
            Ok(_) | Err(_) => ran,
        };
        let waited = handed_over.saturating_duration_since(self.stopwatch.arrived);
        (waited.saturating_sub(self.stopwatch.waited_for_people), ran)
    }

    /// About the call, as it ends.
    fn meta(&self, outcome: &Result<Answered, Stopped>) -> Meta {
        let (queue, run) = self.times(outcome);
        let operation = self.operation.as_deref();
        let from = self.answered_from.as_ref().map(|(from, _)| *from);
        Meta {
            call_id: Some(self.call_id.clone()),
            operation: operation.map(|operation| operation.id.clone()),
            plugin_version: operation.map(|operation| operation.plugin_version.as_ref().to_owned()),
            generation: self.generation,
            attempt: self.attempt,
            queue_us: micros(queue),
            run_us: micros(run),
            argument_bytes: self.arguments.bytes,
            data_bytes: outcome.as_ref().map_or(0, |answered| answered.data.get().len() as u64),
            cached: from == Some(AnsweredFrom::Cache),
            replayed: from == Some(AnsweredFrom::Key),
            answer_of: self.answered_from.as_ref().map(|(_, ran)| ran.clone()),
            notes: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The one result of the call, whole and without its shape.
    pub(crate) fn result_of(&mut self, outcome: Result<Answered, Stopped>) -> CallResult {
        let mut meta = self.meta(&outcome);
        let mut result = match outcome {
            Ok(answered) => {
                let next_actions = self.next_actions(answered.next_actions.as_deref());
                let (data, summary) = (Some(answered.data), answered.summary);
                CallResult { data, summary, next_actions, ..ended(Status::Ok) }
            }
            Err(Stopped::Failed(error)) => {
                let error = retry::told(self, redact::for_caller(self, error));
                let cancelled = error.code == ErrorKind::Cancelled.code();
                let status = if cancelled { Status::Cancelled } else { Status::Error };
                CallResult { error: Some(error), ..ended(status) }
            }
            Err(Stopped::Waits(waits)) => {
                let Waits { status, error, pending } = *waits;
                let tokens = &self.engine.shared().tokens;
                if pending.token.as_ref().is_some_and(|token| tokens.has(token)) {
                    self.warnings.push(NOT_WRITTEN_DOWN.to_owned());
                }
                CallResult { error: Some(error), pending: Some(Box::new(pending)), ..ended(status) }
            }
            Err(Stopped::Runs(call_id)) => {
                let summary = Some(format!("it goes on in the background as {call_id}"));
                meta.call_id = Some(call_id);
                CallResult { summary, ..ended(Status::Pending) }
            }
        };
        meta.notes = std::mem::take(&mut self.notes);
        meta.warnings = std::mem::take(&mut self.warnings);
        result.meta = meta;
        result
    }

    fn next_actions(&mut self, written: Option<&RawValue>) -> Vec<NextAction> {
        let (Some(written), Some(operation)) = (written, &self.operation) else { return Vec::new() };
        let (actions, warning) = results::next_actions(&operation.id, written);
        self.warnings.extend(warning);
        let snapshot = self.engine.shared().registry.snapshot();
        self.warnings.extend(results::not_there(&snapshot, &operation.id, &actions));
        actions
    }

    /// The call is over: its result gets its shape and goes into the record, and whoever watches is told.
    pub(crate) async fn close(mut self: Box<Trail>, mut result: CallResult) -> CallResult {
        self.written_until = self.written_until();
        match result.status {
            // It is carried on under the same key, which is claimed again then.
            Status::NeedsInput | Status::NeedsConfirmation | Status::Pending => self.claim = None,
            _ if self.claim.is_some() && Box::pin(keys::answered(&mut self, &result)).await => {
                keys::for_good(&mut result);
            }
            _ => {}
        }
        results::shape(&self, &mut result).await;
        let now = Instant::now();
        self.note_at(Stage::Shaped, now);
        self.stopwatch.taken = Some(self.stopwatch.taken_by(now));
        // Whoever is told of its end finds it in the record.
        record::note(&self, &result).await;
        self.finished = true;
        self.emit("call.finished", self.elapsed(), Some(result.status), result.error.as_ref());
        result
    }

    fn emit(&self, kind: &'static str, after: Duration, status: Option<Status>, error: Option<&CallError>) {
        let since = after + self.stopwatch.waited_for_people;
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let operation = self.operation.as_ref().map(|operation| &operation.id);
        self.engine.shared().events.emit(Event {
            at: UnixMillis(self.stopwatch.arrived_at.0.saturating_add(millis)),
            plugin: operation.map(|operation| operation.plugin.clone()),
            generation: self.generation,
            reason: error.map(|error| format!("{} {}", error.code, error.name)),
            call_id: Some(self.call_id.clone()),
            operation: operation.cloned(),
            status,
            duration_us: status.map(|_| micros(after)),
            ..happening(kind)
        });
    }
}

impl Drop for Trail {
    /// A caller that went away leaves no call without its end.
    fn drop(&mut self) {
        if self.finished || self.operation.is_none() {
            return;
        }
        self.emit("call.finished", self.elapsed(), Some(Status::Cancelled), None);
        let sent = self.sent.is_some();
        let outcome = if sent { Outcome::Unknown } else { Outcome::NotRun };
        let error = CallError::new(ErrorKind::Cancelled, "whoever called went away").outcome(outcome);
        let result = self.result_of(Err(error.into()));
        keys::answered_now(self, &result);
        record::note_now(self, &result);
    }
}

/// A result that says nothing yet.
pub(crate) fn ended(status: Status) -> CallResult {
    CallResult {
        status,
        data: None,
        summary: None,
        error: None,
        next_actions: Vec::new(),
        pending: None,
        page: None,
        meta: Meta::default(),
    }
}

/// When a call arrived: a UUIDv7 begins with the time it was made.
fn arrival(uuid: &Uuid) -> UnixMillis {
    let made = uuid.get_timestamp().map(|timestamp| timestamp.to_unix());
    made.map_or_else(unix_now, |(seconds, nanos)| UnixMillis(seconds * 1_000 + u64::from(nanos) / 1_000_000))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_the_place_of_its_declaration() {
        for (place, stage) in ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, place, "{stage:?}");
        }
    }
}
