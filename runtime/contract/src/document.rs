//! A schema document: its subschemas by keyword, and what its references point to.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Keywords whose value is one schema that sees another value than the schema around it.
const DEEPER_ONE: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "items",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const DEEPER_LIST: &[&str] = &["items", "prefixItems"];
const DEEPER_MAP: &[&str] = &["$defs", "definitions", "patternProperties", "properties"];

/// Keywords whose schemas see the very value that the schema around them sees.
const IN_PLACE_ONE: &[&str] = &["else", "if", "not", "then"];
const IN_PLACE_LIST: &[&str] = &["allOf", "anyOf", "oneOf"];
const IN_PLACE_MAP: &[&str] = &["dependencies", "dependentSchemas"];

/// Keywords that stand for another schema.
const REFERENCES: &[&str] = &["$dynamicRef", "$ref"];

/// A schema within its document, and the root of the resource it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) value: &'a Value,
    base: &'a Value,
}

/// The whole document with an index of its identifiers.
pub(crate) struct Document<'a> {
    root: &'a Value,
    ids: HashMap<&'a str, &'a Value>,
    anchors: HashMap<&'a str, Vec<Located<'a>>>,
}

/// Why a reference leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// It leaves the document.
    External,
    /// Nothing in the document is called that.
    Missing,
}

impl<'a> Document<'a> {
    /// Indexes a document; everything in it counts, also where no keyword leads.
    pub(crate) fn new(root: &'a Value) -> Document<'a> {
        let mut document = Document { root, ids: HashMap::new(), anchors: HashMap::new() };
        let mut open = vec![Located { value: root, base: root }];
        while let Some(at) = open.pop() {
            match at.value {
                Value::Object(members) => {
                    let here = at.entered();
                    document.index(here, members);
                    open.extend(members.values().map(|value| Located { value, base: here.base }));
                }
                Value::Array(items) => {
                    open.extend(items.iter().map(|value| Located { value, base: at.base }));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        document
    }

    fn index(&mut self, here: Located<'a>, members: &'a Map<String, Value>) {
        let text = |key| members.get(key).and_then(Value::as_str);
        if let Some(id) = text("$id") {
            match id.strip_prefix('#') {
                Some(anchor) => self.anchors.entry(anchor).or_default().push(here),
                None => drop(self.ids.insert(id.trim_end_matches('#'), here.value)),
            }
        }
        for anchor in [text("$anchor"), text("$dynamicAnchor")].into_iter().flatten() {
            self.anchors.entry(anchor).or_default().push(here);
        }
    }

    pub(crate) fn root(&self) -> Located<'a> {
        Located { value: self.root, base: self.root }
    }

    /// The schema that `schema` stands for, where all it does is refer to another.
    pub(crate) fn target(&self, schema: &'a Value) -> &'a Value {
        /// More references in a row than a compiled schema can have.
        const HOPS_MAX: usize = 32;
        let mut at = Located { value: schema, base: self.root };
        for _ in 0..HOPS_MAX {
            let says_more = at.members().is_some_and(|members| members.contains_key("type"));
            let Some(reference) = at.references().next().filter(|_| !says_more) else { break };
            let found = self.resolve(at, reference).unwrap_or_default();
            let Some(target) = found.first() else { break };
            at = *target;
        }
        at.value
    }

    /// What a reference at `from` may stand for; more than one only where anchors repeat.
    pub(crate) fn resolve(&self, from: Located<'a>, reference: &str) -> Result<Vec<Located<'a>>, Unresolved> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = if address.is_empty() {
            from.entered().base
        } else {
            self.ids.get(address).copied().ok_or(Unresolved::External)?
        };
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            let mut found: Vec<Located<'a>> = walk(base, &fragment).into_iter().collect();
            // Also from the document's root, in case the two understandings of a base differ.
            if !std::ptr::eq(base, self.root) && address.is_empty() {
                found.extend(walk(self.root, &fragment));
            }
            return if found.is_empty() { Err(Unresolved::Missing) } else { Ok(found) };
        }
        self.anchors.get(fragment.as_str()).cloned().ok_or(Unresolved::Missing)
    }
}

impl<'a> Located<'a> {
    /// The same schema as one that its own references start from.
    fn entered(self) -> Located<'a> {
        let opens = self.value.get("$id").and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'));
        Located { value: self.value, base: if opens { self.value } else { self.base } }
    }

    /// Its members, where it is an object.
    pub(crate) fn members(self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    /// One member as a schema of its own.
    pub(crate) fn child(self, value: &'a Value) -> Located<'a> {
        Located { value, base: self.entered().base }
    }

    /// The texts of its `$ref` and `$dynamicRef`.
    pub(crate) fn references(self) -> impl Iterator<Item = &'a str> {
        let members = self.members();
        REFERENCES.iter().filter_map(move |keyword| members?.get(*keyword)?.as_str())
    }

    /// The schemas written inside it that see the same value.
    pub(crate) fn in_place(self) -> Vec<Located<'a>> {
        self.gather(IN_PLACE_ONE, IN_PLACE_LIST, IN_PLACE_MAP)
    }

    /// The schemas written inside it that see another value.
    pub(crate) fn deeper(self) -> Vec<Located<'a>> {
        self.gather(DEEPER_ONE, DEEPER_LIST, DEEPER_MAP)
    }

    fn gather(self, one: &[&str], list: &[&str], map: &[&str]) -> Vec<Located<'a>> {
        let Some(members) = self.members() else { return Vec::new() };
        let values = |keywords: &[&str]| -> Vec<&'a Value> {
            keywords.iter().filter_map(|keyword| members.get(*keyword)).collect()
        };
        let single = values(one).into_iter();
        let listed = values(list).into_iter().filter_map(Value::as_array).flatten();
        let mapped = values(map).into_iter().filter_map(Value::as_object).flat_map(Map::values);
        single
            .chain(listed)
            .chain(mapped)
            .filter(|value| is_schema(value))
            .map(|value| self.child(value))
            .collect()
    }
}

/// Whether a value can be a schema at all.
pub(crate) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// Escapes one name for a JSON Pointer (RFC 6901).
pub(crate) fn pointer_segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn walk<'a>(base: &'a Value, pointer: &str) -> Option<Located<'a>> {
    let mut at = Located { value: base, base };
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        let value = match at.value {
            Value::Object(members) => members.get(&name)?,
            Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        at = at.child(value);
    }
    Some(at)
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = (bytes[index] == b'%').then(|| text.get(index + 1..index + 3)).flatten();
        match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                index += 3;
            }
            None => {
                decoded.push(bytes[index]);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
