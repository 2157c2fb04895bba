//! What a schema must be before it is compiled: closed in itself, bounded, and without empty loops.

use std::collections::{HashMap, HashSet};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::document::{Document, Located, Unresolved, is_schema};
use crate::nearest::nearest;
use crate::words;

/// A schema may be nested this deeply; hand-written ones rarely pass 12.
pub(crate) const SCHEMA_DEPTH_MAX: usize = 64;

/// So many schemas in a row may look at one value (`$ref` to `allOf` to `$ref` …).
///
/// The validator recurses once for each, for every level of the arguments.
pub(crate) const IN_PLACE_DEPTH_MAX: usize = 24;

/// So many schemas altogether may look at one value; alternatives of alternatives multiply.
pub(crate) const IN_PLACE_MAX: usize = 4_096;

/// How deep a schema may become once its references are followed, each target counted once.
///
/// The compiler recurses that deep.
pub(crate) const UNFOLDED_DEPTH_MAX: usize = 512;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Neither an object nor a boolean.
    #[error("a schema is a JSON object such as {{\"type\": \"object\"}}; this is {found}")]
    NotASchema {
        /// What it is.
        found: String,
    },
    /// Nested or referenced too deeply.
    #[error("the schema is too deep: {what}, and at most {limit} are allowed")]
    TooDeep {
        /// What is too deep.
        what: String,
        /// How much would be allowed.
        limit: usize,
    },
    /// A reference leaves the schema.
    #[error(
        "the reference {reference:?} leaves the schema; nothing is fetched from the network or from files: put the definition under \"$defs\" and write {{\"$ref\": \"#/$defs/NAME\"}}"
    )]
    External {
        /// The reference.
        reference: String,
    },
    /// A reference to nothing.
    #[error("the reference {reference:?} points to nothing in the schema")]
    Dangling {
        /// The reference.
        reference: String,
    },
    /// A schema that means itself.
    #[error(
        "the reference {reference:?} leads back to itself without looking at anything deeper, so checking against it would never end"
    )]
    Loop {
        /// One reference on the loop.
        reference: String,
    },
    /// Another dialect of JSON Schema.
    #[error("the schema's \"$schema\" is {found:?}: write it in JSON Schema 2020-12 or draft-07")]
    Dialect {
        /// What it says it is.
        found: String,
    },
    /// A pattern that cannot be matched in linear time, or that is none.
    #[error("the pattern {pattern:?} at {at} cannot be used: {reason}")]
    Pattern {
        /// A JSON Pointer into the schema.
        at: String,
        /// The pattern.
        pattern: String,
        /// Why not, and what to write instead.
        reason: String,
    },
    /// Arguments are an object, and the schema allows none.
    #[error(
        "arguments are always one JSON object, and this schema allows none ({found}): write {{\"type\": \"object\", \"properties\": {{…}}}}"
    )]
    NoObject {
        /// What it allows instead.
        found: String,
    },
    /// No arguments can fit.
    #[error("{reason}")]
    NeverFits {
        /// What is required and would be refused.
        reason: String,
    },
    /// Not valid by the rules of JSON Schema itself.
    #[error("the schema is not valid{}: {message}", if at.is_empty() { String::new() } else { format!(" at {at}") })]
    Invalid {
        /// A JSON Pointer into the schema.
        at: String,
        /// What is wrong there.
        message: String,
    },
}

impl SchemaError {
    /// Why a schema that passed the checks here did not become a validator.
    pub(crate) fn unbuildable(error: &ValidationError<'_>) -> SchemaError {
        if let Some(misnamed) = misnamed_type(error) {
            return misnamed;
        }
        let at = error.instance_path().to_string();
        let is_pattern = match error.kind() {
            ValidationErrorKind::Format { format } => format == "regex",
            kind => kind.keyword() == "pattern",
        };
        match error.instance().as_str().filter(|_| is_pattern) {
            Some(pattern) => SchemaError::Pattern {
                at,
                pattern: words::clip(pattern),
                reason: crate::pattern::why_unusable(pattern),
            },
            None => SchemaError::Invalid { at, message: words::clip_sentence(&error.to_string()) },
        }
    }
}

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// What is wrong with a `type`, where that is what is wrong.
fn misnamed_type(error: &ValidationError<'_>) -> Option<SchemaError> {
    if error.schema_path().as_str().ends_with("/properties/type/anyOf") {
        return Some(not_a_type(error.instance_path().to_string(), error.instance()));
    }
    match error.kind() {
        // Draft-07 has alternatives where a schema may stand, or a list of them.
        ValidationErrorKind::AnyOf { context } => context.iter().flatten().find_map(misnamed_type),
        _ => None,
    }
}

/// A `type` that names none of the types, or no list of some of them.
fn not_a_type(at: String, written: &Value) -> SchemaError {
    let is_type = |one: &Value| one.as_str().is_some_and(|name| TYPES.contains(&name));
    let listed = written.as_array().map(Vec::as_slice).unwrap_or_default();
    let (at, wrong) = match listed.iter().position(|one| !is_type(one)) {
        Some(index) => (format!("{at}/{index}"), &listed[index]),
        None => (at, written),
    };
    let list = if wrong.is_array() { ", or a list of them, each once" } else { "" };
    let meant = wrong.as_str().and_then(meant_type);
    let meant = meant.map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
    let message = format!("expected one of {}{list}, got {}{meant}", TYPES.join(", "), words::given(wrong));
    SchemaError::Invalid { at, message }
}

/// The type that a misspelt name means, or one that other languages have for it.
fn meant_type(name: &str) -> Option<&'static str> {
    nearest(name, TYPES).or(match name.to_ascii_lowercase().as_str() {
        "int" | "long" => Some("integer"),
        "float" | "double" | "decimal" => Some("number"),
        "str" | "text" => Some("string"),
        "bool" => Some("boolean"),
        "list" | "tuple" => Some("array"),
        "dict" | "map" | "struct" => Some("object"),
        "none" | "nil" => Some("null"),
        _ => None,
    })
}

/// Parses a schema and refuses everything that could hurt whoever compiles or uses it.
pub(crate) fn parse(schema: &RawValue) -> Result<Value, SchemaError> {
    let too_deep = || SchemaError::TooDeep {
        what: "objects and lists are nested deeper than that".to_owned(),
        limit: SCHEMA_DEPTH_MAX,
    };
    let value: Value = serde_json::from_str(schema.get()).map_err(|error| {
        if error.to_string().starts_with("recursion limit") {
            return too_deep();
        }
        SchemaError::Invalid { at: String::new(), message: error.to_string() }
    })?;
    if !is_schema(&value) {
        return Err(SchemaError::NotASchema { found: words::given(&value) });
    }
    if depth(&value) > SCHEMA_DEPTH_MAX {
        return Err(too_deep());
    }
    check_dialect(&value)?;
    check_references(&value)?;
    Ok(value)
}

/// What a schema allows where it allows no object; none where one may fit, as far as that can be told.
pub(crate) fn instead_of_an_object(schema: &Value) -> Option<String> {
    /// References and alternatives in a row; deeper ones may be anything.
    const LOOKED_AT_MAX: usize = 16;
    let document = Document::new(schema);
    no_object(document.root(), &document, LOOKED_AT_MAX)
}

fn no_object(schema: Located<'_>, document: &Document<'_>, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let Some(members) = schema.members() else {
        return (schema.value == &Value::Bool(false)).then(|| "it is false".to_owned());
    };
    let is_object = |name: &Value| name == "object";
    let told =
        |key: &str| members.get(key).map(|value| format!("{key:?}: {}", words::clip(&value.to_string())));
    let refused = |key: &str| match (key, members.get(key)?) {
        ("type", Value::Array(names)) => Some(!names.iter().any(is_object)),
        ("type", name) => Some(!is_object(name)),
        ("enum", Value::Array(values)) => Some(!values.iter().any(Value::is_object)),
        (_, value) => Some(!value.is_object()),
    };
    if let Some(key) = ["type", "const", "enum"].into_iter().find(|key| refused(key) == Some(true)) {
        return told(key);
    }
    for reference in schema.references() {
        let targets = document.resolve(schema, reference).unwrap_or_default();
        if let [target] = targets.as_slice()
            && let Some(found) = no_object(*target, document, depth)
        {
            return Some(found);
        }
    }
    let branches = |key: &str| members.get(key).and_then(Value::as_array).into_iter().flatten();
    if let Some(found) = branches("allOf").find_map(|part| no_object(schema.child(part), document, depth)) {
        return Some(found);
    }
    ["anyOf", "oneOf"].into_iter().find_map(|key| {
        let none = |part: &Value| no_object(schema.child(part), document, depth);
        let found: Vec<Option<String>> = branches(key).map(none).collect();
        (!found.is_empty() && found.iter().all(Option::is_some)).then(|| told(key)).flatten()
    })
}

fn check_dialect(schema: &Value) -> Result<(), SchemaError> {
    let Some(declared) = schema.get("$schema") else { return Ok(()) };
    let text = declared.as_str().unwrap_or_default();
    let name = text.trim_end_matches('#').trim_start_matches("https").trim_start_matches("http");
    match name {
        "://json-schema.org/draft/2020-12/schema" | "://json-schema.org/draft-07/schema" => Ok(()),
        _ => Err(SchemaError::Dialect { found: declared.as_str().unwrap_or("no text").to_owned() }),
    }
}

/// How deeply a value is nested; a scalar or an empty schema is 1.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Object(members) => open.extend(members.values().map(|value| (value, depth + 1))),
            Value::Array(items) => open.extend(items.iter().map(|value| (value, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    deepest
}

/// One step from a schema to another that sees the same value.
struct Step {
    to: *const Value,
    /// The reference taken, where it was one.
    reference: Option<String>,
}

type Steps = HashMap<*const Value, Vec<Step>>;

fn check_references(root: &Value) -> Result<(), SchemaError> {
    let document = Document::new(root);
    let mut steps: Steps = HashMap::new();
    let mut targets: HashSet<*const Value> = HashSet::new();
    let mut unfolded = depth(root);
    let mut open = vec![document.root()];
    while let Some(here) = open.pop() {
        let address = std::ptr::from_ref(here.value);
        if steps.contains_key(&address) {
            continue;
        }
        let mut in_place = Vec::new();
        for inner in here.in_place() {
            in_place.push(Step { to: inner.value, reference: None });
            open.push(inner);
        }
        for reference in here.references() {
            for target in resolve(&document, here, reference)? {
                if targets.insert(target.value) {
                    unfolded += depth(target.value);
                }
                in_place.push(Step { to: target.value, reference: Some(reference.to_owned()) });
                open.push(target);
            }
        }
        steps.insert(address, in_place);
        open.extend(here.deeper());
    }
    if unfolded > UNFOLDED_DEPTH_MAX {
        let what = format!("with its references followed it is up to {unfolded} levels deep");
        return Err(SchemaError::TooDeep { what, limit: UNFOLDED_DEPTH_MAX });
    }
    check_loops(&steps)
}

fn resolve<'a>(
    document: &Document<'a>,
    from: Located<'a>,
    reference: &str,
) -> Result<Vec<Located<'a>>, SchemaError> {
    let reference_text = || reference.to_owned();
    let found = match document.resolve(from, reference) {
        Ok(found) => found,
        Err(Unresolved::Meta) => Vec::new(),
        Err(Unresolved::External) => return Err(SchemaError::External { reference: reference_text() }),
        Err(Unresolved::Missing) => return Err(SchemaError::Dangling { reference: reference_text() }),
    };
    match found.iter().find(|target| !is_schema(target.value)) {
        Some(_) => Err(SchemaError::Dangling { reference: reference.to_owned() }),
        None => Ok(found),
    }
}

/// How far and how wide the steps go on from a schema.
#[derive(Clone, Copy)]
struct Reach {
    chain: usize,
    total: usize,
}

impl Reach {
    fn over(onward: &[Step], known: &HashMap<*const Value, Reach>) -> Result<Reach, SchemaError> {
        let below = || onward.iter().filter_map(|step| known.get(&step.to));
        let reach = Reach {
            chain: below().map(|below| below.chain + 1).max().unwrap_or(0),
            total: below().fold(1, |total, below| total + below.total),
        };
        let limits = [
            (reach.chain, IN_PLACE_DEPTH_MAX, "more schemas in a row apply to one and the same value"),
            (reach.total, IN_PLACE_MAX, "more schemas altogether apply to one and the same value"),
        ];
        match limits.into_iter().find(|(is, limit, _)| is > limit) {
            Some((_, limit, what)) => Err(SchemaError::TooDeep { what: what.to_owned(), limit }),
            None => Ok(reach),
        }
    }
}

/// Finds a loop, or too long a way, among steps that consume nothing; without recursion.
fn check_loops(steps: &Steps) -> Result<(), SchemaError> {
    let mut reaches: HashMap<*const Value, Reach> = HashMap::new();
    for &start in steps.keys() {
        // The way from `start` to here: each schema with the number of its next step.
        let mut way: Vec<(*const Value, usize)> = vec![(start, 0)];
        let mut on_way: HashSet<*const Value> = HashSet::from([start]);
        while let Some(&mut (here, ref mut next)) = way.last_mut() {
            let onward = steps.get(&here).map(Vec::as_slice).unwrap_or_default();
            let known = reaches.contains_key(&here);
            if let Some(step) = onward.get(*next).filter(|_| !known) {
                *next += 1;
                if on_way.contains(&step.to) {
                    return Err(SchemaError::Loop { reference: reference_on(steps, &way, step) });
                }
                on_way.insert(step.to);
                way.push((step.to, 0));
                continue;
            }
            if !known {
                reaches.insert(here, Reach::over(onward, &reaches)?);
            }
            on_way.remove(&here);
            way.pop();
        }
    }
    Ok(())
}

/// A reference on the loop that `closing` closes; there is one, for only references lead back.
fn reference_on(steps: &Steps, way: &[(*const Value, usize)], closing: &Step) -> String {
    let taken = way.iter().rev().filter_map(|(at, next)| steps.get(at)?.get(next.checked_sub(1)?));
    std::iter::once(closing).chain(taken).find_map(|step| step.reference.clone()).unwrap_or_default()
}
