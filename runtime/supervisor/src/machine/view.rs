//! What a plugin's life looks like from outside: its state, why, and what can be expected.

use std::sync::Arc;
use std::time::Instant;

use plugd_protocol::PluginName;
use plugd_protocol::control::{PluginState, RestartRequired};

use super::lifecycle::{Block, Hold, Lifecycle, Wants};
use super::run::{Phase, Run};
use super::spare::SpareView;
use super::{Exit, Generation, StopOutcome, StopReason};

/// How a plugin is, as of the last step.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Its state; never `Busy`, which only those who hand over calls can know.
    pub state: PluginState,
    /// Why it is in that state, where it is not plain; names the root cause.
    pub reason: Option<String>,
    /// The plugins it waits for or is blocked by itself.
    pub waits_for: Vec<PluginName>,
    /// The run that serves or is to, or else the latest that was; 0 before the first.
    pub generation: Generation,
    /// The process of its run.
    pub pid: Option<u32>,
    /// Since when it is in that state.
    pub since: Instant,
    /// How many runs were sent `init`.
    pub starts: u64,
    /// How many failures lie within the window.
    pub restarts: u32,
    /// When it is tried again.
    pub next_start: Option<Instant>,
    /// How its last process ended.
    pub last_exit: Option<(Generation, Exit)>,
    /// How its last asked-for stop went.
    pub last_stop: Option<StopOutcome>,
    /// Whether it is wanted to be ready.
    pub wanted_up: bool,
    /// Whether its run takes calls.
    pub accepts_calls: bool,
    /// Whether a call should wait for it rather than be answered at once.
    pub waits: bool,
    /// What a stop under way leads to, and why, where a call need not wait to be told.
    pub heading: Option<(PluginState, Option<String>)>,
    /// Whether it is ready, or came to rest otherwise.
    pub settled_start: bool,
    /// Whether it has no process, or none that anybody waits for.
    pub settled_stop: bool,
    /// The run that is to take over from the one that serves.
    pub replacing: Option<Generation>,
    /// The run that would take its place if it failed, where there is to be one.
    pub spare: Option<SpareView>,
    /// What of its configuration its runs do not use yet, and why.
    pub restart_required: Option<RestartRequired>,
    /// Whether no run is on its way to take over and no reload in place is under way.
    pub settled_change: bool,
    /// Whether its manifest is known, or nothing is under way to learn it.
    pub settled_describe: bool,
}

/// What a plugin shows its dependents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Face {
    /// Not running; would start if it were wanted.
    Asleep,
    /// Will be ready unless it fails; `starting` where it is not waiting out a failure.
    Coming { starting: bool },
    /// Takes calls.
    Ready,
    /// Will not be ready unless something changes.
    Down { root: PluginName, cause: Arc<str> },
}

impl Lifecycle {
    /// The state that follows from everything known of it.
    pub(super) fn current_state(&self) -> PluginState {
        if let Some(run) = &self.run {
            return match &run.phase {
                // It starts for whoever wants it, and nobody does.
                Phase::Parked if self.lingers() => PluginState::Idle,
                Phase::Describing { .. } | Phase::Parked | Phase::Initialising { .. } => {
                    PluginState::Starting
                }
                Phase::Ready { .. } => PluginState::Ready,
                Phase::Stopping(_) if run.is_abandoned() => PluginState::Failed,
                // It only was to be described, and nobody need hear how its process goes.
                Phase::Stopping(stop) if stop.reason == StopReason::Described && stop.failure.is_none() => {
                    match self.state_without_run() {
                        // It starts with its next run, not before.
                        PluginState::Starting => PluginState::Idle,
                        state => state,
                    }
                }
                Phase::Stopping(_) => PluginState::Stopping,
            };
        }
        self.state_without_run()
    }

    fn state_without_run(&self) -> PluginState {
        if !self.spec.enabled || self.gates.problem.is_some() {
            return PluginState::Disabled;
        }
        if self.held {
            return PluginState::Stopped;
        }
        match (&self.hold, self.wants()) {
            (Hold::Disabled { .. }, _) => PluginState::Disabled,
            (Hold::Failed { .. }, _) => PluginState::Failed,
            (Hold::Nothing | Hold::Backoff { .. }, _) if self.gates.leaving => {
                if self.never_left_registered() { PluginState::Registered } else { PluginState::Stopped }
            }
            (Hold::Backoff { .. }, _) => PluginState::Backoff,
            (Hold::Nothing, _) if self.gates.block.is_some() => PluginState::Blocked,
            (Hold::Nothing, Wants::Up) => PluginState::Starting,
            (Hold::Nothing, Wants::Description | Wants::Nothing) if self.never_left_registered() => {
                PluginState::Registered
            }
            (Hold::Nothing, Wants::Description | Wants::Nothing) => PluginState::Idle,
        }
    }

    /// Registered is what a plugin is at first; it is not entered again.
    fn never_left_registered(&self) -> bool {
        self.latest.0 == 0 && self.state == PluginState::Registered
    }

    /// What its dependents go by.
    pub(super) fn current_face(&self) -> Face {
        let down = |state: &str, reason: Option<&str>| {
            let cause = match reason {
                // Such as: which is disabled in plugd.toml.
                Some(reason) if reason.starts_with(state) => format!("which is {reason}"),
                Some(reason) => format!("which is {state}: {reason}"),
                None => format!("which is {state}"),
            };
            Face::Down { root: self.name.clone(), cause: cause.into() }
        };
        let run = self.run.as_ref();
        if run.is_some_and(Run::is_ready) {
            return Face::Ready;
        }
        if let Some(reason) = self.why_disabled() {
            return down("disabled", Some(reason));
        }
        if self.held {
            return down("stopped", None);
        }
        if run.is_some_and(Run::is_abandoned) {
            return down("failed", Some(UNKILLABLE));
        }
        if let Hold::Failed { reason, .. } = &self.hold {
            return down("failed", Some(reason));
        }
        // A try of one that was given up is no hope yet; one that sleeps was ready since.
        let sleeps = run.is_none() && self.wants() != Wants::Up;
        if let Some(reason) = self.history.given_up().filter(|_| !sleeps) {
            return down("failed", Some(reason));
        }
        if let Some(Block { root, cause, .. }) = &self.gates.block {
            return Face::Down { root: root.clone(), cause: Arc::clone(cause) };
        }
        match (&self.hold, self.wants()) {
            (Hold::Backoff { .. }, _) => Face::Coming { starting: false },
            (_, Wants::Up) => Face::Coming { starting: true },
            (_, Wants::Description | Wants::Nothing) => Face::Asleep,
        }
    }

    /// How it is, for those who ask; `now` only ages its failures.
    pub(super) fn view(&self, now: Instant) -> View {
        let state = self.current_state();
        let wanted_up = self.wants() == Wants::Up;
        View {
            state,
            reason: self.reason(state),
            waits_for: self.waits_for(state, wanted_up),
            generation: self.latest,
            pid: self.run.as_ref().and_then(|run| run.pid),
            since: self.since,
            starts: self.starts,
            restarts: self.history.within(self.spec.restart.window, now),
            next_start: self.next_try(),
            last_exit: self.last_exit,
            last_stop: self.last_stop,
            wanted_up,
            accepts_calls: state == PluginState::Ready,
            waits: self.waits(state),
            heading: self.heading(state),
            settled_start: !matches!(state, PluginState::Starting | PluginState::Stopping),
            settled_stop: !self.is_live(),
            replacing: self.candidate().map(|candidate| candidate.run.generation),
            spare: self.spare_view(),
            restart_required: self.restart_required(),
            settled_change: !self.is_changing(),
            settled_describe: self.declared.is_some()
                || !(self.is_describing() || self.wants_spawn() || state == PluginState::Stopping),
        }
    }

    /// Whether something keeps it from being started, whatever is wanted.
    fn is_barred(&self) -> bool {
        let held_back = match &self.hold {
            Hold::Nothing | Hold::Backoff { .. } => false,
            Hold::Failed { .. } | Hold::Disabled { .. } => true,
        };
        let barred_by_others = self.gates.block.is_some() || self.gates.leaving;
        self.held || self.removed || held_back || barred_by_others || self.why_disabled().is_some()
    }

    fn waits(&self, state: PluginState) -> bool {
        match state {
            PluginState::Starting
            | PluginState::Backoff
            | PluginState::Idle
            | PluginState::Registered
            | PluginState::Stopping => !self.is_barred(),
            PluginState::Ready
            | PluginState::Busy
            | PluginState::Blocked
            | PluginState::Disabled
            | PluginState::Failed
            | PluginState::Stopped => false,
        }
    }

    /// Of one that is being stopped; when everything is, there is nothing more to say.
    fn heading(&self, state: PluginState) -> Option<(PluginState, Option<String>)> {
        if state != PluginState::Stopping || self.gates.leaving || self.removed {
            return None;
        }
        let next = self.state_without_run();
        match next {
            PluginState::Blocked | PluginState::Disabled | PluginState::Failed | PluginState::Stopped => {
                Some((next, self.reason(next)))
            }
            PluginState::Registered
            | PluginState::Starting
            | PluginState::Ready
            | PluginState::Busy
            | PluginState::Idle
            | PluginState::Backoff
            | PluginState::Stopping => None,
        }
    }

    fn waits_for(&self, state: PluginState, wanted_up: bool) -> Vec<PluginName> {
        match (state, &self.gates.block) {
            (PluginState::Blocked, Some(block)) => block.on.clone(),
            (PluginState::Starting, _) if wanted_up && !self.initialises() => self.gates.waits.clone(),
            (_, _) => Vec::new(),
        }
    }

    fn initialises(&self) -> bool {
        self.run.as_ref().is_some_and(|run| matches!(run.phase, Phase::Initialising { .. }))
    }

    fn why_disabled(&self) -> Option<&str> {
        match (self.spec.enabled, self.spec.overruled) {
            (false, true) => return Some("disabled by an operator"),
            (false, false) => return Some("disabled in plugd.toml"),
            (true, _) => {}
        }
        match &self.hold {
            _ if self.gates.problem.is_some() => self.gates.problem.as_deref(),
            Hold::Disabled { reason } => Some(reason),
            Hold::Nothing | Hold::Backoff { .. } | Hold::Failed { .. } => None,
        }
    }

    fn reason(&self, state: PluginState) -> Option<String> {
        match state {
            PluginState::Disabled => self.why_disabled().map(str::to_owned),
            PluginState::Failed if self.run.as_ref().is_some_and(Run::is_abandoned) => {
                Some(UNKILLABLE.to_owned())
            }
            PluginState::Failed | PluginState::Backoff => match &self.hold {
                Hold::Failed { reason, .. } | Hold::Backoff { reason, .. } => Some(reason.clone()),
                Hold::Nothing | Hold::Disabled { .. } => None,
            },
            PluginState::Blocked => self.gates.block.as_ref().map(Block::to_string),
            PluginState::Stopped => self.held.then(|| "stopped by an operator".to_owned()),
            PluginState::Stopping => self.why_stopping(),
            // A start after failures says what they were.
            PluginState::Starting => {
                self.last_failure.as_ref().map(|failure| format!("tried again after: {failure}"))
            }
            // It works, and would not come up again as things are.
            PluginState::Ready | PluginState::Busy => {
                self.gates.problem.as_ref().map(|problem| format!("would not start again: {problem}"))
            }
            PluginState::Registered | PluginState::Idle => None,
        }
    }

    fn why_stopping(&self) -> Option<String> {
        let stopping = self.run.as_ref().and_then(Run::stopping)?;
        let failure = stopping.failure.as_ref().map(|failure| failure.reason.clone());
        failure.or_else(|| self.why_disabled().map(str::to_owned))
    }
}

/// What is said of a process that SIGKILL did not end.
const UNKILLABLE: &str = "unkillable: its process is still there after SIGKILL";

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "requires {}", self.direct)?;
        if self.direct != self.root {
            write!(f, ", which is blocked by {}", self.root)?;
        }
        write!(f, ", {}", self.cause)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit status {code}"),
            Exit::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "killed by signal {signal} ({name})"),
                None => write!(f, "killed by signal {signal}"),
            },
        }
    }
}

/// The name of a signal that ends processes, as Linux numbers them.
fn signal_name(signal: i32) -> Option<&'static str> {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    };
    Some(name)
}
