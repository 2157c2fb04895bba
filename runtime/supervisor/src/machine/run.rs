//! One run of a plugin: from spawn through its phases to the steps that end it.

use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use plugd_protocol::control::Ended;

use super::{Action, Clocks, Exit, Fact, Generation, StopReason};

/// What stands for "never" where a clock is set beyond what an instant can hold.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A process, from the moment it is asked for until its end was seen.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) generation: Generation,
    pub(super) pid: Option<u32>,
    pub(super) phase: Phase,
    /// It never answered a `reload`, so that nobody knows with what it goes on.
    pub(super) unsure: bool,
}

/// How far a run has come.
#[derive(Debug)]
pub(super) enum Phase {
    /// Spawned; `describe` is not answered yet.
    Describing { since: Instant, until: Instant },
    /// Described; what it requires is not ready yet.
    Parked,
    /// `init` is sent and not answered yet.
    Initialising { since: Instant, until: Instant },
    /// Takes calls.
    Ready { since: Instant },
    /// On its way out.
    Stopping(Stopping),
}

/// A stop under way.
#[derive(Debug)]
pub(super) struct Stopping {
    pub(super) reason: StopReason,
    pub(super) since: Instant,
    /// What it did wrong, if that is why it is stopped and nobody asked for its end meanwhile.
    pub(super) failure: Option<Failure>,
    pub(super) step: Step,
}

/// What a run did wrong.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// How long it had been ready; none if it never was.
    pub(super) ready_for: Option<Duration>,
}

/// The steps of a stop, each taken when the one before had its time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Calls in flight may end.
    Draining { until: Instant },
    /// `shutdown` is sent.
    Leaving { until: Instant },
    /// Its stdin is closed.
    Closing { until: Instant },
    /// SIGTERM is sent.
    Terminating { until: Instant },
    /// SIGKILL is sent.
    Killing { until: Instant },
    /// Nothing helped; its end may still come.
    Abandoned,
}

impl Run {
    /// A run that is being spawned now.
    pub(super) fn new(generation: Generation, now: Instant, clocks: &Clocks) -> Run {
        let phase = Phase::Describing { since: now, until: later(now, clocks.describe) };
        Run { generation, pid: None, phase, unsure: false }
    }

    /// Whether it takes calls.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready { .. })
    }

    /// Whether it is on its way out.
    pub(super) fn stopping(&self) -> Option<&Stopping> {
        match &self.phase {
            Phase::Stopping(stopping) => Some(stopping),
            Phase::Describing { .. } | Phase::Parked | Phase::Initialising { .. } | Phase::Ready { .. } => {
                None
            }
        }
    }

    /// Whether nobody waits for its end any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.stopping().is_some_and(|stopping| matches!(stopping.step, Step::Abandoned))
    }

    /// How long it has been ready.
    pub(super) fn ready_for(&self, now: Instant) -> Option<Duration> {
        match self.phase {
            Phase::Ready { since } => Some(now.saturating_duration_since(since)),
            Phase::Describing { .. } | Phase::Parked | Phase::Initialising { .. } | Phase::Stopping(_) => {
                None
            }
        }
    }

    /// When it must be looked at next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Describing { until, .. } | Phase::Initialising { until, .. } => Some(*until),
            Phase::Parked | Phase::Ready { .. } => None,
            Phase::Stopping(stopping) => stopping.step.deadline(),
        }
    }

    /// What it failed to do in its time, if it is not ready in spite of its deadline.
    pub(super) fn overdue(&self, now: Instant) -> Option<String> {
        let (what, since, until, why) = match self.phase {
            Phase::Describing { since, until } => {
                ("describe", since, until, ": does it call serve(), read stdin, and flush what it writes?")
            }
            Phase::Initialising { since, until } => ("init", since, until, ""),
            Phase::Parked | Phase::Ready { .. } | Phase::Stopping(_) => return None,
        };
        let taken = seconds(until.saturating_duration_since(since));
        (until <= now).then(|| format!("no {what} answer in {taken}{why}"))
    }

    /// How it ended, and what is odd about that: a program that never comes to serve has nothing to say of it.
    pub(super) fn ended_with(&self, exit: Exit) -> String {
        match self.phase {
            Phase::Describing { .. } if exit == Exit::Code(0) => {
                format!(
                    "{exit} before it answered describe: does it call serve(), or run a loop that reads stdin?"
                )
            }
            Phase::Describing { .. }
            | Phase::Parked
            | Phase::Initialising { .. }
            | Phase::Ready { .. }
            | Phase::Stopping(_) => exit.to_string(),
        }
    }

    /// Grants it as much time again for its start, up to the limit.
    pub(super) fn progressed(&mut self, now: Instant, clocks: &Clocks) {
        let (grant, since, until) = match &mut self.phase {
            Phase::Describing { since, until } => (clocks.describe, *since, until),
            Phase::Initialising { since, until } => (clocks.init, *since, until),
            Phase::Parked | Phase::Ready { .. } | Phase::Stopping(_) => return,
        };
        *until = later(now, grant).min(later(since, clocks.init_max)).max(*until);
    }

    /// Sends `init`; its answer has its time from now on.
    pub(super) fn init(&mut self, name: &PluginName, now: Instant, clocks: &Clocks, out: &mut Vec<Action>) {
        let until = later(now, clocks.init.min(clocks.init_max));
        self.phase = Phase::Initialising { since: now, until };
        out.push(Action::Init(name.clone(), self.generation));
    }

    /// Begins a stop with all its graces, or without drain and `shutdown` if it is not ready.
    pub(super) fn stop(
        &mut self,
        name: &PluginName,
        now: Instant,
        clocks: &Clocks,
        reason: StopReason,
        out: &mut Vec<Action>,
    ) {
        let step = match self.phase {
            Phase::Stopping(_) => return,
            Phase::Ready { .. } => {
                out.push(Action::Drain(name.clone(), self.generation));
                Step::Draining { until: later(now, clocks.drain) }
            }
            Phase::Describing { .. } | Phase::Parked | Phase::Initialising { .. } => {
                out.push(Action::CloseStdin(name.clone(), self.generation));
                out.push(Action::Terminate(name.clone(), self.generation));
                Step::Terminating { until: later(now, clocks.kill) }
            }
        };
        self.phase = Phase::Stopping(Stopping { reason, since: now, failure: None, step });
    }

    /// Kills it at once, whatever its phase; a stop under way keeps its reason.
    pub(super) fn kill(
        &mut self,
        name: &PluginName,
        now: Instant,
        clocks: &Clocks,
        failure: Option<Failure>,
        out: &mut Vec<Action>,
    ) {
        let step = Step::Killing { until: later(now, clocks.unkillable) };
        match &mut self.phase {
            Phase::Stopping(stopping) => match stopping.step {
                Step::Killing { .. } | Step::Abandoned => return,
                Step::Draining { .. }
                | Step::Leaving { .. }
                | Step::Closing { .. }
                | Step::Terminating { .. } => {
                    stopping.step = step;
                }
            },
            Phase::Describing { .. } | Phase::Parked | Phase::Initialising { .. } | Phase::Ready { .. } => {
                let reason = if failure.is_some() { StopReason::Misbehaved } else { StopReason::Exit };
                self.phase = Phase::Stopping(Stopping { reason, since: now, failure, step });
            }
        }
        out.push(Action::Kill(name.clone(), self.generation));
    }

    /// Takes the next step of a stop that was waiting for what was seen now.
    pub(super) fn answered(
        &mut self,
        name: &PluginName,
        now: Instant,
        clocks: &Clocks,
        fact: &Fact,
        out: &mut Vec<Action>,
    ) {
        let awaited = match self.stopping().map(|stopping| stopping.step) {
            Some(Step::Draining { .. }) => matches!(fact, Fact::Drained),
            Some(Step::Leaving { .. }) => matches!(fact, Fact::ShutdownAnswered),
            Some(
                Step::Closing { .. } | Step::Terminating { .. } | Step::Killing { .. } | Step::Abandoned,
            )
            | None => false,
        };
        if awaited {
            self.next_step(name, now, clocks, out);
        }
    }

    /// Takes the next step of a stop: the one under way is done or had its time.
    pub(super) fn next_step(
        &mut self,
        name: &PluginName,
        now: Instant,
        clocks: &Clocks,
        out: &mut Vec<Action>,
    ) {
        let Phase::Stopping(stopping) = &mut self.phase else { return };
        let (name, run) = (name.clone(), self.generation);
        let (step, action) = match stopping.step {
            Step::Draining { .. } => (
                Step::Leaving { until: later(now, clocks.shutdown) },
                Action::AskToLeave(name, run, stopping.reason, clocks.shutdown),
            ),
            Step::Leaving { .. } => {
                (Step::Closing { until: later(now, clocks.term) }, Action::CloseStdin(name, run))
            }
            Step::Closing { .. } => {
                (Step::Terminating { until: later(now, clocks.kill) }, Action::Terminate(name, run))
            }
            Step::Terminating { .. } => {
                (Step::Killing { until: later(now, clocks.unkillable) }, Action::Kill(name, run))
            }
            Step::Killing { .. } => (Step::Abandoned, Action::Abandon(name, run)),
            Step::Abandoned => return,
        };
        stopping.step = step;
        out.push(action);
    }
}

impl Step {
    fn deadline(self) -> Option<Instant> {
        match self {
            Step::Draining { until }
            | Step::Leaving { until }
            | Step::Closing { until }
            | Step::Terminating { until }
            | Step::Killing { until } => Some(until),
            Step::Abandoned => None,
        }
    }

    /// What ended a run that ended in this step.
    pub(super) fn ended(self) -> Ended {
        match self {
            Step::Draining { .. } | Step::Leaving { .. } | Step::Closing { .. } => Ended::Exited,
            Step::Terminating { .. } => Ended::Terminated,
            Step::Killing { .. } => Ended::Killed,
            Step::Abandoned => Ended::Unkillable,
        }
    }
}

/// An instant that long from now, however long that is.
pub(super) fn later(now: Instant, after: Duration) -> Instant {
    now.checked_add(after).or_else(|| now.checked_add(FAR)).unwrap_or(now)
}

/// A duration in seconds, as messages have it.
pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
