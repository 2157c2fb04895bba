//! What a plugin tells its host beside its answers: lines for the log, and how far it is.

use std::fmt;

use plugd_protocol::CallId;
use plugd_protocol::plugin::{LogLevel, LogParams, ProgressParams, method};

use crate::wire::Wire;

/// A longer text is cut, in bytes: the host keeps less of it, and a message has a limit of its own.
const TEXT_MAX: usize = 64 * 1024;

/// As much is told of a fault, in bytes.
const FAULT_MAX: usize = 32 * 1024;

/// The host keeps about as much of one line of the log, in bytes: a longer stack takes several.
const LOG_ENTRY_MAX: usize = 8000;

/// What something that is told belongs to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Origin<'a> {
    pub(crate) call_id: Option<&'a CallId>,
    pub(crate) trace_id: Option<&'a str>,
}

pub(crate) fn log(wire: &Wire, origin: Origin<'_>, level: LogLevel, message: &dyn fmt::Display) {
    if !wire.wants(level) {
        return;
    }
    let message = message.to_string();
    let params = LogParams {
        level,
        message: clipped(&message, TEXT_MAX).into(),
        call_id: origin.call_id.cloned(),
        trace_id: origin.trace_id.map(Into::into),
    };
    // Text and ids: there is nothing in it that JSON could refuse.
    drop(wire.notify(method::LOG, &params));
}

/// Tells the log of a fault, in parts that the host shows whole.
pub(crate) fn tell_fault(wire: &Wire, origin: Origin<'_>, text: &str) {
    let mut rest = clipped(text, FAULT_MAX).trim_end();
    while !rest.is_empty() {
        let most = clipped(rest, LOG_ENTRY_MAX);
        let lines = if most.len() == rest.len() { None } else { most.rfind('\n') };
        let (entry, more) = rest.split_at(lines.unwrap_or(most.len()));
        log(wire, origin, LogLevel::Error, &entry);
        rest = more.trim_start_matches('\n');
    }
}

pub(crate) fn progress(wire: &Wire, origin: Origin<'_>, done: f64, total: Option<f64>, message: &str) {
    // What is no number in JSON is not worth a failure.
    if !done.is_finite() || total.is_some_and(|total| !total.is_finite()) {
        return;
    }
    let params = ProgressParams {
        call_id: origin.call_id.cloned(),
        done,
        total,
        message: (!message.is_empty()).then(|| clipped(message, TEXT_MAX).into()),
    };
    // Numbers and text: there is nothing in it that JSON could refuse.
    drop(wire.notify(method::PROGRESS, &params));
}

/// The trace of a W3C `traceparent`: its second field.
pub(crate) fn trace_id(traceparent: &str) -> Option<&str> {
    let id = traceparent.split('-').nth(1)?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

fn clipped(text: &str, most: usize) -> &str {
    let whole_characters = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=most.min(text.len())).rev().find(whole_characters);
    &text[..end.unwrap_or_default()]
}

/// The levels of a log as methods of what has a `log(level, message)`.
macro_rules! log_levels {
    () => {
        /// Logs for finding faults.
        pub fn debug(&self, message: impl std::fmt::Display) {
            self.log(plugd_protocol::plugin::LogLevel::Debug, message);
        }

        /// Logs something normal.
        pub fn info(&self, message: impl std::fmt::Display) {
            self.log(plugd_protocol::plugin::LogLevel::Info, message);
        }

        /// Logs something odd that was handled.
        pub fn warn(&self, message: impl std::fmt::Display) {
            self.log(plugd_protocol::plugin::LogLevel::Warn, message);
        }

        /// Logs a failure.
        pub fn error(&self, message: impl std::fmt::Display) {
            self.log(plugd_protocol::plugin::LogLevel::Error, message);
        }
    };
}
pub(crate) use log_levels;
