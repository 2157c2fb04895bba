//! What can be a key, by what its call is known again, and the errors about keys.

use plugd_contract::canonical;
use plugd_protocol::control::Source;
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, Outcome};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::config::PluginConfig;

/// A key is at most so many bytes: it is a name, not a place for data.
pub(super) const KEY_MAX_BYTES: usize = 256;

/// What to do where a call's key stands for a failure of which nobody knows how far it came.
const UNKNOWN_FOR_GOOD: &str = "it may have run, and the key stands for that, for good: look at what it did, then take a new key to call anew";

/// What to do about a failure that was recorded.
const FINAL: &str = "this is what the first call with the key came to, for good: take a new key to call anew";

/// Whether a text can be a key.
pub(super) fn check(key: &str) -> Result<(), CallError> {
    let what = match key {
        "" => "it is empty".to_owned(),
        key if key.len() > KEY_MAX_BYTES => format!("it has {} bytes", key.len()),
        key if key.contains(char::is_control) => "it has control characters in it".to_owned(),
        _ => return Ok(()),
    };
    let message = format!("a key is 1 to {KEY_MAX_BYTES} bytes of text without control characters: {what}");
    Err(CallError::new(ErrorKind::MalformedRequest, message))
}

/// By which the same arguments are known again; none are an empty object.
///
/// `program` is that of a plugin which is known by it, since others may have the same name.
pub(super) fn digest(given: Option<&RawValue>, program: Option<&str>) -> [u8; 32] {
    let text = given.map(canonical).filter(|text| text != "null");
    let text = text.unwrap_or_else(|| "{}".to_owned());
    Sha256::digest(program.map_or_else(|| text.clone(), |program| format!("{text}\n{program}"))).into()
}

/// What tells a plugin that no file names from others of its name: the program, and where it runs.
pub(super) fn program(plugin: &PluginConfig) -> Option<String> {
    let cwd = || std::fs::canonicalize(&plugin.cwd).unwrap_or_else(|_| plugin.cwd.clone());
    let is_given = matches!(plugin.source, Source::Embedded);
    is_given.then(|| format!("{}\n{}", plugin.program.display(), cwd().display()))
}

/// The error for a key of another call.
pub(super) fn conflict(first: &CallId) -> CallError {
    CallError::new(
        ErrorKind::KeyConflict,
        format!("the key stands for the call {first}, of another operation or with other arguments"),
    )
}

/// The error for a key whose call came to no end that is known.
pub(super) fn outcome_unknown(first: &CallId) -> CallError {
    CallError::new(
        ErrorKind::OutcomeUnknown,
        format!(
            "the call {first} with this key was under way and came to no end: whether it ran cannot be known"
        ),
    )
    .outcome(Outcome::Unknown)
}

/// The error for a key whose call has ended, and whose answer is gone.
pub(super) fn kept_no_more(first: &CallId) -> CallError {
    CallError::new(
        ErrorKind::UnknownResult,
        format!("the call {first} with this key ran to its end, but its answer is kept no more"),
    )
    .outcome(Outcome::Completed)
    .hint("it is not run again; take a new key for a new call")
}

/// What to do about a failure that a key stands for.
pub(super) fn hint_for_good(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Unknown => UNKNOWN_FOR_GOOD,
        Outcome::NotRun | Outcome::Completed => FINAL,
    }
}

/// The error for a key whose call runs for longer than whoever comes with it waits.
pub(super) fn still_runs(first: &CallId) -> CallError {
    CallError::new(ErrorKind::TimedOut, format!("the call {first} with this key still runs"))
        .outcome(Outcome::Unknown)
        .hint("it goes on; repeat the call with the same key to get its answer")
}
