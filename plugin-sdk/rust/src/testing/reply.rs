//! How calls of a test went.

use plugd_protocol::plugin::LogLevel;
use serde_json::Value;

use crate::error::Error;

/// How a call went.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TestReply {
    /// Its data, or the plugin's failure.
    pub result: Option<Result<Value, Error>>,
    /// Its one line.
    pub summary: Option<String>,
    /// What it offers to do next.
    pub next_actions: Vec<Value>,
    /// What was logged under its id.
    pub logs: Vec<(LogLevel, String)>,
    /// How far it said it was.
    pub progress: Vec<Progress>,
    /// Pieces sent ahead.
    pub partials: Vec<Value>,
}

/// How far a call said it was.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// How much was done.
    pub done: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// What was being done.
    pub message: Option<String>,
}

impl TestReply {
    /// The data of a call that went well.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn data(&self) -> Value {
        match &self.result {
            Some(Ok(data)) => data.clone(),
            other => panic!("expected data, got {other:?}{}", self.errors()),
        }
    }

    /// What was logged of failures, such as where it panicked.
    fn errors(&self) -> String {
        let errors = self.logs.iter().filter(|(level, _)| *level == LogLevel::Error);
        errors.map(|(_, line)| format!("\n{line}")).collect()
    }

    /// The failure of a call that did not go well.
    ///
    /// # Panics
    /// When it did.
    #[track_caller]
    pub fn error(&self) -> Error {
        match &self.result {
            Some(Err(error)) => error.clone(),
            other => panic!("expected a failure, got {other:?}"),
        }
    }
}
