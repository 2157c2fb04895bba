//! What is wrong and what to do about it, as text.

use std::fmt::Write;

use plugd_protocol::control::{DoctorReport, Finding, Severity};

use super::text::{Paint, visible_line, wire_name};

/// Every finding, the worst first: what it is, what supports it, what to do.
pub(crate) fn findings(report: &DoctorReport, paint: Paint) -> String {
    let mut out = String::new();
    for finding in &report.findings {
        let _ = writeln!(out, "{}  {}", severity(finding, paint), visible_line(&finding.message));
        for detail in &finding.details {
            let _ = writeln!(out, "         {}", visible_line(detail));
        }
        if let Some(hint) = &finding.hint {
            let _ = writeln!(out, "         {} {}", paint.dim("hint:"), visible_line(hint));
        }
    }
    out
}

fn severity(finding: &Finding, paint: Paint) -> String {
    // As wide as the longest of them.
    let word = format!("{:<7}", wire_name(&finding.severity));
    match finding.severity {
        Severity::Problem => paint.red(&word),
        Severity::Warning => paint.bold(&word),
        Severity::Ok => paint.dim(&word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_shows_what_supports_it_and_what_to_do() {
        let report: DoctorReport = serde_json::from_value(serde_json::json!({"findings": [
            {"severity": "problem", "plugin": "fp", "message": "fp is failed: broken",
             "hint": "`plugd start fp`", "details": ["stderr: bye\u{1b}[2J"]},
            {"severity": "ok", "message": "3 plugins are well"},
        ]}))
        .unwrap();
        let expected = "problem  fp is failed: broken\n         stderr: bye\\u{1b}[2J\n         \
                        hint: `plugd start fp`\nok       3 plugins are well\n";
        assert_eq!(findings(&report, Paint::never()), expected);
    }
}
