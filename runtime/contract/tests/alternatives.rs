//! What is said of a value that fits no branch of an `anyOf` or `oneOf`.

use plugd_contract::Contract;
use serde_json::value::RawValue;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the test's own JSON")
}

/// `path | problem | expected | got` of each problem against one property `v`.
#[track_caller]
fn check(schema: &str, value: &str, expected: &[&str]) {
    let contract =
        Contract::compile(&raw(&format!(r#"{{"properties":{{"v":{schema}}}}}"#))).expect("it compiles");
    let problems = contract.check(&raw(&format!(r#"{{"v":{value}}}"#))).err().unwrap_or_default();
    let said: Vec<String> = problems
        .into_iter()
        .map(|problem| {
            let got = problem.got.unwrap_or("-".to_owned());
            let suggestion = problem.suggestion.map(|near| format!(" | {near}")).unwrap_or_default();
            format!("{} | {} | {} | {got}{suggestion}", problem.path, problem.problem, problem.expected)
        })
        .collect();
    assert_eq!(said, expected, "{value} against {schema}");
}

const PAYMENT: &str = r#"{"oneOf":[
    {"type":"object","properties":{"kind":{"const":"card"},"number":{"type":"string","pattern":"^\\d{4}$"},"cvc":{"type":"integer"}},"required":["kind","number"]},
    {"type":"object","properties":{"kind":{"const":"iban"},"iban":{"type":"string","minLength":4}},"required":["kind","iban"],"additionalProperties":false},
    {"type":"object","properties":{"kind":{"enum":["cash","cheque"]}},"required":["kind"]}]}"#;

#[test]
fn a_telling_key_names_the_branch() {
    let told = " (when kind is card; kind may also be iban, cash, cheque)";
    check(PAYMENT, r#"{"kind":"card","number":"1234"}"#, &[]);
    check(
        PAYMENT,
        r#"{"kind":"card","number":"12","cvc":"x"}"#,
        &[
            &format!(r#"/v/number | pattern | a string matching ^\d{{4}}${told} | string "12""#),
            r#"/v/cvc | type | an integer | string "x""#,
        ],
    );
    check(
        PAYMENT,
        r#"{"kind":"card"}"#,
        &[&format!(r"/v/number | required | a string matching ^\d{{4}}${told} | -")],
    );
    check(
        PAYMENT,
        r#"{"kind":"iban","iban":"DE00","bank":"x"}"#,
        &[
            r#"/v/bank | additionalProperties | only the keys iban, kind (when kind is iban; kind may also be card, cash, cheque) | string "x""#,
        ],
    );
}

#[test]
fn a_telling_key_that_is_wrong_or_missing_is_the_problem() {
    check(
        PAYMENT,
        r#"{"kind":"cart"}"#,
        &[r#"/v/kind | enum | one of card, iban, cash, cheque | string "cart" | card"#],
    );
    check(PAYMENT, "{}", &["/v/kind | required | one of card, iban, cash, cheque | -"]);
    check(
        PAYMENT,
        r#"{"number":"1234","cvc":3}"#,
        &["/v/kind | required | card (kind may also be iban, cash, cheque) | -"],
    );
}

#[test]
fn the_type_names_the_branch() {
    let text_or_range = r#"{"anyOf":[{"type":"string","minLength":3},{"type":"object","properties":{"from":{"type":"integer"},"to":{"type":"integer"}},"required":["from","to"]}]}"#;
    check(
        text_or_range,
        r#""ab""#,
        &[r#"/v | minLength | a string of at least 3 characters, or an object with from, to | string "ab""#],
    );
    check(
        text_or_range,
        r#"{"from":1,"to":"x"}"#,
        &[r#"/v/to | type | an integer (or else a string of at least 3 characters) | string "x""#],
    );
    check(
        text_or_range,
        "true",
        &["/v | anyOf | a string of at least 3 characters or an object with from, to | boolean true"],
    );
    check(
        r#"{"anyOf":[{"type":"integer","minimum":1,"maximum":14},{"type":"null"}]}"#,
        "15",
        &["/v | maximum | an integer from 1 to 14, or null | integer 15"],
    );
    check(
        r#"{"anyOf":[{"type":"object","properties":{"n":{"type":"integer"}}},{"type":"null"}]}"#,
        r#"{"n":"x"}"#,
        &[r#"/v/n | type | an integer | string "x""#],
    );
}

#[test]
fn the_keys_given_name_the_branch() {
    let place = r##"{"anyOf":[{"$ref":"#/$defs/City"},{"$ref":"#/$defs/Point"}],"$defs":{}}"##;
    let schema = place
        .replace(r##","$defs":{}"##, "")
        .replace("#/$defs/City", "#/properties/v/x-city")
        .replace("#/$defs/Point", "#/properties/v/x-point");
    let schema = schema.trim_end_matches('}').to_owned()
        + r#","x-city":{"type":"object","properties":{"city":{"type":"string"},"country":{"type":"string"}},"required":["city"]},"x-point":{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"]}}"#;
    check(
        &schema,
        r#"{"lat":1,"lon":"x"}"#,
        &[r#"/v/lon | type | a number (or else an object with city) | string "x""#],
    );
    check(&schema, r#"{"lat":1}"#, &["/v/lon | required | a number (or else an object with city) | -"]);
    check(&schema, "{}", &["/v | anyOf | city or lat and lon | -"]);
}

#[test]
fn the_fewest_problems_name_the_branch_of_a_list() {
    let lists = r#"{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"string"}}]}"#;
    check(
        lists,
        r#"[1,2,"x"]"#,
        &[r#"/v/2 | type | an integer (or else an array, each a string) | string "x""#],
    );
    check(
        lists,
        r#"[1,"x"]"#,
        &[r#"/v | anyOf | an array, each an integer or an array, each a string | array [1,"x"]"#],
    );
}

#[test]
fn keys_of_which_one_is_needed_are_one_problem() {
    let either = r#"{"type":"object","properties":{"order_id":{},"user_id":{},"day":{}},"anyOf":[{"required":["order_id"]},{"required":["user_id","day"]}]}"#;
    check(either, "{}", &["/v | anyOf | order_id or user_id and day | -"]);
    check(either, r#"{"day":1}"#, &["/v | anyOf | order_id or user_id | -"]);
    check(
        &either.replace("anyOf", "oneOf"),
        r#"{"order_id":1,"user_id":2,"day":3}"#,
        &["/v | oneOf | only one of these: order_id or user_id and day | -"],
    );
}

#[test]
fn a_branch_within_a_branch_is_found_too() {
    let filter = r##"{"$ref":"#/properties/v/x-filter","x-filter":{"anyOf":[
        {"type":"object","properties":{"op":{"const":"and"},"of":{"type":"array","items":{"$ref":"#/properties/v/x-filter"}}},"required":["op","of"]},
        {"type":"object","properties":{"op":{"const":"is"},"field":{"type":"string"}},"required":["op","field"]}]}}"##;
    check(
        filter,
        r#"{"op":"and","of":[{"op":"is","field":"a"},{"op":"and","of":[{"op":"is","field":7}]}]}"#,
        &["/v/of/1/of/0/field | type | a string (when op is is; op may also be and) | integer 7"],
    );
    check(filter, r#"{"op":"or"}"#, &[r#"/v/op | enum | one of and, is | string "or""#]);
}
