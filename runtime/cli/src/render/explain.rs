//! What a call would do, as text.

use std::fmt::Write;
use std::time::Duration;

use plugd_protocol::control::{Confirmation, Explanation, KeyPlan};

use super::json::pretty;
use super::report::{error, problem, source};
use super::schema::effects;
use super::text::{Paint, in_one_line, visible_line, wire_name};

/// What would run, with what, and what comes before it.
pub(crate) fn explanation(report: &Explanation, paint: Paint) -> String {
    let mut out = format!("{}\n", paint.bold(&report.operation.to_string()));
    let mut line = |label: &str, text: &str| {
        let _ = writeln!(out, "  {label:<13} {text}");
    };
    if let Some(asked_for) = &report.asked_for {
        line("called", &visible_line(asked_for));
    }
    let plugin = &report.operation.plugin;
    line("plugin", &format!("{plugin} {}, {}", visible_line(&report.plugin_version), source(&report.source)));
    line("program", &visible_line(&report.path));
    let reason = report.reason.as_deref().map(|reason| format!(": {}", visible_line(reason)));
    line("state", &format!("{}{}", wire_name(&report.state), reason.unwrap_or_default()));
    let owner = "the owner of the socket, who may do everything";
    line("caller", &report.caller.as_deref().map_or_else(|| owner.into(), visible_line));
    line("effects", &effects(&report.effects));
    line(
        "confirmation",
        match report.confirmation {
            Confirmation::NotNeeded => "not needed",
            Confirmation::Given => "needed, and given",
            Confirmation::Needed => "needed: it would be asked for",
        },
    );
    if let Some(key) = report.key {
        line(
            "key",
            match key {
                KeyPlan::NotedBefore => "noted before it runs: never a second run",
                KeyPlan::NotedAfter => "noted with the answer: a repeat gets it",
            },
        );
    }
    if let Some(ttl) = report.cache_ttl {
        line("cache", &format!("an answer to the same of the last {ttl} s will do"));
    }
    line("retried", if report.retried { "once, after a crash" } else { "never" });
    if report.background {
        line("runs", "in the background, as a job");
    }
    line("time", &times(report));
    if let Some(limit) = report.result_limit {
        line("result", &format!("in pages above {limit} bytes"));
    }
    out.push_str(&arguments(report));
    if let Some(refused) = &report.refused {
        let _ = write!(out, "it would be refused:\n{}", error(refused, paint));
    }
    out
}

fn times(report: &Explanation) -> String {
    let told = |millis| humantime::format_duration(Duration::from_millis(millis)).to_string();
    let mut out =
        format!("{} to run, {} to wait for a lane", told(report.timeout_ms), told(report.queue_timeout_ms));
    if let Some(stall) = report.stall_timeout_ms {
        let _ = write!(out, ", {} without progress", told(stall));
    }
    out
}

fn arguments(report: &Explanation) -> String {
    let laid_out = |json: &str| format!("  {}\n", pretty(json).replace('\n', "\n  "));
    let given = report.given.get();
    let mut out = format!("given\n{}", laid_out(given));
    match &report.arguments {
        Some(_) if report.unchanged => out.push_str("the plugin gets them as they are\n"),
        Some(last) if last.get() == given => {
            out.push_str("the plugin gets the same with a masked value read as its declared type\n")
        }
        Some(last) => {
            let _ = write!(out, "the plugin gets\n{}", laid_out(last.get()));
        }
        None => {}
    }
    for wrong in &report.problems {
        let _ = writeln!(out, "wrong: {}", problem(wrong));
    }
    for question in &report.missing {
        let (name, prompt) = (visible_line(&question.name), in_one_line(&question.prompt));
        let _ = writeln!(out, "missing: {name}: {prompt}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_names_what_would_run_with_what_and_why_not() {
        let report: Explanation = serde_json::from_str(
            &json!({"operation": "mail.send", "asked_for": "send", "plugin_version": "1.2.0",
                "source": {"kind": "config", "file": "/p/plugd.toml"}, "path": "/p/mail.py", "state": "idle",
                "given": {"count": "三"}, "arguments": {"count": 3}, "effects": {"destructive": true},
                "confirmation": "needed", "key": "noted_before", "retried": false, "background": false,
                "timeout_ms": 30000, "queue_timeout_ms": 10000})
            .to_string(),
        )
        .unwrap();
        let text = explanation(&report, Paint::never());
        for part in [
            "mail.send\n  called        send\n",
            "mail 1.2.0, configured in /p/plugd.toml",
            "needed: it would be asked for",
            "30s to run, 10s to wait for a lane",
            "given\n  {\n    \"count\": \"三\"\n  }\nthe plugin gets\n  {\n    \"count\": 3\n  }\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
