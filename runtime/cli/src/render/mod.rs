//! Answers as text for people: escaped, aligned, coloured only where a terminal shows it.

pub(crate) mod graph;
mod json;
mod report;
mod schema;
mod table;
mod text;

pub(crate) use json::pretty;
pub(crate) use report::{
    description, error, event, list, log_entry, reloaded, result, started, status, stopped,
};
pub(crate) use text::{Paint, visible};
