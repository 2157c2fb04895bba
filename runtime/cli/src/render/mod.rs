//! Answers as text for people: escaped, aligned, coloured only where a terminal shows it.

mod change;
mod doctor;
pub(crate) mod graph;
mod json;
mod report;
mod schema;
mod status;
mod table;
mod text;

pub(crate) use change::{added, changed, reloaded};
pub(crate) use doctor::findings;
pub(crate) use json::pretty;
pub(crate) use report::{description, error, event, list, log_entry, result};
pub(crate) use status::{plugin_status, started, status, stopped};
pub(crate) use text::{Paint, visible, visible_line};
