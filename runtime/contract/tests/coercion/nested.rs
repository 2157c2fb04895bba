//! Texts that are JSON, options, alternatives, and whatever declares a type from afar.

use serde_json::Value;

use super::{check, notes, outcome, refused, texts};

#[test]
fn json_texts_become_the_lists_and_objects_that_are_declared() {
    texts(
        r#"{"type":["array","object"]}"#,
        &[("[1, \"2\"]", "[1, \"2\"]"), (" {\"a\":1.10} ", "{\"a\":1.10}")],
    );
    // Also what is in them, and texts within texts.
    let schema = r#"{"properties":{"l":{"type":"array","items":{"type":"integer"}},
        "o":{"type":"object","properties":{"n":{"type":"integer"},"l":{"type":"array"}}}}}"#;
    check(
        schema,
        r#"{"l":"[\"三\", 2]","o":"{\"n\":\"4\",\"l\":\"[1]\"}"}"#,
        r#"{"l":[3,2],"o":{"n":4,"l":[1]}}"#,
    );
    refused(
        r#"{"type":"array"}"#,
        &[
            ("\"{}\"", "an array"),
            ("\"[1\"", "an array"),
            ("\"[1e400]\"", "an array"),
            ("\"[1] x\"", "an array"),
        ],
    );
    check(
        r#"{"properties":{"v":{"type":"array"}}}"#,
        r#"{"v":"{}"}"#,
        r#"/v | type | an array | string "{}""#,
    );
    // What cannot be read does not keep the rest from being converted.
    check(
        r#"{"properties":{"v":{"type":"array"},"n":{"type":"integer"}}}"#,
        r#"{"v":"[1e400]","n":"3"}"#,
        r#"/v | type | an array | string "[1e400]""#,
    );
    refused(r#"{"type":"object"}"#, &[("\"[]\"", "an object"), ("\"{'a':1}\"", "an object")]);
}

#[test]
fn options_are_met_but_for_case_and_by_what_they_read_as() {
    let unit = r#"{"properties":{"v":{"type":"string","enum":["Celsius","fahrenheit","Ä"]}}}"#;
    check(unit, r#"{"v":"celsius"}"#, r#"{"v":"Celsius"}"#);
    check(unit, r#"{"v":"FAHRENHEIT"}"#, r#"{"v":"fahrenheit"}"#);
    check(unit, r#"{"v":"ä"}"#, r#"{"v":"Ä"}"#);
    for wrong in ["celcius", " celsius", "celsius ", "c", "Celsius."] {
        assert!(outcome(unit, &format!(r#"{{"v":"{wrong}"}}"#)).starts_with("/v | enum"), "{wrong}");
    }
    // Two that differ in case alone: neither.
    assert!(
        outcome(r#"{"properties":{"v":{"enum":["ab","AB"]}}}"#, r#"{"v":"Ab"}"#).starts_with("/v | enum")
    );
    texts(r#"{"enum":[1,2.5,true,null,"x"]}"#, &[("1.0", "1"), ("二", "\"二\"")][..1]);
    texts(r#"{"enum":[1,2.5,null,"x"]}"#, &[("2.50", "2.5"), ("null", "null"), ("X", "\"x\"")]);
    texts(r#"{"enum":[1.0]}"#, &[("1", "1.0"), ("一", "1.0")]);
    texts(r#"{"type":"integer","enum":[1,2]}"#, &[("二", "2")]);
    assert_eq!(notes(r#"{"properties":{"v":{"type":"integer","enum":[2]}}}"#, r#"{"v":"二"}"#).len(), 1);
    check(
        r#"{"properties":{"v":{"type":"integer","enum":[7,8]}}}"#,
        r#"{"v":"007"}"#,
        r#"/v | type | one of 7, 8, written without leading zeros | string "007""#,
    );
    texts(r#"{"const":"Yes"}"#, &[("yes", "\"Yes\"")]);
    texts(r#"{"const":3}"#, &[("3", "3")]);
    // An option that reads two ways is none.
    assert!(outcome(r#"{"properties":{"v":{"enum":[1,true]}}}"#, r#"{"v":"1"}"#).starts_with("/v | enum"));
    // Dates in the form they are declared in fit as they are.
    let date = r#"{"properties":{"v":{"type":"string","format":"date-time"}}}"#;
    check(date, r#"{"v":"2024-12-31t10:00:00z"}"#, r#"= {"v":"2024-12-31t10:00:00z"}"#);
    assert!(outcome(date, r#"{"v":"2024-12-31"}"#).starts_with("/v | format"));
}

#[test]
fn a_type_of_several_is_taken_only_where_one_remains() {
    let kind = r#"{"type":["integer","boolean"]}"#;
    texts(kind, &[("3", "3"), ("true", "true"), ("是", "true")]);
    // 1 as well as true.
    refused(kind, &[("\"1\"", "an integer or true or false")]);
    texts(r#"{"type":["integer","number"]}"#, &[("3", "3"), ("3.5", "3.5")]);
    texts(r#"{"type":["array","integer"]}"#, &[("[3]", "[3]"), ("3", "3")]);
    check(r#"{"properties":{"v":{"type":["integer","string"]}}}"#, r#"{"v":"3"}"#, r#"= {"v":"3"}"#);
}

#[test]
fn alternatives_are_converted_to_the_only_one_that_comes_of_it() {
    let of = |branches: &str| format!(r#"{{"properties":{{"v":{{"anyOf":[{branches}]}}}}}}"#);
    let int_or_null = of(r#"{"type":"integer"},{"type":"null"}"#);
    check(&int_or_null, r#"{"v":"3"}"#, r#"{"v":3}"#);
    assert_eq!(notes(&int_or_null, r#"{"v":"3"}"#), [r#"/v: "3" read as 3"#]);
    check(&int_or_null, r#"{"v":null}"#, r#"= {"v":null}"#);
    check(&of(r#"{"type":"integer"},{"type":"string"}"#), r#"{"v":"3"}"#, r#"= {"v":"3"}"#);
    // What fits one branch after the conversion, but not the other.
    check(
        &of(r#"{"type":"integer","maximum":9},{"type":"integer","minimum":20}"#),
        r#"{"v":"30"}"#,
        r#"{"v":30}"#,
    );
    assert!(
        outcome(&of(r#"{"type":"integer"},{"type":"boolean"}"#), r#"{"v":"1"}"#).ends_with(r#"string "1""#)
    );
    check(&of(r#"{"type":"integer"},{"type":"boolean"}"#), r#"{"v":"no"}"#, r#"{"v":false}"#);
    check(&of(r#"{"type":"integer"},{"type":"boolean"}"#), r#"{"v":null}"#, "{}");
    // What fits a branch but for its range or what is missing is left alone, whatever another makes of it.
    let of_text = of(r#"{"type":"integer"},{"type":"string","minLength":5}"#);
    check(&of_text, r#"{"v":"40"}"#, r#"{"v":40}"#);
    assert!(
        outcome(&of(r#"{"type":"integer","maximum":9},{"type":"string","minLength":5}"#), r#"{"v":"40"}"#)
            .ends_with(r#"string "40""#)
    );
    let lacking = |kind: &str, key: &str| {
        format!(
            r#"{{"type":"object","properties":{{"a":{{"type":"{kind}"}},"{key}":{{}}}},"required":["{key}"]}}"#
        )
    };
    check(&of(&lacking("integer", "b")), r#"{"v":{"a":"3"}}"#, "missing v/b");
    let two = of(&format!("{},{}", lacking("integer", "b"), lacking("string", "c")));
    check(&two, r#"{"v":{"a":"3"}}"#, "missing v/c");
    let other = of(&format!("{},{}", lacking("string", "c"), lacking("integer", "b")));
    check(&other, r#"{"v":{"a":"3"}}"#, "missing v/c");
    // What would fit two where one is wanted is not taken.
    let both = r#"{"properties":{"v":{"oneOf":[{"type":"integer"},{"type":"number"}]}}}"#;
    assert!(outcome(both, r#"{"v":"3"}"#).ends_with(r#"string "3""#));
    // Each is noted once, wherever alternatives lie within one another.
    let pair = r#"{"properties":{"v":{"anyOf":[{"type":"integer"},{"type":"null"}]},"w":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}"#;
    assert_eq!(notes(pair, r#"{"v":"3","w":"4"}"#), [r#"/v: "3" read as 3"#, r#"/w: "4" read as 4"#]);
    let within = r#"{"properties":{"o":{"anyOf":[{"properties":{"k":{"type":"integer"}},"required":["k"]},{"type":"null"}]}},
        "allOf":[{"properties":{"o":{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}}}]}"#;
    check(within, r#"{"o":{"k":"1","n":"2"}}"#, r#"{"o":{"k":1,"n":2}}"#);
    assert_eq!(notes(within, r#"{"o":{"k":"1","n":"2"}}"#).len(), 2);
    // Objects told apart by a key, and lists of them.
    let shapes = r##"{"properties":{"all":{"type":"array","items":{"oneOf":[{"$ref":"#/$defs/circle"},{"$ref":"#/$defs/square"}]}}},
        "$defs":{"circle":{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
        "square":{"type":"object","properties":{"kind":{"const":"square"},"side":{"anyOf":[{"type":"integer"},{"type":"null"}]}},"required":["kind","side"]}}}"##;
    check(
        shapes,
        r#"{"all":[{"kind":"circle","r":"1.5"},{"kind":"square","side":"２"},"{\"kind\":\"circle\",\"r\":\"3\"}"]}"#,
        r#"{"all":[{"kind":"circle","r":1.5},{"kind":"square","side":2},{"kind":"circle","r":3}]}"#,
    );
}

#[test]
fn references_conditions_and_maps_declare_types_too() {
    let schema = r##"{"properties":{"a":{"$ref":"#/$defs/n"},"m":{"type":"object","additionalProperties":{"type":"integer"}},
        "p":{"type":"object","patternProperties":{"^x":{"type":"boolean"}}},"t":{"type":"array","prefixItems":[{"type":"integer"}]}},
        "allOf":[{"properties":{"b":{"type":"integer"}}}],"$defs":{"n":{"allOf":[{"type":"integer"}]}}}"##;
    check(
        schema,
        r#"{"a":"1","b":"2","m":{"k":"3"},"p":{"x1":"是"},"t":["4","5"]}"#,
        r#"{"a":1,"b":2,"m":{"k":3},"p":{"x1":true},"t":[4,"5"]}"#,
    );
    // What a condition looks at is converted before what it decides.
    let conditional = r#"{"properties":{"kind":{"type":"integer"},"x":{}},
        "if":{"properties":{"kind":{"const":1}}},"then":{"properties":{"x":{"type":"integer"}}},
        "else":{"properties":{"x":{"type":"boolean"}}}}"#;
    check(conditional, r#"{"kind":"1","x":"1"}"#, r#"{"kind":1,"x":1}"#);
    check(conditional, r#"{"kind":"2","x":"1"}"#, r#"{"kind":2,"x":true}"#);
}

#[test]
fn recursive_schemas_are_followed_as_deep_as_the_arguments_go() {
    let node = r##"{"properties":{"n":{"type":"integer"},"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}"##;
    check(node, r#"{"n":"1","next":{"n":2,"next":null}}"#, r#"{"n":1,"next":{"n":2,"next":null}}"#);
    check(
        node,
        r#"{"n":1,"next":{"n":"2","next":{"n":"三","next":null}}}"#,
        r#"{"n":1,"next":{"n":2,"next":{"n":3,"next":null}}}"#,
    );
}

#[test]
fn nothing_takes_long_however_much_is_given() {
    let started = std::time::Instant::now();
    let items = vec!["\"1\""; 20_000].join(",");
    let list =
        r#"{"properties":{"l":{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}}"#;
    drop(outcome(list, &format!(r#"{{"l":[{items}]}}"#)));
    let plain = r#"{"properties":{"l":{"type":"array","items":{"type":"integer"}}}}"#;
    assert!(outcome(plain, &format!(r#"{{"l":[{items}]}}"#)).starts_with(r#"{"l":[1,1,"#));
    // Alternatives within alternatives, none of which fits.
    let mut kind = r#"{"type":"integer"}"#.to_owned();
    for depth in 0..4 {
        let branch = |key: char| format!(r#"{{"type":"object","properties":{{"{key}":{kind}}}}}"#);
        let branches: Vec<String> = ('a'..='f').map(branch).collect();
        kind = format!(r#"{{"title":"{depth}","anyOf":[{}]}}"#, branches.join(","));
    }
    let given = r#"{"v":{"a":{"a":{"a":{"a":"x"}}}}}"#;
    drop(outcome(&format!(r#"{{"properties":{{"v":{kind}}}}}"#), given));
    // Sixteen alike, three levels deep.
    let mut kind = r#"{"type":"integer"}"#.to_owned();
    for _ in 0..3 {
        let branch = |index: usize| {
            format!(r#"{{"title":"{index}","type":"object","properties":{{"a":{kind}}},"required":["a"]}}"#)
        };
        kind = format!(r#"{{"anyOf":[{}]}}"#, (0..16).map(branch).collect::<Vec<_>>().join(","));
    }
    drop(outcome(&format!(r#"{{"properties":{{"v":{kind}}}}}"#), r#"{"v":{"a":{"a":{"a":"x"}}}}"#));
    let texts = format!(
        r#"{{"v":{}}}"#,
        (0..12).fold("1".to_owned(), |text, _| Value::from(format!("[{text}]")).to_string())
    );
    drop(outcome(r#"{"properties":{"v":{"type":"array","items":{"type":"array"}}}}"#, &texts));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
