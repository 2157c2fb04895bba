//! Kills: of plugins as often as asked for, of the daemon at fixed times.

use std::io;
use std::time::{Duration, Instant};

use plugd_daemon::client::Client;
use plugd_protocol::Status;
use plugd_protocol::control::{CallParams, PluginState, StatusParams};
use tokio::time::{sleep, timeout};

use crate::daemon::{Daemon, connect};
use crate::load::Span;
use crate::numbers::Numbers;
use crate::processes;
use crate::sandbox::Sandbox;
use crate::tempers::TEMPERS;

/// How long the plugins that nobody touches may take to answer a new daemon.
const PATIENCE: Duration = Duration::from_secs(30);

/// No kill waits longer than this for a status to choose from.
const GLANCE: Duration = Duration::from_secs(5);

/// When and how often something is killed.
pub(crate) struct Schedule {
    pub(crate) begins: Instant,
    pub(crate) ends: Instant,
    pub(crate) kills_per_second: f64,
    /// All within the first two thirds, so that the last daemon has a life of its own.
    pub(crate) daemon_kills: u32,
}

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) plugin_kills: u64,
    /// From each kill of the daemon until the next one served.
    pub(crate) outages: Vec<Outage>,
}

/// Without a daemon, or with one that has not started everything yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outage {
    pub(crate) from: Instant,
    /// A daemon listened again.
    pub(crate) listening: Instant,
    /// The plugins that nobody touches answered again, and all others had been started.
    pub(crate) to: Instant,
}

impl Outage {
    /// Whether a call had to do with it.
    pub(crate) fn touches(&self, call: &Span) -> bool {
        call.began < self.to && self.from < call.ended
    }
}

/// Kills by the schedule until it ends.
pub(crate) async fn trouble(
    sandbox: &Sandbox,
    daemon: &mut Daemon<'_>,
    schedule: Schedule,
    mut numbers: Numbers,
) -> io::Result<Trouble> {
    let mut done = Trouble::default();
    let mut client: Option<Client> = None;
    let pause = Duration::from_secs_f64(1.0 / schedule.kills_per_second.max(0.01));
    let mut next = schedule.begins + pause;
    while next < schedule.ends {
        sleep(next.saturating_duration_since(Instant::now())).await;
        if schedule.daemon_is_due(done.outages.len()) {
            client = None;
            done.outages.push(outage(sandbox, daemon).await?);
        } else {
            client = match client.take() {
                Some(client) => Some(client),
                None => connect(sandbox).await,
            };
            if let Some(pid) = victim(client.as_ref(), &mut numbers).await
                && processes::kill(pid, sandbox.mark())
            {
                done.plugin_kills += 1;
            }
        }
        // What an outage took is not made up for by a volley.
        next = (next + pause).max(Instant::now());
    }
    Ok(done)
}

impl Schedule {
    fn daemon_is_due(&self, killed: usize) -> bool {
        let Ok(killed) = u32::try_from(killed) else { return false };
        let stretch = (self.ends - self.begins).mul_f64(2.0 / 3.0);
        killed < self.daemon_kills
            && self.begins + stretch * (killed + 1) / (self.daemon_kills + 1) <= Instant::now()
    }
}

async fn outage(sandbox: &Sandbox, daemon: &mut Daemon<'_>) -> io::Result<Outage> {
    let from = Instant::now();
    daemon.replace().await?;
    let listening = Instant::now();
    let lost = || io::Error::other("a new daemon does not take calls");
    let client = connect(sandbox).await.ok_or_else(lost)?;
    for temper in TEMPERS.iter().filter(|temper| temper.calm) {
        let call = CallParams::new(format!("{}.work", temper.name));
        let answer = timeout(PATIENCE, client.call(&call)).await.map_err(|_| lost())?;
        let answer = answer.map_err(io::Error::other)?;
        if answer.status != Status::Ok {
            return Err(io::Error::other(format!("{} after a new start: {answer:?}", call.operation)));
        }
    }
    while begun_starts(&client).await? > 0 && from.elapsed() < PATIENCE {
        sleep(Duration::from_millis(20)).await;
    }
    Ok(Outage { from, listening, to: Instant::now() })
}

/// How many plugins are being started.
async fn begun_starts(client: &Client) -> io::Result<usize> {
    let report = timeout(GLANCE, client.status(&StatusParams::default())).await.map_err(io::Error::other)?;
    let report = report.map_err(io::Error::other)?;
    let starting = [PluginState::Registered, PluginState::Starting];
    Ok(report.plugins.iter().filter(|plugin| starting.contains(&plugin.state)).count())
}

/// A process of a plugin that may be hurt.
async fn victim(client: Option<&Client>, numbers: &mut Numbers) -> Option<u32> {
    let report = timeout(GLANCE, client?.status(&StatusParams::default())).await.ok()?.ok()?;
    let hurt = |name: &str| TEMPERS.iter().any(|temper| temper.name == name && !temper.calm);
    let victims = report.plugins.iter().filter(|plugin| hurt(plugin.name.as_str()));
    let pids: Vec<u32> = victims.filter_map(|plugin| plugin.pid).collect();
    if pids.is_empty() { None } else { Some(*numbers.pick(&pids)) }
}
