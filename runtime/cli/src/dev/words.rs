//! What can be typed at the prompt of `plugd dev`: commands, operations and their parameters.

use std::sync::{Arc, Mutex, PoisonError};

use plugd_protocol::Operation;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use serde_json::Value;

use super::commands::COMMANDS;

/// What is known of the plugin that runs; all clones know the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Arc<Mutex<Vec<Offered>>>);

/// An operation that can be called.
#[derive(Debug, Clone)]
struct Offered {
    name: String,
    /// Each with the values it may have, where these are few.
    parameters: Vec<(String, Vec<String>)>,
}

impl Known {
    /// Takes note of what the plugin offers now.
    pub(crate) fn learn(&self, operations: &[Operation]) {
        let offered = operations.iter().map(|operation| Offered {
            name: operation.name.to_string(),
            parameters: parameters(&serde_json::from_str(operation.input_schema.get()).unwrap_or_default()),
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = offered.collect();
    }

    /// Where the last word of a line begins, and what it may become.
    fn completions(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(' ').map_or(0, |space| space + 1);
        let begun = &line[start..];
        let before: Vec<&str> = line[..start].split_whitespace().collect();
        let offered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let operations = || offered.iter().map(|operation| operation.name.clone());
        let may_be: Vec<String> = match before.first() {
            None => COMMANDS.iter().map(|(command, _)| (*command).to_owned()).chain(operations()).collect(),
            Some(&"describe") if before.len() == 1 => operations().collect(),
            Some(first) => {
                let is_it = |operation: &&Offered| {
                    *first == operation.name || first.rsplit('.').next() == Some(&operation.name)
                };
                offered
                    .iter()
                    .find(is_it)
                    .map(|operation| operation.arguments(begun, &before))
                    .unwrap_or_default()
            }
        };
        (start, may_be.into_iter().filter(|word| word.starts_with(begun)).collect())
    }
}

impl Offered {
    /// The arguments that a word may become: names first, then values.
    fn arguments(&self, begun: &str, before: &[&str]) -> Vec<String> {
        let is_given = |name: &str| before.iter().any(|word| word.split(['=', ':']).next() == Some(name));
        match begun.split_once('=') {
            None => {
                let open = self.parameters.iter().filter(|(name, _)| !is_given(name));
                open.map(|(name, _)| format!("{name}=")).collect()
            }
            Some((key, _)) => {
                let of_key = self.parameters.iter().find(|(name, _)| name == key);
                let values = of_key.into_iter().flat_map(|(_, values)| values);
                values.map(|value| format!("{key}={value}")).collect()
            }
        }
    }
}

fn parameters(schema: &Value) -> Vec<(String, Vec<String>)> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, property)| (name.clone(), values(property))).collect()
}

/// The values of an enumeration or of a boolean, as they are typed.
fn values(schema: &Value) -> Vec<String> {
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        return ["true", "false"].map(str::to_owned).to_vec();
    }
    let choices = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    choices.map(|value| shell_words::quote(&plain(value)).into_owned()).collect()
}

impl Completer for Known {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, words) = self.completions(line.get(..pos).unwrap_or_default());
        let pair = |word: String| {
            // Behind a whole word the next one begins; behind `name=` its value does.
            let replacement = if word.ends_with('=') { word.clone() } else { format!("{word} ") };
            Pair { display: word, replacement }
        };
        Ok((start, words.into_iter().map(pair).collect()))
    }
}

impl Hinter for Known {
    type Hint = String;
}

impl Highlighter for Known {}

impl Validator for Known {}

impl Helper for Known {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn known() -> Known {
        let operation = |name: &str, properties: Value| -> Operation {
            serde_json::from_value(json!({"name": name, "input_schema": {"properties": properties}})).unwrap()
        };
        let known = Known::default();
        known.learn(&[
            operation(
                "hello",
                json!({"name": {"type": "string"}, "tone": {"enum": ["warm", "very cold", 3]}}),
            ),
            operation("help_out", json!({"now": {"type": "boolean"}})),
        ]);
        known
    }

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(known().completions(line).1, expected, "{line:?}");
    }

    #[test]
    fn a_word_is_completed_to_what_is_known_there() {
        check("he", &["help", "hello", "help_out"]);
        check("describe h", &["hello", "help_out"]);
        check("describe hello h", &[]);
        check("hello ", &["name=", "tone="]);
        check("hello name=Ada n", &[]);
        check("hello name:=3 ", &["tone="]);
        check("hello tone=", &["tone=warm", "tone='very cold'", "tone=3"]);
        check("greet.help_out now=f", &["now=false"]);
        check("nothing x", &[]);
    }

    #[test]
    fn only_the_last_word_is_replaced() {
        assert_eq!(known().completions("hello na"), (6, vec!["name=".to_owned()]));
        assert_eq!(known().completions("hel").0, 0);
    }
}
