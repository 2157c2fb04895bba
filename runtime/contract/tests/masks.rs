//! Sensitive values: out of what is kept, out of what is said, and nothing else touched.

use std::borrow::Cow;

use plugd_contract::Contract;
use serde_json::value::RawValue;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the test's own JSON")
}

fn contract(schema: &str) -> Contract {
    Contract::compile(&raw(schema)).expect("the schema compiles")
}

#[track_caller]
fn masked(schema: &str, given: &str, expected: &str) {
    let contract = contract(schema);
    let given = raw(given);
    assert_eq!(contract.mask(&given), expected, "{given} by {schema}");
}

const LOGIN: &str =
    r#"{"properties":{"user":{"type":"string"},"password":{"type":"string","writeOnly":true}}}"#;

#[test]
fn each_way_to_say_sensitive_counts() {
    for mark in [r#""writeOnly":true"#, r#""format":"password""#, r#""x-sensitive":true"#] {
        let schema = format!(r#"{{"properties":{{"pin":{{{mark}}},"n":{{}}}}}}"#);
        assert!(contract(&schema).has_sensitive());
        masked(&schema, r#"{"pin":"1234","n":1}"#, r#"{"pin":"***","n":1}"#);
    }
    for no_mark in
        [r#""writeOnly":false"#, r#""format":"date""#, r#""x-sensitive":"no""#, r#""readOnly":true"#]
    {
        assert!(!contract(&format!(r#"{{"properties":{{"pin":{{{no_mark}}}}}}}"#)).has_sensitive());
    }
}

#[test]
fn everything_else_stays_as_it_was_written() {
    let schema = r#"{"properties":{"z":{},"a":{},"key":{"writeOnly":true}}}"#;
    masked(
        schema,
        "{ \"z\" : 18446744073709551616.50 ,\n\"key\":[1,{\"b\":\"]}\"}],\"a\":\"\\u00e9\\\"\"}",
        "{ \"z\" : 18446744073709551616.50 ,\n\"key\":\"***\",\"a\":\"\\u00e9\\\"\"}",
    );
    masked(schema, r#"{"key":null}"#, r#"{"key":null}"#);
    masked(schema, r#"{"key":12.50,"z":1}"#, r#"{"key":"***","z":1}"#);
    masked(
        r#"{"properties":{"a\"/~b":{"writeOnly":true}}}"#,
        r#"{"a\u0022/~b":"x"}"#,
        r#"{"a\u0022/~b":"***"}"#,
    );
}

#[test]
fn nothing_is_copied_where_nothing_is_sensitive() {
    let (open, login) = (contract(r#"{"properties":{"user":{}}}"#), contract(LOGIN));
    let given = raw(r#"{"user":"a"}"#);
    assert!(!open.has_sensitive() && login.has_sensitive());
    assert!(matches!(open.mask(&given), Cow::Borrowed(_)));
    assert!(matches!(login.mask(&given), Cow::Borrowed(_)));
}

const SECRET: &str = r#"{"type":"string","writeOnly":true}"#;

#[test]
fn sensitive_values_are_found_behind_references_and_alternatives() {
    for (schema, given, expected) in [
        (
            r##"{"properties":{"p":{"$ref":"#/$defs/S"}},"$defs":{"S":SECRET}}"##,
            r#"{"p":"s"}"#,
            r#"{"p":"***"}"#,
        ),
        (
            r##"{"properties":{"p":{"$ref":"#/$defs/S","x-sensitive":true}},"$defs":{"S":{"type":"string"}}}"##,
            r#"{"p":"s"}"#,
            r#"{"p":"***"}"#,
        ),
        (
            r##"{"properties":{"p":{"$ref":"#pw"}},"$defs":{"S":{"$anchor":"pw","type":"string","writeOnly":true}}}"##,
            r#"{"p":"s"}"#,
            r#"{"p":"***"}"#,
        ),
        (
            r##"{"$id":"https://example.org/a","properties":{"p":{"$ref":"b"}},"$defs":{"S":{"$id":"b","type":"string","writeOnly":true}}}"##,
            r#"{"p":"s"}"#,
            r#"{"p":"***"}"#,
        ),
        (r#"{"allOf":[{"properties":{"p":SECRET}}]}"#, r#"{"p":"s"}"#, r#"{"p":"***"}"#),
        (r#"{"properties":{"p":{"anyOf":[{"type":"null"},SECRET]}}}"#, r#"{"p":"s"}"#, r#"{"p":"***"}"#),
        (
            r#"{"oneOf":[{"properties":{"a":{}}},{"properties":{"p":SECRET}}]}"#,
            r#"{"p":"s"}"#,
            r#"{"p":"***"}"#,
        ),
        (
            r#"{"if":{"required":["a"]},"then":{"properties":{"p":SECRET}},"properties":{"a":{}}}"#,
            r#"{"p":"s"}"#,
            r#"{"p":"***"}"#,
        ),
        (
            r#"{"dependentSchemas":{"a":{"properties":{"p":SECRET}}},"properties":{"a":{}}}"#,
            r#"{"p":"s","a":1}"#,
            r#"{"p":"***","a":1}"#,
        ),
    ] {
        masked(&schema.replace("SECRET", SECRET), given, expected);
    }
}

#[test]
fn sensitive_values_are_found_in_lists_maps_and_whole_objects() {
    for (schema, given, expected) in [
        (r#"{"properties":{"l":{"items":SECRET}}}"#, r#"{"l":["s","t"]}"#, r#"{"l":["***","***"]}"#),
        (r#"{"properties":{"l":{"prefixItems":[{},SECRET]}}}"#, r#"{"l":[1,"s",2]}"#, r#"{"l":[1,"***",2]}"#),
        (r#"{"properties":{"l":{"contains":SECRET}}}"#, r#"{"l":["s"]}"#, r#"{"l":["***"]}"#),
        (
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{},{}],"additionalItems":SECRET}}}"#,
            r#"{"l":[1,2,"s"]}"#,
            r#"{"l":[1,2,"***"]}"#,
        ),
        (r#"{"additionalProperties":SECRET}"#, r#"{"any":"s"}"#, r#"{"any":"***"}"#),
        (r#"{"unevaluatedProperties":SECRET}"#, r#"{"any":"s"}"#, r#"{"any":"***"}"#),
        (
            r#"{"properties":{"a":{}},"patternProperties":{"^p_":SECRET}}"#,
            r#"{"p_x":"s","a":"t"}"#,
            r#"{"p_x":"***","a":"t"}"#,
        ),
        (
            r#"{"patternProperties":{"^p":{"type":"string"},"x$":SECRET}}"#,
            r#"{"px":"s","py":"t"}"#,
            r#"{"px":"***","py":"t"}"#,
        ),
        (r#"{"properties":{"p":{}},"patternProperties":{"^p$":SECRET}}"#, r#"{"p":"s"}"#, r#"{"p":"***"}"#),
        (
            r##"{"properties":{"child":{"$ref":"#"},"p":SECRET}}"##,
            r#"{"child":{"child":{"p":"s"}}}"#,
            r#"{"child":{"child":{"p":"***"}}}"#,
        ),
        (
            r#"{"properties":{"c":{"type":"object","x-sensitive":true,"properties":{"user":{}}}}}"#,
            r#"{"c":{"user":"u"},"d":1}"#,
            r#"{"c":"***","d":"***"}"#,
        ),
        (r#"{"x-sensitive":true}"#, r#"{"a":1}"#, r#""***""#),
    ] {
        masked(&schema.replace("SECRET", SECRET), given, expected);
    }
}

/// What is wrong is recorded too, and may hold the secret in the wrong place.
#[test]
fn a_secret_in_the_wrong_place_is_hidden_too() {
    masked(LOGIN, r#"{"pasword":"s","user":"u"}"#, r#"{"pasword":"***","user":"u"}"#);
    masked(LOGIN, r#""{\"password\":\"s\"}""#, r#""***""#);
    masked(LOGIN, r#"[{"password":"s"}]"#, r#""***""#);
    let nested = format!(r#"{{"properties":{{"login":{LOGIN}}}}}"#);
    masked(&nested, r#"{"login":"{\"password\":\"s\"}"}"#, r#"{"login":"***"}"#);
    masked(&nested, r#"{"login":[{"password":"s"}]}"#, r#"{"login":"***"}"#);
    let open = r#"{"properties":{"password":{"writeOnly":true}},"additionalProperties":true}"#;
    masked(
        open,
        r#"{"Password":"s","passwort":"t","note":"n"}"#,
        r#"{"Password":"***","passwort":"***","note":"n"}"#,
    );
}

#[test]
fn a_text_nested_a_million_times_is_masked_without_recursion() {
    let schema = r##"{"properties":{"a":{"$ref":"#"},"p":{"writeOnly":true}}}"##;
    let deep = format!("{}{}{}", r#"{"a":"#.repeat(1_000_000), r#"{"p":"s"}"#, "}".repeat(1_000_000));
    let deep = raw(&deep);
    let masked = contract(schema).mask(&deep).into_owned();
    assert!(masked.contains(r#"{"p":"***"}"#) && !masked.contains("\"s\""));
}

#[test]
fn a_schema_too_large_to_look_through_hides_rather_than_shows() {
    let many: Vec<String> = (0..1_500)
        .map(|index| {
            format!(
                r#""k{index}":{{"properties":{{"v{index}":{{"properties":{{"p":{{"writeOnly":true}}}}}}}}}}"#
            )
        })
        .collect();
    let contract = contract(&format!(r#"{{"properties":{{{}}}}}"#, many.join(",")));
    for index in [0, 700, 1_499] {
        let given = raw(&format!(r#"{{"k{index}":{{"v{index}":{{"p":"s3cr3t"}}}}}}"#));
        assert!(!contract.mask(&given).contains("s3cr3t"), "{index}");
    }
}

/// C145: a secret value is in no message.
#[test]
fn c145_no_problem_shows_a_sensitive_value() {
    let schema = r#"{"properties":{
        "user":{"type":"string"},
        "password":{"type":"string","minLength":20,"writeOnly":true},
        "pin":{"type":"integer","x-sensitive":true},
        "keys":{"type":"object","x-sensitive":true,"additionalProperties":{"type":"integer"}},
        "login":{"type":"object","properties":{"token":{"type":"string","format":"password","pattern":"^T-"}},"required":["name"]},
        "way":{"anyOf":[{"type":"integer"},{"type":"object","properties":{"token":{"writeOnly":true,"type":"integer"}}}]},
        "all":{"type":"array","maxItems":1,"items":{"type":"string","writeOnly":true}}}}"#;
    let contract = contract(schema);
    for given in [
        r#"{"password":"s3cr3t"}"#,
        r#"{"pin":"s3cr3t"}"#,
        r#"{"pasword":"s3cr3t"}"#,
        r#"{"keys":{"s3cr3t":"s3cr3t"}}"#,
        r#"{"keys":"s3cr3t"}"#,
        r#"{"login":{"token":"s3cr3t"}}"#,
        r#"{"login":"{\"token\":\"s3cr3t\"}"}"#,
        r#"{"login":{"tokn":"s3cr3t"}}"#,
        r#"{"login":["s3cr3t"]}"#,
        r#"{"way":{"token":"s3cr3t"}}"#,
        r#"{"way":"s3cr3t"}"#,
        r#"{"all":["s3cr3t","s3cr3t"]}"#,
        r#"["s3cr3t"]"#,
        r#""s3cr3t""#,
    ] {
        let problems = contract.check(&raw(given)).expect_err(given);
        let said = format!("{problems:?}");
        assert!(!said.contains("s3cr3t"), "{given}: {said}");
        assert!(!contract.mask(&raw(given)).contains("s3cr3t"), "{given}");
        let output = contract.check_output(&raw(given)).err();
        assert!(!format!("{output:?}").contains("s3cr3t"), "{given}: {output:?}");
    }
    let number = contract.check(&raw(r#"{"pin":99999999999999999999}"#)).expect_err("beyond 64 bits");
    assert_eq!(number[0].got.as_deref(), Some("number ***"));
    assert_eq!(number[0].path, "/pin");
    let shown = contract.check(&raw(r#"{"user":3}"#)).expect_err("no string");
    assert_eq!(shown[0].got.as_deref(), Some("integer 3"), "what is not sensitive is shown");
}

#[test]
fn a_place_is_known_to_be_sensitive_by_its_pointer() {
    let contract =
        contract(&format!(r#"{{"properties":{{"login":{LOGIN},"all":{{"items":{{"writeOnly":true}}}}}}}}"#));
    for (pointer, sensitive) in [
        ("", false),
        ("/login", false),
        ("/login/user", false),
        ("/login/password", true),
        ("/login/password/x", true),
        ("/all", false),
        ("/all/3", true),
        ("/none/x", false),
    ] {
        assert_eq!(contract.is_sensitive(pointer), sensitive, "{pointer}");
    }
}
