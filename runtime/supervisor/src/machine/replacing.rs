//! Runs beside the one that serves: a candidate that is to take over, and those on their way out.
//!
//! ```text
//! candidate      spawned, described, waits for what it requires, init sent
//!   |  \ initialised --------------> it is the run; the one before retires, drained first
//!   |   \ the run before it dies --> it is the run, however far it is
//!   `-- anything else -------------> it retires; the run goes on, marked
//! retiring       the steps of a stop, and its end; it changes nothing else
//! ```
//!
//! There is a candidate only while the run is ready, and never more than one.

use std::time::Instant;

use plugd_protocol::PluginName;

use super::change::{Applied, Change};
use super::graph::Needs;
use super::lifecycle::{Gates, Hold, Lifecycle};
use super::run::{Failure, Phase, Run, later, seconds};
use super::{Action, Declared, Exit, Fact, Generation, StopReason};

/// So many runs may be on their way out before the next candidate is spawned: one that is drained,
/// and one that came to nothing or is hard to end.
pub(super) const RETIRING_MAX: usize = 2;

/// A run that is to take over from the one that serves.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) run: Run,
    /// What it is made from.
    pub(super) target: Applied,
    /// What it says in its manifest, as soon as it is described.
    pub(super) declared: Option<Declared>,
    /// Until when it waits for what it requires, as soon as it is described.
    waits_until: Option<Instant>,
    /// What it waits for, as of the last settling.
    waits: Vec<PluginName>,
}

/// A run on its way out beside the plugin's own.
#[derive(Debug)]
pub(super) struct Retiring {
    pub(super) run: Run,
    /// It took calls once; a candidate or a spare that came to nothing did not.
    pub(super) served: bool,
}

impl Candidate {
    /// When it must be looked at next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let waits_until = self.waits_until.filter(|_| matches!(self.run.phase, Phase::Parked));
        self.run.deadline().or(waits_until)
    }
}

impl Lifecycle {
    /// The run that is to take over.
    pub(super) fn candidate(&self) -> Option<&Candidate> {
        match &self.change {
            Change::Replacing(candidate) => Some(candidate),
            Change::None | Change::Due | Change::Reconfiguring { .. } | Change::Refused { .. } => None,
        }
    }

    fn take_candidate(&mut self) -> Option<Candidate> {
        match std::mem::take(&mut self.change) {
            Change::Replacing(candidate) => Some(*candidate),
            other @ (Change::None | Change::Due | Change::Reconfiguring { .. } | Change::Refused { .. }) => {
                self.change = other;
                None
            }
        }
    }

    /// What its candidate requires, as soon as that is known.
    pub(super) fn candidate_needs(&self) -> Option<Needs> {
        let declared = self.candidate()?.declared.as_ref()?;
        Some(Needs::of(&self.spec, Some(declared)))
    }

    /// Whether its candidate waits for what it requires.
    pub(super) fn candidate_is_parked(&self) -> bool {
        self.candidate().is_some_and(|candidate| matches!(candidate.run.phase, Phase::Parked))
    }

    /// Whether a candidate should be spawned, and may be.
    pub(super) fn wants_candidate(&self) -> bool {
        matches!(self.change, Change::Due) && self.retiring.len() < RETIRING_MAX
    }

    /// Begins a run that is to take over.
    pub(super) fn spawn_candidate(&mut self, now: Instant, out: &mut Vec<Action>) {
        let generation = self.next_generation();
        let target = Applied::of(&self.spec);
        out.push(Action::Spawn(self.name.clone(), generation, target.revision));
        self.change = Change::Replacing(Box::new(Candidate {
            run: Run::new(generation, now, &self.spec.clocks),
            target,
            declared: None,
            waits_until: None,
            waits: Vec::new(),
        }));
    }

    /// Refuses a change that no candidate can be made for.
    pub(super) fn settle_due(&mut self) {
        let stuck = |retiring: &Retiring| retiring.run.is_abandoned();
        if matches!(self.change, Change::Due) && !self.wants_candidate() && self.retiring.iter().all(stuck) {
            let reason = format!("{} earlier runs are still there after SIGKILL", self.retiring.len());
            self.change = Change::Refused { reason };
        }
    }

    /// Does with a parked candidate what those around it allow or demand now.
    pub(super) fn settle_candidate(&mut self, now: Instant, gates: Gates, out: &mut Vec<Action>) {
        if !self.candidate_is_parked() {
            return;
        }
        let refusal = gates.problem.map(|problem| problem.to_string());
        if let Some(reason) = refusal.or_else(|| gates.block.map(|block| block.to_string())) {
            return self.candidate_refused(now, &reason, out);
        }
        let Change::Replacing(candidate) = &mut self.change else { return };
        candidate.waits = gates.waits;
        if candidate.waits.is_empty() {
            candidate.run.init(&self.name, now, &self.spec.clocks, out);
            self.starts += 1;
        }
    }

    /// Something was seen of the candidate.
    pub(super) fn candidate_fact(&mut self, now: Instant, fact: Fact, out: &mut Vec<Action>) {
        let Change::Replacing(candidate) = &mut self.change else { return };
        match (fact, &mut candidate.run.phase) {
            (Fact::Spawned { pid }, _) => candidate.run.pid = Some(pid),
            (Fact::NotSpawned { reason, .. }, _) => self.candidate_ended(&reason),
            (Fact::Exited(exit), _) => {
                self.last_exit = Some((candidate.run.generation, exit));
                let ended = candidate.run.ended_with(exit);
                self.candidate_ended(&ended);
            }
            (Fact::Described(declared), phase) => {
                if matches!(phase, Phase::Describing { .. }) {
                    *phase = Phase::Parked;
                    candidate.waits_until = Some(later(now, self.spec.clocks.init));
                }
                candidate.declared = Some(declared);
            }
            (Fact::DescribeRefused { reason }, Phase::Describing { .. })
            | (Fact::InitRefused { reason }, Phase::Initialising { .. }) => {
                self.candidate_refused(now, &reason, out);
            }
            (Fact::Initialised, Phase::Initialising { .. }) => self.switch(now, out),
            (Fact::Progressed, _) => candidate.run.progressed(now, &self.spec.clocks),
            (Fact::Misbehaved { reason }, _) => self.candidate_misbehaved(now, &reason, out),
            // Out of place: it was not asked, or takes no calls yet.
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

    /// Gives up a candidate that had its time.
    pub(super) fn tick_candidate(&mut self, now: Instant, out: &mut Vec<Action>) {
        let Some(candidate) = self.candidate() else { return };
        if let Some(reason) = candidate.run.overdue(now) {
            self.candidate_misbehaved(now, &reason, out);
        } else if candidate.deadline().is_some_and(|until| until <= now) {
            let names: Vec<&str> = candidate.waits.iter().map(PluginName::as_str).collect();
            let time = seconds(self.spec.clocks.init);
            let reason = format!("requires {}, which was not ready in {time}", names.join(", "));
            self.candidate_refused(now, &reason, out);
        }
    }

    /// The candidate takes over; the run that served is stopped with all graces.
    fn switch(&mut self, now: Instant, out: &mut Vec<Action>) {
        let Some(mut candidate) = self.take_candidate() else { return };
        let (plugin, to) = (self.name.clone(), candidate.run.generation);
        candidate.run.phase = Phase::Ready { since: now };
        if let Some(mut run) = self.run.take() {
            out.push(Action::Switch { plugin, from: run.generation, to });
            run.stop(&self.name, now, &self.spec.clocks, StopReason::Reload, out);
            self.retiring.push(Retiring { run, served: true });
        }
        self.last_failure = None;
        // Also where no facet shows what has changed.
        self.withdraw_spare(now, StopReason::Reload, out);
        self.become_run(candidate);
    }

    /// The run that served failed: the candidate takes its place, however far it is.
    ///
    /// False where there is none. The failure counts, and is followed by no delay: the next run is
    /// on its way, and made from something else.
    pub(super) fn succeed(&mut self, now: Instant, failure: &Failure) -> bool {
        let Some(candidate) = self.take_candidate() else { return false };
        self.count(now, failure);
        // One that is being killed is still there; one that ended is not.
        if let Some(run) = self.run.take().filter(|run| run.stopping().is_some()) {
            self.retiring.push(Retiring { run, served: true });
        }
        self.hold = Hold::Nothing;
        self.become_run(candidate);
        true
    }

    fn become_run(&mut self, candidate: Candidate) {
        let Candidate { run, target, declared, .. } = candidate;
        self.latest = run.generation;
        self.run = Some(run);
        self.declared = declared;
        self.stale = false;
        self.applied = target;
    }

    /// Stops a candidate that is not needed any more; the change it was made for is still due.
    pub(super) fn withdraw_candidate(&mut self, now: Instant, reason: StopReason, out: &mut Vec<Action>) {
        if let Some(Candidate { mut run, .. }) = self.take_candidate() {
            run.stop(&self.name, now, &self.spec.clocks, reason, out);
            self.retiring.push(Retiring { run, served: false });
            self.change = Change::Due;
        }
    }

    /// The candidate cannot go on: it is stopped as a run that is not ready.
    fn candidate_refused(&mut self, now: Instant, reason: &str, out: &mut Vec<Action>) {
        self.withdraw_candidate(now, StopReason::Misbehaved, out);
        self.candidate_ended(reason);
    }

    /// The candidate is stuck or broke the protocol: it is killed.
    fn candidate_misbehaved(&mut self, now: Instant, reason: &str, out: &mut Vec<Action>) {
        if let Some(Candidate { mut run, .. }) = self.take_candidate() {
            run.kill(&self.name, now, &self.spec.clocks, None, out);
            self.retiring.push(Retiring { run, served: false });
        }
        self.candidate_ended(reason);
    }

    fn candidate_ended(&mut self, reason: &str) {
        self.change = Change::Refused { reason: format!("the new one failed: {reason}") };
    }

    /// Something was seen of a run on its way out; what is over already changes nothing.
    pub(super) fn retiring_fact(
        &mut self,
        now: Instant,
        generation: Generation,
        fact: &Fact,
        out: &mut Vec<Action>,
    ) {
        let position = self.retiring.iter().position(|retiring| retiring.run.generation == generation);
        let Some(at) = position else { return };
        let run = &mut self.retiring[at].run;
        match fact {
            Fact::Spawned { pid } => run.pid = Some(*pid),
            Fact::NotSpawned { .. } => self.retired(now, at, None),
            Fact::Exited(exit) => self.retired(now, at, Some(*exit)),
            Fact::Misbehaved { .. } => run.kill(&self.name, now, &self.spec.clocks, None, out),
            Fact::Drained | Fact::ShutdownAnswered => {
                run.answered(&self.name, now, &self.spec.clocks, fact, out);
            }
            Fact::Described(_)
            | Fact::DescribeRefused { .. }
            | Fact::Initialised
            | Fact::InitRefused { .. }
            | Fact::Progressed
            | Fact::Reconfigured
            | Fact::ReconfigureRefused { .. }
            | Fact::Idle => {}
        }
    }

    fn retired(&mut self, now: Instant, at: usize, exit: Option<Exit>) {
        let Retiring { run, served } = self.retiring.remove(at);
        if let Some(exit) = exit {
            self.last_exit = Some((run.generation, exit));
        }
        if served {
            self.last_stop = self.stop_outcome(now, &run).or(self.last_stop);
        }
    }

    /// Takes the steps of stops that had their time.
    pub(super) fn tick_retiring(&mut self, now: Instant, out: &mut Vec<Action>) {
        for at in 0..self.retiring.len() {
            let is_due = |run: &Run| run.deadline().is_some_and(|until| until <= now);
            while is_due(&self.retiring[at].run) {
                self.retiring[at].run.next_step(&self.name, now, &self.spec.clocks, out);
            }
            let Retiring { run, served } = &self.retiring[at];
            if *served && run.is_abandoned() {
                self.last_stop = self.stop_outcome(now, run).or(self.last_stop);
            }
        }
    }
}
