//! Decisions about plugins' lives, without I/O, clock or randomness.
//!
//! ```text
//!            wanted                                     observed
//!   operator, calls, config                     facts of one run (generation)
//!             \                                         /
//!              `----------> Supervisor::step <---------'
//!                              |       ^
//!                     actions  v       | deadline()
//!                            the driver
//! ```
//!
//! [`Supervisor`] holds one [`Lifecycle`] a plugin and the [`Graph`] between them. Each run of a
//! plugin has a generation; a fact from a run that is over changes nothing. What is wanted of a
//! plugin stays apart from what its process was seen to do, and what is configured from what its
//! runs use (`change`). Beside the run that serves there may be one that is to take over from it and
//! some on their way out (`replacing`), and one for when it fails (`spare`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plugd_protocol::PluginName;
use plugd_protocol::control::{Ended, PluginState};
use plugd_protocol::manifest::Requirement;

mod change;
mod graph;
mod lifecycle;
mod replacing;
mod requirements;
mod restart;
mod run;
mod seen;
mod spare;
mod supervisor;
mod view;

#[cfg(test)]
mod tests;

pub use graph::{Edge, Graph, Needs, Problem};
pub use lifecycle::Lifecycle;
pub use restart::{RestartHistory, RestartMode, RestartPolicy, Verdict};
pub use spare::SpareView;
pub use supervisor::Supervisor;
pub use view::View;

/// What the machine needs to know of a configured plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Its name.
    pub name: PluginName,
    /// Whether it may be used.
    pub enabled: bool,
    /// Whether an operator said so, whatever the configuration says.
    pub overruled: bool,
    /// Whether an operator stopped it; counts when it is first configured, then events do.
    pub held: bool,
    /// Whether it is started without being asked for.
    pub eager: bool,
    /// Whether it is described at once although nobody asks, so that it can be listed.
    pub describe: bool,
    /// Whether a run that was made to describe it stays, to be the one that a call gets: for what is
    /// described and called once, by something that ends soon.
    pub lingers: bool,
    /// What the configuration says about its priority.
    pub priority: Option<i32>,
    /// What the configuration adds to its requirements.
    pub requires: BTreeMap<PluginName, Requirement>,
    /// What is known of its manifest without running it.
    pub declared: Option<Declared>,
    /// Whether a run is kept ready beside the one that serves, to take its place when that fails.
    pub spare: bool,
    /// When it is started again.
    pub restart: RestartPolicy,
    /// How long it may take for what.
    pub clocks: Clocks,
    /// What is done about a run when what it is made from changes.
    pub on_change: OnChange,
    /// What a process is made from, as a hash by key; `config.` keys can be reloaded in place.
    pub facets: Arc<BTreeMap<String, u64>>,
    /// Which settings the driver is to use for its runs.
    pub revision: Revision,
}

/// What is done about a run when what it is made from changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnChange {
    /// It takes up the change in place if it can, and is replaced by a new run if not.
    #[default]
    Replace,
    /// It goes on as it is until an operator restarts it.
    Manual,
}

/// Stands for the settings of one plugin as they once were configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// What a manifest says that matters to a plugin's life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// Its version, where it is one that compares.
    pub version: Option<semver::Version>,
    /// The plugins it requires.
    pub requires: BTreeMap<PluginName, Requirement>,
    /// Larger starts earlier within a level.
    pub priority: Option<i32>,
    /// Whether it takes up another configuration in place.
    pub reload: bool,
}

/// How long a plugin may take for what; the defaults are those of the documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clocks {
    /// From spawn to the manifest; progress grants as much again.
    pub describe: Duration,
    /// From `init` or `reload` to its answer; progress while starting grants as much again.
    pub init: Duration,
    /// The most that progress can make of `describe` and of `init`.
    pub init_max: Duration,
    /// For calls in flight to end before `shutdown` is sent.
    pub drain: Duration,
    /// For the answer to `shutdown`; then stdin closes.
    pub shutdown: Duration,
    /// From closing stdin to SIGTERM.
    pub term: Duration,
    /// From SIGTERM to SIGKILL.
    pub kill: Duration,
    /// From SIGKILL to giving up.
    pub unkillable: Duration,
}

impl Default for Clocks {
    fn default() -> Clocks {
        Clocks {
            describe: Duration::from_secs(10),
            init: Duration::from_secs(30),
            init_max: Duration::from_secs(300),
            drain: Duration::from_secs(5),
            shutdown: Duration::from_secs(5),
            term: Duration::from_secs(3),
            kill: Duration::from_secs(3),
            unkillable: Duration::from_secs(2),
        }
    }
}

/// Which run of a plugin, counted from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// Something the machine is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// This is now the whole configuration; it is applied as a difference.
    Configured(Vec<Spec>),
    /// A caller waits for this plugin's manifest.
    DescribeWanted(PluginName),
    /// A caller waits for this plugin to be ready.
    Wanted(PluginName),
    /// An operator starts it; clears what was held against it.
    Start(PluginName),
    /// An operator stops it; it stays stopped.
    Stop(PluginName),
    /// An operator restarts it.
    Restart(PluginName),
    /// Take it up anew: reloaded in place or replaced if it runs, described again if not.
    Reload(PluginName),
    /// Stop everything and leave; the second time without graces.
    Shutdown,
    /// Something was seen of a run.
    Fact(PluginName, Generation, Fact),
    /// A deadline may have passed; spurious ones are harmless.
    Tick,
}

/// Something seen of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// Its process exists.
    Spawned {
        /// The process.
        pid: u32,
    },
    /// The process could not be made.
    NotSpawned {
        /// Why.
        reason: String,
        /// Whether the machine is short of something for now: no fault of the plugin's.
        passing: bool,
    },
    /// It answered `describe`.
    Described(Declared),
    /// Its manifest is unusable, or no protocol version is common.
    DescribeRefused {
        /// Why.
        reason: String,
    },
    /// It answered `init`.
    Initialised,
    /// It answered `init` with an error.
    InitRefused {
        /// Why.
        reason: String,
    },
    /// It reported progress while starting.
    Progressed,
    /// It took up another configuration in place.
    Reconfigured,
    /// It answered `reload` with an error, and goes on as it was.
    ReconfigureRefused {
        /// Why.
        reason: String,
    },
    /// It had no call for as long as its idle timeout.
    Idle,
    /// It broke the protocol, or is stuck with all lanes taken; it must be replaced.
    Misbehaved {
        /// How.
        reason: String,
    },
    /// No call is in flight any more.
    Drained,
    /// It answered `shutdown`.
    ShutdownAnswered,
    /// Its process ended.
    Exited(Exit),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// The exit status by which a plugin says that starting it again is no use (as s6 has it).
pub const EXIT_PERMANENT: i32 = 125;

/// Something the driver is to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Make a process with the settings of that revision, and send it `describe`.
    Spawn(PluginName, Generation, Revision),
    /// Send `init`.
    Init(PluginName, Generation),
    /// Send `reload` with the configuration of that revision.
    Reconfigure(PluginName, Generation, Revision),
    /// Hand over calls to the other run from now on; the first one is drained next.
    Switch {
        /// Whose runs these are.
        plugin: PluginName,
        /// The run that served.
        from: Generation,
        /// The run that serves now.
        to: Generation,
    },
    /// The run that served failed: hand over calls to its spare from now on.
    TakeOver {
        /// Whose runs these are.
        plugin: PluginName,
        /// The run that failed.
        from: Generation,
        /// The run that serves now.
        to: Generation,
    },
    /// Its spare could take over now; tell whoever watches.
    SpareReady(PluginName, Generation),
    /// Its spare came to nothing, for this reason; tell whoever watches.
    SpareFailed(PluginName, Generation, String),
    /// Hand over no more calls; report [`Fact::Drained`] when none is in flight.
    Drain(PluginName, Generation),
    /// Send `shutdown`, with the grace it has.
    AskToLeave(PluginName, Generation, StopReason, Duration),
    /// Close its stdin.
    CloseStdin(PluginName, Generation),
    /// Send SIGTERM and SIGCONT to its group.
    Terminate(PluginName, Generation),
    /// Send SIGKILL to its group.
    Kill(PluginName, Generation),
    /// Wait for this run no longer: SIGKILL did not end it.
    Abandon(PluginName, Generation),
    /// It is in another state now; tell whoever watches.
    Entered(PluginName, PluginState),
    /// It is blocked as before, for another reason; tell whoever waits for it.
    Explained(PluginName),
    /// It is no longer configured and its last run has ended; forget it.
    Forget(PluginName),
    /// Everything is down.
    Leave,
}

/// Why a run is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It has been described, and no more is wanted of it.
    Described,
    /// plugd leaves.
    Exit,
    /// It was idle.
    Idle,
    /// A plugin it requires is lost.
    Lost,
    /// It misbehaved.
    Misbehaved,
    /// Its configuration changed or its program is to be taken up anew.
    Reload,
    /// An operator wants it restarted.
    Restart,
    /// An operator wants it stopped, or it was removed or disabled.
    Stop,
}

impl StopReason {
    /// The word for it in `shutdown`.
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::Described => "described",
            StopReason::Exit => "exit",
            StopReason::Idle => "idle",
            StopReason::Lost => "lost",
            StopReason::Misbehaved => "misbehaved",
            StopReason::Reload => "reload",
            StopReason::Restart => "restart",
            StopReason::Stop => "stop",
        }
    }
}

/// How the last asked-for stop of a plugin went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopOutcome {
    /// Which run it was.
    pub generation: Generation,
    /// What ended it.
    pub ended: Ended,
    /// How long it took.
    pub took: Duration,
}
