//! The graph of requirements, as text, Mermaid or DOT.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use plugd_protocol::PluginName;
use plugd_protocol::control::{GraphEdge, GraphReport};
use plugd_protocol::manifest::OnLoss;

use super::table::{Cell, table};
use super::text::{Paint, visible_line, wire_name};

/// A longer chain is shown without its end.
const CHAIN_LENGTH_SHOWN: usize = 50;

/// More chains tell nobody anything.
const CHAINS_SHOWN: usize = 100;

/// How to draw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Style {
    /// A line for each plugin, in the order they start.
    Text,
    /// A Mermaid flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
}

/// Draws the graph.
pub(crate) fn draw(report: &GraphReport, style: Style, paint: Paint) -> String {
    match style {
        Style::Text => text(report, paint),
        Style::Mermaid => mermaid(report),
        Style::Dot => dot(report),
    }
}

fn text(report: &GraphReport, paint: Paint) -> String {
    if report.nodes.is_empty() {
        return "there are no plugins: `plugd list` shows where was looked\n".to_owned();
    }
    let mut rows =
        vec![["LEVEL", "PLUGIN", "STATE", "REQUIRES", "WHY"].map(Cell::from).into_iter().collect::<Vec<_>>()];
    for node in &report.nodes {
        let level = node.level.map_or_else(|| "-".to_owned(), |level| level.to_string());
        let state = wire_name(&node.state);
        let requires: Vec<String> =
            report.edges.iter().filter(|edge| edge.from == node.name).map(requirement).collect();
        rows.push(vec![
            level.into(),
            node.name.as_str().into(),
            Cell::painted(&state, paint.state(node.state, &state)),
            requires.join(", ").into(),
            visible_line(node.reason.as_deref().unwrap_or_default()).into_owned().into(),
        ]);
    }
    let mut out = table(&rows);
    for chain in chains(report) {
        let _ = writeln!(out, "{} {chain}", paint.dim("chain:"));
    }
    for cycle in &report.cycles {
        let path: Vec<&str> = cycle.iter().map(|name| name.as_str()).collect();
        let _ = writeln!(out, "{} {}", paint.red("cycle:"), path.join(" → "));
    }
    out
}

/// The ways down from what nobody requires, where they are longer than the table shows.
fn chains(report: &GraphReport) -> Vec<String> {
    let mut requires: BTreeMap<&PluginName, Vec<&PluginName>> = BTreeMap::new();
    for edge in &report.edges {
        requires.entry(&edge.from).or_default().push(&edge.to);
    }
    let required: BTreeSet<&PluginName> = report.edges.iter().map(|edge| &edge.to).collect();
    let mut chains = Vec::new();
    for top in requires.keys().filter(|name| !required.contains(*name)) {
        let mut open = vec![vec![*top]];
        // Each plugin is followed once: there are no more ways than requirements.
        let mut followed = BTreeSet::new();
        while let Some(path) = open.pop() {
            if chains.len() == CHAINS_SHOWN {
                chains.push("…".to_owned());
                return chains;
            }
            let Some(last) = path.last().copied() else { continue };
            let onward = requires.get(last).map(Vec::as_slice).unwrap_or_default();
            let cut = !onward.is_empty() && (path.len() >= CHAIN_LENGTH_SHOWN || !followed.insert(last));
            if !onward.is_empty() && !cut {
                open.extend(onward.iter().rev().map(|next| [path.as_slice(), &[*next]].concat()));
            } else if path.len() > 2 {
                let names: Vec<&str> = path.iter().map(|name| name.as_str()).collect();
                chains.push(format!("{}{}", names.join(" → "), if cut { " → …" } else { "" }));
            }
        }
    }
    chains
}

fn requirement(edge: &GraphEdge) -> String {
    let mut text = edge.to.to_string();
    if edge.version != "*" {
        let _ = write!(text, " {}", visible_line(&edge.version));
    }
    let on_loss = match edge.on_loss {
        OnLoss::Stay => None,
        OnLoss::Restart => Some("restarts when it is lost"),
        OnLoss::Stop => Some("stops when it is lost"),
    };
    let notes = [edge.optional.then_some("optional"), edge.missing.then_some("missing"), on_loss];
    let notes: Vec<&str> = notes.into_iter().flatten().collect();
    if !notes.is_empty() {
        let _ = write!(text, " ({})", notes.join(", "));
    }
    text
}

fn mermaid(report: &GraphReport) -> String {
    let mut out = "graph TD\n".to_owned();
    for node in &report.nodes {
        let _ = writeln!(out, "  {0}[\"{0}<br/>{1}\"]", node.name, wire_name(&node.state));
    }
    for edge in &report.edges {
        let arrow = if edge.optional { "-.->" } else { "-->" };
        let version = edge.version.replace('"', "#quot;");
        let _ = writeln!(out, "  {} {arrow}|\"{}\"| {}", edge.from, visible_line(&version), edge.to);
    }
    out
}

fn dot(report: &GraphReport) -> String {
    let mut out = "digraph plugins {\n  rankdir=BT;\n  node [shape=box];\n".to_owned();
    for node in &report.nodes {
        let _ = writeln!(out, "  \"{0}\" [label=\"{0}\\n{1}\"];", node.name, wire_name(&node.state));
    }
    for edge in &report.edges {
        let style = match (edge.missing, edge.optional) {
            (true, _) => ", color=red",
            (false, true) => ", style=dashed",
            (false, false) => "",
        };
        let version = edge.version.replace('\\', "\\\\").replace('"', "\\\"");
        let _ = writeln!(
            out,
            "  \"{}\" -> \"{}\" [label=\"{}\"{style}];",
            edge.from,
            edge.to,
            visible_line(&version)
        );
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> GraphReport {
        serde_json::from_value(serde_json::json!({
            "nodes": [
                {"name": "mailbox", "state": "ready", "level": 0},
                {"name": "desk", "state": "blocked", "level": 1, "reason": "mailbox is stopped"},
                {"name": "loop-a", "state": "disabled"}],
            "edges": [
                {"from": "desk", "to": "mailbox", "version": ">=1.0", "optional": false, "missing": false},
                {"from": "desk", "to": "maps", "version": "*", "optional": true, "missing": true}],
            "cycles": [["loop-a", "loop-b", "loop-a"]],
        }))
        .unwrap()
    }

    #[test]
    fn text_shows_levels_requirements_and_cycles() {
        let text = draw(&report(), Style::Text, Paint::never());
        assert!(
            text.contains(
                "1      desk     blocked   mailbox >=1.0, maps (optional, missing)  mailbox is stopped\n"
            ),
            "{text}"
        );
        assert!(text.contains("cycle: loop-a → loop-b → loop-a"), "{text}");
    }

    fn of_edges(edges: &[(&str, &str, &str)]) -> GraphReport {
        let names: BTreeSet<&str> = edges.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        let node = |name: &&str| serde_json::json!({"name": name, "state": "idle", "level": 0});
        let edge = |(from, to, on_loss): &(&str, &str, &str)| {
            serde_json::json!({
                "from": from, "to": to, "version": "*", "optional": false, "missing": false, "on_loss": on_loss,
            })
        };
        serde_json::from_value(serde_json::json!({
            "nodes": names.iter().map(node).collect::<Vec<_>>(),
            "edges": edges.iter().map(edge).collect::<Vec<_>>(),
            "cycles": [],
        }))
        .unwrap()
    }

    #[test]
    fn what_a_plugin_requires_by_way_of_others_is_a_chain() {
        let report = of_edges(&[
            ("desk", "mailbox", "restart"),
            ("mailbox", "store", "stay"),
            ("counter", "mailbox", "stop"),
        ]);
        let text = draw(&report, Style::Text, Paint::never());
        assert!(text.contains("chain: desk → mailbox → store\n"), "{text}");
        assert!(text.contains("chain: counter → mailbox → store\n"), "{text}");
        assert!(text.contains("mailbox (restarts when it is lost)"), "{text}");
        assert!(text.contains("mailbox (stops when it is lost)"), "{text}");
    }

    #[test]
    fn a_dense_graph_and_a_circle_are_told_in_few_lines() {
        let names: Vec<String> = (0..40).map(|number| format!("p{number:02}")).collect();
        let mut edges = vec![("in", "circle", "stay"), ("circle", "in", "stay"), ("out", "in", "stay")];
        for (index, from) in names.iter().enumerate() {
            edges.extend(names.iter().skip(index + 1).map(|to| (from.as_str(), to.as_str(), "stay")));
        }
        let chains = chains(&of_edges(&edges));
        assert_eq!(chains.first().map(String::as_str), Some("out → in → circle → in → …"));
        assert!(chains.len() <= CHAINS_SHOWN + 1, "{}", chains.len());
    }

    #[test]
    fn mermaid_and_dot_quote_what_they_draw() {
        let mermaid = draw(&report(), Style::Mermaid, Paint::never());
        assert!(mermaid.contains("  desk -->|\">=1.0\"| mailbox\n"), "{mermaid}");
        let dot = draw(&report(), Style::Dot, Paint::never());
        assert!(dot.contains("\"desk\" -> \"maps\" [label=\"*\", color=red];"), "{dot}");
    }
}
