//! What is to be said about the answer of a call that was made of an operation's own examples.

use plugd_protocol::{CallError, Operation};
use serde_json::Value;

/// More of a value is not quoted.
const QUOTED_CHARS: usize = 40;

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
