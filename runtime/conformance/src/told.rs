//! What an error tells, and whether it should.

use plugd_protocol::RpcError;
use serde_json::Value;

/// More characters of a message are cut off by plugd.
const MESSAGE_CHARS: usize = 2_000;

/// What stack traces look like, in the languages that write them.
const TRACES: &[&str] = &[
    "Traceback (most recent call last)",
    "\n    at ",
    "\n\tat ",
    "goroutine 1 [",
    "panicked at ",
    "stack backtrace:",
];

/// How a path of somebody's machine begins.
const PATHS: &[&str] =
    &["/home/", "/root/", "/usr/lib/", "/opt/", "/Users/", "/site-packages/", "/node_modules/"];

/// What is not of an error's form.
pub(crate) fn wrong_form(error: &RpcError) -> Option<String> {
    if error.message.trim().is_empty() {
        return Some("its message is empty".to_owned());
    }
    if error.message.chars().count() > MESSAGE_CHARS {
        return Some(format!("its message has more than {MESSAGE_CHARS} characters"));
    }
    let data = error.data.as_deref().filter(|data| data.get() != "null")?;
    let data: Value = serde_json::from_str(data.get()).ok()?;
    let Some(members) = data.as_object() else { return Some("its data is no object".to_owned()) };
    for (name, value) in members {
        let fits = match name.as_str() {
            "name" => value.as_str().is_some_and(is_snake_case),
            "hint" => value.is_string() || value.is_null(),
            "retryable" => value.is_boolean(),
            "cause" => value.is_object() || value.is_null(),
            _ => true,
        };
        if !fits {
            let expected = match name.as_str() {
                "name" => "a name in snake case",
                "hint" => "a text",
                "retryable" => "true or false",
                _ => "the object that came with the failed host/call",
            };
            return Some(format!("data.{name} must be {expected}"));
        }
    }
    None
}

/// What of an error belongs into a log.
pub(crate) fn too_much(error: &RpcError) -> Option<String> {
    let text = &error.message;
    if TRACES.iter().any(|trace| text.contains(trace)) {
        return Some("a stack trace".to_owned());
    }
    let of_python = text.contains("File \"") && text.contains(", line ");
    if of_python || text.contains(":in `") {
        return Some("a line of a stack trace".to_owned());
    }
    PATHS.iter().any(|path| text.contains(path)).then(|| "a path of this machine".to_owned())
}

fn is_snake_case(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().next().is_some_and(|first| first.is_ascii_lowercase()) && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> RpcError {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_error_has_a_message_and_data_of_its_form() {
        let good = r#"{"code":1,"message":"no","data":{"name":"not_found","hint":"look","retryable":false,"own":1}}"#;
        assert_eq!(wrong_form(&error(good)), None);
        assert_eq!(wrong_form(&error(r#"{"code":1,"message":"no","data":null}"#)), None);
        for (bad, expected) in [
            (r#"{"code":1}"#, "its message is empty"),
            (r#"{"code":1,"message":"no","data":[1]}"#, "its data is no object"),
            (
                r#"{"code":1,"message":"no","data":{"name":"NotFound"}}"#,
                "data.name must be a name in snake case",
            ),
            (
                r#"{"code":1,"message":"no","data":{"retryable":"no"}}"#,
                "data.retryable must be true or false",
            ),
        ] {
            assert_eq!(wrong_form(&error(bad)).as_deref(), Some(expected), "{bad}");
        }
    }

    #[test]
    fn traces_and_paths_belong_into_the_log() {
        let told = |message: &str| too_much(&RpcError::new(1, message));
        assert_eq!(told("there is no ticket TK-9 in line 3, line 4"), None);
        assert_eq!(told("Traceback (most recent call last):\n  x").as_deref(), Some("a stack trace"));
        assert_eq!(told("File \"x.py\", line 3").as_deref(), Some("a line of a stack trace"));
        assert_eq!(told("x.rb:3:in `y'").as_deref(), Some("a line of a stack trace"));
        assert_eq!(told("cannot open /home/ada/key").as_deref(), Some("a path of this machine"));
    }
}
