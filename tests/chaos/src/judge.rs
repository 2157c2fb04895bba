//! What must hold, and whether it did.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::ledger::Account;
use crate::load::{LOST, Span, Tally};
use crate::numbers::percentile;
use crate::operator::Operated;
use crate::processes::{self, Marked};
use crate::sandbox::Sandbox;
use crate::trial::DESCRIPTORS_SPARE;
use crate::trouble::{Outage, Trouble};
use crate::{Plan, Report};

/// The memory of a daemon that no file backs, after the load, at most: fifteen plugins, the
/// latest events and log lines, and what the allocator does not give back at once.
const ANONYMOUS_KIB_MAX: u64 = 64 * 1024;

/// How much slower calls to plugins that nobody touches may be in trouble than in peace.
const SLOWER_MAX: f64 = 3.0;

/// Evidence of one kind that is shown; the rest is only counted.
const SHOWN: usize = 5;

/// All that a trial saw.
pub(crate) struct Evidence {
    pub(crate) peace: Tally,
    pub(crate) troubled: Tally,
    pub(crate) trouble: Trouble,
    pub(crate) operated: Operated,
    pub(crate) cancelled: Operated,
    pub(crate) before: Household,
    pub(crate) after: Household,
    /// Whether plugins ran in cgroups of their own.
    pub(crate) cgroups: bool,
    /// When the last daemon was started, in ticks since boot.
    pub(crate) last_started: u64,
    /// How the last daemon ended.
    pub(crate) status: ExitStatus,
    pub(crate) left: Vec<Marked>,
    pub(crate) account: Account,
    /// What the daemons said.
    pub(crate) log: String,
}

/// What a daemon holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Household {
    pub(crate) descriptors: usize,
    pub(crate) anonymous_kib: u64,
}

impl Household {
    pub(crate) fn of(pid: u32, sandbox: &Sandbox) -> io::Result<Household> {
        let descriptors = processes::descriptors(pid, &sandbox.logs())?;
        Ok(Household { descriptors, anonymous_kib: processes::anonymous_kib(pid)? })
    }
}

/// Whether it holds no more descriptors than it did.
pub(crate) fn as_before(before: &Household, after: &Household) -> bool {
    before.descriptors.abs_diff(after.descriptors) <= DESCRIPTORS_SPARE
}

/// The known limit: what made a session of its own under a daemon that was killed, without a cgroup.
pub(crate) fn excused(left: &Marked, last_started: u64, cgroups: bool) -> bool {
    !cgroups && left.own_session && left.started < last_started
}

/// Says what was measured and what did not hold.
pub(crate) fn judge(plan: &Plan, evidence: &Evidence) -> Report {
    let mut report = Report::default();
    ended(evidence, &mut report);
    executed(evidence, &mut report);
    left_behind(evidence, &mut report);
    in_time(plan, evidence, &mut report);
    said(evidence, &mut report);
    report
}

/// Every call ended once, with a name; without a named cause none was cut off.
fn ended(evidence: &Evidence, report: &mut Report) {
    let Evidence { peace, troubled, trouble, operated, cancelled, .. } = evidence;
    report.figure("plugin_kills", trouble.plugin_kills);
    report.figure("daemon_kills", trouble.outages.len());
    for (what, count) in operated.commands.iter().chain(&cancelled.commands) {
        report.figure(&format!("operator.{what}"), count);
    }
    report.figure("calls_in_peace", peace.calls);
    report.figure("calls_in_trouble", troubled.calls);
    let mut endings: BTreeMap<&str, u64> = BTreeMap::new();
    for (ending, count) in peace.endings.iter().chain(&troubled.endings) {
        *endings.entry(ending).or_default() += count;
    }
    let ends: u64 = endings.values().sum();
    report.must(ends == peace.calls + troubled.calls, || format!("{ends} endings of all calls"));
    for (ending, count) in &endings {
        report.figure(&format!("ended.{ending}"), count);
    }
    report.none("calls without a named ending", peace.broken.iter().chain(&troubled.broken));
    report.none("commands that went wrong", operated.broken.iter().chain(&cancelled.broken));
    let cut_off = peace.lost.iter().map(|span| (span, &[][..]));
    let cut_off = cut_off.chain(troubled.lost.iter().map(|span| (span, &trouble.outages[..])));
    let unexplained = cut_off.filter(|(span, outages)| !outages.iter().any(|outage| outage.touches(span)));
    report
        .none("connections lost although no daemon was killed", unexplained.map(|(span, _)| describe(span)));
}

/// Nothing ran twice, and callers were told the truth.
fn executed(evidence: &Evidence, report: &mut Report) {
    let Account { executions, twice, lost, denied } = &evidence.account;
    report.figure("executions_noted", executions);
    report.figure("executed_twice", twice.len());
    report.none("calls that ran twice", twice.iter());
    report.none("calls that were answered and never ran", lost.iter());
    report.none("calls that ran although the caller was told that they did not", denied.iter());
}

/// No process is left, no descriptor, no memory without bound.
fn left_behind(evidence: &Evidence, report: &mut Report) {
    let Evidence { left, before, after, last_started, cgroups, .. } = evidence;
    let (known, unknown): (Vec<&Marked>, Vec<&Marked>) =
        left.iter().partition(|left| excused(left, *last_started, *cgroups));
    report.figure("cgroups", if *cgroups { "yes" } else { "no" });
    report.figure("processes_left", unknown.len());
    report.figure("processes_left_known_limit", known.len());
    report.none("processes left behind", unknown.iter().map(|left| shown(left)));
    report.figure("descriptors_before", before.descriptors);
    report.figure("descriptors_after", after.descriptors);
    report.must(as_before(before, after), || {
        format!("descriptors: {} before the load, {} after it", before.descriptors, after.descriptors)
    });
    report.figure("anonymous_memory_before_kib", before.anonymous_kib);
    report.figure("anonymous_memory_after_kib", after.anonymous_kib);
    report.must(after.anonymous_kib <= ANONYMOUS_KIB_MAX, || {
        format!("memory after the load: {} KiB, more than {ANONYMOUS_KIB_MAX} KiB", after.anonymous_kib)
    });
}

/// Calls to plugins that nobody touches went well, and nearly as fast as in peace.
fn in_time(plan: &Plan, evidence: &Evidence, report: &mut Report) {
    let outages = &evidence.trouble.outages;
    let apart = |span: &&Span| !outages.iter().any(|outage| outage.touches(span));
    let peace: Vec<&Span> = evidence.peace.calm.iter().collect();
    let troubled: Vec<&Span> = evidence.troubled.calm.iter().filter(apart).collect();
    let failed = peace.iter().chain(&troubled).filter(|span| span.ending != "ok" && span.ending != LOST);
    report.none("calls that failed at a plugin that nobody touched", failed.map(|span| describe(span)));
    let p99 = |spans: &[&Span]| {
        let mut times: Vec<Duration> = spans.iter().map(|span| span.ended - span.began).collect();
        percentile(&mut times, 99)
    };
    if let (Some(peace), Some(troubled)) = (p99(&peace), p99(&troubled)) {
        let ratio = troubled.as_secs_f64() / peace.as_secs_f64();
        report.figure("calm_p99_in_peace_ms", milliseconds(peace));
        report.figure("calm_p99_in_trouble_ms", milliseconds(troubled));
        report.figure("calm_p99_ratio", format!("{ratio:.2}"));
        report.must(!plan.judge_speed || ratio <= SLOWER_MAX, || {
            format!("calls to plugins that nobody touched were {ratio:.2} times slower, not {SLOWER_MAX}")
        });
    }
    let longest = |of: fn(&Outage) -> Duration| outages.iter().map(of).max();
    if let Some(listening) = longest(|outage| outage.listening - outage.from) {
        report.figure("daemon_down_longest_ms", milliseconds(listening));
    }
    if let Some(serving) = longest(|outage| outage.to - outage.from) {
        report.figure("daemon_down_to_answers_longest_ms", milliseconds(serving));
    }
}

/// The daemons said nothing that is their own fault, and the last one left in order.
fn said(evidence: &Evidence, report: &mut Report) {
    let faults = evidence.log.lines().filter(|line| line.contains("ERROR") || line.contains("panicked"));
    report.none("errors in the daemons' log", faults);
    let status = evidence.status;
    report.must(status.success(), || format!("the last daemon ended with {status}"));
}

fn shown(left: &Marked) -> String {
    let session = if left.own_session { ", a session of its own" } else { "" };
    format!("{} (pid {}{session}, started at tick {})", left.command.trim(), left.pid, left.started)
}

fn describe(span: &Span) -> String {
    format!("{} after {} ms", span.ending, milliseconds(span.ended - span.began))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1_000.0)
}

impl Report {
    fn figure(&mut self, name: &str, value: impl ToString) {
        self.figures.push((name.to_owned(), value.to_string()));
    }

    fn must(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.broken.push(otherwise());
        }
    }

    fn none(&mut self, what: &str, found: impl Iterator<Item = impl ToString>) {
        let found: Vec<String> = found.map(|one| one.to_string()).collect();
        if !found.is_empty() {
            let shown = found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
            self.broken.push(format!("{what}: {}, such as {shown}", found.len()));
        }
    }
}
