//! An operation's arguments and effects in words.

use plugd_protocol::manifest::Effects;
use serde_json::Value;

use super::table::{Cell, table};
use super::text::{Paint, in_one_line, visible_line};

/// A line for each argument: name, type, whether it must be given, what it is.
pub(super) fn arguments(schema: &str, paint: Paint) -> String {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty())
    else {
        return "  arguments: none declared\n".to_owned();
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let rows: Vec<Vec<Cell>> = properties
        .iter()
        .map(|(name, property)| {
            let name = visible_line(name);
            let need = if required.contains(&name.as_ref()) { "required" } else { "optional" };
            let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
            vec![
                Cell::painted(&format!("    {name}"), format!("    {}", paint.bold(&name))),
                kind(property).into(),
                need.into(),
                in_one_line(description).into(),
            ]
        })
        .collect();
    format!("  arguments:\n{}", table(&rows))
}

fn kind(property: &Value) -> String {
    let kind = match (property.get("enum"), property.get("type")) {
        (Some(Value::Array(values)), _) => values.iter().map(Value::to_string).collect::<Vec<_>>().join("|"),
        (_, Some(Value::String(name))) => name.clone(),
        (_, Some(Value::Array(names))) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|")
        }
        _ => "any".to_owned(),
    };
    let default = property.get("default").map(|value| format!("={value}")).unwrap_or_default();
    visible_line(&(kind + &default)).into_owned()
}

/// What an operation says it does to the world.
pub(super) fn effects(effects: &Effects) -> String {
    let claims = [
        (effects.read_only, "read-only", "changes something"),
        (effects.destructive, "destructive", "destroys nothing"),
        (effects.idempotent, "idempotent", "not idempotent"),
        (effects.open_world, "reaches beyond this machine", "stays on this machine"),
    ];
    let said: Vec<&str> = claims
        .into_iter()
        .filter_map(|(claim, yes, no)| claim.map(|claim| if claim { yes } else { no }))
        .collect();
    if said.is_empty() { "not declared".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_listed_with_type_need_and_meaning() {
        let schema = r#"{"properties":{"city":{"type":"string","description":"Where\n  it is"},
            "unit":{"enum":["C","F"],"default":"C"}},"required":["city"]}"#;
        let expected = "  arguments:\n    city  string       required  Where it is\n    unit  \"C\"|\"F\"=\"C\"  optional\n";
        assert_eq!(arguments(schema, Paint::never()), expected);
    }

    #[test]
    fn effects_nobody_declared_are_not_made_up() {
        assert_eq!(effects(&Effects::default()), "not declared");
        let claims = Effects { read_only: Some(true), idempotent: Some(true), ..Effects::default() };
        assert_eq!(effects(&claims), "read-only, idempotent");
    }
}
