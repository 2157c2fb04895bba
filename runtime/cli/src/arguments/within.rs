//! Arguments that belong into an object or a list, and are not written so.

use plugd_protocol::error::ArgumentProblem;
use plugd_protocol::{CallError, ErrorKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Arguments, Given, is_meant_as_json, property};
use crate::render;

/// `object.member=value` for objects that are declared, and must be given whole.
#[derive(Debug)]
pub(crate) struct Dotted {
    keys: Vec<(String, String)>,
    /// How each object is written.
    written: Vec<String>,
    /// The arguments as they are meant.
    pub(crate) meant: Box<RawValue>,
}

impl Dotted {
    /// The error, with what else is wrong with the arguments as they are meant.
    pub(crate) fn refused(self, others: Vec<ArgumentProblem>) -> CallError {
        let own = |(key, name): &(String, String)| {
            format!("{key:?} is no argument: {name} is an object, and is given whole as JSON")
        };
        let told = self.keys.iter().map(own).chain(others.iter().map(in_words));
        let message = told.collect::<Vec<_>>().join("; ");
        let detail = |(key, name): &(String, String)| ArgumentProblem {
            path: format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            problem: "additionalProperties".to_owned(),
            expected: format!("{name} as one JSON object"),
            got: None,
            suggestion: Some(name.clone()),
        };
        let details = self.keys.iter().map(detail).chain(others).collect();
        let hint = format!("write {}", self.written.join(" "));
        CallError { details, ..CallError::new(ErrorKind::InvalidArguments, message).hint(hint) }
    }
}

impl Arguments {
    /// What is written as a member of an object that its schema declares; `None` where nothing is.
    pub(crate) fn dotted(&self, schema: &RawValue) -> Option<Dotted> {
        let schema: Value = serde_json::from_str(schema.get()).ok()?;
        let within = |key: &str| {
            let (name, member) = key.split_once('.')?;
            let is_object =
                plugd_conformance::referred(property(&schema, name)?, &schema).get("properties").is_some();
            (property(&schema, key).is_none() && is_object).then(|| (name.to_owned(), member.to_owned()))
        };
        let mut keys = Vec::new();
        let mut objects = Map::new();
        let mut meant = Map::new();
        for (key, given) in &self.members {
            let Some((name, member)) = within(key) else {
                meant.insert(key.clone(), given.in_json(key, &schema));
                continue;
            };
            let object_schema = plugd_conformance::referred(&schema["properties"][&name], &schema);
            let object = objects.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
            set(object, &member, given.in_json(&member, object_schema));
            keys.push((key.clone(), name));
        }
        if keys.is_empty() {
            return None;
        }
        for (name, object) in &mut objects {
            // What was given of it whole stays, where that is an object.
            if let Some(Value::Object(mut whole)) = meant.remove(name) {
                whole.extend(std::mem::take(object).as_object().cloned().unwrap_or_default());
                *object = whole.into();
            }
        }
        let written = objects.iter().map(|(name, object)| word(name, object)).collect();
        meant.extend(objects);
        let meant = RawValue::from_string(Value::Object(meant).to_string()).ok()?;
        Some(Dotted { keys, written, meant })
    }
}

impl Given {
    /// The value as its schema would have it, as far as that is clear.
    fn in_json(&self, key: &str, schema: &Value) -> Value {
        let text = match self {
            Given::Json(json) => return serde_json::from_str(json.get()).unwrap_or_default(),
            Given::Kept { .. } => return "…".into(),
            Given::Text(text) => text,
        };
        match is_meant_as_json(text, key, Some(schema)) {
            true => serde_json::from_str(text).unwrap_or_default(),
            false => text.as_str().into(),
        }
    }
}

/// Sets what a path of names with dots between them leads to.
fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for name in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[name];
    }
    *at = value;
}

/// How lists are written that were given as text: `tags=a`; `None` where nothing of the kind is wrong.
pub(crate) fn how_lists_are_written(words: &[String], problems: &[ArgumentProblem]) -> Option<String> {
    let list = |problem: &ArgumentProblem| {
        let key = problem.path.strip_prefix('/')?;
        let is_list = problem.problem == "type" && problem.expected.starts_with("an array");
        let mut texts = words.iter().filter_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let text = texts.next().filter(|text| is_list && !text.starts_with(['@', '[']))?;
        let of_texts = problem.expected.contains("a string");
        let item = |piece: &str| match serde_json::from_str::<Value>(piece) {
            Ok(value) if !of_texts => value,
            _ => piece.into(),
        };
        let items: Vec<Value> =
            text.split(',').map(str::trim).filter(|piece| !piece.is_empty()).map(item).collect();
        Some(word(key, &items.into()))
    };
    let lists: Vec<String> = problems.iter().filter_map(list).collect();
    (!lists.is_empty()).then(|| format!("a list is given as JSON: write {}", lists.join(" ")))
}

/// A problem as a sentence has it.
fn in_words(problem: &ArgumentProblem) -> String {
    render::problem(problem).trim_start_matches('/').to_owned()
}

/// `key:=json` as it is typed in a shell.
fn word(key: &str, value: &Value) -> String {
    plugd_engine::command_line(&[format!("{key}:={value}")])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dotted(words: &[&str], schema: &str) -> Option<Dotted> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let arguments = Arguments::read(&words, None).unwrap();
        assert!(arguments.need_schema());
        arguments.dotted(&RawValue::from_string(schema.to_owned()).unwrap())
    }

    const SCHEMA: &str = r##"{"properties":{"to":{"$ref":"#/$defs/to"},"a.b":{}},
        "$defs":{"to":{"properties":{"street":{"type":"string"},"zip":{"type":"integer"}}}}}"##;

    #[test]
    fn a_member_of_an_object_is_given_with_the_whole_object() {
        let found = dotted(&["to.street=Main St", "to.zip=3", "n=1"], SCHEMA).unwrap();
        assert_eq!(found.meant.get(), r#"{"n":"1","to":{"street":"Main St","zip":3}}"#);
        let error = found.refused(Vec::new());
        let hint = r#"write 'to:={"street":"Main St","zip":3}'"#;
        assert_eq!((error.exit_code(), error.hint.as_deref()), (3, Some(hint)));
        assert!(error.message.starts_with("\"to.street\" is no argument"), "{error:?}");
        assert_eq!(error.details.len(), 2);
        // What is declared, or belongs to no object that is, goes on to the schema.
        assert!(dotted(&["a.b=1", "x.y=2"], SCHEMA).is_none());
    }

    #[test]
    fn whatever_else_is_wrong_is_told_with_it() {
        let other = ArgumentProblem {
            path: "/n".to_owned(),
            problem: "type".to_owned(),
            expected: "an integer".to_owned(),
            got: None,
            suggestion: None,
        };
        let error = dotted(&["to.zip=3", "n=x"], SCHEMA).unwrap().refused(vec![other]);
        assert!(error.message.ends_with("; n: expected an integer"), "{}", error.message);
        assert_eq!(error.details.len(), 2);
    }

    #[test]
    fn a_list_that_was_given_as_text_is_shown_as_json() {
        let told = |word: &str, expected: &str| {
            let problem = ArgumentProblem {
                path: "/tags".to_owned(),
                problem: "type".to_owned(),
                expected: expected.to_owned(),
                got: None,
                suggestion: None,
            };
            how_lists_are_written(&[word.to_owned()], &[problem])
        };
        let written = |list: &str| Some(format!("a list is given as JSON: write 'tags:={list}'"));
        assert_eq!(told("tags=a", "an array, each a string"), written(r#"["a"]"#));
        assert_eq!(told("tags=a, 3", "an array, each a string"), written(r#"["a","3"]"#));
        assert_eq!(told("tags=1,2", "an array, each an integer"), written("[1,2]"));
        assert_eq!(told("tags=a", "an integer"), None);
        assert_eq!(told("tags:=3", "an array"), None);
    }
}
