//! Arguments made of what a schema shows: its examples, defaults and choices.

use plugd_contract::{Contract, Prepared};
use plugd_protocol::Operation;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// Arguments made of what an operation's schema shows.
///
/// For all that is required an example, a default or a choice; of what may be left out what has examples
/// of its own, unless the schema does not admit that together.
///
/// # Errors
/// The name of what is required and has none.
pub fn example_arguments(operation: &Operation) -> Result<Value, String> {
    object(&operation.input_schema)
}

/// Arguments as the host sends them: the schema's defaults filled in.
pub(crate) fn as_sent(operation: &Operation, arguments: Value) -> Value {
    let (Ok(contract), Ok(given)) = (Contract::compile(&operation.input_schema), to_raw_value(&arguments))
    else {
        return arguments;
    };
    match contract.prepare(&given) {
        Prepared::Ready { arguments: ready, .. } => serde_json::from_str(ready.get()).unwrap_or(arguments),
        Prepared::Fits | Prepared::Missing { .. } | Prepared::Wrong(_) => arguments,
    }
}

/// An object made of what its schema shows.
pub(crate) fn object(schema: &RawValue) -> Result<Value, String> {
    let document: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let required: Vec<&str> = required(&document).collect();
    let mut least = Map::new();
    for name in &required {
        let property = document.get("properties").and_then(|all| all.get(name));
        let shown = property.and_then(|property| sample(property, &document));
        least.insert((*name).to_owned(), shown.ok_or_else(|| (*name).to_owned())?);
    }
    let mut more = least.clone();
    let properties = document.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, property) in properties.filter(|(name, _)| !least.contains_key(*name)) {
        let property = referred(property, &document);
        if let Some(shown) = property.get("examples").and_then(Value::as_array).and_then(|all| all.first()) {
            more.insert(name.clone(), shown.clone());
        }
    }
    let (least, more) = (Value::from(least), Value::from(more));
    let admitted =
        more == least || Contract::compile(schema).is_ok_and(|contract| contract.check_value(&more).is_ok());
    Ok(if admitted { more } else { least })
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// A value that a schema shows; it may refer to another within its document.
fn sample(schema: &Value, document: &Value) -> Option<Value> {
    let first = |key: &str| schema.get(key)?.as_array()?.first().cloned();
    let own = first("examples")
        .or_else(|| schema.get("example").cloned())
        .or_else(|| schema.get("default").cloned())
        .or_else(|| schema.get("const").cloned())
        .or_else(|| first("enum"));
    own.or_else(|| {
        let target = document.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)?;
        let says_more = target.get("$ref").is_some();
        if says_more { None } else { sample(target, document) }
    })
}

/// The schema that another one within the document refers to; itself where it refers to none.
pub fn referred<'s>(schema: &'s Value, document: &'s Value) -> &'s Value {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    reference.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(schema: &Value) -> Result<Value, String> {
        example_arguments(&serde_json::from_value(json!({"name": "x", "input_schema": schema})).unwrap())
    }

    #[test]
    fn what_is_required_is_filled_with_what_the_schema_shows() {
        let schema = json!({"required": ["a", "b", "c", "d"], "properties": {
            "a": {"examples": ["TK-1", "TK-2"]}, "b": {"enum": [3, 4]}, "c": {"$ref": "#/$defs/c"}, "d": {"default": null},
            "e": {"type": "string"}}, "$defs": {"c": {"const": true}}});
        assert_eq!(arguments(&schema), Ok(json!({"a": "TK-1", "b": 3, "c": true, "d": null})));
        let without = json!({"required": ["a"], "properties": {"a": {"$ref": "#"}}, "$ref": "#"});
        assert_eq!(arguments(&without), Err("a".to_owned()));
        assert_eq!(arguments(&json!({})), Ok(json!({})));
    }

    #[test]
    fn what_is_sent_has_the_defaults_filled_in() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string", "examples": ["/etc"]},
            "unit": {"type": "string", "enum": ["bytes", "lines"], "default": "bytes"}}});
        let operation: Operation =
            serde_json::from_value(json!({"name": "x", "input_schema": schema})).unwrap();
        let sent = as_sent(&operation, example_arguments(&operation).unwrap());
        assert_eq!(sent, json!({"path": "/etc", "unit": "bytes"}));
    }

    #[test]
    fn what_may_be_left_out_is_given_where_it_has_examples_and_they_fit() {
        let mut schema = json!({"type": "object", "properties": {
            "a": {"type": "integer", "examples": [3]}, "b": {"type": "integer", "default": 4}}});
        assert_eq!(arguments(&schema), Ok(json!({"a": 3})));
        schema["maxProperties"] = 0.into();
        assert_eq!(arguments(&schema), Ok(json!({})));
    }
}
