//! A daemon under load while everything around it is killed, and what must hold all the same.
//!
//! [`run`] makes a sandbox of plugins of every temper, loads it with clients, in peace and with kills
//! of plugins and of the daemon, reloads, stops and cancels, and says in a
//! [`Report`] what was measured and which promises were broken. `docs/reliability.md` lists them.
#![deny(missing_docs)]

mod daemon;
mod judge;
mod ledger;
mod load;
mod numbers;
mod operator;
mod page;
mod processes;
mod sandbox;
mod tempers;
mod trial;
mod trouble;

pub use page::write as write_page;
pub use trial::run;

use std::path::PathBuf;
use std::time::Duration;

/// How a trial is made.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program under trial.
    pub plugd: PathBuf,
    /// What all choices follow from; what the machine does with them does not.
    pub seed: u64,
    /// How long the load runs in peace, half of it before the trouble and half after it.
    pub peace: Duration,
    /// How long it runs in trouble.
    pub trouble: Duration,
    /// Clients that call at once.
    pub clients: usize,
    /// How often a plugin or the daemon is killed.
    pub kills_per_second: f64,
    /// How many of these kills are the daemon's.
    pub daemon_kills: u32,
    /// Whether to judge how fast calls were, too: that needs a machine with nothing else to do.
    pub judge_speed: bool,
}

/// What came of a trial.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was measured, by name.
    pub figures: Vec<(String, String)>,
    /// What did not hold, each with its evidence.
    pub broken: Vec<String>,
}
