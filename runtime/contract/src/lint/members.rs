//! Members of a manifest that nobody goes by.

use plugd_protocol::control::LintFinding;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Rule, finding};
use crate::nearest::nearest;
use crate::words;

const MANIFEST: &[&str] = &[
    "config_schema",
    "description",
    "features",
    "name",
    "operations",
    "priority",
    "protocol",
    "requires",
    "version",
];

const FEATURES: &[&str] = &["cancel", "concurrency", "ping", "reload"];

const OPERATION: &[&str] = &[
    "audience",
    "cache_ttl",
    "category",
    "confirm",
    "description",
    "effects",
    "examples",
    "input_schema",
    "long_running",
    "name",
    "output_schema",
    "result_limit",
    "scope",
    "stall_timeout_ms",
    "timeout_ms",
    "title",
    "when_not_to_use",
    "when_to_use",
];

const EFFECTS: &[&str] = &["destructive", "idempotent", "open_world", "read_only"];

/// The members of a manifest, of its features, its operations and their effects that have no effect.
///
/// They are tolerated, for a later plugd may know them; most are misspelt.
pub fn manifest(plugin: &str, written: &RawValue) -> Vec<LintFinding> {
    let Ok(Value::Object(manifest)) = serde_json::from_str::<Value>(written.get()) else { return Vec::new() };
    let mut found = Vec::new();
    strangers(&mut found, plugin, "", &manifest, MANIFEST);
    if let Some(features) = manifest.get("features").and_then(Value::as_object) {
        strangers(&mut found, plugin, "/features", features, FEATURES);
    }
    let operations = manifest.get("operations").and_then(Value::as_array).into_iter().flatten();
    for operation in operations.filter_map(Value::as_object) {
        let name = operation.get("name").and_then(Value::as_str).unwrap_or("(unnamed)");
        let subject = format!("{plugin}.{name}");
        strangers(&mut found, &subject, "", operation, OPERATION);
        if let Some(effects) = operation.get("effects").and_then(Value::as_object) {
            strangers(&mut found, &subject, "/effects", effects, EFFECTS);
        }
    }
    found
}

fn strangers(
    found: &mut Vec<LintFinding>,
    subject: &str,
    path: &str,
    members: &Map<String, Value>,
    known: &[&str],
) {
    for name in members.keys().filter(|name| !known.contains(&name.as_str()) && !name.starts_with("x-")) {
        let meant = nearest(name, known.iter().copied().filter(|known| !members.contains_key(*known)));
        let meant = meant.map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
        let message = format!("nothing goes by a member {:?} here{meant}", words::clip(name));
        found.push(finding(subject.to_owned(), Rule::UnknownMember, path, message));
    }
}

#[cfg(test)]
mod tests {
    use plugd_protocol::manifest::{Effects, Features, Manifest, Operation};
    use serde_json::json;

    use super::*;

    fn told(manifest: &Value) -> Vec<String> {
        let written = serde_json::value::to_raw_value(manifest).unwrap();
        let found = super::manifest("lib", &written);
        let in_one = |one: LintFinding| format!("{} {}: {}", one.subject, one.path, one.message);
        found.into_iter().map(in_one).collect()
    }

    #[test]
    fn misspelt_members_are_named_with_what_was_meant() {
        let found = told(&json!({
            "protocol": 1, "name": "lib", "version": "1", "x-own": 1, "oprations": [], "features": {"canel": true},
            "operations": [
                {"name": "read", "inputschema": {}, "cache_tll": 5, "effects": {"readonly": true}, "x-team": "a"},
                {"name": "write", "input_schema": {"properties": {"own": {}}}, "colour": "red"},
            ],
        }));
        assert_eq!(
            found,
            [
                "lib : nothing goes by a member \"oprations\" here",
                "lib /features: nothing goes by a member \"canel\" here: did you mean cancel?",
                "lib.read : nothing goes by a member \"inputschema\" here: did you mean input_schema?",
                "lib.read : nothing goes by a member \"cache_tll\" here: did you mean cache_ttl?",
                "lib.read /effects: nothing goes by a member \"readonly\" here: did you mean read_only?",
                "lib.write : nothing goes by a member \"colour\" here",
            ]
        );
    }

    /// Whoever adds a member adds it here and above.
    #[test]
    fn every_member_there_is_is_known() {
        let written: Map<String, Value> = serde_json::from_value(json!({
            "name": "a", "title": "t", "description": "d", "when_to_use": "w", "when_not_to_use": "n",
            "examples": ["e"], "category": "c", "audience": "plugins", "input_schema": {}, "output_schema": {},
            "effects": {"read_only": true, "destructive": true, "idempotent": true, "open_world": true},
            "timeout_ms": 1, "stall_timeout_ms": 1, "long_running": true, "cache_ttl": 1, "confirm": "never",
            "scope": "s", "result_limit": 300,
        }))
        .unwrap();
        let operation: Operation = serde_json::from_value(written.into()).unwrap();
        let Operation {
            name: _,
            title: _,
            description: _,
            when_to_use: _,
            when_not_to_use: _,
            examples: _,
            category: _,
            audience: _,
            input_schema: _,
            output_schema: _,
            effects,
            timeout_ms: _,
            stall_timeout_ms: _,
            long_running: _,
            cache_ttl: _,
            confirm: _,
            scope: _,
            result_limit: _,
        } = operation.clone();
        let Effects { read_only: _, destructive: _, idempotent: _, open_world: _ } = effects;
        let features = Features::default();
        let Features { reload: _, ping: _, cancel: _, concurrency: _ } = features;
        let keys = |value: Value| {
            let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            keys.sort_unstable();
            keys
        };
        assert_eq!(keys(serde_json::to_value(&operation).unwrap()), OPERATION);
        assert_eq!(keys(serde_json::to_value(effects).unwrap()), EFFECTS);
        assert_eq!(keys(serde_json::to_value(features).unwrap()), FEATURES);
        let whole = json!({
            "protocol": 1, "name": "a", "version": "1", "description": "d", "requires": {"b": "*"}, "priority": 1,
            "features": {}, "config_schema": {}, "operations": [],
        });
        let manifest = Manifest::parse(&whole.to_string()).unwrap();
        assert_eq!(keys(serde_json::to_value(manifest).unwrap()), MANIFEST);
    }
}
