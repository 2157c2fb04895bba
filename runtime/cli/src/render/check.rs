//! What was found out about plugins without calling them, as text; and the names an added one has.

use std::fmt::Write;
use std::time::Duration;

use plugd_protocol::control::{
    CheckReport, CheckedOperation, CheckedPlugin, Exported, ScenarioOutcome, Tried,
};

use super::text::{Paint, visible_line, wire_name};
use super::tools::count;

/// Each plugin with its operations under three questions: how each is found, filled, and fails.
pub(crate) fn checked(report: &CheckReport, paint: Paint) -> String {
    let mut out = String::new();
    for problem in &report.problems {
        let _ = writeln!(out, "{} {}", paint.red("problem:"), visible_line(problem));
    }
    for checked in &report.plugins {
        plugin(checked, paint, &mut out);
    }
    if report.plugins.is_empty() {
        out.push_str("no plugins\n");
    }
    let _ = match report.ok {
        true => writeln!(out, "{}", well(report)),
        false => writeln!(out, "{}", paint.red(wrong(report))),
    };
    out
}

/// What is well, and what was left out and may not be.
fn well(report: &CheckReport) -> String {
    let operations = || report.plugins.iter().flat_map(|checked| &checked.operations);
    let scenarios =
        || report.plugins.iter().flat_map(|checked| &checked.conformance).flat_map(|one| &one.scenarios);
    let all = counted(operations().count(), "operation");
    let asked = operations().filter_map(|operation| operation.tried.as_ref()).count();
    let called =
        operations().filter(|one| one.tried.as_ref().is_some_and(|tried| tried.arguments.is_some())).count();
    let slow =
        scenarios().filter(|scenario| scenario.note.as_deref() == Some(plugd_conformance::LEFT_OUT)).count();
    let tried = scenarios().filter(|scenario| scenario.outcome != ScenarioOutcome::Skipped).count();
    let kits = report.plugins.iter().filter(|checked| checked.conformance.is_some()).count();
    let unasked = (plugd_conformance::scenarios().count() * kits).saturating_sub(scenarios().count());
    let mut left = Vec::new();
    if asked > called {
        left.push(format!(
            "{} that {} not called",
            counted(asked - called, "operation"),
            were(asked - called)
        ));
    }
    if slow > 0 {
        left.push(format!(
            "{} that {} long",
            counted(slow, "scenario"),
            if slow == 1 { "takes" } else { "take" }
        ));
    }
    if unasked > 0 {
        left.push(format!("{} that --only does not name", counted(unasked, "scenario")));
    }
    if left.is_empty() {
        return format!("all is well: {all}");
    }
    let mut well = match asked {
        0 => vec![format!("what {all} declare{}", if operations().count() == 1 { "s" } else { "" })],
        _ => vec![format!("{called} of {all} called")],
    };
    if kits > 0 {
        well.push(counted(tried, "scenario"));
    }
    format!("what was tried is well: {}; left out: {}", well.join(", "), left.join(", "))
}

fn counted(number: usize, what: &str) -> String {
    count(u64::try_from(number).unwrap_or(u64::MAX), what)
}

fn were(number: usize) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// What keeps it from being well.
fn wrong(report: &CheckReport) -> &'static str {
    let callable = |checked: &CheckedPlugin| {
        let reachable = checked.operations.iter().all(|operation| operation.exported.unreachable.is_none());
        !checked.is_down() && reachable
    };
    let breaks_it = |checked: &CheckedPlugin| checked.conformance.as_ref().is_some_and(|report| !report.ok);
    let fails =
        |checked: &CheckedPlugin| checked.operations.iter().any(|operation| operation.fault(false).is_some());
    if !report.problems.is_empty() || !report.plugins.iter().all(callable) {
        "not all of it can be called"
    } else if report.plugins.iter().any(breaks_it) {
        "not all of it keeps to the protocol"
    } else if report.plugins.iter().any(fails) {
        "not all of it works with its own examples"
    } else {
        "all of it can be called, and what is warned of counts under --strict"
    }
}

fn plugin(checked: &CheckedPlugin, paint: Paint, out: &mut String) {
    let plugin = &checked.plugin;
    let state = paint.state(plugin.state, &wire_name(&plugin.state));
    let version = plugin.version.as_deref().map(|version| format!(" {}", visible_line(version)));
    let _ = write!(out, "{}{}  {state}", paint.bold(plugin.name.as_str()), version.unwrap_or_default());
    if let Some(reason) = plugin.reason.as_ref().filter(|_| checked.absent.is_empty()) {
        let _ = write!(out, ": {}", visible_line(reason));
    }
    out.push('\n');
    for name in &checked.absent {
        let _ = writeln!(
            out,
            "  requires {name}, which is not here: calls that need it were not tried; name its path, too, to have both"
        );
    }
    for operation in &checked.operations {
        let _ = writeln!(out, "{}", exported(&operation.exported, paint));
        if !operation.exported.found_by.is_empty() {
            let _ = writeln!(out, "    found: {}", found(operation));
            let _ = writeln!(out, "    filled: {}", filled(operation));
            let _ = writeln!(out, "    fails: {}", fails(operation));
        }
        if let Some(tried) = &operation.tried {
            let _ = writeln!(out, "    tried: {}", outcome(tried, paint));
        }
    }
    if let Some(report) = &checked.conformance {
        out.push_str(&super::conformance::conformance(report, paint));
    }
    out.push_str(&super::lint::findings(&checked.findings, paint));
}

/// The name of an operation for models, the size of its declaration, and what keeps it from being called.
pub(super) fn exported(exported: &Exported, paint: Paint) -> String {
    let id = visible_line(&exported.id);
    let mut line = match &exported.name {
        Some(name) => format!("  {id}  {name}  {} bytes", exported.bytes),
        None if exported.found_by.is_empty() => format!("  {id}"),
        None => format!("  {id}  a service, not offered to models"),
    };
    if let Some(reason) = &exported.unreachable {
        let _ = write!(line, "  {} {}", paint.red("cannot be called:"), visible_line(reason));
    }
    line
}

fn found(operation: &CheckedOperation) -> String {
    let mut told = format!("as {}", operation.exported.found_by.join(", "));
    match operation.examples.as_slice() {
        [] => told.push_str("; it declares no examples"),
        [first, ..] => {
            let examples = count(u64::try_from(operation.examples.len()).unwrap_or(u64::MAX), "example");
            let _ = write!(told, "; by {examples}, such as “{}”", visible_line(first));
        }
    }
    told
}

fn filled(operation: &CheckedOperation) -> String {
    let names = |names: &[String]| names.iter().map(|name| visible_line(name)).collect::<Vec<_>>().join(", ");
    let must = |required: &[String]| match required {
        [] => "nothing is needed".to_owned(),
        [only] => format!("{} must be given, or is asked for", visible_line(only)),
        several => format!("{} must be given, or are asked for", names(several)),
    };
    let mut told = must(&operation.required);
    if !operation.optional.is_empty() {
        let _ = write!(told, "; {} may be given", names(&operation.optional));
    }
    if !operation.within.is_empty() {
        let _ = write!(told, "; within them {} must be given", names(&operation.within));
    }
    told
}

fn fails(operation: &CheckedOperation) -> String {
    let time = match operation.timeout_ms {
        Some(time) => humantime::format_duration(Duration::from_millis(time)).to_string(),
        None => "the configured time".to_owned(),
    };
    let job = if operation.background { "; runs in the background, as a job" } else { "" };
    let retried =
        if operation.retried { "tried again once after a crash" } else { "never tried again by itself" };
    let confirmed = if operation.confirmed { "; runs only once a person agrees" } else { "" };
    format!("after {time}, or in its own words; {retried}{confirmed}{job}")
}

fn outcome(tried: &Tried, paint: Paint) -> String {
    let remarks = visible_line(&tried.remarks.join("; ")).into_owned();
    let remarks = match tried.outcome {
        ScenarioOutcome::Failed => paint.red(&remarks),
        ScenarioOutcome::Passed | ScenarioOutcome::Warned | ScenarioOutcome::Skipped => remarks,
    };
    let warning = if tried.outcome == ScenarioOutcome::Warned { "warning: " } else { "" };
    match (&tried.arguments, tried.answered, tried.remarks.is_empty()) {
        (None, _, _) => format!("{warning}{remarks}"),
        (Some(arguments), true, true) => format!("it answers {}", visible_line(&arguments.to_string())),
        (Some(arguments), _, _) => {
            format!("{warning}with {}: {remarks}", visible_line(&arguments.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_not_tried_is_not_called_well() {
        let report = |tried: serde_json::Value, scenarios: serde_json::Value| -> CheckReport {
            serde_json::from_value(json!({"ok": true, "plugins": [{
                "plugin": {"name": "t", "state": "idle", "enabled": true, "priority": 0, "version": "1.0",
                    "source": {"kind": "embedded"}, "path": "/t", "operations": []},
                "operations": [{"id": "t.one", "description": "", "bytes": 1, "found_by": [], "confirmed": false,
                    "retried": false, "tried": tried}],
                "findings": [], "conformance": scenarios}]}))
            .unwrap()
        };
        let answered = json!({"arguments": {}, "outcome": "passed", "answered": true, "remarks": []});
        let skipped = json!({"outcome": "skipped", "answered": false, "remarks": ["not called: no"]});
        assert_eq!(well(&report(answered.clone(), json!(null))), "all is well: 1 operation");
        assert_eq!(well(&report(json!(null), json!(null))), "all is well: 1 operation");
        let none =
            "what was tried is well: 0 of 1 operation called; left out: 1 operation that was not called";
        assert_eq!(well(&report(skipped, json!(null))), none);
        let scenario = |name: &str, outcome: &str, note: &str| {
            json!({"name": name, "shows": "", "outcome": outcome,
            "spec": "", "took_ms": 1, "note": note})
        };
        let mut scenarios: Vec<serde_json::Value> =
            plugd_conformance::scenarios().map(|known| scenario(known.name, "passed", "")).collect();
        let all = scenarios.len();
        scenarios[all - 1] = scenario("slow", "skipped", plugd_conformance::LEFT_OUT);
        let kit = |scenarios: &[serde_json::Value]| json!({"ok": true, "took_ms": 1, "scenarios": scenarios});
        let quick = format!(
            "what was tried is well: 1 of 1 operation called, {} scenarios; left out: 1 scenario that takes long",
            all - 1
        );
        assert_eq!(well(&report(answered, kit(&scenarios))), quick);
        let only = format!(
            "what was tried is well: what 1 operation declares, 1 scenario; left out: {} scenarios that --only does not name",
            all - 1
        );
        assert_eq!(well(&report(json!(null), kit(&scenarios[..1]))), only);
    }

    #[test]
    fn each_operation_says_how_it_is_found_filled_and_fails() {
        let report: CheckReport = serde_json::from_value(json!({
            "ok": false, "problems": ["plugin x: its program is gone"],
            "plugins": [{
                "plugin": {"name": "t", "state": "idle", "enabled": true, "priority": 0, "version": "1.0",
                    "source": {"kind": "embedded"}, "path": "/t", "operations": []},
                "operations": [
                    {"id": "t.one", "name": "t__one", "description": "", "bytes": 12, "found_by": ["t.one", "t__one"],
                     "examples": ["do\u{1b} it"], "required": ["id"], "optional": ["unit"], "confirmed": true,
                     "retried": false, "timeout_ms": 5000, "background": true, "within": ["unit.name"],
                     "tried": {"arguments": {"id": 1}, "outcome": "passed", "answered": true, "remarks": ["its data is empty"]}},
                    {"id": "t.badName", "description": "", "bytes": 0, "found_by": [], "unreachable": "no",
                     "confirmed": false, "retried": false},
                ],
                "findings": [],
            }],
        }))
        .unwrap();
        let expected = "problem: plugin x: its program is gone\nt 1.0  idle\n  t.one  t__one  12 bytes\n    \
            found: as t.one, t__one; by 1 example, such as “do\\u{1b} it”\n    \
            filled: id must be given, or is asked for; unit may be given; \
            within them unit.name must be given\n    \
            fails: after 5s, or in its own words; never tried again by itself; runs only once a person agrees; \
            runs in the background, as a job\n    \
            tried: with {\"id\":1}: its data is empty\n  \
            t.badName  cannot be called: no\nnot all of it can be called\n";
        assert_eq!(checked(&report, Paint::never()), expected);
    }
}
