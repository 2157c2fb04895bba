//! Which branch of an `anyOf` or `oneOf` was obviously meant by a value that fits none.

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

use crate::document::{Document, Located};
use crate::words;

/// Further alternatives are named up to this many characters.
const ASIDE_MAX_CHARS: usize = 120;

/// What can be told of a value that fits no alternative.
pub(crate) enum Meant<'a> {
    /// This alternative was meant.
    Branch {
        /// Which one.
        index: usize,
        /// The key that told it apart from the others, and what it may be elsewhere.
        told_by: Option<(&'a str, Vec<&'a Value>)>,
    },
    /// The key that tells the alternatives apart is missing or has no value that any of them knows.
    Key {
        /// Its name.
        name: &'a str,
        /// What the alternatives know.
        options: Vec<&'a Value>,
    },
    /// Every alternative only misses keys: `order_id`, or `user_id`.
    Keys(Vec<String>),
    /// It cannot be told; these are the ones of the right kind.
    Unclear(Vec<usize>),
}

/// One `anyOf` or `oneOf` with what is wrong with the value in each of its branches.
pub(crate) struct Alternatives<'a, 'e> {
    pub(crate) document: &'e Document<'a>,
    pub(crate) branches: &'e [Located<'a>],
    pub(crate) errors: &'e [Vec<ValidationError<'static>>],
    pub(crate) value: &'e Value,
    /// Where the value is.
    pub(crate) path: &'e str,
}

impl<'a> Alternatives<'a, '_> {
    /// Finds the branch that was meant: by type, by a telling key, by the keys given, by fewest problems.
    pub(crate) fn meant(&self) -> Meant<'a> {
        let all: Vec<usize> = (0..self.branches.len().min(self.errors.len())).collect();
        let mut open: Vec<usize> = all.iter().copied().filter(|index| self.is_of_kind(*index)).collect();
        if open.is_empty() {
            return Meant::Unclear(all);
        }
        let mut told_by = None;
        if let Value::Object(given) = self.value {
            for name in self.telling_names(&open) {
                let Some(value) = given.get(name) else { continue };
                let fits = |index: &usize| self.tags(*index, name).is_none_or(|tags| tags.contains(&value));
                let fitting: Vec<usize> = open.iter().copied().filter(fits).collect();
                if fitting.is_empty() {
                    return Meant::Key { name, options: self.options(&open, name) };
                }
                if fitting.len() < open.len() {
                    let others = self.options(&open, name).into_iter().filter(|other| *other != value);
                    told_by = Some((name, others.collect()));
                    open = fitting;
                }
            }
        }
        if let Some(index) = self.best(&open) {
            let told_by = told_by.or_else(|| self.absent_key(&open, index));
            return Meant::Branch { index, told_by };
        }
        let missing = self.missing_key(&open).or_else(|| self.only_missing(&open).map(Meant::Keys));
        missing.unwrap_or(Meant::Unclear(open))
    }

    /// Whether the value is of the kind that a branch is about.
    fn is_of_kind(&self, index: usize) -> bool {
        let scalar = !self.value.is_object() && !self.value.is_array();
        let here = self.errors[index].iter().filter(|error| error.instance_path().as_str() == self.path);
        !here.map(|error| error.kind()).any(|kind| match kind {
            Kind::Type { .. } | Kind::FalseSchema => true,
            Kind::Constant { .. } | Kind::Enum { .. } => scalar && self.branches.len() > 1,
            _ => false,
        })
    }

    /// The keys that each branch misses, where that is all that is wrong in any of them.
    fn only_missing(&self, open: &[usize]) -> Option<Vec<String>> {
        let missing = |index: &usize| {
            let names = self.errors[*index].iter().map(|error| match error.kind() {
                Kind::Required { property } if error.instance_path().as_str() == self.path => {
                    property.as_str()
                }
                _ => None,
            });
            let names: Option<Vec<&str>> = names.collect();
            names.filter(|names| !names.is_empty()).map(|names| names.join(" and "))
        };
        open.iter().map(missing).collect()
    }

    /// Names of keys for which at least two branches ask for certain values, and not for the same.
    fn telling_names(&self, open: &[usize]) -> Vec<&'a str> {
        let mut names: Vec<&'a str> = Vec::new();
        for index in open {
            let parts = self.document.together(self.branches[*index]);
            let properties = parts.iter().filter_map(|part| part.value.get("properties")?.as_object());
            for name in properties.flat_map(Map::keys) {
                if !names.contains(&name.as_str()) && self.tells_apart(open, name) {
                    names.push(name);
                }
            }
        }
        names
    }

    fn tells_apart(&self, open: &[usize], name: &str) -> bool {
        let tags: Vec<Vec<&Value>> = open.iter().filter_map(|index| self.tags(*index, name)).collect();
        let count: usize = tags.iter().map(Vec::len).sum();
        let distinct: BTreeSet<String> = tags.iter().flatten().map(|tag| tag.to_string()).collect();
        tags.len() > 1 && distinct.len() == count
    }

    /// The values that a branch asks for under a key.
    fn tags(&self, index: usize, name: &str) -> Option<Vec<&'a Value>> {
        let parts = self.document.together(self.branches[index]);
        let declared =
            parts.iter().filter_map(|part| Some(part.child(part.value.get("properties")?.get(name)?)));
        declared.flat_map(|schema| self.document.together(schema)).find_map(|schema| {
            let only = schema.value.get("const").map(|only| vec![only]);
            only.or_else(|| Some(schema.value.get("enum")?.as_array()?.iter().collect()))
        })
    }

    fn options(&self, open: &[usize], name: &str) -> Vec<&'a Value> {
        open.iter().filter_map(|index| self.tags(*index, name)).flatten().collect()
    }

    /// The only branch left, or the only one that fits best.
    fn best(&self, open: &[usize]) -> Option<usize> {
        if let [only] = open {
            return Some(*only);
        }
        let score = |index: &usize| (self.matching(*index), std::cmp::Reverse(self.errors[*index].len()));
        let best = open.iter().max_by_key(|index| score(index))?;
        let alone = open.iter().filter(|index| score(index) == score(best)).count() == 1;
        let tells = match self.value {
            Value::Object(_) => self.matching(*best) > 0,
            Value::Array(_) => true,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        (alone && tells).then_some(*best)
    }

    /// How many of the keys given a branch declares.
    fn matching(&self, index: usize) -> usize {
        let Value::Object(given) = self.value else { return 0 };
        let parts = self.document.together(self.branches[index]);
        let declares = |name: &str| {
            parts.iter().any(|part| part.value.get("properties").is_some_and(|all| all.get(name).is_some()))
        };
        given.keys().filter(|name| declares(name)).count()
    }

    /// The key that would tell the branches apart, where all of them ask for it and it is not there.
    fn missing_key(&self, open: &[usize]) -> Option<Meant<'a>> {
        let name = self.absent_name(open)?;
        Some(Meant::Key { name, options: self.options(open, name) })
    }

    fn absent_name(&self, open: &[usize]) -> Option<&'a str> {
        let given = self.value.as_object()?;
        self.telling_names(open).into_iter().find(|name| {
            !given.contains_key(*name) && open.iter().all(|index| self.tags(*index, name).is_some())
        })
    }

    /// The key that would have told a branch, and what it may be in the others.
    fn absent_key(&self, open: &[usize], meant: usize) -> Option<(&'a str, Vec<&'a Value>)> {
        let name = self.absent_name(open)?;
        let others: Vec<usize> = open.iter().copied().filter(|index| *index != meant).collect();
        Some((name, self.options(&others, name)))
    }

    /// The other branches, briefly.
    pub(crate) fn others(&self, meant: usize) -> String {
        let others = self.branches.iter().enumerate().filter(|(index, _)| *index != meant);
        let others: Vec<Located<'a>> = others.map(|(_, branch)| *branch).collect();
        clipped(&words::alternatives_of(&others, self.document))
    }
}

/// By which key a branch was told, and what that may be elsewhere.
pub(crate) fn told_in_words(name: &str, value: Option<&Value>, others: &[&Value]) -> String {
    let others: Vec<String> = others.iter().map(|other| words::plain(other)).collect();
    let elsewhere = format!("{name} may also be {}", others.join(", "));
    match value {
        Some(value) => clipped(&format!("when {name} is {}; {elsewhere}", words::plain(value))),
        None => clipped(&elsewhere),
    }
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(ASIDE_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
