//! What a plugin's process may use: limits of the process itself, and of its cgroup.

use std::collections::BTreeMap;

use plugd_launcher::Limited;

/// Limits of one process and, each for itself, of those it starts; `None` leaves what plugd has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rlimits {
    /// Descriptors it may have open.
    pub open_files: Option<u64>,
    /// Processes and threads that its user may have, all plugins and others together.
    pub processes: Option<u64>,
    /// Its address space, in bytes.
    pub address_space: Option<u64>,
    /// Its time on the processor, in seconds.
    pub cpu_time: Option<u64>,
    /// The largest file it may write, in bytes.
    pub file_size: Option<u64>,
    /// The largest core dump, in bytes; none by default, since it may hold secrets.
    pub core_size: Option<u64>,
}

impl Default for Rlimits {
    fn default() -> Rlimits {
        Rlimits {
            open_files: None,
            processes: None,
            address_space: None,
            cpu_time: None,
            file_size: None,
            core_size: Some(0),
        }
    }
}

impl Rlimits {
    /// Those that are set.
    pub(super) fn wanted(&self) -> Vec<(Limited, u64)> {
        let all = [
            (Limited::OpenFiles, self.open_files),
            (Limited::Processes, self.processes),
            (Limited::AddressSpace, self.address_space),
            (Limited::CpuTime, self.cpu_time),
            (Limited::FileSize, self.file_size),
            (Limited::CoreSize, self.core_size),
        ];
        all.into_iter().filter_map(|(limited, most)| Some((limited, most?))).collect()
    }
}

/// Limits of a run with all it started, which only a cgroup can keep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Their memory together, in bytes.
    pub memory_max: Option<u64>,
    /// How many processes and threads they may be.
    pub pids_max: Option<u64>,
}

/// As what a sandbox is among what a process is held to; how is its name.
pub(super) const SANDBOX: &str = "sandbox";

/// What a process is held to, and what it should be held to and is not.
#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    /// As what and how.
    pub(super) enforced: BTreeMap<String, String>,
    /// As what and why.
    pub(super) not_enforced: BTreeMap<String, String>,
}

impl Held {
    pub(super) fn holds(&mut self, what: &str, how: impl Into<String>) {
        self.enforced.insert(what.to_owned(), how.into());
    }

    pub(super) fn lacks(&mut self, what: &str, why: impl Into<String>) {
        self.enforced.remove(what);
        self.not_enforced.insert(what.to_owned(), why.into());
    }

    /// Notes a limit as the launcher will apply it, which has our own hard limits.
    pub(super) fn limit(&mut self, limited: Limited, most: u64) {
        let hard = rustix::process::getrlimit(limited.resource()).maximum.unwrap_or(u64::MAX);
        if limited == Limited::Processes && rustix::process::geteuid().is_root() {
            self.lacks(limited.name(), "root is not held to it; cgroup.pids_max would be");
        } else if most > hard {
            self.lacks(limited.name(), format!("held to {hard}, the hard limit here"));
        } else {
            self.holds(limited.name(), most.to_string());
        }
    }
}
