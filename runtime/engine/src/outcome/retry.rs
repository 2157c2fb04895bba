//! Whether a call that failed is tried again: once, where a second run does no harm.

use plugd_protocol::error::{ErrorClass, ErrorKind};
use plugd_protocol::{CallError, Operation, Outcome};

/// The first try and one more.
const ATTEMPTS_MAX: u32 = 2;

/// Whether a call whose `attempt` failed so is tried again, within the same deadline.
///
/// A crash in mid call and an error that the plugin itself calls retryable are worth it; what took
/// too long, was cancelled or was stopped on purpose is not.
pub(crate) fn again(operation: &Operation, error: &CallError, attempt: u32) -> bool {
    let crashed = [ErrorKind::PluginDied, ErrorKind::ProtocolViolation]
        .iter()
        .any(|kind| kind.code() == error.code && error.outcome == Outcome::Unknown);
    let says_so = error.class() == ErrorClass::Plugin && error.retryable;
    attempt < ATTEMPTS_MAX && repeatable(operation) && (crashed || says_so)
}

/// Whether a second run of an operation with the same arguments is as good as one.
pub(crate) fn repeatable(operation: &Operation) -> bool {
    operation.effects.idempotent == Some(true) || operation.effects.read_only == Some(true)
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
        assert!(again(&idempotent, &died, 1));
        assert!(again(&operation(r#"{"read_only":true}"#), &died, 1));
        assert!(!again(&idempotent, &died, 2));
        for effects in ["{}", r#"{"idempotent":false}"#, r#"{"destructive":false}"#] {
            assert!(!again(&operation(effects), &died, 1), "{effects}");
        }
        let mut own = CallError::new(ErrorKind::PluginError, "").outcome(Outcome::Completed);
        assert!(!again(&idempotent, &own, 1), "the plugin answered, and the same would come again");
        own.retryable = true;
        assert!(again(&idempotent, &own, 1));
        for kind in [
            ErrorKind::TimedOut,
            ErrorKind::Cancelled,
            ErrorKind::Stopped,
            ErrorKind::Reloaded,
            ErrorKind::ShuttingDown,
            ErrorKind::MissingData,
            ErrorKind::Overloaded,
        ] {
            assert!(!again(&idempotent, &failed(kind), 1), "{kind:?}");
        }
    }
}
