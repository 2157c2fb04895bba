//! Tests of the machine: written scripts and simulated worlds.

mod candidates;
mod changes;
mod failures;
mod graphs;
mod invariants;
mod lives;
mod losses;
mod reloads;
mod replacing;
mod script;
mod simulation;
mod spares;
mod together;
mod world;

use plugd_protocol::PluginName;
use plugd_protocol::control::PluginState;

fn name(text: &str) -> PluginName {
    PluginName::new(text).unwrap()
}

/// Whether a plugin may go from one state to another.
fn legal(from: PluginState, to: PluginState) -> bool {
    use PluginState::{
        Backoff, Blocked, Disabled, Failed, Idle, Ready, Registered, Starting, Stopped, Stopping,
    };
    match from {
        // Without a process, everything but ready and stopping can follow.
        Registered | Backoff | Blocked | Disabled | Stopped => !matches!(to, Ready | Stopping | Registered),
        // One that lingers after its description has a process that is stopped.
        Idle => !matches!(to, Ready | Registered),
        // A failed one may be an abandoned process, whose end may follow; nothing else differs.
        Failed => !matches!(to, Ready | Stopping | Registered),
        // A start ends in ready, in a stop, or in the death of the process.
        Starting => !matches!(to, Registered),
        // Ready ends in a stop or in death; death is followed by the next start, a delay or giving up,
        // and where a requirement cannot be met any more by nothing.
        Ready => matches!(to, Stopping | Starting | Backoff | Failed | Stopped | Idle | Blocked | Disabled),
        // A stop ends in whatever holds for a plugin without a process.
        Stopping => !matches!(to, Ready | Registered),
        PluginState::Busy => false,
    }
}
