//! A call made of an operation's own examples, and what is to be said about its answer.

use plugd_protocol::{CallError, Operation};
use serde_json::{Map, Value};

/// More of a value is not quoted.
const QUOTED_CHARS: usize = 40;

/// Arguments made of what the schema shows: an example, a default or a choice for all that is required.
///
/// # Errors
/// The name of what has none.
pub(crate) fn arguments(operation: &Operation) -> Result<Value, String> {
    let schema: Value = serde_json::from_str(operation.input_schema.get()).unwrap_or_default();
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut arguments = Map::new();
    for name in required.filter_map(Value::as_str) {
        let property = schema.get("properties").and_then(|all| all.get(name));
        let shown = property.and_then(|property| sample(property, &schema));
        arguments.insert(name.to_owned(), shown.ok_or_else(|| name.to_owned())?);
    }
    Ok(arguments.into())
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
pub(crate) fn referred<'s>(schema: &'s Value, document: &'s Value) -> &'s Value {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    reference.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// What is to be said about data: "it worked" is no result, for a model words its answer from it.
pub(crate) fn remarks(data: &Value, operation: &Operation) -> Vec<String> {
    let mut remarks = Vec::new();
    match data {
        Value::Null => remarks.push("its data is empty".to_owned()),
        Value::String(text) if text.trim().is_empty() => remarks.push("its data is empty".to_owned()),
        Value::Array(items) if items.is_empty() => remarks.push("its data is empty".to_owned()),
        Value::Object(members) if members.is_empty() => remarks.push("its data is empty".to_owned()),
        Value::String(text)
            if !text.trim().contains(char::is_whitespace) && text.chars().count() <= QUOTED_CHARS =>
        {
            remarks.push(format!("its data is a bare word, {data}: say what was found or done"));
        }
        Value::Bool(_) => {
            remarks.push(format!("its data is a bare word, {data}: say what was found or done"))
        }
        Value::String(_) | Value::Array(_) | Value::Object(_) | Value::Number(_) => {}
    }
    let schema = operation
        .output_schema
        .as_deref()
        .and_then(|schema| serde_json::from_str::<Value>(schema.get()).ok());
    let declared = schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    let lacking = declared.into_iter().flatten().filter(|(name, _)| data.get(name.as_str()).is_none());
    let lacking: Vec<&str> = lacking.map(|(name, _)| name.as_str()).collect();
    if !lacking.is_empty() {
        remarks.push(format!("its data lacks {}, which output_schema declares", lacking.join(", ")));
    }
    remarks
}

/// What is to be said about a call that failed.
pub(crate) fn failed(error: &CallError) -> String {
    format!("it failed: {} {}: {}", error.code, error.name, error.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn operation(input: &Value, output: &Value) -> Operation {
        serde_json::from_value(json!({"name": "x", "input_schema": input, "output_schema": output})).unwrap()
    }

    #[test]
    fn what_is_required_is_filled_with_what_the_schema_shows() {
        let schema = json!({"required": ["a", "b", "c", "d"], "properties": {
            "a": {"examples": ["TK-1", "TK-2"]}, "b": {"enum": [3, 4]}, "c": {"$ref": "#/$defs/c"}, "d": {"default": null},
            "e": {"type": "string"}}, "$defs": {"c": {"const": true}}});
        let made = arguments(&operation(&schema, &json!({})));
        assert_eq!(made, Ok(json!({"a": "TK-1", "b": 3, "c": true, "d": null})));
        let without = json!({"required": ["a"], "properties": {"a": {"$ref": "#"}}, "$ref": "#"});
        assert_eq!(arguments(&operation(&without, &json!({}))), Err("a".to_owned()));
        assert_eq!(arguments(&operation(&json!({}), &json!({}))), Ok(json!({})));
    }

    #[test]
    fn o5_that_it_worked_is_no_result() {
        let plain = operation(&json!({}), &json!({}));
        for empty in [json!(null), json!(" "), json!([]), json!({})] {
            assert_eq!(remarks(&empty, &plain), ["its data is empty"], "{empty}");
        }
        for bare in [json!("ok"), json!("查询成功"), json!(true)] {
            assert!(remarks(&bare, &plain)[0].starts_with("its data is a bare word"), "{bare}");
        }
        for good in [json!({"step": 1}), json!([1]), json!(42), json!("It is in review.")] {
            assert_eq!(remarks(&good, &plain), Vec::<String>::new(), "{good}");
        }
        let declared = operation(&json!({}), &json!({"properties": {"step": {}, "next": {}}}));
        assert_eq!(
            remarks(&json!({"step": 1}), &declared),
            ["its data lacks next, which output_schema declares"]
        );
        assert_eq!(remarks(&json!({"step": 1, "next": null}), &declared), Vec::<String>::new());
    }
}
