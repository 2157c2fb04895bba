//! Alternatives at the root of a schema folded into one list of properties.

use serde_json::{Map, Value, json};

use super::schema::{Rewriting, Root, ordered};
use crate::document::Located;

/// More schemas within schemas at a root are not looked into.
const DEPTH_MAX: usize = 16;

/// What would be wrong at the root of an object that is described by its properties alone.
const MEANINGLESS: &[&str] = &["const", "default", "enum", "examples", "not", "nullable"];

/// An object's schema with all that its branches say.
#[derive(Default)]
pub(super) struct Folded {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// All that is said besides.
    others: Map<String, Value>,
    /// Of each set of alternatives, what each one needs beyond what all need.
    choices: Vec<Choice>,
    depth: usize,
}

/// Several ways to fill an object.
struct Choice {
    exactly_one: bool,
    needs: Vec<Vec<String>>,
}

impl Folded {
    /// Takes in a schema that holds for the whole object.
    pub(super) fn take<'a>(&mut self, rewriting: &mut Rewriting<'a>, at: Located<'a>, root: Root) {
        let Some(members) = at.members().filter(|_| self.depth < DEPTH_MAX) else { return };
        self.depth += 1;
        for (key, value) in members {
            match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        let copied = rewriting.copy(at.child(schema));
                        self.property(name, copied);
                    }
                }
                ("required", Value::Array(names)) => {
                    names.iter().filter_map(Value::as_str).for_each(|name| self.require(name));
                }
                ("$ref" | "$dynamicRef", Value::String(reference)) => {
                    for target in rewriting.targets(at, reference).into_iter().take(1) {
                        self.take(rewriting, target, root);
                    }
                }
                ("allOf", Value::Array(all)) if root == Root::Plain => {
                    all.iter().for_each(|schema| self.take(rewriting, at.child(schema), root));
                }
                ("anyOf" | "oneOf", Value::Array(branches)) if root == Root::Plain => {
                    let branches: Vec<Located<'a>> = branches.iter().map(|schema| at.child(schema)).collect();
                    self.choose(rewriting, &branches, key == "oneOf");
                }
                ("then" | "else", schema) if root == Root::Plain => {
                    self.choose(rewriting, &[at.child(schema)], false);
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) if root == Root::Plain => {
                    for schema in schemas.values() {
                        self.choose(rewriting, &[at.child(schema)], false);
                    }
                }
                ("if", _) if root == Root::Plain => {}
                ("unevaluatedProperties", Value::Bool(false)) if root == Root::Plain => {
                    self.others.insert("additionalProperties".to_owned(), false.into());
                }
                (key, _) if root == Root::Plain && MEANINGLESS.contains(&key) => {}
                (key, value) => {
                    if let Some((key, value)) = rewriting.member(at, key, value) {
                        self.others.entry(key).or_insert(value);
                    }
                }
            }
        }
        self.depth -= 1;
    }

    /// Takes in several schemas one of which holds.
    fn choose<'a>(&mut self, rewriting: &mut Rewriting<'a>, branches: &[Located<'a>], exactly_one: bool) {
        let mut folded: Vec<Folded> = Vec::new();
        for branch in branches {
            let mut own = Folded { depth: self.depth, ..Folded::default() };
            own.take(rewriting, *branch, Root::Plain);
            folded.push(own);
        }
        // One branch alone may not hold at all, as after `then`.
        let in_all = |name: &String| folded.len() > 1 && folded.iter().all(|own| own.required.contains(name));
        let common: Vec<String> =
            folded.iter().flat_map(|own| &own.required).filter(|name| in_all(name)).cloned().collect();
        let mut needs = Vec::new();
        let mut alternatives: Map<String, Value> = Map::new();
        for own in folded {
            needs.push(own.required.into_iter().filter(|name| !common.contains(name)).collect());
            for (name, schema) in own.properties {
                let several = alternatives.entry(name).or_insert_with(|| json!([]));
                if let Value::Array(several) = several
                    && !several.contains(&schema)
                {
                    several.push(schema);
                }
            }
        }
        common.iter().for_each(|name| self.require(name));
        for (name, several) in alternatives {
            let Value::Array(several) = several else { continue };
            self.alternative(&name, several);
        }
        self.choices.push(Choice { exactly_one, needs });
    }

    fn require(&mut self, name: &str) {
        if !self.required.iter().any(|known| known == name) {
            self.required.push(name.to_owned());
        }
    }

    /// A property that has to fit this schema, too.
    fn property(&mut self, name: &str, schema: Value) {
        match self.properties.get_mut(name) {
            None => drop(self.properties.insert(name.to_owned(), schema)),
            Some(known) if *known == schema || is_anything(&schema) => {}
            Some(known) if is_anything(known) => *known = schema,
            Some(known) => *known = json!({"allOf": [known.take(), schema]}),
        }
    }

    /// A property that has to fit one of these, where it is given.
    fn alternative(&mut self, name: &str, mut several: Vec<Value>) {
        if several.iter().any(is_anything) {
            several.clear();
        }
        let constants: Option<Vec<Value>> =
            several.iter().map(|schema| schema.get("const").cloned()).collect();
        let (key, value) = match (constants, several.len()) {
            (_, 0) => return self.property(name, json!({})),
            (Some(constants), _) => ("enum", constants),
            (None, 1) => {
                let only = several.remove(0);
                return self.property(name, only);
            }
            (None, _) => ("anyOf", several),
        };
        match self.properties.get_mut(name).and_then(Value::as_object_mut) {
            Some(known) if !known.contains_key(key) => drop(known.insert(key.to_owned(), value.into())),
            Some(_) => {}
            None => drop(self.properties.insert(name.to_owned(), json!({ key: value }))),
        }
    }

    /// The schema of it all.
    pub(super) fn written(mut self) -> Map<String, Value> {
        let choices: Vec<String> = self.choices.iter().filter_map(Choice::in_words).collect();
        if !choices.is_empty() {
            let own = self.others.get("description").and_then(Value::as_str).unwrap_or_default();
            let told = [own, &choices.join(" ")].join(" ");
            self.others.insert("description".to_owned(), told.trim().into());
        }
        self.others.insert("type".to_owned(), "object".into());
        self.others.insert("properties".to_owned(), self.properties.into());
        if !self.required.is_empty() {
            self.others.insert("required".to_owned(), self.required.into());
        }
        ordered(self.others, &["type", "title", "description", "properties", "required"])
    }
}

impl Choice {
    /// Which properties are needed together, where the ways differ in that.
    fn in_words(&self) -> Option<String> {
        if self.needs.len() < 2 || self.needs.iter().all(Vec::is_empty) {
            return None;
        }
        let together = |names: &Vec<String>| match names.as_slice() {
            [] => "none of these".to_owned(),
            names => names.join(" and "),
        };
        let ways: Vec<String> = self.needs.iter().map(together).collect();
        let how = if self.exactly_one { "exactly one of these" } else { "one of these" };
        Some(format!("Needs {how}: {}.", ways.join("; ")))
    }
}

fn is_anything(schema: &Value) -> bool {
    schema.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::super::schema::{arguments, data};
    use super::*;

    fn plain(schema: Value) -> Value {
        arguments(&to_raw_value(&schema).unwrap(), Root::Plain)
    }

    fn any(schema: Value) -> Value {
        arguments(&to_raw_value(&schema).unwrap(), Root::Any)
    }

    #[test]
    fn every_root_is_an_object_with_properties() {
        for schema in [json!({}), json!(true), json!({"type": "object"}), json!({"type": ["object", "null"]})]
        {
            assert_eq!(plain(schema.clone()), json!({"type": "object", "properties": {}}), "{schema}");
            assert_eq!(any(schema.clone()), json!({"type": "object", "properties": {}}), "{schema}");
        }
    }

    #[test]
    fn a_plain_schema_stays_what_it_is() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", "type": "object",
            "properties": {"city": {"type": "string", "description": "Where"}, "tags": {"type": "array"},
                "$ref": {"type": "string"}, "anything": true, "never": false},
            "required": ["city"], "additionalProperties": false,
        });
        assert_eq!(
            plain(schema),
            json!({"type": "object",
                "properties": {"city": {"type": "string", "description": "Where"}, "tags": {"type": "array", "items": {}},
                    "$ref": {"type": "string"}, "anything": {}, "never": {"not": {}}},
                "required": ["city"], "additionalProperties": false})
        );
    }

    #[test]
    fn alternatives_at_the_root_become_properties_and_words() {
        let schema = json!({
            "type": "object", "properties": {"name": {"type": "string"}},
            "anyOf": [{"required": ["version"], "properties": {"version": {"type": "string"}}},
                      {"required": ["from", "to"], "properties": {"from": {"type": "string"}, "to": {"type": "string"}}}],
        });
        let folded = plain(schema.clone());
        assert_eq!(
            folded,
            json!({"type": "object", "description": "Needs one of these: version; from and to.",
                "properties": {"name": {"type": "string"}, "version": {"type": "string"},
                    "from": {"type": "string"}, "to": {"type": "string"}}})
        );
        assert_eq!(any(schema.clone())["anyOf"], schema["anyOf"], "where they may stand, they stand");
    }

    #[test]
    fn what_all_alternatives_need_is_needed_and_constants_become_a_list() {
        let branch = |kind: &str, own: &str| {
            json!({"type": "object", "required": ["kind", own],
                "properties": {"kind": {"const": kind}, own: {"type": "string"}}})
        };
        let folded = plain(
            json!({"description": "A message.", "oneOf": [branch("mail", "address"), branch("sms", "phone")]}),
        );
        assert_eq!(
            folded,
            json!({"type": "object", "description": "A message. Needs exactly one of these: address; phone.",
                "properties": {"kind": {"enum": ["mail", "sms"]}, "address": {"type": "string"}, "phone": {"type": "string"}},
                "required": ["kind"]})
        );
        let declared = plain(json!({"properties": {"kind": {"type": "string", "description": "Which"}},
            "oneOf": [branch("mail", "address"), branch("sms", "phone")]}));
        assert_eq!(
            declared["properties"]["kind"],
            json!({"type": "string", "description": "Which", "enum": ["mail", "sms"]})
        );
    }

    #[test]
    fn parts_that_all_hold_are_joined_and_conditions_become_optional() {
        let folded = plain(json!({
            "allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]},
                      {"properties": {"a": {"minLength": 2}, "b": {}}, "required": ["a", "b"]}],
            "if": {"properties": {"a": {"const": "x"}}}, "then": {"properties": {"c": {"type": "integer"}}, "required": ["c"]},
            "unevaluatedProperties": false, "not": {"required": ["d"]},
        }));
        assert_eq!(
            folded,
            json!({"type": "object",
                "properties": {"a": {"allOf": [{"type": "string"}, {"minLength": 2}]}, "b": {}, "c": {"type": "integer"}},
                "required": ["a", "b"], "additionalProperties": false})
        );
    }

    #[test]
    fn references_stay_within_the_schema_and_a_root_has_none() {
        let schema = json!({
            "$ref": "#/definitions/Order", "definitions": {
                "Order": {"type": "object", "properties": {"to": {"$ref": "#/definitions/Address"}, "items": {
                    "type": "array", "items": {"$ref": "#/definitions/Order/properties/to"}}}, "required": ["to"]},
                "Address": {"type": "object", "properties": {"street": {"type": "string"}, "next": {"$ref": "#place"}}},
                "Place": {"$anchor": "place", "type": "string"},
                "Unused": {"type": "null"}},
        });
        let expected = json!({
            "type": "object",
            "properties": {"to": {"$ref": "#/$defs/Address"}, "items": {"type": "array", "items": {"$ref": "#/$defs/to"}}},
            "required": ["to"],
            "$defs": {
                "Address": {"type": "object", "properties": {"street": {"type": "string"}, "next": {"$ref": "#/$defs/place"}}},
                "to": {"$ref": "#/$defs/Address"},
                "place": {"type": "string"}},
        });
        assert_eq!(plain(schema.clone()), expected);
        assert_eq!(any(schema), expected);
    }

    #[test]
    fn a_schema_that_contains_itself_comes_to_an_end() {
        let tree =
            json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
        assert_eq!(plain(tree.clone()), tree);
        let schema = json!({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}}}});
        let folded = plain(schema);
        assert_eq!(folded["properties"]["next"]["anyOf"][0]["$ref"], "#/$defs/Node");
        assert_eq!(folded["$defs"]["Node"]["type"], "object");
        let endless = json!({"anyOf": [{"$ref": "#"}, {"properties": {"a": {"type": "string"}}}]});
        assert_eq!(plain(endless)["properties"]["a"]["type"], "string");
    }

    #[test]
    fn two_definitions_of_one_name_stay_two() {
        let folded = plain(
            json!({"properties": {"a": {"$ref": "#/$defs/x/properties/id"}, "b": {"$ref": "#/$defs/y/properties/id"}},
            "$defs": {"x": {"properties": {"id": {"type": "string"}}}, "y": {"properties": {"id": {"type": "integer"}}}}}),
        );
        assert_eq!(folded["properties"]["a"]["$ref"], "#/$defs/id");
        assert_eq!(folded["properties"]["b"]["$ref"], "#/$defs/id_2");
        assert_eq!(folded["$defs"], json!({"id": {"type": "string"}, "id_2": {"type": "integer"}}));
    }

    #[test]
    fn data_is_described_where_it_is_an_object() {
        let read = |schema: Value| data(&to_raw_value(&schema).unwrap());
        assert_eq!(read(json!({"type": "array"})), None);
        assert_eq!(read(json!({"type": "object"})), Some(json!({"type": "object", "properties": {}})));
        assert!(read(json!({"$ref": "#/$defs/T", "$defs": {"T": {"type": "object"}}})).is_some());
        assert!(
            read(json!({"properties": {"a": {}}, "oneOf": [{"required": ["a"]}]}))
                .unwrap()
                .get("oneOf")
                .is_some()
        );
    }
}
