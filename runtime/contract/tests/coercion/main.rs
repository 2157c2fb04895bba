//! Arguments brought to their declared types: what is converted, what is dropped, and what is left alone.

use plugd_contract::{Contract, Prepared};
use serde_json::Value;
use serde_json::value::RawValue;

mod nested;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the test's own JSON")
}

fn contract(schema: &str) -> Contract {
    Contract::compile(&raw(schema)).expect("the schema compiles")
}

/// What comes of arguments: as they run, or what is missing or wrong, in short.
fn outcome(schema: &str, given: &str) -> String {
    match contract(schema).prepare(&raw(given)) {
        Prepared::Fits => format!("= {given}"),
        Prepared::Ready { arguments, .. } => arguments.get().to_owned(),
        Prepared::Missing { questions, .. } => {
            let names: Vec<String> = questions.into_iter().map(|question| question.name).collect();
            format!("missing {}", names.join(" "))
        }
        Prepared::Wrong(problems) => {
            let told = problems.iter().map(|problem| {
                let got = problem.got.as_deref().unwrap_or("-");
                format!("{} | {} | {} | {got}", problem.path, problem.problem, problem.expected)
            });
            told.collect::<Vec<_>>().join("\n")
        }
    }
}

#[track_caller]
fn check(schema: &str, given: &str, expected: &str) {
    assert_eq!(outcome(schema, given), expected, "{given} by {schema}");
}

/// One key `v` of a type; each text comes to this value.
#[track_caller]
fn texts(kind: &str, table: &[(&str, &str)]) {
    let schema = format!(r#"{{"properties":{{"v":{kind}}}}}"#);
    for (text, expected) in table {
        let given = format!(r#"{{"v":{}}}"#, Value::from(*text));
        check(&schema, &given, &format!(r#"{{"v":{expected}}}"#));
    }
}

/// One key `v` of a type; each JSON value is wrong for its type.
#[track_caller]
fn refused(kind: &str, table: &[(&str, &str)]) {
    let schema = format!(r#"{{"properties":{{"v":{kind}}}}}"#);
    for (value, expected) in table {
        let problem = outcome(&schema, &format!(r#"{{"v":{value}}}"#));
        assert!(problem.starts_with(&format!("/v | type | {expected} | ")), "{value}: {problem}");
    }
}

fn notes(schema: &str, given: &str) -> Vec<String> {
    match contract(schema).prepare(&raw(given)) {
        Prepared::Ready { notes, .. } | Prepared::Missing { notes, .. } => notes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_fits_is_handed_back_untouched() {
    for (schema, given) in [
        (r#"{"properties":{"n":{"type":"integer"}}}"#, r#"{ "n" : 3 }"#),
        (r#"{"properties":{"n":{"type":"integer"}}}"#, "{}"),
        (r#"{"properties":{"n":{"type":"number"}}}"#, r#"{"n":1.10000000000000000001}"#),
        (r#"{"properties":{"n":{"default":3},"o":{"properties":{"x":{"default":1}}}}}"#, r#"{"n":4}"#),
        (r#"{"properties":{"u":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}"#, r#"{"u":"3"}"#),
        ("{}", r#"{"n":"3","x":null,"y":""}"#),
        ("true", r#"{"n":"3"}"#),
    ] {
        check(schema, given, &format!("= {given}"));
    }
}

#[test]
fn what_needs_no_change_is_handed_on_as_it_was_written() {
    check(
        r#"{"properties":{"n":{"type":"integer"},"x":{"type":"number"},"o":{"type":"object"}}}"#,
        r#"{"n":"3","x":1.10000000000000000001,"o":{ "z" : 18446744073709551615, "a":1e2 }}"#,
        r#"{"n":3,"x":1.10000000000000000001,"o":{ "z" : 18446744073709551615, "a":1e2 }}"#,
    );
}

#[test]
fn c099_numbers_written_as_text_become_numbers() {
    let table = [
        ("3", "3"),
        (" 3 ", "3"),
        ("-7", "-7"),
        ("3.0", "3"),
        ("1e3", "1000"),
        ("３", "3"),
        ("三", "3"),
        ("+5", "5"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
    ];
    texts(r#"{"type":"integer"}"#, &table);
    texts(r#"{"type":"number"}"#, &table);
    texts(
        r#"{"type":"number"}"#,
        &[("3.70", "3.70"), ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827")],
    );
}

#[test]
fn c099_the_answer_notes_what_was_converted() {
    let schema = r#"{"properties":{"n":{"type":"integer"},"s":{"type":"string"},"d":{"default":1},
        "pin":{"type":"integer","writeOnly":true}}}"#;
    assert_eq!(
        notes(schema, r#"{"n":"三","s":"三","pin":"1234"}"#),
        [r#"/n: "三" read as 3"#, "/pin: read as its declared type"]
    );
    assert_eq!(notes(schema, r#"{"n":" ","d":2}"#), ["/n: blank dropped"]);
    assert!(notes(schema, r#"{"n":3}"#).is_empty());
    let many = vec!["\"1\""; 150].join(",");
    let notes =
        notes(r#"{"properties":{"l":{"items":{"type":"integer"}}}}"#, &format!(r#"{{"l":[{many}]}}"#));
    assert_eq!((notes.len(), notes[100].as_str()), (101, "and 50 more"));
}

#[test]
fn c099_ranges_are_checked_after_the_conversion() {
    let schema = r#"{"properties":{"days":{"type":"integer","minimum":1,"maximum":14}}}"#;
    check(schema, r#"{"days":"14"}"#, r#"{"days":14}"#);
    check(schema, r#"{"days":"40"}"#, "/days | maximum | an integer from 1 to 14 | integer 40");
    let nullable = r#"{"properties":{"days":{"anyOf":[{"type":"integer","maximum":14},{"type":"null"}]}}}"#;
    assert!(outcome(nullable, r#"{"days":"40"}"#).ends_with("| integer 40"));
}

#[test]
fn a_conversion_that_loses_something_is_an_error() {
    refused(
        r#"{"type":"integer"}"#,
        &[
            ("\"3.7\"", "an integer, for nothing is rounded"),
            ("\"007\"", "an integer, written without leading zeros"),
            ("\"1e400\"", "an integer, within 64 bits or the range of a double"),
            ("\"18446744073709551616\"", "an integer, within 64 bits or the range of a double"),
            ("\"二三\"", "an integer, written in digits, for this can be read in two ways"),
            ("\"0x10\"", "an integer"),
            ("\"几个\"", "an integer"),
            ("\"1,000\"", "an integer, written without separators between its digits"),
            ("3.7", "an integer"),
            ("true", "an integer"),
            ("[3]", "an integer"),
        ],
    );
    refused(r#"{"type":"number"}"#, &[("\"1e400\"", "a number, within 64 bits or the range of a double")]);
    refused(r#"{"type":"boolean"}"#, &[("\"3.7\"", "true or false"), ("1", "true or false")]);
}

#[test]
fn only_texts_are_converted() {
    refused(r#"{"type":"string"}"#, &[("3", "a string"), ("true", "a string"), ("[1]", "a string")]);
    refused(r#"{"type":"boolean"}"#, &[("0", "true or false"), ("1", "true or false")]);
    refused(r#"{"type":"array"}"#, &[("\"a,b\"", "an array"), ("3", "an array")]);
}

#[test]
fn c100_a_string_parameter_gets_exactly_the_text() {
    let schema = r#"{"properties":{"v":{"type":"string"}}}"#;
    for text in [r#"{"a":1}"#, "[1]", "true", "null", "123", "三", "007", " 3 ", "", " ", "3.0", "否"] {
        let given = format!(r#"{{"v":{}}}"#, Value::from(text));
        check(schema, &given, &format!("= {given}"));
    }
}

#[test]
fn c103_booleans_by_a_table() {
    for yes in ["true", "TRUE", "True", " true ", "yes", "Y", "on", "1", "是", "对", "真", "ＴＲＵＥ"]
    {
        texts(r#"{"type":"boolean"}"#, &[(yes, "true")]);
    }
    for no in ["false", "FALSE", "no", "N", "0", "off", "Off", "否", "错", "假", "０"] {
        texts(r#"{"type":"boolean"}"#, &[(no, "false")]);
    }
    refused(
        r#"{"type":"boolean"}"#,
        &[
            ("\"maybe\"", "true or false"),
            ("\"不\"", "true or false"),
            ("\"2\"", "true or false"),
            ("\"truee\"", "true or false"),
            ("\"null\"", "true or false"),
        ],
    );
    check(r#"{"properties":{"v":{"type":"boolean"}},"required":["v"]}"#, r#"{"v":""}"#, "missing v");
}

#[test]
fn c105_blank_is_missing_and_never_zero() {
    let schema = r#"{"properties":{"must":{"type":"number"},"may":{"type":"number"},"s":{"type":"string"}},
        "required":["must"]}"#;
    for blank in ["", "  ", "\\u3000", "\\t"] {
        check(schema, &format!(r#"{{"must":"{blank}","may":1}}"#), "missing must");
        check(schema, &format!(r#"{{"must":1,"may":"{blank}"}}"#), r#"{"must":1}"#);
        let text = format!(r#"{{"must":1,"s":"{blank}"}}"#);
        check(schema, &text, &format!("= {text}"));
    }
    // Where something else is wrong as well, nothing is asked.
    assert_eq!(
        outcome(schema, r#"{"must":"","may":"x"}"#),
        "/must | required | a number | -\n/may | type | a number | string \"x\""
    );
    check(r#"{"properties":{"v":{"enum":[1,2]}}}"#, r#"{"v":" "}"#, "{}");
    check(r#"{"properties":{"v":{"type":["integer","null"]}}}"#, r#"{"v":" "}"#, "{}");
    check(r#"{"properties":{"v":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}"#, r#"{"v":" "}"#, "{}");
    check(r#"{"properties":{"v":{"type":"array"},"o":{"type":"object"}}}"#, r#"{"v":"","o":" "}"#, "{}");
    // A blank text is one where a text is declared, also among alternatives.
    for kind in [
        r#"{"anyOf":[{"type":"string","minLength":1},{"type":"null"}]}"#,
        r#"{"type":["integer","string"],"minLength":1}"#,
        r#"{"enum":["a",1]}"#,
    ] {
        let problem = outcome(&format!(r#"{{"properties":{{"v":{kind}}}}}"#), r#"{"v":""}"#);
        assert!(problem.starts_with("/v | ") && problem.ends_with(r#"string """#), "{problem}");
    }
    // An item cannot be left out of a list.
    assert!(
        outcome(r#"{"properties":{"l":{"items":{"type":"integer"}}}}"#, r#"{"l":[""]}"#)
            .starts_with("/l/0 | type")
    );
}

#[test]
fn c107_chinese_numerals_from_ten_to_twenty_keep_their_ten() {
    texts(
        r#"{"type":"integer"}"#,
        &[
            ("十", "10"),
            ("十一", "11"),
            ("二十", "20"),
            ("二十三", "23"),
            ("一百零五", "105"),
            ("一百一十", "110"),
            ("一千零一", "1001"),
            ("零", "0"),
            ("〇", "0"),
            ("负三", "-3"),
        ],
    );
}

#[test]
fn c109_pair_financial_and_traditional_forms() {
    texts(
        r#"{"type":"integer"}"#,
        &[
            ("两", "2"),
            ("两百", "200"),
            ("两千两百二十五", "2225"),
            ("两百零五", "205"),
            ("壹佰贰拾叁", "123"),
            ("一百六十八萬", "1680000"),
            ("二百五", "250"),
            ("一万零三", "10003"),
        ],
    );
    refused(
        r#"{"type":"integer"}"#,
        &[("\"俩\"", "an integer"), ("\"三点五\"", "an integer, for nothing is rounded")],
    );
    texts(r#"{"type":"number"}"#, &[("三点五", "3.5"), ("负二", "-2"), ("负零点五", "-0.5")]);
}

#[test]
fn c111_names_and_titles_stay_texts() {
    let schema =
        r#"{"properties":{"name":{"type":"string"},"title":{"type":"string"},"count":{"type":"integer"}}}"#;
    check(
        schema,
        r#"{"name":"张三","title":"三国","count":"三"}"#,
        r#"{"name":"张三","title":"三国","count":3}"#,
    );
}

#[test]
fn c089_defaults_stand_for_what_is_optional_and_null_stays_null() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer","default":10},
        "c":{"type":["string","null"],"default":null}},"required":["a"]}"#;
    check(schema, r#"{"a":"x"}"#, r#"{"a":"x","b":10,"c":null}"#);
    check(schema, r#"{"a":"x","b":1,"c":null}"#, r#"= {"a":"x","b":1,"c":null}"#);
    // A text is a text where one is declared; only the command line knows what was typed.
    check(schema, r#"{"a":"x","b":1,"c":"null"}"#, r#"= {"a":"x","b":1,"c":"null"}"#);
    check(r#"{"properties":{"n":{"type":["integer","null"]}}}"#, r#"{"n":"null"}"#, r#"{"n":null}"#);
    check(
        r#"{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}"#,
        r#"{"n":"null"}"#,
        r#"{"n":null}"#,
    );
    refused(r#"{"type":"integer"}"#, &[("\"null\"", "an integer")]);
}

#[test]
fn c090_null_for_what_cannot_be_null_counts_as_absent() {
    let schema = r#"{"properties":{"range":{"type":"integer"},"to":{"type":["integer","null"]},
        "unit":{"enum":["c","f"]},"deep":{"type":"object","properties":{"x":{"type":"string"}}}}}"#;
    check(schema, "{}", "= {}");
    check(schema, r#"{"range":null,"to":null}"#, r#"{"to":null}"#);
    assert_eq!(notes(schema, r#"{"range":null,"to":null}"#), ["/range: null dropped"]);
    check(schema, r#"{"unit":null,"deep":{"x":null}}"#, r#"{"deep":{}}"#);
    check(r#"{"properties":{"n":{"type":"integer","default":3}}}"#, r#"{"n":null}"#, r#"{"n":3}"#);
    check(r#"{"properties":{"n":{"type":"integer"}},"required":["n"]}"#, r#"{"n":null}"#, "missing n");
    assert!(
        outcome(r#"{"properties":{"l":{"items":{"type":"integer"}}}}"#, r#"{"l":[null]}"#)
            .starts_with("/l/0 | type")
    );
}

#[test]
fn c092_no_arguments_are_an_empty_object_and_others_are_no_arguments() {
    check(r#"{"properties":{"a":{"type":"string"}}}"#, "null", "{}");
    check(r#"{"properties":{"a":{"default":1}}}"#, "null", r#"{"a":1}"#);
    check(r#"{"properties":{"a":{"type":"string"}},"required":["a"]}"#, "null", "missing a");
    for given in ["[]", "3", "\"{}\""] {
        assert!(outcome("{}", given).starts_with(" | type | an object | "), "{given}");
    }
}
