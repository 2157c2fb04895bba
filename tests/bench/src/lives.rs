//! Lives of plugins: a crash to the next answer, many starts, and the memory of idle ones.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use plugd_bench::host::{Host, check, echo_call, plugin_config};
use plugd_protocol::control::{PluginState, PluginStatus, PluginsParams, StatusParams};
use plugd_protocol::{PluginName, Status};

/// How many plugins are started at once.
pub(crate) const MANY: usize = 50;

/// How many run when memory is looked at first.
const FEW: usize = 10;

/// A plugin that does not answer again within this is taken to be lost.
const PATIENCE: Duration = Duration::from_secs(10);

/// A plugin that is killed again and again.
pub(crate) struct Victim {
    host: Host,
    /// Whether a spare is waited for before it is killed.
    spared: bool,
}

impl Victim {
    /// Starts it, with a spare or without.
    pub(crate) fn start(plugin: &Path, spared: bool) -> io::Result<Victim> {
        // Back-off and the restart window are policy, not speed: they are set aside.
        let config = format!(
            "{}spares = {}\nrestart = {{ stable_after = \"0s\", backoff = \"1ms\", backoff_cap = \"1ms\", \
             window = \"1s\", max = 1000000 }}\n",
            plugin_config("echo", plugin),
            u8::from(spared)
        );
        Ok(Victim { host: Host::open(&config)?, spared })
    }

    /// Kills it and calls until it has answered; the time from before the kill to the answer.
    pub(crate) fn time_kill_to_answer(&self) -> io::Result<Duration> {
        self.host.block_on(async {
            let engine = &self.host.engine;
            let call = echo_call("echo", 32);
            check(&call, &engine.call(call.clone()).await)?;
            let (pid, generation) = self.target().await?;
            let begun = Instant::now();
            kill(pid)?;
            loop {
                let result = engine.call(call.clone()).await;
                // A call that the dying run still took fails with it, as it should.
                if result.status == Status::Ok && result.meta.generation.is_some_and(|now| now > generation) {
                    return Ok(begun.elapsed());
                }
                if begun.elapsed() > PATIENCE {
                    return Err(io::Error::other(format!("no answer after a kill: {:?}", result.error)));
                }
                tokio::task::yield_now().await;
            }
        })
    }
}

impl Victim {
    /// The process and the run to be killed, once there is a spare where there is to be one.
    async fn target(&self) -> io::Result<(u32, u64)> {
        let asked = Instant::now();
        loop {
            let report = self.host.engine.status(&StatusParams { plugin: Some(name("echo")) }).await;
            let plugin = report.map_err(|error| io::Error::other(error.message))?.plugins.into_iter().next();
            let plugin = plugin.ok_or_else(|| io::Error::other("the plugin is not configured"))?;
            if !self.spared || plugin.spare.as_ref().is_some_and(|spare| spare.ready) {
                let missing = || io::Error::other("a plugin that just answered has no process");
                return Ok((plugin.pid.ok_or_else(missing)?, plugin.generation));
            }
            if asked.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("there is no spare: {:?}", plugin.spare)));
            }
            tokio::task::yield_now().await;
        }
    }
}

pub(crate) fn kill(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("a process id out of range"))?;
    Ok(rustix::process::kill_process(pid, rustix::process::Signal::KILL)?)
}

/// From the order to start [`MANY`] plugins to all of them being ready.
pub(crate) fn time_many_starts(plugin: &Path) -> io::Result<Duration> {
    let host = open_with_many(plugin)?;
    let begun = Instant::now();
    start(&host, 0..MANY)?;
    Ok(begun.elapsed())
}

fn open_with_many(plugin: &Path) -> io::Result<Host> {
    let config: Vec<String> = (0..MANY).map(|index| plugin_config(&format!("echo{index}"), plugin)).collect();
    Host::open(&config.concat())
}

pub(crate) fn start(host: &Host, which: std::ops::Range<usize>) -> io::Result<()> {
    let plugins = which.map(|index| name(&format!("echo{index}"))).collect();
    let report = host.block_on(host.engine.start(&PluginsParams { plugins }));
    let report = report.map_err(|error| io::Error::other(error.message))?;
    let unready = |plugin: &&PluginStatus| plugin.state != PluginState::Ready;
    match report.plugins.iter().find(unready) {
        None => Ok(()),
        Some(plugin) => Err(io::Error::other(format!("{plugin:?} is not ready"))),
    }
}

pub(crate) fn name(name: &str) -> PluginName {
    PluginName::new(name).expect("the bench gives its plugins legal names")
}

/// Host memory per idle plugin in KiB, measured in a fresh process each time.
pub(crate) fn rss_per_idle_plugin_kib(plugin: &Path, repetitions: usize) -> io::Result<Vec<f64>> {
    let measure = |repetition| {
        crate::interrupt::check()?;
        crate::progress(&format!("memory: repetition {} of {repetitions}", repetition + 1));
        let output = Command::new(std::env::current_exe()?).arg("rss").arg(plugin).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| {
            io::Error::other(format!("memory: {text}{}", String::from_utf8_lossy(&output.stderr)))
        })
    };
    (0..repetitions).map(measure).collect()
}

/// What the fresh process does: from [`FEW`] to [`MANY`] plugins that have answered and idle.
pub(crate) fn measure_rss(plugin: &Path) -> io::Result<f64> {
    let host = open_with_many(plugin)?;
    let answer_once = |which: std::ops::Range<usize>| {
        start(&host, which.clone())?;
        for index in which {
            let call = echo_call(&format!("echo{index}"), 32);
            check(&call, &host.block_on(host.engine.call(call.clone())))?;
        }
        resident_kib()
    };
    let before = answer_once(0..FEW)?;
    let after = answer_once(FEW..MANY)?;
    Ok((after - before) / (MANY - FEW) as f64)
}

pub(crate) fn resident_kib() -> io::Result<f64> {
    let status = std::fs::read_to_string(PathBuf::from("/proc/self/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok())
        .ok_or_else(|| io::Error::other("/proc/self/status has no VmRSS in kB"))
}
