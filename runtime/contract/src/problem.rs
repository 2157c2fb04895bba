//! What a validator found wrong, as problems a caller can act on.

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use plugd_protocol::error::ArgumentProblem;
use serde_json::Value;

use crate::contract::Contract;
use crate::cost::{self, Bearable};
use crate::document::{Document, Located, pointer_segment};
use crate::meant::{Alternatives, Meant, told_in_words};
use crate::nearest::nearest;
use crate::place::Place;
use crate::shape::{Shapes, UnknownKey};
use crate::words;

/// So many problems are named; an answer stays readable whatever was sent.
const PROBLEMS_MAX: usize = 100;

/// The keyword under which a key nobody declared is reported, whatever found it.
const UNKNOWN_KEY: &str = "additionalProperties";

/// Names everything wrong with a value that was found not valid.
///
/// `filled` has pointers to what nobody wrote: a key that lies there may be one that was misspelt.
pub(crate) fn collect(
    contract: &Contract,
    value: &Value,
    filled: &HashSet<String>,
    keys_count: bool,
) -> Vec<ArgumentProblem> {
    let document = Document::new(&contract.schema);
    let closed = keys_count.then_some(&contract.shapes);
    let (problems, keys) = (Vec::new(), Vec::new());
    let mut found = Found { document: &document, filled, closed, problems, keys, asides: 0 };
    // One more than is shown is looked for, to know whether there are more.
    match cost::of(&document, value) {
        Bearable::Everything => {
            for error in contract.validator.iter_errors(value).take(PROBLEMS_MAX + 1) {
                found.error(&error);
            }
        }
        Bearable::First => {
            if let Err(error) = contract.validator.validate(value) {
                found.error(&error);
            }
        }
        Bearable::Nothing if contract.validator.is_valid(value) => {}
        Bearable::Nothing => found.too_intricate(),
    }
    let unknown = if keys_count { contract.shapes.unknown_keys(value) } else { Vec::new() };
    for unknown in unknown.iter().take(PROBLEMS_MAX + 1) {
        found.unknown(unknown);
    }
    found.pair_missing_with_unknown();
    let mut problems = found.finish();
    contract.conceal(&mut problems);
    problems
}

/// A key that is missing or too many, to be paired with its counterpart.
struct Key {
    problem: usize,
    parent: String,
    name: String,
    missing: bool,
}

struct Found<'a, 'd> {
    document: &'d Document<'a>,
    /// Where defaults were filled in.
    filled: &'d HashSet<String>,
    /// Where keys that nobody declared are refused.
    closed: Option<&'d Shapes>,
    problems: Vec<ArgumentProblem>,
    keys: Vec<Key>,
    /// How many times the other alternatives were named.
    asides: usize,
}

impl<'a> Found<'a, '_> {
    fn error(&mut self, error: &ValidationError<'_>) {
        let path = error.instance_path().to_string();
        let place = Place::of(error, self.document);
        match error.kind() {
            Kind::Required { property } => {
                self.missing(&place, &path, property.as_str().unwrap_or_default());
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for key in unexpected {
                    self.unexpected(error, &place, &path, key);
                }
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.alternatives(error, &place, path, context);
            }
            Kind::OneOfMultipleValid { .. } => self.several(error, &place, path),
            Kind::PropertyNames { error: inner } => {
                let place = Place::of(inner, self.document);
                let expected = format!("keys that are {}", self.expected(inner, &place));
                let got = inner.instance().as_str().map(|name| format!("key {name:?}"));
                self.push(path, "propertyNames", expected, got, None);
            }
            kind => {
                let suggestion = match kind {
                    Kind::Enum { options } => nearest_option(error.instance(), options),
                    _ => None,
                };
                let got = Some(words::given(error.instance()));
                let keyword = kind.keyword().to_owned();
                self.push(path, &keyword, self.expected(error, &place), got, suggestion);
            }
        }
    }

    fn missing(&mut self, place: &Place<'a>, parent: &str, name: &str) {
        let property = place.property(self.document, name);
        let path = format!("{parent}/{}", pointer_segment(name));
        let refused = self.closed.is_some_and(|shapes| shapes.refuse(&path));
        let expected = match property.as_slice() {
            _ if refused => "what cannot be given: it is required and not declared".to_owned(),
            [] => "a value".to_owned(),
            schemas => words::expected_of(schemas, self.document),
        };
        self.key(parent, name, true);
        self.push(path, "required", expected, None, None);
    }

    fn unexpected(&mut self, error: &ValidationError<'_>, place: &Place<'a>, parent: &str, name: &str) {
        let instance = error.instance();
        let (Some(present), Some(value)) = (instance.as_object(), instance.get(name)) else { return };
        if let Some(schema) = place.keyword().filter(|schema| schema.value.is_object()) {
            let path = format!("{parent}/{}", pointer_segment(name));
            let expected = words::expected_of(&[schema], self.document);
            return self.push(path, error.kind().keyword(), expected, Some(words::given(value)), None);
        }
        let listed = |keyword: &str| {
            let around = place.schemas().into_iter().flat_map(|schema| self.document.together(schema));
            let keys = around.filter_map(|schema| schema.value.get(keyword)?.as_object());
            let mut keys: Vec<&'a str> = keys.flat_map(|keys| keys.keys().map(String::as_str)).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let (known, patterns) = (listed("properties"), listed("patternProperties"));
        self.unknown(&UnknownKey { parent: parent.to_owned(), key: name, value, known, patterns, present });
    }

    fn unknown(&mut self, unknown: &UnknownKey<'_, '_>) {
        let at = |key: &str| format!("{}/{}", unknown.parent, pointer_segment(key));
        let path = at(unknown.key);
        if self.problems.iter().any(|problem| problem.path == path && problem.problem == UNKNOWN_KEY) {
            return;
        }
        let expected = match (unknown.known.as_slice(), unknown.patterns.as_slice()) {
            ([], []) if unknown.parent.is_empty() => "no arguments: none are taken".to_owned(),
            ([], []) => "no keys: there are none".to_owned(),
            (known, []) => format!("only the keys {}", known.join(", ")),
            ([], patterns) => format!("only keys matching {}", patterns.join(" or ")),
            (known, patterns) => {
                format!("only the keys {} and keys matching {}", known.join(", "), patterns.join(" or "))
            }
        };
        let is_free = |key: &&str| !unknown.present.contains_key(*key) || self.filled.contains(&at(key));
        let free = unknown.known.iter().copied().filter(is_free);
        let suggestion = nearest(unknown.key, free).map(str::to_owned);
        self.key(&unknown.parent, unknown.key, false);
        self.push(path, UNKNOWN_KEY, expected, Some(words::given(unknown.value)), suggestion);
    }

    /// What is wrong in the branch that was meant, or which alternatives there are.
    fn alternatives(
        &mut self,
        error: &ValidationError<'_>,
        place: &Place<'a>,
        path: String,
        errors: &[Vec<ValidationError<'static>>],
    ) {
        let branches = branches(place);
        let value = error.instance().as_ref();
        if branches.len() != errors.len() {
            let expected = "a value that fits one of the alternatives".to_owned();
            return self.push(path, error.kind().keyword(), expected, Some(words::given(value)), None);
        }
        let asked = Alternatives { document: self.document, branches: &branches, errors, value, path: &path };
        let keyword = error.kind().keyword().to_owned();
        match asked.meant() {
            Meant::Branch { index, told_by } => {
                let (first, aside) = (self.problems.len(), self.asides);
                errors[index].iter().for_each(|error| self.error(error));
                // Of alternatives within one another the innermost are named.
                if let Some(problem) = self.problems.get_mut(first).filter(|_| self.asides == aside) {
                    self.asides += 1;
                    let others = asked.others(index);
                    problem.expected.push_str(&match told_by {
                        Some((name, other)) if !other.is_empty() => {
                            format!(" ({})", told_in_words(name, value.get(name), &other))
                        }
                        _ if others.is_empty() => String::new(),
                        _ if problem.path == path => format!(", or {others}"),
                        _ if others == "null" => String::new(),
                        _ => format!(" (or else {others})"),
                    });
                }
            }
            Meant::Key { name, options } => {
                let expected = words::one_of(options.iter().copied());
                let given = value.get(name);
                let names = options.iter().filter_map(|option| option.as_str());
                let near = given.and_then(|given| nearest(given.as_str()?, names)).map(str::to_owned);
                let problem = if given.is_some() { "enum" } else { "required" };
                if given.is_none() {
                    self.key(&path, name, true);
                }
                let path = format!("{path}/{}", pointer_segment(name));
                self.push(path, problem, expected, given.map(words::given), near);
            }
            Meant::Keys(keys) => self.push(path, &keyword, keys.join(" or "), None, None),
            Meant::Unclear(likely) => {
                let likely: Vec<Located<'a>> = likely.into_iter().map(|index| branches[index]).collect();
                let expected = words::alternatives_of(&likely, self.document);
                let option = nearest_constant(value, &branches);
                self.push(path, &keyword, expected, Some(words::given(value)), option);
            }
        }
    }

    /// A value that fits more than one branch of a `oneOf`.
    fn several(&mut self, error: &ValidationError<'_>, place: &Place<'a>, path: String) {
        let branches = branches(place);
        let about_keys = branches.iter().all(|branch| words::only_required(branch.value).is_some());
        let got = (!about_keys).then(|| words::given(error.instance()));
        let alternatives = words::alternatives_of(&branches, self.document);
        self.push(path, error.kind().keyword(), format!("only one of these: {alternatives}"), got, None);
    }

    /// What the schemas around an error ask for.
    fn expected(&self, error: &ValidationError<'_>, place: &Place<'a>) -> String {
        match error.kind() {
            Kind::FalseSchema => "nothing here: the schema allows no value".to_owned(),
            Kind::Not { schema } => format!("anything but {}", words::plain_schema(schema)),
            Kind::Contains => self.contained(place),
            Kind::AdditionalItems { limit } => format!("no more than {limit} items"),
            Kind::UnevaluatedItems { .. } => "no more items than the schema names".to_owned(),
            _ => match place.schemas().as_slice() {
                [] => words::clip_sentence(&error.masked().to_string()),
                schemas => words::expected_of(schemas, self.document),
            },
        }
    }

    fn contained(&self, place: &Place<'a>) -> String {
        let said = |keyword: &str| place.innermost()?.value.get(keyword);
        let least = said("minContains").map_or("1".to_owned(), Value::to_string);
        let most = said("maxContains").map(|most| format!(" and at most {most}"));
        let kind = place.innermost().and_then(|schema| Some(schema.child(schema.value.get("contains")?)));
        let kind = kind.map(|kind| words::expected_of(&[kind], self.document));
        let items = if least == "1" && most.is_none() { "item" } else { "items" };
        format!(
            "an array with at least {least}{} {items} being {}",
            most.unwrap_or_default(),
            kind.as_deref().unwrap_or("what the schema names")
        )
    }

    fn too_intricate(&mut self) {
        let expected = "a value the schema allows; its alternatives lie too deep within one another to say \
                        which was meant";
        self.push(String::new(), "schema", expected.to_owned(), None, None);
    }

    fn push(
        &mut self,
        path: String,
        problem: &str,
        expected: String,
        got: Option<String>,
        suggestion: Option<String>,
    ) {
        self.problems.push(ArgumentProblem { path, problem: problem.to_owned(), expected, got, suggestion });
    }

    fn key(&mut self, parent: &str, name: &str, missing: bool) {
        let problem = self.problems.len();
        self.keys.push(Key { problem, parent: parent.to_owned(), name: name.to_owned(), missing });
    }

    /// A key that is missing beside one that is too many is most likely the same key: the one
    /// that is too many says so.
    fn pair_missing_with_unknown(&mut self) {
        for missing in self.keys.iter().filter(|key| key.missing) {
            let beside: Vec<&Key> =
                self.keys.iter().filter(|key| !key.missing && key.parent == missing.parent).collect();
            let also_missing =
                self.keys.iter().filter(|key| key.missing && key.parent == missing.parent).count();
            let near = nearest(&missing.name, beside.iter().map(|key| key.name.as_str()));
            let only = match beside.as_slice() {
                [only] if also_missing == 1 => Some(only.name.as_str()),
                _ => None,
            };
            let Some(counterpart) = near.or(only) else { continue };
            for unknown in beside.iter().filter(|key| key.name == counterpart) {
                self.problems[unknown.problem].suggestion.get_or_insert_with(|| missing.name.clone());
            }
        }
    }

    /// The problems, each once, and no more than anybody reads.
    fn finish(self) -> Vec<ArgumentProblem> {
        let mut problems: Vec<ArgumentProblem> = Vec::new();
        for problem in self.problems {
            let said = |earlier: &ArgumentProblem| {
                earlier.path == problem.path
                    && earlier.expected == problem.expected
                    && earlier.got == problem.got
            };
            if problems.iter().any(said) {
                continue;
            }
            if problems.len() == PROBLEMS_MAX {
                problems.push(ArgumentProblem {
                    path: String::new(),
                    problem: "more".to_owned(),
                    expected: format!("the first {PROBLEMS_MAX} problems to be mended before more are named"),
                    got: None,
                    suggestion: None,
                });
                break;
            }
            problems.push(problem);
        }
        problems
    }
}

/// The branches of the `anyOf` or `oneOf` that failed at a place.
fn branches<'a>(place: &Place<'a>) -> Vec<Located<'a>> {
    let Some(listed) = place.keyword() else { return Vec::new() };
    listed.value.as_array().into_iter().flatten().map(|branch| listed.child(branch)).collect()
}

fn nearest_option(given: &Value, options: &Value) -> Option<String> {
    let names = options.as_array()?.iter().filter_map(Value::as_str);
    nearest(given.as_str()?, names).map(str::to_owned)
}

/// The nearest of the texts that `const` branches name.
fn nearest_constant(given: &Value, branches: &[Located<'_>]) -> Option<String> {
    let names = branches.iter().filter_map(|branch| branch.value.get("const")?.as_str());
    nearest(given.as_str()?, names).map(str::to_owned)
}
