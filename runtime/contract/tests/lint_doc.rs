//! `docs/lint.md` has every rule, and its examples break and keep them.

use std::path::Path;

use plugd_contract::Contract;
use plugd_contract::lint::{self, Rule};
use plugd_protocol::{Operation, OperationId};
use serde_json::{Value, json};

/// The parts of the page by rule, each with its examples.
fn sections() -> Vec<(String, Vec<Value>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lint.md");
    let page = std::fs::read_to_string(path).expect("docs/lint.md can be read");
    let section = |text: &str| {
        let (name, rest) = text.split_once("`\n").expect("a heading is a rule's name");
        let blocks = rest.split("```json\n").skip(1);
        let example = |block: &str| {
            let block = block.split("\n```").next().unwrap_or_default();
            serde_json::from_str(block).unwrap_or_else(|error| panic!("{name}: {error}: {block}"))
        };
        (name.to_owned(), blocks.map(example).collect())
    };
    page.split("\n### `").skip(1).map(section).collect()
}

/// A declaration that nothing is wrong with but what an example says.
fn declared(example: &Value) -> (OperationId, Operation) {
    let mut all = json!({
        "name": "query_status",
        "description": "Gives how far a ticket is. The answer has every step.",
        "when_to_use": "Someone asks how far a ticket is.",
        "when_not_to_use": "The number is not known.",
        "input_schema": {"type": "object"},
        "effects": {"read_only": true},
    });
    let id = example["id"].as_str().map(|id| OperationId::parse(id).expect("an identity"));
    if let Some(id) = &id {
        all["name"] = id.operation.as_str().into();
        all["when_not_to_use"] = "".into();
    }
    all.as_object_mut().expect("an object").extend(example.as_object().expect("an object").clone());
    let operation: Operation = serde_json::from_value(all).expect("a declaration");
    let own = OperationId {
        plugin: "desk".to_owned().try_into().expect("a name"),
        operation: operation.name.clone(),
    };
    (id.unwrap_or(own), operation)
}

/// The rules that an example breaks.
fn broken(example: &Value) -> Vec<String> {
    let examples = match example {
        Value::Array(several) => several.iter().map(declared).collect(),
        one => vec![declared(one)],
    };
    let mut rules: Vec<String> = Vec::new();
    for (id, operation) in &examples {
        rules.extend(lint::operation(id, operation).into_iter().map(|finding| finding.rule));
        if Contract::of_arguments(&operation.input_schema).is_err() {
            rules.push(Rule::Quarantined.name().to_owned());
        }
    }
    let overlaps = lint::overlaps(examples.iter().map(|(id, operation)| (id, operation)), |_| true);
    rules.extend(overlaps.into_iter().map(|finding| finding.rule));
    rules
}

#[test]
fn the_page_has_every_rule_in_order() {
    let named: Vec<String> = sections().into_iter().map(|(name, _)| name).collect();
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(named, rules);
}

#[test]
fn every_example_breaks_its_rule_and_the_mended_one_keeps_all() {
    for (rule, examples) in sections() {
        let [wrong, mended] = examples.as_slice() else { panic!("{rule} has {} examples", examples.len()) };
        assert_eq!(broken(wrong), [rule.as_str()], "{rule}: {wrong}");
        assert_eq!(broken(mended), Vec::<String>::new(), "{rule}: {mended}");
    }
}
