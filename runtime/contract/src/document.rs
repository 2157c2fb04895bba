//! A schema document: its subschemas by keyword, and what its references point to.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use jsonschema::{Uri, uri};
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

/// Identifiers of the schemas that describe schemas; the validator knows them by heart.
const META_SCHEMAS: &[&str] =
    &["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema"];

/// A schema within its document, and the root of the resource it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) value: &'a Value,
    base: &'a Value,
    /// Whether draft-07 is spoken here, where an `$id` beside a `$ref` counts for nothing.
    draft7: bool,
}

/// The whole document with an index of its identifiers.
pub(crate) struct Document<'a> {
    root: Located<'a>,
    /// The absolute identifier of each resource, by the address of its root.
    uris: HashMap<*const Value, Uri<String>>,
    resources: HashMap<String, &'a Value>,
    /// What each anchor names, by the resource it belongs to.
    anchors: HashMap<(*const Value, &'a str), Located<'a>>,
    /// What a dynamic reference may come to mean.
    dynamic: HashMap<&'a str, Vec<Located<'a>>>,
}

/// Why a reference leads nowhere in the document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unresolved {
    /// It leaves the document.
    External,
    /// Nothing in the document is called that.
    Missing,
    /// It names a schema of JSON Schema itself, which the validator has and which never leads back.
    Meta,
}

impl<'a> Document<'a> {
    /// Indexes a document; what keywords lead to counts before what merely stands there.
    pub(crate) fn new(root: &'a Value) -> Document<'a> {
        let root = Located { value: root, base: root, draft7: speaks_draft7(root) };
        let mut document = Document {
            root,
            uris: HashMap::new(),
            resources: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
        };
        document.name_root();
        let mut seen: HashSet<*const Value> = HashSet::new();
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            document.index(at, &mut seen);
            open.extend(at.in_place().into_iter().chain(at.deeper()));
        }
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            document.index(at, &mut seen);
            match at.value {
                Value::Object(members) => open.extend(members.values().map(|value| at.child(value))),
                Value::Array(items) => open.extend(items.iter().map(|value| at.child(value))),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        document
    }

    fn name_root(&mut self) {
        let id = self.root.value.get("$id").and_then(Value::as_str).unwrap_or("");
        if let Ok(uri) = uri::from_str(id).or_else(|_| uri::from_str("")) {
            let uri = uri.strip_fragment().to_owned();
            self.name(self.root.value, uri);
        }
    }

    fn name(&mut self, resource: &'a Value, uri: Uri<String>) {
        self.resources.entry(uri.as_str().to_owned()).or_insert(resource);
        self.uris.entry(std::ptr::from_ref(resource)).or_insert(uri);
    }

    fn index(&mut self, at: Located<'a>, seen: &mut HashSet<*const Value>) {
        let Some(members) = at.members() else { return };
        if !seen.insert(std::ptr::from_ref(at.value)) {
            return;
        }
        let text = |key| members.get(key).and_then(Value::as_str);
        let here = at.entered();
        let base = std::ptr::from_ref(here.base);
        if let Some(id) = text("$id") {
            let (address, anchor) = id.split_once('#').unwrap_or((id, ""));
            if std::ptr::eq(here.base, at.value)
                && let Some(uri) = self.absolute(at.base, address)
            {
                self.name(at.value, uri);
            }
            if !anchor.is_empty() {
                self.anchors.entry((base, anchor)).or_insert(here);
            }
        }
        for anchor in [text("$anchor"), text("$dynamicAnchor")].into_iter().flatten() {
            self.anchors.entry((base, anchor)).or_insert(here);
        }
        if let Some(anchor) = text("$dynamicAnchor") {
            self.dynamic.entry(anchor).or_default().push(here);
        }
    }

    /// An address as seen from a resource, made absolute.
    fn absolute(&self, base: &'a Value, address: &str) -> Option<Uri<String>> {
        let base = self.uris.get(&std::ptr::from_ref(base)).or(self.uris.get(&self.root_address()))?;
        uri::resolve_against(&base.borrow(), address).ok()
    }

    fn root_address(&self) -> *const Value {
        std::ptr::from_ref(self.root.value)
    }

    pub(crate) fn root(&self) -> Located<'a> {
        self.root
    }

    /// A part of the document as a schema that belongs to the document's own resource.
    pub(crate) fn at(&self, value: &'a Value) -> Located<'a> {
        Located { value, ..self.root }
    }

    /// A schema with those that hold whenever it does: behind `$ref` and in `allOf`; itself first.
    pub(crate) fn together(&self, schema: Located<'a>) -> Vec<Located<'a>> {
        let mut found: Vec<Located<'a>> = Vec::new();
        let mut open = VecDeque::from([schema]);
        while let Some(here) = open.pop_front() {
            if found.iter().any(|seen| std::ptr::eq(seen.value, here.value)) {
                continue;
            }
            found.push(here);
            for reference in here.references() {
                open.extend(self.resolve(here, reference).unwrap_or_default());
            }
            let all = here.value.get("allOf").and_then(Value::as_array).into_iter().flatten();
            open.extend(all.map(|branch| here.child(branch)));
        }
        found
    }

    /// What a reference at `from` may stand for; more than one only where anchors are dynamic.
    pub(crate) fn resolve(&self, from: Located<'a>, reference: &str) -> Result<Vec<Located<'a>>, Unresolved> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let here = from.entered();
        let base = if address.is_empty() { here.base } else { self.resource(here.base, address)? };
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            let start = Located { value: base, base, draft7: from.draft7 };
            return start.walk(&fragment).map(|found| vec![found]).ok_or(Unresolved::Missing);
        }
        let anchored = self.anchors.get(&(std::ptr::from_ref(base), fragment.as_str()));
        let mut found: Vec<Located<'a>> = anchored.copied().into_iter().collect();
        for other in self.dynamic.get(fragment.as_str()).into_iter().flatten() {
            if !found.is_empty() && !found.iter().any(|known| std::ptr::eq(known.value, other.value)) {
                found.push(*other);
            }
        }
        if found.is_empty() { Err(Unresolved::Missing) } else { Ok(found) }
    }

    fn resource(&self, base: &'a Value, address: &str) -> Result<&'a Value, Unresolved> {
        let uri = self.absolute(base, address).ok_or(Unresolved::External)?;
        match self.resources.get(uri.as_str()) {
            Some(resource) => Ok(resource),
            None if META_SCHEMAS.contains(&uri.as_str()) => Err(Unresolved::Meta),
            None => Err(Unresolved::External),
        }
    }
}

/// Whether a schema says that it is written in draft-07; all others are 2020-12.
pub(crate) fn speaks_draft7(schema: &Value) -> bool {
    schema.get("$schema").and_then(Value::as_str).is_some_and(|name| name.contains("draft-07"))
}

impl<'a> Located<'a> {
    /// The same schema as one that its own references start from.
    fn entered(self) -> Located<'a> {
        let opens = self.value.get("$id").and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'));
        let ignored = self.draft7 && self.value.get("$ref").is_some();
        Located { base: if opens && !ignored { self.value } else { self.base }, ..self }
    }

    /// Its members, where it is an object.
    pub(crate) fn members(self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }

    fn walk(self, pointer: &str) -> Option<Located<'a>> {
        let mut at = self;
        for segment in pointer.split('/').skip(1) {
            let name = unescaped(segment);
            let value = match at.value {
                Value::Object(members) => members.get(name.as_ref())?,
                Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
            };
            at = at.child(value);
        }
        Some(at)
    }

    /// One member as a schema of its own.
    pub(crate) fn child(self, value: &'a Value) -> Located<'a> {
        Located { value, ..self.entered() }
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

    /// All schemas written inside it, each with the steps that lead there.
    pub(crate) fn written(self) -> Vec<(Vec<String>, Located<'a>)> {
        let mut found = Vec::new();
        let mut add = |steps: Vec<String>, value: &'a Value| {
            if is_schema(value) {
                found.push((steps, self.child(value)));
            }
        };
        for (key, value) in self.members().into_iter().flatten() {
            let is_in =
                |one: &[&str], other: &[&str]| one.contains(&key.as_str()) || other.contains(&key.as_str());
            match value {
                Value::Array(items) if is_in(DEEPER_LIST, IN_PLACE_LIST) => {
                    let items = items.iter().enumerate();
                    items.for_each(|(index, item)| add(vec![key.clone(), index.to_string()], item));
                }
                Value::Object(named) if is_in(DEEPER_MAP, IN_PLACE_MAP) => {
                    named.iter().for_each(|(name, value)| add(vec![key.clone(), name.clone()], value));
                }
                _ if is_in(DEEPER_ONE, IN_PLACE_ONE) => add(vec![key.clone()], value),
                _ => {}
            }
        }
        found
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

/// One segment of a JSON Pointer as the name it stands for.
pub(crate) fn unescaped(segment: &str) -> Cow<'_, str> {
    if segment.contains('~') {
        Cow::Owned(segment.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(segment)
    }
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
