//! Defaults: filled where a value is absent, and nowhere else.

use plugd_contract::fill_defaults;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[track_caller]
fn check(schema: &str, config: Value, expected: Value) {
    let schema = RawValue::from_string(schema.to_owned()).expect("the test's own JSON");
    assert_eq!(fill_defaults(&schema, &config), expected, "{config} by {schema}");
}

#[test]
fn what_is_absent_is_filled_and_what_is_given_stays() {
    let schema = r#"{"properties":{"api_timeout":{"default":5},"city":{"type":"string"}}}"#;
    check(schema, json!({}), json!({"api_timeout": 5}));
    check(schema, json!({"api_timeout": null, "other": 1}), json!({"api_timeout": null, "other": 1}));
    check(schema, json!([1]), json!([1]));
}

#[test]
fn nested_objects_are_filled_where_they_become_complete() {
    let schema = r##"{"properties":{"http":{"$ref":"#/$defs/Http"},"db":{"required":["url"],"properties":{
        "url":{"type":"string"},"pool":{"default":4}}}},
        "$defs":{"Http":{"properties":{"retries":{"default":2}}}}}"##;
    check(schema, json!({}), json!({"http": {"retries": 2}}));
    check(
        schema,
        json!({"db": {"url": "x"}}),
        json!({"http": {"retries": 2}, "db": {"url": "x", "pool": 4}}),
    );
}

#[test]
fn a_schema_within_itself_does_not_grow_without_end() {
    let schema = r##"{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"n":{"default":1}}}"##;
    check(schema, json!({}), json!({"n": 1, "a": {"n": 1}, "b": {"n": 1}}));
    check(r##"{"$ref":"#"}"##, json!({"a": 1}), json!({"a": 1}));
}
