//! What is offered to models: one name, one description and a schema, in the form of each dialect.
//!
//! Everything here is made from the declaration alone. A call is always checked against that, whatever the
//! form a model saw.

mod description;
mod fold;
mod name;
mod schema;

pub use description::{DESCRIPTION_MAX, description};
pub use name::{SPELLING_MAX, plugin_in, spelling};

pub(crate) use description::{one_line, whole_length};

use plugd_protocol::control::Dialect;
use plugd_protocol::manifest::Effects;
use plugd_protocol::{Operation, OperationId};
use serde_json::{Map, Value, json};

use schema::{Root, arguments, data, ordered};

/// The category of operations that declare none.
pub const OTHER: &str = "other";

/// The category of an operation.
pub fn category(operation: &Operation) -> String {
    let declared = operation.category.as_deref().map(description::one_line);
    declared.filter(|category| !category.is_empty()).unwrap_or_else(|| OTHER.to_owned())
}

/// What a dialect calls an operation; plugd itself calls it by its identity.
pub fn name(id: &OperationId, dialect: Option<Dialect>) -> String {
    match dialect {
        Some(Dialect::Openai | Dialect::Anthropic | Dialect::Mcp) => spelling(id),
        None => id.to_string(),
    }
}

/// An operation's declaration in the form of a dialect, or in plugd's own.
pub fn declaration(id: &OperationId, operation: &Operation, dialect: Option<Dialect>) -> Value {
    let description = description(operation);
    match dialect {
        Some(Dialect::Openai) => json!({
            "type": "function",
            "function": {
                "name": spelling(id),
                "description": description,
                "parameters": arguments(&operation.input_schema, Root::Plain),
            },
        }),
        Some(Dialect::Anthropic) => json!({
            "name": spelling(id),
            "description": description,
            "input_schema": arguments(&operation.input_schema, Root::Plain),
        }),
        Some(Dialect::Mcp) => mcp(id, operation, description),
        None => own(id, operation, description),
    }
}

fn mcp(id: &OperationId, operation: &Operation, description: String) -> Value {
    let title = operation.title.as_deref().map(description::one_line).filter(|title| !title.is_empty());
    let hints = hints(&operation.effects);
    let members = [
        ("name", Some(spelling(id).into())),
        ("title", title.map(Value::from)),
        ("description", Some(description.into())),
        ("inputSchema", Some(arguments(&operation.input_schema, Root::Any))),
        ("outputSchema", operation.output_schema.as_deref().and_then(data)),
        ("annotations", (!hints.is_empty()).then(|| hints.into())),
    ];
    present(members)
}

/// What it says it does to the world; what it does not say is left to MCP's own cautious defaults.
fn hints(effects: &Effects) -> Map<String, Value> {
    let claims = [
        ("readOnlyHint", effects.read_only),
        ("destructiveHint", effects.destructive),
        ("idempotentHint", effects.idempotent),
        ("openWorldHint", effects.open_world),
    ];
    claims.into_iter().filter_map(|(name, claim)| Some((name.to_owned(), claim?.into()))).collect()
}

/// The declaration as it was made, its description in the one form.
fn own(id: &OperationId, operation: &Operation, description: String) -> Value {
    let read = |schema: &serde_json::value::RawValue| serde_json::from_str::<Value>(schema.get()).ok();
    let Ok(Value::Object(mut declared)) = serde_json::to_value(operation) else { return Value::Null };
    for told in ["when_to_use", "when_not_to_use", "examples"] {
        declared.remove(told);
    }
    declared.insert("name".to_owned(), id.to_string().into());
    declared.insert("description".to_owned(), description.into());
    declared.insert("category".to_owned(), category(operation).into());
    declared.insert("input_schema".to_owned(), read(&operation.input_schema).unwrap_or_default());
    if let Some(schema) = operation.output_schema.as_deref().and_then(read) {
        declared.insert("output_schema".to_owned(), schema);
    }
    let first = ["name", "title", "description", "category", "input_schema", "output_schema", "effects"];
    ordered(declared, &first).into()
}

fn present<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    members
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect::<Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> (OperationId, Operation) {
        let operation = serde_json::from_value(json!({
            "name": "query_status", "title": "Ticket status", "description": "Gives\nthe status. Of one ticket.",
            "when_not_to_use": "The number is not known.", "category": "desk", "timeout_ms": 5000,
            "input_schema": {"$schema": "x", "type": "object", "properties": {"id": {"type": "string"}}, "anyOf": [{"required": ["id"]}, {}]},
            "output_schema": {"type": "object"},
            "effects": {"read_only": true, "open_world": false},
        }))
        .unwrap();
        (OperationId::parse("desk.query_status").unwrap(), operation)
    }

    #[test]
    fn each_dialect_gets_its_form_and_all_the_same_words() {
        let (id, operation) = declared();
        let told = "Gives the status. Of one ticket. When not to use: The number is not known.";
        let of = |dialect| declaration(&id, &operation, dialect);
        let parameters = json!({"type": "object", "description": "Needs one of these: id; none of these.",
            "properties": {"id": {"type": "string"}}});
        assert_eq!(
            of(Some(Dialect::Openai)),
            json!({"type": "function", "function":
                {"name": "desk__query_status", "description": told, "parameters": parameters}})
        );
        assert_eq!(
            of(Some(Dialect::Anthropic)),
            json!({"name": "desk__query_status", "description": told, "input_schema": parameters})
        );
        assert_eq!(
            of(Some(Dialect::Mcp)),
            json!({"name": "desk__query_status", "title": "Ticket status", "description": told,
                "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "anyOf": [{"required": ["id"]}, {}]},
                "outputSchema": {"type": "object", "properties": {}},
                "annotations": {"readOnlyHint": true, "openWorldHint": false}})
        );
        let own = of(None);
        assert_eq!((&own["name"], &own["description"]), (&json!("desk.query_status"), &json!(told)));
        assert_eq!(own["input_schema"]["$schema"], "x", "in plugd's own form nothing is reshaped");
        assert_eq!((&own["category"], &own["timeout_ms"]), (&json!("desk"), &json!(5000)));
    }

    #[test]
    fn what_is_not_declared_is_not_made_up() {
        let operation = serde_json::from_value(json!({"name": "x", "input_schema": {}})).unwrap();
        let id = OperationId::parse("p.x").unwrap();
        assert_eq!(
            declaration(&id, &operation, Some(Dialect::Mcp)),
            json!({"name": "p__x", "description": "", "inputSchema": {"type": "object", "properties": {}}})
        );
        assert_eq!((category(&operation), name(&id, None)), ("other".to_owned(), "p.x".to_owned()));
        assert_eq!(name(&id, Some(Dialect::Openai)), "p__x");
    }
}
