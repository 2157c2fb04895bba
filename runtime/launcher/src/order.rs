//! What a launcher is told: when it is made, and what to become.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Limited, Sandbox};

/// What a launcher is told when it is made; the order comes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Post {
    /// Who made it.
    pub parent: u32,
    /// Whether it is killed when the thread that made it ends.
    pub die_with_parent: bool,
}

/// What to do before the plugin's program is executed, and that program.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The folder of the cgroup to join.
    pub cgroup: Option<PathBuf>,
    /// What it is kept from; unlike a limit, it runs with that or not at all.
    pub sandbox: Sandbox,
    /// What it is held to.
    pub rlimits: Vec<(Limited, u64)>,
    /// The folder to run in.
    pub cwd: PathBuf,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
}

/// So many bytes before an order say how long it is, in decimal: what follows it in the pipe is
/// the plugin's, and must not be read here.
const LENGTH_DIGITS: usize = 10;

impl Order {
    /// The order as a launcher reads it from its stdin.
    ///
    /// # Errors
    /// When a path in it is no UTF-8, or it is above any sensible length.
    pub fn write(&self) -> io::Result<Vec<u8>> {
        let order = serde_json::to_vec(self)?;
        let mut written = format!("{:0LENGTH_DIGITS$}", order.len()).into_bytes();
        if written.len() > LENGTH_DIGITS {
            return Err(io::Error::other("the environment and the arguments are too long"));
        }
        written.extend_from_slice(&order);
        Ok(written)
    }

    /// Waits for the order; `None` where none will come.
    pub(crate) fn read() -> Option<Order> {
        // Unbuffered: a buffer would hold what belongs to the plugin.
        let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned().ok()?);
        let mut length = [0; LENGTH_DIGITS];
        stdin.read_exact(&mut length).ok()?;
        let length = std::str::from_utf8(&length).ok()?.parse().ok()?;
        let mut order = Vec::new();
        stdin.take(length).read_to_end(&mut order).ok()?;
        serde_json::from_slice(&order).ok()
    }
}
