//! The keys each object of the arguments may have, gathered once from the schema.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use crate::document::{Document, Located, pointer_segment};

/// So many different objects of one schema are looked at; further ones may have any key.
const SHAPES_MAX: usize = 1_000;

/// The keys of every object a schema describes.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    all: Vec<Shape>,
    /// Which of them the arguments as a whole have; `None` where nothing is known of any key.
    root: Option<usize>,
}

/// What is known of one object or list.
#[derive(Debug, Default)]
struct Shape {
    /// Whether a key that is not among `members` is an error.
    closed: bool,
    members: BTreeMap<String, Option<usize>>,
    items: Option<usize>,
}

/// A key that nobody declared.
pub(crate) struct UnknownKey<'v, 's> {
    /// A JSON Pointer to the object that has it.
    pub(crate) parent: String,
    pub(crate) key: &'v str,
    pub(crate) value: &'v Value,
    /// The keys declared there.
    pub(crate) known: Vec<&'s str>,
    /// The keys that object has.
    pub(crate) present: &'v Map<String, Value>,
}

impl Shapes {
    /// Gathers the shapes of a schema that has passed the checks of [`crate::schema`].
    pub(crate) fn of(schema: &Value) -> Shapes {
        let document = Document::new(schema);
        let mut gathering = Gathering { document: &document, indices: HashMap::new(), open: VecDeque::new() };
        let root = gathering.index_of(vec![document.root()]);
        let mut all: Vec<Shape> = Vec::new();
        while let Some(branches) = gathering.open.pop_front() {
            all.push(gathering.shape(&branches));
        }
        Shapes { all, root }
    }

    /// Whether a value has no key that nobody declared.
    pub(crate) fn admit(&self, value: &Value) -> bool {
        self.admits(self.root, value)
    }

    fn admits(&self, shape: Option<usize>, value: &Value) -> bool {
        let Some(shape) = shape.and_then(|index| self.all.get(index)) else { return true };
        match value {
            Value::Object(members) => members.iter().all(|(key, value)| match shape.members.get(key) {
                Some(inner) => self.admits(*inner, value),
                None => !shape.closed,
            }),
            Value::Array(items) if shape.items.is_some() => {
                items.iter().all(|item| self.admits(shape.items, item))
            }
            _ => true,
        }
    }

    /// Every key of a value that nobody declared, in the order they stand there.
    pub(crate) fn unknown_keys<'v, 's>(&'s self, value: &'v Value) -> Vec<UnknownKey<'v, 's>> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), self.root, value)];
        while let Some((path, shape, value)) = open.pop() {
            let Some(shape) = shape.and_then(|index| self.all.get(index)) else { continue };
            match value {
                Value::Object(members) => {
                    for (key, value) in members {
                        match shape.members.get(key) {
                            Some(inner) => {
                                open.push((format!("{path}/{}", pointer_segment(key)), *inner, value));
                            }
                            None if shape.closed => found.push(UnknownKey {
                                parent: path.clone(),
                                key,
                                value,
                                known: shape.members.keys().map(String::as_str).collect(),
                                present: members,
                            }),
                            None => {}
                        }
                    }
                }
                Value::Array(items) => {
                    for (index, item) in items.iter().enumerate().rev() {
                        open.push((format!("{path}/{index}"), shape.items, item));
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        found
    }
}

/// Shapes being gathered: each set of schemas that apply together gets one.
struct Gathering<'d, 'a> {
    document: &'d Document<'a>,
    indices: HashMap<Vec<*const Value>, usize>,
    open: VecDeque<Branches<'a>>,
}

/// The schemas that look at one value together.
struct Branches<'a> {
    schemas: Vec<Located<'a>>,
    /// Whether some alternative takes any object at all.
    takes_anything: bool,
}

impl<'a> Gathering<'_, 'a> {
    /// The number of the shape of what these schemas describe, `None` where that says nothing.
    fn index_of(&mut self, schemas: Vec<Located<'a>>) -> Option<usize> {
        let branches = self.flattened(schemas);
        let telling = |schema: &Located<'a>| {
            schema.members().is_some_and(|members| {
                members.contains_key("properties") || members.get("items").is_some_and(Value::is_object)
            })
        };
        if !branches.schemas.iter().any(telling) {
            return None;
        }
        let mut key: Vec<*const Value> =
            branches.schemas.iter().map(|schema| std::ptr::from_ref(schema.value)).collect();
        key.sort_unstable();
        if let Some(&index) = self.indices.get(&key) {
            return Some(index);
        }
        let index = self.indices.len();
        if index >= SHAPES_MAX {
            return None;
        }
        self.indices.insert(key, index);
        self.open.push_back(branches);
        Some(index)
    }

    /// These schemas with all that apply to the same value through them.
    fn flattened(&self, schemas: Vec<Located<'a>>) -> Branches<'a> {
        let mut flat = Branches { schemas: Vec::new(), takes_anything: false };
        let mut seen: HashSet<*const Value> = HashSet::new();
        let mut open = schemas;
        while let Some(here) = open.pop() {
            if !seen.insert(std::ptr::from_ref(here.value)) {
                continue;
            }
            flat.schemas.push(here);
            for reference in here.references() {
                open.extend(self.document.resolve(here, reference).unwrap_or_default());
            }
            let Some(members) = here.members() else { continue };
            for keyword in ["anyOf", "oneOf", "allOf"] {
                for branch in members.get(keyword).and_then(Value::as_array).into_iter().flatten() {
                    flat.takes_anything |= keyword != "allOf" && takes_any_object(branch);
                    open.push(here.child(branch));
                }
            }
            for keyword in ["if", "then", "else"] {
                open.extend(members.get(keyword).map(|branch| here.child(branch)));
            }
            let dependent = members.get("dependentSchemas").and_then(Value::as_object);
            open.extend(dependent.into_iter().flat_map(Map::values).map(|branch| here.child(branch)));
        }
        flat
    }

    fn shape(&mut self, branches: &Branches<'a>) -> Shape {
        let mut inner: BTreeMap<&'a str, Vec<Located<'a>>> = BTreeMap::new();
        let mut items = Vec::new();
        let mut open = branches.takes_anything;
        for schema in &branches.schemas {
            let Some(members) = schema.members() else { continue };
            open |= allows_further_keys(members);
            for (name, property) in members.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                inner.entry(name).or_default().push(schema.child(property));
            }
            items.extend(
                members.get("items").filter(|items| items.is_object()).map(|item| schema.child(item)),
            );
        }
        Shape {
            closed: !open && !inner.is_empty(),
            members: inner
                .into_iter()
                .map(|(name, schemas)| (name.to_owned(), self.index_of(schemas)))
                .collect(),
            items: self.index_of(items),
        }
    }
}

/// Whether a schema says expressly that other keys than it lists may be there.
fn allows_further_keys(members: &Map<String, Value>) -> bool {
    let says_more = |keyword: &str| members.get(keyword).is_some_and(|value| value != &Value::Bool(false));
    says_more("additionalProperties") || says_more("unevaluatedProperties") || says_more("patternProperties")
}

/// Whether an alternative takes objects and says nothing of their keys.
fn takes_any_object(branch: &Value) -> bool {
    let silent = |key: &String| matches!(key.as_str(), "type" | "title" | "description");
    match branch {
        Value::Bool(anything) => *anything,
        Value::Object(members) => {
            members.keys().all(silent) && members.get("type").is_none_or(|kind| kind == "object")
        }
        _ => false,
    }
}
