//! How a program keeps to the protocol, as text and as JUnit XML.

use std::fmt::Write;

use plugd_protocol::PluginName;
use plugd_protocol::control::{
    CheckReport, CheckedOperation, CheckedPlugin, ConformanceReport, ScenarioFinding, ScenarioOutcome,
    ScenarioReport, Tried,
};

use super::text::{Paint, visible_line};
use super::tools::count;

/// Scenarios whose measurements people look for.
const MEASURED: &[&str] = &["starts_soon", "reads_a_large_line", "does_not_grow", "needs_little_memory"];

/// More names that were skipped for one reason are not read one by one.
const NAMES_MAX: usize = 12;

/// One line of counts, then all that is not as it should be: what came, what to do, where it is specified.
pub(super) fn conformance(report: &ConformanceReport, paint: Paint) -> String {
    let mut out = String::new();
    let counted = |outcome, what: &str| match report.count(outcome) {
        0 => String::new(),
        number => format!(", {number} {what}"),
    };
    let passed = count(u64::try_from(report.count(ScenarioOutcome::Passed)).unwrap_or(u64::MAX), "scenario");
    let seconds = report.took_ms / 1000;
    let _ = writeln!(
        out,
        "  conformance: {passed} passed{}{}{} in {seconds}.{} s",
        counted(ScenarioOutcome::Failed, "failed"),
        counted(ScenarioOutcome::Warned, "with warnings"),
        counted(ScenarioOutcome::Skipped, "skipped"),
        report.took_ms % 1000 / 100,
    );
    for scenario in &report.scenarios {
        for finding in &scenario.findings {
            told(scenario, finding, paint, &mut out);
        }
    }
    for scenario in report.scenarios.iter().filter(|scenario| MEASURED.contains(&scenario.name.as_str())) {
        if let (ScenarioOutcome::Passed, Some(note)) = (scenario.outcome, &scenario.note) {
            let _ = writeln!(out, "    {} {}", paint.dim("measured:"), visible_line(note));
        }
    }
    out.push_str(&skipped(report, paint));
    out
}

fn told(scenario: &ScenarioReport, finding: &ScenarioFinding, paint: Paint, out: &mut String) {
    let kind = if finding.fails { paint.red("failed:") } else { "warning:".to_owned() };
    let _ = writeln!(out, "    {kind} {}  {}", paint.bold(&scenario.name), visible_line(&finding.message));
    for line in &finding.evidence {
        let _ = writeln!(out, "      {}", paint.dim(&visible_line(line)));
    }
    let _ = writeln!(out, "      {} {}", paint.dim("fix:"), visible_line(&finding.fix));
    let _ = writeln!(out, "      {} {}", paint.dim("see:"), scenario.spec);
}

/// What was skipped, together where the reason is the same.
fn skipped(report: &ConformanceReport, paint: Paint) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for scenario in report.scenarios.iter().filter(|scenario| scenario.outcome == ScenarioOutcome::Skipped) {
        let why = scenario.note.as_deref().unwrap_or_default();
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(&scenario.name),
            None => reasons.push((why, vec![&scenario.name])),
        }
    }
    let mut out = String::new();
    for (why, names) in reasons {
        let which = match names.len() {
            0..=NAMES_MAX => names.join(", "),
            many => format!("{many} scenarios"),
        };
        let _ = writeln!(out, "    {} {which}: {}", paint.dim("skipped:"), visible_line(why));
    }
    out
}

/// The same for CI: a suite for each plugin, a case for each scenario and each operation.
pub(crate) fn junit(report: &CheckReport, strict: bool) -> String {
    let mut out =
        String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"plugd check\">\n");
    if !report.problems.is_empty() {
        out.push_str("  <testsuite name=\"configuration\">\n");
        for problem in &report.problems {
            let _ = writeln!(out, "    <testcase classname=\"plugd.check\" name=\"configuration\">");
            let _ = writeln!(out, "      <failure message=\"{}\"/>\n    </testcase>", escaped(problem));
        }
        out.push_str("  </testsuite>\n");
    }
    for checked in &report.plugins {
        suite(checked, strict, &mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

fn suite(checked: &CheckedPlugin, strict: bool, out: &mut String) {
    let name = escaped(checked.plugin.name.as_str());
    let mut cases = String::new();
    let (mut failures, mut skips, mut total) = (0, 0, 0);
    if checked.is_down() {
        let why = checked.plugin.reason.as_deref().unwrap_or("it was never described");
        let failure = format!("<failure message=\"{}\"/>", escaped(why));
        case(&mut cases, &name, &format!("{name} can be used"), 0, &failure);
        (failures, total) = (1, 1);
    }
    for operation in &checked.operations {
        total += 1;
        let id = escaped(&operation.exported.id);
        let inner = match operation.fault(strict) {
            Some(why) => {
                failures += 1;
                format!("<failure message=\"{}\"/>", escaped(&why))
            }
            None if !checked.absent.is_empty() => {
                skips += 1;
                let absent: Vec<&str> = checked.absent.iter().map(PluginName::as_str).collect();
                format!(
                    "<skipped message=\"it requires {}, which is not here\"/>",
                    escaped(&absent.join(", "))
                )
            }
            None => told_aside(operation),
        };
        case(&mut cases, &name, &format!("{id} can be called"), 0, &inner);
    }
    for scenario in checked.conformance.iter().flat_map(|report| &report.scenarios) {
        total += 1;
        let inner = match scenario.outcome {
            ScenarioOutcome::Passed => String::new(),
            ScenarioOutcome::Skipped => {
                skips += 1;
                let why = scenario.note.as_deref().unwrap_or_default();
                format!("<skipped message=\"{}\"/>", escaped(why))
            }
            ScenarioOutcome::Warned if !strict => format!("<system-out>{}</system-out>", details(scenario)),
            ScenarioOutcome::Warned | ScenarioOutcome::Failed => {
                failures += 1;
                let message =
                    scenario.findings.first().map(|found| found.message.as_str()).unwrap_or_default();
                format!("<failure message=\"{}\">{}</failure>", escaped(message), details(scenario))
            }
        };
        case(&mut cases, &name, &scenario.name, scenario.took_ms, &inner);
    }
    let _ = write!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{total}\" failures=\"{failures}\" skipped=\"{skips}\">\n{cases}  </testsuite>\n"
    );
}

/// What is warned of in the call of an operation.
fn told_aside(operation: &CheckedOperation) -> String {
    let warned = operation.tried.as_ref().filter(|tried| tried.outcome == ScenarioOutcome::Warned);
    let told = |tried: &Tried| format!("<system-out>{}</system-out>", escaped(&tried.remarks.join("\n")));
    warned.map(told).unwrap_or_default()
}

fn case(out: &mut String, plugin: &str, name: &str, took_ms: u64, inner: &str) {
    let time = format!("{}.{:03}", took_ms / 1000, took_ms % 1000);
    let opening = format!("    <testcase classname=\"plugd.check.{plugin}\" name=\"{name}\" time=\"{time}\"");
    let _ = match inner.is_empty() {
        true => writeln!(out, "{opening}/>"),
        false => writeln!(out, "{opening}>\n      {inner}\n    </testcase>"),
    };
}

/// What was found in words, with evidence, what to do, and where it is specified.
fn details(scenario: &ScenarioReport) -> String {
    let mut text = String::new();
    for finding in &scenario.findings {
        let _ = writeln!(text, "{}", finding.message);
        for line in &finding.evidence {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(text, "fix: {}\nsee: {}", finding.fix, scenario.spec);
    }
    escaped(text.trim_end())
}

/// Text as XML takes it; characters that XML cannot hold are shown by their numbers.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(character),
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> CheckReport {
        let scenario = |name: &str, outcome: &str| json!({"name": name, "shows": "does", "outcome": outcome, "spec": "docs/protocol.md#frames", "took_ms": 1234});
        let mut scenarios: Vec<serde_json::Value> =
            [("a", "passed"), ("b", "failed"), ("c", "warned"), ("d", "skipped"), ("e", "skipped")]
                .map(|(name, outcome)| scenario(name, outcome))
                .into();
        let finding = |fails: bool| json!([{"fails": fails, "message": "a <line>", "evidence": ["← \u{1}&"], "fix": "do"}]);
        scenarios[1]["findings"] = finding(true);
        scenarios[2]["findings"] = finding(false);
        scenarios[3]["note"] = json!("no call");
        scenarios[4]["note"] = json!("no call");
        let plugin = json!({"name": "t", "state": "idle", "enabled": true, "priority": 0, "version": "1.0",
            "source": {"kind": "embedded"}, "path": "/t", "operations": []});
        serde_json::from_value(json!({"ok": false, "plugins": [{
            "plugin": plugin, "findings": [], "operations": [
                {"id": "t.x", "description": "", "bytes": 1, "found_by": [], "confirmed": false, "retried": false}],
            "conformance": {"ok": false, "took_ms": 2345, "scenarios": scenarios}}]}))
        .unwrap()
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_do_and_where_it_is_specified() {
        let report = report();
        let shown = conformance(report.plugins[0].conformance.as_ref().unwrap(), Paint::never());
        let expected = "  conformance: 1 scenario passed, 1 failed, 1 with warnings, 2 skipped in 2.3 s\n    \
            failed: b  a <line>\n      ← \\u{1}&\n      fix: do\n      see: docs/protocol.md#frames\n    \
            warning: c  a <line>\n      ← \\u{1}&\n      fix: do\n      see: docs/protocol.md#frames\n    \
            skipped: d, e: no call\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn ci_reads_the_same_as_junit() {
        let plain = junit(&report(), false);
        for part in [
            "<testsuite name=\"t\" tests=\"6\" failures=\"1\" skipped=\"2\">",
            "<testcase classname=\"plugd.check.t\" name=\"t.x can be called\" time=\"0.000\"/>",
            "<testcase classname=\"plugd.check.t\" name=\"a\" time=\"1.234\"/>",
            "<failure message=\"a &lt;line&gt;\">a &lt;line&gt;\n  ← \\u{1}&amp;\nfix: do\nsee: docs/protocol.md#frames</failure>",
            "<skipped message=\"no call\"/>",
            "<system-out>a &lt;line&gt;",
        ] {
            assert!(plain.contains(part), "{part}: {plain}");
        }
        assert!(junit(&report(), true).contains("failures=\"2\""));
    }
}
