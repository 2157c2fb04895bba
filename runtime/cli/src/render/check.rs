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
    let operations: usize = report.plugins.iter().map(|checked| checked.operations.len()).sum();
    let operations = count(u64::try_from(operations).unwrap_or(u64::MAX), "operation");
    let _ = match report.ok {
        true if none_was_called(report) => writeln!(out, "all is well; no operation was called"),
        true => writeln!(out, "all is well: {operations}"),
        false => writeln!(out, "{}", paint.red(wrong(report))),
    };
    out
}

/// Whether calls were asked for, and every one was left out.
fn none_was_called(report: &CheckReport) -> bool {
    let mut tried =
        report.plugins.iter().flat_map(|checked| &checked.operations).filter_map(|one| one.tried.as_ref());
    let asked = tried.clone().next().is_some();
    asked && tried.all(|tried| tried.outcome == ScenarioOutcome::Skipped)
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
