//! End to end: the real program, real sockets, real plugins in several languages.
#![allow(clippy::print_stderr, reason = "a test that skips says so")]

mod calls;
mod cases;
mod cli;
mod daemon;
mod languages;
mod lifecycle;
mod mended;
mod ordering;
mod registration;
mod restarts;
mod smoke;
