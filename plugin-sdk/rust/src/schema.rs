//! JSON Schema of Rust types, made by schemars and tidied for people and models.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::prose::flowing;

/// The schema of what is read into `T`: arguments or a configuration.
///
/// Always of an object; a unit type is the object without members.
///
/// # Errors
/// A sentence when `T` is written as anything but an object.
pub(crate) fn of_input<T: JsonSchema>() -> Result<Map<String, Value>, String> {
    let mut schema = match of_type::<T>(Contract::Deserialize) {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    let takes_any = !schema.contains_key("type");
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {}
        Some("null") => schema = Map::from_iter([("type".to_owned(), json!("object"))]),
        None if takes_any => {
            schema.shift_insert(0, "type".to_owned(), json!("object"));
        }
        _ => {
            let name = T::schema_name();
            return Err(format!("{name} is no object: use a struct with one named field per parameter"));
        }
    }
    schema.entry("properties").or_insert_with(|| json!({}));
    if takes_any || !schema.keys().all(|keyword| ["type", "description", "properties"].contains(&&**keyword))
    {
        return Ok(schema);
    }
    if schema["properties"] == json!({}) {
        // A host takes any key where no property is listed.
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    Ok(schema)
}

/// The schema of what `T` is written as; `None` where it says nothing.
pub(crate) fn of_output<T: JsonSchema>() -> Option<Box<RawValue>> {
    match of_type::<T>(Contract::Serialize) {
        Value::Bool(true) => None,
        Value::Object(schema) if schema.is_empty() => None,
        schema => to_raw_value(&schema).ok(),
    }
}

/// The schema of an answer that is read into `T`.
pub(crate) fn of_answer<T: JsonSchema>() -> Value {
    of_type::<T>(Contract::Deserialize)
}

/// Whether `T` is read from `null`, as `()` and unit structs are.
pub(crate) fn is_unit<T: JsonSchema>() -> bool {
    of_type::<T>(Contract::Deserialize).get("type").is_some_and(|kind| kind == "null")
}

fn of_type<T: JsonSchema>(contract: Contract) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.contract = contract;
    // A model reads one plain object more surely than references; recursion still gets them.
    settings.inline_subschemas = true;
    let mut generator = settings.into_generator();
    // Called on the type, not on the generator, which would add the Rust type's name as a title.
    let schema: Schema = T::json_schema(&mut generator);
    let mut schema = schema.to_value();
    let definitions = generator.take_definitions(true);
    if let (Value::Object(schema), false) = (&mut schema, definitions.is_empty()) {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    tidy(&mut schema);
    schema
}

/// Takes out what only Rust means by it: the widths of numbers, and defaults of nothing.
fn tidy(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    let range = match schema.get("format").and_then(Value::as_str) {
        Some("int32") => Some((json!(i32::MIN), json!(i32::MAX))),
        Some("uint32") => Some((json!(0), json!(u32::MAX))),
        Some("uint8" | "uint16" | "uint64" | "uint128" | "uint") => Some((json!(0), Value::Null)),
        Some("int8" | "int16" | "int64" | "int128" | "int" | "float" | "double") => {
            Some((Value::Null, Value::Null))
        }
        _ => None,
    };
    if let Some((least, most)) = range {
        schema.shift_remove("format");
        for (keyword, bound) in [("minimum", least), ("maximum", most)] {
            if !bound.is_null() {
                schema.entry(keyword).or_insert(bound);
            }
        }
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = flowing(description);
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.shift_remove("default");
    }
    subschemas(schema);
}

/// Tidies the schemas within a schema, and leaves alone what only looks like one.
fn subschemas(schema: &mut Map<String, Value>) {
    for (keyword, value) in schema.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties" | "patternProperties" | "$defs" | "dependentSchemas", Value::Object(named)) => {
                named.values_mut().for_each(tidy);
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(list)) => {
                list.iter_mut().for_each(tidy);
            }
            (
                "items"
                | "additionalProperties"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames"
                | "unevaluatedProperties",
                inner,
            ) => tidy(inner),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Celsius,
        Fahrenheit,
    }

    /// Where and how.
    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Place {
        /// The city.
        city: String,
        /// The unit.
        unit: Option<Unit>,
        /// How many days.
        #[serde(default)]
        days: Option<u32>,
        /// A field that bears a keyword's name.
        #[serde(default)]
        format: String,
        big: u64,
    }

    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Tree {
        children: Vec<Tree>,
    }

    #[test]
    fn a_struct_becomes_one_plain_object() {
        let schema = Value::Object(of_input::<Place>().expect("an object"));
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "description": "Where and how.",
                "properties": {
                    "city": {"type": "string", "description": "The city."},
                    "unit": {"description": "The unit.", "type": ["string", "null"],
                        "enum": ["celsius", "fahrenheit", null]},
                    "days": {"description": "How many days.", "type": ["integer", "null"],
                        "minimum": 0, "maximum": u32::MAX},
                    "format": {"description": "A field that bears a keyword's name.", "type": "string",
                        "default": ""},
                    "big": {"type": "integer", "minimum": 0},
                },
                "required": ["city", "big"],
            })
        );
    }

    #[test]
    fn nothing_to_give_is_an_object_without_members() {
        let schema = Value::Object(of_input::<()>().expect("an object"));
        assert_eq!(schema, json!({"type": "object", "properties": {}, "additionalProperties": false}));
        #[derive(Deserialize, JsonSchema)]
        struct Nothing {}
        assert_eq!(of_input::<Nothing>().expect("an object")["additionalProperties"], json!(false));
        assert_eq!(of_input::<Value>().expect("an object").get("additionalProperties"), None);
        let any = of_input::<std::collections::HashMap<String, u8>>().expect("an object");
        assert_ne!(any["additionalProperties"], json!(false));
        assert!(is_unit::<()>() && !is_unit::<Place>());
    }

    #[test]
    fn arguments_that_are_no_object_are_refused() {
        let reason = of_input::<Vec<String>>().expect_err("a list");
        assert!(reason.contains("use a struct"), "{reason}");
        assert!(of_input::<String>().is_err());
    }

    #[test]
    fn a_type_that_holds_itself_ends() {
        let schema = Value::Object(of_input::<Tree>().expect("an object"));
        let text = schema.to_string();
        let (_, reference) = text.split_once(r##""$ref":"#"##).expect("a reference");
        let target = reference.split('"').next().expect("a string ends");
        assert!(schema.pointer(target).is_some_and(Value::is_object), "{schema}");
    }

    #[test]
    fn a_value_of_any_kind_declares_nothing() {
        assert!(of_output::<Value>().is_none());
        assert_eq!(of_output::<String>().expect("declared").get(), r#"{"type":"string"}"#);
    }
}
