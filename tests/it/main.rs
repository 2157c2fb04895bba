//! End to end: the real program, real sockets, real plugins in several languages.
#![allow(clippy::print_stderr, reason = "a test that skips says so")]

mod asking;
mod caching;
mod callers;
mod calls;
mod cases;
mod chaos;
mod cli;
mod daemon;
mod guide;
mod jobs;
mod kept_to;
mod keys;
mod languages;
mod lifecycle;
mod lint;
mod listing;
mod lives;
mod mended;
mod misbehave;
mod ordering;
mod promises;
mod record;
mod redaction;
mod registration;
mod reloading;
mod restarts;
mod results;
mod retries;
mod rows;
mod sdk;
mod smoke;
mod tokens;
mod tools;
