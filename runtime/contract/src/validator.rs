//! How schemas become validators: one set of options for all of them.

use std::sync::LazyLock;

use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::{Value, json};

/// A pattern may compile to at most this many bytes; a counted repetition can ask for gigabytes.
const PATTERN_SIZE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Formats younger than draft-07 that schemas in draft-07 use all the same.
static YOUNGER_FORMATS: LazyLock<[Option<Validator>; 2]> = LazyLock::new(|| {
    ["duration", "uuid"].map(|format| options(false).build(&json!({"format": format})).ok())
});

/// Nothing is ever fetched, `format` is asserted, and patterns run in linear time.
pub(crate) fn options(draft7: bool) -> ValidationOptions<'static> {
    let options = jsonschema::options()
        .with_draft(if draft7 { Draft::Draft7 } else { Draft::Draft202012 })
        .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_SIZE_MAX_BYTES))
        .should_validate_formats(true)
        .offline();
    if !draft7 {
        return options;
    }
    options
        .with_format("duration", |text| is_of(&YOUNGER_FORMATS[0], text))
        .with_format("uuid", |text| is_of(&YOUNGER_FORMATS[1], text))
}

fn is_of(format: &Option<Validator>, text: &str) -> bool {
    format.as_ref().is_none_or(|format| format.is_valid(&Value::String(text.to_owned())))
}

/// A validator of texts that match a pattern, where it is one.
pub(crate) fn of_pattern(pattern: &str) -> Option<Validator> {
    options(false).build(&json!({"pattern": pattern})).ok()
}
