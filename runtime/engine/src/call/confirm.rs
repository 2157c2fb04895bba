//! Whether a person agrees: what is destructive, or says so itself, runs only then.

use plugd_protocol::control::AnswerParams;
use plugd_protocol::error::ErrorKind;
use plugd_protocol::manifest::Confirm;
use plugd_protocol::plugin::Question;
use plugd_protocol::result::Pending;
use plugd_protocol::{CallError, Operation, Status};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Origin;
use super::tokens::WaitsFor;
use super::trail::{Stopped, Trail, Waits};
use crate::answers::{Questions, contradictory};
use crate::asks::{CONFIRM, Check, NotAnswered};
use crate::engine::Engine;
use crate::registry::RegisteredOperation;

/// An answer to this may be left out: then it is a no.
const YES_OR_NO: &str = r#"{"type":"boolean","default":false}"#;

/// Whether a person must agree to a script's own call.
pub(crate) fn is_due(operation: &Operation) -> bool {
    match operation.confirm {
        Confirm::Auto => operation.effects.destructive == Some(true),
        Confirm::Always => true,
        Confirm::Never => false,
    }
}

impl Engine {
    /// Sees to it that somebody agrees, where that is due; what a plugin calls was agreed to with
    /// the call it works for.
    ///
    /// # Errors
    /// 3003 where somebody says no; or the call stops for somebody to agree.
    pub(super) async fn confirm(
        &self,
        trail: &mut Trail,
        operation: &RegisteredOperation,
    ) -> Result<(), Stopped> {
        if !is_due(&operation.operation) || trail.request.confirmed {
            return Ok(());
        }
        match trail.request.origin {
            Origin::Plugin { .. } => return Ok(()),
            Origin::Caller => {}
        }
        let run = trail.run_as().map(RawValue::get);
        if run.is_some() && run == trail.agreed_to.as_deref() {
            return Ok(());
        }
        let shown = shown(trail, operation)?;
        let prompt = prompt(operation);
        match self.ask_whether(trail, &prompt, shown.clone()).await {
            Ok(true) => {
                trail.agreed_to = trail.run_as().map(|run| run.get().to_owned());
                Ok(())
            }
            Ok(false) | Err(NotAnswered::Declined) => Err(refused(&operation.id.to_string()).into()),
            Err(NotAnswered::Wrong(error)) => Err(error.into()),
            Err(NotAnswered::Nobody | NotAnswered::Expired) => {
                Err(self.stop_for_confirmation(trail, operation, prompt, shown).await)
            }
        }
    }

    async fn ask_whether(
        &self,
        trail: &mut Trail,
        prompt: &str,
        arguments: Value,
    ) -> Result<bool, NotAnswered> {
        let questions = vec![question(prompt.to_owned())];
        let check = Check::Each(Questions::compile(&questions).expect("a boolean's schema compiles"));
        let answers = self.ask_caller(trail, questions, check, Some(arguments)).await?;
        Ok(answers.get(CONFIRM).and_then(Value::as_bool).unwrap_or(false))
    }

    /// Keeps the call until somebody agrees.
    async fn stop_for_confirmation(
        &self,
        trail: &Trail,
        operation: &RegisteredOperation,
        prompt: String,
        shown: Value,
    ) -> Stopped {
        let why = match operation.operation.confirm {
            Confirm::Always => "is confirmed every time",
            Confirm::Auto | Confirm::Never => "may destroy something",
        };
        let message = format!("{} {why}: somebody must agree before it runs", operation.id);
        let error = CallError::new(ErrorKind::NeedsConfirmation, message);
        let known = trail.run_as().expect("what is to be agreed to is known");
        let (token, expires) = self.keep(trail, operation, known, WaitsFor::Confirmation).await.unzip();
        let error = match &token {
            Some(token) => error.hint(format!("agree with `plugd answer {token} --yes`, or call with --yes")),
            None => error.hint("call again with --yes to agree"),
        };
        let pending = Pending { token, expires, prompt, questions: Vec::new(), arguments: Some(shown) };
        Stopped::Waits(Box::new(Waits { status: Status::NeedsConfirmation, error, pending }))
    }
}

/// The error for a call that somebody does not want.
pub(super) fn refused(operation: &str) -> CallError {
    CallError::new(ErrorKind::Declined, format!("whoever was asked said no: {operation} was not run"))
}

/// What an answer to a confirmation says.
///
/// # Errors
/// 2001 where it is neither yes nor no, or both, or says something else besides.
pub(super) fn answered(params: &AnswerParams) -> Result<bool, CallError> {
    let questions = [question(String::new())];
    let questions = Questions::compile(&questions).expect("a boolean's schema compiles");
    if params.answer.is_none() && params.answers.is_empty() {
        if params.confirm {
            return Ok(true);
        }
        // Whoever says nothing has said neither.
        let error =
            CallError::new(ErrorKind::InvalidArguments, "expected yes or no: whether the call may run");
        return Err(error.hint("agree with --yes, refuse with --no"));
    }
    // Beside a yes, too: who names a value means another call than the one that waits.
    let answers = questions.check(params.answers.clone(), params.answer.clone())?;
    match answers.get(CONFIRM).and_then(Value::as_bool).unwrap_or(false) {
        false if params.confirm => Err(contradictory()),
        said => Ok(said),
    }
}

fn question(prompt: String) -> Question {
    let schema = RawValue::from_string(YES_OR_NO.to_owned()).expect("it is JSON");
    Question { name: CONFIRM.to_owned(), schema: Some(schema), prompt, sensitive: false }
}

/// The final arguments as whoever is asked sees them.
fn shown(trail: &Trail, operation: &RegisteredOperation) -> Result<Value, CallError> {
    let Some(run) = trail.run_as() else { return Ok(Value::Null) };
    let masked = operation.contract()?.mask(run);
    serde_json::from_str(&masked).map_err(|error| CallError::new(ErrorKind::Internal, error.to_string()))
}

fn prompt(operation: &RegisteredOperation) -> String {
    let id = &operation.id;
    match operation.operation.effects.destructive {
        Some(true) => format!("Run {id}? It may destroy something."),
        Some(false) | None => format!("Run {id}?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_destructive_or_says_so_is_agreed_to() {
        let due = |more: &str| {
            let json = format!(r#"{{"name":"a","input_schema":{{}}{more}}}"#);
            is_due(&serde_json::from_str(&json).unwrap())
        };
        assert!(!due(""));
        assert!(!due(r#","effects":{"read_only":false}"#), "undeclared effects run");
        assert!(due(r#","effects":{"destructive":true}"#));
        assert!(!due(r#","effects":{"destructive":true},"confirm":"never""#));
        assert!(due(r#","confirm":"always""#));
        assert!(due(r#","effects":{"read_only":true},"confirm":"always""#));
    }
}
