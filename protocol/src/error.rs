//! Errors: numbered by class, worded for people, with a hint for repair.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::name::{CallId, OperationId, PluginName};

/// A message in an error is clipped to this many characters.
pub const MESSAGE_MAX_CHARS: usize = 2_000;

/// What stands for the plugin's name in the hints below.
const NAME: &str = "NAME";

/// What went wrong with a call; one shape for every plugin and every stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallError {
    /// The number: its thousands are the class.
    pub code: u16,
    /// The number's name, or the plugin's own name for its failure.
    pub name: String,
    /// What happened, for people.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Whether the plugin's code ran.
    pub outcome: Outcome,
    /// The inner call that failed, where a plugin used another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<Cause>>,
    /// Each problem with the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<ArgumentProblem>,
}

/// Whether the operation ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The plugin never received the call.
    NotRun,
    /// It received the call, and what it did cannot be known.
    Unknown,
    /// It answered.
    Completed,
}

/// The inner call behind a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What was called.
    pub operation: OperationId,
    /// The inner call's id.
    pub call_id: CallId,
    /// What went wrong there.
    pub error: CallError,
}

/// One thing wrong with the arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArgumentProblem {
    /// Where: a JSON Pointer (RFC 6901) into the arguments, empty for the whole.
    pub path: String,
    /// What kind of problem: the schema keyword, such as `type`, `required` or `enum`.
    pub problem: String,
    /// What would have been right.
    pub expected: String,
    /// What was given, clipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub got: Option<String>,
    /// The nearest thing that would have been right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// The error object of JSON-RPC 2.0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// What happened.
    #[serde(default)]
    pub message: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

/// What a plugin may say about its own failure, in an error's `data`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorData {
    /// The failure's name, in snake case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the caller can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Whether trying again may help.
    #[serde(default)]
    pub retryable: bool,
    /// The call behind it, as a failed `host/call` gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<Cause>>,
}

/// JSON-RPC's own codes and the few that plugd adds on the pipe.
pub mod rpc_code {
    /// The method is not known.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params are not of the method's form.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something failed inside.
    pub const INTERNAL: i64 = -32603;
    /// An operation failed, in its own words.
    pub const OPERATION_FAILED: i64 = 1;
    /// A handler panicked or raised what it did not mean to.
    pub const HANDLER_FAILED: i64 = 2;
    /// The call was cancelled (LSP's number for it).
    pub const CANCELLED: i64 = -32800;
    /// A `host/call` did not succeed; `data.cause` says why.
    pub const HOST_CALL_FAILED: i64 = 3;
    /// A `host/ask` brought no answer; `data.name` says why.
    pub const HOST_ASK_FAILED: i64 = 4;
}

/// The classes: the thousands of an error's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// 1xxx: the request.
    Request,
    /// 2xxx: the arguments.
    Argument,
    /// 3xxx: a person is needed.
    Interaction,
    /// 4xxx: the plugin's own failure.
    Plugin,
    /// 5xxx: time.
    Time,
    /// 6xxx: the plugin's process.
    Process,
    /// 7xxx: permission.
    Permission,
    /// 8xxx: the plugin broke the protocol.
    Protocol,
    /// 9xxx: plugd itself.
    Internal,
}

macro_rules! error_kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $name:literal, $class:ident, retryable: $retryable:literal, hint: $hint:literal;)+) => {
        /// Every error plugd itself gives a number; `docs/errors.md` is this table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl ErrorKind {
            /// All of them, by number.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$variant),+];

            /// The number.
            pub fn code(self) -> u16 {
                match self { $(ErrorKind::$variant => $code),+ }
            }

            /// The name.
            pub fn name(self) -> &'static str {
                match self { $(ErrorKind::$variant => $name),+ }
            }

            /// The class.
            pub fn class(self) -> ErrorClass {
                match self { $(ErrorKind::$variant => ErrorClass::$class),+ }
            }

            /// Whether the same call may succeed later.
            pub fn retryable(self) -> bool {
                match self { $(ErrorKind::$variant => $retryable),+ }
            }

            /// What to do about it, where nothing more exact is known.
            pub fn hint(self) -> &'static str {
                match self { $(ErrorKind::$variant => $hint),+ }
            }

            /// What it means, for the table in the docs.
            pub fn meaning(self) -> &'static str {
                match self { $(ErrorKind::$variant => concat!($($doc),+).trim_ascii()),+ }
            }
        }
    };
}

error_kinds! {
    /// The request is not of the expected form.
    MalformedRequest = 1001, "malformed_request", Request, retryable: false, hint: "see `plugd call --help` for the forms a call can take";
    /// No plugin of that name is configured.
    UnknownPlugin = 1002, "unknown_plugin", Request, retryable: false, hint: "`plugd list` shows the plugins there are";
    /// The plugin has no operation of that name.
    UnknownOperation = 1003, "unknown_operation", Request, retryable: false, hint: "`plugd list` shows the operations there are";
    /// Several plugins offer an operation of that bare name.
    AmbiguousOperation = 1004, "ambiguous_operation", Request, retryable: false, hint: "write it as plugin.operation";
    /// No call of that id is running.
    UnknownCall = 1005, "unknown_call", Request, retryable: false, hint: "`plugd status` shows the calls in flight";
    /// The configuration cannot be used.
    InvalidConfig = 1006, "invalid_config", Request, retryable: false, hint: "mend what the message names; what runs goes on as before";
    /// No question waits for an answer under that token.
    UnknownToken = 1007, "unknown_token", Request, retryable: false, hint: "a token is good for one answer, and only while its call waits";
    /// The same key was used for another call.
    KeyConflict = 1008, "key_conflict", Request, retryable: false, hint: "take a new key for a new call, or repeat the first one exactly";
    /// No result is kept under that reference.
    UnknownResult = 1009, "unknown_result", Request, retryable: false, hint: "results are kept for a while only; `plugd calls` shows which calls there were";
    /// No profile of that name is configured.
    UnknownCaller = 1010, "unknown_caller", Request, retryable: false, hint: "the profiles are the tables under [callers] in plugd.toml";
    /// The arguments do not fit the operation's schema.
    InvalidArguments = 2001, "invalid_arguments", Argument, retryable: false, hint: "correct the arguments named in details and call again";
    /// The arguments are no JSON that can be read.
    UnreadableArguments = 2002, "unreadable_arguments", Argument, retryable: false, hint: "send one JSON object";
    /// The arguments are larger than a frame may be.
    ArgumentsTooLarge = 2003, "arguments_too_large", Argument, retryable: false, hint: "send less, or raise frame_limit in plugd.toml";
    /// Values are missing that only a person can give.
    NeedsInput = 3001, "needs_input", Interaction, retryable: false, hint: "give them with `plugd answer TOKEN name=value`, or call again with them";
    /// A person must agree before it runs.
    NeedsConfirmation = 3002, "needs_confirmation", Interaction, retryable: false, hint: "agree with `plugd answer TOKEN --yes`, or call with --yes";
    /// The person who was asked said no.
    Declined = 3003, "declined", Interaction, retryable: false, hint: "nothing was run; call again only if somebody changed their mind";
    /// The plugin reported a failure of its own.
    PluginError = 4001, "plugin_error", Plugin, retryable: false, hint: "the message is the plugin's own; `plugd logs NAME` may say more";
    /// A handler in the plugin panicked or raised what it did not mean to.
    HandlerFailed = 4002, "handler_failed", Plugin, retryable: false, hint: "a fault in the plugin: `plugd logs NAME` has the stack";
    /// The call did not end within its deadline.
    TimedOut = 5001, "timed_out", Time, retryable: true, hint: "allow more time with --timeout, or ask for less";
    /// The call waited for a free lane of the plugin for too long.
    QueueTimedOut = 5002, "queue_timed_out", Time, retryable: true, hint: "the plugin is busy: try later, or raise its concurrency";
    /// The call was cancelled.
    Cancelled = 5003, "cancelled", Time, retryable: false, hint: "call again if it is still wanted";
    /// The call's deadline passed before the plugin was up.
    StartTimedOut = 5004, "start_timed_out", Time, retryable: true, hint: "`plugd status` says what the plugin waits for";
    /// The plugin's process ended during the call.
    PluginDied = 6001, "plugin_died", Process, retryable: true, hint: "`plugd logs NAME` has its last words; where it is restarted, call again";
    /// The plugin's queue is full.
    Overloaded = 6002, "overloaded", Process, retryable: true, hint: "send fewer calls at once, or try again later";
    /// An operator stopped the plugin.
    Stopped = 6003, "stopped", Process, retryable: false, hint: "`plugd start NAME` brings it back";
    /// Something the plugin requires is not there.
    Blocked = 6004, "blocked", Process, retryable: true, hint: "mend what it waits for; it starts by itself then";
    /// The plugin is disabled.
    Disabled = 6005, "disabled", Process, retryable: false, hint: "mend the reason given, then `plugd reload NAME`, or `plugd reload` where that was in plugd.toml";
    /// The plugin was given up.
    Failed = 6006, "failed", Process, retryable: false, hint: "mend the reason given, then `plugd start NAME`";
    /// The plugin kept failing to start for as long as the call could wait.
    Unavailable = 6007, "unavailable", Process, retryable: true, hint: "`plugd logs NAME` has its last words; mend what they say";
    /// plugd is shutting down.
    ShuttingDown = 6008, "shutting_down", Process, retryable: true, hint: "call again once the daemon is back";
    /// The plugin was replaced, and the call did not end within `drain_timeout`.
    Reloaded = 6009, "reloaded", Process, retryable: false, hint: "raise drain_timeout; call again if it is still wanted";
    /// The new run of a plugin failed; the old one serves on.
    NotReplaced = 6010, "not_replaced", Process, retryable: false, hint: "mend it, then `plugd reload NAME`";
    /// plugd ended while a call with a key, or in the background, was under way: whether it ran cannot be known.
    OutcomeUnknown = 6011, "outcome_unknown", Process, retryable: false, hint: "look at what the call was to change before you take a new key";
    /// A plugin used one it does not require.
    UndeclaredDependency = 7001, "undeclared_dependency", Permission, retryable: false, hint: "name it under \"requires\" in the manifest";
    /// Calls between plugins are nested too deeply.
    CallTooDeep = 7002, "call_too_deep", Permission, retryable: false, hint: "look for plugins that call each other in a circle";
    /// A call came back to a plugin whose lanes are all taken by calls that wait for it.
    ReentrantCall = 7003, "reentrant_call", Permission, retryable: false, hint: "declare more concurrency, or call the function directly";
    /// The caller's profile does not allow the operation.
    NotAllowed = 7004, "not_allowed", Permission, retryable: false, hint: "the profile under [callers] in plugd.toml says what is allowed";
    /// The caller's profile lacks the scope that the operation declares.
    ScopeMissing = 7005, "scope_missing", Permission, retryable: false, hint: "add the scope to the caller's profile in plugd.toml";
    /// The answer to a call has no data.
    MissingData = 8001, "missing_data", Protocol, retryable: false, hint: "the plugin must answer {\"data\": …}";
    /// The plugin sent a frame above the limit.
    FrameTooLarge = 8002, "frame_too_large", Protocol, retryable: false, hint: "send less, page the result, or raise frame_limit";
    /// The plugin broke the protocol.
    ProtocolViolation = 8003, "protocol_violation", Protocol, retryable: true, hint: "`plugd logs NAME` shows what it wrote";
    /// The plugin does not know an operation it declared.
    OperationNotImplemented = 8004, "operation_not_implemented", Protocol, retryable: false, hint: "the manifest and the plugin's code disagree";
    /// The plugin's data does not fit the output schema it declares.
    OutputMismatch = 8005, "output_mismatch", Protocol, retryable: false, hint: "the manifest's output_schema and the plugin's code disagree";
    /// Something failed inside plugd.
    Internal = 9001, "internal", Internal, retryable: false, hint: "this is a fault in plugd; please report it with the log";
    /// The daemon could not be reached.
    DaemonUnreachable = 9002, "daemon_unreachable", Internal, retryable: true, hint: "start it with `plugd serve`";
    /// Another daemon serves that socket.
    AlreadyRunning = 9003, "already_running", Internal, retryable: false, hint: "`plugd status` shows how it is";
    /// The daemon cannot serve here.
    CannotServe = 9004, "cannot_serve", Internal, retryable: false, hint: "mend what the message names, then serve again";
    /// Nothing can be recorded now, or read of what was.
    NotRecorded = 9005, "not_recorded", Internal, retryable: true, hint: "`plugd doctor` says why; calls without a key go on all the same";
}

impl CallError {
    /// An error of a kind, its outcome `not_run`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> CallError {
        CallError {
            code: kind.code(),
            name: kind.name().to_owned(),
            message: clip(message.into(), MESSAGE_MAX_CHARS),
            hint: Some(kind.hint().to_owned()),
            retryable: kind.retryable(),
            outcome: Outcome::NotRun,
            cause: None,
            details: Vec::new(),
        }
    }

    /// The same error with another outcome.
    #[must_use]
    pub fn outcome(mut self, outcome: Outcome) -> CallError {
        self.outcome = outcome;
        self
    }

    /// The same error with a hint that fits better.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> CallError {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with the plugin's name where the hint of its kind has a place for it.
    #[must_use]
    pub fn about(mut self, plugin: &PluginName) -> CallError {
        self.hint = self.hint.map(|hint| hint.replace(NAME, plugin.as_str()));
        self
    }

    /// The class its number is in.
    pub fn class(&self) -> ErrorClass {
        match self.code / 1000 {
            1 => ErrorClass::Request,
            2 => ErrorClass::Argument,
            3 => ErrorClass::Interaction,
            4 => ErrorClass::Plugin,
            5 => ErrorClass::Time,
            6 => ErrorClass::Process,
            7 => ErrorClass::Permission,
            8 => ErrorClass::Protocol,
            _ => ErrorClass::Internal,
        }
    }

    /// The exit code of a command that ended with this error.
    ///
    /// 1xxx is 4 where nothing of that name exists and 2 otherwise; 2xxx is 3, 3xxx 8 and a "no" 7,
    /// 4xxx 1, 5xxx 5, 6xxx and 8xxx 6, 7xxx 7, 9xxx 9.
    pub fn exit_code(&self) -> u8 {
        match self.class() {
            ErrorClass::Request if matches!(self.code, 1002..=1005 | 1007 | 1009 | 1010) => 4,
            ErrorClass::Request => 2,
            ErrorClass::Argument => 3,
            ErrorClass::Interaction if self.code == ErrorKind::Declined.code() => 7,
            ErrorClass::Interaction => 8,
            ErrorClass::Plugin => 1,
            ErrorClass::Time => 5,
            ErrorClass::Process | ErrorClass::Protocol => 6,
            ErrorClass::Permission => 7,
            ErrorClass::Internal => 9,
        }
    }
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }
}

/// A text of at most `max_chars` characters, marked where something was cut off.
pub fn clip(text: String, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text,
        Some((end, _)) => {
            let cut = text[end..].chars().count();
            format!("{}… [{cut} more characters]", &text[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_stands_in_its_class_once() {
        let mut codes: Vec<u16> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        for kind in ErrorKind::ALL {
            assert_eq!(CallError::new(*kind, "").class(), kind.class(), "{kind:?}");
            assert!(!kind.hint().is_empty(), "{kind:?}");
        }
        assert!(codes.is_sorted());
        codes.dedup();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
    }

    #[test]
    fn a_long_message_is_clipped_and_says_so() {
        let error = CallError::new(ErrorKind::PluginError, "三".repeat(1_000_000));
        assert!(error.message.ends_with("… [998000 more characters]"), "{}", error.message.len());
    }
}
