//! Defaults of a schema, filled in where a value is absent.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::document::{Document, Located};

/// Objects within objects are filled this deeply; deeper ones are left as they are.
const FILLED_DEPTH_MAX: usize = 32;

/// So many defaults are filled in at most, whatever a schema multiplies.
const FILLED_MAX: usize = 10_000;

/// The configuration with the defaults of its schema filled in where a key is absent.
///
/// A nested object that is absent appears where its own defaults make it complete. Nothing given
/// is changed, and a schema that cannot be read fills nothing.
pub fn fill_defaults(schema: &RawValue, config: &Value) -> Value {
    let Ok(schema) = crate::schema::parse(schema) else { return config.clone() };
    let document = Document::new(&schema);
    let mut filling = Filling { document: &document, building: Vec::new(), left: FILLED_MAX };
    filling.filled(document.root(), config.clone(), FILLED_DEPTH_MAX)
}

struct Filling<'d, 'a> {
    document: &'d Document<'a>,
    /// The schemas whose default is being made up; one within itself has none.
    building: Vec<*const Value>,
    left: usize,
}

impl<'a> Filling<'_, 'a> {
    fn filled(&mut self, schema: Located<'a>, value: Value, depth: usize) -> Value {
        let Value::Object(mut members) = value else { return value };
        if depth == 0 {
            return Value::Object(members);
        }
        for (name, property) in properties(self.document, schema) {
            if let Some(given) = members.get_mut(name) {
                let inner = self.filled(property, given.take(), depth - 1);
                *given = inner;
            } else if let Some(default) = self.default_of(property, depth - 1) {
                members.insert(name.to_owned(), default);
            }
        }
        Value::Object(members)
    }

    /// What stands for an absent value: its default, or an object that its own defaults complete.
    fn default_of(&mut self, schema: Located<'a>, depth: usize) -> Option<Value> {
        let branches = together(self.document, schema);
        self.left = self.left.checked_sub(1)?;
        if branches.iter().any(|branch| self.building.contains(&std::ptr::from_ref(branch.value))) {
            return None;
        }
        let outer = self.building.len();
        self.building.extend(branches.iter().map(|branch| std::ptr::from_ref(branch.value)));
        let declared = branches.iter().find_map(|branch| branch.value.get("default")).cloned();
        let is_declared = declared.is_some();
        let built = self.filled(schema, declared.unwrap_or_else(|| Value::Object(Map::new())), depth);
        self.building.truncate(outer);
        (is_declared || is_complete(&branches, &built)).then_some(built)
    }
}

/// Whether an object that was made up of defaults alone may stand there.
fn is_complete(branches: &[Located<'_>], built: &Value) -> bool {
    let Some(members) = built.as_object().filter(|members| !members.is_empty()) else { return false };
    let required = branches.iter().filter_map(|branch| branch.value.get("required")?.as_array()).flatten();
    required.filter_map(Value::as_str).all(|name| members.contains_key(name))
}

fn properties<'a>(document: &Document<'a>, schema: Located<'a>) -> Vec<(&'a str, Located<'a>)> {
    let mut found = Vec::new();
    for branch in together(document, schema) {
        let listed = branch.value.get("properties").and_then(Value::as_object);
        for (name, property) in listed.into_iter().flatten() {
            found.push((name.as_str(), branch.child(property)));
        }
    }
    found
}

/// A schema with those that hold whenever it does: behind `$ref` and in `allOf`.
fn together<'a>(document: &Document<'a>, schema: Located<'a>) -> Vec<Located<'a>> {
    let mut found: Vec<Located<'a>> = Vec::new();
    let mut open = vec![schema];
    while let Some(here) = open.pop() {
        if found.iter().any(|seen| std::ptr::eq(seen.value, here.value)) {
            continue;
        }
        found.push(here);
        for reference in here.references() {
            open.extend(document.resolve(here, reference).unwrap_or_default());
        }
        let all = here.value.get("allOf").and_then(Value::as_array).into_iter().flatten();
        open.extend(all.map(|branch| here.child(branch)));
    }
    found
}
