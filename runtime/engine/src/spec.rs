//! From a configured plugin to what the supervisor needs to know of it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use plugd_protocol::PluginName;
use plugd_protocol::manifest::Manifest;
use plugd_protocol::plugin::LogLevel;
use plugd_supervisor::driver::{Launch, PluginSpec, RunSettings};
use plugd_supervisor::machine::{Clocks, Declared, RestartMode, RestartPolicy, Spec};

use crate::config::{
    self, Config, Environment, PluginConfig, START_TIMEOUT_MAX, StartMode, UNKILLABLE_AFTER,
};
use crate::engine::Opening;

/// Everything the supervisor is to run.
pub(crate) fn plugin_specs(config: &Config, environment: &Environment, opening: Opening) -> Vec<PluginSpec> {
    config.plugins.values().map(|plugin| plugin_spec(config, plugin, environment, opening)).collect()
}

fn plugin_spec(
    config: &Config,
    plugin: &PluginConfig,
    environment: &Environment,
    opening: Opening,
) -> PluginSpec {
    let eager = plugin.start == StartMode::Eager && opening == Opening::Everything;
    let settings = RunSettings {
        launch: Launch {
            program: plugin.program.clone(),
            args: plugin.command.iter().skip(1).cloned().collect(),
            cwd: plugin.cwd.clone(),
            env: plugin.environment(environment),
        },
        data_dir: data_dir(config, &plugin.name),
        locale: locale(environment),
        log_level: LogLevel::Info,
        frame_limit: plugin.limits.frame_limit,
        cancel_grace: plugin.limits.cancel_grace,
        idle_timeout: plugin.idle_timeout.filter(|_| !eager),
        strict: plugin.strict,
        queue_length: u32::try_from(plugin.limits.queue_length).unwrap_or(u32::MAX),
    };
    let declared = plugin.manifest.as_ref().and_then(|manifest| Manifest::parse(&manifest.to_string()).ok());
    let spec = Spec {
        name: plugin.name.clone(),
        enabled: plugin.enabled,
        eager,
        describe: opening == Opening::Everything,
        priority: plugin.priority,
        requires: plugin.requires.clone(),
        declared: declared.map(|manifest| self::declared(&manifest)),
        restart: restart_policy(&plugin.restart),
        clocks: clocks(&plugin.limits),
        fingerprint: fingerprint(plugin, &settings),
    };
    PluginSpec { spec, settings }
}

/// What a manifest means for a plugin's life.
pub(crate) fn declared(manifest: &Manifest) -> Declared {
    Declared { version: manifest.semver(), requires: manifest.requires.clone(), priority: manifest.priority }
}

/// Where a plugin keeps what outlives its runs.
pub(crate) fn data_dir(config: &Config, plugin: &PluginName) -> PathBuf {
    config.state_dir.join("data").join(plugin.as_str())
}

/// The file that a plugin is: its script where an interpreter runs one, its program otherwise.
pub(crate) fn plugin_file(plugin: &PluginConfig) -> PathBuf {
    let script =
        plugin.command.iter().skip(1).map(|argument| plugin.cwd.join(argument)).find(|path| path.is_file());
    script.unwrap_or_else(|| plugin.program.clone())
}

fn restart_policy(policy: &config::RestartPolicy) -> RestartPolicy {
    RestartPolicy {
        mode: match policy.mode {
            config::RestartMode::Always => RestartMode::Always,
            config::RestartMode::Never => RestartMode::Never,
            config::RestartMode::OnFailure => RestartMode::OnFailure,
        },
        backoff: policy.backoff,
        backoff_cap: policy.backoff_cap,
        window: policy.window,
        max: policy.max,
        stable_after: policy.stable_after,
        reset_after: policy.reset_after,
        probe_interval: policy.probe_interval,
        jitter: policy.jitter,
    }
}

fn clocks(limits: &config::Limits) -> Clocks {
    Clocks {
        describe: limits.describe_timeout,
        init: limits.init_timeout,
        init_max: START_TIMEOUT_MAX.max(limits.init_timeout),
        drain: limits.drain_timeout,
        shutdown: limits.shutdown_timeout,
        term: limits.term_timeout,
        kill: limits.kill_timeout,
        unkillable: UNKILLABLE_AFTER,
    }
}

/// Differs when anything differs that a running process could not take up.
fn fingerprint(plugin: &PluginConfig, settings: &RunSettings) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{settings:?}").hash(&mut hasher);
    settings.launch.env.hash(&mut hasher);
    plugin.config.to_string().hash(&mut hasher);
    plugin.manifest.as_ref().map(ToString::to_string).hash(&mut hasher);
    plugin.concurrency.hash(&mut hasher);
    stamp(&plugin.program).hash(&mut hasher);
    for argument in &settings.launch.args {
        stamp(&plugin.cwd.join(argument)).hash(&mut hasher);
    }
    hasher.finish()
}

/// When a file was last written and how long it is, where there is one.
fn stamp(path: &Path) -> Option<(std::time::SystemTime, u64)> {
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// The language of this process as a BCP 47 tag: `zh_CN.UTF-8` is `zh-CN`.
fn locale(environment: &Environment) -> String {
    let language = environment.get("LC_ALL").or_else(|| environment.get("LANG")).unwrap_or("en");
    let tag = language.split(['.', '@']).next().unwrap_or_default().replace('_', "-");
    if tag.is_empty() || tag == "C" || tag == "POSIX" { "en".to_owned() } else { tag }
}
