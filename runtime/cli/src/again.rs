//! The command line that was typed, written once more with what it lacked.

use std::collections::HashSet;

use plugd_conformance::referred;
use plugd_protocol::CallResult;
use plugd_protocol::plugin::Question;
use plugd_protocol::result::Pending;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::render::to_give;

/// The command line of a call that stopped and that no token carries on, with what is missing or `--yes`.
///
/// `typed` are the words behind the program's name, `schema` is the operation's: values that it calls
/// sensitive are left out, as nothing shows them.
pub(crate) fn with_what_is_missing(
    typed: impl Iterator<Item = String>,
    result: &CallResult,
    arguments: Option<&RawValue>,
    schema: Option<&RawValue>,
) -> Option<String> {
    let pending = result.pending.as_ref().filter(|pending| pending.token.is_none())?;
    let schema: Value = schema.and_then(|schema| serde_json::from_str(schema.get()).ok()).unwrap_or_default();
    let mut words: Vec<String> = std::iter::once("plugd".to_owned()).chain(typed).collect();
    words.iter_mut().for_each(|word| hide(word, &schema));
    let missing = missing(pending, arguments, &schema);
    for (name, _) in &missing {
        words.retain(|word| !gives(word, name));
    }
    let mut line = plugd_engine::command_line(&words);
    missing.iter().for_each(|(_, given)| line = format!("{line} {given}"));
    if pending.questions.is_empty() {
        line.push_str(" --yes");
    }
    Some(line)
}

/// Each argument that lacks something, and how to give it.
fn missing(pending: &Pending, arguments: Option<&RawValue>, schema: &Value) -> Vec<(String, String)> {
    let known: Map<String, Value> =
        arguments.and_then(|arguments| serde_json::from_str(arguments.get()).ok()).unwrap_or_default();
    let mut objects: Vec<(String, Value)> = Vec::new();
    let mut missing = Vec::new();
    for question in &pending.questions {
        match question.name.split_once('/') {
            None => missing.push((question.name.clone(), to_give(&question.name, &schema_of(question)))),
            Some((name, within)) => {
                let at = objects.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
                    let given = match known.get(name) {
                        // Text that was given for an object is JSON.
                        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
                        given => given.cloned().unwrap_or_default(),
                    };
                    objects.push((name.to_owned(), given));
                    objects.len() - 1
                });
                put(&mut objects[at].1, within);
            }
        }
    }
    for (name, mut object) in objects {
        hide_within(&mut object, &schema["properties"][&name], schema);
        let json = object.to_string().replace('\'', "'\\''");
        missing.push((name.clone(), format!("{name}:='{json}'")));
    }
    missing
}

fn schema_of(question: &Question) -> Value {
    let schema = question.schema.as_deref();
    schema.and_then(|schema| serde_json::from_str(schema.get()).ok()).unwrap_or_default()
}

/// Puts what is to be filled in where a pointer leads to.
fn put(value: &mut Value, pointer: &str) {
    let mut at = value;
    for name in pointer.split('/') {
        at = match at {
            Value::Array(items) => match name.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                Some(item) => item,
                None => return,
            },
            other => {
                if !other.is_object() {
                    *other = Value::Object(Map::new());
                }
                &mut other[name.replace("~1", "/").replace("~0", "~")]
            }
        };
    }
    *at = "…".into();
}

/// Whether a word of the command line gives this argument.
fn gives(word: &str, name: &str) -> bool {
    word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=') || rest.starts_with(":="))
}

/// Leaves out what must not be shown, and what no line can show.
fn hide(word: &mut String, schema: &Value) {
    let guarded = is_sensitive(schema, schema);
    if guarded && word.starts_with('{') {
        "…".clone_into(word);
    }
    let Some((key, value)) = word.split_once('=') else { return };
    let is_option = key.starts_with('-') && key != "--json";
    let name = key.strip_suffix(':').unwrap_or(key);
    let hidden = match schema["properties"].get(name) {
        Some(property) => is_sensitive(property, schema),
        // It may be a sensitive one misspelt.
        None => guarded && !is_option,
    };
    if hidden || value.chars().any(char::is_control) {
        *word = format!("{name}=…");
    }
}

fn hide_within(value: &mut Value, schema: &Value, root: &Value) {
    let schema = referred(schema, root);
    if !is_sensitive(schema, root) {
        return;
    }
    match value {
        Value::Object(members) if !says_sensitive(schema) && schema.get("properties").is_some() => {
            for (name, member) in members {
                hide_within(member, &schema["properties"][name], root);
            }
        }
        _ => *value = "…".into(),
    }
}

fn says_sensitive(schema: &Value) -> bool {
    let is_true = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    is_true("writeOnly")
        || is_true("x-sensitive")
        || schema.get("format").is_some_and(|format| format == "password")
}

/// Whether a schema, or anything within it, is of a value that is never shown.
fn is_sensitive(schema: &Value, root: &Value) -> bool {
    let mut seen: HashSet<*const Value> = HashSet::new();
    let mut open = vec![schema];
    while let Some(next) = open.pop() {
        let schema = referred(next, root);
        if !seen.insert(schema) {
            continue;
        }
        match schema {
            Value::Object(_) if says_sensitive(schema) => return true,
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    #[track_caller]
    fn check(typed: &[&str], questions: Value, arguments: Value, expected: &str) {
        let schema = json!({"$defs": {"pin": {"x-sensitive": true}}, "properties": {"city": {}, "n": {},
            "pin": {"$ref": "#/$defs/pin"},
            "to": {"type": "object", "properties": {"zip": {}, "pass": {"format": "password"}}}}});
        let meta: Value = serde_json::from_str(
            r#"{"attempt":1,"queue_us":0,"run_us":0,"argument_bytes":2,"data_bytes":2}"#,
        )
        .unwrap();
        let result = json!({"status": "needs_input", "meta": meta,
            "pending": {"prompt": "?", "questions": questions}});
        let result: CallResult = serde_json::from_str(&result.to_string()).unwrap();
        let typed = typed.iter().map(|word| (*word).to_owned());
        let line = with_what_is_missing(typed, &result, Some(&raw(&arguments)), Some(&raw(&schema)));
        assert_eq!(line.as_deref(), Some(expected));
    }

    #[test]
    fn the_line_is_the_one_that_was_typed_with_what_it_lacked() {
        let days = json!([{"name": "days", "prompt": "How long", "schema": {"type": "integer"}}]);
        check(
            &["call", "./x", "plan", "city=New York"],
            days.clone(),
            json!({}),
            "plugd call ./x plan 'city=New York' days=…",
        );
        check(&["call", "./x", "wipe", "n=3"], json!([]), json!({}), "plugd call ./x wipe n=3 --yes");
        check(
            &["call", "./x", "plan", "pin=1234"],
            days.clone(),
            json!({}),
            "plugd call ./x plan 'pin=…' days=…",
        );
        check(
            &["call", "./x", "plan", "pni=12", "--json", r#"{"pin":"12"}"#],
            days,
            json!({}),
            "plugd call ./x plan 'pni=…' --json '…' days=…",
        );
    }

    #[test]
    fn what_lacks_a_member_is_written_whole() {
        let zip = json!([{"name": "to/zip", "prompt": "The code"}]);
        check(
            &["call", "./x", "send", r#"to:={"city":"Rome"}"#],
            zip.clone(),
            json!({"to": {"city": "Rome"}}),
            r#"plugd call ./x send to:='{"city":"Rome","zip":"…"}'"#,
        );
        check(
            &["call", "./x", "send", r#"to={"pass":"geheim"}"#],
            zip,
            json!({"to": r#"{"pass":"geheim"}"#}),
            r#"plugd call ./x send to:='{"pass":"…","zip":"…"}'"#,
        );
    }
}
