//! A schema in the form that models are served with: an object at the root, references within it only.

use std::collections::VecDeque;
use std::mem;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::fold::Folded;
use crate::document::{Document, Located, is_schema};

/// Keywords that mean nothing where a schema stands alone; definitions are written anew.
const DROPPED: &[&str] = &[
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$comment",
    "$defs",
    "definitions",
];

/// Keywords whose value is a schema, and may be a plain `true` or `false`.
const ONE: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LIST: &[&str] = &["allOf", "anyOf", "items", "oneOf", "prefixItems"];
const MAP: &[&str] = &["dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Keywords at which `true` and `false` are understood everywhere.
const BOOLEAN: &[&str] =
    &["additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"];

/// More references in a row are written by no person.
const HOPS_MAX: usize = 16;

/// What may stand at the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// An object with its properties; alternatives are folded into them.
    Plain,
    /// An object, alternatives included.
    Any,
}

/// The arguments of an operation as a model is to see them.
///
/// It allows whatever the schema allows, and where alternatives are folded, more: arguments are always
/// checked against the schema as it was declared.
pub(super) fn arguments(schema: &RawValue, root: Root) -> Value {
    let value: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    Rewriting::new(&value).object(root)
}

/// The data of an operation's answer, where that is an object.
pub(super) fn data(schema: &RawValue) -> Option<Value> {
    let value: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let rewriting = Rewriting::new(&value);
    let mut at = rewriting.document.root();
    for _ in 0..HOPS_MAX {
        let says_more = at.members().is_some_and(|members| members.contains_key("type"));
        let Some(reference) = at.references().next().filter(|_| !says_more) else { break };
        let Some(target) = rewriting.targets(at, reference).into_iter().next() else { break };
        at = target;
    }
    let is_object = match at.value.get("type") {
        Some(kind) => kind == "object",
        None => at.value.get("properties").is_some(),
    };
    is_object.then(|| rewriting.object(Root::Any))
}

/// A schema on its way into another form.
pub(super) struct Rewriting<'a> {
    document: Document<'a>,
    /// What was referred to, by its place in the document, and what it is called now.
    named: Vec<(Located<'a>, String)>,
    /// Of these, the ones that are not yet written.
    open: VecDeque<usize>,
}

impl<'a> Rewriting<'a> {
    fn new(schema: &'a Value) -> Rewriting<'a> {
        Rewriting { document: Document::new(schema), named: Vec::new(), open: VecDeque::new() }
    }

    fn object(mut self, root: Root) -> Value {
        let mut folded = Folded::default();
        let at = self.document.root();
        folded.take(&mut self, at, root);
        let mut written = folded.written();
        let definitions = self.definitions();
        if !definitions.is_empty() {
            written.insert("$defs".to_owned(), definitions.into());
        }
        written.into()
    }

    /// Writes what is referred to, and what that refers to.
    fn definitions(&mut self) -> Map<String, Value> {
        let mut definitions = Map::new();
        while let Some(next) = self.open.pop_front() {
            let (at, name) = self.named[next].clone();
            let written = self.copy(at);
            definitions.insert(name, written);
        }
        definitions
    }

    /// What a reference leads to.
    pub(super) fn targets(&self, from: Located<'a>, reference: &str) -> Vec<Located<'a>> {
        self.document.resolve(from, reference).unwrap_or_default()
    }

    /// A schema anywhere below the root.
    pub(super) fn copy(&mut self, at: Located<'a>) -> Value {
        let Some(members) = at.members() else {
            return if at.value == &Value::Bool(false) { json!({"not": {}}) } else { json!({}) };
        };
        let mut copied: Map<String, Value> =
            members.iter().filter_map(|(key, value)| self.member(at, key, value)).collect();
        let is_array = match copied.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            Some(kind) => kind == "array",
            None => false,
        };
        // Some refuse the whole list for an array that does not say of what.
        if is_array && !copied.contains_key("items") && !copied.contains_key("prefixItems") {
            copied.insert("items".to_owned(), json!({}));
        }
        copied.into()
    }

    /// One member of a schema, with the schemas in it copied.
    pub(super) fn member(&mut self, at: Located<'a>, key: &str, value: &'a Value) -> Option<(String, Value)> {
        let copied = match (key, value) {
            (key, _) if DROPPED.contains(&key) => return None,
            ("$ref" | "$dynamicRef", Value::String(reference)) => {
                let target = self.targets(at, reference).into_iter().next()?;
                return Some(("$ref".to_owned(), self.reference_to(target, reference).into()));
            }
            (key, Value::Bool(_)) if BOOLEAN.contains(&key) => value.clone(),
            (key, value) if ONE.contains(&key) && is_schema(value) => self.copy(at.child(value)),
            (key, Value::Array(items)) if LIST.contains(&key) => {
                items.iter().map(|item| self.copy(at.child(item))).collect()
            }
            (key, Value::Object(schemas)) if MAP.contains(&key) => {
                let copied = schemas.iter().map(|(name, schema)| {
                    // In `dependencies` a list of names may stand as well.
                    let copied = if is_schema(schema) { self.copy(at.child(schema)) } else { schema.clone() };
                    (name.clone(), copied)
                });
                Value::Object(copied.collect())
            }
            (_, value) => value.clone(),
        };
        Some((key.to_owned(), copied))
    }

    /// A reference from anywhere to a schema of the document, which is written among the definitions.
    fn reference_to(&mut self, target: Located<'a>, reference: &str) -> String {
        if std::ptr::eq(target.value, self.document.root().value) {
            return "#".to_owned();
        }
        let known = self.named.iter().find(|(known, _)| std::ptr::eq(known.value, target.value));
        let name = match known {
            Some((_, name)) => name.clone(),
            None => {
                let name = self.free_name(reference);
                self.open.push_back(self.named.len());
                self.named.push((target, name.clone()));
                name
            }
        };
        format!("#/$defs/{name}")
    }

    /// The last word of a reference, and a number where that is taken.
    fn free_name(&self, reference: &str) -> String {
        let last = reference.rsplit(['/', '#']).next().unwrap_or_default();
        let legal = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
        let mut word: String = last.chars().filter(legal).collect();
        if word.is_empty() {
            word.push_str("definition");
        }
        let taken = |name: &str| self.named.iter().any(|(_, known)| known == name);
        if !taken(&word) {
            return word;
        }
        let numbered = (2..=self.named.len() + 2).map(|number| format!("{word}_{number}"));
        numbered.into_iter().find(|name| !taken(name)).unwrap_or_default()
    }
}

/// The keys in the order that is read best; what else there is follows.
pub(super) fn ordered(mut members: Map<String, Value>, first: &[&str]) -> Map<String, Value> {
    let mut ordered = Map::new();
    for key in first {
        if let Some(value) = members.get_mut(*key) {
            ordered.insert((*key).to_owned(), mem::take(value));
        }
    }
    for (key, value) in members {
        ordered.entry(key).or_insert(value);
    }
    ordered
}
