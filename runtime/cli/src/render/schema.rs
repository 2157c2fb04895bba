//! An operation's arguments and effects in words.

use plugd_conformance::referred;
use plugd_protocol::manifest::Effects;
use serde_json::{Map, Value};

use super::table::{Cell, table};
use super::text::{Paint, in_one_line, visible_line};

/// Objects within objects are shown so deep.
const DEPTH_MAX: usize = 4;

/// So many members of an object are shown as JSON.
const MEMBERS_MAX: usize = 8;

/// A line for each argument: name, type, whether it must be given, what it is. What is within an object
/// stands below it.
pub(super) fn arguments(schema: &str, paint: Paint) -> String {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let rows = members(&schema, &schema, 4, paint);
    match (rows.is_empty(), schema.get("additionalProperties")) {
        (true, Some(Value::Bool(false))) => "  arguments: none\n".to_owned(),
        (true, _) => "  arguments: none declared\n".to_owned(),
        (false, _) => format!("  arguments:\n{}", table(&rows)),
    }
}

/// A row for each member of the object that a schema within `root` describes, and for those within them.
fn members(schema: &Value, root: &Value, indent: usize, paint: Paint) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    add_members(schema, root, indent, DEPTH_MAX, paint, &mut rows);
    rows
}

fn add_members(
    schema: &Value,
    root: &Value,
    indent: usize,
    depth_left: usize,
    paint: Paint,
    rows: &mut Vec<Vec<Cell>>,
) {
    let Some((depth_left, properties)) = depth_left.checked_sub(1).zip(properties_of(schema)) else { return };
    let required: Vec<&str> = required_of(schema).collect();
    for (name, property) in properties {
        let meant = referred(property, root);
        let need = if required.contains(&name.as_str()) { "required" } else { "optional" };
        let said = |keyword: &str| property.get(keyword).or_else(|| meant.get(keyword));
        let description = said("description").and_then(Value::as_str).unwrap_or_default();
        let (name, space) = (visible_line(name), " ".repeat(indent));
        rows.push(vec![
            Cell::painted(&format!("{space}{name}"), format!("{space}{}", paint.bold(&name))),
            kind(meant, said("default"), root).into(),
            need.into(),
            in_one_line(description).into(),
        ]);
        let within = items_of(meant, root).unwrap_or(meant);
        add_members(within, root, indent + 2, depth_left, paint, rows);
    }
}

/// The members of an object that is asked for, or of each object in a list, as lines; none where nobody said.
pub(crate) fn members_of(schema: &Value) -> String {
    let meant = referred(schema, schema);
    let rows = members(items_of(meant, schema).unwrap_or(meant), schema, 2, Paint::plain());
    if rows.is_empty() { String::new() } else { table(&rows) }
}

fn properties_of(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty())
}

fn required_of(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// What each item of a list is, where that is an object with members.
fn items_of<'s>(list: &'s Value, root: &'s Value) -> Option<&'s Value> {
    let items = referred(list.get("items")?, root);
    properties_of(items).is_some().then_some(items)
}

/// A value that a schema within `root` describes, as JSON with `…` for what is to be filled in; where some
/// members are required, only those.
pub(crate) fn json_shape(schema: &Value, root: &Value) -> String {
    shape(schema, root, DEPTH_MAX).to_string().replace("\"\\u0000\"", "…")
}

fn shape(schema: &Value, root: &Value, depth_left: usize) -> Value {
    let schema = referred(schema, root);
    let shown = ["default", "example", "const"].into_iter().find_map(|keyword| schema.get(keyword));
    let first = |keyword: &str| schema.get(keyword).and_then(Value::as_array).and_then(|all| all.first());
    if let Some(value) = shown.or_else(|| first("examples")).or_else(|| first("enum")) {
        return value.clone();
    }
    let to_fill_in = || Value::from("\0");
    let Some(depth_left) = depth_left.checked_sub(1) else { return to_fill_in() };
    match (properties_of(schema), schema.get("items"), schema.get("type").and_then(Value::as_str)) {
        (Some(properties), ..) => {
            let required: Vec<&str> = required_of(schema).collect();
            let all = properties.iter();
            let asked = all.filter(|(name, _)| required.is_empty() || required.contains(&name.as_str()));
            let members =
                asked.take(MEMBERS_MAX).map(|(name, inner)| (name.clone(), shape(inner, root, depth_left)));
            Value::Object(members.collect())
        }
        (None, Some(items @ Value::Object(_)), _) => Value::Array(vec![shape(items, root, depth_left)]),
        (None, _, Some("array")) => Value::Array(vec![to_fill_in()]),
        (None, _, Some("string")) => "…".into(),
        _ => to_fill_in(),
    }
}

/// How somebody gives the value of `name` on a command line: `name=…`, or `name:='JSON'` where text would not do.
pub(crate) fn to_give(name: &str, schema: &Value) -> String {
    let kind = referred(schema, schema).get("type").and_then(Value::as_str);
    match (kind, properties_of(referred(schema, schema))) {
        (Some("array"), _) | (_, Some(_)) => {
            format!("{name}:='{}'", json_shape(schema, schema).replace('\'', "'\\''"))
        }
        (Some("object"), None) => format!("{name}:='{{…}}'"),
        _ => format!("{name}=…"),
    }
}

fn kind(property: &Value, default: Option<&Value>, root: &Value) -> String {
    let kind = match (property.get("enum"), property.get("type")) {
        (Some(Value::Array(values)), _) => values.iter().map(Value::to_string).collect::<Vec<_>>().join("|"),
        (_, Some(Value::String(name))) if items_of(property, root).is_some() => format!("{name} of objects"),
        (_, Some(Value::String(name))) => name.clone(),
        (_, Some(Value::Array(names))) => {
            names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|")
        }
        _ if properties_of(property).is_some() => "object".to_owned(),
        _ => "any".to_owned(),
    };
    let default = default.map(|value| format!("={value}")).unwrap_or_default();
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

    const PARCEL: &str = r##"{"type":"object","properties":{"to":{"type":"object","description":"Where to",
        "properties":{"street":{"type":"string","description":"The street"},
            "zip":{"type":"integer"},"speed":{"enum":["slow","fast"],"default":"slow"}},"required":["street","zip"]},
        "items":{"type":"array","items":{"$ref":"#/$defs/item"}}},
        "$defs":{"item":{"properties":{"name":{"type":"string"},"part":{"$ref":"#/$defs/item"}}}}}"##;

    #[test]
    fn what_is_within_an_object_stands_below_it() {
        let shown = arguments(PARCEL, Paint::never());
        let lines: Vec<&str> = shown.lines().collect();
        let [_, to, street, zip, speed, items, name, ..] = lines[..] else { panic!("{shown}") };
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(to), "to object optional Where to");
        assert!(street.starts_with("      street  "), "{shown}");
        assert_eq!(words(street), "street string required The street");
        assert_eq!(words(zip), "zip integer required");
        assert_eq!(words(speed), "speed \"slow\"|\"fast\"=\"slow\" optional");
        assert_eq!(
            (words(items), words(name)),
            ("items array of objects optional".into(), "name string optional".into())
        );
    }

    #[test]
    fn a_value_is_shown_as_the_json_to_be_written() {
        let schema: Value = serde_json::from_str(PARCEL).unwrap();
        let to = &schema["properties"]["to"];
        assert_eq!(to_give("to", to), r#"to:='{"street":"…","zip":…}'"#);
        let list = serde_json::json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(to_give("tags", &list), r#"tags:='["…"]'"#);
        assert_eq!(to_give("any", &serde_json::json!({"type": "object"})), "any:='{…}'");
        assert_eq!(to_give("n", &serde_json::json!({"type": "integer"})), "n=…");
    }

    #[test]
    fn effects_nobody_declared_are_not_made_up() {
        assert_eq!(effects(&Effects::default()), "not declared");
        let claims = Effects { read_only: Some(true), idempotent: Some(true), ..Effects::default() };
        assert_eq!(effects(&claims), "read-only, idempotent");
    }
}
