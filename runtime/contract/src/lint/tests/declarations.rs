//! One declaration after the other, each with what is wrong with it.

use super::*;
use crate::lint::Rule;

/// A declaration that nothing is wrong with.
fn good() -> Value {
    json!({
        "title": "Ticket status",
        "description": "Gives how far a ticket is in its approval. The answer has every step with its state.",
        "when_to_use": "Someone asks how far a ticket is.",
        "when_not_to_use": "The number is not known: use desk.list_open.",
        "examples": ["where is TK-20241215-001"],
        "input_schema": {"type": "object", "properties": {
            "ticket_id": {"type": "string", "description": "The number; digits alone are completed.", "pattern": "^TK-\\d{8}-\\d{3}$"},
            "since": {"type": "string", "format": "date", "description": "Leaves out what is older.", "examples": ["2024-12-15"]},
            "unit": {"enum": ["hours", "days"], "default": "days", "description": "In what times are given."},
            "to": {"type": "object", "description": "Where to.", "properties": {"street": {"type": "string", "description": "The street."}}}},
            "required": ["ticket_id"]},
        "effects": {"read_only": true, "idempotent": true},
    })
}

/// The same with some members as given; `null` takes one away.
fn but(changes: Value) -> Value {
    let mut declared = good();
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(declared.as_object_mut().unwrap().remove(key)),
            value => declared[key] = value.clone(),
        }
    }
    declared
}

/// With one parameter more.
fn with(name: &str, schema: Value) -> Value {
    let mut declared = good();
    declared["input_schema"]["properties"][name] = schema;
    declared
}

#[track_caller]
fn only(rule: Rule, path: &str, members: &Value) {
    assert_eq!(
        broken("desk.query_status", members),
        [(rule.name().to_owned(), path.to_owned())],
        "{members:#}"
    );
}

#[test]
fn d3_a_good_declaration_has_no_findings_and_each_missing_part_is_named() {
    assert_eq!(broken("desk.query_status", &good()), []);
    only(Rule::ShortDescription, "/description", &but(json!({"description": null})));
    only(Rule::NoWhenToUse, "/when_to_use", &but(json!({"when_to_use": " "})));
    only(
        Rule::UndescribedParameter,
        "/input_schema/properties/city",
        &with("city", json!({"type": "string"})),
    );
}

#[test]
fn d4_effects_without_limits_are_flagged_where_there_are_effects() {
    let without = |effects: Value| but(json!({"when_not_to_use": null, "effects": effects}));
    assert_eq!(broken("desk.query_status", &without(json!({"read_only": true}))), []);
    for effects in [
        json!({"read_only": false}),
        json!({"destructive": true}),
        json!({"read_only": false, "destructive": true}),
    ] {
        only(Rule::EffectsWithoutLimits, "/when_not_to_use", &without(effects.clone()));
        assert_eq!(broken("desk.query_status", &but(json!({"effects": effects}))), []);
    }
    for effects in [json!({}), json!({"idempotent": true}), json!({"destructive": false})] {
        only(Rule::UndeclaredEffects, "/effects", &but(json!({"effects": effects})));
    }
    only(
        Rule::ContradictoryEffects,
        "/effects",
        &but(json!({"effects": {"read_only": true, "destructive": true}})),
    );
}

#[test]
fn d6_praise_is_flagged_wherever_models_read_it() {
    let praise = "This tool is very powerful, very stable. Strongly recommended.";
    only(Rule::Praise, "/description", &but(json!({"description": praise})));
    only(Rule::Praise, "/title", &but(json!({"title": "Awesome desk"})));
    only(Rule::Praise, "/when_to_use", &but(json!({"when_to_use": "强烈推荐在任何时候使用。"})));
}

#[test]
fn d7_what_is_too_long_for_models_is_flagged() {
    let long = "The answer has many steps, each with its state. ".repeat(22);
    only(Rule::LongDescription, "/description", &but(json!({"description": long})));
    let examples: Vec<String> = (0..60).map(|number| format!("where is ticket {number}")).collect();
    only(Rule::LongDescription, "/description", &but(json!({"examples": examples})));
}

#[test]
fn d8_one_phrase_is_too_little() {
    for phrase in ["Send an email", "Send an email.", "查询工单状态", "查询工单状态，包括节点。"]
    {
        only(Rule::ShortDescription, "/description", &but(json!({"description": phrase})));
    }
    assert_eq!(broken("desk.query_status", &but(json!({"description": "查询工单状态。返回每个节点"}))), []);
}

#[test]
fn d9_vague_names_are_flagged_and_plain_ones_are_not() {
    for vague in ["process", "handle", "do", "process_data"] {
        assert_eq!(
            broken(&format!("desk.{vague}"), &good()),
            [("vague_name".to_owned(), "/name".to_owned())]
        );
    }
    assert_eq!(broken("desk.query_order_status", &good()), []);
}

#[test]
fn d11_parameters_are_described_at_every_depth() {
    let schema = json!({
        "type": "object", "properties": {
            "people": {"type": "array", "description": "Who.", "items": {"$ref": "#/$defs/person"}},
            "boss": {"$ref": "#/$defs/person", "description": "Who decides."},
            "known": {"$ref": "#/$defs/described"}},
        "anyOf": [{"properties": {"a/b": {"type": "integer"}}}, {}],
        "$defs": {"person": {"type": "object", "properties": {"age": {"type": "integer"}}},
                  "described": {"type": "integer", "description": "Told there."}}});
    let mut found = broken("desk.query_status", &but(json!({"input_schema": schema})));
    found.sort();
    let expected = ["/input_schema/$defs/person/properties/age", "/input_schema/anyOf/0/properties/a~1b"];
    assert_eq!(found, expected.map(|path| ("undescribed_parameter".to_owned(), path.to_owned())));
}

#[test]
fn d12_dates_and_choices_show_how_they_are_written() {
    let date = |schema: Value| with("due", schema);
    for schema in [
        json!({"type": "string", "format": "date", "description": "By when."}),
        json!({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}], "description": "By when."}),
    ] {
        only(Rule::DateWithoutExample, "/input_schema/properties/due", &date(schema));
    }
    for name in ["date", "start_time", "createdAt", "deadline", "开始日期"] {
        let path = format!("/input_schema/properties/{name}");
        only(
            Rule::DateWithoutExample,
            &path,
            &with(name, json!({"type": "string", "description": "By when."})),
        );
    }
    for shown in [
        json!({"type": "string", "description": "By when, such as next Friday."}),
        json!({"type": "string", "description": "By when, YYYY-MM-DD."}),
        json!({"type": "string", "description": "到期日，例如 2024-12-15"}),
        json!({"type": "string", "description": "By when: 2024-12-15."}),
        json!({"type": "string", "description": "By when.", "format": "date", "examples": ["2024-12-15"]}),
        json!({"type": "string", "description": "By when.", "pattern": "^\\d{4}-\\d\\d-\\d\\d$"}),
        json!({"type": "string", "description": "By when.", "default": "2024-12-15"}),
        json!({"type": "integer", "description": "By when, in seconds since 1970."}),
    ] {
        assert_eq!(broken("desk.query_status", &with("due_date", shown.clone())), [], "{shown}");
    }
    let choice = json!({"enum": ["low", "high"], "description": "How soon."});
    only(Rule::EnumWithoutExample, "/input_schema/properties/urgency", &with("urgency", choice));
    for shown in [
        json!({"enum": ["low", "high"], "description": "How soon: high is today."}),
        json!({"enum": ["low", "high"], "description": "How soon.", "examples": ["high"]}),
        json!({"oneOf": [{"const": "low", "title": "This week"}, {"const": "high", "title": "Today"}], "description": "How soon."}),
        json!({"enum": ["low"], "description": "How soon."}),
        json!({"enum": ["低", "高"], "description": "紧急程度：高表示当天。"}),
    ] {
        assert_eq!(broken("desk.query_status", &with("urgency", shown.clone())), [], "{shown}");
    }
}

#[test]
fn d13_identifiers_show_their_form() {
    let plain = json!({"type": "string", "description": "Which."});
    for name in ["ticket_id", "id", "orderNo", "tracking_number", "country_code", "工单编号"] {
        let path = format!("/input_schema/properties/{name}");
        let members = with(name, plain.clone());
        // The good one has a pattern of its own; here it is another that is looked at.
        only(Rule::IdentifierWithoutPattern, &path, &members);
    }
    only(
        Rule::IdentifierWithoutPattern,
        "/input_schema/properties/ticket_ids",
        &with("ticket_ids", json!({"type": "array", "items": {"type": "string"}, "description": "Which."})),
    );
    for (name, shown) in [
        ("ticket_id", json!({"type": "string", "description": "Which.", "pattern": "^TK-\\d+$"})),
        ("ticket_id", json!({"type": "string", "description": "Which.", "examples": ["TK-1"]})),
        ("ticket_id", json!({"type": "string", "description": "Which, like TK-20241215-001."})),
        ("ticket_id", json!({"type": "string", "description": "工单编号，例如 TK-20241215-001"})),
        ("user_id", json!({"type": "string", "format": "uuid", "description": "Who."})),
        ("user_id", json!({"type": "integer", "description": "Who."})),
        (
            "ticket_ids",
            json!({"type": "array", "items": {"type": "string", "pattern": "^TK"}, "description": "Which."}),
        ),
        ("source_code", json!({"type": "string", "description": "What to run."})),
        ("code", json!({"type": "string", "description": "What to run."})),
        ("width", json!({"type": "string", "description": "How wide."})),
    ] {
        assert_eq!(broken("desk.query_status", &with(name, shown.clone())), [], "{name}: {shown}");
    }
}

#[test]
fn d14_what_has_a_default_is_not_required() {
    let mut members = with("limit", json!({"type": "integer", "default": 20, "description": "How many."}));
    assert_eq!(broken("desk.query_status", &members), []);
    members["input_schema"]["required"] = json!(["ticket_id", "limit"]);
    only(Rule::RequiredWithDefault, "/input_schema/properties/limit", &members);
}

#[test]
fn what_is_required_is_declared_and_a_default_fits_its_own_schema() {
    let mut members = good();
    members["input_schema"]["required"] = json!(["tiket_id"]);
    only(Rule::RequiredUndeclared, "/input_schema/required", &members);
    members["input_schema"]["additionalProperties"] = json!(true);
    assert_eq!(broken("desk.query_status", &members), []);
    let described = |schema: Value| {
        let mut schema = schema;
        schema["description"] = "What it is: a or b.".into();
        schema
    };
    for wrong in [
        json!({"type": "integer", "default": "three"}),
        json!({"enum": ["a", "b"], "default": "c"}),
        json!({"type": "number", "maximum": 5, "default": 50}),
        json!({"$ref": "#/properties/to", "default": 3}),
    ] {
        let members = with("n/%n", described(wrong));
        only(Rule::DefaultDoesNotFit, "/input_schema/properties/n~1%n/default", &members);
    }
    for right in [
        json!({"type": "integer", "default": 3}),
        json!({"$ref": "#/properties/to", "default": {"street": "x"}}),
        json!({"type": ["string", "null"], "default": null}),
    ] {
        assert_eq!(broken("desk.query_status", &with("n", described(right.clone()))), [], "{right}");
    }
    let mut old = with("n", json!({"type": "integer", "default": "three", "description": "How many."}));
    old["input_schema"]["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    only(Rule::DefaultDoesNotFit, "/input_schema/properties/n/default", &old);
    let secret =
        json!({"type": "integer", "default": "s3cret", "x-sensitive": true, "description": "The PIN."});
    let (id, operation) = declared("desk.query_status", &with("pin", secret));
    let found = crate::lint::operation(&id, &operation);
    assert!(found.len() == 1 && !found[0].message.contains("s3cret"), "{found:?}");
}

#[test]
fn misspelt_words_of_a_schema_and_unknown_formats_are_named() {
    let told = |schema: Value| {
        let (id, operation) = declared("desk.query_status", &with("name", schema));
        let found = crate::lint::operation(&id, &operation);
        found.into_iter().map(|one| format!("{} {}", one.path, one.message)).collect::<Vec<String>>()
    };
    let at = "/input_schema/properties/name";
    for (key, meant) in
        [("sensitive", "x-sensitive"), ("maxlength", "maxLength"), ("desciption", "description")]
    {
        let found = told(json!({"type": "string", "description": "Who.", key: true}));
        assert_eq!(found, [format!("{at} {key:?} is no word of a schema: did you mean {meant}?")]);
    }
    let found = told(json!({"type": "string", "description": "Who.", "format": "datum"}));
    assert_eq!(found, [format!("{at}/format the format \"datum\" is none that is checked")]);
    let found = told(json!({"type": "string", "description": "Who.", "format": "mail"}));
    assert!(found[0].ends_with("did you mean email?"), "{found:?}");
    for fine in [
        json!({"type": "string", "description": "Who.", "x-order": 3, "example": "Ada", "unit": "m", "in": "path"}),
        json!({"type": "integer", "description": "Who.", "format": "int32"}),
        json!({"type": "object", "description": "Who.", "properties": {"sensitive": {"type": "boolean", "description": "So."}}}),
        json!({"type": "object", "description": "Who.", "default": {"sensitive": true}}),
    ] {
        assert_eq!(told(fine.clone()), Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn settings_that_come_to_nothing_are_named() {
    for (path, changes) in [
        ("/cache_ttl", json!({"cache_ttl": 5, "effects": {"read_only": false}})),
        ("/confirm", json!({"effects": {"destructive": true}, "confirm": "never"})),
        ("/result_limit", json!({"result_limit": 10})),
        ("/timeout_ms", json!({"timeout_ms": 86_400_000})),
    ] {
        only(Rule::SettingWithoutEffect, path, &but(changes));
    }
    let fine = json!({"cache_ttl": 5, "result_limit": 256, "timeout_ms": 3_600_000, "confirm": "always"});
    assert_eq!(broken("desk.query_status", &but(fine)), []);
}

#[test]
fn services_are_not_told_when_models_are_to_choose_them() {
    let service = but(
        json!({"audience": "plugins", "when_to_use": null, "when_not_to_use": null, "effects": {"read_only": false}}),
    );
    assert_eq!(broken("desk.query_status", &service), []);
}

#[test]
fn a_schema_that_contains_itself_is_looked_at_once() {
    let tree =
        json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
    assert_eq!(
        broken("desk.query_status", &but(json!({"input_schema": tree}))),
        [("undescribed_parameter".to_owned(), "/input_schema/properties/children".to_owned())]
    );
}

#[test]
fn r9_a_quarantined_operation_says_where_it_cannot_be_used() {
    let bad = plugd_protocol::manifest::Quarantined {
        name: "bad".to_owned(),
        reason: "input_schema: /properties/a: no".to_owned(),
    };
    let found = crate::lint::quarantined("fp", &bad);
    assert_eq!(
        (found.subject.as_str(), found.rule.as_str(), found.path.as_str()),
        ("fp.bad", "quarantined", "/input_schema")
    );
}
