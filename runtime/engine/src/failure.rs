//! From what the supervisor reports of a call to the error its caller gets.

use std::time::Duration;

use plugd_protocol::control::PluginState;
use plugd_protocol::error::{ErrorClass, ErrorData, ErrorKind, rpc_code};
use plugd_protocol::{CallError, Outcome, PluginName, RpcError};
use plugd_supervisor::driver::{Heard, NotAdmitted, PluginView, RunFailure, SAID_NOTHING, Sandbox};
use plugd_supervisor::machine::StopReason;

/// Nothing is added to a hint with more characters: it explains enough.
const HINT_SHORT_CHARS: usize = 300;

/// Why a plugin is disabled with which nothing is wrong.
const SWITCHED_OFF: [&str; 2] = ["disabled by an operator", "disabled in plugd.toml"];

/// An error about a plugin, whose name stands in its hint.
fn about(plugin: &PluginName, kind: ErrorKind, message: impl Into<String>) -> CallError {
    CallError::new(kind, message).about(plugin)
}

/// The error for a call that no run took.
pub(crate) fn not_admitted(plugin: &PluginName, failure: NotAdmitted) -> CallError {
    let because = |reason: Option<String>| reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    match failure {
        NotAdmitted::Overloaded { waiting } => about(
            plugin,
            ErrorKind::Overloaded,
            format!("{plugin} is busy and {waiting} calls wait for it already"),
        ),
        NotAdmitted::QueueTimedOut => {
            about(plugin, ErrorKind::QueueTimedOut, format!("no lane of {plugin} came free in time"))
        }
        NotAdmitted::StartTimedOut { state, reason } => {
            let message =
                format!("{plugin} was still {} when the time was over{}", word(state), because(reason));
            about(plugin, ErrorKind::StartTimedOut, message)
        }
        NotAdmitted::Unavailable { reason } => {
            let message = format!("{plugin} keeps failing to start{}", because(reason));
            where_silent(plugin, about(plugin, ErrorKind::Unavailable, message))
        }
        NotAdmitted::Shut { state, reason } => shut(plugin, state, reason),
        NotAdmitted::Gone => about(plugin, ErrorKind::ShuttingDown, "plugd is shutting down"),
    }
}

/// Why nothing can be called in a state; `None` for one that a call can wait in.
pub(crate) fn down(state: PluginState) -> Option<ErrorKind> {
    match state {
        PluginState::Blocked => Some(ErrorKind::Blocked),
        PluginState::Disabled => Some(ErrorKind::Disabled),
        PluginState::Failed => Some(ErrorKind::Failed),
        PluginState::Stopped => Some(ErrorKind::Stopped),
        PluginState::Registered
        | PluginState::Starting
        | PluginState::Ready
        | PluginState::Busy
        | PluginState::Idle
        | PluginState::Backoff
        | PluginState::Stopping => None,
    }
}

fn shut(plugin: &PluginName, state: PluginState, reason: Option<String>) -> CallError {
    let kind = down(state).unwrap_or(ErrorKind::ShuttingDown);
    let error = about(plugin, kind, format!("{plugin} {}", is(state, reason.as_deref())));
    match kind {
        // By whomever: an operator's word goes before that of the file.
        ErrorKind::Disabled if reason.as_deref().is_some_and(|reason| SWITCHED_OFF.contains(&reason)) => {
            error.hint(format!("`plugd enable {plugin}` lets it be used again"))
        }
        _ => error,
    }
}

/// The error of a call whose plugin was removed meanwhile: waiting does not bring that back.
pub(crate) fn removed_meanwhile(plugin: &PluginName, error: CallError) -> CallError {
    let down = [ErrorKind::ShuttingDown, ErrorKind::Stopped, ErrorKind::Disabled];
    if !down.iter().any(|kind| kind.code() == error.code) {
        return error;
    }
    match error.outcome {
        Outcome::NotRun => about(
            plugin,
            ErrorKind::UnknownPlugin,
            format!("{plugin} was removed while the call waited for it"),
        ),
        Outcome::Unknown | Outcome::Completed => {
            about(plugin, ErrorKind::Stopped, format!("{plugin} was removed during the call"))
                .outcome(error.outcome)
                .hint(ErrorKind::UnknownPlugin.hint())
        }
    }
}

/// The error for a plugin that was taken up anew and is not usable now.
pub(crate) fn not_up(view: &PluginView) -> Option<CallError> {
    let state = view.view.state;
    match state {
        PluginState::Backoff | PluginState::Disabled | PluginState::Failed => {
            let reason = view.reason.as_deref().unwrap_or("it says not why");
            let message = format!("{} was taken up anew and is {}: {reason}", view.name, word(state));
            let kind = match state {
                PluginState::Disabled => ErrorKind::Disabled,
                PluginState::Failed => ErrorKind::Failed,
                _ => ErrorKind::Unavailable,
            };
            Some(where_silent(&view.name, about(&view.name, kind, message)))
        }
        _ => None,
    }
}

/// A state with its reason, as a sentence goes on after the plugin's name.
pub(crate) fn is(state: PluginState, reason: Option<&str>) -> String {
    let word = word(state);
    match reason {
        // Such as: is stopped by an operator.
        Some(reason) if reason.starts_with(word) => format!("is {reason}"),
        Some(reason) => format!("is {word}: {reason}"),
        None => format!("is {word}"),
    }
}

/// The word for a state.
pub(crate) fn word(state: PluginState) -> &'static str {
    match state {
        PluginState::Registered => "registered",
        PluginState::Starting => "starting",
        PluginState::Ready => "ready",
        PluginState::Busy => "busy",
        PluginState::Idle => "idle",
        PluginState::Backoff => "backoff",
        PluginState::Blocked => "blocked",
        PluginState::Disabled => "disabled",
        PluginState::Failed => "failed",
        PluginState::Stopping => "stopping",
        PluginState::Stopped => "stopped",
    }
}

/// The error for a call that a run took; `None` where it was not delivered after all.
pub(crate) fn run_failure(plugin: &PluginName, sandbox: Sandbox, failure: RunFailure) -> Option<CallError> {
    let error = match failure {
        RunFailure::NotDelivered => return None,
        RunFailure::Plugin(error) => confined(plugin, sandbox, plugin_error(plugin, error)),
        RunFailure::MissingData => {
            about(plugin, ErrorKind::MissingData, format!("the answer of {plugin} has no \"data\""))
                .outcome(Outcome::Completed)
        }
        RunFailure::FrameTooLarge { limit } => {
            let message = format!("frame too large: {plugin} wrote a line above the limit of {limit} bytes");
            about(plugin, ErrorKind::FrameTooLarge, message).outcome(Outcome::Unknown)
        }
        RunFailure::ArgumentsTooLarge { limit } => {
            let message = format!("the arguments are above the frame limit of {limit} bytes");
            about(plugin, ErrorKind::ArgumentsTooLarge, message)
        }
        RunFailure::Malformed { why } => {
            let message = format!("{plugin} answered with something that is no response: {why}");
            about(plugin, ErrorKind::ProtocolViolation, message).outcome(Outcome::Unknown)
        }
        RunFailure::TimedOut { after, heard } => timed_out(plugin, after, heard).outcome(Outcome::Unknown),
        RunFailure::Stalled { after } => {
            let message = format!("{plugin} made no progress for {}", seconds(after));
            about(plugin, ErrorKind::TimedOut, message)
                .outcome(Outcome::Unknown)
                .hint("it must report progress more often, or stall_timeout be longer")
        }
        RunFailure::Died { exit, fault, stopping } => match (stopping, fault) {
            (Some(reason), _) => stopped_meanwhile(plugin, reason).outcome(Outcome::Unknown),
            (None, Some(fault)) => {
                about(plugin, ErrorKind::ProtocolViolation, format!("{plugin} was ended: {fault}"))
                    .outcome(Outcome::Unknown)
            }
            (None, None) => {
                let message = format!("{plugin} ended during the call: {}", exit.with_last_words());
                let error = about(plugin, ErrorKind::PluginDied, message).outcome(Outcome::Unknown);
                confined(plugin, sandbox, where_silent(plugin, error))
            }
        },
    };
    Some(error)
}

/// The error with another hint where the plugin said nothing: its log has nothing either.
fn where_silent(plugin: &PluginName, error: CallError) -> CallError {
    if !error.message.ends_with(SAID_NOTHING) {
        return error;
    }
    // A caller is told no path; the doctor names it.
    error.hint(format!("`plugd check PATH` tries its program, which `plugd doctor {plugin}` names"))
}

/// A failure of the plugin's own, with what it was kept from in its hint where it reads as if that is why.
fn confined(plugin: &PluginName, sandbox: Sandbox, mut error: CallError) -> CallError {
    let may_be_why = match error.class() {
        ErrorClass::Plugin | ErrorClass::Process => sandbox.may_have_refused(&error.message),
        ErrorClass::Request
        | ErrorClass::Argument
        | ErrorClass::Interaction
        | ErrorClass::Permission
        | ErrorClass::Time
        | ErrorClass::Protocol
        | ErrorClass::Internal => false,
    };
    let said = error.hint.as_deref().unwrap_or_default();
    if may_be_why && said.chars().count() <= HINT_SHORT_CHARS {
        let why = format!("{plugin} runs in a read-only sandbox and cannot write files");
        let said = said.trim_end_matches(['.', ' ']);
        error.hint = Some(if said.is_empty() { why } else { format!("{said}; {why}") });
    }
    error
}

/// The error for a call that ran when its plugin was stopped.
fn stopped_meanwhile(plugin: &PluginName, reason: StopReason) -> CallError {
    let message = match reason {
        StopReason::Reload => {
            format!("{plugin} was reloaded, and the call did not end within drain_timeout")
        }
        StopReason::Lost => format!("{plugin} was stopped during the call: a plugin it requires is lost"),
        StopReason::Described
        | StopReason::Exit
        | StopReason::Idle
        | StopReason::Misbehaved
        | StopReason::Restart
        | StopReason::Stop => format!("{plugin} was stopped ({}) during the call", reason.as_str()),
    };
    let kind = match reason {
        StopReason::Exit => ErrorKind::ShuttingDown,
        StopReason::Reload => ErrorKind::Reloaded,
        StopReason::Stop => ErrorKind::Stopped,
        StopReason::Described
        | StopReason::Idle
        | StopReason::Lost
        | StopReason::Misbehaved
        | StopReason::Restart => return about(plugin, ErrorKind::PluginDied, message),
    };
    about(plugin, kind, message)
}

fn timed_out(plugin: &PluginName, after: Duration, heard: Heard) -> CallError {
    let message = format!("{plugin} did not answer within {}", seconds(after));
    let mut meanwhile = Vec::new();
    if heard.unmatched_answers > 0 {
        meanwhile.push(format!(
            "{} with an id that nothing waited for",
            counted(heard.unmatched_answers, "answer")
        ));
    }
    if heard.stray_lines > 0 {
        meanwhile.push(format!("{} on stdout that was no message", counted(heard.stray_lines, "line")));
    }
    if meanwhile.is_empty() {
        return about(plugin, ErrorKind::TimedOut, message);
    }
    about(plugin, ErrorKind::TimedOut, format!("{message}; meanwhile it wrote {}", meanwhile.join(" and ")))
        .hint(format!(
            "`plugd logs {plugin}` shows what it wrote; if that was the answer, the plugin must mend it"
        ))
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A plugin's own error, in the one shape for all; its words are as it wrote them, however many.
///
/// `outcome::redact` takes out what is not for callers, and clips the rest.
fn plugin_error(plugin: &PluginName, error: RpcError) -> CallError {
    let data = error.data.as_deref();
    let said: ErrorData = data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
    let kind = match error.code {
        rpc_code::METHOD_NOT_FOUND => ErrorKind::OperationNotImplemented,
        rpc_code::HANDLER_FAILED => ErrorKind::HandlerFailed,
        rpc_code::CANCELLED => ErrorKind::Cancelled,
        _ => ErrorKind::PluginError,
    };
    let message =
        if error.message.is_empty() { format!("{plugin} failed without a word") } else { error.message };
    let mut call_error = about(plugin, kind, "").outcome(Outcome::Completed);
    call_error.message = message;
    if kind == ErrorKind::PluginError {
        if let Some(name) = said.name.filter(|name| well_formed(name)) {
            call_error.name = name;
            // A failure with a name of its own explains itself: the log has no more than its message.
            call_error.hint.take_if(|_| call_error.name != kind.name());
        }
        call_error.retryable = said.retryable;
    }
    if let Some(hint) = said.hint {
        call_error.hint = Some(hint);
    }
    call_error.cause = said.cause;
    call_error
}

fn well_formed(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A duration as people write it: `1.5 s`, `250 ms`.
pub fn seconds(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1_000 {
        format!("{millis} ms")
    } else if millis.is_multiple_of(1_000) {
        format!("{} s", millis / 1_000)
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}
