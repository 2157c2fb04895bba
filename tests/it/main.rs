//! End to end: the real program, real sockets, real plugins in several languages.
#![allow(clippy::print_stderr, reason = "a test that skips says so")]

mod asking;
mod calls;
mod cases;
mod chaos;
mod cli;
mod daemon;
mod languages;
mod lifecycle;
mod listing;
mod lives;
mod mended;
mod misbehave;
mod ordering;
mod registration;
mod reloading;
mod restarts;
mod rows;
mod sdk;
mod smoke;
