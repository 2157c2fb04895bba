//! From a plugin as it was written to the plugin as the program uses it: what nobody said is filled in.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plugd_protocol::control::Source;
use plugd_protocol::{Manifest, PluginName};

use super::file::{CgroupFile, DevFile, GlobalLimitsFile, LimitsFile, PluginFile, RestartFile, RlimitsFile};
use super::form::Layer;
use super::value::Count;
use super::{
    CgroupLimits, Dev, Environment, Limits, OnChange, PluginConfig, RestartMode, RestartPolicy, Rlimits,
    Sandbox, StartMode, Stdio,
};

/// The table `[limits]` as written.
#[derive(Clone, Default)]
pub(super) struct Defaults(pub(super) GlobalLimitsFile);

impl fmt::Debug for Defaults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Defaults")
    }
}

/// A plugin with all that was said of it.
pub(super) struct Entry {
    pub(super) form: PluginFile,
    pub(super) source: Source,
    /// The folder it runs in.
    pub(super) folder: PathBuf,
    /// Where to point when something is wrong with it.
    pub(super) file: PathBuf,
    pub(super) line: Option<usize>,
}

impl Entry {
    /// The plugin as the program uses it, or the key that cannot stand and what is wrong with it.
    pub(super) fn resolve(
        &self,
        name: &PluginName,
        Defaults(global): &Defaults,
        environment: &Environment,
    ) -> Result<PluginConfig, (&'static str, String)> {
        let form = self.form.clone();
        let manifest = match form.manifest {
            Some(table) => Some(manifest(name, table.0).map_err(|message| ("manifest", message))?),
            None => None,
        };
        let chosen = form.limits.over(global.limits.clone());
        let mut plugin = PluginConfig {
            name: name.clone(),
            source: self.source.clone(),
            command: form.command.map(|words| words.0).unwrap_or_default(),
            program: PathBuf::new(),
            cwd: self.folder.clone(),
            start: form.start.unwrap_or(StartMode::Lazy),
            enabled: form.enabled.unwrap_or(true),
            enabled_as_written: form.enabled.unwrap_or(true),
            priority: form.priority,
            requires: form
                .requires
                .unwrap_or_default()
                .into_iter()
                .map(|(name, need)| (name, need.0))
                .collect(),
            env: form.env.map(|variables| variables.0).unwrap_or_default(),
            pass_env: form.pass_env.unwrap_or_default(),
            concurrency: form.concurrency.map(|count| count.0),
            restart: restart(&form.restart.unwrap_or_default().0),
            spare: form.spares.is_some_and(|spares| spares.0),
            limits: limits(&chosen, global),
            idle_timeout: chosen.idle_timeout.and_then(|period| period.0),
            on_change: form.on_change.unwrap_or(OnChange::Replace),
            strict: form.strict.unwrap_or(false),
            rlimits: rlimits(&form.rlimits.unwrap_or_default()),
            cgroup: cgroup(&form.cgroup.unwrap_or_default()),
            sandbox: form.sandbox.map_or(Sandbox::None, Sandbox::from),
            stdio: form.stdio.map_or(Stdio::Pipes, Stdio::from),
            manifest_sha256: form.manifest_sha256.map(|digest| digest.0),
            config: form.config.map(|table| table.0).unwrap_or_default().into(),
            manifest,
            dev: dev(form.dev.unwrap_or_default()),
        };
        if plugin.spare && plugin.restart.mode == RestartMode::Never {
            let message = "expected 0 where restart is \"never\", got 1: a spare takes the place of a plugin that \
                           ended, which that forbids; leave one of the two out";
            return Err(("spares", message.to_owned()));
        }
        plugin.program = program(&plugin, environment);
        Ok(plugin)
    }
}

fn dev(file: DevFile) -> Dev {
    Dev {
        build: file.build.map(|words| words.0).unwrap_or_default(),
        ignore: file.ignore.unwrap_or_default(),
    }
}

/// A declared manifest, completed with what goes without saying.
fn manifest(
    name: &PluginName,
    mut declared: serde_json::Map<String, serde_json::Value>,
) -> Result<serde_json::Value, String> {
    declared.entry("protocol").or_insert_with(|| plugd_protocol::PROTOCOL_VERSION.into());
    declared.entry("name").or_insert_with(|| name.as_str().into());
    let value = serde_json::Value::Object(declared);
    Manifest::parse(&value.to_string()).map_err(|error| error.to_string())?;
    Ok(value)
}

/// The first word of a command: in the plugin's folder if it has a slash, else on its PATH.
fn program(plugin: &PluginConfig, host: &Environment) -> PathBuf {
    let Some(word) = plugin.command.first() else { return PathBuf::new() };
    if word.contains('/') {
        return under(&plugin.cwd, word);
    }
    let variables = plugin.environment(host);
    let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
    let candidates = path.unwrap_or_default().split(':').filter(|dir| dir.starts_with('/'));
    candidates
        .map(|dir| Path::new(dir).join(word))
        .find(|candidate| is_executable(candidate))
        .unwrap_or_else(|| PathBuf::from(word))
}

/// A path as written, from a folder on; a `.` in it says nothing and is left out.
pub(super) fn under(dir: &Path, written: impl AsRef<Path>) -> PathBuf {
    dir.join(written).components().collect()
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

impl Defaults {
    /// The limits of a plugin that sets none of its own.
    pub(super) fn limits(&self) -> Limits {
        limits(&self.0.limits, &self.0)
    }
}

fn limits(chosen: &LimitsFile, global: &GlobalLimitsFile) -> Limits {
    let default = Limits::default();
    let frame_limit = chosen.frame_limit.and_then(|size| usize::try_from(size.0).ok());
    Limits {
        describe_timeout: chosen.describe_timeout.map_or(default.describe_timeout, |period| period.0),
        init_timeout: chosen.init_timeout.map_or(default.init_timeout, |period| period.0),
        start_timeout_max: chosen.start_timeout_max.map_or(default.start_timeout_max, |period| period.0),
        timeout: chosen.timeout.map(|time| time.0),
        stall_timeout: chosen.stall_timeout.map(|period| period.0),
        queue_timeout: chosen.queue_timeout.map_or(default.queue_timeout, |period| period.0),
        queue_length: chosen.queue_length.map_or(default.queue_length, |length| length.0 as usize),
        cancel_grace: chosen.cancel_grace.map_or(default.cancel_grace, |period| period.0),
        drain_timeout: chosen.drain_timeout.map_or(default.drain_timeout, |period| period.0),
        shutdown_timeout: chosen.shutdown_timeout.map_or(default.shutdown_timeout, |period| period.0),
        term_timeout: chosen.term_timeout.map_or(default.term_timeout, |period| period.0),
        kill_timeout: chosen.kill_timeout.map_or(default.kill_timeout, |period| period.0),
        unkillable_timeout: chosen.unkillable_timeout.map_or(default.unkillable_timeout, |period| period.0),
        frame_limit: frame_limit.unwrap_or(default.frame_limit),
        log_size: chosen.log_size.map_or(default.log_size, |size| size.0),
        token_ttl: chosen.token_ttl.map_or(default.token_ttl, |period| period.0),
        ping_interval: chosen.ping_interval.map_or(default.ping_interval, |period| period.0),
        ping_misses: chosen.ping_misses.map_or(default.ping_misses, |count| count.0),
        call_depth: global.call_depth.map_or(default.call_depth, |count| count.0),
    }
}

fn restart(chosen: &RestartFile) -> RestartPolicy {
    let default = RestartPolicy::default();
    RestartPolicy {
        mode: chosen.policy.map_or(default.mode, RestartMode::from),
        backoff: chosen.backoff.map_or(default.backoff, |period| period.0),
        backoff_cap: chosen.backoff_cap.map_or(default.backoff_cap, |period| period.0),
        window: chosen.window.map_or(default.window, |period| period.0),
        max: chosen.max.unwrap_or(default.max),
        stable_after: chosen.stable_after.map_or(default.stable_after, |period| period.0),
        reset_after: chosen.reset_after.map_or(default.reset_after, |period| period.0),
        probe_interval: chosen.probe_interval.map_or(default.probe_interval, |period| period.0),
        jitter: chosen.jitter.map_or(default.jitter, |share| share.0),
    }
}

fn rlimits(chosen: &RlimitsFile) -> Rlimits {
    let default = Rlimits::default();
    let count = |count: Option<Count>, default| count.map_or(default, |count| Some(u64::from(count.0)));
    Rlimits {
        open_files: chosen.open_files.map_or(default.open_files, |count| Some(u64::from(count.0))),
        processes: count(chosen.processes, default.processes),
        address_space: chosen.address_space.map_or(default.address_space, |size| Some(size.0)),
        cpu_time: chosen.cpu_time.map_or(default.cpu_time, |time| Some(whole_seconds(time.0))),
        file_size: chosen.file_size.map_or(default.file_size, |size| Some(size.0)),
        core_size: chosen.core_size.map_or(default.core_size, |size| Some(size.0)),
    }
}

/// The kernel counts in seconds; less than one would be none at all.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn cgroup(chosen: &CgroupFile) -> CgroupLimits {
    let default = CgroupLimits::default();
    CgroupLimits {
        memory_max: chosen.memory_max.map_or(default.memory_max, |size| Some(size.0)),
        pids_max: chosen.pids_max.map_or(default.pids_max, |count| Some(u64::from(count.0))),
    }
}
