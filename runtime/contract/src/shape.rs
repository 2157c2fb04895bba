//! What is known of every object and list of a value: the keys it may have, and what is sensitive.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::document::{pointer_segment, unescaped};
use crate::gather;
use crate::nearest::nearest;

/// The objects and lists a schema describes, each with what its schemas say together.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    pub(crate) all: Vec<Shape>,
    /// Which of them the value as a whole has.
    pub(crate) root: Inner,
}

/// The number of a shape; `None` where nothing is known.
pub(crate) type Inner = Option<usize>;

/// What is known of one value.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    /// Whether a key that is not declared is an error.
    pub(crate) closed: bool,
    /// Whether the whole value is never shown.
    pub(crate) sensitive: bool,
    /// Whether something within it is never shown.
    pub(crate) guarded: bool,
    pub(crate) members: BTreeMap<String, Inner>,
    pub(crate) patterns: Vec<Pattern>,
    /// What keys are that are neither named nor of a pattern.
    pub(crate) rest: Inner,
    /// The first items of a list, one by one.
    pub(crate) prefix: Vec<Inner>,
    pub(crate) items: Inner,
}

/// Keys that are declared by what they look like.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) validator: Validator,
    pub(crate) inner: Inner,
}

/// A key that nobody declared.
pub(crate) struct UnknownKey<'v, 's> {
    /// A JSON Pointer to the object that has it.
    pub(crate) parent: String,
    pub(crate) key: &'v str,
    pub(crate) value: &'v Value,
    /// The keys declared there.
    pub(crate) known: Vec<&'s str>,
    /// The patterns of further keys declared there.
    pub(crate) patterns: Vec<&'s str>,
    /// The keys that object has.
    pub(crate) present: &'v Map<String, Value>,
}

/// What a key leads to.
pub(crate) enum Declared {
    /// Somebody said what it is.
    Yes(Inner),
    /// Nobody named it.
    No,
}

impl Shapes {
    /// Gathers the shapes of a schema that has passed the checks of [`crate::schema`].
    pub(crate) fn of(schema: &Value) -> Shapes {
        gather::shapes(schema)
    }

    pub(crate) fn get(&self, inner: Inner) -> Option<&Shape> {
        inner.and_then(|index| self.all.get(index))
    }

    /// Whether a value has no key that nobody declared.
    pub(crate) fn admit(&self, value: &Value) -> bool {
        self.admits(self.root, value)
    }

    fn admits(&self, inner: Inner, value: &Value) -> bool {
        let Some(shape) = self.get(inner) else { return true };
        match value {
            Value::Object(members) => members.iter().all(|(key, value)| match shape.members.get(key) {
                Some(inner) => self.admits(*inner, value),
                None => match self.declared(shape, key) {
                    Declared::Yes(inner) => self.admits(inner, value),
                    Declared::No => !shape.closed,
                },
            }),
            Value::Array(items) if shape.items.is_some() || !shape.prefix.is_empty() => {
                items.iter().enumerate().all(|(index, item)| self.admits(shape.item(index), item))
            }
            Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }

    /// What a key of an object of this shape is.
    pub(crate) fn declared(&self, shape: &Shape, key: &str) -> Declared {
        if let Some(inner) = shape.members.get(key) {
            return Declared::Yes(*inner);
        }
        let mut matching = None;
        let hides = |inner: Inner| self.get(inner).is_some_and(|shape| shape.sensitive || shape.guarded);
        for pattern in &shape.patterns {
            let tells_more = matching.is_none_or(|known| !hides(known) && hides(pattern.inner));
            if tells_more && pattern.matches(key) {
                matching = Some(pattern.inner);
            }
        }
        match matching {
            Some(inner) => Declared::Yes(inner),
            None if shape.rest.is_some() => Declared::Yes(shape.rest),
            None => Declared::No,
        }
    }

    /// Whether a key at this JSON Pointer is one that nobody declared and that is refused for it.
    pub(crate) fn refuse(&self, pointer: &str) -> bool {
        let mut at = self.root;
        for segment in pointer.split('/').skip(1) {
            let Some(shape) = self.get(at) else { return false };
            let name = unescaped(segment);
            at = match (self.declared(shape, &name), name.parse()) {
                (Declared::Yes(inner), _) => inner,
                (Declared::No, Ok(index)) if shape.is_list() => shape.item(index),
                (Declared::No, _) => return shape.closed,
            };
        }
        false
    }

    /// Every key of a value that nobody declared, in the order they stand there.
    pub(crate) fn unknown_keys<'v, 's>(&'s self, value: &'v Value) -> Vec<UnknownKey<'v, 's>> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), self.root, value)];
        while let Some((path, inner, value)) = open.pop() {
            let Some(shape) = self.get(inner) else { continue };
            match value {
                Value::Object(members) => {
                    for (key, value) in members {
                        match self.declared(shape, key) {
                            Declared::Yes(inner) => {
                                open.push((format!("{path}/{}", pointer_segment(key)), inner, value));
                            }
                            Declared::No if shape.closed => found.push(UnknownKey {
                                parent: path.clone(),
                                key,
                                value,
                                known: shape.members.keys().map(String::as_str).collect(),
                                patterns: shape.patterns.iter().map(|keys| keys.text.as_str()).collect(),
                                present: members,
                            }),
                            Declared::No => {}
                        }
                    }
                }
                Value::Array(items) => {
                    for (index, item) in items.iter().enumerate().rev() {
                        open.push((format!("{path}/{index}"), shape.item(index), item));
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        found
    }

    /// Whether anything a schema describes is never to be shown.
    pub(crate) fn has_sensitive(&self) -> bool {
        self.get(self.root).is_some_and(|shape| shape.sensitive || shape.guarded)
    }

    /// What is to be hidden of the value at a JSON Pointer.
    pub(crate) fn hiding(&self, pointer: &str) -> Hiding {
        let mut at = self.entered(self.root);
        let mut path = String::new();
        for segment in pointer.split('/').skip(1) {
            let name = unescaped(segment);
            let shown = match at {
                Step::Hidden(inner) => {
                    self.get(inner).is_some_and(|shape| shape.members.contains_key(name.as_ref()))
                }
                Step::Into(_) => true,
            };
            path.push('/');
            path.push_str(if shown { segment } else { HIDDEN });
            at = match (at, self.step(at.inner(), &name)) {
                (Step::Hidden(_), next) => Step::Hidden(next.inner()),
                (Step::Into(_), next) => next,
            };
        }
        let whole = matches!(at, Step::Hidden(_));
        let within = self.get(at.inner()).is_some_and(|shape| shape.guarded);
        Hiding { whole, within, path }
    }

    fn step(&self, inner: Inner, name: &str) -> Step {
        let Some(shape) = self.get(inner) else { return Step::Into(None) };
        match name.parse() {
            Ok(index) if shape.is_list() && !shape.members.contains_key(name) => {
                self.entered(shape.item(index))
            }
            _ => self.member(shape, name),
        }
    }

    /// A value of this shape, as one that is shown or not.
    pub(crate) fn entered(&self, inner: Inner) -> Step {
        match self.get(inner) {
            Some(shape) if shape.sensitive => Step::Hidden(inner),
            _ => Step::Into(inner),
        }
    }

    /// Where a member of an object of this shape leads.
    pub(crate) fn member(&self, shape: &Shape, key: &str) -> Step {
        match self.declared(shape, key) {
            Declared::Yes(inner) => self.entered(inner),
            Declared::No if self.may_be_misspelt(shape, key) => Step::Hidden(None),
            Declared::No => Step::Into(None),
        }
    }

    /// Whether a key nobody declared may be a sensitive one misspelt.
    fn may_be_misspelt(&self, shape: &Shape, key: &str) -> bool {
        let hidden = |inner: &Inner| self.get(*inner).is_some_and(|shape| shape.sensitive);
        let mut names = shape.members.iter().filter(|(_, inner)| hidden(inner)).map(|(name, _)| name);
        if shape.closed { names.next().is_some() } else { nearest(key, names.map(String::as_str)).is_some() }
    }
}

/// What stands for a value that is not shown.
pub(crate) const HIDDEN: &str = "***";

/// Where a step into a value leads.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// To a value of this shape.
    Into(Inner),
    /// To one that is never shown.
    Hidden(Inner),
}

impl Step {
    fn inner(self) -> Inner {
        match self {
            Step::Into(inner) | Step::Hidden(inner) => inner,
        }
    }
}

/// What is to be hidden at one place.
pub(crate) struct Hiding {
    /// The whole value.
    pub(crate) whole: bool,
    /// Something within it.
    pub(crate) within: bool,
    /// The place itself, keys nobody declared within something sensitive left out.
    pub(crate) path: String,
}

impl Shape {
    /// What the item at this place of a list is.
    pub(crate) fn item(&self, index: usize) -> Inner {
        self.prefix.get(index).copied().unwrap_or(self.items)
    }

    /// Whether something is known of its keys.
    pub(crate) fn is_object(&self) -> bool {
        !self.members.is_empty() || !self.patterns.is_empty() || self.rest.is_some()
    }

    /// Whether something is known of its items.
    pub(crate) fn is_list(&self) -> bool {
        !self.prefix.is_empty() || self.items.is_some()
    }
}

impl Pattern {
    /// Whether a key is one of these.
    pub(crate) fn matches(&self, key: &str) -> bool {
        self.validator.is_valid(&Value::String(key.to_owned()))
    }
}
