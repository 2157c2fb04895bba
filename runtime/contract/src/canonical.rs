//! JSON in one spelling, so that equal values have equal texts.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Deeper values are compared as they are written.
const DEPTH_MAX: usize = 100;

/// The value with its keys in order and without spaces; every digit of a number stays as it was written.
///
/// Of a key that is given twice the last one counts, as it does everywhere. Keys are in the order of
/// their UTF-8 bytes, and texts have no escapes but those that they need, much as RFC 8785 has it.
pub fn canonical(value: &RawValue) -> String {
    let mut text = String::with_capacity(value.get().len());
    write(value, DEPTH_MAX, &mut text);
    text
}

fn write(value: &RawValue, depth_left: usize, into: &mut String) {
    let written = value.get();
    let Some(depth_left) = depth_left.checked_sub(1) else { return into.push_str(written) };
    let rewritten = match written.as_bytes().first() {
        Some(b'{') => object(written, depth_left, into),
        Some(b'[') => array(written, depth_left, into),
        Some(b'"') => text(written, into),
        _ => None,
    };
    if rewritten.is_none() {
        into.push_str(written);
    }
}

fn object(written: &str, depth_left: usize, into: &mut String) -> Option<()> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(written).ok()?;
    into.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            into.push(',');
        }
        into.push_str(&serde_json::to_string(&key).ok()?);
        into.push(':');
        write(value, depth_left, into);
    }
    into.push('}');
    Some(())
}

fn array(written: &str, depth_left: usize, into: &mut String) -> Option<()> {
    let items: Vec<&RawValue> = serde_json::from_str(written).ok()?;
    into.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            into.push(',');
        }
        write(item, depth_left, into);
    }
    into.push(']');
    Some(())
}

fn text(written: &str, into: &mut String) -> Option<()> {
    let text: String = serde_json::from_str(written).ok()?;
    into.push_str(&serde_json::to_string(&text).ok()?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> String {
        canonical(&RawValue::from_string(json.to_owned()).expect("JSON"))
    }

    #[test]
    fn equal_values_have_equal_texts_and_numbers_keep_their_digits() {
        assert_eq!(
            of(r#"{ "b": [1, {"d":2,"c":"\u0041"}], "a": {} }"#),
            r#"{"a":{},"b":[1,{"c":"A","d":2}]}"#
        );
        assert_eq!(of("{}"), "{}");
        assert_eq!(of("[ ]"), "[]");
        assert_eq!(of(r#"{"a":1,"a":2}"#), of(r#"{"a":2}"#));
        for (one, other) in
            [("1", "1.0"), ("12345678901234567890123", "12345678901234567890124"), ("1e2", "100")]
        {
            assert_ne!(of(one), of(other));
        }
    }

    #[test]
    fn a_text_nested_without_end_is_compared_as_it_is() {
        let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
        assert_eq!(of(&deep), deep);
    }
}
