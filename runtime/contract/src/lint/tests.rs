//! Declarations good and bad, and whole lists of tools that are, or are not, alike.

mod declarations;
mod lists;

use plugd_protocol::control::LintFinding;
use plugd_protocol::{Operation, OperationId};
use serde_json::{Value, json};

/// An operation of this name with these members.
fn declared(id: &str, members: &Value) -> (OperationId, Operation) {
    let id = OperationId::parse(id).unwrap();
    let mut all = json!({"name": id.operation, "input_schema": {"type": "object"}});
    all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    (id, serde_json::from_value(all).unwrap())
}

/// The rules that a declaration breaks, each with where.
fn broken(id: &str, members: &Value) -> Vec<(String, String)> {
    let (id, operation) = declared(id, members);
    super::operation(&id, &operation).into_iter().map(|finding| (finding.rule, finding.path)).collect()
}

/// The overlaps of operations given as identity, description and what else is declared.
fn overlaps(operations: &[(OperationId, Operation)]) -> Vec<LintFinding> {
    super::overlaps(operations.iter().map(|(id, operation)| (id, operation)), |_| true)
}
