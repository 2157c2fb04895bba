//! What the end to end tests stand on: a folder, real plugins in it, and the real program.
#![allow(clippy::print_stderr, clippy::missing_panics_doc, reason = "tests panic and print")]

mod daemon;
mod detached;
mod guide;
mod neighbour;
mod sandbox;
pub mod sessions;
mod wait;

pub use daemon::Daemon;
pub use detached::{Detached, shell};
pub use guide::Page;
pub use neighbour::Neighbour;
pub use sandbox::{Ran, SERVE, Sandbox, plugd};
pub use wait::{alive, eventually, group_members, kill};
