//! What a declaration could say better, read as what it is: an instruction to a model.
//!
//! [`operation`] looks at one declaration alone, [`overlaps`] at several together. Texts may be English or
//! Chinese. Nothing here keeps an operation from being offered.

mod members;
mod overlap;
mod parameters;
mod rule;
mod text;
mod words;
mod written;

pub use members::manifest;
pub use overlap::{OVERLAPS_MAX, Overlap, overlapping, overlaps};
pub use rule::Rule;

pub(crate) use text::is_han;

use plugd_protocol::control::LintFinding;
use plugd_protocol::manifest::{Audience, Quarantined};
use plugd_protocol::{Operation, OperationId};

use crate::export::{DESCRIPTION_MAX, whole_length};

/// An operation and its name, as rules look at it.
struct Declared<'a> {
    id: &'a OperationId,
    operation: &'a Operation,
    findings: Vec<LintFinding>,
}

impl Declared<'_> {
    fn find(&mut self, rule: Rule, path: &str, message: String) {
        self.findings.push(finding(self.id.to_string(), rule, path, message));
    }
}

fn finding(subject: String, rule: Rule, path: &str, message: String) -> LintFinding {
    LintFinding {
        subject,
        rule: rule.name().to_owned(),
        path: path.to_owned(),
        message,
        hint: rule.hint().to_owned(),
    }
}

/// Everything that one declaration could say better.
pub fn operation(id: &OperationId, operation: &Operation) -> Vec<LintFinding> {
    let mut declared = Declared { id, operation, findings: Vec::new() };
    name(&mut declared);
    description(&mut declared);
    praise(&mut declared);
    parameters::look_at(&mut declared);
    effects(&mut declared);
    written::look_at(&mut declared);
    declared.findings
}

/// An operation that is not offered at all.
pub fn quarantined(plugin: &str, bad: &Quarantined) -> LintFinding {
    let path = if bad.reason.starts_with("input_schema") { "/input_schema" } else { "" };
    finding(format!("{plugin}.{}", bad.name), Rule::Quarantined, path, bad.reason.clone())
}

fn name(declared: &mut Declared<'_>) {
    let name = declared.operation.name.as_str();
    if text::is_vague(name) {
        let message = format!("{name:?} does not say what it does to what");
        declared.find(Rule::VagueName, "/name", message);
    }
}

fn description(declared: &mut Declared<'_>) {
    let operation = declared.operation;
    let described = operation.description.as_deref().unwrap_or_default();
    match text::sentences(described) {
        0 => declared.find(Rule::ShortDescription, "/description", "it has no description".to_owned()),
        1 => {
            let message = format!("its description is one phrase: {:?}", text::clipped(described));
            declared.find(Rule::ShortDescription, "/description", message);
        }
        _ => {}
    }
    let length = whole_length(operation);
    if length > DESCRIPTION_MAX {
        let message = format!(
            "description, when_to_use, when_not_to_use and examples together have {length} characters; \
             models get {DESCRIPTION_MAX} at most, and the rest is left out"
        );
        declared.find(Rule::LongDescription, "/description", message);
    }
    let says_when = operation.when_to_use.as_deref().is_some_and(|when| !when.trim().is_empty());
    if !says_when && is_for_models(operation) {
        declared.find(
            Rule::NoWhenToUse,
            "/when_to_use",
            "it does not say when it is the right choice".to_owned(),
        );
    }
}

fn praise(declared: &mut Declared<'_>) {
    let operation = declared.operation;
    let texts = [
        ("/title", &operation.title),
        ("/description", &operation.description),
        ("/when_to_use", &operation.when_to_use),
    ];
    for (path, said) in texts {
        let praises = said.as_deref().map(text::praises).unwrap_or_default();
        if !praises.is_empty() {
            declared.find(Rule::Praise, path, format!("it praises itself: {}", praises.join(", ")));
        }
    }
}

fn effects(declared: &mut Declared<'_>) {
    let operation = declared.operation;
    let effects = &operation.effects;
    let limits = operation.when_not_to_use.as_deref().is_some_and(|limits| !limits.trim().is_empty());
    match (effects.read_only, effects.destructive) {
        (Some(true), Some(true)) => {
            let message = "it is declared both read-only and destructive".to_owned();
            declared.find(Rule::ContradictoryEffects, "/effects", message);
        }
        (None, None | Some(false)) => {
            let message = "it does not declare whether it changes anything".to_owned();
            declared.find(Rule::UndeclaredEffects, "/effects", message);
        }
        (Some(false), _) | (None, Some(true)) if !limits && is_for_models(operation) => {
            let message = "it changes something and does not say when it must not be used".to_owned();
            declared.find(Rule::EffectsWithoutLimits, "/when_not_to_use", message);
        }
        (Some(_), _) | (None, Some(true)) => {}
    }
}

/// Whether models see it; a service is used by programs that were written for it.
fn is_for_models(operation: &Operation) -> bool {
    match operation.audience {
        Audience::Callers => true,
        Audience::Plugins => false,
    }
}

#[cfg(test)]
mod tests;
