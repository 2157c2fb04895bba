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
    /// The last lines on its stderr.
    pub stderr_tail: Vec<String>,
    /// The first line on its stdout that was no message.
    pub first_stray: Option<String>,
}

impl ExitRecord {
    /// The end in words.
    pub fn text(&self) -> String {
        describe(self.exit)
    }

    /// The end with the last line of stderr, for the message of a failed call.
    pub fn with_last_words(&self) -> String {
        match self.stderr_tail.last() {
            Some(line) => format!("{}; its last line on stderr: {line}", self.text()),
            None => self.text(),
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
            stderr_tail: self.stderr_tail.clone(),
        }
    }
}

/// An exit in words: `exit status 3`, `killed by signal 9 (SIGKILL)`.
pub(super) fn describe(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(signal) => match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
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

fn signal_name(signal: i32) -> Option<&'static str> {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    };
    Some(name)
}
