//! Defaults of a schema, filled in where a value is absent.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::document::{Document, Located, is_schema, pointer_segment};

/// Objects within objects are filled this deeply; deeper ones are left as they are.
const FILLED_DEPTH_MAX: usize = 32;

/// So many defaults are filled in at most, whatever a schema multiplies.
const FILLED_MAX: usize = 10_000;

/// So many bytes of defaults are filled into the arguments of one call.
pub(crate) const FILLED_BYTES_MAX: usize = 1024 * 1024;

/// The configuration with the defaults of its schema filled in where a key is absent.
///
/// A nested object that is absent appears where its own defaults make it complete. Nothing given
/// is changed, and a schema that cannot be read fills nothing.
pub fn fill_defaults(schema: &RawValue, config: &Value) -> Value {
    let Ok(schema) = crate::schema::parse(schema) else { return config.clone() };
    let document = Document::new(&schema);
    let mut filling = Filling::new(&document, true);
    filling.filled(document.root(), config.clone(), FILLED_DEPTH_MAX)
}

/// Where a schema has defaults: what must be looked at before arguments run as they are.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    /// The keys of the arguments themselves that have one, with its JSON text.
    top: Vec<(String, String)>,
    /// Whether there are others, in nested values or behind alternatives.
    pub(crate) deeper: bool,
    /// Whether some count only where an alternative matches.
    pub(crate) conditional: bool,
}

impl Declared {
    pub(crate) fn of(schema: &Value) -> Declared {
        let document = Document::new(schema);
        let root = document.root();
        let mut top: Vec<(String, String)> = Vec::new();
        let mut below: Vec<Located<'_>> = Vec::new();
        for part in document.together(root) {
            let listed = part.value.get("properties").and_then(Value::as_object);
            for (name, property) in listed.into_iter().flatten() {
                let default = property.get("default");
                if let Some(default) = default.filter(|_| !top.iter().any(|(known, _)| known == name)) {
                    top.push((name.clone(), default.to_string()));
                }
                below.extend(onward(&document, part.child(property)));
            }
            below.extend(alternatives(part));
            let properties = |inner: &Located<'_>| {
                listed
                    .is_some_and(|listed| listed.values().any(|property| std::ptr::eq(property, inner.value)))
            };
            below.extend(inner(part).into_iter().filter(|inner| !properties(inner)));
        }
        let has_default = |schema: &Located<'_>| schema.value.get("default").is_some();
        let always = always(&document);
        Declared {
            top,
            deeper: reached(&document, below).iter().any(has_default),
            conditional: reached(&document, vec![root])
                .iter()
                .any(|schema| has_default(schema) && !always.contains(&std::ptr::from_ref(schema.value))),
        }
    }

    /// Whether there is nothing to fill in anywhere.
    pub(crate) fn is_empty(&self) -> bool {
        self.top.is_empty() && !self.deeper
    }

    /// The keys that these arguments lack of those with a default, and their defaults.
    pub(crate) fn lacking<'s>(&'s self, arguments: &Value) -> impl Iterator<Item = (&'s str, &'s str)> {
        let given = arguments.as_object();
        let lacking =
            move |(name, _): &&(String, String)| given.is_some_and(|given| !given.contains_key(name));
        self.top.iter().filter(lacking).map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

type Addresses = HashSet<*const Value>;

/// All schemas that defaults may come from, from these on.
fn reached<'a>(document: &Document<'a>, from: Vec<Located<'a>>) -> Vec<Located<'a>> {
    let mut found = Vec::new();
    let mut seen = Addresses::new();
    let mut open = from;
    while let Some(here) = open.pop() {
        if seen.insert(std::ptr::from_ref(here.value)) {
            found.push(here);
            open.extend(onward(document, here));
        }
    }
    found
}

/// The schemas a schema leads to: those that look at the same value, and those of what is in it.
fn onward<'a>(document: &Document<'a>, schema: Located<'a>) -> Vec<Located<'a>> {
    let mut found: Vec<Located<'a>> = document.together(schema).into_iter().skip(1).collect();
    found.extend(alternatives(schema));
    found.extend(inner(schema));
    found
}

/// The schemas that count whatever the arguments are.
fn always(document: &Document<'_>) -> Addresses {
    let mut seen = Addresses::new();
    let mut open = vec![document.root()];
    while let Some(here) = open.pop() {
        for part in document.together(here) {
            if seen.insert(std::ptr::from_ref(part.value)) {
                open.extend(inner(part));
            }
        }
    }
    seen
}

/// The schemas of what is in an object or a list.
fn inner(schema: Located<'_>) -> Vec<Located<'_>> {
    let Some(members) = schema.members() else { return Vec::new() };
    let mut found: Vec<&Value> = Vec::new();
    found.extend(members.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values));
    found.extend(members.get("additionalProperties"));
    for keyword in ["items", "prefixItems"] {
        match members.get(keyword) {
            Some(Value::Array(listed)) => found.extend(listed),
            Some(single) => found.push(single),
            None => {}
        }
    }
    found.into_iter().filter(|value| is_schema(value)).map(|value| schema.child(value)).collect()
}

/// A default for a key that some arguments lack.
pub(crate) struct Absent {
    /// A JSON Pointer to where it belongs.
    pub(crate) at: String,
    /// The JSON text of the default.
    pub(crate) text: String,
}

/// Finds the keys with defaults that arguments lack.
pub(crate) struct Search<'s, 'a> {
    filling: Filling<'s, 'a>,
    document: &'s Document<'a>,
    /// Whether an alternative matches the value at a pointer.
    holds: &'s dyn Fn(&Value, &str) -> bool,
    /// Where a default was filled in before, and not again.
    done: &'s HashSet<String>,
    found: Vec<Absent>,
    bytes_left: usize,
}

impl<'s, 'a> Search<'s, 'a> {
    pub(crate) fn new(
        document: &'s Document<'a>,
        holds: &'s dyn Fn(&Value, &str) -> bool,
        done: &'s HashSet<String>,
        bytes_left: usize,
    ) -> Search<'s, 'a> {
        let filling = Filling::new(document, false);
        Search { filling, document, holds, done, found: Vec::new(), bytes_left }
    }

    /// Looks through the arguments.
    pub(crate) fn through(&mut self, arguments: &Value) {
        self.walk(vec![self.document.root()], arguments, &mut String::new());
    }

    /// Looks for one key in what a schema at a JSON Pointer says of the object at another.
    pub(crate) fn key(&mut self, name: &str, schema: &'a Value, at: &str) {
        let schema = self.document.at(schema);
        let declaring = properties(self.document, schema).into_iter().filter(|(key, _)| *key == name);
        self.add(declaring.map(|(_, property)| property).collect(), &below(at, name));
    }

    pub(crate) fn found(self) -> Vec<Absent> {
        self.found
    }

    fn walk(&mut self, schemas: Vec<Located<'a>>, value: &Value, at: &mut String) {
        if self.done.contains(at.as_str()) {
            return;
        }
        let length = at.len();
        match value {
            Value::Object(members) => {
                let schemas = self.together(schemas, at);
                for (name, schemas) in of_keys(&schemas, members) {
                    let key = below(at, name);
                    match members.get(name) {
                        Some(value) => {
                            *at = key;
                            self.walk(schemas, value, at);
                            at.truncate(length);
                        }
                        None => self.add(schemas, &key),
                    }
                }
            }
            Value::Array(items) => {
                let schemas = self.together(schemas, at);
                for (index, item) in items.iter().enumerate() {
                    let schemas: Vec<Located<'a>> =
                        schemas.iter().filter_map(|schema| of_item(*schema, index)).collect();
                    if !schemas.is_empty() {
                        at.push_str(&format!("/{index}"));
                        self.walk(schemas, item, at);
                        at.truncate(length);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// These schemas with all that hold for the value: behind `$ref`, in `allOf`, and the
    /// alternatives that match.
    fn together(&self, schemas: Vec<Located<'a>>, at: &str) -> Vec<Located<'a>> {
        let mut found: Vec<Located<'a>> = Vec::new();
        let mut seen = Addresses::new();
        let mut open = schemas;
        open.reverse();
        while let Some(schema) = open.pop() {
            for here in self.document.together(schema) {
                if seen.insert(std::ptr::from_ref(here.value)) {
                    found.push(here);
                    let matching = alternatives(here).into_iter();
                    open.extend(matching.filter(|branch| (self.holds)(branch.value, at)));
                }
            }
        }
        found
    }

    fn add(&mut self, schemas: Vec<Located<'a>>, at: &str) {
        if self.bytes_left == 0 || self.done.contains(at) {
            return;
        }
        let mut defaults = schemas.into_iter();
        let default = defaults.find_map(|schema| self.filling.default_of(schema, FILLED_DEPTH_MAX));
        let Some(text) = default.map(|default| default.to_string()) else { return };
        match self.bytes_left.checked_sub(text.len()) {
            Some(left) => {
                self.bytes_left = left;
                self.found.push(Absent { at: at.to_owned(), text });
            }
            None => self.bytes_left = 0,
        }
    }
}

fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", pointer_segment(name))
}

/// The alternatives written inside a schema.
fn alternatives(schema: Located<'_>) -> Vec<Located<'_>> {
    let Some(members) = schema.members() else { return Vec::new() };
    let mut found: Vec<&Value> = Vec::new();
    for keyword in ["anyOf", "oneOf"] {
        found.extend(members.get(keyword).and_then(Value::as_array).into_iter().flatten());
    }
    found.extend(["then", "else"].iter().filter_map(|keyword| members.get(*keyword)));
    for keyword in ["dependentSchemas", "dependencies"] {
        found.extend(members.get(keyword).and_then(Value::as_object).into_iter().flat_map(Map::values));
    }
    found.into_iter().filter(|value| value.is_object()).map(|value| schema.child(value)).collect()
}

/// What these schemas say of each key of an object: those they list, and others that are there.
fn of_keys<'a, 'v>(
    schemas: &[Located<'a>],
    members: &'v Map<String, Value>,
) -> Vec<(&'v str, Vec<Located<'a>>)>
where
    'a: 'v,
{
    let mut keys: Vec<(&'v str, Vec<Located<'a>>)> = Vec::new();
    let mut places: HashMap<&'v str, usize> = HashMap::new();
    let mut add = |name: &'v str, schema: Located<'a>| {
        let place = *places.entry(name).or_insert(keys.len());
        match keys.get_mut(place) {
            Some((_, schemas)) => schemas.push(schema),
            None => keys.push((name, vec![schema])),
        }
    };
    for schema in schemas {
        let Some(said) = schema.members() else { continue };
        let listed = said.get("properties").and_then(Value::as_object);
        for (name, property) in listed.into_iter().flatten() {
            add(name, schema.child(property));
        }
        let rest = said.get("additionalProperties").filter(|_| !said.contains_key("patternProperties"));
        if let Some(rest) = rest.filter(|rest| rest.is_object()) {
            let others = members.keys().filter(|key| !listed.is_some_and(|listed| listed.contains_key(*key)));
            others.for_each(|key| add(key, schema.child(rest)));
        }
    }
    keys
}

/// What a schema says of one item of a list.
fn of_item(schema: Located<'_>, index: usize) -> Option<Located<'_>> {
    let members = schema.members()?;
    let listed = |keyword: &str| members.get(keyword)?.as_array()?.get(index);
    let item = listed("prefixItems").or_else(|| listed("items"));
    let item = item.or_else(|| members.get("items").filter(|items| items.is_object()))?;
    Some(schema.child(item))
}

struct Filling<'d, 'a> {
    document: &'d Document<'a>,
    /// Whether an absent object may be made up of its own defaults.
    makes_up: bool,
    /// The schemas whose default is being made up; one within itself has none.
    building: Vec<*const Value>,
    left: usize,
}

impl<'d, 'a> Filling<'d, 'a> {
    fn new(document: &'d Document<'a>, makes_up: bool) -> Filling<'d, 'a> {
        Filling { document, makes_up, building: Vec::new(), left: FILLED_MAX }
    }

    fn filled(&mut self, schema: Located<'a>, value: Value, depth: usize) -> Value {
        let Value::Object(mut members) = value else { return value };
        if depth == 0 {
            return Value::Object(members);
        }
        for (name, property) in properties(self.document, schema) {
            if let Some(given) = members.get_mut(name) {
                let inner = self.filled(property, given.take(), depth - 1);
                *given = inner;
            } else if let Some(default) = self.default_of(property, depth - 1) {
                members.insert(name.to_owned(), default);
            }
        }
        Value::Object(members)
    }

    /// What stands for an absent value: its default, or an object that its own defaults complete.
    fn default_of(&mut self, schema: Located<'a>, depth: usize) -> Option<Value> {
        let branches = self.document.together(schema);
        self.left = self.left.checked_sub(1)?;
        if branches.iter().any(|branch| self.building.contains(&std::ptr::from_ref(branch.value))) {
            return None;
        }
        let declared = branches.iter().find_map(|branch| branch.value.get("default")).cloned();
        let is_declared = declared.is_some();
        if !is_declared && !self.makes_up {
            return None;
        }
        let outer = self.building.len();
        self.building.extend(branches.iter().map(|branch| std::ptr::from_ref(branch.value)));
        let built = self.filled(schema, declared.unwrap_or_else(|| Value::Object(Map::new())), depth);
        self.building.truncate(outer);
        (is_declared || is_complete(&branches, &built)).then_some(built)
    }
}

/// Whether an object that was made up of defaults alone may stand there.
fn is_complete(branches: &[Located<'_>], built: &Value) -> bool {
    let Some(members) = built.as_object().filter(|members| !members.is_empty()) else { return false };
    let required = branches.iter().filter_map(|branch| branch.value.get("required")?.as_array()).flatten();
    required.filter_map(Value::as_str).all(|name| members.contains_key(name))
}

fn properties<'a>(document: &Document<'a>, schema: Located<'a>) -> Vec<(&'a str, Located<'a>)> {
    let mut found = Vec::new();
    for branch in document.together(schema) {
        let listed = branch.value.get("properties").and_then(Value::as_object);
        for (name, property) in listed.into_iter().flatten() {
            found.push((name.as_str(), branch.child(property)));
        }
    }
    found
}
