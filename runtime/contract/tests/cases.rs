//! Cases of other hosts' trouble with schemas, as far as the contract alone shows them.

use plugd_contract::{Contract, SchemaError};
use plugd_protocol::error::ArgumentProblem;
use serde_json::value::RawValue;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the test's own JSON")
}

fn problems(schema: &str, arguments: &str) -> Vec<ArgumentProblem> {
    let contract = Contract::compile(&raw(schema)).expect("the schema compiles");
    contract.check(&raw(arguments)).expect_err("there is something wrong")
}

/// C087: a list without `items` is a schema like any other; values are checked by what it says.
#[test]
fn c087_a_list_of_unnamed_items_is_checked_as_declared() {
    let schema =
        r#"{"type":"object","properties":{"o":{"type":"object","properties":{"l":{"type":"array"}}}}}"#;
    let contract = Contract::compile(&raw(schema)).expect("it compiles");
    contract.check(&raw(r#"{"o":{"l":[1,"a",{"b":null},[]]}}"#)).expect("any items");
    let wrong = contract.check(&raw(r#"{"o":{"l":{}}}"#)).expect_err("no list");
    assert_eq!((wrong[0].path.as_str(), wrong[0].expected.as_str()), ("/o/l", "an array"));
}

/// C089: what has a default is not asked for unless it is listed as required.
#[test]
fn c089_a_parameter_with_a_default_is_not_demanded() {
    let schema = r#"{"properties":{"a":{"type":"string"},"b":{"type":"integer","default":10},
        "c":{"type":["string","null"],"default":null}},"required":["a"]}"#;
    let contract = Contract::compile(&raw(schema)).expect("it compiles");
    contract.check(&raw(r#"{"a":"x"}"#)).expect("only a is needed");
    contract.check(&raw(r#"{"a":"x","c":null}"#)).expect("null is allowed");
}

/// C092: what is no object does not pass for arguments.
#[test]
fn c092_what_is_no_object_is_one_problem() {
    for given in ["[]", "3", "\"x\"", "true"] {
        let found = problems(r#"{"properties":{"path":{"type":"string"}}}"#, given);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].problem.as_str(), found[0].expected.as_str()), ("type", "an object"));
    }
}

/// C093: a schema that means itself, or something elsewhere, is refused and never followed.
#[test]
fn c093_references_that_lead_nowhere_are_refused_with_the_reason() {
    let refusal = |schema: &str| Contract::compile(&raw(schema)).expect_err(schema);
    for schema in [
        r##"{"$ref":""}"##,
        r##"{"$ref":"#"}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}"##,
    ] {
        assert!(matches!(refusal(schema), SchemaError::Loop { .. }), "{schema}");
    }
    assert!(matches!(refusal(r##"{"$ref":"#/$defs/gone"}"##), SchemaError::Dangling { .. }));
    for elsewhere in ["http://127.0.0.1:9/x", "file:///etc/passwd"] {
        let error = refusal(&format!(r#"{{"properties":{{"a":{{"$ref":"{elsewhere}"}}}}}}"#));
        assert_eq!(error, SchemaError::External { reference: elsewhere.to_owned() });
        assert!(error.to_string().contains("nothing is fetched"), "{error}");
    }
}

/// C095: the branch that was meant says what is wrong; the others are only named.
#[test]
fn c095_the_branch_that_was_meant_is_explained() {
    let schema = r#"{"anyOf":[
        {"type":"object","properties":{"version":{"const":1},"description":{"type":"string"}},"required":["version","description"]},
        {"type":"object","properties":{"version":{"const":2},"summary":{"type":"string"}},"required":["version","summary"]}]}"#;
    let found = problems(schema, r#"{"version":1,"description":0}"#);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].path, "/description");
    assert_eq!(found[0].problem, "type");
    assert_eq!(found[0].expected, "a string (when version is 1; version may also be 2)");
    assert_eq!(found[0].got.as_deref(), Some("integer 0"));
}

/// C097: everything that is wrong is said at once, so that the next try is another one.
#[test]
fn c097_missing_and_unknown_keys_are_named_together() {
    let schema = r#"{"type":"object","required":["todos"],"properties":{"todos":{"type":"array","items":{
        "type":"object","properties":{"title":{"type":"string"},"description":{"type":"string"}},"required":["title"]}}}}"#;
    let found = problems(schema, r#"{"items":[{"id":4,"title":"x"}]}"#);
    let said: Vec<_> =
        found.iter().map(|problem| (problem.path.as_str(), problem.problem.as_str())).collect();
    assert_eq!(said, [("/todos", "required"), ("/items", "additionalProperties")]);
    assert_eq!(found[0].expected, "an array, each an object with title");
    assert_eq!(found[1].suggestion.as_deref(), Some("todos"));
}
