//! Defaults: filled where a value is absent, and nowhere else.

use plugd_contract::{Prepared, fill_defaults};
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

/// The arguments as they run; equal ones are marked.
fn prepared(schema: &str, given: &str) -> String {
    let raw = |json: &str| RawValue::from_string(json.to_owned()).expect("the test's own JSON");
    let contract = plugd_contract::Contract::compile(&raw(schema)).expect("the schema compiles");
    match contract.prepare(&raw(given)) {
        Prepared::Fits => format!("= {given}"),
        Prepared::Ready { arguments, .. } => arguments.get().to_owned(),
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn runs_as(schema: &str, given: &str, expected: &str) {
    assert_eq!(prepared(schema, given), expected, "{given} by {schema}");
}

#[test]
fn arguments_get_the_defaults_of_the_keys_they_lack() {
    let schema = r#"{"properties":{"city":{"type":"string"},"unit":{"enum":["celsius","kelvin"],"default":"celsius"},
        "days":{"type":"integer","default":3}},"required":["city","days"]}"#;
    runs_as(schema, r#"{"city":"Oslo"}"#, r#"{"city":"Oslo","unit":"celsius","days":3}"#);
    runs_as(
        schema,
        r#"{"days":1,"city":"Oslo","unit":"kelvin"}"#,
        r#"= {"days":1,"city":"Oslo","unit":"kelvin"}"#,
    );
    runs_as(schema, r#"{"city":"Oslo","days":"5"}"#, r#"{"city":"Oslo","days":5,"unit":"celsius"}"#);
    let reference = r##"{"properties":{"u":{"$ref":"#/$defs/u"}},"$defs":{"u":{"default":"c"}}}"##;
    runs_as(reference, "{}", r#"{"u":"c"}"#);
}

/// What is suggested for each key that nobody declared.
fn suggested(schema: &str, given: &str) -> Vec<(String, Option<String>)> {
    let raw = |json: &str| RawValue::from_string(json.to_owned()).expect("the test's own JSON");
    let contract = plugd_contract::Contract::compile(&raw(schema)).expect("the schema compiles");
    match contract.prepare(&raw(given)) {
        Prepared::Wrong(problems) => {
            problems.into_iter().map(|problem| (problem.path, problem.suggestion)).collect()
        }
        other => panic!("{given} by {schema}: {other:?}"),
    }
}

#[test]
fn a_key_with_a_default_is_suggested_for_one_that_is_misspelt_unless_it_is_given() {
    let schema = r#"{"properties":{"count":{"type":"integer","default":1},"sides":{"type":"integer"},
        "in":{"type":"object","properties":{"a/b":{"default":1}}}}}"#;
    let near = |path: &str, name: &str| vec![(path.to_owned(), Some(name.to_owned()))];
    assert_eq!(suggested(schema, r#"{"cuont":1,"sides":6}"#), near("/cuont", "count"));
    assert_eq!(suggested(schema, r#"{"cuont":"1","sides":"6"}"#), near("/cuont", "count"));
    assert_eq!(suggested(schema, r#"{"in":{"a/bb":2}}"#), near("/in/a~1bb", "a/b"));
    assert_eq!(suggested(schema, r#"{"cuont":1,"count":2}"#), [("/cuont".to_owned(), None)]);
    let closed = r#"{"properties":{"count":{"default":1}},"additionalProperties":false}"#;
    assert_eq!(suggested(closed, r#"{"cuont":1}"#), near("/cuont", "count"));
    // Also within an alternative.
    let either = r#"{"properties":{"n":{"anyOf":[{"type":"null"},{"type":"object","required":["id"],
        "properties":{"id":{"type":"integer"},"count":{"default":1}},"additionalProperties":false}]}}}"#;
    assert_eq!(suggested(either, r#"{"n":{"id":1,"cuont":1}}"#), near("/n/cuont", "count"));
}

#[test]
fn nested_objects_that_are_there_get_theirs_and_others_are_not_made_up() {
    let schema = r##"{"properties":{"http":{"type":"object","properties":{"retries":{"default":2}}},
        "list":{"type":"array","items":{"$ref":"#/$defs/item"}},"map":{"additionalProperties":{"$ref":"#/$defs/item"}},
        "pair":{"prefixItems":[{"$ref":"#/$defs/item"}]}},"$defs":{"item":{"properties":{"n":{"default":1}}}}}"##;
    runs_as(schema, "{}", "= {}");
    runs_as(schema, r#"{"http":{}}"#, r#"{"http":{"retries":2}}"#);
    runs_as(
        schema,
        r#"{"list":[{},{"n":5}],"map":{"k":{}},"pair":[{},{}]}"#,
        r#"{"list":[{"n":1},{"n":5}],"map":{"k":{"n":1}},"pair":[{"n":1},{}]}"#,
    );
    // What a pattern of keys says is not told from what is said of the rest.
    let patterned = r#"{"properties":{"m":{"patternProperties":{"^x":{}},
        "additionalProperties":{"properties":{"n":{"default":1}}}}}}"#;
    runs_as(patterned, r#"{"m":{"x1":{}}}"#, r#"= {"m":{"x1":{}}}"#);
    // A default is completed by the defaults within it.
    let whole =
        r#"{"properties":{"o":{"default":{"a":1},"properties":{"a":{"default":5},"b":{"default":2}}}}}"#;
    runs_as(whole, "{}", r#"{"o":{"a":1,"b":2}}"#);
}

#[test]
fn defaults_come_from_the_alternative_that_matches_alone() {
    let schema = r#"{"properties":{"kind":{"type":"string"}},"oneOf":[
        {"properties":{"kind":{"const":"a"},"x":{"default":1}},"required":["kind"]},
        {"properties":{"kind":{"const":"b"},"y":{"default":2}},"required":["kind"]}]}"#;
    runs_as(schema, r#"{"kind":"a"}"#, r#"{"kind":"a","x":1}"#);
    runs_as(schema, r#"{"kind":"b"}"#, r#"{"kind":"b","y":2}"#);
    // Also where it matches only once it has them.
    let required = r#"{"properties":{"kind":{"type":"string"}},"oneOf":[
        {"properties":{"kind":{"const":"a"},"x":{"default":1}},"required":["kind","x"]},
        {"properties":{"kind":{"const":"b"},"y":{"default":2}},"required":["kind","y"]}]}"#;
    runs_as(required, r#"{"kind":"b"}"#, r#"{"kind":"b","y":2}"#);
    let conditional = r#"{"properties":{"fast":{"type":"boolean"}},"if":{"properties":{"fast":{"const":true}},"required":["fast"]},
        "then":{"properties":{"lanes":{"default":8}},"required":["lanes"]},"else":{"properties":{"lanes":{"default":1}}}}"#;
    runs_as(conditional, r#"{"fast":true}"#, r#"{"fast":true,"lanes":8}"#);
    runs_as(conditional, r#"{"fast":"是"}"#, r#"{"fast":true,"lanes":8}"#);
    runs_as(conditional, "{}", r#"{"lanes":1}"#);
}

#[test]
fn a_default_that_would_not_fit_is_left_out() {
    let schema =
        r#"{"properties":{"n":{"type":"integer","default":null},"m":{"type":"integer","default":2}}}"#;
    runs_as(schema, "{}", r#"{"m":2}"#);
    // Both alternatives would match with it.
    let spoils =
        r#"{"properties":{"x":{"default":1},"y":{}},"oneOf":[{"required":["x"]},{"required":["y"]}]}"#;
    runs_as(spoils, r#"{"y":1}"#, r#"= {"y":1}"#);
    runs_as(spoils, "{}", r#"{"x":1}"#);
}

#[test]
fn defaults_that_lead_to_themselves_end() {
    let schema = r##"{"properties":{"a":{"$ref":"#","default":{}},"n":{"default":1}}}"##;
    runs_as(schema, "{}", r#"{"a":{"n":1},"n":1}"#);
    let large = format!(
        r#"{{"properties":{{"l":{{"items":{{"properties":{{"x":{{"default":"{}"}}}}}}}}}}}}"#,
        "x".repeat(100_000)
    );
    let filled = prepared(&large, &format!(r#"{{"l":[{}]}}"#, vec!["{}"; 1_000].join(",")));
    assert!((900_000..2_000_000).contains(&filled.len()), "{}", filled.len());
}
