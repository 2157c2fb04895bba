//! The manifest: whether all that it declares can be used, and what it keeps away from the handlers.

use plugd_contract::{Contract, Prepared};
use plugd_protocol::{Operation, PluginName, negotiation};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::example::{example_arguments, referred};
use crate::kit::Kit;
use crate::scenario::{Came, Finding, Needs, Scenario, Stage, Verdict};
use crate::transcript::clipped;

/// What is tried here.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "declares_what_can_be_used",
        shows: "declares nothing that plugd cannot use",
        does: "Reads the manifest as plugd does: the version, each operation, each schema. What cannot be used is not offered, and the rest works.",
        anchor: "the-manifest",
        fix: "mend what the message names",
        stage: Stage::First,
        needs: Needs::Manifest,
        run: |kit| Box::pin(declares_what_can_be_used(kit)),
    },
    Scenario {
        name: "keeps_bad_arguments_away",
        shows: "declares its arguments so that bad ones never reach it",
        does: "Makes arguments that do not fit out of each `input_schema`: a key that nobody declared, values of another type. plugd must refuse each before the plugin hears of it; what its schema lets through is a warning.",
        anchor: "call",
        fix: "give each property a type, and leave additionalProperties out",
        stage: Stage::Beside,
        needs: Needs::Manifest,
        run: |kit| Box::pin(keeps_bad_arguments_away(kit)),
    },
];

/// More operations than this no model, and no person, can choose among.
const OPERATIONS_MAX: usize = 200;

/// A manifest of more bytes takes long to read each time.
const BYTES_MAX: usize = 1024 * 1024;

/// So many arguments that get through are shown.
const SHOWN_MAX: usize = 5;

pub(super) async fn declares_what_can_be_used(kit: Kit) -> Came {
    let manifest = kit.manifest();
    let mut findings = Vec::new();
    if let Err(mismatch) = negotiation::accept(manifest.protocol) {
        findings.push(Finding::failure(mismatch.to_string()));
    }
    if let Err(error) = PluginName::new(&manifest.name) {
        findings.push(Finding::warning(format!("{error}: the name that it is configured under counts")));
    }
    if manifest.semver().is_none() {
        let said = format!("version {:?} is not semver: no range that requires it fits", manifest.version);
        findings.push(Finding::warning(said));
    }
    for bad in &manifest.quarantined {
        findings.push(Finding::failure(format!("{} is not offered: {}", bad.name, bad.reason)));
    }
    findings.extend(manifest.operations.iter().filter_map(unusable));
    if let Some(Err(error)) = manifest.config_schema.as_deref().map(Contract::compile) {
        findings.push(Finding::failure(format!("config_schema: {error}")));
    }
    let count = manifest.operations.len();
    if count > OPERATIONS_MAX {
        findings.push(Finding::warning(format!("{count} operations: nobody can choose among so many")));
    }
    let bytes = kit.described().map_or(0, |described| described.raw.get().len());
    if bytes > BYTES_MAX {
        findings.push(Finding::warning(format!("the manifest has {bytes} bytes")));
    }
    Ok(Verdict::of(findings))
}

/// What keeps an operation from being called.
fn unusable(operation: &Operation) -> Option<Finding> {
    let name = &operation.name;
    let contract = match Contract::of_arguments(&operation.input_schema) {
        Ok(contract) => contract,
        Err(error) => return Some(Finding::failure(format!("{name} is not offered: input_schema: {error}"))),
    };
    if let Some(never) = contract.never_fits() {
        return Some(Finding::failure(format!("{name} can never be called: input_schema: {never}")));
    }
    let output = operation.output_schema.as_deref().map(Contract::compile);
    let Some(Err(error)) = output else { return None };
    Some(Finding::failure(format!("{name} is not offered: output_schema: {error}")))
}

pub(super) async fn keeps_bad_arguments_away(kit: Kit) -> Came {
    let mut findings = Vec::new();
    let mut refused = 0;
    for operation in &kit.manifest().operations {
        let Ok(contract) = Contract::of_arguments(&operation.input_schema) else { continue };
        for (what, arguments) in bad_arguments(operation) {
            let Ok(raw) = RawValue::from_string(arguments.to_string()) else { continue };
            match contract.prepare(&raw) {
                Prepared::Wrong(_) | Prepared::Missing { .. } => refused += 1,
                Prepared::Fits | Prepared::Ready { .. } if findings.len() < SHOWN_MAX => {
                    let said = format!("{} with {what} would reach the handler", operation.name);
                    findings.push(Finding::warning(said).with([clipped(raw.get().as_bytes())]));
                }
                Prepared::Fits | Prepared::Ready { .. } => {}
            }
        }
    }
    Ok(match (findings.is_empty(), refused) {
        (true, 0) => Verdict::Skipped("no operation declares what it takes".to_owned()),
        (true, _) => Verdict::Passed(Some(format!(
            "{refused} kinds of bad arguments are refused before they are sent"
        ))),
        (false, _) => Verdict::Found(findings),
    })
}

/// Arguments that do not fit, each with what is wrong with them.
fn bad_arguments(operation: &Operation) -> Vec<(String, Value)> {
    let schema: Value = serde_json::from_str(operation.input_schema.get()).unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let good = example_arguments(operation).ok().and_then(|good| good.as_object().cloned());
    let good = good.unwrap_or_default();
    let mut bad = Vec::new();
    let allows_more =
        schema.get("additionalProperties").is_some() || schema.get("patternProperties").is_some();
    if !properties.is_empty() && !allows_more {
        bad.push(("a key that nobody declared".to_owned(), with(&good, "plugd_check", json!(1))));
    }
    for (name, property) in properties {
        let property = referred(property, &schema);
        if let Some(wrong) = property.get("type").and_then(Value::as_str).and_then(of_another_type) {
            bad.push((format!("{name} of another type"), with(&good, name, wrong)));
        }
    }
    bad
}

fn with(good: &Map<String, Value>, name: &str, value: Value) -> Value {
    let mut members = good.clone();
    members.insert(name.to_owned(), value);
    members.into()
}

/// A value that cannot be read as one of that type.
fn of_another_type(declared: &str) -> Option<Value> {
    match declared {
        "string" | "integer" | "number" | "boolean" => Some(json!({"plugd_check": [1]})),
        "object" => Some(json!("plugd check")),
        "array" => Some(json!({"plugd_check": true})),
        _ => None,
    }
}
