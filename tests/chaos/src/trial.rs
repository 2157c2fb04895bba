//! One trial from the first daemon to the last process.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use plugd_protocol::control::StatusParams;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use crate::daemon::{Daemon, connect};
use crate::judge::{self, Evidence, Household};
use crate::ledger;
use crate::load::{Load, Tally, load};
use crate::numbers::Numbers;
use crate::operator::{Operated, cancel, only, operate};
use crate::processes;
use crate::sandbox::Sandbox;
use crate::tempers::{HOPELESS, TEMPERS};
use crate::trouble::{Schedule, Trouble, trouble};
use crate::{Plan, Report};

/// How long the daemon may take to come to rest after the load.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked at meanwhile.
const GLANCE: Duration = Duration::from_millis(50);

/// After the load the daemon holds as many descriptors as before it, give or take so many.
pub(crate) const DESCRIPTORS_SPARE: usize = 8;

/// Makes a trial; nothing it starts is left when it returns.
///
/// # Errors
/// When the trial itself cannot go on: a daemon does not start or does not end, or a signal came.
pub fn run(plan: &Plan) -> io::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let evidence = runtime.block_on(LocalSet::new().run_until(async {
        tokio::select! {
            evidence = tried(plan) => evidence,
            interrupted = interrupted() => Err(interrupted),
        }
    }))?;
    Ok(judge::judge(plan, &evidence))
}

async fn tried(plan: &Plan) -> io::Result<Evidence> {
    let sandbox = Rc::new(Sandbox::new(plan.seed)?);
    let mut daemon = Daemon::start(&plan.plugd, &sandbox).await?;
    start_all(&sandbox).await?;
    let before = at_rest(&daemon, &sandbox, None).await?;

    // Half of the peace comes afterwards: a machine that has become busier meanwhile is seen there, too.
    let mut peace = load(phase(plan, &sandbox, Phase::Before)).await;
    let (troubled, trouble, operated, cancelled) = in_trouble(plan, &sandbox, &mut daemon).await?;

    start_all(&sandbox).await?;
    peace.join(load(phase(plan, &sandbox, Phase::After)).await);
    let after = at_rest(&daemon, &sandbox, Some(&before)).await?;
    let cgroups = delegated(&sandbox).await;
    let last_started = processes::started(daemon.pid()).unwrap_or_default();
    let status = daemon.stop().await?;
    let left = leftovers(&sandbox, |left| judge::excused(left, last_started, cgroups)).await;
    let account = ledger::settle(&sandbox, peace.entries.iter().chain(&troubled.entries))?;
    Ok(Evidence {
        peace,
        troubled,
        trouble,
        operated,
        cancelled,
        before,
        after,
        cgroups,
        last_started,
        status,
        left,
        account,
        log: std::fs::read_to_string(sandbox.log()).unwrap_or_default(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Trouble,
    After,
}

fn phase(plan: &Plan, sandbox: &Rc<Sandbox>, phase: Phase) -> Load {
    let lasts = match phase {
        Phase::Before | Phase::After => plan.peace / 2,
        Phase::Trouble => plan.trouble,
    };
    Load {
        sandbox: Rc::clone(sandbox),
        seed: plan.seed.wrapping_mul(10).wrapping_add(phase as u64),
        clients: plan.clients,
        ends: Instant::now() + lasts,
        vanishing: phase == Phase::Trouble,
    }
}

async fn in_trouble(
    plan: &Plan,
    sandbox: &Rc<Sandbox>,
    daemon: &mut Daemon<'_>,
) -> io::Result<(Tally, Trouble, Operated, Operated)> {
    command_all(sandbox, &[], &[HOPELESS]).await?;
    let load_of = phase(plan, sandbox, Phase::Trouble);
    let ends = load_of.ends;
    let schedule = Schedule {
        begins: Instant::now(),
        ends,
        kills_per_second: plan.kills_per_second,
        daemon_kills: plan.daemon_kills,
    };
    let numbers = |who: u64| Numbers::of(plan.seed, 1_000_000 + who);
    let (tally, trouble, operated, cancelled) = tokio::join!(
        load(load_of),
        trouble(sandbox, daemon, schedule, numbers(1)),
        operate(sandbox, numbers(2), ends),
        cancel(sandbox, numbers(3), ends),
    );
    Ok((tally, trouble?, operated, cancelled))
}

/// Starts every plugin but the one that cannot always start; that one is stopped.
async fn start_all(sandbox: &Sandbox) -> io::Result<()> {
    let names = TEMPERS.iter().map(|temper| temper.name).filter(|name| *name != HOPELESS);
    command_all(sandbox, &[HOPELESS], &names.collect::<Vec<_>>()).await
}

async fn command_all(sandbox: &Sandbox, stopped: &[&str], started: &[&str]) -> io::Result<()> {
    let client = connect(sandbox).await.ok_or_else(|| io::Error::other("no daemon takes commands"))?;
    let late = |_| io::Error::other(format!("not everything was started or stopped within {PATIENCE:?}"));
    for name in stopped {
        timeout(PATIENCE, client.stop(&only(name))).await.map_err(late)?.map_err(io::Error::other)?;
    }
    for name in started {
        timeout(PATIENCE, client.start(&only(name))).await.map_err(late)?.map_err(io::Error::other)?;
    }
    Ok(())
}

/// How the daemon is once no client is connected; waited for until it is as it was before.
async fn at_rest(
    daemon: &Daemon<'_>,
    sandbox: &Sandbox,
    before: Option<&Household>,
) -> io::Result<Household> {
    let begun = Instant::now();
    let mut steady = 0;
    let mut latest = Household::of(daemon.pid(), sandbox)?;
    loop {
        sleep(GLANCE).await;
        let now = Household::of(daemon.pid(), sandbox)?;
        steady = if now.descriptors == latest.descriptors { steady + 1 } else { 0 };
        latest = now;
        let good = before.is_none_or(|before| judge::as_before(before, &latest));
        if (good && steady >= 5) || begun.elapsed() > PATIENCE / 4 {
            return Ok(latest);
        }
    }
}

/// Whether plugins run in cgroups of their own here.
async fn delegated(sandbox: &Sandbox) -> bool {
    let Some(client) = connect(sandbox).await else { return false };
    let Ok(report) = client.status(&StatusParams::default()).await else { return false };
    report.plugins.iter().any(|plugin| plugin.enforced.keys().any(|what| what.starts_with("cgroup")))
}

/// What is left of the plugins; waits a little for what is about to end.
async fn leftovers(
    sandbox: &Sandbox,
    excused: impl Fn(&processes::Marked) -> bool,
) -> Vec<processes::Marked> {
    let begun = Instant::now();
    loop {
        let left = processes::marked(sandbox.mark());
        if left.iter().all(&excused) || begun.elapsed() > Duration::from_secs(5) {
            return left;
        }
        sleep(GLANCE).await;
    }
}

/// Ends when a person or the system says that the trial is to end.
async fn interrupted() -> io::Error {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = signals else { return std::future::pending().await };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    io::Error::other("interrupted")
}
