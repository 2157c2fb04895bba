//! Arguments brought to their declared types: only where a value does not already fit.
//!
//! What the validator finds wrong leads: a value it accepts is never touched. A **string** where
//! something else is declared becomes
//!
//! - a number as in [`crate::numerals`], where an integer or a number is declared;
//! - a boolean, in any case and width: `true yes y on 1 是 对 真` or `false no n off 0 否 错 假`;
//! - `null`, where it is that word and null is declared;
//! - an array or an object, where it is the JSON text of one;
//! - the one option of an `enum` (or `const`) that it is but for case, or that it reads as.
//!
//! A blank string where no string is declared, and `null` where no null is, are as good as absent:
//! they are dropped from their object. Where alternatives (`anyOf`, `oneOf`) are declared, each is
//! tried by itself, and only if exactly one value comes of it is that taken. A conversion that
//! could go two ways, or would lose something, is not made, and the validator's error stands.

use jsonschema::JsonType;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::numbers;
use crate::numerals::{self, Refusal};

/// How a boolean may be written.
const BOOLEANS: &[(&str, bool)] = &[
    ("true", true),
    ("yes", true),
    ("y", true),
    ("on", true),
    ("1", true),
    ("是", true),
    ("对", true),
    ("真", true),
    ("false", false),
    ("no", false),
    ("n", false),
    ("off", false),
    ("0", false),
    ("否", false),
    ("错", false),
    ("假", false),
];

/// Whether a type is among those an error names.
fn allows(kind: &TypeKind, kind_of_value: JsonType) -> bool {
    match kind {
        TypeKind::Single(single) => *single == kind_of_value,
        TypeKind::Multiple(kinds) => kinds.contains(kind_of_value),
    }
}

/// The JSON text of the only value of a declared type that a text can be read as.
pub(crate) fn by_type(text: &str, kind: &TypeKind) -> Option<String> {
    let mut found = Vec::new();
    found.extend(number(text, kind).and_then(Result::ok));
    if allows(kind, JsonType::Boolean) {
        found.extend(boolean(text).map(|boolean| boolean.to_string()));
    }
    if allows(kind, JsonType::Null) && text.trim() == "null" {
        found.push("null".to_owned());
    }
    found.extend(json(text, kind));
    match found.as_slice() {
        [_] => found.pop(),
        _ => None,
    }
}

/// A text as the number that is declared; `None` where none is.
fn number(text: &str, kind: &TypeKind) -> Option<Result<String, Refusal>> {
    if allows(kind, JsonType::Number) {
        Some(numerals::read(text).and_then(|numeral| numeral.number()))
    } else if allows(kind, JsonType::Integer) {
        Some(numerals::read(text).and_then(|numeral| numeral.integer()))
    } else {
        None
    }
}

/// What would have made a number of a text that only looks like one, where a number is declared.
pub(crate) fn reason(text: &str, error: &ValidationErrorKind) -> Option<&'static str> {
    match error {
        ValidationErrorKind::Type { kind } => number(text, kind)?.err()?.wanted(),
        _ => None,
    }
}

fn boolean(text: &str) -> Option<bool> {
    let text: String = text.trim().chars().map(numerals::narrow).flat_map(char::to_lowercase).collect();
    BOOLEANS.iter().find(|(name, _)| *name == text).map(|(_, boolean)| *boolean)
}

/// A text that is JSON of an array or object, where such a one is declared.
fn json(text: &str, kind: &TypeKind) -> Option<String> {
    let text = text.trim();
    let declared = match text.as_bytes().first()? {
        b'[' => JsonType::Array,
        b'{' => JsonType::Object,
        _ => return None,
    };
    let raw: &RawValue = serde_json::from_str(text).ok().filter(|_| allows(kind, declared))?;
    numbers::parse(raw).is_ok().then(|| text.to_owned())
}

/// The only option that a text is but for case, or can be read as.
pub(crate) fn by_options(text: &str, options: &[Value]) -> Option<String> {
    let folded = text.to_lowercase();
    let number: Option<Value> = numerals::read(text)
        .and_then(|numeral| numeral.number())
        .ok()
        .and_then(|number| serde_json::from_str(&number).ok());
    let means = |option: &&Value| match option {
        Value::String(option) => option.to_lowercase() == folded,
        Value::Number(option) => number.as_ref().is_some_and(|number| {
            number.as_number() == Some(option) || option.is_f64() && number.as_f64() == option.as_f64()
        }),
        Value::Bool(option) => boolean(text) == Some(*option),
        Value::Null => text.trim() == "null",
        Value::Array(_) | Value::Object(_) => false,
    };
    let mut meant = options.iter().filter(means);
    match (meant.next(), meant.next()) {
        (Some(only), None) => Some(only.to_string()),
        _ => None,
    }
}
