//! Answers as text for people: escaped, aligned, coloured only where a terminal shows it.

mod calls;
mod change;
mod check;
mod conformance;
mod doctor;
mod explain;
pub(crate) mod graph;
mod json;
mod lint;
mod report;
mod result;
mod schema;
mod status;
mod table;
mod text;
mod tools;
mod value;

pub(crate) use calls::{call_detail, calls, calls_stats, jobs};
pub(crate) use change::{added, changed, reloaded};
pub(crate) use check::checked;
pub(crate) use conformance::junit;
pub(crate) use doctor::findings;
pub(crate) use explain::explanation;
pub(crate) use json::pretty;
pub(crate) use lint::{findings as lint_findings, lint};
pub(crate) use report::{description, error, event, list, log_entry, log_level, problem};
pub(crate) use result::{Instead, pending, result, result_page};
pub(crate) use schema::{json_shape, members_of, to_give};
pub(crate) use status::{plugin_status, started, status, stopped};
pub(crate) use text::{Paint, in_one_line, visible, visible_line, wire_name};
pub(crate) use tools::{ToolsAsked, not_offered, tools};
