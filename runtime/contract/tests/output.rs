//! What an operation answered, against its output schema.

use plugd_contract::Contract;
use serde_json::value::RawValue;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the test's own JSON")
}

#[track_caller]
fn check(schema: &str, output: &str, paths: &[&str]) {
    let contract = Contract::compile(&raw(schema)).expect("the schema compiles");
    let problems = contract.check_output(&raw(output)).err().unwrap_or_default();
    let found: Vec<String> =
        problems.iter().map(|problem| format!("{} {}", problem.path, problem.problem)).collect();
    assert_eq!(found, paths, "{output} against {schema}");
}

#[test]
fn an_answer_may_be_any_json() {
    for output in ["null", "true", "3", "\"x\"", "[1,[2]]", "{}"] {
        check("{}", output, &[]);
    }
    check(r#"{"type":"array","items":{"type":"integer"}}"#, r#"[1,"x",null]"#, &["/1 type", "/2 type"]);
    check(r#"{"type":"string"}"#, "3", &[" type"]);
}

#[test]
fn keys_nobody_declared_are_fine_unless_the_schema_forbids_them() {
    let schema =
        r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}},"required":["a"]}"#;
    check(schema, r#"{"a":{"b":1,"c":2},"d":3}"#, &[]);
    check(schema, r#"{"d":3}"#, &["/a required"]);
    check(
        r#"{"properties":{"a":{}},"additionalProperties":false}"#,
        r#"{"d":3}"#,
        &["/d additionalProperties"],
    );
}

#[test]
fn numbers_longer_than_64_bits_are_no_breach() {
    check(r#"{"type":"integer"}"#, "123456789012345678901234567890", &[]);
    check(r#"{"type":"number","maximum":1}"#, "123456789012345678901234567890.5", &[" maximum"]);
    check("{}", "1e400", &[" number"]);
}
