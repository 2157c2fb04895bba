//! How a run ended, in a form people can read.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use plugd_protocol::control::{ExitReport, UnixMillis};

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
    /// Whether the kernel ended it because its memory was used up.
    pub oom: bool,
    /// What it had done wrong, where plugd ended it for that.
    pub fault: Option<String>,
    /// The last lines on its stderr.
    pub stderr_tail: Vec<String>,
    /// The first line on its stdout that was no message.
    pub first_stray: Option<String>,
}

impl ExitRecord {
    /// The end with the last line of stderr, for the message of a failed call.
    pub fn with_last_words(&self) -> String {
        match self.stderr_tail.last() {
            Some(line) => format!("{}; its last line on stderr: {line}", self.text()),
            None => self.text(),
        }
    }

    fn text(&self) -> String {
        match &self.fault {
            Some(fault) => format!("{} by plugd: {fault}", self.exit),
            None if self.oom => format!("{} for using up its memory", self.exit),
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

/// The exit as the operating system reported it.
pub(super) fn from_status(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}
