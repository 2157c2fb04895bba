//! Acts for the machine on a tokio runtime, and carries the calls past it.
//!
//! ```text
//!  commands ──mpsc──> control task ── owns machine::Supervisor
//!                        │    ▲
//!            run commands│    │facts (plugin, generation, fact)
//!                        ▼    │
//!                      run task, one a run ── owns the child, its three pipes, its calls in flight
//!                        ▲    │
//!  callers ─ lane, call ─┘    └─> Host: manifests, log lines, events, host/call
//!  (through Door, which shows the current run; never through the control task)
//! ```
//!
//! Everything runs on the tokio runtime that [`Plugins::open`] was called on; a current-thread
//! one is the fastest, since a call then wakes no other thread.

mod control;
mod door;
mod ending;
mod exit;
mod host;
mod in_flight;
mod inbound;
mod launch;
mod log_lines;
mod outbound;
mod plugins;
mod run;
mod waiters;

pub use door::{Answered, CallRequest, Heard, Lease, NotAdmitted, Patience, RunFailure};
pub use exit::ExitRecord;
pub use host::{Accepted, Host, HostCall, HostReply, Lineage, RunEvent};
pub use launch::Launch;
pub use log_lines::unix_now;
pub use plugins::{Gone, GraphView, PluginSpec, PluginView, Plugins, RunSettings};
