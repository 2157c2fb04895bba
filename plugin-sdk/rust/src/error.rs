//! What a handler says when it fails, and how that goes over the wire.

use std::fmt;
use std::panic::Location;

use plugd_protocol::OperationName;
use plugd_protocol::error::{Cause, ErrorData, RpcError, rpc_code};
use serde::Serialize;
use serde_json::value::to_raw_value;

/// A failure in the plugin's own words.
///
/// Any `std::error::Error` turns into one with `?`; its text becomes the message. A failure that
/// callers should tell from others gets a name, and a hint where they can do something about it:
///
/// ```
/// # use plugd_sdk::Error;
/// let error = Error::new("ticket_not_found", "no ticket TK-20241215-009")
///     .hint("`tickets.list_open` shows the tickets there are");
/// assert_eq!(error.name.as_deref(), Some("ticket_not_found"));
/// ```
///
/// A name that is none, such as one with capitals, is a fault of the plugin: the caller gets the message and is
/// told so, and the log says what is wrong with it, and where the error was made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Error {
    /// The failure's name in snake case, for programs: 1 to 64 of a-z, 0-9 and `_`.
    pub name: Option<String>,
    /// What happened, for people.
    pub message: String,
    /// What the caller can do about it.
    pub hint: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The inner call that failed, where this came from [`Context::call`](crate::Context::call).
    pub cause: Option<Box<Cause>>,
    code: i64,
    made: Place,
}

/// Where an error was made, which makes no difference between two.
#[derive(Debug, Clone, Copy)]
struct Place(&'static Location<'static>);

impl PartialEq for Place {
    fn eq(&self, _: &Place) -> bool {
        true
    }
}

impl Error {
    /// A named failure.
    #[track_caller]
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Error {
        Error { name: Some(name.into()), ..Error::message(message) }
    }

    /// A failure without a name of its own.
    #[track_caller]
    pub fn message(message: impl Into<String>) -> Error {
        Error::coded(rpc_code::OPERATION_FAILED, message)
    }

    /// The answer to a call that stopped because it was cancelled.
    pub fn cancelled() -> Error {
        Error::coded(rpc_code::CANCELLED, "the call was cancelled")
    }

    /// Says what the caller can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Says that the same call may succeed later.
    #[must_use]
    pub fn retryable(mut self) -> Error {
        self.retryable = true;
        self
    }

    /// Whether this is the answer to a cancelled call.
    pub fn is_cancelled(&self) -> bool {
        self.code == rpc_code::CANCELLED
    }

    /// The JSON-RPC code it has on the wire.
    pub fn code(&self) -> i64 {
        self.code
    }

    #[track_caller]
    pub(crate) fn coded(code: i64, message: impl Into<String>) -> Error {
        let made = Place(Location::caller());
        Error { name: None, message: message.into(), hint: None, retryable: false, cause: None, code, made }
    }

    /// What is wrong with its name, and where it was made: plugd would not pass it on.
    pub(crate) fn name_fault(&self) -> Option<String> {
        // What has another code came from the host, whose names are not for us to refuse.
        let name = self.name.as_ref().filter(|_| self.code == rpc_code::OPERATION_FAILED)?;
        if OperationName::new(name).is_ok() {
            return None;
        }
        let (near, rule) = (snake(name), "expected 1 to 64 of a-z, 0-9 and '_'");
        let near = OperationName::new(&near).map(|near| format!("; did you mean \"{near}\"?"));
        let (near, place) = (near.unwrap_or_default(), self.made.0);
        Some(format!("{name:?} is not a failure's name: {rule}{near}\nit was made at {place}"))
    }

    /// What is answered where its name is none: its message, and that the name is a fault.
    pub(crate) fn without_a_name(self) -> Error {
        let name = self.name.unwrap_or_default();
        let text = format!("{}; a fault in the plugin: {name:?} is not a failure's name", self.message);
        Error::coded(rpc_code::HANDLER_FAILED, text)
    }

    pub(crate) fn to_rpc(&self) -> RpcError {
        /// As [`ErrorData`], without what goes without saying.
        #[derive(Serialize)]
        struct Data<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<&'a str>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            retryable: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            cause: Option<&'a Cause>,
        }
        let Error { name, hint, retryable, cause, .. } = self;
        let is_empty = name.is_none() && hint.is_none() && !retryable && cause.is_none();
        let data = Data {
            name: name.as_deref(),
            hint: hint.as_deref(),
            retryable: *retryable,
            cause: cause.as_deref(),
        };
        let data = if is_empty { None } else { to_raw_value(&data).ok() };
        RpcError { code: self.code, message: self.message.clone(), data }
    }

    pub(crate) fn from_rpc(error: RpcError) -> Error {
        let data: ErrorData =
            error.data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default();
        Error {
            name: data.name,
            message: error.message,
            hint: data.hint,
            retryable: data.retryable,
            cause: data.cause,
            code: error.code,
            made: Place(Location::caller()),
        }
    }
}

/// A name in snake case: `NotThere` and `not there` as `not_there`.
fn snake(name: &str) -> String {
    let mut near = String::new();
    for character in name.chars() {
        let begins_a_word = character.is_ascii_uppercase() || !character.is_ascii_alphanumeric();
        if begins_a_word && !near.is_empty() && !near.ends_with('_') {
            near.push('_');
        }
        if character.is_ascii_alphanumeric() {
            near.push(character.to_ascii_lowercase());
        }
    }
    near.trim_end_matches('_').to_owned()
}

/// Shows the message.
impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

// `Error` must not be a `std::error::Error` itself, or this would overlap `From<T> for T`.
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Error {
        Error::message(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_converts_and_keeps_its_words() {
        fn parse() -> Result<u8, Error> {
            Ok("x".parse::<u8>()?)
        }
        let error = parse().expect_err("no number");
        assert_eq!(error.message, "invalid digit found in string");
        assert_eq!(error.code(), rpc_code::OPERATION_FAILED);
        assert!(error.to_rpc().data.is_none(), "nothing to say is not said");
    }

    #[test]
    fn a_name_that_is_none_is_told_with_the_nearest_that_is() {
        let told = |name: &str| Error::new(name, "m").name_fault();
        let fault = told("NotThere").expect("it has capitals");
        let (fault, place) = fault.split_once('\n').expect("the place is told");
        assert_eq!(
            fault,
            "\"NotThere\" is not a failure's name: expected 1 to 64 of a-z, 0-9 and '_'; did you mean \"not_there\"?"
        );
        assert!(place.starts_with("it was made at ") && place.contains("error.rs:"), "{place}");
        assert!(told("no such ticket!").expect("blanks").contains("did you mean \"no_such_ticket\"?"));
        assert!(told("没有").expect("no ASCII").contains("a-z, 0-9 and '_'\n"));
        assert_eq!(told("not_there"), None);
        let hosts = Error::coded(rpc_code::HOST_CALL_FAILED, "m");
        let hosts = Error { name: Some("As It Came".to_owned()), ..hosts };
        assert_eq!(hosts.name_fault(), None);
        let answered = Error::new("NotThere", "it is gone").hint("look again").without_a_name();
        assert_eq!((answered.code(), answered.name), (rpc_code::HANDLER_FAILED, None));
        assert_eq!(
            answered.message,
            "it is gone; a fault in the plugin: \"NotThere\" is not a failure's name"
        );
    }

    #[test]
    fn a_failed_inner_call_keeps_its_cause_through_the_wire() {
        let wire = r#"{"code":3,"message":"weather is down","data":{"name":"stopped","retryable":true,"cause":
            {"operation":"weather.get_weather","call_id":"c-2","error":
              {"code":6003,"name":"stopped","message":"m","retryable":false,"outcome":"not_run"}}}}"#;
        let received: RpcError = serde_json::from_str(wire).expect("an error object");
        let error = Error::from_rpc(received).hint("start it");
        let sent = Error::from_rpc(error.to_rpc());
        assert_eq!(sent, error);
        let cause = sent.cause.expect("kept");
        assert_eq!(cause.operation.to_string(), "weather.get_weather");
        assert_eq!(cause.error.code, 6003);
    }
}
