//! What is seen of a plugin's runs, and what time makes of it: progress, failures, the next try.

use std::time::{Duration, Instant};

use super::lifecycle::{Hold, Lifecycle, Probe, Wants};
use super::restart::{RestartMode, Verdict, deviation};
use super::run::{Failure, Phase, Run, Step, later};
use super::{Action, EXIT_PERMANENT, Exit, Fact, Generation, StopOutcome, StopReason};

impl Lifecycle {
    /// Something was seen of a run; of an older one it changes nothing.
    pub(super) fn fact(&mut self, now: Instant, generation: Generation, fact: Fact, out: &mut Vec<Action>) {
        let Some(run) = self.run.as_mut().filter(|run| run.generation == generation) else { return };
        match (fact, &mut run.phase) {
            (Fact::Spawned { pid }, _) => run.pid = Some(pid),
            (Fact::NotSpawned { reason, passing }, _) => self.not_spawned(now, reason, passing),
            (Fact::Exited(exit), _) => self.exited(now, exit),
            (Fact::Described(declared), phase @ Phase::Describing { .. }) => {
                *phase = Phase::Parked;
                self.declared = Some(declared);
                self.described = false;
            }
            (Fact::Described(declared), Phase::Parked | Phase::Initialising { .. } | Phase::Ready { .. }) => {
                self.declared = Some(declared)
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
            (Fact::Progressed, Phase::Initialising { since, until }) => {
                let clocks = &self.spec.clocks;
                *until = later(now, clocks.init).min(later(*since, clocks.init_max)).max(*until);
            }
            (Fact::Idle, Phase::Ready { .. }) if !self.spec.eager => {
                self.up = false;
                self.stop_run(now, StopReason::Idle, out);
            }
            (Fact::Misbehaved { reason }, _) => self.misbehaved(now, reason, out),
            (Fact::Drained, Phase::Stopping(stopping)) => {
                if matches!(stopping.step, Step::Draining { .. }) {
                    run.next_step(&self.name, now, &self.spec.clocks, out);
                }
            }
            (Fact::ShutdownAnswered, Phase::Stopping(stopping)) => {
                if matches!(stopping.step, Step::Leaving { .. }) {
                    run.next_step(&self.name, now, &self.spec.clocks, out);
                }
            }
            // Too late or out of place: the phase it belongs to is over.
            (
                Fact::Described(_)
                | Fact::DescribeRefused { .. }
                | Fact::Initialised
                | Fact::InitRefused { .. }
                | Fact::Progressed
                | Fact::Idle
                | Fact::Drained
                | Fact::ShutdownAnswered,
                _,
            ) => {}
        }
    }

    /// Does what time demands; afterwards its deadline lies ahead.
    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<Action>) {
        while let Some(run) = self.run.as_mut().filter(|run| run.deadline().is_some_and(|until| until <= now))
        {
            match run.phase {
                Phase::Describing { .. } => {
                    let reason = format!("no describe answer in {}", seconds(self.spec.clocks.describe));
                    self.misbehaved(now, reason, out);
                }
                Phase::Initialising { since, until } => {
                    let reason = format!("no init answer in {}", seconds(until.duration_since(since)));
                    self.misbehaved(now, reason, out);
                }
                Phase::Stopping(_) => {
                    run.next_step(&self.name, now, &self.spec.clocks, out);
                    if run.is_abandoned() {
                        self.note_stop(now);
                    }
                }
                Phase::Parked | Phase::Ready { .. } => break,
            }
        }
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
        let run = self.run.as_ref().and_then(Run::deadline);
        [run, self.next_try(), self.reset_at()].into_iter().flatten().min()
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
        if let Some(run) = &mut self.run {
            let failure = Failure { reason, ready_for: run.ready_for(now) };
            run.kill(&self.name, now, &self.spec.clocks, Some(failure), out);
        }
    }

    fn not_spawned(&mut self, now: Instant, reason: String, passing: bool) {
        let asked = self.run.as_ref().and_then(Run::stopping).is_some_and(|stop| stop.failure.is_none());
        self.note_stop(now);
        self.end_run();
        if !asked && passing {
            self.failed(now, Failure { reason, ready_for: None });
        } else if !asked {
            self.hold = Hold::Failed { reason, probe: Probe::Never };
        }
    }

    fn exited(&mut self, now: Instant, exit: Exit) {
        self.last_exit = Some((self.generation, exit));
        self.note_stop(now);
        let wants = self.wants();
        let Some(run) = self.end_run() else { return };
        let ready_for = run.ready_for(now);
        match run.phase {
            Phase::Stopping(stopping) => {
                if let Some(failure) = stopping.failure {
                    self.failed(now, failure);
                }
            }
            Phase::Parked if wants != Wants::Up => {}
            Phase::Describing { .. } | Phase::Parked | Phase::Initialising { .. } | Phase::Ready { .. } => {
                if exit == Exit::Code(EXIT_PERMANENT) && self.spec.restart.mode != RestartMode::Always {
                    let reason = format!("exited with {EXIT_PERMANENT}: permanent");
                    self.hold = Hold::Failed { reason, probe: Probe::Never };
                } else {
                    self.failed(now, Failure { reason: exit.to_string(), ready_for });
                }
            }
        }
    }

    fn end_run(&mut self) -> Option<Run> {
        if std::mem::take(&mut self.stale) {
            self.declared = None;
            self.described = !self.held;
        }
        self.run.take()
    }

    /// Notes how an asked-for stop ended, once.
    fn note_stop(&mut self, now: Instant) {
        let Some(run) = &self.run else { return };
        let known = self.last_stop.is_some_and(|last| last.generation == run.generation);
        if let Some(stopping) = run.stopping().filter(|stopping| !known && stopping.failure.is_none()) {
            let took = now.saturating_duration_since(stopping.since);
            let ended = stopping.step.ended();
            self.last_stop = Some(StopOutcome { generation: run.generation, ended, took });
        }
    }

    fn failed(&mut self, now: Instant, failure: Failure) {
        let Failure { reason, ready_for } = failure;
        let policy = &self.spec.restart;
        let deviation = deviation(self.salt, &self.name, self.generation);
        self.last_failure = Some(reason.clone());
        self.hold = match self.history.judge(policy, now, ready_for, deviation) {
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

/// A duration in seconds, as messages have it.
fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}
