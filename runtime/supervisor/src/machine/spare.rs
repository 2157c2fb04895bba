//! A spare: a run that is ready beside the one that serves, and takes its place when that fails.
//!
//! ```text
//! spare   spawned, described, waits for what it requires, init sent, ready
//!   |  \ the run before it fails ---> it is the run, if it is ready: without a back-off
//!   |   `- it fails itself ---------> the next one is made after a back-off of its own
//!   `-- nothing is to be spared ----> it retires
//! ```
//!
//! There is a spare only while the run is ready, made from the same as that, and never more than one. A
//! failure counts all the same: a plugin that fails too often is given up, spare or not. A failure of the
//! spare is none of the plugin's.

use std::time::{Duration, Instant};

use super::change::{Applied, Change};
use super::lifecycle::{Hold, Lifecycle, Wants};
use super::replacing::{RETIRING_MAX, Retiring};
use super::restart::{RestartHistory, RestartMode, Verdict, deviation};
use super::run::{Failure, Phase, Run, later};
use super::seen::SHORTAGE_DELAY;
use super::{Action, Fact, Generation, StopReason};

/// What there is of a spare.
#[derive(Debug, Default)]
pub(super) struct Sparing {
    spare: Option<Box<Spare>>,
    /// Not before this is the next one made.
    not_before: Option<Instant>,
    /// Failures of spares, told apart from those of runs.
    history: RestartHistory,
    /// What the last one failed of, until one is ready.
    failure: Option<String>,
}

/// A run that would take the place of the one that serves.
#[derive(Debug)]
struct Spare {
    run: Run,
    /// What it is made from.
    made_of: Applied,
}

/// How a spare is, for those who ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpareView {
    /// Which run it is, where there is one.
    pub generation: Option<Generation>,
    /// Its process.
    pub pid: Option<u32>,
    /// Whether it would take over.
    pub ready: bool,
    /// What the last one failed of, until one is ready.
    pub failure: Option<String>,
    /// When the next one is made, where that must wait.
    pub next: Option<Instant>,
}

impl Lifecycle {
    /// The run of its spare.
    pub(super) fn spare(&self) -> Option<&Run> {
        self.sparing.spare.as_ref().map(|spare| &spare.run)
    }

    /// What its spare is made from.
    pub(super) fn spare_made_of(&self) -> Option<&Applied> {
        self.sparing.spare.as_ref().map(|spare| &spare.made_of)
    }

    /// How its spare is, where it is to have one.
    pub(super) fn spare_view(&self) -> Option<SpareView> {
        let run = self.spare();
        self.is_to_spare().then(|| SpareView {
            generation: run.map(|run| run.generation),
            pid: run.and_then(|run| run.pid),
            ready: run.is_some_and(Run::is_ready),
            failure: self.sparing.failure.clone(),
            next: self.sparing.not_before,
        })
    }

    /// Whether it is to have a spare beside the run it has.
    fn is_to_spare(&self) -> bool {
        self.spec.spare
            && self.is_ready()
            && self.wants() == Wants::Up
            && self.spec.restart.mode != RestartMode::Never
            && self.gates.problem.is_none()
    }

    /// Whether a spare should be spawned, and may be.
    pub(super) fn wants_spare(&self) -> bool {
        self.is_to_spare()
            && self.sparing.spare.is_none()
            && self.sparing.not_before.is_none()
            && !self.is_changing()
            && self.gates.block.is_none()
            && self.gates.waits.is_empty()
            && self.retiring.len() < RETIRING_MAX
    }

    /// Begins a spare.
    pub(super) fn spawn_spare(&mut self, now: Instant, out: &mut Vec<Action>) {
        let generation = self.next_generation();
        let made_of = self.applied.clone();
        out.push(Action::Spawn(self.name.clone(), generation, made_of.revision));
        let run = Run::new(generation, now, &self.spec.clocks);
        self.sparing.spare = Some(Box::new(Spare { run, made_of }));
    }

    /// Stops a spare that is none any more, or lets one go on that waits for what it requires.
    pub(super) fn settle_spare(&mut self, now: Instant, out: &mut Vec<Action>) {
        let useful = self.is_to_spare()
            && self.spare_made_of().is_some_and(|made_of| made_of.facets == self.applied.facets);
        if !useful {
            let reason = if self.gates.leaving { StopReason::Exit } else { StopReason::Stop };
            return self.withdraw_spare(now, reason, out);
        }
        let waits = self.gates.block.is_some() || !self.gates.waits.is_empty();
        let Some(spare) = self.sparing.spare.as_mut().filter(|_| !waits) else { return };
        if matches!(spare.run.phase, Phase::Parked) {
            spare.run.init(&self.name, now, &self.spec.clocks, out);
            self.starts += 1;
        }
    }

    /// Stops its spare; the next one, if there is to be one, is made at once.
    pub(super) fn withdraw_spare(&mut self, now: Instant, reason: StopReason, out: &mut Vec<Action>) {
        if let Some(spare) = self.sparing.spare.take() {
            let mut run = spare.run;
            run.stop(&self.name, now, &self.spec.clocks, reason, out);
            self.retiring.push(Retiring { run, served: false });
        }
    }

    /// Settings that make the same process are followed by the spare, too.
    pub(super) fn spare_keeps_pace(&mut self) {
        let applied = &self.applied;
        if let Some(spare) = self.sparing.spare.as_mut().filter(|it| it.made_of.facets == applied.facets) {
            spare.made_of = applied.clone();
        }
    }

    /// What was held against its spares counts no more.
    pub(super) fn forgive_spares(&mut self) {
        self.sparing.not_before = None;
        self.sparing.history.clear();
        self.sparing.failure = None;
    }

    /// The run that served failed: the spare takes its place at once, if it is ready.
    ///
    /// False where it is not, or where the plugin is to be given up for this failure.
    pub(super) fn take_over(&mut self, now: Instant, failure: &Failure, out: &mut Vec<Action>) -> bool {
        if failure.ready_for.is_none() || !self.spare().is_some_and(Run::is_ready) {
            return false;
        }
        let mut history = self.history.clone();
        let deviation = deviation(self.salt, &self.name, self.latest);
        let delay = match history.judge(&self.spec.restart, now, failure.ready_for, deviation) {
            Verdict::AtOnce => None,
            Verdict::After(delay) => Some(delay),
            Verdict::GiveUp { .. } | Verdict::StayDown => return false,
        };
        let Some(spare) = self.sparing.spare.take() else { return false };
        self.history = history;
        // The next spare is made as the next run would have been.
        self.sparing.not_before = delay.map(|delay| later(now, delay));
        match self.change {
            // A run that is to take over from this one goes on to do so.
            Change::None | Change::Due | Change::Replacing(_) | Change::Refused { .. } => {}
            Change::Reconfiguring { .. } => self.end_change_by_failure(failure),
        }
        self.end_mark();
        let (plugin, from, to) = (self.name.clone(), self.latest, spare.run.generation);
        // One that is being killed is still there; one that ended is not.
        if let Some(run) = self.run.take().filter(|run| run.stopping().is_some()) {
            self.retiring.push(Retiring { run, served: true });
        }
        self.hold = Hold::Nothing;
        self.latest = to;
        // However long it was spare, it serves only from here on.
        self.run = Some(Run { phase: Phase::Ready { since: now }, ..spare.run });
        out.push(Action::TakeOver { plugin, from, to });
        true
    }

    /// Something was seen of the spare.
    pub(super) fn spare_fact(&mut self, now: Instant, fact: Fact, out: &mut Vec<Action>) {
        let Some(spare) = &mut self.sparing.spare else { return };
        let run = &mut spare.run;
        match (fact, &mut run.phase) {
            (Fact::Spawned { pid }, _) => run.pid = Some(pid),
            (Fact::NotSpawned { reason, passing }, _) => {
                let generation = run.generation;
                self.sparing.spare = None;
                self.spare_failed(now, generation, None, reason, out);
                if passing {
                    // No fault of anybody's: it does not count as one.
                    self.sparing.history.clear();
                    self.sparing.not_before = Some(later(now, SHORTAGE_DELAY));
                }
            }
            (Fact::Exited(exit), _) => {
                let (generation, ready_for) = (run.generation, run.ready_for(now));
                self.last_exit = Some((generation, exit));
                self.sparing.spare = None;
                self.spare_failed(now, generation, ready_for, exit.to_string(), out);
            }
            (Fact::Described(declared), phase) => {
                if Some(&declared) != self.declared.as_ref() {
                    let reason = "it declares something else than the run that serves".to_owned();
                    return self.spare_refused(now, reason, out);
                }
                if matches!(phase, Phase::Describing { .. }) {
                    *phase = Phase::Parked;
                }
            }
            (Fact::DescribeRefused { reason }, Phase::Describing { .. })
            | (Fact::InitRefused { reason }, Phase::Initialising { .. }) => {
                self.spare_refused(now, reason, out);
            }
            (Fact::Initialised, phase @ Phase::Initialising { .. }) => {
                *phase = Phase::Ready { since: now };
                let generation = run.generation;
                self.sparing.failure = None;
                out.push(Action::SpareReady(self.name.clone(), generation));
            }
            (Fact::Progressed, _) => run.progressed(now, &self.spec.clocks),
            (Fact::Misbehaved { reason }, _) => self.spare_misbehaved(now, reason, out),
            // Out of place: it was not asked, or takes no calls.
            (
                Fact::DescribeRefused { .. }
                | Fact::InitRefused { .. }
                | Fact::Initialised
                | Fact::Reconfigured
                | Fact::ReconfigureRefused { .. }
                | Fact::Idle
                | Fact::Drained
                | Fact::ShutdownAnswered,
                _,
            ) => {}
        }
    }

    /// Gives up a spare that had its time, and lets the next one be made when it is time for that.
    pub(super) fn tick_spare(&mut self, now: Instant, out: &mut Vec<Action>) {
        if let Some(reason) = self.spare().and_then(|run| run.overdue(now)) {
            self.spare_misbehaved(now, reason, out);
        }
        if self.sparing.not_before.is_some_and(|at| at <= now) {
            self.sparing.not_before = None;
        }
    }

    /// When its spare, or the next one, must be looked at.
    pub(super) fn spare_deadline(&self) -> Option<Instant> {
        self.spare().and_then(Run::deadline).or(self.sparing.not_before)
    }

    /// The spare cannot go on: it is stopped as a run that is not ready.
    fn spare_refused(&mut self, now: Instant, reason: String, out: &mut Vec<Action>) {
        let Some(generation) = self.spare().map(|run| run.generation) else { return };
        self.withdraw_spare(now, StopReason::Misbehaved, out);
        self.spare_failed(now, generation, None, reason, out);
    }

    /// The spare is stuck or broke the protocol: it is killed.
    fn spare_misbehaved(&mut self, now: Instant, reason: String, out: &mut Vec<Action>) {
        let Some(spare) = self.sparing.spare.take() else { return };
        let mut run = spare.run;
        let (generation, ready_for) = (run.generation, run.ready_for(now));
        run.kill(&self.name, now, &self.spec.clocks, None, out);
        self.retiring.push(Retiring { run, served: false });
        self.spare_failed(now, generation, ready_for, reason, out);
    }

    /// The next spare is made when a run that failed so would be started again.
    fn spare_failed(
        &mut self,
        now: Instant,
        generation: Generation,
        ready_for: Option<Duration>,
        reason: String,
        out: &mut Vec<Action>,
    ) {
        let policy = &self.spec.restart;
        let deviation = deviation(self.salt, &self.name, self.latest);
        let delay = match self.sparing.history.judge(policy, now, ready_for, deviation) {
            Verdict::AtOnce => Duration::ZERO,
            Verdict::After(delay) => delay,
            Verdict::GiveUp { .. } | Verdict::StayDown => policy.probe_interval,
        };
        self.sparing.not_before = Some(later(now, delay));
        self.sparing.failure = Some(reason.clone());
        out.push(Action::SpareFailed(self.name.clone(), generation, reason));
    }
}
