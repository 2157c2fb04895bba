//! Arguments against schemas: what is accepted, and every problem in the words a caller reads.

use plugd_contract::Contract;
use serde_json::value::RawValue;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the test's own JSON")
}

/// `path | problem | expected | got | suggestion` of each problem; absent ones are `-`.
fn problems(schema: &str, arguments: &str) -> Vec<String> {
    let contract = Contract::compile(&raw(schema)).expect("the schema compiles");
    let absent = || "-".to_owned();
    match contract.check(&raw(arguments)) {
        Ok(()) => Vec::new(),
        Err(problems) => problems
            .into_iter()
            .map(|problem| {
                let (got, suggestion) = (problem.got, problem.suggestion);
                [
                    problem.path,
                    problem.problem,
                    problem.expected,
                    got.unwrap_or_else(absent),
                    suggestion.unwrap_or_else(absent),
                ]
                .join(" | ")
            })
            .collect(),
    }
}

#[track_caller]
fn check(schema: &str, arguments: &str, expected: &[&str]) {
    assert_eq!(problems(schema, arguments), expected, "{arguments} against {schema}");
}

const FORECAST: &str = r#"{"type":"object","properties":{
    "city":{"type":"string","minLength":1},
    "unit":{"enum":["celsius","fahrenheit"]},
    "days":{"type":"integer","minimum":1,"maximum":14}},"required":["city"]}"#;

#[test]
fn what_fits_is_accepted() {
    check(FORECAST, r#"{"city":"Beijing"}"#, &[]);
    check(FORECAST, r#"{"city":"北京","unit":"celsius","days":14}"#, &[]);
    check("{}", r#"{"anything":[1,{"goes":null}]}"#, &[]);
    check("true", r#"{"a":1}"#, &[]);
    check(r#"{"type":"object","properties":{}}"#, r#"{"a":1}"#, &[]);
}

#[test]
fn every_problem_is_named_at_once_with_its_legal_range() {
    check(
        FORECAST,
        r#"{"citty":"Beijing","unit":"celcius","days":15}"#,
        &[
            "/city | required | a string of at least 1 character | - | -",
            "/unit | enum | one of celsius, fahrenheit | string \"celcius\" | celsius",
            "/days | maximum | an integer from 1 to 14 | integer 15 | -",
            "/citty | additionalProperties | only the keys city, days, unit | string \"Beijing\" | city",
        ],
    );
    check(
        FORECAST,
        r#"{"city":3,"days":"3"}"#,
        &[
            "/city | type | a string of at least 1 character | integer 3 | -",
            "/days | type | an integer from 1 to 14 | string \"3\" | -",
        ],
    );
}

#[test]
fn a_pattern_is_shown_with_an_example() {
    check(
        r#"{"properties":{"ticket_id":{"type":"string","pattern":"^TK-\\d{8}-\\d{3}$","examples":["TK-20241215-001"]}}}"#,
        r#"{"ticket_id":"TK-1"}"#,
        &[
            r#"/ticket_id | pattern | a string matching ^TK-\d{8}-\d{3}$, e.g. TK-20241215-001 | string "TK-1" | -"#,
        ],
    );
}

#[test]
fn arguments_that_are_no_object_are_one_problem() {
    for (given, got) in [("[]", "array []"), ("3", "integer 3"), ("null", "null"), ("\"x\"", "string \"x\"")]
    {
        check(FORECAST, given, &[&format!(" | type | an object | {got} | -")]);
    }
}

#[test]
fn the_only_missing_key_is_suggested_for_the_only_unknown_one() {
    check(
        r#"{"type":"object","required":["todos"],"properties":{"todos":{"type":"array","items":{"type":"object",
            "properties":{"title":{"type":"string"},"description":{"type":"string"}},"required":["title"]}}}}"#,
        r#"{"items":[{"id":4,"title":"x"}]}"#,
        &[
            "/todos | required | an array, each an object with title | - | -",
            r#"/items | additionalProperties | only the keys todos | array [{"id":4,"title":"x"}] | todos"#,
        ],
    );
}

#[test]
fn unknown_keys_are_found_in_nested_objects_and_lists() {
    let nested = r##"{"properties":{"list":{"type":"array","items":{"$ref":"#/$defs/item"}},
        "free":{"type":"object","additionalProperties":true,"properties":{"a":{}}}},
        "$defs":{"item":{"type":"object","properties":{"title":{},"child":{"$ref":"#/$defs/item"}}}}}"##;
    check(nested, r#"{"list":[{"title":1,"child":{"title":2}}],"free":{"b":1}}"#, &[]);
    check(
        nested,
        r#"{"list":[{},{"child":{"titel":2}}]}"#,
        &["/list/1/child/titel | additionalProperties | only the keys child, title | integer 2 | title"],
    );
}

#[test]
fn keys_are_known_from_every_branch_and_open_where_the_schema_says_so() {
    let branches = r##"{"properties":{"a":{}},"allOf":[{"$ref":"#/$defs/b"}],
        "anyOf":[{"properties":{"c":{}}},{"required":["d"],"properties":{"d":{}}}],
        "$defs":{"b":{"properties":{"b":{}}}}}"##;
    check(branches, r#"{"a":1,"b":2,"c":3,"d":4}"#, &[]);
    check(branches, r#"{"e":1}"#, &["/e | additionalProperties | only the keys a, b, c, d | integer 1 | -"]);
    for open in [
        r#"{"properties":{"a":{}},"additionalProperties":true}"#,
        r#"{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}"#,
        r#"{"properties":{"a":{}},"patternProperties":{"^x":{}}}"#,
        r#"{"patternProperties":{"^a":{}}}"#,
        r#"{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}},"additionalProperties":{}}]}"#,
        r#"{"if":{"properties":{"a":{"const":1}}},"then":{"required":["x"]}}"#,
        r#"{"properties":{"a":{}},"allOf":[{"$ref":"https://json-schema.org/draft/2020-12/schema"}]}"#,
        r#"{"properties":{"a":{}},"unevaluatedProperties":true}"#,
        r#"{"anyOf":[{"properties":{"a":{}}},{"type":"object"}]}"#,
    ] {
        check(open, r#"{"x":1}"#, &[]);
    }
    for (closed, known) in [
        (r#"{"properties":{"a":{}},"patternProperties":{"^k":{}}}"#, "a and keys matching ^k"),
        (
            r#"{"properties":{"a":{}},"patternProperties":{"^k":{}},"additionalProperties":false}"#,
            "a and keys matching ^k",
        ),
        (
            r#"{"properties":{"a":{}},"allOf":[{"properties":{"b":{}}}],"unevaluatedProperties":false}"#,
            "a, b",
        ),
        (r#"{"properties":{"a":{}},"anyOf":[{"required":["a"]},{"type":"object"}]}"#, "a"),
        (
            r#"{"properties":{"a":{}},"if":{"required":["a"]},"then":{"properties":{"b":{}}},"else":{"properties":{"c":{}}}}"#,
            "a, b, c",
        ),
        (r#"{"properties":{"a":{}},"dependentSchemas":{"a":{"properties":{"b":{}}}}}"#, "a, b"),
        (r#"{"anyOf":[{"type":"null"},{"properties":{"a":{}}}]}"#, "a"),
        (r#"{"anyOf":[{"properties":{"a":{}}}]}"#, "a"),
        (
            r##"{"$id":"https://example.org/root","$ref":"other","$defs":{"o":{"$id":"other","properties":{"a":{}}}}}"##,
            "a",
        ),
    ] {
        check(
            closed,
            r#"{"x":1}"#,
            &[&format!("/x | additionalProperties | only the keys {known} | integer 1 | -")],
        );
    }
    check(
        r#"{"properties":{"a/b":{}},"additionalProperties":false}"#,
        r#"{"a~b":true}"#,
        &["/a~0b | additionalProperties | only the keys a/b | boolean true | a/b"],
    );
}

#[test]
fn unknown_keys_are_found_wherever_keywords_lead() {
    let inner = r#"{"type":"object","properties":{"a":{}}}"#;
    for (schema, right, wrong, path) in [
        (r#"{"additionalProperties":INNER}"#, r#"{"k":{"a":1}}"#, r#"{"k":{"b":1}}"#, "/k/b"),
        (r#"{"unevaluatedProperties":INNER}"#, r#"{"k":{"a":1}}"#, r#"{"k":{"b":1}}"#, "/k/b"),
        (r#"{"patternProperties":{"^k":INNER}}"#, r#"{"k":{"a":1},"x":{"b":1}}"#, r#"{"k":{"b":1}}"#, "/k/b"),
        (
            r#"{"properties":{"l":{"prefixItems":[INNER]}}}"#,
            r#"{"l":[{"a":1},{"b":1}]}"#,
            r#"{"l":[{"b":1}]}"#,
            "/l/0/b",
        ),
        (
            r#"{"properties":{"l":{"prefixItems":[{}],"items":INNER}}}"#,
            r#"{"l":[{"b":1},{"a":1}]}"#,
            r#"{"l":[1,{"b":1}]}"#,
            "/l/1/b",
        ),
        (
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{}],"additionalItems":INNER}}}"#,
            r#"{"l":[{"b":1},{"a":1}]}"#,
            r#"{"l":[1,{"b":1}]}"#,
            "/l/1/b",
        ),
        (
            r#"{"properties":{"l":{"items":{"anyOf":[{"type":"string"},INNER]}}}}"#,
            r#"{"l":["b",{"a":1}]}"#,
            r#"{"l":[{"b":1}]}"#,
            "/l/0/b",
        ),
    ] {
        let schema = schema.replace("INNER", inner);
        check(&schema, right, &[]);
        check(&schema, wrong, &[&format!("{path} | additionalProperties | only the keys a | integer 1 | -")]);
    }
    // An alternative that takes any value takes it whole.
    for schema in [
        r#"{"anyOf":[{"properties":{"k":INNER},"required":["n"]},{"properties":{"k":{"type":"object"}}}]}"#,
        r#"{"anyOf":[{"properties":{"k":INNER},"required":["n"]},{"additionalProperties":true}]}"#,
        r#"{"properties":{"k":{"contains":INNER}}}"#,
        r#"{"properties":{"k":{"anyOf":[{"items":INNER},{"type":"array"}]}}}"#,
    ] {
        let value = if schema.contains("items") || schema.contains("contains") {
            r#"{"k":[{"b":1}]}"#
        } else {
            r#"{"k":{"b":1}}"#
        };
        check(&schema.replace("INNER", inner), value, &[]);
    }
}

#[test]
fn a_value_behind_references_is_described_whole() {
    let days = r##"{"properties":{"d":{"$ref":"#/$defs/Days","maximum":7},"e":{"allOf":[{"$ref":"#/$defs/Days"},{"minimum":3}]}},
        "$defs":{"Days":{"type":"integer","minimum":1,"maximum":14}}}"##;
    check(days, r#"{"d":8}"#, &["/d | maximum | an integer from 1 to 7 | integer 8 | -"]);
    check(
        days,
        r#"{"d":0,"e":2}"#,
        &[
            "/d | minimum | an integer from 1 to 7 | integer 0 | -",
            "/e | minimum | an integer from 3 to 14 | integer 2 | -",
        ],
    );
    check(
        r#"{"properties":{"a":{"type":"string","pattern":"^A","examples":["A1"]},"b":{}},"if":{"required":["b"]},"then":{"required":["a"]}}"#,
        r#"{"b":1}"#,
        &["/a | required | a string matching ^A, e.g. A1 | - | -"],
    );
}

#[test]
fn ranges_are_one_sentence() {
    for (schema, expected) in [
        (r#"{"type":"integer","minimum":1,"maximum":14}"#, "an integer from 1 to 14"),
        (r#"{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10}"#, "an integer from 1 to 9"),
        (r#"{"type":"number","exclusiveMinimum":0,"maximum":1}"#, "a number, above 0 and at most 1"),
        (r#"{"type":"number","minimum":0,"exclusiveMaximum":1}"#, "a number, at least 0 and below 1"),
        (r#"{"type":"number","minimum":0.5}"#, "a number, at least 0.5"),
        (
            r#"{"type":"integer","minimum":0,"maximum":60,"multipleOf":5}"#,
            "an integer from 0 to 60, a multiple of 5",
        ),
        (r#"{"type":"string","minLength":1}"#, "a string of at least 1 character"),
        (r#"{"type":"string","minLength":3,"maxLength":3}"#, "a string of exactly 3 characters"),
        (
            r#"{"type":"string","format":"date","maxLength":10}"#,
            "a date such as 2024-12-31 of at most 10 characters",
        ),
        (r#"{"type":["integer","null"],"minimum":1}"#, "an integer, at least 1 or null"),
        (
            r#"{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","maxLength":2},"uniqueItems":true}"#,
            "an array of 1 to 3 items without duplicates, each a string of at most 2 characters",
        ),
        (r#"{"type":"object","minProperties":1,"required":["a"]}"#, "an object of at least 1 key with a"),
        (r#"{"enum":["a","1",1,null,"null"," b"]}"#, "one of a, \"1\", 1, null, \"null\", \" b\""),
        (r#"{"const":"fixed"}"#, "fixed"),
    ] {
        let found = problems(&format!(r#"{{"properties":{{"v":{schema}}}}}"#), r#"{"v":false}"#);
        let said: Vec<&str> = found[0].split(" | ").collect();
        assert_eq!(said[2], expected, "{schema}");
    }
}

#[test]
fn keywords_about_many_values_say_what_is_missing() {
    check(
        r#"{"properties":{"l":{"contains":{"type":"integer","minimum":1}}}}"#,
        r#"{"l":[0]}"#,
        &["/l | contains | an array with at least 1 item being an integer, at least 1 | array [0] | -"],
    );
    check(
        r#"{"properties":{"l":{"contains":{"const":"a"},"minContains":2,"maxContains":3}}}"#,
        r#"{"l":["a"]}"#,
        &["/l | contains | an array with at least 2 and at most 3 items being a | array [\"a\"] | -"],
    );
    check(
        r#"{"propertyNames":{"pattern":"^[a-z]+$","examples":["name"]}}"#,
        r#"{"A":1}"#,
        &[r#" | propertyNames | keys that are a string matching ^[a-z]+$, e.g. name | key "A" | -"#],
    );
    check(
        r#"{"properties":{"a":{},"b":{"type":"integer"}},"dependentRequired":{"a":["b"]}}"#,
        r#"{"a":1}"#,
        &["/b | required | an integer | - | -"],
    );
    check(
        r#"{"unevaluatedProperties":{"type":"integer"}}"#,
        r#"{"a":"x"}"#,
        &["/a | unevaluatedProperties | an integer | string \"x\" | -"],
    );
    check(
        r#"{"properties":{"a":{"not":{"type":"string"}},"n":false}}"#,
        r#"{"a":"x","n":1}"#,
        &[
            "/a | not | anything but a string | string \"x\" | -",
            "/n | falseSchema | nothing here: the schema allows no value | integer 1 | -",
        ],
    );
}

#[test]
fn alternatives_are_named_briefly() {
    let either = r#"{"properties":{"order_id":{"type":"string"},"user_id":{"type":"string"}},
        "anyOf":[{"required":["order_id"]},{"required":["user_id"]}]}"#;
    check(either, "{}", &[" | anyOf | order_id or user_id | - | -"]);
    check(either, r#"{"user_id":"u"}"#, &[]);
    check(
        r#"{"properties":{"when":{"oneOf":[{"type":"string","format":"date"},{"type":"integer","minimum":0}]}}}"#,
        r#"{"when":-1}"#,
        &["/when | minimum | an integer, at least 0, or a date such as 2024-12-31 | integer -1 | -"],
    );
    check(
        r#"{"properties":{"unit":{"oneOf":[{"const":"celsius","title":"C"},{"const":"kelvin"}]}}}"#,
        r#"{"unit":"celcius"}"#,
        &["/unit | oneOf | celsius or kelvin | string \"celcius\" | celsius"],
    );
}

#[test]
fn references_are_followed_for_words_too() {
    check(
        r##"{"properties":{"unit":{"$ref":"#/$defs/Unit"}},"required":["unit"],
            "$defs":{"Unit":{"type":"string","enum":["celsius","kelvin"]}}}"##,
        r#"{}"#,
        &["/unit | required | one of celsius, kelvin | - | -"],
    );
    check(
        r##"{"properties":{"unit":{"$ref":"#/$defs/Unit"}},"$defs":{"Unit":{"type":"string","enum":["celsius","kelvin"]}}}"##,
        r#"{"unit":"calvin"}"#,
        &["/unit | enum | one of celsius, kelvin | string \"calvin\" | kelvin"],
    );
}

#[test]
fn formats_are_asserted() {
    for (format, good, bad) in [
        ("date", "2024-12-31", "2024-02-30"),
        ("email", "a@example.org", "a.example.org"),
        ("uuid", "0190b5a0-0000-7000-8000-000000000000", "0190"),
        ("uri", "https://example.org/", "no uri"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", "::g"),
        ("date-time", "2024-12-31T14:30:00Z", "2024-12-31 14:30"),
        ("time", "14:30:00Z", "half past two"),
        ("duration", "PT1H", "an hour"),
        ("hostname", "example.org", "-example-.org"),
        ("regex", "^a$", "("),
    ] {
        for draft in
            ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
        {
            let schema = format!(
                r#"{{"$schema":"{draft}","properties":{{"v":{{"type":"string","format":"{format}"}}}}}}"#
            );
            assert!(problems(&schema, &format!(r#"{{"v":"{good}"}}"#)).is_empty(), "{format}");
            let found = problems(&schema, &format!(r#"{{"v":"{bad}"}}"#));
            assert!(found.len() == 1 && found[0].starts_with("/v | format | a"), "{format}: {found:?}");
        }
    }
    for tolerated in ["int32", "password", "binary", "made-up"] {
        check(&format!(r#"{{"properties":{{"v":{{"format":"{tolerated}"}}}}}}"#), r#"{"v":"anything"}"#, &[]);
    }
}

#[test]
fn draft_07_is_understood_by_its_name() {
    let schema = r#"{"$schema":"http://json-schema.org/draft-07/schema#",
        "properties":{"pair":{"items":[{"type":"integer"},{"type":"string"}]}}}"#;
    check(schema, r#"{"pair":[1,"a"]}"#, &[]);
    assert_eq!(problems(schema, r#"{"pair":["a",1]}"#).len(), 2);
}

#[test]
fn no_number_is_ever_rounded() {
    let any = r#"{"properties":{"id":{},"list":{}}}"#;
    check(any, r#"{"id":2512292042121000001}"#, &[]);
    check(any, r#"{"id":18446744073709551615}"#, &[]);
    check(any, r#"{"id":-9223372036854775808,"list":[1e300,0.1]}"#, &[]);
    for (arguments, path) in [
        (r#"{"id":1e400}"#, "/id"),
        (r#"{"id":18446744073709551616}"#, "/id"),
        (r#"{"list":[1,{"x":-9223372036854775809}]}"#, "/list/1/x"),
        (r#"{"a":{"b":",]\\\"99999999999999999999"},"l":[[],{"k":2},"é", {"x/y" : 1E400 }]}"#, "/l/3/x~1y"),
    ] {
        let found = problems(any, arguments);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("{path} | number | a number within 64 bits")), "{found:?}");
    }
    assert_eq!(problems(any, r#"{"id":1e400,"list":[-1e400]}"#).len(), 2);
}

#[test]
fn a_flood_of_problems_stays_readable() {
    let list = format!(r#"{{"list":[{}]}}"#, vec!["true"; 10_000].join(","));
    let found = problems(r#"{"properties":{"list":{"items":{"type":"integer"}}}}"#, &list);
    assert_eq!(found.len(), 101);
    assert!(found[100].contains("the first 100 problems"), "{}", found[100]);
    let long = format!(r#"{{"list":"{}"}}"#, "三".repeat(1_000_000));
    assert!(problems(r#"{"properties":{"list":{"type":"array"}}}"#, &long)[0].len() < 500);
}

#[test]
fn a_value_already_parsed_is_checked_too() {
    let contract = Contract::compile(&raw(FORECAST)).expect("compiles");
    assert!(contract.check_value(&serde_json::json!({"city": "Oslo"})).is_ok());
    assert_eq!(contract.check_value(&serde_json::json!({})).expect_err("no city").len(), 1);
}
