//! Schemas and values in words: what would have been right, and what was given.

use serde_json::{Map, Value};

use crate::document::Document;

/// What was given is shown up to this many characters.
const SHOWN_MAX_CHARS: usize = 80;

/// So many alternatives of an `enum` are listed; the rest are counted.
const LISTED_MAX: usize = 24;

/// Alternatives are described this many levels deep.
const DESCRIBED_DEPTH: usize = 2;

/// What a value is, with the value itself: `integer 15`, `string "x"`.
pub(crate) fn given(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(boolean) => format!("boolean {boolean}"),
        Value::Number(number) if number.is_f64() => format!("number {number}"),
        Value::Number(number) => format!("integer {number}"),
        Value::String(_) => format!("string {}", clip(&value.to_string())),
        Value::Array(_) => format!("array {}", clip(&value.to_string())),
        Value::Object(_) => format!("object {}", clip(&value.to_string())),
    }
}

/// A text of at most [`SHOWN_MAX_CHARS`] characters.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a schema asks for, in words: `an integer between 1 and 14`.
pub(crate) fn expected<'a>(schema: &'a Value, document: &Document<'a>) -> String {
    described(schema, document, DESCRIBED_DEPTH)
}

fn described<'a>(schema: &'a Value, document: &Document<'a>, depth: usize) -> String {
    let schema = document.target(schema);
    let Some(members) = schema.as_object() else {
        return if schema == &Value::Bool(false) { "nothing" } else { "any value" }.to_owned();
    };
    if let Some(only) = members.get("const") {
        return plain(only);
    }
    if let Some(options) = members.get("enum").and_then(Value::as_array) {
        return one_of(options);
    }
    if depth > 0 {
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = members.get(keyword).and_then(Value::as_array)
                && !members.contains_key("type")
            {
                return alternatives(branches, document, depth - 1);
            }
        }
    }
    let mut words = noun(members);
    words.push_str(&limits(members));
    if let Some(example) = example(members) {
        words.push_str(&format!(", e.g. {example}"));
    }
    words
}

/// `A or B`, each alternative named once.
pub(crate) fn alternatives_of<'a>(branches: &'a [Value], document: &Document<'a>) -> String {
    alternatives(branches, document, DESCRIBED_DEPTH)
}

fn alternatives<'a>(branches: &'a [Value], document: &Document<'a>, depth: usize) -> String {
    let mut names: Vec<String> = Vec::new();
    for branch in branches {
        let name = only_required(branch).unwrap_or_else(|| described(branch, document, depth));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" or ")
}

/// The keys a branch asks for, where asking for keys is all it does.
pub(crate) fn only_required(branch: &Value) -> Option<String> {
    let members = branch.as_object()?;
    let keys = members.get("required")?.as_array()?;
    let silent = |key: &str| matches!(key, "required" | "title" | "description" | "type");
    let names: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
    (members.keys().all(|key| silent(key)) && !names.is_empty()).then(|| names.join(" and "))
}

fn one_of(options: &[Value]) -> String {
    let listed: Vec<String> = options.iter().take(LISTED_MAX).map(plain).collect();
    let rest = options.len().saturating_sub(LISTED_MAX);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    match listed.as_slice() {
        [only] if rest == 0 => only.clone(),
        _ => format!("one of {}{more}", listed.join(", ")),
    }
}

/// A value as a person would write it; a text without quotes where that is clear.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text.trim() != text => clip(&value.to_string()),
        Value::String(text) => clip(text),
        other => clip(&other.to_string()),
    }
}

fn noun(members: &Map<String, Value>) -> String {
    let kinds: Vec<&str> = match members.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => match members.keys().find_map(|keyword| kind_of_keyword(keyword)) {
            Some(kind) => vec![kind],
            None => return "any value".to_owned(),
        },
    };
    let named: Vec<String> = kinds.iter().map(|kind| kind_in_words(kind, members)).collect();
    named.join(" or ")
}

/// What a keyword without a `type` beside it is about.
fn kind_of_keyword(keyword: &str) -> Option<&'static str> {
    match keyword {
        "properties" | "required" | "additionalProperties" | "minProperties" | "maxProperties" => {
            Some("object")
        }
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => Some("array"),
        "pattern" | "format" | "minLength" | "maxLength" => Some("string"),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Some("number"),
        _ => None,
    }
}

fn kind_in_words(kind: &str, members: &Map<String, Value>) -> String {
    match kind {
        "integer" => "an integer".to_owned(),
        "object" => match members.get("required").and_then(Value::as_array) {
            Some(keys) if !keys.is_empty() => {
                let names: Vec<&str> = keys.iter().filter_map(Value::as_str).take(LISTED_MAX).collect();
                format!("an object with {}", names.join(", "))
            }
            _ => "an object".to_owned(),
        },
        "array" => match members.get("items") {
            Some(Value::Object(item)) if item.contains_key("type") => {
                format!("an array, each {}", noun(item))
            }
            _ => "an array".to_owned(),
        },
        "boolean" => "true or false".to_owned(),
        "null" => "null".to_owned(),
        "string" => match members.get("format").and_then(Value::as_str) {
            Some(format) => format_in_words(format),
            None => "a string".to_owned(),
        },
        other => format!("a {other}"),
    }
}

fn format_in_words(format: &str) -> String {
    match format {
        "date" => "a date such as 2024-12-31",
        "time" => "a time such as 14:30:00Z",
        "date-time" => "a date and time such as 2024-12-31T14:30:00Z",
        "duration" => "an ISO 8601 duration such as PT1H30M",
        "email" | "idn-email" => "an e-mail address",
        "uri" | "iri" => "a URI such as https://example.org/",
        "uuid" => "a UUID",
        "ipv4" => "an IPv4 address",
        "ipv6" => "an IPv6 address",
        "hostname" | "idn-hostname" => "a host name",
        "regex" => "a regular expression",
        other => return format!("a string in the format {other}"),
    }
    .to_owned()
}

/// The ranges and patterns, as they follow the noun.
fn limits(members: &Map<String, Value>) -> String {
    let number = |keyword: &str| members.get(keyword).filter(|value| value.is_number());
    let mut words = match (number("minimum"), number("maximum")) {
        (Some(least), Some(most)) => format!(" between {least} and {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    };
    if let Some(bound) = number("exclusiveMinimum") {
        words.push_str(&format!(", more than {bound}"));
    }
    if let Some(bound) = number("exclusiveMaximum") {
        words.push_str(&format!(", less than {bound}"));
    }
    if let Some(step) = number("multipleOf") {
        words.push_str(&format!(", a multiple of {step}"));
    }
    for (least, most, unit) in [
        ("minLength", "maxLength", "characters"),
        ("minItems", "maxItems", "items"),
        ("minProperties", "maxProperties", "keys"),
    ] {
        words.push_str(&match (number(least), number(most)) {
            (Some(least), Some(most)) if least == most => format!(" of exactly {least} {unit}"),
            (Some(least), Some(most)) => format!(" of {least} to {most} {unit}"),
            (Some(least), None) => format!(" of at least {least} {unit}"),
            (None, Some(most)) => format!(" of at most {most} {unit}"),
            (None, None) => String::new(),
        });
    }
    if members.get("uniqueItems") == Some(&Value::Bool(true)) {
        words.push_str(" without duplicates");
    }
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
        words.push_str(&format!(" matching {}", clip(pattern)));
    }
    words
}

fn example(members: &Map<String, Value>) -> Option<String> {
    let examples = members.get("examples").and_then(Value::as_array);
    examples.and_then(|examples| examples.first()).or_else(|| members.get("example")).map(plain)
}

/// A message of another library on one line, cut where it grows long.
pub(crate) fn clip_sentence(text: &str) -> String {
    const SENTENCE_MAX_CHARS: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SENTENCE_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What a schema asks for, its references left as they are.
pub(crate) fn plain_schema(schema: &Value) -> String {
    expected(schema, &Document::new(schema))
}
