//! Changes of what there is, for people: plugins added, removed, allowed, and what a reload did.

use std::fmt::Write;

use plugd_protocol::PluginName;
use plugd_protocol::control::{AddReport, ChangeReport, PluginStatus, ReloadReport};

use super::text::{Paint, visible_line, wire_name};

/// Why a plugin goes on as it was that is not to be replaced by itself.
const MANUAL: &str = plugd_protocol::control::RestartRequired::MANUAL;

/// A plugin that was added, where to, and how each of its operations is called.
pub(crate) fn added(report: &AddReport, place: Option<&str>, paint: Paint) -> String {
    let plugin = &report.plugin;
    let state = paint.state(plugin.state, &wire_name(&plugin.state));
    let mut out = format!("{} is added: {state}", plugin.name);
    if let Some(reason) = &plugin.reason {
        let _ = write!(out, ": {}", visible_line(reason));
    }
    out.push('\n');
    if let Some(place) = place {
        let _ = writeln!(out, "  {}", visible_line(place));
    }
    for operation in &report.operations {
        let _ = writeln!(out, "  plugd call {operation}");
    }
    if !report.operations.is_empty() {
        let _ = writeln!(out, "`plugd describe {}` shows what each takes", plugin.name);
    }
    for exported in &report.exported {
        let _ = writeln!(out, "{}", super::check::exported(exported, paint));
    }
    if !report.findings.is_empty() {
        let findings = u64::try_from(report.findings.len()).unwrap_or(u64::MAX);
        let findings = super::tools::count(findings, "thing");
        let _ = writeln!(out, "{findings} could be said better to models: `plugd lint {}`", plugin.name);
    }
    out
}

/// Plugins that are as they were to be, and those that were so before.
pub(crate) fn changed(what: &str, already: &str, report: &ChangeReport) -> String {
    let mut out = String::new();
    for (what, plugins) in [(what, &report.changed), (already, &report.unchanged)] {
        if !plugins.is_empty() {
            let _ = writeln!(out, "{what}: {}", names(plugins));
        }
    }
    out
}

/// So many changed claims are named; `plugd status NAME` has them all.
const CLAIMS_SHOWN: usize = 5;

/// What a reload changed, and which plugins go on as they were, and why.
pub(crate) fn reloaded(report: &ReloadReport, kept: &[PluginStatus]) -> String {
    let mut out = String::new();
    let groups = [("added", &report.added), ("removed", &report.removed), ("changed", &report.changed)];
    for (what, plugins) in groups {
        if !plugins.is_empty() {
            let _ = writeln!(out, "{what}: {}", names(plugins));
        }
    }
    for plugin in kept {
        let Some(required) = &plugin.restart_required else { continue };
        let changed = match required.changed.is_empty() {
            true => String::new(),
            false => format!("{} changed; ", visible_line(&required.changed.join(", "))),
        };
        let name = &plugin.name;
        let _ = match required.reason.as_str() {
            MANUAL => {
                writeln!(
                    out,
                    "restart required: {name}: {changed}`plugd restart {name}` applies it ({MANUAL})"
                )
            }
            reason => {
                let reason = visible_line(reason);
                writeln!(out, "not replaced: {name}: {changed}{reason}; `plugd reload {name}` tries again")
            }
        };
    }
    for (name, changed) in &report.claims_changed {
        let (version, what) = (visible_line(&changed.version), changed.in_words(CLAIMS_SHOWN));
        let what = visible_line(&what);
        let _ = writeln!(
            out,
            "claims changed under the same version {version}: {name}: {what}; `plugd reload {name}` agrees to it"
        );
    }
    for (name, reason) in &report.failed {
        if !report.restart_required.contains(name) {
            let _ = writeln!(out, "failed: {name}: {}", visible_line(reason));
        }
    }
    for table in &report.next_start {
        let table = visible_line(table);
        let _ = writeln!(out, "[{table}] changed: that waits until plugd is started anew");
    }
    let _ = writeln!(out, "{} unchanged; configuration {}", report.unchanged.len(), report.config_generation);
    out
}

fn names(plugins: &[PluginName]) -> String {
    plugins.iter().map(PluginName::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(name: &str, reason: &str) -> PluginStatus {
        serde_json::from_value(json!({
            "name": name, "state": "ready", "generation": 3, "since": 0, "starts": 1, "restarts": 0,
            "concurrency": 1, "in_flight": 0, "queued": 0, "stray_lines": 0, "unmatched_answers": 0,
            "restart_required": {"changed": ["env.FOO", "file main.py"], "reason": reason},
        }))
        .unwrap()
    }

    #[test]
    fn a_reload_says_what_changed_and_what_is_to_be_done_about_the_rest() {
        let report: ReloadReport = serde_json::from_value(json!({
            "config_generation": 4, "added": ["a", "b"], "removed": [], "changed": ["c"], "unchanged": ["d"],
            "claims_changed": {"c": {"version": "1", "since": 0, "changes": [
                {"operation": "wipe", "part": "effects.destructive", "from": "true", "to": "false"}]}},
            "restart_required": ["m", "n"], "failed": {"a": "it is backoff: exit\u{1b} status 1", "n": "it failed"},
        }))
        .unwrap();
        let shown = reloaded(&report, &[kept("m", MANUAL), kept("n", "the new one failed: \u{1b}[1mno")]);
        let expected = "added: a, b\nchanged: c\n\
            restart required: m: env.FOO, file main.py changed; `plugd restart m` applies it (on_change is manual)\n\
            not replaced: n: env.FOO, file main.py changed; the new one failed: \\u{1b}[1mno; `plugd reload n` tries again\n\
            claims changed under the same version 1: c: wipe: destructive true → false; `plugd reload c` agrees to it\n\
            failed: a: it is backoff: exit\\u{1b} status 1\n\
            1 unchanged; configuration 4\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_plugin_that_was_added_says_how_it_is_called_or_what_is_wrong_with_it() {
        let mut report: AddReport = serde_json::from_value(json!({
            "plugin": kept("a", MANUAL), "operations": ["a.one", "a.two"],
            "exported": [
                {"id": "a.one", "name": "a__one", "description": "One.", "bytes": 120, "found_by": ["a.one"]},
                {"id": "a.two", "description": "", "bytes": 0, "found_by": ["a.two"], "unreachable": "a is \u{1b}down"},
                {"id": "a.Bad", "description": "", "bytes": 0, "found_by": [], "unreachable": "no name"}],
            "findings": [{"subject": "a.one", "rule": "praise", "message": "m", "hint": "h"}],
        }))
        .unwrap();
        let shown = added(&report, Some("to the configuration /p/plugd.toml"), Paint::never());
        assert_eq!(
            shown,
            "a is added: ready\n  to the configuration /p/plugd.toml\n  plugd call a.one\n  plugd call a.two\n`plugd describe a` shows what each takes\n  \
            a.one  a__one  120 bytes\n  a.two  a service, not offered to models  cannot be called: a is \\u{1b}down\n  \
            a.Bad  cannot be called: no name\n1 thing could be said better to models: `plugd lint a`\n"
        );
        report.operations.clear();
        report.exported.clear();
        report.findings.clear();
        report.plugin.reason = Some("not found".to_owned());
        assert_eq!(added(&report, None, Paint::never()), "a is added: ready: not found\n");
    }
}
