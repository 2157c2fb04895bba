//! What a single process can be held to.

use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

/// What a process can be limited in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limited {
    /// Descriptors it may have open.
    OpenFiles,
    /// Processes and threads of its user.
    Processes,
    /// Its address space, in bytes.
    AddressSpace,
    /// Its time on the processor, in seconds.
    CpuTime,
    /// The largest file it may write, in bytes.
    FileSize,
    /// The largest core dump, in bytes.
    CoreSize,
}

impl Limited {
    /// As it is called in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Limited::OpenFiles => "open_files",
            Limited::Processes => "processes",
            Limited::AddressSpace => "address_space",
            Limited::CpuTime => "cpu_time",
            Limited::FileSize => "file_size",
            Limited::CoreSize => "core_size",
        }
    }

    /// As the operating system has it.
    pub fn resource(self) -> Resource {
        match self {
            Limited::OpenFiles => Resource::Nofile,
            Limited::Processes => Resource::Nproc,
            Limited::AddressSpace => Resource::As,
            Limited::CpuTime => Resource::Cpu,
            Limited::FileSize => Resource::Fsize,
            Limited::CoreSize => Resource::Core,
        }
    }
}

/// Holds this process to a limit for good: there is no way back above it.
pub fn hold(limited: Limited, most: u64) -> rustix::io::Result<()> {
    let resource = limited.resource();
    let hard = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let most = most.min(hard);
    let maximum = match limited {
        // At the soft limit it dies of SIGXCPU, which says why; at the hard one of SIGKILL.
        Limited::CpuTime => most.saturating_add(1).min(hard),
        Limited::OpenFiles
        | Limited::Processes
        | Limited::AddressSpace
        | Limited::FileSize
        | Limited::CoreSize => most,
    };
    rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(maximum) })
}
