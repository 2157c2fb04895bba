//! Tools as text for people: by category, with their sizes, and what is not offered and why.

use std::fmt::Write;

use plugd_protocol::control::{NotOffered, Tool, ToolsReport};
use serde_json::Value;

use super::table::{Cell, table};
use super::text::{Paint, visible_line, wire_name};

/// More of a description is not shown in a list.
const SHOWN_CHARS: usize = 90;

/// What was asked for.
#[derive(Clone, Copy, Default)]
pub(crate) struct ToolsAsked<'a> {
    /// Only the categories.
    pub(crate) categories: bool,
    /// With their sizes.
    pub(crate) sizes: bool,
    /// Also what is not offered.
    pub(crate) all: bool,
    /// For which profile.
    pub(crate) caller: Option<&'a str>,
}

/// The categories, or the tools by category.
pub(crate) fn tools(report: &ToolsReport, asked: ToolsAsked<'_>, paint: Paint) -> String {
    let sizes = asked.sizes;
    let mut out = String::new();
    if asked.categories {
        let rows = report.categories.iter();
        let rows: Vec<Vec<Cell>> = rows
            .map(|category| {
                vec![visible_line(&category.name).into_owned().into(), count(category.tools, "tool").into()]
            })
            .collect();
        out.push_str(&table(&rows));
    }
    let mut by_category: Vec<&Tool> = report.tools.iter().collect();
    // Within a category the order stays.
    by_category.sort_by_key(|tool| &tool.category);
    let rows: Vec<Vec<Cell>> = by_category.iter().map(|tool| row(tool, sizes)).collect();
    let mut category = None;
    for (tool, line) in by_category.iter().zip(table(&rows).lines()) {
        if category.replace(&tool.category) != Some(&tool.category) {
            let _ = writeln!(out, "{}", paint.bold(&visible_line(&tool.category)));
        }
        let _ = writeln!(out, "{line}");
    }
    if report.tools.is_empty() && report.categories.is_empty() {
        out.push_str("no tools are offered\n");
        if report.not_offered.is_empty() {
            let _ = writeln!(out, "  {}", where_to_look(asked));
        }
    } else if sizes {
        let tools = u64::try_from(report.tools.len()).unwrap_or(u64::MAX);
        let _ = writeln!(out, "{}: {} bytes", count(tools, "tool"), report.bytes);
    }
    out + &not_offered(&report.not_offered)
}

/// What says why nothing is offered.
fn where_to_look(ToolsAsked { all, caller, .. }: ToolsAsked<'_>) -> String {
    match (all, caller.map(visible_line)) {
        (true, Some(name)) => {
            format!("the profile {name} under [callers] allows none; `plugd list` says what there is")
        }
        (true, None) => "`plugd list` says what there is".to_owned(),
        (false, caller) => {
            let who = caller.map(|name| format!(" --as {name}")).unwrap_or_default();
            format!("`plugd tools --all{who}` says what is not offered and why, `plugd list` what there is")
        }
    }
}

fn row(tool: &Tool, sizes: bool) -> Vec<Cell> {
    let mut cells = vec![Cell::from(format!("  {}", tool.name))];
    if sizes {
        cells.push(format!("{:>6} bytes", tool.bytes).into());
    }
    cells.push(beginning(&tool.declaration).into());
    cells
}

/// The beginning of a description, wherever the dialect has it.
fn beginning(declaration: &Value) -> String {
    let told = declaration.get("description").or_else(|| declaration.pointer("/function/description"));
    let told = visible_line(told.and_then(Value::as_str).unwrap_or_default());
    match told.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &told[..end]),
        None => told.into_owned(),
    }
}

/// What is not offered, and why.
pub(crate) fn not_offered(operations: &[NotOffered]) -> String {
    if operations.is_empty() {
        return String::new();
    }
    let row = |one: &NotOffered| -> Vec<Cell> {
        let (id, reason) = (visible_line(&one.id), visible_line(&one.reason));
        vec![format!("  {id}").into(), wire_name(&one.state).into(), reason.into_owned().into()]
    };
    format!("not offered:\n{}", table(&operations.iter().map(row).collect::<Vec<_>>()))
}

pub(super) fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> ToolsReport {
        serde_json::from_value(json!({
            "tools": [
                {"id": "t.one", "name": "t__one", "category": "post", "bytes": 120,
                 "declaration": {"type": "function", "function": {"description": "Does\u{1b}[2J it."}}},
                {"id": "w.two", "name": "w__two", "category": "other", "bytes": 9, "declaration": {"description": "x".repeat(200)}},
            ],
            "not_offered": [{"id": "w.three", "state": "disabled", "reason": "w is disabled"}],
            "bytes": 129,
        }))
        .unwrap()
    }

    #[test]
    fn tools_are_shown_by_category_with_their_sizes() {
        let shown = tools(&report(), ToolsAsked { sizes: true, ..ToolsAsked::default() }, Paint::never());
        let expected = format!(
            "other\n  w__two       9 bytes  {}…\npost\n  t__one     120 bytes  Does\\u{{1b}}[2J it.\n2 tools: 129 bytes\n\
             not offered:\n  w.three  disabled  w is disabled\n",
            "x".repeat(90)
        );
        assert_eq!(shown, expected);
    }

    #[test]
    fn an_empty_list_says_where_to_look() {
        let shown = |all, caller| {
            let asked = ToolsAsked { all, caller, ..ToolsAsked::default() };
            tools(&ToolsReport::default(), asked, Paint::never())
        };
        assert!(shown(false, None).starts_with("no tools are offered\n  `plugd tools --all` says"));
        assert!(shown(false, Some("bot")).contains("`plugd tools --all --as bot` says"));
        let rest = shown(true, Some("bot"));
        assert!(rest.contains("the profile bot under [callers] allows none") && !rest.contains("--all"));
        assert_eq!(shown(true, None), "no tools are offered\n  `plugd list` says what there is\n");
        let categories = serde_json::from_value(
            json!({"tools": [], "bytes": 0, "categories": [{"name": "a", "tools": 1}]}),
        );
        assert_eq!(
            tools(
                &categories.unwrap(),
                ToolsAsked { categories: true, ..ToolsAsked::default() },
                Paint::never()
            ),
            "a  1 tool\n"
        );
    }
}
