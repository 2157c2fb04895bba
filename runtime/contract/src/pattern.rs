//! Why a pattern cannot be used, said so that whoever wrote it can write another.

use serde_json::{Value, json};

/// Why a pattern that did not compile is of no use.
pub(crate) fn why_unusable(pattern: &str) -> String {
    if let Some(group) = look_around(pattern) {
        return format!(
            "it looks around ({group}…), which cannot be matched in linear time; several patterns under \
             \"allOf\", or \"not\" with a pattern, say the same"
        );
    }
    if let Some(reference) = back_reference(pattern) {
        return format!("it refers back to a group ({reference}), which cannot be matched in linear time");
    }
    if !is_regular_expression(pattern) {
        return "it is not a regular expression of ECMA-262".to_owned();
    }
    if pattern.contains('{') {
        return "with its repetitions counted out it grows too large; name smaller counts, or use \
                \"maxLength\""
            .to_owned();
    }
    "the engine that matches in linear time does not know what it uses; write it without".to_owned()
}

fn is_regular_expression(pattern: &str) -> bool {
    let formats = jsonschema::options().should_validate_formats(true).offline();
    let regex = formats.build(&json!({"format": "regex"}));
    regex.is_ok_and(|regex| regex.is_valid(&Value::String(pattern.to_owned())))
}

fn look_around(pattern: &str) -> Option<&'static str> {
    let groups = ["(?=", "(?!", "(?<=", "(?<!"];
    unescaped_places(pattern).find_map(|rest| groups.into_iter().find(|group| rest.starts_with(group)))
}

fn back_reference(pattern: &str) -> Option<&str> {
    let mut escaped = false;
    for (at, byte) in pattern.bytes().enumerate() {
        if escaped && matches!(byte, b'1'..=b'9' | b'k') {
            return pattern.get(at - 1..=at);
        }
        escaped = byte == b'\\' && !escaped;
    }
    None
}

/// What follows each place of a pattern that is neither escaped nor within a class.
fn unescaped_places(pattern: &str) -> impl Iterator<Item = &str> {
    let (mut escaped, mut in_class) = (false, false);
    pattern.char_indices().filter_map(move |(at, character)| {
        let plain = !escaped && !in_class;
        in_class = match character {
            '[' if !escaped => true,
            ']' if !escaped => false,
            _ => in_class,
        };
        escaped = character == '\\' && !escaped;
        plain.then(|| &pattern[at..])
    })
}
