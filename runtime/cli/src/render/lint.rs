//! What declarations could say better, as text.

use std::fmt::Write;

use plugd_protocol::control::{LintFinding, LintReport};

use super::text::{Paint, visible_line};
use super::tools::count;

/// Every finding below what it is about: the rule, where, what is wrong, what to do.
pub(crate) fn lint(report: &LintReport, paint: Paint) -> String {
    let mut out = findings(&report.findings, paint);
    let operations = count(report.operations, "operation");
    let _ = match report.findings.len() {
        0 => writeln!(out, "nothing was found in {operations}"),
        found => {
            writeln!(out, "{} in {operations}", count(u64::try_from(found).unwrap_or(u64::MAX), "finding"))
        }
    };
    out
}

/// The findings alone.
pub(crate) fn findings(findings: &[LintFinding], paint: Paint) -> String {
    let mut out = String::new();
    let mut subject = "";
    for finding in findings {
        if finding.subject != subject {
            subject = &finding.subject;
            let _ = writeln!(out, "{}", paint.bold(&visible_line(subject)));
        }
        let place = match finding.path.as_str() {
            "" => String::new(),
            path => format!(" at {}", visible_line(path)),
        };
        let _ = writeln!(out, "  {}{place}: {}", paint.red(&finding.rule), visible_line(&finding.message));
        let _ = writeln!(out, "    {} {}", paint.dim("hint:"), visible_line(&finding.hint));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_stand_below_what_they_are_about() {
        let report: LintReport = serde_json::from_value(json!({"operations": 2, "findings": [
            {"subject": "t.do", "rule": "vague_name", "path": "/name", "message": "\"do\"\u{1b}", "hint": "name it"},
            {"subject": "t.do", "rule": "overlap", "message": "both", "hint": "tell"},
            {"subject": "t.x", "rule": "praise", "path": "/title", "message": "so", "hint": "no"},
        ]}))
        .unwrap();
        let expected = "t.do\n  vague_name at /name: \"do\"\\u{1b}\n    hint: name it\n  overlap: both\n    hint: tell\n\
                        t.x\n  praise at /title: so\n    hint: no\n3 findings in 2 operations\n";
        assert_eq!(lint(&report, Paint::never()), expected);
        let none = LintReport { operations: 1, ..LintReport::default() };
        assert_eq!(lint(&none, Paint::never()), "nothing was found in 1 operation\n");
    }
}
