//! Those who wait for a command to have taken effect, answered after it has.

use std::collections::{BTreeMap, BTreeSet};

use plugd_protocol::PluginName;
use plugd_protocol::control::{Ended, PluginState, Stopped};
use tokio::sync::oneshot;

use super::plugins::PluginView;
use crate::machine::{Generation, Supervisor, View};

/// Everyone who waits.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    waiting: Vec<Waiter>,
}

/// Somebody who waits for some plugins.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) plugins: Vec<(PluginName, Goal)>,
    /// Which of them have not got there yet; one that has may move on.
    open: BTreeMap<PluginName, Goal>,
    /// Not looked at yet.
    new: bool,
    pub(super) reply: Reply,
}

impl Waiter {
    pub(super) fn new(plugins: Vec<(PluginName, Goal)>, reply: Reply) -> Waiter {
        Waiter { open: plugins.iter().cloned().collect(), new: true, plugins, reply }
    }
}

/// What is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    /// Ready, or at rest otherwise, in a run after this one.
    Started { after: Generation },
    /// Without a process; the run that was there when it was asked for.
    Stopped { running: Option<Generation> },
    /// Described, or not to be.
    Described,
    /// Nothing is under way for what was configured last: no stop, and no start that nothing holds up.
    Settled,
}

/// How the answer goes back.
#[derive(Debug)]
pub(super) enum Reply {
    Views(oneshot::Sender<Vec<PluginView>>),
    Stopped(oneshot::Sender<Vec<Stopped>>),
    Done(oneshot::Sender<()>),
}

impl Goal {
    /// Whether what other plugins do can bring it about.
    fn depends_on_others(self) -> bool {
        match self {
            Goal::Started { .. } | Goal::Stopped { .. } | Goal::Described => false,
            Goal::Settled => true,
        }
    }

    /// Whether it is reached; a plugin that is gone waits for nothing.
    pub(super) fn reached(self, view: Option<&View>, described: bool, machine: &Supervisor) -> bool {
        let Some(view) = view else {
            return true;
        };
        let at_rest =
            matches!(view.state, PluginState::Blocked | PluginState::Disabled | PluginState::Failed);
        match self {
            Goal::Started { after } => {
                // Somebody stopped it meanwhile: the run that is waited for will not be.
                let given_up = !view.wanted_up && view.settled_stop;
                view.settled_start && (view.generation > after || at_rest || given_up)
            }
            // The next run may follow at once, and the stop never be seen by itself.
            Goal::Stopped { running } => {
                view.settled_stop || running.is_some_and(|running| view.generation > running)
            }
            Goal::Described => described || view.settled_describe,
            Goal::Settled => {
                // One that was disabled or removed has settled when its process is gone.
                let stops = view.state == PluginState::Stopping;
                let is_up = !view.wanted_up || view.settled_start || is_held_up(machine, view);
                view.settled_change && (described || view.settled_describe) && !stops && is_up
            }
        }
    }
}

/// Whether it cannot come up before a plugin does that waits out a failure, which may take long.
fn is_held_up(machine: &Supervisor, view: &View) -> bool {
    let mut awaited = view.waits_for.iter().filter_map(|name| machine.view(name));
    awaited.any(|view| view.state == PluginState::Backoff || is_held_up(machine, &view))
}

impl Waiters {
    pub(super) fn push(&mut self, waiter: Waiter) {
        self.waiting.push(waiter);
    }

    /// Takes out everyone whose every goal is reached; looks only at what may have changed.
    pub(super) fn take_satisfied(
        &mut self,
        concerned: &BTreeSet<PluginName>,
        reached: impl Fn(&PluginName, Goal) -> bool,
    ) -> Vec<Waiter> {
        let satisfied = |waiter: &mut Waiter| {
            let everything = std::mem::take(&mut waiter.new);
            if everything || waiter.open.values().any(|goal| goal.depends_on_others()) {
                waiter.open.retain(|name, goal| !reached(name, *goal));
            } else {
                for name in concerned {
                    if waiter.open.get(name).is_some_and(|goal| reached(name, *goal)) {
                        waiter.open.remove(name);
                    }
                }
            }
            waiter.open.is_empty()
        };
        self.waiting.extract_if(.., satisfied).collect()
    }

    /// Takes out everyone, when nothing will happen any more.
    pub(super) fn take_all(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.waiting)
    }
}

/// How a plugin was stopped, as far as its view tells.
pub(super) fn stopped(name: &PluginName, running: Option<Generation>, view: Option<&View>) -> Stopped {
    let outcome = running.and_then(|running| {
        let last = view?.last_stop?;
        (last.generation >= running).then_some(last)
    });
    match outcome {
        Some(outcome) => Stopped {
            name: name.clone(),
            ended: outcome.ended,
            took_ms: u64::try_from(outcome.took.as_millis()).unwrap_or(u64::MAX),
        },
        None => {
            let ended = if running.is_some() { Ended::Exited } else { Ended::NotRunning };
            Stopped { name: name.clone(), ended, took_ms: 0 }
        }
    }
}
