//! Acts for the machine on a tokio runtime, and carries the calls past it.
//!
//! ```text
//!  commands ──mpsc──> control task ── owns machine::Supervisor
//!                        │    ▲
//!            run commands│    │facts (plugin, generation, fact)
//!                        ▼    │
//!                      run task, one a run ── owns the child, its three streams, its calls in flight
//!                        ▲    │
//!  callers ─ lane, call ─┘    └─> Host: manifests, log lines, events, host/call, host/ask
//!  (through Door, which shows the current run; never through the control task)
//! ```
//!
//! Everything runs on the tokio runtime that [`Plugins::open`] was called on; a current-thread
//! one is the fastest, since a call then wakes no other thread.

mod burial;
mod cgroup;
mod children;
mod control;
mod deadline;
mod door;
mod ending;
mod entry;
mod exit;
mod health;
mod host;
mod in_flight;
mod inbound;
mod launch;
pub(crate) mod limits;
mod log_lines;
mod logging;
mod not_spawned;
mod outbound;
mod plugins;
mod process;
mod procfs;
mod reading;
mod records;
mod requests;
mod run;
mod setup;
mod spare;
mod spawner;
mod stdio;
mod telling;
mod waiters;

pub use deadline::Deadline;
pub use door::{Answered, CallRequest, Heard, Lease, NotAdmitted, Patience, RunFailure};
pub use exit::{ExitRecord, SAID_NOTHING};
pub use host::{Accepted, Host, HostAsk, HostCall, HostReply, Lineage, RunEvent, Standing};
pub use launch::{
    Ended, FromPlugin, Hosting, Launch, NotSpawned, Pipes, Process, RunMark, Spawner, Stdio, ToPlugin,
    command_line, is_program, not_launched, not_on_path,
};
pub use limits::{CgroupLimits, Rlimits};
pub use log_lines::unix_now;
pub use plugd_launcher::Sandbox;
pub use plugins::{Gone, GraphView, LiveSettings, PluginSpec, PluginView, Plugins, RunSettings};
pub use telling::telling;
