//! Questions to the person behind a call, and the answers.

use plugd_protocol::plugin;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use crate::context::Context;
use crate::error::Error;
use crate::{request, schema};

/// Under which name a single question goes.
pub(crate) const ONLY: &str = "answer";

/// One of several questions to ask at once, for [`Context::ask_many`].
///
/// ```
/// # use plugd_sdk::Question;
/// let questions = [
///     Question::new::<String>("user", "Who are you?"),
///     Question::new::<String>("password", "And your password?").secret(),
///     Question::new::<u8>("days", "For how many days?"),
/// ];
/// # assert_eq!(questions.len(), 3);
/// ```
#[derive(Debug, Clone)]
pub struct Question(plugin::Question);

impl Question {
    /// A question whose answer is a `T`: the host takes no other.
    ///
    /// The name is made of letters, digits, `_`, `-` and `.`; the answer comes back under it.
    pub fn new<T: JsonSchema>(name: impl Into<String>, prompt: impl Into<String>) -> Question {
        let schema = to_raw_value(&schema::of_answer::<T>()).ok();
        Question(plugin::Question { name: name.into(), schema, prompt: prompt.into(), sensitive: false })
    }

    /// Says that the answer is a secret: it is not shown while it is typed, and never logged.
    #[must_use]
    pub fn secret(mut self) -> Question {
        self.0.sensitive = true;
        self
    }

    pub(crate) fn into_wire(self) -> plugin::Question {
        self.0
    }
}

/// What somebody answered.
///
/// Not `Debug`, for there may be secrets among it.
pub struct Answers(Map<String, Value>);

impl Answers {
    pub(crate) fn new(answers: Map<String, Value>) -> Answers {
        Answers(answers)
    }

    /// The answer to the question of that name.
    ///
    /// # Errors
    /// When no such question was asked, or its answer is no `T`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let answer = self.0.get(name).cloned();
        let answer = answer.ok_or_else(|| Error::new("not_asked", format!("nobody was asked for {name}")))?;
        serde_json::from_value(answer).map_err(|_| {
            // Not in serde's words, which would quote the answer.
            Error::new("unexpected_reply", format!("the answer to {name} is not of the expected form"))
        })
    }
}

impl Context {
    /// Asks the person behind the call, and waits for the answer: text, a number, yes or no
    /// (a `bool`), or anything else with a JSON Schema.
    ///
    /// The call's clock stands still meanwhile, and [`deadline`](Context::deadline) moves.
    ///
    /// ```no_run
    /// # use plugd_sdk::{Context, Error};
    /// fn delete(_: (), cx: &Context) -> Result<&'static str, Error> {
    ///     if cx.ask::<bool>("Really delete all of it?")? { Ok("deleted") } else { Ok("kept") }
    /// }
    /// ```
    ///
    /// # Errors
    /// Named `nobody_to_ask` where a program calls that cannot be asked, `declined`, `expired`;
    /// `not_offered` where the host asks nobody; [`Error::cancelled`] when the call is cancelled.
    pub fn ask<T: DeserializeOwned + JsonSchema>(&self, prompt: &str) -> Result<T, Error> {
        self.ask_many([Question::new::<T>(ONLY, prompt)])?.get(ONLY)
    }

    /// As [`ask`](Context::ask), for a secret: it is not shown while it is typed, and never logged.
    ///
    /// # Errors
    /// As [`ask`](Context::ask).
    pub fn ask_secret(&self, prompt: &str) -> Result<String, Error> {
        self.ask_many([Question::new::<String>(ONLY, prompt).secret()])?.get(ONLY)
    }

    /// Asks several things at once, at most 16.
    ///
    /// # Errors
    /// As [`ask`](Context::ask).
    pub fn ask_many(&self, questions: impl IntoIterator<Item = Question>) -> Result<Answers, Error> {
        request::ask(self.call_id(), questions)?.wait(self)
    }
}
