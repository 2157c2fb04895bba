//! An answer that is none: why, and what to do about that very cause.

use std::fmt;

use serde_json::{Map, Value};

/// Why a line with the id of a request is no answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    why: String,
    /// What to do about it.
    pub(crate) fix: &'static str,
}

impl Broken {
    /// Of a line that came whole.
    pub(crate) fn of(line: &[u8], why: impl fmt::Display) -> Broken {
        Broken { why: why.to_string(), fix: fix(line) }
    }

    /// Of one above the frame limit.
    pub(crate) fn too_long() -> Broken {
        Broken {
            why: "it is above the frame limit".to_owned(),
            fix: "give large data in parts, or its place instead of it",
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// What to do about it, as far as the line itself tells.
fn fix(line: &[u8]) -> &'static str {
    const FORM: &str = "write one JSON object a line, nothing before or after it on that line: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":…}";
    match line.trim_ascii_start().first() {
        Some(b'{') => {}
        Some(b'[') => return "write one message a line, never a list of several: there are no batches",
        _ => return "print to stderr: what was printed to stdout stands before the answer, on its line",
    }
    let members = match serde_json::from_slice::<Map<String, Value>>(line) {
        Ok(members) => members,
        Err(error) if error.is_eof() => {
            return "write the whole message on one line, JSON without line breaks: one message a line";
        }
        Err(_) => return FORM,
    };
    let error = members.get("error").filter(|error| !error.is_null());
    match (error, members.get("result")) {
        (Some(_), Some(_)) => "give `result` or `error`, never both",
        (Some(error), None) if !error.is_object() => {
            "an error is an object, not a text: \"error\":{\"code\":1,\"message\":\"what happened\"}"
        }
        (Some(error), None) if error.get("code").and_then(Value::as_i64).is_none() => {
            "give the error a whole number as `code`: 1 where the operation failed in its own words"
        }
        _ if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") => {
            "put \"jsonrpc\":\"2.0\" into every message, as a text"
        }
        (None, None) => "give `result` where it went well, or `error` where it did not",
        (Some(_), None) | (None, Some(_)) => FORM,
    }
}

/// What to do about a line that is no message, where it looks like a piece of one.
pub(crate) fn fix_of_a_piece(line: &[u8]) -> Option<&'static str> {
    let line = line.trim_ascii();
    let begins = line.first().is_some_and(|first| b"{}".contains(first));
    let is_whole = serde_json::from_slice::<Value>(line).is_ok();
    (begins && !is_whole).then_some("one message a line: write JSON without line breaks, and nothing else")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_fix_of_its_own() {
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"error":"text"}"#, "an error is an object"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}"#, "a whole number as `code`"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1},"result":1}"#, "never both"),
            (r#"{"id":1,"result":{}}"#, "\"jsonrpc\":\"2.0\""),
            (r#"{"jsonrpc":2.0,"id":1,"result":{}}"#, "as a text"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "give `result`"),
            (r#"{"jsonrpc":"2.0","id":1,"#, "one message a line"),
            (r#"loading… {"jsonrpc":"2.0","id":1,"result":{}}"#, "print to stderr"),
            (r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#, "no batches"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}} done"#, "nothing before or after it"),
        ] {
            let broken = Broken::of(line.as_bytes(), "because");
            assert!(broken.fix.contains(expected), "{line}: {}", broken.fix);
        }
    }

    #[test]
    fn pieces_of_a_message_are_told_from_text() {
        for (line, is_piece) in
            [("{", true), ("}", true), ("{\"id\": 1,", true), ("Loading…", false), ("{}", false)]
        {
            assert_eq!(fix_of_a_piece(line.as_bytes()).is_some(), is_piece, "{line}");
        }
    }
}
