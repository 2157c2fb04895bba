//! The configuration as it took effect, for people: values that may be secret are masked.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::file::{Policy, SandboxFile, StdioFile};
use super::value::duration_text;
use super::{Config, Limits, PluginConfig, RestartPolicy};

const MASK: &str = "***";

impl Config {
    /// Everything that is configured, with the values of variables and plugin configs masked.
    pub fn show(&self) -> Value {
        let plugins: Map<String, Value> =
            self.plugins.iter().map(|(name, plugin)| (name.to_string(), plugin.show())).collect();
        json!({
            "file": self.file.as_deref().map(|file| file.display().to_string()),
            "daemon": {
                "socket": self.socket.display().to_string(),
                "state_dir": self.state_dir.display().to_string(),
                "watch": self.watch,
                "parent_death_signal": self.parent_death_signal,
                "cgroups": self.cgroups,
            },
            "record": self.record.map_or_else(
                || json!({"enabled": false}),
                |keep| json!({
                    "enabled": true,
                    "keep_for": duration_text(keep.age),
                    "keep_size": keep.bytes,
                }),
            ),
            "scan": {"dirs": self.scan_dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>()},
            "limits": limits(&self.limits),
            "plugins": plugins,
            "callers": self.callers.iter().map(|(name, profile)| (name.clone(), profile.show())).collect::<Map<_, _>>(),
            "removed": self.removed.keys().collect::<Vec<_>>(),
        })
    }
}

impl PluginConfig {
    /// The plugin as configured, with what may be secret masked.
    pub fn show(&self) -> Value {
        let text = |value: &Option<String>| if value.is_some() { MASK.into() } else { Value::Bool(false) };
        let env: Map<String, Value> =
            self.env.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let requires: Map<String, Value> = self
            .requires
            .iter()
            .map(|(name, need)| {
                let shown = json!({
                    "version": need.version.to_string(),
                    "optional": need.optional,
                    "on_loss": need.on_loss,
                });
                (name.to_string(), shown)
            })
            .collect();
        json!({
            "source": self.source,
            "command": command(&self.command),
            "program": self.program.display().to_string(),
            "cwd": self.cwd.display().to_string(),
            "start": self.start.as_str(),
            "enabled": self.enabled,
            "priority": self.priority,
            "requires": requires,
            "env": env,
            "pass_env": self.pass_env,
            "concurrency": self.concurrency,
            "restart": restart(&self.restart),
            "spares": u8::from(self.spare),
            "limits": limits(&self.limits),
            "idle_timeout": self.idle_timeout.map(duration_text),
            "on_change": self.on_change.as_str(),
            "strict": self.strict,
            "rlimits": {
                "open_files": self.rlimits.open_files,
                "processes": self.rlimits.processes,
                "address_space": self.rlimits.address_space,
                "cpu_time": self.rlimits.cpu_time.map(Duration::from_secs).map(duration_text),
                "file_size": self.rlimits.file_size,
                "core_size": self.rlimits.core_size,
            },
            "cgroup": {"memory_max": self.cgroup.memory_max, "pids_max": self.cgroup.pids_max},
            "sandbox": SandboxFile::from(self.sandbox).as_str(),
            "stdio": StdioFile::from(self.stdio).as_str(),
            "config": masked(&self.config),
            "manifest": self.manifest.is_some(),
            "manifest_sha256": self.manifest_sha256,
            "dev": {"build": command(&self.dev.build), "ignore": self.dev.ignore},
        })
    }
}

/// A command with the values of its `--name=value` words masked: keys are often given that way.
fn command(words: &[String]) -> Vec<String> {
    let shown = |word: &String| match word.split_once('=') {
        Some((name, _)) if name.starts_with('-') => format!("{name}={MASK}"),
        _ => word.clone(),
    };
    words.iter().map(shown).collect()
}

/// The keys of a value without its values.
fn masked(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), masked(value))).collect(),
        _ => MASK.into(),
    }
}

fn limits(limits: &Limits) -> Value {
    let stall_timeout = limits
        .stall_timeout
        .map(|stall| stall.map_or(Value::Bool(false), |stall| duration_text(stall).into()));
    json!({
        "describe_timeout": duration_text(limits.describe_timeout),
        "init_timeout": duration_text(limits.init_timeout),
        "start_timeout_max": duration_text(limits.start_timeout_max),
        "timeout": limits.timeout.map(duration_text),
        "stall_timeout": stall_timeout,
        "queue_timeout": duration_text(limits.queue_timeout),
        "queue_length": limits.queue_length,
        "cancel_grace": duration_text(limits.cancel_grace),
        "drain_timeout": duration_text(limits.drain_timeout),
        "shutdown_timeout": duration_text(limits.shutdown_timeout),
        "term_timeout": duration_text(limits.term_timeout),
        "kill_timeout": duration_text(limits.kill_timeout),
        "unkillable_timeout": duration_text(limits.unkillable_timeout),
        "frame_limit": limits.frame_limit,
        "log_size": limits.log_size,
        "token_ttl": duration_text(limits.token_ttl),
        "ping_interval": duration_text(limits.ping_interval),
        "ping_misses": limits.ping_misses,
        "call_depth": limits.call_depth,
    })
}

fn restart(policy: &RestartPolicy) -> Value {
    json!({
        "policy": Policy::from(policy.mode).as_str(),
        "backoff": duration_text(policy.backoff),
        "backoff_cap": duration_text(policy.backoff_cap),
        "window": duration_text(policy.window),
        "max": policy.max,
        "stable_after": duration_text(policy.stable_after),
        "reset_after": duration_text(policy.reset_after),
        "probe_interval": duration_text(policy.probe_interval),
        "jitter": policy.jitter,
    })
}
