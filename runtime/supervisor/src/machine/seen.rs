//! What is seen of a plugin's runs, and what time makes of it: progress, failures, the next try.

use std::time::{Duration, Instant};

use super::change::Change;
use super::lifecycle::{Hold, Lifecycle, Probe};
use super::restart::{RestartMode, Verdict, deviation};
use super::run::{Failure, Phase, Run, later, seconds};
use super::{Action, EXIT_PERMANENT, Exit, Fact, Generation, StopOutcome, StopReason};

/// When a start is tried again that this machine had not enough of something for.
pub(super) const SHORTAGE_DELAY: Duration = Duration::from_secs(1);

impl Lifecycle {
    /// Something was seen of a run; of one that is over it changes nothing.
    pub(super) fn fact(&mut self, now: Instant, generation: Generation, fact: Fact, out: &mut Vec<Action>) {
        if self.run.as_ref().is_some_and(|run| run.generation == generation) {
            self.run_fact(now, fact, out);
        } else if self.candidate().is_some_and(|candidate| candidate.run.generation == generation) {
            self.candidate_fact(now, fact, out);
        } else if self.spare().is_some_and(|run| run.generation == generation) {
            self.spare_fact(now, fact, out);
        } else {
            self.retiring_fact(now, generation, &fact, out);
        }
    }

    /// Something was seen of the run.
    fn run_fact(&mut self, now: Instant, fact: Fact, out: &mut Vec<Action>) {
        let changing = self.is_changing();
        let Some(run) = &mut self.run else { return };
        match (fact, &mut run.phase) {
            (Fact::Spawned { pid }, _) => run.pid = Some(pid),
            (Fact::NotSpawned { reason, passing }, _) => self.not_spawned(now, reason, passing),
            (Fact::Exited(exit), _) => self.exited(now, exit, out),
            (Fact::Described(declared), phase @ Phase::Describing { .. }) => {
                *phase = Phase::Parked;
                self.declared = Some(declared);
                self.described = false;
            }
            (Fact::Described(declared), Phase::Parked | Phase::Initialising { .. } | Phase::Ready { .. }) => {
                self.declared = Some(declared);
                // A spare would declare what this one did at first.
                self.withdraw_spare(now, StopReason::Reload, out);
            }
            (Fact::DescribeRefused { reason }, Phase::Describing { .. })
            | (Fact::InitRefused { reason }, Phase::Initialising { .. }) => {
                self.hold = Hold::Disabled { reason };
                self.stop_run(now, StopReason::Misbehaved, out);
            }
            (Fact::Initialised, phase @ Phase::Initialising { .. }) => {
                *phase = Phase::Ready { since: now };
                self.last_failure = None;
            }
            (Fact::Progressed, _) => run.progressed(now, &self.spec.clocks),
            (Fact::Reconfigured, _) => self.reconfigured(now, out),
            (Fact::ReconfigureRefused { reason }, _) => {
                self.reconfigure_refused(now, format!("reload was refused: {reason}"), out);
            }
            (Fact::Idle, Phase::Ready { .. }) if !self.spec.eager && !changing => {
                self.up = false;
                self.stop_run(now, StopReason::Idle, out);
            }
            (Fact::Misbehaved { reason }, _) => self.misbehaved(now, reason, out),
            (fact @ (Fact::Drained | Fact::ShutdownAnswered), _) => {
                run.answered(&self.name, now, &self.spec.clocks, &fact, out);
            }
            // Too late or out of place: the phase it belongs to is over.
            (
                Fact::Described(_)
                | Fact::DescribeRefused { .. }
                | Fact::Initialised
                | Fact::InitRefused { .. }
                | Fact::Idle,
                _,
            ) => {}
        }
    }

    /// Does what time demands; afterwards its deadline lies ahead.
    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<Action>) {
        while let Some(run) = self.run.as_mut().filter(|run| run.deadline().is_some_and(|until| until <= now))
        {
            if let Some(reason) = run.overdue(now) {
                self.misbehaved(now, reason, out);
                continue;
            }
            run.next_step(&self.name, now, &self.spec.clocks, out);
            if run.is_abandoned() {
                self.note_stop(now);
            }
        }
        self.tick_reconfiguring(now, out);
        self.tick_candidate(now, out);
        self.tick_spare(now, out);
        self.tick_retiring(now, out);
        match &mut self.hold {
            Hold::Backoff { until, .. } if *until <= now => self.hold = Hold::Nothing,
            Hold::Failed { probe, .. } if matches!(*probe, Probe::At(at) if at <= now) => *probe = Probe::Due,
            Hold::Nothing | Hold::Backoff { .. } | Hold::Failed { .. } | Hold::Disabled { .. } => {}
        }
        if self.reset_at().is_some_and(|at| at <= now) {
            self.history.clear();
        }
    }

    /// When [`tick`](Lifecycle::tick) has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let change = match &self.change {
            Change::Replacing(candidate) => candidate.deadline(),
            Change::Reconfiguring { until, .. } => Some(*until),
            Change::None | Change::Due | Change::Refused { .. } => None,
        };
        let run = self.run.as_ref().and_then(Run::deadline);
        let retiring = self.retiring.iter().filter_map(|retiring| retiring.run.deadline()).min();
        let others = [change, self.spare_deadline(), retiring];
        others.into_iter().chain([run, self.next_try(), self.reset_at()]).flatten().min()
    }

    /// When it is tried again, if that is settled.
    pub(super) fn next_try(&self) -> Option<Instant> {
        match self.hold {
            Hold::Backoff { until, .. } => Some(until),
            Hold::Failed { probe: Probe::At(at), .. } => Some(at),
            Hold::Failed { .. } | Hold::Nothing | Hold::Disabled { .. } => None,
        }
    }

    /// When it will have been ready long enough for its failures to be forgotten.
    fn reset_at(&self) -> Option<Instant> {
        let run = self.run.as_ref().filter(|_| !self.history.is_clear())?;
        match run.phase {
            Phase::Ready { since } => Some(later(since, self.spec.restart.reset_after)),
            Phase::Describing { .. } | Phase::Parked | Phase::Initialising { .. } | Phase::Stopping(_) => {
                None
            }
        }
    }

    fn misbehaved(&mut self, now: Instant, reason: String, out: &mut Vec<Action>) {
        let Some(run) = &mut self.run else { return };
        let failure = Failure { reason, ready_for: run.ready_for(now) };
        run.kill(&self.name, now, &self.spec.clocks, Some(failure.clone()), out);
        if !self.take_over(now, &failure, out) && !self.succeed(now, &failure) {
            self.end_change_by_failure(&failure);
        }
    }

    fn not_spawned(&mut self, now: Instant, reason: String, passing: bool) {
        let asked = self.run.as_ref().and_then(Run::stopping).is_some_and(|stop| stop.failure.is_none());
        self.note_stop(now);
        let failure = Failure { reason, ready_for: None };
        if self.succeed(now, &failure) {
            return;
        }
        self.end_run();
        if !asked && passing {
            // No fault of the plugin's: it does not count as one.
            self.last_failure = Some(failure.reason.clone());
            self.hold = Hold::Backoff { until: later(now, SHORTAGE_DELAY), reason: failure.reason };
        } else if !asked {
            self.hold = Hold::Failed { reason: failure.reason, probe: Probe::Never };
        }
    }

    fn exited(&mut self, now: Instant, exit: Exit, out: &mut Vec<Action>) {
        let Some(run) = &self.run else { return };
        self.last_exit = Some((run.generation, exit));
        let failure = Failure { reason: run.ended_with(exit), ready_for: run.ready_for(now) };
        self.note_stop(now);
        let permanent = exit == Exit::Code(EXIT_PERMANENT) && self.spec.restart.mode != RestartMode::Always;
        if (!permanent && self.take_over(now, &failure, out)) || self.succeed(now, &failure) {
            return;
        }
        self.end_change_by_failure(&failure);
        let Some(run) = self.end_run() else { return };
        match run.phase {
            Phase::Stopping(stopping) => {
                if let Some(failure) = stopping.failure {
                    self.failed(now, failure);
                }
            }
            Phase::Describing { .. } | Phase::Parked | Phase::Initialising { .. } | Phase::Ready { .. } => {
                if permanent {
                    let reason = format!("exited with {EXIT_PERMANENT}: permanent");
                    self.hold = Hold::Failed { reason, probe: Probe::Never };
                } else {
                    self.failed(now, failure);
                }
            }
        }
    }

    fn end_run(&mut self) -> Option<Run> {
        self.end_mark();
        if std::mem::take(&mut self.stale) {
            self.declared = None;
            self.described = !self.held;
        }
        self.run.take()
    }

    /// Notes how an asked-for stop of its run ended.
    fn note_stop(&mut self, now: Instant) {
        let outcome = self.run.as_ref().and_then(|run| self.stop_outcome(now, run));
        self.last_stop = outcome.or(self.last_stop);
    }

    /// How an asked-for stop of a run ended, if it was one and is not known yet.
    pub(super) fn stop_outcome(&self, now: Instant, run: &Run) -> Option<StopOutcome> {
        let known = self.last_stop.is_some_and(|last| last.generation == run.generation);
        let stopping = run.stopping().filter(|stopping| !known && stopping.failure.is_none())?;
        let took = now.saturating_duration_since(stopping.since);
        Some(StopOutcome { generation: run.generation, ended: stopping.step.ended(), took })
    }

    /// Counts a failure, and says what would follow.
    pub(super) fn count(&mut self, now: Instant, failure: &Failure) -> Verdict {
        let deviation = deviation(self.salt, &self.name, self.latest);
        self.last_failure = Some(failure.reason.clone());
        self.history.judge(&self.spec.restart, now, failure.ready_for, deviation)
    }

    fn failed(&mut self, now: Instant, failure: Failure) {
        let verdict = self.count(now, &failure);
        let Failure { reason, .. } = failure;
        let policy = &self.spec.restart;
        self.hold = match verdict {
            Verdict::AtOnce => Hold::Nothing,
            Verdict::After(delay) => Hold::Backoff { until: later(now, delay), reason },
            Verdict::StayDown => Hold::Failed { reason, probe: Probe::Never },
            Verdict::GiveUp { failures } => {
                let reason = match self.history.given_up() {
                    Some(_) => format!("crash loop: the latest try failed too; last: {reason}"),
                    None => {
                        let window = seconds(policy.window);
                        let plural = if failures == 1 { "" } else { "s" };
                        format!("crash loop: {failures} failure{plural} in {window}; last: {reason}")
                    }
                };
                self.history.give_up(&reason);
                Hold::Failed { reason, probe: Probe::At(later(now, policy.probe_interval)) }
            }
        };
    }
}
