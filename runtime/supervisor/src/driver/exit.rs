//! How a run ended, in a form people can read.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use plugd_protocol::control::{ExitReport, UnixMillis};

use super::telling::telling;
use crate::machine::{Exit, Generation};

/// How a run ended, and its last words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitRecord {
    /// Which run.
    pub generation: Generation,
    /// How its process ended.
    pub exit: Exit,
    /// When.
    pub at: UnixMillis,
    /// Whether it ended a run that served or was to, and nobody asked for that.
    pub unasked: bool,
    /// Whether plugd ended it, for no fault of its own: that is no failure.
    pub by_plugd: bool,
    /// Whether the kernel ended it because its memory was used up.
    pub oom: bool,
    /// What it had done wrong, where plugd ended it for that.
    pub fault: Option<String>,
    /// The last lines on its stderr.
    pub stderr_tail: Vec<String>,
    /// Those of them from before any call: what every caller may read.
    pub before_calls: Vec<String>,
    /// The first line on its stdout that was no message.
    pub first_stray: Option<String>,
    /// Whether nothing that it said is in the log.
    pub silent: bool,
}

/// What is added to the reason of a plugin whose last run said nothing, as a sentence goes on.
pub const SAID_NOTHING: &str = "; it said nothing on stdout or stderr";

impl ExitRecord {
    /// The end with what stderr says of it, for the message of a failed call.
    pub fn with_last_words(&self) -> String {
        format!("{}{}", self.text(), self.last_words())
    }

    /// What stderr says of the end, as a sentence goes on; empty where only stdout has something.
    pub fn last_words(&self) -> String {
        self.or_nothing(said(&self.stderr_tail))
    }

    /// The same of what every caller may read.
    pub(super) fn words_for_callers(&self) -> String {
        self.or_nothing(said(&self.before_calls))
    }

    fn or_nothing(&self, words: String) -> String {
        if self.silent { SAID_NOTHING.to_owned() } else { words }
    }

    fn text(&self) -> String {
        match &self.fault {
            Some(fault) => format!("{} by plugd: {fault}", self.exit),
            None if self.oom => format!("{} for using up its memory", self.exit),
            None if self.by_plugd && matches!(self.exit, Exit::Signal(_)) => {
                format!("{} by plugd", self.exit)
            }
            None => self.exit.to_string(),
        }
    }

    /// The record as the control API gives it.
    pub fn report(&self) -> ExitReport {
        let (code, signal) = match self.exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
        };
        ExitReport {
            generation: self.generation.0,
            text: self.text(),
            code,
            signal,
            at: self.at,
            unasked: self.unasked,
            oom: self.oom,
            stderr_tail: self.stderr_tail.clone(),
        }
    }
}

fn said(lines: &[String]) -> String {
    telling(lines).map(|line| format!("; it said on stderr: {line}")).unwrap_or_default()
}

/// The exit as the operating system reported it.
pub(super) fn from_status(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}
