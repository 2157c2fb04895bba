//! The arguments of a call from the words on the command line, every digit kept.

mod within;

use std::collections::BTreeSet;
use std::fmt;
use std::io::{ErrorKind, Read};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use self::within::{Dotted, how_lists_are_written};
use crate::failure::Failure;
use crate::kept::{self, Reference};
use crate::runtime::Runtime;

/// How far a chain of references in a schema is followed.
const REFERENCES_MAX: usize = 8;

/// The arguments as written: each key with what was said about its value.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    members: Vec<(String, Given)>,
    /// Results of earlier calls that are whole objects of arguments.
    objects: Vec<Reference>,
}

#[derive(Debug)]
enum Given {
    /// `key=text`: a string, unless the schema wants another type and the text is one.
    Text(String),
    /// JSON, to be passed on as it is.
    Json(Box<RawValue>),
    /// A part of an earlier call's result, as JSON or as text, to be fetched.
    Kept { from: Reference, as_text: bool },
}

/// A JSON object's members in order, duplicates included.
pub(crate) struct Members(pub(crate) Vec<(String, Box<RawValue>)>);

impl Arguments {
    /// Reads `key=value`, `key:=json`, `key=@file`, `key:=@file`, `@file` and `--json TEXT|@file|-`;
    /// `call:ID/pointer` in place of a file is a part of an earlier call's result.
    ///
    /// # Errors
    /// A [`Failure`] naming the word that cannot be read, or the key given twice.
    pub(crate) fn read(words: &[String], json: Option<&str>) -> Result<Arguments, Failure> {
        let mut arguments = Arguments::default();
        if let Some(json) = json {
            match json.strip_prefix('@') {
                Some(path) => arguments.add_file(path, "--json")?,
                None if json == "-" => arguments.add_file("-", "--json")?,
                None => arguments.add_object(json, "--json")?,
            }
        }
        for word in words {
            arguments.add_word(word)?;
        }
        arguments.once()
    }

    /// The same, if no key is given twice.
    fn once(self) -> Result<Arguments, Failure> {
        let mut seen = BTreeSet::new();
        match self.members.iter().find(|(key, _)| !seen.insert(key)) {
            Some((key, _)) => {
                Err(Failure::usage(format!("the argument {key:?} is given twice: give it once")))
            }
            None => Ok(self),
        }
    }

    /// Fetches what is taken from results of earlier calls, as `caller` where there is one.
    ///
    /// # Errors
    /// A [`Failure`] where a result is not kept, has no such part, is not for the caller, or is no object
    /// where one must be.
    pub(crate) async fn fetch(
        mut self,
        runtime: &Runtime,
        caller: Option<&str>,
    ) -> Result<Arguments, Failure> {
        for (_, given) in &mut self.members {
            let Given::Kept { from, as_text } = given else { continue };
            let data = kept::whole(runtime, from, caller).await?.data;
            *given = match serde_json::from_str::<String>(data.get()) {
                Ok(text) if *as_text => Given::Text(text),
                _ if *as_text => Given::Text(data.get().to_owned()),
                _ => Given::Json(data),
            };
        }
        for object in std::mem::take(&mut self.objects) {
            let data = kept::whole(runtime, &object, caller).await?.data;
            self.add_object(data.get(), &format!("the result of {}", object.call_id.as_str()))?;
        }
        self.once()
    }

    fn add_word(&mut self, word: &str) -> Result<(), Failure> {
        if let Some(path) = word.strip_prefix('@') {
            return self.add_file(path, word);
        }
        let Some((key, value)) = word.split_once('=') else {
            return Err(Failure::usage(format!(
                "{word:?} is no argument: expected key=value, key:=json, key=@file or @file"
            )));
        };
        let (key, is_json) = match key.strip_suffix(':') {
            Some(key) => (key, true),
            None => (key, false),
        };
        if key.is_empty() {
            return Err(Failure::usage(format!("{word:?} has no key before its '=': expected key=value")));
        }
        let from = value.strip_prefix('@');
        if let Some(from) = from.and_then(Reference::after_at) {
            self.members.push((key.to_owned(), Given::Kept { from, as_text: !is_json }));
            return Ok(());
        }
        let text = match from {
            Some(path) => file(path)?,
            None => value.to_owned(),
        };
        let given = match is_json {
            true => Given::Json(
                RawValue::from_string(text.trim().to_owned())
                    .map_err(|error| not_json(key, &text, &error))?,
            ),
            false => Given::Text(text),
        };
        self.members.push((key.to_owned(), given));
        Ok(())
    }

    fn add_file(&mut self, path: &str, source: &str) -> Result<(), Failure> {
        match Reference::after_at(path) {
            Some(reference) => self.objects.push(reference),
            None => self.add_object(&file(path)?, source)?,
        }
        Ok(())
    }

    fn add_object(&mut self, text: &str, source: &str) -> Result<(), Failure> {
        let members: Members = serde_json::from_str(text).map_err(|error| {
            Failure::unreadable_arguments(format!("{source}: expected one JSON object: {error}"))
        })?;
        self.members.extend(members.0.into_iter().map(|(key, json)| (key, Given::Json(json))));
        Ok(())
    }

    /// Whether the operation's schema decides how a value is sent.
    pub(crate) fn need_schema(&self) -> bool {
        let decides = |given: &Given| matches!(given, Given::Text(text) if json_type(text).is_some());
        self.members.iter().any(|(key, given)| key.contains('.') || decides(given))
    }

    /// The arguments as one JSON object, with the operation's schema where it is known.
    pub(crate) fn into_json(self, schema: Option<&RawValue>) -> Result<Box<RawValue>, Failure> {
        let schema: Option<Value> = schema.and_then(|schema| serde_json::from_str(schema.get()).ok());
        let mut object = String::from("{");
        for (index, (key, given)) in self.members.iter().enumerate() {
            if index > 0 {
                object.push(',');
            }
            object.push_str(&Value::from(key.as_str()).to_string());
            object.push(':');
            match given {
                Given::Json(json) => object.push_str(json.get()),
                Given::Kept { .. } => return Err(Failure::internal("an earlier result was not fetched")),
                Given::Text(text) if is_meant_as_json(text, key, schema.as_ref()) => object.push_str(text),
                Given::Text(text) => object.push_str(&Value::from(text.as_str()).to_string()),
            }
        }
        object.push('}');
        RawValue::from_string(object)
            .map_err(|error| Failure::internal(format!("the arguments could not be put together: {error}")))
    }
}

/// The error for a value that is no JSON. An object or a list was meant as one: a shell takes quotes off.
fn not_json(key: &str, text: &str, error: &serde_json::Error) -> Failure {
    let message = format!("the value of {key:?} is no JSON: {error}");
    let quoted = match text.trim_start().chars().next() {
        Some('{') => "{\"city\":\"Bern\"}",
        Some('[') => "[\"a\"]",
        _ => {
            return Failure::unreadable_arguments(format!("{message}; write {key}=… for plain text"))
                .hint(&format!("{key}=VALUE is text where the schema wants text, {key}:=VALUE is JSON: {key}:=3, {key}:='[\"a\"]'"));
        }
    };
    Failure::unreadable_arguments(message).hint(&format!("quote it as in a shell: {key}:='{quoted}'"))
}

/// Whether the schema gives the key another type than string, and the text is of that type.
fn is_meant_as_json(text: &str, key: &str, schema: Option<&Value>) -> bool {
    let (Some(given), Some(schema)) = (json_type(text), schema) else { return false };
    let mut types = BTreeSet::new();
    if let Some(property) = property(schema, key) {
        collect_types(property, schema, REFERENCES_MAX, &mut types);
    }
    match given {
        "null" => types.len() == 1 && types.contains("null"),
        _ if types.contains("string") => false,
        "number" => types.contains("number") || types.contains("integer"),
        other => types.contains(other),
    }
}

/// The JSON type a text is of, if it is JSON and no string.
fn json_type(text: &str) -> Option<&'static str> {
    let kind = match text.as_bytes().first()? {
        b'{' => "object",
        b'[' => "array",
        b't' | b'f' => "boolean",
        b'n' => "null",
        b'-' | b'0'..=b'9' => "number",
        _ => return None,
    };
    let is_json = text.trim_end().len() == text.len() && serde_json::from_str::<&RawValue>(text).is_ok();
    is_json.then_some(kind)
}

fn property<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(key)
}

/// Every type a subschema speaks of; local references and alternatives are followed.
fn collect_types<'a>(schema: &'a Value, root: &'a Value, depth: usize, types: &mut BTreeSet<&'a str>) {
    let Some(left) = depth.checked_sub(1) else { return };
    match schema.get("type") {
        Some(Value::String(name)) => {
            types.insert(name);
        }
        Some(Value::Array(names)) => types.extend(names.iter().filter_map(Value::as_str)),
        _ => {}
    }
    let values =
        schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
    types.extend(values.map(|value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }));
    if let Some(target) =
        schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'))
        && let Some(target) = root.pointer(target)
    {
        collect_types(target, root, left, types);
    }
    for alternatives in ["anyOf", "oneOf", "allOf"] {
        for alternative in schema.get(alternatives).and_then(Value::as_array).into_iter().flatten() {
            collect_types(alternative, root, left, types);
        }
    }
}

/// A file's text, or what stdin brings for `-`.
fn file(path: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match path {
        "-" => std::io::stdin().lock().read_to_string(&mut text).map(|_| ()),
        path => std::fs::read_to_string(path).map(|content| text = content),
    };
    let from = if path == "-" { "stdin" } else { path };
    read.map_err(|error| match error.kind() {
        // It was read, and is nothing that could be JSON.
        ErrorKind::InvalidData => {
            Failure::unreadable_arguments(format!("the arguments from {from} are no UTF-8 text"))
        }
        _ => Failure::usage(format!("cannot read the arguments from {from}: {error}")),
    })?;
    Ok(text)
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(words: &[&str], schema: &str) -> String {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let arguments = Arguments::read(&words, None).unwrap();
        let schema = RawValue::from_string(schema.to_owned()).unwrap();
        arguments.into_json(Some(&schema)).unwrap().get().to_owned()
    }

    fn failure(words: &[&str], object: Option<&str>) -> (u8, String) {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let failure = Arguments::read(&words, object).expect_err("unreadable");
        (failure.exit, failure.error.message)
    }

    const SCHEMA: &str = r##"{"properties":{
        "n":{"type":"integer"},"ratio":{"type":["number","null"]},"on":{"type":"boolean"},
        "tags":{"type":"array"},"text":{"type":"string"},"either":{"type":["string","integer"]},
        "by_ref":{"$ref":"#/$defs/count"},"maybe":{"anyOf":[{"$ref":"#/$defs/count"},{"type":"null"}]},
        "loop":{"$ref":"#/properties/loop"},"nothing":{"type":"null"}},
        "$defs":{"count":{"type":"integer"}}}"##;

    #[test]
    fn a_plain_value_takes_the_type_its_schema_declares() {
        assert_eq!(json(&["n=3", "on=true", "tags=[1, 2]"], SCHEMA), r#"{"n":3,"on":true,"tags":[1, 2]}"#);
        assert_eq!(
            json(&["ratio=1e3", "by_ref=4", "maybe=5"], SCHEMA),
            r#"{"ratio":1e3,"by_ref":4,"maybe":5}"#
        );
    }

    #[test]
    fn a_value_that_could_be_a_string_stays_one() {
        assert_eq!(
            json(&["text=3", "either=3", "unknown=3"], SCHEMA),
            r#"{"text":"3","either":"3","unknown":"3"}"#
        );
        assert_eq!(json(&["n=three", "n2= 3", "loop=3"], SCHEMA), r#"{"n":"three","n2":" 3","loop":"3"}"#);
        assert_eq!(json(&["ratio=null", "nothing=null"], SCHEMA), r#"{"ratio":"null","nothing":null}"#);
    }

    #[test]
    fn digits_are_kept_exactly() {
        let big = "9007199254740993.00000000000000000001";
        assert_eq!(json(&[&format!("ratio={big}")], SCHEMA), format!(r#"{{"ratio":{big}}}"#));
        assert_eq!(json(&["x:=18446744073709551617"], "{}"), r#"{"x":18446744073709551617}"#);
    }

    #[test]
    fn only_the_first_equals_sign_divides_and_keys_may_hold_anything_else() {
        assert_eq!(
            json(&["query=a=b:=c", "a:b=1", "城市=北京"], "{}"),
            r#"{"query":"a=b:=c","a:b":"1","城市":"北京"}"#
        );
    }

    #[test]
    fn files_are_read_as_text_as_json_or_as_the_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        std::fs::write(&path, "{\"a\": 1.10}\n").unwrap();
        let path = path.display();
        assert_eq!(json(&[&format!("k=@{path}")], "{}"), r#"{"k":"{\"a\": 1.10}\n"}"#);
        assert_eq!(json(&[&format!("k:=@{path}")], "{}"), r#"{"k":{"a": 1.10}}"#);
        assert_eq!(json(&[&format!("@{path}"), "b=x"], "{}"), r#"{"a":1.10,"b":"x"}"#);
    }

    #[test]
    fn a_key_given_twice_is_refused_wherever_it_was_given() {
        assert_eq!(failure(&["a=1", "a:=2"], None).0, 2);
        assert_eq!(failure(&["a=1"], Some(r#"{"a":2}"#)).0, 2);
        assert!(failure(&[], Some(r#"{"a":2,"a":3}"#)).1.contains("\"a\" is given twice"));
    }

    #[test]
    fn what_is_no_argument_is_named() {
        assert_eq!(
            failure(&["hello"], None),
            (2, "\"hello\" is no argument: expected key=value, key:=json, key=@file or @file".to_owned())
        );
        assert_eq!(failure(&["=x"], None).0, 2);
        assert_eq!(failure(&["@/no/such/file"], None).0, 2);
        let binary = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(binary.path(), b"{\"a\": \"\xff\"}").unwrap();
        for word in ["", "a=", "a:="] {
            let (exit, message) = failure(&[&format!("{word}@{}", binary.path().display())], None);
            assert!(exit == 3 && message.contains("no UTF-8"), "{word:?}: {message}");
        }
        let (exit, message) = failure(&["a:=nope"], None);
        assert!(exit == 3 && message.contains("\"a\" is no JSON"), "{message}");
        assert_eq!(failure(&[], Some("[1]")).0, 3);
    }

    #[test]
    fn the_schema_is_asked_for_only_where_it_decides() {
        let need = |word: &str| Arguments::read(&[word.to_owned()], None).unwrap().need_schema();
        assert!(need("n=3") && need("on=false") && need("o={}"));
        assert!(!need("id=TK-1") && !need("n:=3") && !need("flag=nothing") && !need("empty="));
    }
}
