//! Hundreds of plugins: started at once, known without being started, and what each costs while it idles.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use plugd_bench::host::{Host, check, configure, echo_call, plugin_config};
use plugd_engine::Opening;
use plugd_protocol::control::{CallParams, ListParams, PluginsParams};
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::lives::{name, resident_kib, start};

/// How many plugins there are.
pub(crate) const CROWD: usize = 500;

/// How many plugins run when memory is looked at last, and first.
const MANY: usize = 110;
const FEW: usize = 10;

/// Calls that are refused before memory is looked at: they fill what is kept of the latest events.
const REFUSED: usize = 1_000;

/// Lets this process have the pipes of hundreds of plugins.
pub(crate) fn allow_many_files() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

/// A folder with the configuration of so many plugins, and a state folder that stays.
pub(crate) struct Known {
    folder: TempDir,
}

impl Known {
    /// Makes the folder and has every plugin described once.
    pub(crate) fn new(plugin: &Path, count: usize) -> io::Result<Known> {
        Known::with(&config_of(plugin, count), count)
    }

    /// The same, with calls that leave nothing in the record: its memory is no run's.
    fn unrecorded(plugin: &Path, count: usize) -> io::Result<Known> {
        Known::with(&format!("[record]\nenabled = false\n\n{}", config_of(plugin, count)), count)
    }

    fn with(config: &str, count: usize) -> io::Result<Known> {
        let known = Known { folder: TempDir::new()? };
        configure(known.folder.path(), config)?;
        known.time_open(count)?;
        Ok(known)
    }

    /// From nothing to an engine that lists everything.
    pub(crate) fn time_open(&self, count: usize) -> io::Result<Duration> {
        let begun = Instant::now();
        let host = Host::open_in(self.folder.path(), Opening::Everything)?;
        lists(&host, count)?;
        Ok(begun.elapsed())
    }

    /// From the order to start all plugins to the last first answer.
    ///
    /// They have run before: their folders are there. Each is described anew, as at every start.
    pub(crate) fn time_starts_and_answers(&self) -> io::Result<Duration> {
        let host = Host::open_in(self.folder.path(), Opening::OnDemand)?;
        let begun = Instant::now();
        start(&host, 0..CROWD)?;
        call_each(&host, 0..CROWD)?;
        Ok(begun.elapsed())
    }

    /// The same when nothing is known of any plugin.
    pub(crate) fn time_open_forgotten(&self, count: usize) -> io::Result<Duration> {
        match std::fs::remove_dir_all(self.folder.path().join("state/manifests")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => self.time_open(count),
        }
    }
}

fn config_of(plugin: &Path, count: usize) -> String {
    (0..count).map(|index| plugin_config(&format!("echo{index}"), plugin)).collect()
}

fn lists(host: &Host, count: usize) -> io::Result<()> {
    let report = host.block_on(host.engine.list(&ListParams::default())).expect("the owner sees all");
    let offered = report.plugins.iter().filter(|plugin| !plugin.operations.is_empty()).count();
    if offered == count { Ok(()) } else { Err(io::Error::other(format!("{offered} of {count} are listed"))) }
}

fn stop(host: &Host, which: Range<usize>) -> io::Result<()> {
    let plugins = which.map(|index| name(&format!("echo{index}"))).collect();
    let report = host.block_on(host.engine.stop(&PluginsParams { plugins }));
    report.map(drop).map_err(|error| io::Error::other(error.message))
}

/// Calls each once, all at the same time.
fn call_each(host: &Host, which: Range<usize>) -> io::Result<()> {
    host.block_on(async {
        let mut calls = JoinSet::new();
        for index in which {
            let (engine, call) = (host.engine.clone(), echo_call(&format!("echo{index}"), 32));
            calls.spawn(async move {
                let result = engine.call(call.clone()).await;
                check(&call, &result)
            });
        }
        while let Some(ended) = calls.join_next().await {
            ended.map_err(io::Error::other)??;
        }
        Ok(())
    })
}

/// Host memory in KiB of a plugin that runs and idles, beyond one that is known and does not run. The record
/// is off: what it has in memory is bounded, and belongs to no run.
///
/// Measured in a fresh process each time.
pub(crate) fn rss_running_idle_kib(plugin: &Path, repetitions: usize) -> io::Result<Vec<f64>> {
    let known = Known::unrecorded(plugin, MANY)?;
    let measure = |repetition| {
        crate::interrupt::check()?;
        crate::progress(&format!("memory of a run: repetition {} of {repetitions}", repetition + 1));
        let output =
            Command::new(std::env::current_exe()?).arg("rss-of-a-run").arg(known.folder.path()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| {
            io::Error::other(format!("memory: {text}{}", String::from_utf8_lossy(&output.stderr)))
        })
    };
    (0..repetitions).map(measure).collect()
}

/// Takes what the allocator has in hand from earlier work, or the runs would fill that and seem to cost nothing.
fn use_up_free_memory() -> io::Result<Vec<Vec<u8>>> {
    /// The resident size has grown by so many KiB: nothing of that size was in hand any more.
    const GROWTH_KIB: f64 = 256.0;
    let mut kept = Vec::new();
    for size in [8 * 1024, 2 * 1024, 512, 128] {
        let before = resident_kib()?;
        while resident_kib()? - before < GROWTH_KIB {
            kept.extend((0..64 * 1024 / size).map(|_| vec![1; size]));
        }
    }
    Ok(kept)
}

/// What the fresh process does: from [`FEW`] to [`MANY`] plugins that have answered and idle.
pub(crate) fn measure_rss_of_a_run(folder: &Path) -> io::Result<f64> {
    let host = Host::open_in(folder, Opening::Everything)?;
    lists(&host, MANY)?;
    // What belongs to a plugin whether it runs or not is there before: its compiled contract, too.
    start(&host, 0..MANY)?;
    for index in 0..REFUSED {
        let mut refused = CallParams::new(format!("echo{}.echo", index % MANY));
        refused.arguments = Some(RawValue::from_string("{}".to_owned()).map_err(io::Error::other)?);
        if host.block_on(host.engine.call(refused)).error.is_none() {
            return Err(io::Error::other("a call without its argument was not refused"));
        }
    }
    stop(&host, 0..MANY)?;
    let _kept = use_up_free_memory()?;
    let answer_once = |which: Range<usize>| {
        start(&host, which.clone())?;
        for index in which {
            call_each(&host, index..index + 1)?;
        }
        resident_kib()
    };
    let before = answer_once(0..FEW)?;
    let after = answer_once(FEW..MANY)?;
    Ok((after - before) / (MANY - FEW) as f64)
}
