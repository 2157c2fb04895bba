//! From the arguments as given to those that run: coerced, completed, checked; what is missing is asked for.

use std::sync::Arc;
use std::time::Instant;

use plugd_contract::{Contract, KEY_TWICE, Prepared};
use plugd_protocol::CallError;
use plugd_protocol::Status;
use plugd_protocol::control::Stage;
use plugd_protocol::error::{ArgumentProblem, ErrorKind};
use plugd_protocol::plugin::Question;
use plugd_protocol::result::Pending;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::tokens::WaitsFor;
use super::trail::{Stopped, Trail, Waits};
use super::{Known, Origin};
use crate::asks::{Asking, Check, NotAnswered};
use crate::engine::Engine;
use crate::registry::RegisteredOperation;

/// Whoever is asked is asked so often, five values at a time; then the call stops and waits.
const ROUNDS_MAX: usize = 20;

/// Values that are missing, and what is known.
struct Missing {
    known: Box<RawValue>,
    questions: Vec<Question>,
    prompt: String,
}

impl Engine {
    /// Makes the arguments ready to run, and gives the operation as it is declared by then.
    ///
    /// # Errors
    /// 2001 with every problem; or the call stops for a person to give what is missing.
    pub(super) async fn complete_arguments(
        &self,
        trail: &mut Trail,
        operation: Arc<RegisteredOperation>,
    ) -> Result<Arc<RegisteredOperation>, Stopped> {
        trail.arguments.given = Some(object(trail.arguments.given.take()));
        let (operation, mut prepared) = self.prepared(trail, operation).await?;
        let mut rounds_left = ROUNDS_MAX;
        loop {
            let missing = match prepared {
                Prepared::Fits => {
                    trail.arguments.run = trail.arguments.given.take();
                    return Ok(operation);
                }
                Prepared::Ready { arguments, notes } => {
                    trail.arguments.run = Some(arguments);
                    trail.notes.extend(notes);
                    return Ok(operation);
                }
                Prepared::Wrong(problems) => return Err(invalid(&operation, problems).into()),
                Prepared::Missing { known, notes, questions, prompt } => {
                    trail.notes.extend(notes);
                    Missing { known, questions, prompt }
                }
            };
            if let Origin::Plugin { .. } = trail.request.origin {
                return Err(invalid(&operation, problems(operation.contract()?, &missing.known)).into());
            }
            let answers = match rounds_left.checked_sub(1) {
                Some(left) => {
                    rounds_left = left;
                    self.ask_for(trail, &operation, &missing).await?
                }
                None => None,
            };
            match answers {
                Some(answers) => prepared = operation.contract()?.answer(&missing.known, &answers),
                None => return Err(self.stop_for_input(trail, &operation, missing).await?),
            }
        }
    }

    /// What becomes of the arguments.
    ///
    /// A manifest that is only remembered refuses nothing: before it would, its plugin is asked.
    async fn prepared(
        &self,
        trail: &mut Trail,
        operation: Arc<RegisteredOperation>,
    ) -> Result<(Arc<RegisteredOperation>, Prepared), CallError> {
        let prepared = trail.prepared(operation.contract()?);
        let refuses = matches!(prepared, Prepared::Wrong(_) | Prepared::Missing { .. });
        if !refuses || !self.described_anew(&operation.id.plugin, trail.request.hard_deadline).await {
            return Ok((operation, prepared));
        }
        let snapshot = self.shared().registry.snapshot();
        let identity = operation.id.to_string();
        let operation = snapshot.operation(&identity).ok_or_else(|| snapshot.unknown(&identity))?;
        trail.operation = Some(Arc::clone(operation));
        let prepared = trail.prepared(operation.contract()?);
        Ok((Arc::clone(operation), prepared))
    }

    /// Asks whoever called, all at once; none where there is nobody to ask.
    async fn ask_for(
        &self,
        trail: &mut Trail,
        operation: &Arc<RegisteredOperation>,
        missing: &Missing,
    ) -> Result<Option<Map<String, Value>>, CallError> {
        let check = Check::Arguments { operation: Arc::clone(operation), known: missing.known.clone() };
        match self.ask_caller(trail, missing.questions.clone(), check, None).await {
            Ok(answers) => Ok(Some(answers)),
            Err(NotAnswered::Nobody | NotAnswered::Expired) => Ok(None),
            Err(NotAnswered::Wrong(error)) => Err(error),
            Err(NotAnswered::Declined) => {
                let message = format!("whoever was asked will not give what {} needs", operation.id);
                Err(CallError::new(ErrorKind::Declined, message))
            }
        }
    }

    /// Asks whoever called; what that takes is charged to nobody.
    pub(super) async fn ask_caller(
        &self,
        trail: &mut Trail,
        questions: Vec<Question>,
        check: Check,
        arguments: Option<Value>,
    ) -> Result<Map<String, Value>, NotAnswered> {
        let Some((operation, Some(asker))) = self.shared().calls.behind(&trail.call_id) else {
            return Err(NotAnswered::Nobody);
        };
        if !asker.can_ask() {
            return Err(NotAnswered::Nobody);
        }
        let wait = self.token_ttl(&operation.plugin);
        trail.note(Stage::Asked);
        let call_id = trail.call_id.clone();
        let asked = Instant::now();
        let answered =
            self.ask(Asking { call_id, operation, asker, questions, check, arguments, wait }).await;
        trail.waited_for_people(asked.elapsed());
        answered
    }

    /// Keeps the call until somebody gives what is missing.
    async fn stop_for_input(
        &self,
        trail: &Trail,
        operation: &RegisteredOperation,
        missing: Missing,
    ) -> Result<Stopped, CallError> {
        let Missing { known, questions, prompt } = missing;
        let mut error = CallError::new(ErrorKind::NeedsInput, prompt.clone());
        error.details = problems(operation.contract()?, &known);
        let names = questions.iter().map(|question| format!("{}=…", question.name));
        let names = names.collect::<Vec<_>>().join(" ");
        let (token, expires) = self.keep(trail, operation, &known, WaitsFor::Input).await.unzip();
        let error = match &token {
            Some(token) => {
                error.hint(format!("give them with `plugd answer {token} {names}`, or call again with them"))
            }
            None => error.hint("call again with them"),
        };
        let pending = Pending { token, expires, prompt, questions, arguments: None };
        Ok(Stopped::Waits(Box::new(Waits { status: Status::NeedsInput, error, pending })))
    }
}

impl Trail {
    /// What becomes of the arguments by this contract.
    fn prepared(&self, contract: &Contract) -> Prepared {
        match (&self.request.known, &self.arguments.given) {
            (Some(Known { arguments, answers, .. }), _) => contract.answer(arguments, answers),
            (None, Some(given)) => contract.prepare(given),
            (None, None) => contract.prepare(&object(None)),
        }
    }
}

/// The arguments as given; none is an empty object.
pub(super) fn object(given: Option<Box<RawValue>>) -> Box<RawValue> {
    given
        .filter(|given| given.get() != "null")
        .unwrap_or_else(|| RawValue::from_string("{}".to_owned()).expect("an empty object is JSON"))
}

/// What is wrong with arguments that lack values.
pub(crate) fn problems(contract: &Contract, known: &RawValue) -> Vec<ArgumentProblem> {
    contract.check(known).err().unwrap_or_default()
}

/// The error for arguments that do not fit.
pub(crate) fn invalid(operation: &RegisteredOperation, problems: Vec<ArgumentProblem>) -> CallError {
    if let Some(twice) = problems.iter().find(|problem| problem.problem == KEY_TWICE) {
        let key = twice.got.as_deref().unwrap_or("a key");
        let message = format!("the arguments of {} have {key} twice: give it once", operation.id);
        return CallError::new(ErrorKind::UnreadableArguments, message);
    }
    let told: Vec<String> = problems.iter().take(3).map(in_words).collect();
    let more = problems.len().saturating_sub(3);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let message = format!("the arguments do not fit {}: {}{more}", operation.id, told.join("; "));
    let mut error = CallError::new(ErrorKind::InvalidArguments, message);
    error.details = problems;
    error
}

/// One problem with arguments or configuration, as a sentence has it.
pub(crate) fn in_words(problem: &ArgumentProblem) -> String {
    let place = if problem.path.is_empty() { "arguments" } else { problem.path.trim_start_matches('/') };
    let got = problem.got.as_deref().map(|got| format!(", got {got}")).unwrap_or_default();
    let near =
        problem.suggestion.as_deref().map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
    let missing = if problem.problem == "required" { "missing, " } else { "" };
    format!("{place}: {missing}expected {}{got}{near}", problem.expected)
}
