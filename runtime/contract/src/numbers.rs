//! Numbers no 64-bit integer or double can hold: named, never rounded.

use std::fmt;

use plugd_protocol::error::ArgumentProblem;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::map::{Entry, Map};
use serde_json::value::RawValue;

use crate::document::pointer_segment;
use crate::mask::string_end;
use crate::words::clip;

/// The kind of problem that a key given twice is: it is not guessed which of its values is meant.
pub const KEY_TWICE: &str = "key_twice";

/// How an error that a key is given twice begins.
const TWICE: &str = "given twice: ";

/// So many numbers are named.
const NAMED_MAX: usize = 100;

/// A path is shown up to here; a text may be nested a million times.
const PATH_MAX_CHARS: usize = 1_000;

/// Parses arguments so that every number in them is what was written.
///
/// # Errors
/// A problem for each number out of range, or one that says why the text cannot be read.
pub(crate) fn parse(raw: &RawValue) -> Result<Value, Vec<ArgumentProblem>> {
    match serde_json::from_str::<EachOnce>(raw.get()).map(|EachOnce(value)| value) {
        // An integer beyond 64 bits was read as a double; only then is the text looked at again.
        Ok(value) if !holds_huge_double(&value) => Ok(value),
        Ok(value) => match out_of_range(raw) {
            problems if problems.is_empty() => Ok(value),
            problems => Err(problems),
        },
        Err(error) => {
            let mut problems = out_of_range(raw);
            if problems.is_empty() {
                problems.push(unreadable(&error));
            }
            Err(problems)
        }
    }
}

/// Any JSON in which no object has a key twice.
struct EachOnce(Value);

impl<'de> Deserialize<'de> for EachOnce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EachOnce, D::Error> {
        deserializer.deserialize_any(Whatever).map(EachOnce)
    }
}

struct Whatever;

impl<'de> Visitor<'de> for Whatever {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(EachOnce(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let EachOnce(value) = object.next_value()?;
            match members.entry(key) {
                Entry::Vacant(free) => drop(free.insert(value)),
                Entry::Occupied(taken) => {
                    return Err(A::Error::custom(format!("{TWICE}{:?}", clip(taken.key()))));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

fn unreadable(error: &serde_json::Error) -> ArgumentProblem {
    let text = error.to_string();
    if let Some(key) = text.strip_prefix(TWICE) {
        let key = key.rsplit_once(" at line ").map_or(key, |(key, _)| key);
        return ArgumentProblem {
            path: String::new(),
            problem: KEY_TWICE.to_owned(),
            expected: "each key once".to_owned(),
            got: Some(key.to_owned()),
            suggestion: None,
        };
    }
    let expected = if text.starts_with("recursion limit") {
        "arguments nested at most 127 levels deep".to_owned()
    } else {
        format!("readable JSON ({text})")
    };
    ArgumentProblem { path: String::new(), problem: "json".to_owned(), expected, got: None, suggestion: None }
}

fn holds_huge_double(value: &Value) -> bool {
    const LEAST_BEYOND_64_BITS: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().is_some_and(|double| double.abs() >= LEAST_BEYOND_64_BITS)
        }
        Value::Array(items) => items.iter().any(holds_huge_double),
        Value::Object(members) => members.values().any(holds_huge_double),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Where in the text the scan is: one frame for each object and list around it.
enum Frame<'t> {
    /// An object, with the key of the member being read as JSON text.
    Object { key: &'t str, awaits_key: bool },
    /// A list, with the number of the item being read.
    List { index: usize },
}

/// Every number in a text that would not survive being read, in one pass and without recursion.
///
/// A `RawValue` is known to be JSON, so that tokens need not be checked again.
fn out_of_range(raw: &RawValue) -> Vec<ArgumentProblem> {
    let text = raw.get();
    let mut problems = Vec::new();
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        let end = match byte {
            b'"' => string_end(text, at),
            b'-' | b'0'..=b'9' => number_end(text, at),
            _ => at + 1,
        };
        match (byte, frames.last_mut()) {
            (b'{', _) => frames.push(Frame::Object { key: "", awaits_key: true }),
            (b'[', _) => frames.push(Frame::List { index: 0 }),
            (b'}' | b']', _) => drop(frames.pop()),
            (b',', Some(Frame::Object { awaits_key, .. })) => *awaits_key = true,
            (b',', Some(Frame::List { index })) => *index += 1,
            (b'"', Some(Frame::Object { key, awaits_key })) if *awaits_key => {
                *key = &text[at..end];
                *awaits_key = false;
            }
            (b'-' | b'0'..=b'9', _) if !survives(&text[at..end]) => {
                problems.push(beyond_64_bits(&frames, &text[at..end]));
                if problems.len() == NAMED_MAX {
                    break;
                }
            }
            _ => {}
        }
        at = end;
    }
    problems
}

fn number_end(text: &str, start: usize) -> usize {
    let rest = &text.as_bytes()[start..];
    let part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    start + rest.iter().take_while(|byte| part(byte)).count()
}

fn beyond_64_bits(frames: &[Frame<'_>], number: &str) -> ArgumentProblem {
    let mut path = String::new();
    for frame in frames {
        path.push('/');
        match frame {
            Frame::List { index } => path.push_str(&index.to_string()),
            Frame::Object { key, .. } => {
                let name: String = serde_json::from_str(key).unwrap_or_default();
                path.push_str(&pointer_segment(&name));
            }
        }
    }
    let expected = "a number within 64 bits: an integer from -9223372036854775808 to 18446744073709551615, \
                    or up to about 1.8e308 with a fraction or exponent; longer digits go in a string";
    ArgumentProblem {
        path: plugd_protocol::error::clip(path, PATH_MAX_CHARS),
        problem: "number".to_owned(),
        expected: expected.to_owned(),
        got: Some(format!("number {}", clip(number))),
        suggestion: None,
    }
}

fn survives(number: &str) -> bool {
    if number.contains(['.', 'e', 'E']) {
        number.parse::<f64>().is_ok_and(f64::is_finite)
    } else {
        number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_given_twice_is_named_wherever_it_is() {
        let read = |json: &str| parse(&RawValue::from_string(json.to_owned()).expect("JSON"));
        for json in [r#"{"s":1,"s":1}"#, r#"{"a":[{"s":1,"b":{},"s":null}]}"#, r#"{"s":1,"\u0073":2}"#] {
            let problems = read(json).expect_err(json);
            let found = (problems[0].problem.as_str(), problems[0].got.as_deref());
            assert_eq!(found, (KEY_TWICE, Some("\"s\"")), "{json}");
        }
        let json = r#"{"a":{"s":1},"b":[{"s":-1},{"s":1.5},null,true,"t"]}"#;
        assert_eq!(read(json).expect("each once"), serde_json::from_str::<Value>(json).expect("JSON"));
    }
}
