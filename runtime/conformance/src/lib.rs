//! Whether a program keeps to the plugin protocol: scenarios run against real processes of it.
//!
//! Each [`Scenario`] starts a process as plugd would (its environment, folder and process group, through
//! the launcher), speaks raw lines with it over its pipes, and says what was expected, what came, what to
//! do and where `docs/protocol.md` says so. Every wait has a deadline, and whatever becomes of a scenario,
//! its process is killed with all that it started. [`check`] runs them; `plugd check` is its command.
#![deny(missing_docs)]

mod broken;
mod ear;
mod example;
mod kit;
mod observe;
mod oddity;
mod run;
mod scenario;
mod scenarios;
mod session;
mod told;
mod transcript;

use std::time::Duration;

pub use example::{example_arguments, referred};
pub use run::{LEFT_OUT, check};
pub use scenario::Scenario;
pub use scenarios::{GROUPS, scenarios};

/// What the kit may do, and how long it waits.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which operations may be called.
    pub call: Calls,
    /// Only these scenarios, by name; none are all.
    pub only: Vec<String>,
    /// Leaves out what takes long.
    pub quick: bool,
    /// How long a call may take; 10 s where it is not said.
    pub call_time: Option<Duration>,
}

/// Which operations may be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Calls {
    /// None.
    #[default]
    None,
    /// What declares to be read-only, and is not long-running.
    ReadOnly,
    /// These, whatever they declare, and as often as it takes; a name may have its plugin's before it.
    Named(Vec<String>),
}
