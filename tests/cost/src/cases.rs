//! The cases: what is counted, how many calls it takes, and how far a count may be off.

/// One way to load the runtime.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// What the recorded figures and the command line call it.
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    /// Bytes of payload in each call.
    pub(crate) payload: usize,
    /// Calls under way at any time.
    pub(crate) in_flight: usize,
    /// Calls that are counted; a whole multiple of those in flight.
    pub(crate) calls: usize,
    pub(crate) tolerance: Tolerance,
}

/// What a call goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Two pipes and blocking reads and writes: what nothing can be below.
    Raw,
    /// The engine in the caller's process.
    Engine { recorded: bool },
    /// The engine, with so many plugins registered of which one is called.
    Among { plugins: usize },
    /// The engine, while so many other calls wait for answers.
    Beside { held: usize },
    /// A client's connection to the control socket; counted is the daemon.
    Socket,
    /// `plugd call`, the whole process, to a daemon that runs.
    Command,
}

/// How far from the recorded a count may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    /// Of instructions in the thread that carries the calls: a share of the recorded.
    pub(crate) instructions: f64,
    /// Of system calls: so many a call.
    pub(crate) syscalls: f64,
}

/// Nothing but its own work decides what a call alone costs.
const ALONE: Tolerance = Tolerance { instructions: 0.08, syscalls: 0.3 };

/// How many calls share a read or a write depends on who is faster.
const CROWDED: Tolerance = Tolerance { instructions: 0.15, syscalls: 0.5 };

/// In how many pieces what is larger than a pipe's first read comes depends on who is faster.
const LARGE: Tolerance = Tolerance { instructions: 0.08, syscalls: 1.5 };

/// What the client sends and when it reads is its own affair.
const SERVED: Tolerance = Tolerance { instructions: 0.08, syscalls: 1.0 };

/// A process pays for its loader and its runtime too: the count is large, and so is what a library's update does.
const PROCESS: Tolerance = Tolerance { instructions: 0.08, syscalls: 12.0 };

/// Every case, in the order of the layers.
pub(crate) const CASES: &[Case] = &[
    alone("raw", Way::Raw, 32),
    alone("engine", Way::Engine { recorded: false }, 32),
    alone("engine-recorded", Way::Engine { recorded: true }, 32),
    Case { tolerance: LARGE, ..alone("engine-64k", Way::Engine { recorded: false }, 64 * 1024) },
    Case { tolerance: LARGE, ..alone("engine-64k-recorded", Way::Engine { recorded: true }, 64 * 1024) },
    crowded("engine-x64", Way::Engine { recorded: false }),
    crowded("engine-x64-recorded", Way::Engine { recorded: true }),
    alone("plugins-10", Way::Among { plugins: 10 }, 32),
    alone("plugins-1000", Way::Among { plugins: 1_000 }, 32),
    alone("held-0", Way::Beside { held: 0 }, 32),
    alone("held-10000", Way::Beside { held: 10_000 }, 32),
    Case { tolerance: SERVED, ..alone("socket", Way::Socket, 32) },
    crowded("socket-x64", Way::Socket),
    Case { calls: 1, tolerance: PROCESS, ..alone("command", Way::Command, 32) },
];

const fn alone(name: &'static str, way: Way, payload: usize) -> Case {
    Case { name, way, payload, in_flight: 1, calls: 512, tolerance: ALONE }
}

const fn crowded(name: &'static str, way: Way) -> Case {
    Case { name, way, payload: 32, in_flight: 64, calls: 4_096, tolerance: CROWDED }
}

/// The case of that name.
pub(crate) fn find(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}
