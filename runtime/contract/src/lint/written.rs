//! What is written in a declaration and comes to nothing: words nobody knows, defaults that do not fit.

use std::collections::HashMap;
use std::fmt::Write;

use plugd_protocol::manifest::{Confirm, RESULT_LIMIT_MIN, TIMEOUT_MS_MAX};
use serde_json::{Map, Value, json};

use super::parameters::{Place, SCHEMAS_MAX};
use super::{Declared, Rule};
use crate::document::{Document, speaks_draft7};
use crate::nearest::nearest;
use crate::shape::Shapes;
use crate::{gather, required, validator, words};

/// More defaults of one operation are not tried.
const DEFAULTS_MAX: usize = 500;

/// What JSON Schema and plugd go by; `example` and what follows are of OpenAPI, and only for readers.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
    "x-sensitive",
    "discriminator",
    "example",
    "externalDocs",
    "nullable",
    "xml",
];

/// Words of other places, and those of schemas for them.
const MEANT: &[(&str, &str)] = &[
    ("choices", "enum"),
    ("desc", "description"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("regex", "pattern"),
    ("secret", "x-sensitive"),
    ("sensitive", "x-sensitive"),
];

/// Shorter words are near to anything.
const COMPARED_MIN_CHARS: usize = 4;

/// The formats that are checked.
const FORMATS: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Formats that others write and nobody checks here: what they mean is known.
const FORMATS_OF_OTHERS: &[&str] =
    &["binary", "byte", "double", "float", "idn-email", "idn-hostname", "int32", "int64", "password"];

pub(super) fn look_at(declared: &mut Declared<'_>) {
    settings(declared);
    let operation = declared.operation;
    let input = ("/input_schema", Some(&operation.input_schema));
    for (path, schema) in [input, ("/output_schema", operation.output_schema.as_ref())] {
        let Some(schema) = schema.and_then(|schema| serde_json::from_str::<Value>(schema.get()).ok()) else {
            continue;
        };
        let document = Document::new(&schema);
        let every = every(&document, path);
        for place in &every {
            keywords(declared, place);
        }
        if path == input.0 {
            requirements(declared, &schema, &every);
            defaults(declared, &schema, &document, &every);
        }
    }
}

/// Every schema that is written in a document, with its place.
fn every<'a>(document: &Document<'a>, path: &str) -> Vec<Place<'a>> {
    let mut all = Vec::new();
    let mut open = vec![Place { at: document.root(), path: path.to_owned() }];
    while let Some(place) = open.pop() {
        let inside = place.at.written().into_iter().map(|(steps, inner)| {
            let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
            place.below(inner.value, &steps)
        });
        open.extend(inside.collect::<Vec<_>>().into_iter().rev());
        all.push(place);
        if all.len() >= SCHEMAS_MAX {
            break;
        }
    }
    all
}

fn keywords(declared: &mut Declared<'_>, place: &Place<'_>) {
    let Some(members) = place.at.members() else { return };
    for key in members.keys().filter(|key| !KEYWORDS.contains(&key.as_str()) && !key.starts_with("x-")) {
        let known = MEANT.iter().find(|(word, _)| word == key).map(|(_, meant)| *meant);
        let is_long = key.chars().count() >= COMPARED_MIN_CHARS;
        // What is near to nothing is a note of its author's.
        if let Some(meant) = known.or_else(|| nearest(key, KEYWORDS.iter().copied()).filter(|_| is_long)) {
            let message = format!("{:?} is no word of a schema: did you mean {meant}?", words::clip(key));
            declared.find(Rule::UnknownMember, &place.path, message);
        }
    }
    let format = members.get("format").and_then(Value::as_str).unwrap_or("date");
    if !FORMATS.contains(&format) && !FORMATS_OF_OTHERS.contains(&format) {
        let meant = nearest(format, FORMATS.iter().copied());
        let meant = meant.map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
        let message = format!("the format {:?} is none that is checked{meant}", words::clip(format));
        declared.find(Rule::UnknownMember, &format!("{}/format", place.path), message);
    }
}

fn requirements(declared: &mut Declared<'_>, schema: &Value, every: &[Place<'_>]) {
    let places: HashMap<*const Value, &str> =
        every.iter().map(|place| (std::ptr::from_ref(place.at.value), place.path.as_str())).collect();
    for undeclared in required::undeclared(schema, &Shapes::of(schema)) {
        let path = places.get(&undeclared.schema).copied().unwrap_or("/input_schema");
        declared.find(Rule::RequiredUndeclared, &format!("{path}/required"), undeclared.in_words());
    }
}

fn defaults(declared: &mut Declared<'_>, schema: &Value, document: &Document<'_>, every: &[Place<'_>]) {
    let with: Vec<(&Place<'_>, &Value)> = every
        .iter()
        .filter_map(|place| Some((place, place.at.members()?.get("default")?)))
        .take(DEFAULTS_MAX)
        .collect();
    if with.is_empty() {
        return;
    }
    let Some(all) = as_properties(schema, &with) else { return };
    let values: Map<String, Value> =
        with.iter().enumerate().map(|(index, (_, value))| (index.to_string(), (*value).clone())).collect();
    let values = Value::Object(values);
    let mut wrong: Vec<usize> = all
        .iter_errors(&values)
        .filter_map(|error| error.instance_path().to_string().split('/').nth(1)?.parse().ok())
        .collect();
    wrong.sort_unstable();
    wrong.dedup();
    for (place, value) in wrong.into_iter().filter_map(|index| with.get(index)) {
        let hidden = place.at.members().is_some_and(gather::says_sensitive);
        let given =
            if hidden { "its default".to_owned() } else { format!("its default {}", words::given(value)) };
        let expected = words::expected_of(&[place.at], document);
        let message =
            format!("{given} is never filled in, for its own schema refuses it: expected {expected}");
        declared.find(Rule::DefaultDoesNotFit, &format!("{}/default", place.path), message);
    }
}

/// One validator for all of these schemas, each for the property that has its number as a name.
fn as_properties(schema: &Value, with: &[(&Place<'_>, &Value)]) -> Option<jsonschema::Validator> {
    /// What the schema is called that has no name.
    const NAME: &str = "urn:plugd:schema";
    let mut whole = schema.as_object()?.clone();
    let name = whole.entry("$id").or_insert_with(|| NAME.into()).as_str()?.trim_end_matches('#').to_owned();
    let reference = |place: &Place<'_>| {
        let pointer = place.path.strip_prefix("/input_schema").unwrap_or_default();
        json!({"$ref": format!("{name}#{}", fragment(pointer))})
    };
    let properties: Map<String, Value> =
        with.iter().enumerate().map(|(index, (place, _))| (index.to_string(), reference(place))).collect();
    let draft7 = speaks_draft7(schema);
    let kept = if draft7 { "definitions" } else { "$defs" };
    validator::options(draft7).build(&json!({kept: {"whole": whole}, "properties": properties})).ok()
}

/// A JSON Pointer as a fragment of an address.
fn fragment(pointer: &str) -> String {
    let mut out = String::new();
    for byte in pointer.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn settings(declared: &mut Declared<'_>) {
    let operation = declared.operation;
    let mut find = |path: &str, message: String| declared.find(Rule::SettingWithoutEffect, path, message);
    if operation.cache_ttl.is_some() && operation.effects.read_only != Some(true) {
        find("/cache_ttl", "nothing is cached but what effects.read_only says only reads".to_owned());
    }
    if operation.effects.destructive == Some(true) && operation.confirm == Confirm::Never {
        let message =
            "it is declared destructive, and confirm \"never\" lets it run without anybody agreeing";
        find("/confirm", message.to_owned());
    }
    if let Some(limit) = operation.result_limit.filter(|limit| *limit < RESULT_LIMIT_MIN) {
        find("/result_limit", format!("{limit} counts as {RESULT_LIMIT_MIN}, the least"));
    }
    if let Some(time) = operation.timeout_ms.filter(|time| *time > TIMEOUT_MS_MAX) {
        find("/timeout_ms", format!("{time} counts as {TIMEOUT_MS_MAX}, the most"));
    }
}
