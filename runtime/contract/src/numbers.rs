//! Numbers no 64-bit integer or double can hold: named, never rounded.

use std::collections::BTreeMap;

use plugd_protocol::error::ArgumentProblem;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::document::pointer_segment;
use crate::words::clip;

/// Parses arguments so that every number in them is what was written.
///
/// # Errors
/// A problem for each number out of range, or one that says why the text cannot be read.
pub(crate) fn parse(raw: &RawValue) -> Result<Value, Vec<ArgumentProblem>> {
    match serde_json::from_str::<Value>(raw.get()) {
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

fn unreadable(error: &serde_json::Error) -> ArgumentProblem {
    let text = error.to_string();
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

/// Every number in a text that would not survive being read.
fn out_of_range(raw: &RawValue) -> Vec<ArgumentProblem> {
    /// As deep as a value that can be read is.
    const DEPTH_MAX: usize = 128;
    let mut problems = Vec::new();
    let mut open = vec![(String::new(), raw, 0)];
    while let Some((path, raw, depth)) = open.pop() {
        if depth > DEPTH_MAX {
            continue;
        }
        match raw.get().as_bytes().first() {
            Some(b'{') => {
                let members: BTreeMap<String, &RawValue> =
                    serde_json::from_str(raw.get()).unwrap_or_default();
                for (name, member) in members.into_iter().rev() {
                    open.push((format!("{path}/{}", pointer_segment(&name)), member, depth + 1));
                }
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
                for (index, item) in items.into_iter().enumerate().rev() {
                    open.push((format!("{path}/{index}"), item, depth + 1));
                }
            }
            Some(b'-' | b'0'..=b'9') if !survives(raw.get()) => problems.push(ArgumentProblem {
                path,
                problem: "number".to_owned(),
                expected: "a number within 64 bits: an integer from -9223372036854775808 to \
                           18446744073709551615, or up to about 1.8e308 with a fraction or exponent; \
                           longer digits go in a string"
                    .to_owned(),
                got: Some(format!("number {}", clip(raw.get()))),
                suggestion: None,
            }),
            _ => {}
        }
    }
    problems
}

fn survives(number: &str) -> bool {
    if number.contains(['.', 'e', 'E']) {
        number.parse::<f64>().is_ok_and(f64::is_finite)
    } else {
        number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
    }
}
