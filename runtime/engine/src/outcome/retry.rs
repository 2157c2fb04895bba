//! Whether a call that failed is tried again, by plugd or by its caller: where a second run does no harm.

use plugd_protocol::error::{ErrorClass, ErrorKind};
use plugd_protocol::{CallError, Operation, Outcome};

use crate::call::Trail;

/// The first try and one more.
const ATTEMPTS_MAX: u32 = 2;

/// What a hint says that advises to call again.
const CALL_AGAIN: &str = "call again";

/// The advice instead, where that might do it twice.
const LOOK_FIRST: &str = "it may have run: look whether it took effect before you repeat it; under a key (--key) nothing runs twice";

/// Whether a call whose `attempt` failed so is tried again, within the same deadline.
///
/// A process that died in mid call, also one that plugd ended because it broke the protocol, and an error
/// that the plugin itself calls retryable are worth it; what took too long, was cancelled, was stopped on
/// purpose or was answered with what is no message is not.
pub(crate) fn again(operation: &Operation, error: &CallError, died: bool, attempt: u32) -> bool {
    let crashed = died
        && [ErrorKind::PluginDied, ErrorKind::ProtocolViolation].iter().any(|kind| kind.code() == error.code);
    let says_so = error.class() == ErrorClass::Plugin && error.retryable;
    attempt < ATTEMPTS_MAX && repeatable(operation) && (crashed || says_so)
}

/// Whether a second run of an operation with the same arguments is as good as one.
pub(crate) fn repeatable(operation: &Operation) -> bool {
    operation.effects.idempotent == Some(true) || operation.effects.read_only == Some(true)
}

/// The error of a call as its caller is told it: what may have run is called retryable only where a second
/// run does no harm, and no hint says otherwise.
///
/// Of a call that no run got, such as one that waits for another one with its key, it is as it was.
pub(crate) fn told(trail: &Trail, error: CallError) -> CallError {
    match &trail.operation {
        Some(operation) if trail.sent.is_some() && !repeatable(&operation.operation) => not_twice(error),
        Some(_) | None => error,
    }
}

/// The error of a call that must not be run twice.
fn not_twice(mut error: CallError) -> CallError {
    // What a plugin says of its own failure it knows best.
    if error.outcome == Outcome::NotRun || error.class() == ErrorClass::Plugin {
        return error;
    }
    error.retryable = false;
    if error.outcome == Outcome::Unknown {
        let hint = error.hint.take().unwrap_or_default();
        let kept = hint.split("; ").filter(|part| !part.is_empty() && !part.contains(CALL_AGAIN));
        error.hint = Some(kept.chain([LOOK_FIRST]).collect::<Vec<_>>().join("; "));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(effects: &str) -> Operation {
        let json = format!(r#"{{"name":"a","input_schema":{{}},"effects":{effects}}}"#);
        serde_json::from_str(&json).expect("an operation")
    }

    /// Row X10; cases C153 and C154 have processes for it.
    #[test]
    fn r_x10_only_what_does_no_harm_twice_is_tried_again_and_only_once() {
        let idempotent = operation(r#"{"idempotent":true}"#);
        let failed = |kind| CallError::new(kind, "").outcome(Outcome::Unknown);
        let died = failed(ErrorKind::PluginDied);
        assert!(again(&idempotent, &died, true, 1));
        assert!(again(&operation(r#"{"read_only":true}"#), &died, true, 1));
        assert!(!again(&idempotent, &died, true, 2));
        for effects in ["{}", r#"{"idempotent":false}"#, r#"{"destructive":false}"#] {
            assert!(!again(&operation(effects), &died, true, 1), "{effects}");
        }
        let violation = failed(ErrorKind::ProtocolViolation);
        assert!(again(&idempotent, &violation, true, 1), "it was ended for that");
        assert!(!again(&idempotent, &violation, false, 1), "it lives, and would answer the same");
        let mut own = CallError::new(ErrorKind::PluginError, "").outcome(Outcome::Completed);
        assert!(!again(&idempotent, &own, false, 1), "the plugin answered, and the same would come again");
        own.retryable = true;
        assert!(again(&idempotent, &own, false, 1));
        for kind in [
            ErrorKind::TimedOut,
            ErrorKind::Cancelled,
            ErrorKind::Stopped,
            ErrorKind::Reloaded,
            ErrorKind::ShuttingDown,
            ErrorKind::MissingData,
            ErrorKind::Overloaded,
        ] {
            assert!(!again(&idempotent, &failed(kind), true, 1), "{kind:?}");
        }
    }

    #[test]
    fn no_error_of_a_call_that_may_have_run_and_does_harm_twice_says_to_call_again() {
        for kind in ErrorKind::ALL {
            let error = not_twice(CallError::new(*kind, "").outcome(Outcome::Unknown));
            let hint = error.hint.unwrap_or_default();
            if kind.class() != ErrorClass::Plugin {
                assert!(!error.retryable && !hint.contains(CALL_AGAIN), "{kind:?}: {hint}");
                assert!(hint.ends_with(LOOK_FIRST), "{kind:?}: {hint}");
            }
            let not_run = CallError::new(*kind, "");
            assert_eq!(not_twice(not_run.clone()), not_run, "{kind:?}");
        }
    }
}
