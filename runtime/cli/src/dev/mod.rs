//! `plugd dev`: a plugin that runs while it is written.
//!
//! ```text
//!   files ── sources ──► taker ── build, reload, lint ──► engine ◄── calls ── commands ◄── prompt
//!                          │                                │                     │
//!                          └────────────► screen ◄── logs ──┴─────────────────────┘
//! ```
//!
//! The taker is a task of its own: what is saved is taken up also while a call runs. All that happens by
//! itself goes through the screen, which writes it above the prompt.

mod build;
mod commands;
mod hints;
mod prompt;
mod screen;
mod sources;
mod taker;
mod words;

pub(crate) use build::Build;
pub(crate) use commands::{Command, Help};
pub(crate) use hints::{in_error, in_result};
pub(crate) use prompt::{Line, Lines};
pub(crate) use screen::Screen;
pub(crate) use sources::Sources;
pub(crate) use taker::{Came, Orders, Taker};
pub(crate) use words::Known;
