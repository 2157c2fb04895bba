//! Schemas that must be refused, each with its reason, and those that must not be.

use plugd_contract::{Contract, SchemaError};
use serde_json::value::RawValue;

fn compile(schema: &str) -> Result<Contract, SchemaError> {
    Contract::compile(&RawValue::from_string(schema.to_owned()).expect("the test's own JSON"))
}

#[track_caller]
fn refused(schema: &str, reason: &str) {
    let error = compile(schema).expect_err("must be refused").to_string();
    assert!(error.contains(reason), "{error:?} does not say {reason:?}");
}

#[test]
fn a_schema_that_is_none_is_refused() {
    refused("[]", "a schema is a JSON object such as {\"type\": \"object\"}; this is array []");
    refused("null", "this is null");
    refused(r#"{"type":"strnig"}"#, "not valid at /type");
    refused(r#"{"properties":{"a":{"minLength":-1}}}"#, "not valid at /properties/a/minLength");
    refused(r#"{"$schema":"http://json-schema.org/draft-04/schema#"}"#, "2020-12 or draft-07");
}

#[test]
fn a_type_that_is_none_is_told_with_those_there_are_and_the_nearest() {
    const ALL: &str = "expected one of array, boolean, integer, null, number, object, string";
    for (schema, at, rest) in [
        (r#"{"type":"strnig"}"#, "/type", ", got string \"strnig\": did you mean string?"),
        (r#"{"properties":{"a":{"type":"int"}}}"#, "/properties/a/type", "\"int\": did you mean integer?"),
        (r#"{"type":["null","objct"]}"#, "/type/1", ", got string \"objct\": did you mean object?"),
        (r#"{"type":"whatever"}"#, "/type", ", got string \"whatever\""),
        (r#"{"type":3}"#, "/type", ", got integer 3"),
        (r#"{"type":[]}"#, "/type", ", or a list of them, each once, got array []"),
        (
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":{"type":"strnig"}}"#,
            "/items/type",
            "did you mean string?",
        ),
    ] {
        refused(schema, &format!("the schema is not valid at {at}: {ALL}"));
        let error = compile(schema).expect_err("must be refused").to_string();
        assert!(error.ends_with(rest), "{error}");
    }
    // A property of that name is a schema, not a type.
    compile(r#"{"properties":{"type":{"type":"string"}}}"#).expect("it compiles");
}

#[test]
fn a_pattern_that_cannot_run_in_linear_time_is_refused_by_name() {
    for (pattern, reason) in [
        ("(", "it is not a regular expression"),
        ("^(?=a)b", "it looks around ((?=…)"),
        ("^(?=.*[A-Z])(?=.*[0-9]).{8,}$", "several patterns under \"allOf\""),
        ("^(?!x)", "it looks around ((?!…)"),
        ("(?<=a)b", "it looks around ((?<=…)"),
        ("(?<!a)b", "it looks around ((?<!…)"),
        ("(a)\\1", "it refers back to a group (\\1)"),
        ("(?<n>a)\\k<n>", "it refers back to a group (\\k)"),
        ("^(((a{1,999}){1,999}){1,999})$", "it grows too large"),
    ] {
        let text = serde_json::to_string(pattern).expect("a string");
        let property = format!(r#"{{"properties":{{"a":{{"pattern":{text}}}}}}}"#);
        let keys = format!(r#"{{"properties":{{"a":{{"patternProperties":{{{text}:{{}}}}}}}}}}"#);
        refused(&property, &format!("the pattern {text} at /properties/a/pattern cannot be used"));
        for schema in [&property, &keys] {
            refused(schema, reason);
            assert!(matches!(compile(schema), Err(SchemaError::Pattern { .. })), "{schema}");
        }
    }
    for fine in
        ["(?:a|b)*?c", "[(?=]", "\\(?=", "(?<n>a)", "\\p{L}+", "\\\\1", "^\\d{4}-\\d{2}$", "[\\d\\-x]"]
    {
        let text = serde_json::to_string(fine).expect("a string");
        compile(&format!(r#"{{"properties":{{"a":{{"pattern":{text}}}}}}}"#)).expect(fine);
    }
}

#[test]
fn a_pattern_takes_time_in_line_with_the_text() {
    let contract = compile(r#"{"properties":{"a":{"pattern":"^(a+)+$"}}}"#).expect("it compiles");
    let long = RawValue::from_string(format!(r#"{{"a":"{}!"}}"#, "a".repeat(1_000_000))).expect("JSON");
    let begun = std::time::Instant::now();
    contract.check(&long).expect_err("the end does not match");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "took {:?}", begun.elapsed());
}

/// A schema may double the work with every level; no answer takes that long.
#[test]
fn alternatives_within_alternatives_do_not_multiply() {
    let branch = r##"{"properties":{"x":{"$ref":"#"},"k":{"const":1}}}"##;
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let contract = compile(&format!(r#"{{"{keyword}":[{branch},{branch}]}}"#)).expect("it compiles");
        let deep = format!("{}{}{}", r#"{"x":"#.repeat(100), r#"{"k":2}"#, "}".repeat(100));
        let begun = std::time::Instant::now();
        let problems = contract.check(&RawValue::from_string(deep).expect("JSON")).expect_err("k is not 1");
        assert!(!problems.is_empty());
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{keyword} took {:?}", begun.elapsed());
    }
}

#[test]
fn many_large_alternatives_are_compiled_in_good_time() {
    let branches: Vec<String> = (0..1_000)
        .map(|index| {
            format!(
                r##"{{"properties":{{"a{index}":{{"$ref":"#"}},"b{index}":{{"properties":{{"c":{{}}}}}}}}}}"##
            )
        })
        .collect();
    let begun = std::time::Instant::now();
    compile(&format!(r#"{{"anyOf":[{}]}}"#, branches.join(","))).expect("it compiles");
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "took {:?}", begun.elapsed());
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    for reference in
        ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json", "https://example.org/schema"]
    {
        refused(&format!(r#"{{"properties":{{"a":{{"$ref":"{reference}"}}}}}}"#), "leaves the schema");
    }
    refused(r##"{"$ref":"#/$defs/gone"}"##, "points to nothing");
    refused(r##"{"$ref":"#gone"}"##, "points to nothing");
    refused(r##"{"properties":{"a":{"$ref":"#/properties/a/enum"},"enum":[1]}}"##, "points to nothing");
}

#[test]
fn a_schema_that_means_itself_is_refused() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"$ref":""}"##,
        r##"{"$dynamicRef":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"not":{"$ref":"#"}}"##,
        r##"{"if":{"$ref":"#"}}"##,
        r##"{"dependentSchemas":{"a":{"$ref":"#"}}}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}}"##,
        r##"{"properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/a"}}}"##,
        r##"{"$ref":"#me","$anchor":"me"}"##,
        r##"{"$dynamicRef":"#me","$dynamicAnchor":"me"}"##,
        r##"{"$id":"https://example.org/me","$ref":"https://example.org/me"}"##,
        r##"{"$defs":{"in":{"$id":"https://example.org/in","allOf":[{"$ref":"#"}]}}}"##,
        r##"{"$ref":"#/x-other/a","x-other":{"a":{"$ref":"#/x-other/a"}}}"##,
        r##"{"$ref":"#/%24defs/a","$defs":{"a":{"$ref":"#/%24defs/a"}}}"##,
    ] {
        refused(schema, "leads back to itself");
    }
}

#[test]
fn recursion_that_looks_deeper_is_fine() {
    for schema in [
        r##"{"properties":{"child":{"$ref":"#"}}}"##,
        r##"{"properties":{"list":{"items":{"$ref":"#"}}}}"##,
        r##"{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}}}}}"##,
        r##"{"properties":{"$ref":{"type":"string"}}}"##,
        r##"{"properties":{"a":{"const":{"$ref":"#"},"default":{"$ref":"http://x/"}}}}"##,
        r##"{"$defs":{"i":{"$id":"https://example.org/i","type":"integer"}},"properties":{"a":{"$ref":"https://example.org/i"}}}"##,
        r##"{"$id":"https://example.org/a/b","$defs":{"i":{"$id":"i","type":"integer"}},"properties":{"a":{"$ref":"i"},"b":{"$ref":"/a/i"}}}"##,
        r##"{"properties":{"schema":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}"##,
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"schema":{"$ref":"http://json-schema.org/draft-07/schema#"}}}"##,
    ] {
        compile(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
    }
}

#[test]
fn a_schema_too_deep_is_refused() {
    let nested = |levels: usize| format!("{}{{}}{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
    compile(&nested(20)).expect("deep enough for anybody");
    refused(&nested(64), "too deep");
    refused(&nested(100_000), "too deep");
    let deep = |levels: usize| format!("{}{{}}{}", r#"{"items":"#.repeat(levels), "}".repeat(levels));
    compile(&deep(63)).expect("at the limit");
    refused(&deep(64), "too deep");
}

/// A chain of `$defs` that lead to one another, each by way of `link`.
fn chain(length: usize, link: impl Fn(usize) -> String) -> String {
    let defs: Vec<String> = (0..length).map(|index| format!(r#""d{index}":{}"#, link(index + 1))).collect();
    format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d{length}":{{}}}}}}"##, defs.join(","))
}

#[test]
fn long_chains_and_wide_trees_of_references_are_refused() {
    refused(&chain(10_000, |next| format!(r##"{{"$ref":"#/$defs/d{next}"}}"##)), "too deep");
    refused(&chain(10_000, |next| format!(r##"{{"items":{{"$ref":"#/$defs/d{next}"}}}}"##)), "too deep");
    refused(
        &chain(20, |next| {
            format!(r##"{{"anyOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}}"##)
        }),
        "too deep",
    );
}

/// The worst that is let through must fit on the smallest stack a call is checked on.
#[test]
fn the_deepest_schema_allowed_fits_a_thread_of_two_mebibytes() {
    let worst = || {
        let chain = chain(150, |next| format!(r##"{{"items":{{"$ref":"#/$defs/d{next}"}}}}"##));
        drop(compile(&chain).expect("within the limits"));
        // Nine in-place steps for each of as many levels as arguments can have.
        let mut inner = r##"{"properties":{"x":{"$ref":"#"}}}"##.to_owned();
        for _ in 0..20 {
            inner = format!(r#"{{"allOf":[{inner}]}}"#);
        }
        let contract = compile(&inner).expect("within the limits");
        let nested = |core: &str| format!("{}{core}{}", r#"{"x":"#.repeat(126), "}".repeat(126));
        let check = |json: String| contract.check(&RawValue::from_string(json).expect("JSON"));
        check(nested("{}")).expect("valid");
        assert_eq!(check(nested(r#"{"y":1}"#)).expect_err("unknown key").len(), 1);
        // As many alternatives, each of which remembers what is wrong in it.
        for levels in [1, 20] {
            let mut inner = r##"{"properties":{"x":{"$ref":"#"},"k":{"type":"integer"}}}"##.to_owned();
            for _ in 0..levels {
                inner = format!(r#"{{"anyOf":[{inner},{{"type":"null"}}]}}"#);
            }
            let contract = compile(&inner).expect("within the limits");
            for depth in [1, 2, 10, 40, 120] {
                let wrong = format!("{}{}{}", r#"{"x":"#.repeat(depth), r#"{"k":"x"}"#, "}".repeat(depth));
                contract.check(&RawValue::from_string(wrong).expect("JSON")).expect_err("k is no integer");
            }
        }
        assert_eq!(
            check(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))).expect_err("too deep").len(),
            1
        );
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(worst).expect("a thread");
    thread.join().expect("neither overflow nor panic");
}
