//! Names that are required of an object which may not have them.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use crate::document::{Document, Located};
use crate::nearest::nearest;
use crate::shape::{Declared, Inner, Shape, Shapes};
use crate::words;

/// More objects of one schema are not looked at.
const OBJECTS_MAX: usize = 2_000;

/// A name that is required, that nobody declared, and that is refused for it.
pub(crate) struct Undeclared {
    pub(crate) name: String,
    /// The schema that requires it.
    pub(crate) schema: *const Value,
    /// The declared name that was probably meant.
    pub(crate) meant: Option<String>,
    /// Whether no object at all can fit.
    pub(crate) always: bool,
}

impl Undeclared {
    pub(crate) fn in_words(&self) -> String {
        let so = if self.always { "nothing fits" } else { "it is refused where it is given" };
        let meant = self.meant.as_deref().map(|meant| format!(": did you mean {meant}?"));
        let name = words::clip(&self.name);
        format!("{name:?} is required and not declared, so that {so}{}", meant.unwrap_or_default())
    }
}

/// An object that is still to be looked at.
struct Open<'a> {
    schemas: Vec<Located<'a>>,
    inner: Inner,
    always: bool,
}

/// All of them in an object, those that let none at all through first.
pub(crate) fn undeclared<'a>(schema: &'a Value, shapes: &Shapes) -> Vec<Undeclared> {
    let document = Document::new(schema);
    let mut seen: HashSet<(*const Value, Inner)> = HashSet::new();
    let mut found = Vec::new();
    let mut open =
        VecDeque::from([Open { schemas: vec![document.root()], inner: shapes.root, always: true }]);
    while let Some(Open { schemas, inner, always }) = open.pop_front() {
        let Some(shape) = shapes.get(inner) else { continue };
        let news =
            schemas.iter().filter(|schema| seen.insert((std::ptr::from_ref(schema.value), inner))).count();
        if news == 0 || seen.len() > OBJECTS_MAX {
            continue;
        }
        let together: Vec<Located<'a>> =
            schemas.into_iter().flat_map(|schema| document.together(schema)).collect();
        let others: Vec<Located<'a>> =
            together.iter().flat_map(|part| alternatives(&document, *part)).collect();
        for (parts, always) in [(&together, always), (&others, false)] {
            let required = parts.iter().flat_map(|part| required(*part).map(|name| (*part, name)));
            for (part, name) in required.filter(|(_, name)| is_refused(shapes, shape, name)) {
                let meant = nearest(name, shape.members.keys().map(String::as_str)).map(str::to_owned);
                let schema = std::ptr::from_ref(part.value);
                found.push(Undeclared { name: name.to_owned(), schema, meant, always });
            }
        }
        for (name, inner) in &shape.members {
            let of = |parts: &[Located<'a>]| -> Vec<Located<'a>> {
                parts.iter().filter_map(|part| property(*part, name)).collect()
            };
            let (certain, chosen) = (of(&together), of(&others));
            let is_required = || together.iter().any(|part| required(*part).any(|known| known == name));
            let always = always && is_required() && is_object(&document, &certain);
            let next = Open { schemas: certain, inner: *inner, always };
            if always {
                open.push_front(next)
            } else {
                open.push_back(next)
            }
            open.push_back(Open { schemas: chosen, inner: *inner, always: false });
        }
        let parts: Vec<Located<'_>> = together.iter().chain(&others).copied().collect();
        let items = parts.iter().filter_map(|part| Some(part.child(part.value.get("items")?))).collect();
        open.push_back(Open { schemas: items, inner: shape.items, always: false });
    }
    found.sort_by_key(|undeclared| !undeclared.always);
    found
}

/// Whether whatever these schemas let through is an object.
pub(crate) fn is_object(document: &Document<'_>, schemas: &[Located<'_>]) -> bool {
    let mut together = schemas.iter().flat_map(|schema| document.together(*schema));
    together.any(|part| match part.value.get("type") {
        Some(Value::Array(types)) => types.iter().all(|name| name == "object"),
        Some(name) => name == "object",
        None => false,
    })
}

fn is_refused(shapes: &Shapes, shape: &Shape, name: &str) -> bool {
    match shapes.declared(shape, name) {
        Declared::Yes(_) => false,
        Declared::No => shape.closed,
    }
}

fn required(schema: Located<'_>) -> impl Iterator<Item = &str> {
    let listed = schema.value.get("required").and_then(Value::as_array).into_iter().flatten();
    listed.filter_map(Value::as_str)
}

fn property<'a>(schema: Located<'a>, name: &str) -> Option<Located<'a>> {
    Some(schema.child(schema.value.get("properties")?.get(name)?))
}

/// The schemas that count for the same value where an alternative is chosen.
fn alternatives<'a>(document: &Document<'a>, schema: Located<'a>) -> Vec<Located<'a>> {
    let Some(members) = schema.members() else { return Vec::new() };
    let branches = ["anyOf", "oneOf"].into_iter().filter_map(|key| members.get(key)?.as_array()).flatten();
    let conditional = ["then", "else"].into_iter().filter_map(|key| members.get(key));
    let all = branches.chain(conditional);
    all.flat_map(|branch| document.together(schema.child(branch))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use crate::{Contract, SchemaError};

    fn never_fits(schema: serde_json::Value) -> Option<String> {
        match Contract::of_arguments(&to_raw_value(&schema).unwrap()) {
            Ok(_) => None,
            Err(SchemaError::NeverFits { reason }) => Some(reason),
            Err(other) => panic!("{schema}: {other}"),
        }
    }

    #[test]
    fn a_name_required_and_declared_nowhere_lets_no_call_through() {
        let city = json!({"city": {"type": "string"}});
        let told = never_fits(json!({"properties": city, "required": ["ctiy"]})).unwrap();
        assert_eq!(told, "\"ctiy\" is required and not declared, so that nothing fits: did you mean city?");
        let to = json!({"type": "object", "properties": city, "required": ["ctiy"]});
        assert!(never_fits(json!({"properties": {"to": to}, "required": ["to"]})).is_some());
        let and = |other: serde_json::Value| {
            let mut both = to.clone();
            both.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
            json!({"properties": {"to": both}, "required": ["to"]})
        };
        for fits in [
            json!({"properties": {"to": to}}),
            and(json!({"type": ["object", "null"]})),
            and(json!({"additionalProperties": {}})),
            json!({"properties": {"to": {"properties": city, "required": ["ctiy"]}}, "required": ["to"]}),
            json!({"properties": {"to": {"type": "object", "properties": city}}, "required": ["to"],
                "anyOf": [{"properties": {"to": {"required": ["ctiy"]}}}, {}]}),
            json!({"properties": city, "required": ["city"]}),
            json!({"properties": city, "required": ["ctiy"], "additionalProperties": true}),
            json!({"properties": city, "required": ["x_1"], "patternProperties": {"^x_": {}}}),
            json!({"allOf": [{"properties": city}, {"required": ["city"]}]}),
            json!({"anyOf": [{"properties": city}, {"properties": {"zip": {}}, "required": ["zip"]}], "required": ["zip"]}),
            json!({"properties": city, "anyOf": [{"required": ["ctiy"]}, {"required": ["city"]}]}),
        ] {
            assert_eq!(never_fits(fits.clone()), None, "{fits}");
        }
    }

    #[test]
    fn a_schema_that_allows_no_object_is_none_for_arguments() {
        let compile = |schema: &serde_json::Value| Contract::of_arguments(&to_raw_value(schema).unwrap());
        for (bad, said) in [
            (json!({"type": "array"}), "\"type\": \"array\""),
            (json!({"type": ["string", "null"]}), "\"type\""),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}), "\"type\": \"string\""),
            (json!({"anyOf": [{"type": "string"}, {"const": 3}]}), "\"anyOf\""),
            (json!({"allOf": [{}, {"enum": ["a"]}]}), "\"enum\""),
            (json!(false), "it is false"),
        ] {
            let error = compile(&bad).unwrap_err().to_string();
            assert!(
                error.starts_with("arguments are always one JSON object") && error.contains(said),
                "{error}"
            );
        }
        for good in [
            json!({}),
            json!(true),
            json!({"type": ["object", "null"]}),
            json!({"anyOf": [{"type": "string"}, {"type": "object"}]}),
            json!({"allOf": [{"$ref": "#"}]}),
        ] {
            // What means itself is refused for that.
            if let Err(error) = compile(&good) {
                assert!(!error.to_string().starts_with("arguments"), "{good}: {error}");
            }
        }
    }
}
