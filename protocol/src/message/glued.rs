//! A message that does not have its line for itself: what stands there with it.

use super::{Message, NotAMessage};

/// So many places are tried at which a message may begin.
const BEGINS_TRIED_MAX: usize = 8;

/// What stands beside a message on a line that is none; `None` where no message is in it.
pub(super) fn beside(line: &[u8]) -> Option<NotAMessage> {
    let begins = memchr::memchr_iter(b'{', line).take(BEGINS_TRIED_MAX);
    for at in begins {
        let Some(end) = end_of_value(&line[at..]) else { continue };
        if Message::of_object(&line[at..at + end]).is_err() {
            continue;
        }
        let before = !line[..at].trim_ascii().is_empty();
        return Some(NotAMessage::Glued(if before {
            "text stands before it on its line: a print without a line end?"
        } else {
            "something stands after it on its line: each message has a line of its own"
        }));
    }
    None
}

/// Where the JSON value ends with which this begins.
fn end_of_value(text: &[u8]) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<&serde_json::value::RawValue>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let said = Message::parse(line.as_bytes()).expect_err(line).to_string();
        assert!(said.contains(expected), "{line}: {said}");
    }

    #[test]
    fn a_message_that_shares_its_line_is_told_from_what_is_none() {
        let message = r#"{"jsonrpc":"2.0","id":3,"result":{"data":1}}"#;
        let before =
            "not a JSON-RPC 2.0 message: text stands before it on its line: a print without a line end?";
        check(&format!("looking {message}"), before);
        check(&format!("looking at {{it}} {message}"), before);
        check(&format!("[1/2] {message} done"), before);
        let after = "something stands after it on its line";
        check(&format!("{message} done"), after);
        check(&format!("{message}{message}"), after);
        for none in ["looking", "{looking}", "{} {}", r#"look {"a":1}"#] {
            let said = Message::parse(none.as_bytes()).expect_err(none);
            assert!(!said.is_glued(), "{none}: {said}");
        }
    }
}
