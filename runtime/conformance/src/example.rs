//! Arguments made of what a schema shows: its examples, defaults and choices.

use plugd_contract::{Contract, Prepared};
use plugd_protocol::Operation;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// Arguments made of what an operation's schema shows.
///
/// The first of the schema's own examples, where that fits; else for all that is required an example, a default
/// or a choice, in what lies within, too; of what may be left out what has examples of its own, unless the
/// schema does not admit that together.
///
/// # Errors
/// The path of what is required and has none, such as `owner.mail`.
pub fn example_arguments(operation: &Operation) -> Result<Value, String> {
    object(&operation.input_schema)
}

/// Arguments as the host sends them: the schema's defaults filled in.
///
/// # Errors
/// What of them the schema does not admit.
pub(crate) fn as_sent(operation: &Operation, arguments: Value) -> Result<Value, String> {
    let (Ok(contract), Ok(given)) = (Contract::compile(&operation.input_schema), to_raw_value(&arguments))
    else {
        return Ok(arguments);
    };
    let problems = match contract.prepare(&given) {
        Prepared::Fits => return Ok(arguments),
        Prepared::Ready { arguments: ready, .. } => {
            return Ok(serde_json::from_str(ready.get()).unwrap_or(arguments));
        }
        Prepared::Missing { prompt, .. } => {
            return Err(format!("not all that is required is there: {prompt}"));
        }
        Prepared::Wrong(problems) => problems,
    };
    let told = problems.iter().map(|problem| {
        let got = problem.got.as_deref().map(|got| format!(", got {got}")).unwrap_or_default();
        let path = problem.path.trim_start_matches('/').replace('/', ".");
        format!("{}: expected {}{got}", if path.is_empty() { "as a whole" } else { &path }, problem.expected)
    });
    Err(told.collect::<Vec<_>>().join("; "))
}

/// An object made of what its schema shows, whole or member by member.
pub(crate) fn object(schema: &RawValue) -> Result<Value, String> {
    let document: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let contract = Contract::compile(schema);
    let is_admitted =
        |value: &Value| contract.as_ref().is_ok_and(|contract| contract.check_value(value).is_ok());
    let whole = first(&document, "examples").filter(Value::is_object);
    if let Some(whole) = whole.filter(|whole| is_admitted(whole)) {
        return Ok(whole);
    }
    let (least, more) = members(&document, &document, 0).map_err(Option::unwrap_or_default)?;
    let admitted = more == least || is_admitted(&more);
    Ok(if admitted { more } else { least })
}

/// An object of what is required alone, and one with what has examples of its own, too.
///
/// # Errors
/// The path of what is required and shows nothing, such as `owner.mail`; none within what has no end.
fn members(schema: &Value, document: &Value, depth: usize) -> Result<(Value, Value), Option<String>> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut least = Map::new();
    for name in required(schema) {
        let property = properties.and_then(|all| all.get(name)).ok_or_else(|| Some(name.to_owned()))?;
        let shown = sample(property, document, depth).map_err(|within| match within {
            Some(within) => Some(at(name, &within)),
            None => (depth == 0).then(|| name.to_owned()),
        })?;
        least.insert(name.to_owned(), shown);
    }
    let mut more = least.clone();
    for (name, property) in properties.into_iter().flatten() {
        let shown = first(property, "examples").or_else(|| first(referred(property, document), "examples"));
        if let Some(shown) = shown.filter(|_| !least.contains_key(name)) {
            more.insert(name.clone(), shown);
        }
    }
    Ok((least.into(), more.into()))
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn first(schema: &Value, key: &str) -> Option<Value> {
    schema.get(key)?.as_array()?.first().cloned()
}

/// The path of a member within another.
fn at(name: &str, within: &str) -> String {
    match within {
        "" => name.to_owned(),
        within if within.starts_with('[') => format!("{name}{within}"),
        within => format!("{name}.{within}"),
    }
}

/// A value that a schema shows: its own, that of what it refers to, or one made of what its parts show.
///
/// # Errors
/// The path of what shows nothing, empty where that is the value itself; none where it has no end.
fn sample(schema: &Value, document: &Value, depth: usize) -> Result<Value, Option<String>> {
    /// A schema may hold itself, and what lies deeper nobody fills in.
    const DEPTH_MAX: usize = 8;
    let own = first(schema, "examples")
        .or_else(|| schema.get("example").cloned())
        .or_else(|| schema.get("default").cloned())
        .or_else(|| schema.get("const").cloned())
        .or_else(|| first(schema, "enum"));
    if let Some(own) = own {
        return Ok(own);
    }
    if depth == DEPTH_MAX {
        return Err(None);
    }
    let target = referred(schema, document);
    if !std::ptr::eq(target, schema) {
        return sample(target, document, depth + 1);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let choices = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        if let Some(shown) = choices.map(|one| sample(one, document, depth + 1)).find_map(Result::ok) {
            return Ok(shown);
        }
    }
    if schema.get("properties").is_some() {
        // Of a part nothing says whether all that has examples is admitted together.
        return members(schema, document, depth + 1).map(|(least, _)| least);
    }
    match schema.get("items") {
        Some(items) => sample(items, document, depth + 1)
            .map(|item| Value::from(vec![item]))
            .map_err(|within| within.map(|within| at("[0]", &within))),
        None => Err(Some(String::new())),
    }
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
    fn what_lies_within_is_made_of_what_its_parts_show() {
        let mail = json!({"type": "string", "examples": ["ada@example.org"]});
        let person = json!({"type": "object", "required": ["mail"], "properties": {"mail": mail, "age": {"type": "integer"}}});
        let schema = json!({"type": "object", "required": ["owner", "guests", "words", "id"], "properties": {
            "owner": person, "guests": {"type": "array", "items": {"$ref": "#/$defs/person"}},
            "words": {"type": "array", "items": {"type": "string", "examples": ["a"]}},
            "id": {"anyOf": [{"type": "null"}, {"type": "integer", "default": 3}]}}, "$defs": {"person": person}});
        let ada = json!({"mail": "ada@example.org"});
        let expected = json!({"owner": ada, "guests": [ada], "words": ["a"], "id": 3});
        assert_eq!(arguments(&schema), Ok(expected));
        let mut whole = schema.clone();
        let given = json!({"owner": ada, "guests": [], "words": [], "id": 4});
        whole["examples"] = json!([given]);
        assert_eq!(arguments(&whole), Ok(given));
        whole["examples"] = json!([{"owner": 1}]);
        assert_eq!(arguments(&whole), arguments(&schema), "one that does not fit is passed over");
    }

    #[test]
    fn what_shows_nothing_is_named_by_its_path() {
        let owner =
            json!({"type": "object", "required": ["mail"], "properties": {"mail": {"type": "string"}}});
        let holding =
            |property: serde_json::Value| json!({"required": ["owner"], "properties": {"owner": property}});
        assert_eq!(arguments(&holding(owner.clone())), Err("owner.mail".to_owned()));
        let list = json!({"type": "array", "items": owner});
        assert_eq!(arguments(&holding(list)), Err("owner[0].mail".to_owned()));
        let endless =
            json!({"type": "object", "required": ["owner"], "properties": {"owner": {"$ref": "#/$defs/o"}}});
        let mut schema = holding(json!({"$ref": "#/$defs/o"}));
        schema["$defs"] = json!({"o": endless});
        assert_eq!(arguments(&schema), Err("owner".to_owned()));
    }

    #[test]
    fn what_is_sent_has_the_defaults_filled_in() {
        let schema = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string", "examples": ["/etc"]},
            "unit": {"type": "string", "enum": ["bytes", "lines"], "default": "bytes"}}});
        let operation: Operation =
            serde_json::from_value(json!({"name": "x", "input_schema": schema})).unwrap();
        let sent = as_sent(&operation, example_arguments(&operation).unwrap());
        assert_eq!(sent, Ok(json!({"path": "/etc", "unit": "bytes"})));
        let wrong = as_sent(&operation, json!({"path": "/etc", "unit": "miles"})).unwrap_err();
        assert!(wrong.starts_with("unit: expected "), "{wrong}");
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
