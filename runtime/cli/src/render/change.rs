//! Changes of what there is, for people: plugins added, removed, allowed, and what a reload did.

use std::fmt::Write;

use plugd_protocol::PluginName;
use plugd_protocol::control::{AddReport, ChangeReport, PluginStatus, ReloadReport};

use super::text::{Paint, visible_line, wire_name};

/// Why a plugin goes on as it was that is not to be replaced by itself.
pub(crate) const MANUAL: &str = "on_change is manual";

/// A plugin that was added, and how each of its operations is called.
pub(crate) fn added(report: &AddReport, paint: Paint) -> String {
    let plugin = &report.plugin;
    let state = paint.state(plugin.state, &wire_name(&plugin.state));
    let mut out = format!("{} is added: {state}", plugin.name);
    if let Some(reason) = &plugin.reason {
        let _ = write!(out, ": {}", visible_line(reason));
    }
    out.push('\n');
    for operation in &report.operations {
        let _ = writeln!(out, "  plugd call {operation}");
    }
    if !report.operations.is_empty() {
        let _ = writeln!(out, "`plugd describe {}` shows what each takes", plugin.name);
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
    let _ = writeln!(out, "{} unchanged; configuration {}", report.unchanged.len(), report.config_generation);
    out
}

fn names(plugins: &[PluginName]) -> String {
    plugins.iter().map(PluginName::as_str).collect::<Vec<_>>().join(", ")
}
