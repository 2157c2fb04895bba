//! How the daemon and its plugins are, as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use plugd_protocol::PluginName;
use plugd_protocol::control::{
    ActiveCall, ClaimsChanged, DaemonStatus, EffectsBacking, ExitReport, PluginState, PluginStatus,
    RestartRequired, SpareStatus, StartReport, StatusReport, StopReport, Stopped,
};

use super::table::{Cell, table};
use super::text::{Paint, since, until, visible_line, wire_name};

/// A chain of plugins that wait for one another is shown so far.
const CHAIN_SHOWN: usize = 20;

/// The daemon and its plugins, a line each.
pub(crate) fn status(report: &StatusReport, paint: Paint) -> String {
    let mut out = daemon(&report.daemon);
    if report.plugins.is_empty() {
        out.push_str("there are no plugins: `plugd list` shows where was looked\n");
    } else {
        out.push_str(&plugin_table(&report.plugins, paint));
    }
    out.push_str(&calls(&report.daemon.calls));
    out
}

/// Everything about one plugin; what the others are is only used to say what it waits for.
pub(crate) fn plugin_status(plugin: &PluginStatus, all: &StatusReport, paint: Paint) -> String {
    let mut out = daemon(&all.daemon);
    out.push_str(&in_full(plugin, &all.plugins, paint));
    let own = |call: &&ActiveCall| call.operation.plugin == plugin.name;
    out.push_str(&calls(&all.daemon.calls.iter().filter(own).cloned().collect::<Vec<_>>()));
    out
}

fn daemon(daemon: &DaemonStatus) -> String {
    let mut out = format!(
        "plugd {}, pid {}, {}, up {}\n",
        daemon.version,
        daemon.pid,
        wire_name(&daemon.health),
        since(daemon.since)
    );
    if let Some(config) = &daemon.config {
        let _ = writeln!(out, "config {} (generation {})", visible_line(config), daemon.config_generation);
    }
    if let Some(socket) = &daemon.socket {
        let _ = writeln!(out, "socket {}", visible_line(socket));
    }
    if let Some(reason) = &daemon.not_recorded {
        let _ = writeln!(out, "calls are not recorded: {}", visible_line(reason));
    }
    if let Some(reason) = &daemon.record_begun_anew {
        let _ = writeln!(out, "the record was begun anew: {}", visible_line(reason));
    }
    out.push('\n');
    out
}

fn calls(calls: &[ActiveCall]) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let row = |call: &ActiveCall| {
        let waits = if call.asking { "waits for an answer" } else { "" };
        let (id, operation) = (Cell::from(call.call_id.as_str()), call.operation.to_string().into());
        vec![id, operation, since(call.since).into(), waits.into()]
    };
    format!("\ncalls in flight\n{}", table(&calls.iter().map(row).collect::<Vec<_>>()))
}

fn plugin_table(plugins: &[PluginStatus], paint: Paint) -> String {
    let head = ["PLUGIN", "STATE", "VERSION", "PID", "CALLS", "STARTS", "SINCE", "WHY"];
    let mut rows = vec![head.into_iter().map(Cell::from).collect::<Vec<_>>()];
    for plugin in plugins {
        let calls = match plugin.queued {
            0 => plugin.in_flight.to_string(),
            queued => format!("{}+{queued}", plugin.in_flight),
        };
        rows.push(vec![
            plugin.name.as_str().into(),
            state_cell(plugin.state, paint),
            or_dash(plugin.version.as_deref()).into(),
            or_dash(plugin.pid.map(|pid| pid.to_string()).as_deref()).into(),
            calls.into(),
            plugin.starts.to_string().into(),
            since(plugin.since).into(),
            why(plugin).into(),
        ]);
    }
    table(&rows)
}

fn state_cell(state: PluginState, paint: Paint) -> Cell {
    let name = wire_name(&state);
    Cell::painted(&name, paint.state(state, &name))
}

fn or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| visible_line(text).into_owned())
}

/// Why it is as it is, in one line.
fn why(plugin: &PluginStatus) -> String {
    let mut parts = Vec::new();
    if let Some(reason) = &plugin.reason {
        parts.push(visible_line(reason).into_owned());
    }
    if !plugin.waits_for.is_empty() {
        let names: Vec<&str> = plugin.waits_for.iter().map(PluginName::as_str).collect();
        parts.push(format!("waits for {}", names.join(", ")));
    }
    if let Some(next) = plugin.next_start {
        parts.push(format!("tried again in {}", until(next)));
    }
    if let Some(generation) = plugin.replacing {
        parts.push(format!("run {generation} is about to take over"));
    }
    if plugin.restart_required.is_some() {
        parts.push("restart required".to_owned());
    }
    if plugin.claims_changed.is_some() {
        parts.push("claims changed under the same version".to_owned());
    }
    parts.join("; ")
}

/// Names and values below one another.
#[derive(Default)]
struct Rows(Vec<Vec<Cell>>);

impl Rows {
    fn row(&mut self, name: &str, value: impl Into<Cell>) {
        self.0.push(vec![name.into(), value.into()]);
    }

    /// Several lines under one name.
    fn lines(&mut self, name: &str, lines: impl IntoIterator<Item = String>) {
        for (index, line) in lines.into_iter().enumerate() {
            self.row(if index == 0 { name } else { "" }, line);
        }
    }
}

fn in_full(plugin: &PluginStatus, all: &[PluginStatus], paint: Paint) -> String {
    let mut rows = Rows::default();
    rows.row("plugin", plugin.name.as_str());
    rows.row("state", state_cell(plugin.state, paint));
    rows.row("since", format!("{} ago", since(plugin.since)));
    rows.row("why", or_dash(plugin.reason.as_deref()));
    rows.lines("waits for", plugin.waits_for.iter().map(|name| chain(name, plugin, all)));
    if let Some(next) = plugin.next_start {
        rows.row("next try", format!("in {}", until(next)));
    }
    rows.row("version", or_dash(plugin.version.as_deref()));
    if let Some(backing) = plugin.effects {
        rows.row("effects", effects(backing));
    }
    if let Some(changed) = &plugin.claims_changed {
        rows.lines("claims changed", claims_changed(&plugin.name, changed));
    }
    rows.row("pid", or_dash(plugin.pid.map(|pid| pid.to_string()).as_deref()));
    rows.row("run", plugin.generation.to_string());
    if let Some(generation) = plugin.replacing {
        rows.row("replacing", format!("run {generation} takes over once it is ready"));
    }
    if let Some(spare) = &plugin.spare {
        rows.row("spare", spare_in_words(spare));
    }
    if let Some(required) = &plugin.restart_required {
        rows.row("restart required", visible_line(&required.reason).into_owned());
        if !required.changed.is_empty() {
            rows.row("changed", visible_line(&required.changed.join(", ")).into_owned());
        }
        rows.lines("", what_now(plugin, required));
    }
    rows.row("starts", format!("{} ({} restarts count)", plugin.starts, plugin.restarts));
    rows.row(
        "calls",
        format!("{} of {} at once, {} waiting", plugin.in_flight, plugin.concurrency, plugin.queued),
    );
    let took = |name: &str, time: Option<u64>| time.map(|time| format!("{name} {time} ms"));
    let times: Vec<String> =
        [took("describe", plugin.describe_ms), took("init", plugin.init_ms)].into_iter().flatten().collect();
    rows.row("took", or_dash(Some(times.join(", ")).filter(|times| !times.is_empty()).as_deref()));
    rows.row(
        "odd",
        format!("{} stray lines, {} answers nobody waited for", plugin.stray_lines, plugin.unmatched_answers),
    );
    rows.lines("held to", held(&plugin.enforced));
    rows.lines("not held to", held(&plugin.not_enforced));
    exits(plugin, &mut rows);
    table(&rows.0)
}

/// How the run is that would take the place of the one that serves.
fn spare_in_words(spare: &SpareStatus) -> String {
    let mut text = match (spare.generation, spare.ready) {
        (Some(run), true) => format!("run {run} is ready to take over"),
        (Some(run), false) => format!("run {run} is starting"),
        (None, _) => "none".to_owned(),
    };
    if let Some(pid) = spare.pid {
        text += &format!(", pid {pid}");
    }
    if let Some(failure) = &spare.failure {
        text += &format!("; the last one failed: {}", visible_line(failure));
    }
    if let Some(next) = spare.next_start.filter(|_| spare.generation.is_none()) {
        text += &format!("; made in {}", until(next));
    }
    text
}

/// What stands behind the effects it declares.
fn effects(backing: EffectsBacking) -> &'static str {
    match backing {
        EffectsBacking::Claimed => "claimed, not verified",
        EffectsBacking::Enforced => "enforced: no writes to files",
    }
}

/// What it declares otherwise than before, and what is to be done.
fn claims_changed(name: &PluginName, changed: &ClaimsChanged) -> Vec<String> {
    let (version, ago) = (visible_line(&changed.version), since(changed.since));
    let mut lines = vec![format!("under the same version {version}, {ago} ago")];
    lines.extend(changed.changes.iter().map(|change| visible_line(&change.to_string()).into_owned()));
    if changed.more > 0 {
        lines.push(format!("and {} more", changed.more));
    }
    lines.push(format!("`plugd reload {name}` agrees to it; its author should have raised the version"));
    lines
}

/// The last words of a run that was to take over, and what is to be done.
fn what_now(plugin: &PluginStatus, required: &RestartRequired) -> Vec<String> {
    let name = &plugin.name;
    if required.is_manual() {
        return vec![format!("`plugd restart {name}` applies it")];
    }
    let failed = plugin.exits.iter().rev().find(|exit| exit.generation > plugin.generation);
    let said = failed.and_then(|exit| plugd_engine::telling(&exit.stderr_tail));
    let said = said.map(|line| format!("it said on stderr: {}", visible_line(&line)));
    said.into_iter().chain([format!("mend it, then `plugd reload {name}`")]).collect()
}

fn held(limits: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    limits.iter().map(|(what, how)| format!("{}: {}", visible_line(what), visible_line(how)))
}

/// The latest first, with the last words of that one.
fn exits(plugin: &PluginStatus, rows: &mut Rows) {
    let row = |exit: &ExitReport| {
        let oom = if exit.oom { ", out of memory" } else { "" };
        format!("{}{oom} (run {}, {} ago)", visible_line(&exit.text), exit.generation, since(exit.at))
    };
    let before = plugin.exits.iter().rev().skip(1);
    let Some(last) = plugin.exits.last().or(plugin.last_exit.as_ref()) else { return };
    rows.row("last exit", row(last));
    rows.lines("", last.stderr_tail.iter().map(|line| visible_line(line).into_owned()));
    rows.lines("before", before.map(row));
}

/// A plugin that is waited for, and what that waits for, down to what waits for nothing.
fn chain(first: &PluginName, waiting: &PluginStatus, all: &[PluginStatus]) -> String {
    let mut links = Vec::new();
    let mut seen = vec![&waiting.name];
    let mut next = Some(first);
    while let Some(name) = next.filter(|name| !seen.contains(name) && links.len() < CHAIN_SHOWN) {
        seen.push(name);
        let Some(plugin) = all.iter().find(|plugin| plugin.name == *name) else {
            links.push(format!("{name} (not configured)"));
            break;
        };
        next = plugin.waits_for.first();
        // The reason of one further up only repeats that of the root.
        let reason = plugin.reason.as_deref().filter(|_| next.is_none());
        let reason = reason.map(|reason| format!(": {}", visible_line(reason))).unwrap_or_default();
        links.push(format!("{name} ({}{reason})", wire_name(&plugin.state)));
    }
    links.join(" → ")
}

/// The state each plugin came to.
pub(crate) fn started(report: &StartReport, paint: Paint) -> String {
    let row = |plugin: &PluginStatus| {
        vec![Cell::from(plugin.name.as_str()), state_cell(plugin.state, paint), why(plugin).into()]
    };
    table(&report.plugins.iter().map(row).collect::<Vec<_>>())
}

/// How each plugin ended.
pub(crate) fn stopped(report: &StopReport, _paint: Paint) -> String {
    let row = |stopped: &Stopped| {
        vec![
            Cell::from(stopped.name.as_str()),
            wire_name(&stopped.ended).replace('_', " ").into(),
            format!("{} ms", stopped.took_ms).into(),
        ]
    };
    table(&report.plugins.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn plugin(name: &str, state: &str, more: Value) -> PluginStatus {
        let mut plugin = json!({
            "name": name, "state": state, "generation": 3, "since": 0, "starts": 3, "restarts": 2,
            "concurrency": 4, "in_flight": 1, "queued": 7, "stray_lines": 5, "unmatched_answers": 6,
        });
        plugin.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(plugin).unwrap()
    }

    fn report(plugins: Vec<PluginStatus>) -> StatusReport {
        let daemon = json!({
            "version": "1.0.0", "pid": 7, "health": "degraded", "config_generation": 1, "since": 0, "calls": [],
        });
        StatusReport { daemon: serde_json::from_value(daemon).unwrap(), plugins }
    }

    #[test]
    fn what_it_waits_for_is_told_down_to_the_root() {
        let desk = plugin("desk", "blocked", json!({"waits_for": ["mailbox", "gone"]}));
        let all = report(vec![
            desk.clone(),
            plugin("mailbox", "blocked", json!({"waits_for": ["storage"], "reason": "storage has failed"})),
            plugin("storage", "failed", json!({"reason": "no such\u{1b}file"})),
        ]);
        let text = plugin_status(&desk, &all, Paint::never());
        assert!(text.contains("mailbox (blocked) → storage (failed: no such\\u{1b}file)\n"), "{text}");
        assert!(text.contains("gone (not configured)\n"), "{text}");
    }

    #[test]
    fn a_circle_of_waiting_plugins_comes_to_an_end() {
        let one = plugin("one", "blocked", json!({"waits_for": ["two"]}));
        let two = plugin("two", "blocked", json!({"waits_for": ["one"]}));
        let text = plugin_status(&one, &report(vec![one.clone(), two]), Paint::never());
        assert!(text.contains("two (blocked)\n"), "{text}");
    }

    /// Row D19.
    #[test]
    fn d19_what_stands_behind_claims_and_what_was_claimed_before_is_told() {
        let change = |part: &str, more: Value| {
            let mut change = json!({"operation": "wipe", "part": part});
            change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            change
        };
        let changes = [
            change("effects.read_only", json!({"from": "true", "to": "false"})),
            change("scope", json!({"from": "none", "to": "a\u{1b}b"})),
        ];
        let changed = json!({"version": "1.0.0", "since": 0, "changes": changes, "more": 3});
        let fp = plugin("fp", "ready", json!({"effects": "claimed", "claims_changed": changed}));
        let text = plugin_status(&fp, &report(vec![fp.clone()]), Paint::never());
        for part in [
            "effects         claimed, not verified\n",
            "under the same version 1.0.0, ",
            " wipe: read_only true → false\n",
            " wipe: scope none → a\\u{1b}b\n",
            " and 3 more\n",
            "`plugd reload fp` agrees to it",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let all = status(&report(vec![fp]), Paint::never());
        assert!(all.contains("claims changed under the same version\n"), "{all}");
        let held = plugin("fp", "ready", json!({"effects": "enforced"}));
        let text = plugin_status(&held, &report(vec![held.clone()]), Paint::never());
        assert!(
            text.contains("enforced: no writes to files\n") && !text.contains("claims changed"),
            "{text}"
        );
    }

    #[test]
    fn everything_that_is_known_of_a_plugin_is_there() {
        let exit = |run: u64, text: &str| json!({"generation": run, "text": text, "at": 0, "oom": run == 2, "stderr_tail": [format!("words of {run}")]});
        let plugin = plugin(
            "fp",
            "ready",
            json!({
                "describe_ms": 12, "init_ms": 34, "replacing": 4,
                "spare": {"generation": 5, "pid": 77, "ready": true},
                "restart_required": {"changed": ["env.LOG", "file main.py"], "reason": "on_change is manual"},
                "enforced": {"core_size": "0"}, "not_enforced": {"cgroup": "no permission"},
                "exits": [exit(1, "exit status 3"), exit(2, "killed by signal 9 (SIGKILL)")],
            }),
        );
        let text = plugin_status(&plugin, &report(vec![plugin.clone()]), Paint::never());
        for part in [
            "describe 12 ms, init 34 ms",
            "run 4 takes over once it is ready",
            "run 5 is ready to take over, pid 77",
            "on_change is manual",
            "env.LOG, file main.py",
            "`plugd restart fp` applies it",
            "core_size: 0",
            "cgroup: no permission",
            "killed by signal 9 (SIGKILL), out of memory (run 2,",
            "words of 2",
            "exit status 3 (run 1,",
            "1 of 4 at once, 7 waiting",
            "5 stray lines, 6 answers nobody waited for",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("words of 1"), "only the last words are shown: {text}");
    }

    #[test]
    fn a_run_that_failed_to_take_over_is_no_reason_for_a_restart() {
        let behind = plugin(
            "fp",
            "ready",
            json!({
                "restart_required": {"changed": ["file main.py"], "reason": "the new one failed: exit status 1"},
                "exits": [{"generation": 4, "text": "exit status 1", "at": 0, "stderr_tail": ["SyntaxError: no"]}],
            }),
        );
        let text = plugin_status(&behind, &report(vec![behind.clone()]), Paint::never());
        assert!(text.contains("it said on stderr: SyntaxError: no\n"), "{text}");
        assert!(text.contains("mend it, then `plugd reload fp`\n"), "{text}");
        assert!(!text.contains("plugd restart"), "{text}");
    }

    #[test]
    fn a_table_says_what_a_plugin_waits_for_and_what_is_to_be_done() {
        let waits =
            plugin("desk", "blocked", json!({"waits_for": ["mailbox"], "reason": "mailbox is stopped"}));
        let behind = plugin("fp", "ready", json!({"restart_required": {"changed": [], "reason": "x"}}));
        let text = status(&report(vec![waits, behind]), Paint::never());
        assert!(text.contains("mailbox is stopped; waits for mailbox\n"), "{text}");
        assert!(text.contains("  restart required\n"), "{text}");
        assert!(text.contains("  1+7  "), "{text}");
    }
}
