//! What a validator found wrong, as problems a caller can act on.

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use plugd_protocol::error::ArgumentProblem;
use serde_json::Value;

use crate::document::{Document, pointer_segment};
use crate::nearest::nearest;
use crate::shape::{Shapes, UnknownKey};
use crate::words;

/// So many problems are named; an answer stays readable whatever was sent.
const PROBLEMS_MAX: usize = 100;

/// The keyword under which a key nobody declared is reported, whatever found it.
const UNKNOWN_KEY: &str = "additionalProperties";

/// Names everything wrong with a value that was found not valid.
pub(crate) fn collect(
    validator: &Validator,
    shapes: &Shapes,
    schema: &Value,
    value: &Value,
) -> Vec<ArgumentProblem> {
    let document = Document::new(schema);
    let mut found = Found { schema, document: &document, problems: Vec::new(), keys: Vec::new() };
    // One more than is shown is looked for, to know whether there are more.
    for error in validator.iter_errors(value).take(PROBLEMS_MAX + 1) {
        found.error(&error);
    }
    for unknown in shapes.unknown_keys(value).into_iter().take(PROBLEMS_MAX + 1) {
        found.unknown(&unknown);
    }
    found.pair_missing_with_unknown();
    found.finish()
}

/// A key that is missing or too many, to be paired with its counterpart.
struct Key {
    problem: usize,
    parent: String,
    name: String,
    missing: bool,
}

struct Found<'a, 'd> {
    schema: &'a Value,
    document: &'d Document<'a>,
    problems: Vec<ArgumentProblem>,
    keys: Vec<Key>,
}

impl<'a> Found<'a, '_> {
    fn error(&mut self, error: &ValidationError<'_>) {
        let path = error.instance_path().to_string();
        match error.kind() {
            Kind::Required { property } => {
                self.missing(error, &path, property.as_str().unwrap_or_default());
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                for key in unexpected {
                    self.unexpected(error, &path, key);
                }
            }
            Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } | Kind::OneOfMultipleValid { .. } => {
                self.alternatives(error, path);
            }
            Kind::PropertyNames { error: inner } => {
                let expected = format!("keys that are {}", self.expected(inner));
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
                self.push(path, &keyword, self.expected(error), got, suggestion);
            }
        }
    }

    fn missing(&mut self, error: &ValidationError<'_>, parent: &str, name: &str) {
        let property = self.around(error).and_then(|schema| schema.get("properties")?.get(name));
        let expected = property.map_or("a value".to_owned(), |schema| words::expected(schema, self.document));
        let path = format!("{parent}/{}", pointer_segment(name));
        self.key(parent, name, true);
        self.push(path, "required", expected, None, None);
    }

    fn unexpected(&mut self, error: &ValidationError<'_>, parent: &str, name: &str) {
        let instance = error.instance();
        let (Some(present), Some(value)) = (instance.as_object(), instance.get(name)) else { return };
        let properties = self.around(error).and_then(|schema| schema.get("properties")?.as_object());
        let known = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
        let known = known.collect();
        self.unknown(&UnknownKey { parent: parent.to_owned(), key: name, value, known, present });
    }

    fn unknown(&mut self, unknown: &UnknownKey<'_, '_>) {
        let path = format!("{}/{}", unknown.parent, pointer_segment(unknown.key));
        if self.problems.iter().any(|problem| problem.path == path && problem.problem == UNKNOWN_KEY) {
            return;
        }
        let expected = match unknown.known.as_slice() {
            [] => "no key of this name".to_owned(),
            known => format!("only the keys {}", known.join(", ")),
        };
        let free = unknown.known.iter().copied().filter(|known| !unknown.present.contains_key(*known));
        let suggestion = nearest(unknown.key, free).map(str::to_owned);
        self.key(&unknown.parent, unknown.key, false);
        self.push(path, UNKNOWN_KEY, expected, Some(words::given(unknown.value)), suggestion);
    }

    fn alternatives(&mut self, error: &ValidationError<'_>, path: String) {
        let keyword = error.kind().keyword().to_owned();
        let branches: &'a [Value] = self
            .around(error)
            .and_then(|schema| schema.get(&keyword)?.as_array())
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut expected = words::alternatives_of(branches, self.document);
        if matches!(error.kind(), Kind::OneOfMultipleValid { .. }) {
            expected = format!("only one of these: {expected}");
        }
        let about_keys = branches.iter().all(|branch| words::only_required(branch).is_some());
        let got = (!about_keys).then(|| words::given(error.instance()));
        let option = nearest_constant(error.instance(), branches);
        self.push(path, &keyword, expected, got, option);
    }

    /// What the schema around an error asks for.
    fn expected(&self, error: &ValidationError<'_>) -> String {
        match error.kind() {
            Kind::FalseSchema => "nothing here: the schema allows no value".to_owned(),
            Kind::Not { schema } => format!("anything but {}", words::plain_schema(schema)),
            Kind::Contains => "an array with at least one item of the kind the schema names".to_owned(),
            _ => match self.around(error) {
                Some(schema) => words::expected(schema, self.document),
                None => words::clip_sentence(&error.to_string()),
            },
        }
    }

    /// The schema that holds the keyword which failed.
    fn around(&self, error: &ValidationError<'_>) -> Option<&'a Value> {
        let path = error.schema_path().as_str();
        self.schema.pointer(path.strip_suffix(error.kind().keyword())?.strip_suffix('/')?)
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

fn nearest_option(given: &Value, options: &Value) -> Option<String> {
    let names = options.as_array()?.iter().filter_map(Value::as_str);
    nearest(given.as_str()?, names).map(str::to_owned)
}

/// The nearest of the texts that `const` branches name.
fn nearest_constant(given: &Value, branches: &[Value]) -> Option<String> {
    let names = branches.iter().filter_map(|branch| branch.get("const")?.as_str());
    nearest(given.as_str()?, names).map(str::to_owned)
}
