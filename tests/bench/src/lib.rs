//! What the bench, the guard of costs and the echoes share: an engine or a daemon to call, lines over pipes.
#![deny(missing_docs)]

pub mod beside;
pub mod daemon;
pub mod host;
pub mod lines;
