//! The beginning of a message: what can be told of it before it is read, or where it cannot be.

use serde_json::value::RawValue;

use super::{digits, host_id};

/// Takes off the front of a request: its id, its method, and the rest, which begins with the params.
///
/// So whoever knows the form of the params reads them at once, and nothing twice. Only of one that is spelt
/// as [`write_request`](super::write_request) does it: `None` for any other spelling, which
/// [`Message::parse`](super::Message::parse) understands. Whether the rest is whole is for the reader to
/// see: the params, and a closing brace.
pub fn request_front(line: &[u8]) -> Option<(&RawValue, &str, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let (id, rest) = line.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).and_then(|rest| up_to(b',', rest))?;
    let (method, rest) = rest.strip_prefix(r#""method":""#).and_then(|rest| up_to(b'"', rest))?;
    let rest = rest.strip_prefix(r#","params":"#)?;
    let id: &RawValue = serde_json::from_str(id).ok()?;
    host_id(id)?;
    if method.bytes().any(|byte| byte == b'\\') { None } else { Some((id, method, rest)) }
}

/// What stands before a byte that comes soon, and after it.
fn up_to(byte: u8, text: &str) -> Option<(&str, &str)> {
    let at = text.bytes().position(|it| it == byte)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Finds the id of an answer in the beginning of a message that is too long to be parsed, or broken.
///
/// Looks at the outermost object only; `None` when its `id` does not stand in what was kept, or
/// when it is a request: its id is the sender's own.
pub fn id_in_head(head: &[u8]) -> Option<u64> {
    let mut depth = 0_u32;
    let mut at = 0;
    let mut id = None;
    while at < head.len() {
        match head[at] {
            b'"' => {
                let Some(end) = string_end(head, at) else { break };
                let rest = head[end + 1..].trim_ascii_start();
                let value = rest.strip_prefix(b":").filter(|_| depth == 1);
                match (&head[at..=end], value) {
                    (b"\"method\"", Some(_)) => return None,
                    (b"\"id\"", Some(value)) if id.is_none() => {
                        id = Some(whole_number(value.trim_ascii_start())?)
                    }
                    // What follows is long, and nothing else is missing.
                    (b"\"result\"" | b"\"error\"", Some(_)) if id.is_some() => break,
                    _ => {}
                }
                at = end;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        at += 1;
    }
    id
}

/// The number that stands here as a whole: `12.0` and `1e2` are other ids than `12` and `1`.
fn whole_number(value: &[u8]) -> Option<u64> {
    let length = value.iter().position(|byte| !byte.is_ascii_digit())?;
    let whole = matches!(value[length], b',' | b'}') || value[length].is_ascii_whitespace();
    digits(&value[..length]).filter(|_| whole)
}

/// Where the string that opens at `at` closes.
fn string_end(head: &[u8], at: usize) -> Option<usize> {
    let mut escaped = false;
    for (index, byte) in head.iter().enumerate().skip(at + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(index),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::write_request;
    use super::*;

    #[test]
    fn the_front_of_a_request_is_that_of_our_own_spelling_only() {
        let mut line = Vec::new();
        write_request(&mut line, 7, "host/call", &[1]).expect("serialises");
        let (id, method, rest) = request_front(&line).expect("our own spelling");
        assert_eq!((id.get(), method, rest), ("7", "host/call", "[1]}\n"));
        for other in [
            r#"{"jsonrpc":"2.0", "id":7,"method":"call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","method":"call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":07,"method":"call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":7.0,"method":"call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"c\u0061ll","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"call","id":7,"params":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        ] {
            assert!(request_front(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn the_id_of_an_oversized_message_is_found_in_its_head() {
        assert_eq!(id_in_head(br#"{"jsonrpc":"2.0","id":12,"result":{"data":"aaa"#), Some(12));
        assert_eq!(id_in_head(br#"{"jsonrpc":"2.0", "id" : 3 , "result":{"data":"aaa"#), Some(3));
        assert_eq!(id_in_head(br#"{"result":{"id":9,"data":"aaa"#), None);
        assert_eq!(id_in_head(br#"{"x":"\"id\":5","id":6,"#), Some(6));
        assert_eq!(id_in_head(br#"{"id":12"#), None);
        assert_eq!(id_in_head(br#"{"id":12.0,"result":{"data":"aaa"#), None);
        assert_eq!(id_in_head(b"aaaaaaaa"), None);
    }
}
