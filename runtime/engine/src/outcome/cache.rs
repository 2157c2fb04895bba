//! Answers that may be given again: read-only operations within their `cache_ttl`.
//!
//! Who asks first runs; whoever asks the same meanwhile waits for that answer. Where the first one
//! is cancelled or fails, the next one that waits runs: a cancel is never inherited.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plugd_contract::canonical;
use plugd_protocol::{CallId, OperationId, PluginName};
use plugd_supervisor::driver::Answered;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::registry::RegisteredOperation;

/// So many answers are kept; beyond it, what was asked for longest ago goes.
const ENTRIES_MAX: usize = 10_000;

/// So many bytes of them in all: questions and answers.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// An answer that would take more of the room than this is not kept.
const ENTRY_BYTES_MAX: usize = BYTES_MAX / 8;

/// Whoever waits for others waits for so many failures, then runs its own call.
const FAILURES_WAITED_FOR_MAX: u32 = 2;

/// The answers of one engine. The lock is held for one operation on the tables, never across an await.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    kept: HashMap<Arc<Question>, Entry>,
    /// By when each was used last.
    by_use: BTreeMap<u64, Arc<Question>>,
    flights: HashMap<Arc<Question>, Flight>,
    bytes: usize,
    /// Counts uses and flights.
    turn: u64,
}

#[derive(Debug)]
struct Entry {
    kept: Kept,
    ends: Instant,
    used: u64,
    bytes: usize,
}

/// A call that runs, for which equal ones wait.
#[derive(Debug)]
struct Flight {
    number: u64,
    landed: watch::Receiver<Option<Kept>>,
}

/// What makes two calls equal.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Question {
    operation: OperationId,
    /// Keys in order, without spaces.
    arguments: String,
    caller: Option<Box<str>>,
}

/// An answer that is given again.
#[derive(Debug, Clone)]
pub(crate) struct Kept(Arc<KeptAnswer>);

#[derive(Debug)]
struct KeptAnswer {
    data: Box<RawValue>,
    summary: Option<String>,
    next_actions: Option<Box<RawValue>>,
    call_id: CallId,
}

/// How an answer is come by.
#[derive(Debug)]
pub(crate) enum Look {
    /// By running: the operation is not one whose answers are kept.
    Off,
    /// It is here.
    Earlier(Kept),
    /// By running, while others may wait for it.
    Lead(Lead),
}

/// The one that runs; dropped without an answer, the next one that waits does.
#[derive(Debug)]
pub(crate) struct Lead {
    cache: Arc<AnswerCache>,
    question: Arc<Question>,
    flight: u64,
    ttl: Duration,
    landing: watch::Sender<Option<Kept>>,
}

impl AnswerCache {
    /// Looks for the answer to a call, and waits while an equal call runs.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the call that runs goes on.
    pub(crate) async fn look(
        self: &Arc<Self>,
        operation: &RegisteredOperation,
        arguments: &RawValue,
        caller: Option<&str>,
    ) -> Look {
        let Some(ttl) = time_to_live(operation) else { return Look::Off };
        let question = Question {
            operation: operation.id.clone(),
            arguments: canonical(arguments),
            caller: caller.map(Into::into),
        };
        self.take_turn(Arc::new(question), ttl).await
    }

    async fn take_turn(self: &Arc<Self>, question: Arc<Question>, ttl: Duration) -> Look {
        let mut failures = 0;
        loop {
            let mut landed = match self.with(|tables| tables.turn_of(&question, Instant::now())) {
                Turn::Earlier(kept) => return Look::Earlier(kept),
                Turn::Lead(flight, landing) => {
                    return Look::Lead(Lead { cache: Arc::clone(self), question, flight, ttl, landing });
                }
                Turn::Wait(_) if failures == FAILURES_WAITED_FOR_MAX => return Look::Off,
                Turn::Wait(landed) => landed,
            };
            // It has landed, or nobody flies it any more.
            let answered = landed.wait_for(Option::is_some).await.ok().and_then(|kept| kept.clone());
            match answered {
                Some(kept) => return Look::Earlier(kept),
                None => failures += 1,
            }
        }
    }

    /// Forgets all answers of a plugin; calls of it that run are waited for by nobody new.
    pub(crate) fn forget(&self, plugin: &PluginName) {
        self.with(|tables| {
            let outdated = tables.kept.keys().filter(|question| question.operation.plugin == *plugin);
            let outdated: Vec<Arc<Question>> = outdated.cloned().collect();
            outdated.iter().for_each(|question| tables.remove(question));
            tables.flights.retain(|question, _| question.operation.plugin != *plugin);
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Tables) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How long an answer of an operation may be given again.
pub(crate) fn time_to_live(operation: &RegisteredOperation) -> Option<Duration> {
    let declared = &operation.operation;
    let seconds = declared.cache_ttl.filter(|_| declared.effects.read_only == Some(true))?;
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

enum Turn {
    Earlier(Kept),
    Lead(u64, watch::Sender<Option<Kept>>),
    Wait(watch::Receiver<Option<Kept>>),
}

impl Tables {
    fn turn_of(&mut self, question: &Arc<Question>, now: Instant) -> Turn {
        self.turn += 1;
        let turn = self.turn;
        if let Some(entry) = self.kept.get_mut(question) {
            if entry.ends > now {
                self.by_use.remove(&entry.used);
                self.by_use.insert(turn, Arc::clone(question));
                entry.used = turn;
                return Turn::Earlier(entry.kept.clone());
            }
            self.remove(question);
        }
        if let Some(flight) = self.flights.get(question) {
            return Turn::Wait(flight.landed.clone());
        }
        let (landing, landed) = watch::channel(None);
        self.flights.insert(Arc::clone(question), Flight { number: turn, landed });
        Turn::Lead(turn, landing)
    }

    /// Ends a flight; false where it is not the current one, for what it was to bring is outdated.
    fn land(&mut self, question: &Arc<Question>, number: u64) -> bool {
        let current = self.flights.get(question).is_some_and(|flight| flight.number == number);
        if current {
            self.flights.remove(question);
        }
        current
    }

    fn keep(&mut self, question: &Arc<Question>, kept: Kept, ends: Instant) {
        let bytes = question.bytes() + kept.bytes();
        if bytes > ENTRY_BYTES_MAX {
            return;
        }
        self.remove(question);
        self.turn += 1;
        self.by_use.insert(self.turn, Arc::clone(question));
        self.kept.insert(Arc::clone(question), Entry { kept, ends, used: self.turn, bytes });
        self.bytes += bytes;
        while self.bytes > BYTES_MAX || self.kept.len() > ENTRIES_MAX {
            let Some((_, oldest)) = self.by_use.first_key_value() else { break };
            let oldest = Arc::clone(oldest);
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, question: &Arc<Question>) {
        if let Some(entry) = self.kept.remove(question) {
            self.by_use.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}

impl Question {
    fn bytes(&self) -> usize {
        size_of::<Question>() + self.arguments.len() + self.caller.as_ref().map_or(0, |caller| caller.len())
    }
}

impl Kept {
    /// The answer, as a run gave it.
    pub(crate) fn answered(&self) -> Answered {
        Answered {
            data: self.0.data.clone(),
            summary: self.0.summary.clone(),
            next_actions: self.0.next_actions.clone(),
            took: Duration::ZERO,
        }
    }

    /// The call that ran for it.
    pub(crate) fn call_id(&self) -> &CallId {
        &self.0.call_id
    }

    fn bytes(&self) -> usize {
        let KeptAnswer { data, summary, next_actions, .. } = &*self.0;
        let next_actions = next_actions.as_ref().map_or(0, |actions| actions.get().len());
        size_of::<Entry>() + data.get().len() + summary.as_ref().map_or(0, String::len) + next_actions
    }
}

impl Lead {
    /// Hands the answer to all that wait, and keeps it for those to come.
    pub(crate) fn keep(self, answered: &Answered, call_id: &CallId) {
        let kept = Kept(Arc::new(KeptAnswer {
            data: answered.data.clone(),
            summary: answered.summary.clone(),
            next_actions: answered.next_actions.clone(),
            call_id: call_id.clone(),
        }));
        self.cache.with(|tables| {
            if tables.land(&self.question, self.flight) {
                tables.keep(&self.question, kept.clone(), Instant::now() + self.ttl);
            }
        });
        self.landing.send_replace(Some(kept));
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.cache.with(|tables| tables.land(&self.question, self.flight));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(60);

    fn question(plugin: &str, arguments: &str, caller: Option<&str>) -> Arc<Question> {
        let operation = OperationId::parse(&format!("{plugin}.query")).expect("an operation");
        let arguments = RawValue::from_string(arguments.to_owned()).expect("JSON");
        Arc::new(Question { operation, arguments: canonical(&arguments), caller: caller.map(Into::into) })
    }

    fn answer(json: &str) -> Answered {
        let data = RawValue::from_string(json.to_owned()).expect("JSON");
        Answered { data, summary: None, next_actions: None, took: Duration::ZERO }
    }

    async fn lead(cache: &Arc<AnswerCache>, question: &Arc<Question>) -> Lead {
        match cache.take_turn(Arc::clone(question), TTL).await {
            Look::Lead(lead) => lead,
            other => panic!("it is answered: {other:?}"),
        }
    }

    async fn earlier(cache: &Arc<AnswerCache>, question: &Arc<Question>) -> String {
        match cache.take_turn(Arc::clone(question), TTL).await {
            Look::Earlier(kept) => kept.answered().data.get().to_owned(),
            other => panic!("it is not answered: {other:?}"),
        }
    }

    fn id() -> CallId {
        CallId::new("c1")
    }

    /// Row X12.
    #[tokio::test]
    async fn r_x12_the_same_question_of_the_same_caller_is_answered_again() {
        let cache = Arc::new(AnswerCache::default());
        let asked = question("shop", r#"{"a":1,"b":2.0}"#, None);
        lead(&cache, &asked).await.keep(&answer("7"), &id());
        assert_eq!(earlier(&cache, &question("shop", r#"{ "b": 2.0, "a": 1 }"#, None)).await, "7");
        for other in [
            question("shop", r#"{"a":1,"b":2}"#, None),
            question("shop", r#"{"a":1,"b":2.0}"#, Some("ci")),
            question("other", r#"{"a":1,"b":2.0}"#, None),
        ] {
            drop(lead(&cache, &other).await);
        }
    }

    #[tokio::test]
    async fn equal_calls_at_once_run_once_and_a_cancel_is_not_inherited() {
        let cache = Arc::new(AnswerCache::default());
        let asked = question("shop", "{}", None);
        let first = lead(&cache, &asked).await;
        let follow = || {
            let (cache, asked) = (Arc::clone(&cache), Arc::clone(&asked));
            tokio::spawn(async move { cache.take_turn(asked, TTL).await })
        };
        let followers = [follow(), follow()];
        tokio::task::yield_now().await;
        assert!(followers.iter().all(|follower| !follower.is_finished()));
        drop(first);
        // One of them takes over, the other one waits on.
        while !followers.iter().any(tokio::task::JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
        let (leads, waits): (Vec<_>, Vec<_>) =
            followers.into_iter().partition(|follower| follower.is_finished());
        let [leads, waits] = [leads, waits].map(|mut one| one.pop().expect("one each"));
        let Ok(Look::Lead(lead)) = leads.await else { panic!("it leads") };
        lead.keep(&answer("1"), &id());
        assert!(matches!(waits.await, Ok(Look::Earlier(_))));
    }

    #[tokio::test]
    async fn who_has_waited_for_several_failures_runs_alone() {
        let cache = Arc::new(AnswerCache::default());
        let asked = question("shop", "{}", None);
        let mut leader = lead(&cache, &asked).await;
        let (task_cache, task_asked) = (Arc::clone(&cache), Arc::clone(&asked));
        let waits = tokio::spawn(async move { task_cache.take_turn(task_asked, TTL).await });
        for _ in 0..FAILURES_WAITED_FOR_MAX {
            tokio::task::yield_now().await;
            // Somebody else takes over before the one that waits comes to it.
            let next = {
                drop(leader);
                cache.with(|tables| match tables.turn_of(&asked, Instant::now()) {
                    Turn::Lead(flight, landing) => (flight, landing),
                    Turn::Earlier(_) | Turn::Wait(_) => panic!("nobody leads"),
                })
            };
            leader = Lead {
                cache: Arc::clone(&cache),
                question: Arc::clone(&asked),
                flight: next.0,
                ttl: TTL,
                landing: next.1,
            };
        }
        assert!(matches!(waits.await, Ok(Look::Off)));
    }

    #[tokio::test]
    async fn what_is_outdated_is_not_given_again() {
        let cache = Arc::new(AnswerCache::default());
        let asked = question("shop", "{}", None);
        lead(&cache, &asked).await.keep(&answer("1"), &id());
        let other = question("other", "{}", None);
        lead(&cache, &other).await.keep(&answer("2"), &id());
        cache.forget(&asked.operation.plugin);
        let before = lead(&cache, &asked).await;
        cache.forget(&asked.operation.plugin);
        // Its answer is the one from before the change: nobody who asks after it gets that.
        let after = lead(&cache, &asked).await;
        before.keep(&answer("8"), &id());
        after.keep(&answer("9"), &id());
        assert_eq!(earlier(&cache, &asked).await, "9");
        assert_eq!(earlier(&cache, &other).await, "2");
    }

    #[tokio::test]
    async fn an_answer_ends_with_its_time() {
        let cache = Arc::new(AnswerCache::default());
        let asked = question("shop", "{}", None);
        cache.with(|tables| tables.keep(&asked, kept_of("1"), Instant::now()));
        drop(lead(&cache, &asked).await);
        assert_eq!(cache.with(|tables| (tables.bytes, tables.by_use.len())), (0, 0));
    }

    fn kept_of(json: &str) -> Kept {
        let Answered { data, summary, next_actions, .. } = answer(json);
        Kept(Arc::new(KeptAnswer { data, summary, next_actions, call_id: id() }))
    }

    #[test]
    fn the_room_is_bounded_in_entries_and_bytes() {
        let mut tables = Tables::default();
        let ends = Instant::now() + TTL;
        for number in 0..=ENTRIES_MAX {
            tables.keep(&question("shop", &number.to_string(), None), kept_of("1"), ends);
        }
        assert_eq!((tables.kept.len(), tables.by_use.len()), (ENTRIES_MAX, ENTRIES_MAX));
        assert!(!tables.kept.contains_key(&question("shop", "0", None)), "the oldest went");
        let large = format!("\"{}\"", "x".repeat(ENTRY_BYTES_MAX - 2_000));
        for number in 0..20 {
            tables.keep(&question("large", &number.to_string(), None), kept_of(&large), ends);
            assert!(tables.bytes <= BYTES_MAX);
        }
        assert!(tables.kept.contains_key(&question("large", "19", None)));
        let larger = format!("\"{}\"", "x".repeat(ENTRY_BYTES_MAX));
        tables.keep(&question("larger", "{}", None), kept_of(&larger), ends);
        assert!(!tables.kept.contains_key(&question("larger", "{}", None)));
    }
}
