//! The graph of requirements, as text, Mermaid or DOT.

use std::fmt::Write;

use plugd_protocol::control::{GraphEdge, GraphReport};

use super::table::{Cell, table};
use super::text::{Paint, visible_line, wire_name};

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
        vec![["LEVEL", "PLUGIN", "STATE", "REQUIRES"].map(Cell::from).into_iter().collect::<Vec<_>>()];
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
        ]);
    }
    let mut out = table(&rows);
    for cycle in &report.cycles {
        let path: Vec<&str> = cycle.iter().map(|name| name.as_str()).collect();
        let _ = writeln!(out, "{} {}", paint.red("cycle:"), path.join(" → "));
    }
    out
}

fn requirement(edge: &GraphEdge) -> String {
    let mut text = edge.to.to_string();
    if edge.version != "*" {
        let _ = write!(text, " {}", visible_line(&edge.version));
    }
    match (edge.optional, edge.missing) {
        (false, false) => {}
        (true, false) => text.push_str(" (optional)"),
        (false, true) => text.push_str(" (missing)"),
        (true, true) => text.push_str(" (optional, missing)"),
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
                {"name": "desk", "state": "blocked", "level": 1},
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
            text.contains("1      desk     blocked   mailbox >=1.0, maps (optional, missing)\n"),
            "{text}"
        );
        assert!(text.contains("cycle: loop-a → loop-b → loop-a"), "{text}");
    }

    #[test]
    fn mermaid_and_dot_quote_what_they_draw() {
        let mermaid = draw(&report(), Style::Mermaid, Paint::never());
        assert!(mermaid.contains("  desk -->|\">=1.0\"| mailbox\n"), "{mermaid}");
        let dot = draw(&report(), Style::Dot, Paint::never());
        assert!(dot.contains("\"desk\" -> \"maps\" [label=\"*\", color=red];"), "{dot}");
    }
}
