//! What is to be said about the answer of a call that was made of an operation's own examples.

use plugd_protocol::control::{ScenarioOutcome, Tried};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallResult, Operation, Status};
use serde_json::Value;

/// More of a value is not quoted.
const QUOTED_CHARS: usize = 40;

/// The name of a question that nobody was there for.
const NOBODY_TO_ASK: &str = "nobody_to_ask";

/// One that was not called, and why.
pub(crate) fn skipped(why: &str) -> Tried {
    let remarks = vec![why.to_owned()];
    Tried { outcome: ScenarioOutcome::Skipped, arguments: None, answered: false, remarks }
}

/// One that no arguments can be made for: who names it wants it called.
pub(crate) fn without_example(name: &str, is_named: bool) -> Tried {
    let outcome = if is_named { ScenarioOutcome::Warned } else { ScenarioOutcome::Skipped };
    let why = format!(
        "not called: {name} is required and has no example: give it one, under `examples` in input_schema"
    );
    Tried { outcome, ..skipped(&why) }
}

/// How a call with its own examples came out.
pub(crate) fn tried(arguments: Value, result: &CallResult, operation: &Operation) -> Tried {
    let (outcome, remarks) = match (&result.error, result.status) {
        // There is nobody who could be asked: that says nothing against it.
        (Some(error), _) if error.name == NOBODY_TO_ASK => {
            return skipped("not tried to its end: it asks a person, and there is nobody to ask");
        }
        (None, Status::NeedsConfirmation) => {
            return skipped("not called: somebody must agree first; --call=NAME calls it all the same");
        }
        (None, Status::NeedsInput) => {
            return skipped("not called: something is missing that only a person can give");
        }
        (Some(error), _) if error.code == ErrorKind::PluginError.code() => {
            (ScenarioOutcome::Warned, vec![failed(error)])
        }
        (Some(error), _) => (ScenarioOutcome::Failed, vec![failed(error)]),
        (None, _) => {
            let data = result.data.as_deref().and_then(|data| serde_json::from_str(data.get()).ok());
            (ScenarioOutcome::Passed, remarks(&data.unwrap_or_default(), operation))
        }
    };
    Tried { outcome, arguments: Some(arguments), answered: result.error.is_none(), remarks }
}

/// What is to be said about data: "it worked" is no result, for a model words its answer from it.
fn remarks(data: &Value, operation: &Operation) -> Vec<String> {
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
fn failed(error: &CallError) -> String {
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
