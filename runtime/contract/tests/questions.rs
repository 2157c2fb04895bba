//! What is missing: asked for in the parameters' own words, five at a time, and answered by name.

use plugd_contract::{Contract, Prepared};
use plugd_protocol::plugin::Question;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("the test's own JSON")
}

fn contract(schema: &str) -> Contract {
    Contract::compile(&raw(schema)).expect("the schema compiles")
}

struct Asked {
    known: Box<RawValue>,
    questions: Vec<Question>,
    prompt: String,
}

#[track_caller]
fn asked(prepared: Prepared) -> Asked {
    match prepared {
        Prepared::Missing { known, questions, prompt, .. } => Asked { known, questions, prompt },
        other => panic!("nothing is asked: {other:?}"),
    }
}

#[track_caller]
fn ready(prepared: Prepared) -> String {
    match prepared {
        Prepared::Ready { arguments, .. } => arguments.get().to_owned(),
        other => panic!("not ready: {other:?}"),
    }
}

#[track_caller]
fn wrong(prepared: Prepared) -> Vec<String> {
    match prepared {
        Prepared::Wrong(problems) => {
            problems.into_iter().map(|problem| format!("{} | {}", problem.path, problem.problem)).collect()
        }
        other => panic!("nothing wrong: {other:?}"),
    }
}

fn names(questions: &[Question]) -> Vec<&str> {
    questions.iter().map(|question| question.name.as_str()).collect()
}

fn answers(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object of answers")
}

const DEPLOY: &str = r#"{"type":"object","properties":{
    "service":{"type":"string","title":"Service","description":"Which service to deploy."},
    "environment":{"type":"string","enum":["test","production"],"title":"Where to"},
    "replica_count":{"type":"integer","minimum":1,"maximum":9,"default":0},
    "token":{"type":"string","format":"password","description":"The deploy token"},
    "note":{"type":"string"}},"required":["service","environment","replica_count","token"]}"#;

#[test]
fn what_is_missing_is_asked_in_one_sentence_of_the_declarations_own_words() {
    let asked = asked(contract(DEPLOY).prepare(&raw(r#"{"note":"now"}"#)));
    assert_eq!(names(&asked.questions), ["service", "environment", "replica_count", "token"]);
    assert_eq!(
        asked.prompt,
        "Please give: Which service to deploy; Where to (one of test, production); \
         replica count (an integer from 1 to 9); The deploy token"
    );
    let prompts: Vec<&str> = asked.questions.iter().map(|question| question.prompt.as_str()).collect();
    assert_eq!(prompts, ["Which service to deploy", "Where to", "replica count", "The deploy token"]);
    let sensitive: Vec<bool> = asked.questions.iter().map(|question| question.sensitive).collect();
    assert_eq!(sensitive, [false, false, false, true]);
    let schema: Value =
        serde_json::from_str(asked.questions[1].schema.as_ref().expect("a schema").get()).expect("JSON");
    assert_eq!(schema["enum"], json!(["test", "production"]));
    assert_eq!(asked.known.get(), r#"{"note":"now"}"#);
    // A default that does not fit is none, neither for the call nor for whoever answers.
    let schema: Value =
        serde_json::from_str(asked.questions[2].schema.as_ref().expect("a schema").get()).expect("JSON");
    assert_eq!(schema, json!({"type": "integer", "minimum": 1, "maximum": 9}));
    // Where anything else is wrong nothing is asked, a key that nobody declared included.
    assert_eq!(wrong(contract(DEPLOY).prepare(&raw(r#"{"nota":1}"#))).len(), 5);
}

#[test]
fn chinese_descriptions_are_asked_for_in_chinese() {
    let schema = r#"{"properties":{"city":{"type":"string","description":"要查询的城市。"},
        "days":{"type":"integer","description":"天数"}},"required":["city","days"]}"#;
    assert_eq!(asked(contract(schema).prepare(&raw("{}"))).prompt, "请提供：要查询的城市；天数 (an integer)");
}

#[test]
fn answers_complete_the_arguments_and_are_converted_like_them() {
    let contract = contract(DEPLOY);
    let first = asked(contract.prepare(&raw(r#"{"service":"api"}"#)));
    let given = answers(json!({"environment": "TEST", "replica_count": "三", "token": "s3cret"}));
    assert_eq!(
        ready(contract.answer(&first.known, &given)),
        r#"{"service":"api","environment":"test","replica_count":3,"token":"s3cret"}"#
    );
    // What is left out is asked for again, with what is known by then.
    let second = asked(contract.answer(&first.known, &answers(json!({"replica_count": 2}))));
    assert_eq!(names(&second.questions), ["environment", "token"]);
    assert_eq!(second.known.get(), r#"{"service":"api","replica_count":2}"#);
    // A blank text is a text.
    let blank = raw(r#"{"environment":"test","replica_count":2,"token":"t"}"#);
    assert_eq!(
        ready(contract.answer(&blank, &answers(json!({"service": ""})))),
        r#"{"environment":"test","replica_count":2,"token":"t","service":""}"#
    );
    // So is what is no answer at all.
    let third = asked(contract.answer(&second.known, &answers(json!({"environment": null}))));
    assert_eq!(names(&third.questions), ["environment", "token"]);
}

#[test]
fn a_wrong_answer_is_a_problem_under_the_questions_name() {
    let contract = contract(DEPLOY);
    let known = asked(contract.prepare(&raw(r#"{"service":"api","environment":"test","token":"t"}"#))).known;
    assert_eq!(
        wrong(contract.answer(&known, &answers(json!({"replica_count": 10})))),
        ["/replica_count | maximum"]
    );
    assert_eq!(
        wrong(contract.answer(&known, &answers(json!({"replica_count": "many"})))),
        ["/replica_count | type"]
    );
}

#[test]
fn only_what_is_missing_can_be_answered() {
    let contract = contract(DEPLOY);
    let known = asked(contract.prepare(&raw(r#"{"service":"api","environment":"test","token":"t"}"#))).known;
    for name in ["service", "replicas_count", "note"] {
        let problems = wrong(contract.answer(&known, &answers(json!({name: 1, "replica_count": 2}))));
        assert_eq!(problems, [format!("/{name} | additionalProperties")]);
    }
    let Prepared::Wrong(problems) = contract.answer(&known, &answers(json!({"replicas_count": 1}))) else {
        panic!("a wrong name is a problem");
    };
    assert_eq!(problems[0].suggestion.as_deref(), Some("replica_count"));
    // Complete arguments need no answer, and are as good as ready.
    let complete = raw(r#"{"service":"a","environment":"test","replica_count":1,"token":"t"}"#);
    assert_eq!(ready(contract.answer(&complete, &Map::new())), complete.get());
}

#[test]
fn at_most_five_are_asked_at_once_and_answers_lead_to_the_next() {
    let keys: Vec<String> = (1..=12).map(|index| format!("k{index}")).collect();
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.clone(), json!({"type": "integer"}))).collect();
    let schema = json!({"properties": properties, "required": keys}).to_string();
    let contract = contract(&schema);
    let mut asked_now = asked(contract.prepare(&raw("{}")));
    let mut all = Vec::new();
    for expected in [5, 5, 2] {
        assert_eq!(asked_now.questions.len(), expected);
        let given: Map<String, Value> =
            asked_now.questions.iter().map(|question| (question.name.clone(), json!("1"))).collect();
        all.extend(asked_now.questions.into_iter().map(|question| question.name));
        match contract.answer(&asked_now.known, &given) {
            Prepared::Missing { known, questions, prompt, .. } => {
                asked_now = Asked { known, questions, prompt }
            }
            prepared => {
                assert_eq!(all, keys);
                return drop(ready(prepared));
            }
        }
    }
    panic!("still missing: {}", asked_now.prompt);
}

#[test]
fn a_choice_of_keys_is_asked_as_one() {
    let schema = r#"{"properties":{"order_id":{"type":"string","description":"The order's number"},
        "user_id":{"type":"string","description":"The customer's number"},"days":{"type":"integer"}},
        "anyOf":[{"required":["order_id"]},{"required":["user_id"]}],"required":["days"]}"#;
    let contract = contract(schema);
    let both = asked(contract.prepare(&raw("{}")));
    assert_eq!(names(&both.questions), ["days", "order_id", "user_id"]);
    assert_eq!(
        both.prompt,
        "Please give: days (an integer); order_id or user_id: The order's number, or The customer's number"
    );
    assert_eq!(both.questions[1].prompt, "The order's number (order_id or user_id)");
    // One is enough, and a blank answer to the other is none.
    let one = contract.answer(&both.known, &answers(json!({"days": 1, "order_id": "", "user_id": "U1"})));
    assert_eq!(ready(one), r#"{"days":1,"user_id":"U1"}"#);
    let none =
        asked(contract.answer(&both.known, &answers(json!({"days": 1, "order_id": " ", "user_id": ""}))));
    assert_eq!(names(&none.questions), ["order_id", "user_id"]);
    // A value that is wanted anyway makes the choice, and no value is asked for twice.
    let made = r#"{"properties":{"a":{},"b":{},"c":{}},"required":["a"],"anyOf":[{"required":["a"]},{"required":["b"]}],
        "allOf":[{"required":["a"]}]}"#;
    assert_eq!(names(&asked(self::contract(made).prepare(&raw("{}"))).questions), ["a"]);
    let two = r#"{"properties":{"a":{},"b":{},"c":{}},"allOf":[{"anyOf":[{"required":["a"]},{"required":["b"]}]},
        {"anyOf":[{"required":["b"]},{"required":["c"]}]}]}"#;
    assert_eq!(names(&asked(self::contract(two).prepare(&raw("{}"))).questions), ["a", "b", "c"]);
    // Where a range is wrong, nothing is asked.
    assert_eq!(wrong(contract.prepare(&raw(r#"{"days":"x"}"#))).len(), 2);
}

#[test]
fn what_an_alternative_lacks_is_asked_where_it_is_the_only_one() {
    let schema = r#"{"oneOf":[
        {"properties":{"kind":{"const":"mail"},"address":{"type":"string","description":"The address"}},"required":["kind","address"]},
        {"properties":{"kind":{"const":"call"},"phone":{"type":"string"}},"required":["kind","phone"]}]}"#;
    let contract = contract(schema);
    let mail = asked(contract.prepare(&raw(r#"{"kind":"mail"}"#)));
    assert_eq!((names(&mail.questions), mail.questions[0].prompt.as_str()), (vec!["address"], "The address"));
    // What all of them lack comes first, with the choices of all.
    let first = asked(contract.prepare(&raw("{}")));
    assert_eq!(names(&first.questions), ["kind"]);
    let schema: Value =
        serde_json::from_str(first.questions[0].schema.as_ref().expect("a schema").get()).expect("JSON");
    assert_eq!(schema, json!({"enum": ["mail", "call"]}));
    let second = asked(contract.answer(&first.known, &answers(json!({"kind": "CALL"}))));
    assert_eq!((names(&second.questions), second.known.get()), (vec!["phone"], r#"{"kind":"call"}"#));
}

#[test]
fn nested_values_go_by_their_pointer() {
    let schema = r##"{"properties":{"to":{"$ref":"#/$defs/to"},"lines":{"type":"array","items":{"required":["a/b"]}}},"required":["to"],
        "$defs":{"to":{"type":"object","properties":{"city":{"$ref":"#/$defs/city"}},"required":["city"]},
                 "city":{"type":"string","enum":["Oslo","Rome"],"description":"The city"}}}"##;
    let contract = contract(schema);
    let nested = asked(contract.prepare(&raw(r#"{"to":{},"lines":[{}]}"#)));
    assert_eq!(names(&nested.questions), ["to/city", "lines/0/a~1b"]);
    assert_eq!(nested.prompt, "Please give: The city (one of Oslo, Rome); a/b");
    // Its schema is closed in itself.
    let closed =
        Contract::compile(nested.questions[0].schema.as_ref().expect("a schema")).expect("it compiles");
    assert!(closed.check_value(&json!("Oslo")).is_ok() && closed.check_value(&json!("Bonn")).is_err());
    let long = schema.replace("The city", &"long ".repeat(20_000));
    let open = asked(self::contract(&long).prepare(&raw(r#"{"to":{}}"#)));
    assert!(open.questions[0].schema.as_ref().is_none_or(|schema| schema.get().len() < 100));
    let given = answers(json!({"to/city": "oslo", "/lines/0/a~1b": 1}));
    assert_eq!(
        ready(contract.answer(&nested.known, &given)),
        r#"{"to":{"city":"Oslo"},"lines":[{"a/b":1}]}"#
    );
}

#[test]
fn what_is_known_is_converted_already_and_keeps_its_notes() {
    let schema = r#"{"properties":{"n":{"type":"integer"},"m":{"type":"integer"}},"required":["n","m"]}"#;
    let contract = contract(schema);
    let Prepared::Missing { known, notes, .. } = contract.prepare(&raw(r#"{"n":"三"}"#)) else {
        panic!("asked")
    };
    assert_eq!((known.get(), notes.len()), (r#"{"n":3}"#, 1));
    let Prepared::Ready { notes, .. } = contract.answer(&known, &answers(json!({"m": "4"}))) else {
        panic!("ready")
    };
    assert_eq!(notes, [r#"/m: "4" read as 4"#]);
}

#[test]
fn an_answer_to_a_question_of_its_own_is_converted_too() {
    let answered = |schema: &str, answer: Value| contract(schema).answered(&answer).ok();
    assert_eq!(answered(r#"{"type":"integer"}"#, json!("３")), Some(json!(3)));
    assert_eq!(answered(r#"{"type":"boolean"}"#, json!("n")), Some(json!(false)));
    assert_eq!(answered(r#"{"enum":["red",3]}"#, json!("3")), Some(json!(3)));
    assert_eq!(answered(r#"{"type":"string"}"#, json!("3")), Some(json!("3")));
    for (schema, answer) in [
        (r#"{"type":"integer"}"#, json!("")),
        (r#"{"type":"integer"}"#, json!("3.5")),
        (r#"{"type":"integer"}"#, json!(null)),
        (r#"{"type":"boolean"}"#, json!("perhaps")),
    ] {
        assert_eq!(answered(schema, answer.clone()), None, "{answer} by {schema}");
    }
}
