//! What a plugin claims otherwise than before: operations, effects, schemas, who must agree.

use std::collections::BTreeMap;

use plugd_protocol::control::{ClaimChange, ClaimPart};
use plugd_protocol::manifest::{Confirm, Effects};
use plugd_protocol::{Manifest, Operation, OperationName};
use serde_json::value::RawValue;

use crate::canonical;
use crate::words::clip;

/// How an effect stands that nobody declared.
const UNDECLARED: &str = "undeclared";

/// How a scope stands that is not needed.
const NO_SCOPE: &str = "none";

/// What callers go by and is not declared as it was, ordered by operation, then by part.
///
/// Texts do not count, nor does how a schema is written down: the order of its keys, or its spaces.
pub fn changed_claims(before: &Manifest, after: &Manifest) -> Vec<ClaimChange> {
    let (before, after) = (by_name(before), by_name(after));
    let whole = |operation: &OperationName, part| ClaimChange {
        operation: operation.clone(),
        part,
        from: None,
        to: None,
    };
    let mut changes = Vec::new();
    for (name, was) in &before {
        match after.get(name) {
            Some(is) => changes.extend(of_operation(was, is)),
            None => changes.push(whole(name, ClaimPart::Removed)),
        }
    }
    let new = after.keys().filter(|name| !before.contains_key(*name));
    changes.extend(new.map(|name| whole(name, ClaimPart::Added)));
    changes.sort_by(|one, other| (&one.operation, one.part).cmp(&(&other.operation, other.part)));
    changes
}

fn by_name(manifest: &Manifest) -> BTreeMap<&OperationName, &Operation> {
    manifest.operations.iter().map(|operation| (&operation.name, operation)).collect()
}

fn of_operation(was: &Operation, is: &Operation) -> Vec<ClaimChange> {
    let change = |part, from, to| ClaimChange { operation: is.name.clone(), part, from, to };
    let scope = |operation: &Operation| operation.scope.as_deref().map_or_else(|| NO_SCOPE.to_owned(), clip);
    let mut told = effects(&was.effects, &is.effects);
    told.push((ClaimPart::Confirm, confirm(was.confirm).to_owned(), confirm(is.confirm).to_owned()));
    told.push((ClaimPart::Scope, scope(was), scope(is)));
    let other_scope = was.scope != is.scope;
    let differs = |(part, from, to): &(ClaimPart, String, String)| {
        from != to || (*part == ClaimPart::Scope && other_scope)
    };
    let short = told.into_iter().filter(differs);
    let mut changes: Vec<ClaimChange> =
        short.map(|(part, from, to)| change(part, Some(from), Some(to))).collect();
    if !same(&was.input_schema, &is.input_schema) {
        changes.push(change(ClaimPart::InputSchema, None, None));
    }
    let same_output = match (&was.output_schema, &is.output_schema) {
        (Some(was), Some(is)) => same(was, is),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    if !same_output {
        changes.push(change(ClaimPart::OutputSchema, None, None));
    }
    changes
}

fn effects(was: &Effects, is: &Effects) -> Vec<(ClaimPart, String, String)> {
    let word = |declared: Option<bool>| {
        declared.map_or_else(|| UNDECLARED.to_owned(), |declared| declared.to_string())
    };
    [
        (ClaimPart::ReadOnly, was.read_only, is.read_only),
        (ClaimPart::Destructive, was.destructive, is.destructive),
        (ClaimPart::Idempotent, was.idempotent, is.idempotent),
        (ClaimPart::OpenWorld, was.open_world, is.open_world),
    ]
    .into_iter()
    .map(|(part, was, is)| (part, word(was), word(is)))
    .collect()
}

fn confirm(confirm: Confirm) -> &'static str {
    match confirm {
        Confirm::Auto => "auto",
        Confirm::Always => "always",
        Confirm::Never => "never",
    }
}

fn same(was: &RawValue, is: &RawValue) -> bool {
    was.get() == is.get() || canonical(was) == canonical(is)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest of these operations.
    fn manifest(operations: &str) -> Manifest {
        let text = format!(r#"{{"protocol":1,"name":"t","version":"1","operations":[{operations}]}}"#);
        Manifest::parse(&text).expect("a manifest")
    }

    fn changed(before: &str, after: &str) -> Vec<String> {
        changed_claims(&manifest(before), &manifest(after)).iter().map(ToString::to_string).collect()
    }

    /// Row D19.
    #[test]
    fn d19_each_part_that_callers_go_by_is_told_from_what_to_what() {
        let plain = r#"{"name":"a","input_schema":{}}"#;
        let cases = [
            (
                r#"{"name":"a","input_schema":{},"effects":{"read_only":true}}"#,
                "a: read_only undeclared → true",
            ),
            (
                r#"{"name":"a","input_schema":{},"effects":{"destructive":false}}"#,
                "a: destructive undeclared → false",
            ),
            (
                r#"{"name":"a","input_schema":{},"effects":{"idempotent":true}}"#,
                "a: idempotent undeclared → true",
            ),
            (
                r#"{"name":"a","input_schema":{},"effects":{"open_world":true}}"#,
                "a: open_world undeclared → true",
            ),
            (r#"{"name":"a","input_schema":{},"confirm":"never"}"#, "a: confirm auto → never"),
            (r#"{"name":"a","input_schema":{},"scope":"deploy"}"#, "a: scope none → deploy"),
            (r#"{"name":"a","input_schema":{"type":"object"}}"#, "a: input schema changed"),
            (r#"{"name":"a","input_schema":{},"output_schema":{}}"#, "a: output schema changed"),
        ];
        for (after, expected) in cases {
            assert_eq!(changed(plain, after), [expected]);
            assert_eq!(changed(after, after), Vec::<String>::new());
        }
        let (was, is) = (cases[0].0, r#"{"name":"a","input_schema":{},"effects":{"read_only":false}}"#);
        assert_eq!(changed(was, is), ["a: read_only true → false"]);
    }

    #[test]
    fn operations_that_come_and_go_are_told_in_the_order_of_their_names() {
        let one = |name: &str| format!(r#"{{"name":"{name}","input_schema":{{}}}}"#);
        let before = [one("c"), one("b")].join(",");
        let after =
            [one("d"), r#"{"name":"c","input_schema":{"a":1},"confirm":"always"}"#.to_owned(), one("a")];
        let expected =
            ["a: added", "b: removed", "c: confirm auto → always", "c: input schema changed", "d: added"];
        assert_eq!(changed(&before, &after.join(",")), expected);
    }

    #[test]
    fn texts_and_the_way_a_schema_is_written_are_no_change() {
        let before = r#"{"name":"a","input_schema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#;
        let after = r#"{"name":"a","description":"New.","examples":["say a"],"timeout_ms":5,"category":"x",
            "input_schema":{ "properties": {"n":{"type":"integer"}}, "type": "object" }}"#;
        assert_eq!(changed(before, after), Vec::<String>::new());
        let number = after.replace("integer", "number");
        assert_eq!(changed(before, &number), ["a: input schema changed"]);
    }
}
