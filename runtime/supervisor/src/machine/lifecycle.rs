//! The life of one plugin: what is wanted of it, the run it has, and what follows from both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use plugd_protocol::control::{Ended, PluginState};
use plugd_protocol::manifest::OnLoss;

use super::change::{Applied, Change};
use super::graph::Needs;
use super::replacing::Retiring;
use super::restart::RestartHistory;
use super::run::{Phase, Run};
use super::spare::Sparing;
use super::supervisor::Turn;
use super::view::Face;
use super::{Action, Declared, Exit, Generation, Spec, StopOutcome, StopReason};

/// One plugin: what is configured and wanted, and what was seen of its runs.
///
/// It acts on what it is told; `settle` then does what became possible.
#[derive(Debug)]
pub struct Lifecycle {
    pub(super) name: PluginName,
    pub(super) spec: Spec,
    /// What its manifest says, as far as it is known.
    pub(super) declared: Option<Declared>,
    pub(super) salt: u64,

    /// Somebody wants it ready; stands until it is stopped for being idle or by an operator.
    pub(super) up: bool,
    /// Somebody wants its manifest.
    pub(super) described: bool,
    /// An operator stopped it.
    pub(super) held: bool,
    /// A call waits for it: it is started before those nobody waits for.
    pub(super) by_call: bool,
    /// It is no longer configured.
    pub(super) removed: bool,

    /// What its runs use, which is what is configured unless that is being changed or was refused.
    pub(super) applied: Applied,
    pub(super) change: Change,

    /// The one run that is up, on its way up or on its way down.
    pub(super) run: Option<Run>,
    /// Which run that is, or was at last.
    pub(super) latest: Generation,
    /// The number given out last; candidates take some that no run ever has.
    counted: Generation,
    /// The run that would take its place.
    pub(super) sparing: Sparing,
    /// Runs on their way out beside it.
    pub(super) retiring: Vec<Retiring>,
    /// What is held against it; empty while it has a run that may become ready.
    pub(super) hold: Hold,
    pub(super) history: RestartHistory,
    /// What it failed with last, until it is ready or an operator starts it.
    pub(super) last_failure: Option<String>,
    /// What is known of its manifest ends with this run.
    pub(super) stale: bool,

    /// What those around it allow, as of the last settling.
    pub(super) gates: Gates,
    /// What its dependents were shown last.
    pub(super) face: Face,
    /// Its place among those that wait to be spawned.
    pub(super) turn: Option<Turn>,
    /// When its time is up, as of the last step.
    pub(super) due: Option<Instant>,
    /// Why it is blocked, as it was announced last.
    pub(super) told: Option<Block>,
    /// The state that was announced last, and when.
    pub(super) state: PluginState,
    pub(super) since: Instant,

    pub(super) starts: u64,
    pub(super) last_exit: Option<(Generation, Exit)>,
    pub(super) last_stop: Option<StopOutcome>,
}

/// How much is wanted of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Nothing,
    Description,
    Up,
}

/// What keeps a plugin from being started.
#[derive(Debug)]
pub(super) enum Hold {
    Nothing,
    /// It failed and waits for its next try.
    Backoff {
        until: Instant,
        reason: String,
    },
    /// It was given up.
    Failed {
        reason: String,
        probe: Probe,
    },
    /// It refused, and will again until something about it changes.
    Disabled {
        reason: String,
    },
}

/// When a plugin that was given up is tried again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Probe {
    Never,
    At(Instant),
    Due,
}

/// What those around a plugin allow it.
#[derive(Debug, Default)]
pub(super) struct Gates {
    /// What is wrong with its own requirements.
    pub(super) problem: Option<Arc<str>>,
    /// What it requires that is down.
    pub(super) block: Option<Block>,
    /// What it requires that is not ready yet.
    pub(super) waits: Vec<PluginName>,
    /// Everything is being stopped.
    pub(super) leaving: bool,
    /// All that must be down before it is stopped are down.
    pub(super) last: bool,
}

/// Why a plugin is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The first requirement of its own that is down.
    pub(super) direct: PluginName,
    /// The plugin at the bottom of it.
    pub(super) root: PluginName,
    /// How that one is, as "which is …".
    pub(super) cause: Arc<str>,
    /// All its requirements that are down.
    pub(super) on: Vec<PluginName>,
}

impl Lifecycle {
    /// A plugin that was never started.
    pub(super) fn new(spec: Spec, salt: u64, now: Instant) -> Lifecycle {
        Lifecycle {
            name: spec.name.clone(),
            declared: spec.declared.clone(),
            held: spec.held,
            applied: Applied::of(&spec),
            change: Change::None,
            spec,
            salt,
            up: false,
            described: false,
            by_call: false,
            removed: false,
            run: None,
            latest: Generation::default(),
            counted: Generation::default(),
            sparing: Sparing::default(),
            retiring: Vec::new(),
            hold: Hold::Nothing,
            history: RestartHistory::default(),
            last_failure: None,
            stale: false,
            gates: Gates::default(),
            face: Face::Asleep,
            turn: None,
            due: None,
            told: None,
            state: PluginState::Registered,
            since: now,
            starts: 0,
            last_exit: None,
            last_stop: None,
        }
    }

    /// What is configured for it.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What its manifest says, as far as it is known.
    pub fn declared(&self) -> Option<&Declared> {
        self.declared.as_ref()
    }

    /// What it requires, as far as that is known.
    pub(super) fn needs(&self) -> Needs {
        Needs::of(&self.spec, self.declared.as_ref())
    }

    /// Whether its run takes calls.
    pub(super) fn is_ready(&self) -> bool {
        self.run.as_ref().is_some_and(Run::is_ready)
    }

    /// How much is wanted of it now.
    pub(super) fn wants(&self) -> Wants {
        if self.removed || self.held || !self.spec.enabled || self.gates.leaving {
            Wants::Nothing
        } else if self.up || self.spec.eager {
            Wants::Up
        } else if self.wants_description() {
            Wants::Description
        } else {
            Wants::Nothing
        }
    }

    fn wants_description(&self) -> bool {
        self.declared.is_none() && (self.described || self.spec.describe)
    }

    /// Whether it should have a run and has none; `spawn` makes it.
    pub(super) fn wants_spawn(&self) -> bool {
        let held_back = match &self.hold {
            Hold::Nothing | Hold::Failed { probe: Probe::Due, .. } => false,
            Hold::Backoff { .. } | Hold::Failed { .. } | Hold::Disabled { .. } => true,
        };
        let useful = match self.wants() {
            Wants::Nothing => false,
            Wants::Description => true,
            // One that is blocked can still be described, so that it can be listed.
            Wants::Up => self.gates.block.is_none() || self.wants_description(),
        };
        self.run.is_none() && !held_back && self.gates.problem.is_none() && useful
    }

    /// Whether a run of it should be spawned as soon as it is its turn.
    pub(super) fn awaits_turn(&self) -> bool {
        self.wants_spawn() || self.wants_candidate() || self.wants_spare()
    }

    /// Whether what it requires is wanted because of it.
    pub(super) fn pulls(&self) -> bool {
        let hopeless = match &self.hold {
            Hold::Nothing | Hold::Backoff { .. } | Hold::Failed { probe: Probe::Due, .. } => false,
            Hold::Failed { .. } | Hold::Disabled { .. } => true,
        };
        self.wants() == Wants::Up && !self.is_ready() && !hopeless && self.gates.problem.is_none()
    }

    /// All runs it has: the one that serves or is to, a candidate, a spare, those on their way out.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Run> {
        let candidate = self.candidate().map(|candidate| &candidate.run);
        self.run
            .iter()
            .chain(candidate)
            .chain(self.spare())
            .chain(self.retiring.iter().map(|retiring| &retiring.run))
    }

    /// Whether it has a process that its end is waited for.
    pub(super) fn is_live(&self) -> bool {
        self.runs().any(|run| !run.is_abandoned())
    }

    /// Whether a run of it is between spawn and description.
    pub(super) fn is_describing(&self) -> bool {
        self.runs().any(|run| matches!(run.phase, Phase::Describing { .. }))
    }

    /// Whether a run that has been described waits for somebody who wants it up, and for nothing else.
    pub(super) fn lingers(&self) -> bool {
        self.spec.lingers && !self.up && self.gates.block.is_none()
    }

    /// Whether it is to be forgotten: no longer configured, and no process is left.
    pub(super) fn is_over(&self) -> bool {
        self.removed && self.runs().next().is_none()
    }

    /// It is no longer configured.
    pub(super) fn remove(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.removed = true;
        self.up = false;
        self.described = false;
        self.end_asked_for(now, StopReason::Stop, out);
    }

    /// A caller waits for its manifest.
    pub(super) fn describe_wanted(&mut self) {
        self.described |= self.declared.is_none();
    }

    /// A caller or a dependent waits for it to be ready; true if that is news.
    pub(super) fn want(&mut self, by_call: bool) -> bool {
        let news = !self.up || (by_call && !self.by_call);
        if self.held || !news {
            return false;
        }
        self.up = true;
        self.by_call |= by_call;
        true
    }

    /// An operator starts it; where no run is up or on its way, with what is configured.
    pub(super) fn start(&mut self) {
        if self.run.as_ref().is_none_or(|run| run.stopping().is_some()) {
            self.apply();
        }
        self.held = false;
        self.up = true;
        self.hold = Hold::Nothing;
        self.history.clear();
        self.last_failure = None;
        self.forgive_spares();
        self.forgive();
    }

    /// An operator stops it.
    pub(super) fn stop(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.held = true;
        self.up = false;
        self.described = false;
        self.by_call = false;
        self.hold = Hold::Nothing;
        if self.run.is_none() {
            let generation = self.latest;
            self.last_stop = Some(StopOutcome { generation, ended: Ended::NotRunning, took: Duration::ZERO });
        }
        self.end_asked_for(now, StopReason::Stop, out);
        self.apply();
    }

    /// An operator restarts it.
    pub(super) fn restart(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.end_asked_for(now, StopReason::Restart, out);
        self.start();
    }

    /// A plugin it requires was ready and is no more.
    pub(super) fn lose(&mut self, now: Instant, on_loss: OnLoss, out: &mut Vec<Action>) {
        if !self.is_ready() {
            return;
        }
        match on_loss {
            OnLoss::Stay => {}
            OnLoss::Restart => self.stop_run(now, StopReason::Lost, out),
            OnLoss::Stop => {
                self.up = false;
                self.stop_run(now, StopReason::Lost, out);
            }
        }
    }

    /// Kills what is left of it: plugd leaves without graces.
    pub(super) fn kill(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.forgive();
        // A candidate and a spare were withdrawn when leaving began: they are among those that retire.
        for run in self.run.iter_mut().chain(self.retiring.iter_mut().map(|retiring| &mut retiring.run)) {
            run.kill(&self.name, now, &self.spec.clocks, None, out);
        }
    }

    /// Does what those around it allow or demand now.
    pub(super) fn settle(&mut self, now: Instant, gates: Gates, out: &mut Vec<Action>) {
        self.gates = gates;
        if self.gates.leaving {
            self.end_change(now, StopReason::Exit, out);
            self.settle_spare(now, out);
            if self.gates.last {
                self.stop_run(now, StopReason::Exit, out);
            }
            return;
        }
        // One that works is not stopped for what keeps it from being started again.
        if !self.spec.enabled || (self.gates.problem.is_some() && !self.is_ready()) {
            self.stop_run(now, StopReason::Stop, out);
        }
        self.settle_due();
        self.settle_spare(now, out);
        let wanted = self.wants() == Wants::Up && self.gates.block.is_none();
        let Some(run) = &mut self.run else { return };
        if !matches!(run.phase, Phase::Parked) {
            return;
        }
        if !wanted {
            if !self.lingers() {
                self.stop_run(now, StopReason::Described, out);
            }
        } else if self.gates.waits.is_empty() {
            run.init(&self.name, now, &self.spec.clocks, out);
            self.starts += 1;
        }
    }

    /// Begins the next run, or one beside the one there is.
    pub(super) fn spawn(&mut self, now: Instant, out: &mut Vec<Action>) {
        if self.run.is_some() {
            return match self.wants_candidate() {
                true => self.spawn_candidate(now, out),
                false => self.spawn_spare(now, out),
            };
        }
        self.latest = self.next_generation();
        self.by_call = false;
        self.hold = Hold::Nothing;
        self.run = Some(Run::new(self.latest, now, &self.spec.clocks));
        out.push(Action::Spawn(self.name.clone(), self.latest, self.applied.revision));
    }

    pub(super) fn next_generation(&mut self) -> Generation {
        self.counted.0 += 1;
        self.counted
    }

    /// Somebody asks for the end of its run; that it may be killed for a failure counts no more.
    pub(super) fn end_asked_for(&mut self, now: Instant, reason: StopReason, out: &mut Vec<Action>) {
        self.forgive();
        self.stop_run(now, reason, out);
    }

    /// Stops its run, and a candidate with it.
    pub(super) fn stop_run(&mut self, now: Instant, reason: StopReason, out: &mut Vec<Action>) {
        self.end_change(now, reason, out);
        if let Some(run) = &mut self.run {
            run.stop(&self.name, now, &self.spec.clocks, reason, out);
        }
    }

    fn forgive(&mut self) {
        if let Some(Phase::Stopping(stopping)) = self.run.as_mut().map(|run| &mut run.phase) {
            stopping.failure = None;
        }
    }
}
