//! What is wrong, why, and what to do about it: plugd itself here, each plugin in `diagnosis`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use plugd_protocol::control::{ClaimsChanged, DoctorReport, Finding, PluginState, Severity, StatusParams};
use plugd_protocol::{CallError, PluginName};
use plugd_store::{Health, Store};
use plugd_supervisor::driver::PluginView;
use plugd_supervisor::launcher;

use crate::check;
use crate::claims;
use crate::config::{Broken, Config, ConfigError, PluginConfig};
use crate::diagnosis::{Patient, diagnose};
use crate::engine::{Engine, Opening};
use crate::manifests;
use crate::outcome::{Recording, set_aside};
use crate::registry::Snapshot;

/// With less than this, logs and caches soon cannot be written.
const SPACE_LOW_BYTES: u64 = 64 * 1024 * 1024;

/// So many names are shown where there may be hundreds.
const NAMES_SHOWN: usize = 10;

impl Engine {
    /// What is wrong with plugd and its plugins, or with one plugin; starts nothing.
    ///
    /// # Errors
    /// An unknown plugin.
    pub async fn doctor(&self, params: &StatusParams) -> Result<DoctorReport, CallError> {
        let config = self.config();
        if let Some(plugin) = &params.plugin
            && !config.plugins.contains_key(plugin)
        {
            return Err(self.unknown_plugin(plugin.as_str()));
        }
        let views = self.views_by_name().await;
        let snapshot = self.known_manifests(&config).await;
        let mut findings = Vec::new();
        if params.plugin.is_none() {
            let looked_at = Arc::clone(&config);
            let around = tokio::task::spawn_blocking(move || surroundings(&looked_at)).await;
            findings.extend(around.unwrap_or_default());
            findings.extend(enforcement(&views));
            findings.extend(recording(&self.shared().recording, &config));
        }
        let mut amiss: BTreeMap<PluginName, Vec<String>> = BTreeMap::new();
        for (plugin, problem) in check::problems(&config, &snapshot) {
            amiss.entry(plugin).or_default().push(problem);
        }
        let mut rest = Rest::default();
        for plugin in config.plugins.values() {
            if params.plugin.as_ref().is_some_and(|asked| *asked != plugin.name) {
                continue;
            }
            let patient = Patient {
                plugin,
                views: &views,
                manifest: snapshot.plugin(&plugin.name).map(|registered| &registered.manifest),
                amiss: amiss.remove(&plugin.name).unwrap_or_default(),
                claims_changed: self.claims_changed(plugin),
            };
            let found = diagnose(&patient);
            if found.iter().all(|finding| finding.severity == Severity::Ok) {
                rest.count(&plugin.name, patient.state());
            }
            let told = |finding: &Finding| finding.severity != Severity::Ok || params.plugin.is_some();
            findings.extend(found.into_iter().filter(told));
        }
        if params.plugin.is_none() {
            findings.extend(rest.told(self.opening()));
        }
        findings.sort_by(|one, other| (one.severity, &one.plugin).cmp(&(other.severity, &other.plugin)));
        Ok(DoctorReport { findings })
    }
}

impl Engine {
    /// What a plugin claims otherwise than before; where none is run, as far as it is remembered.
    fn claims_changed(&self, plugin: &PluginConfig) -> Option<ClaimsChanged> {
        let shared = self.shared();
        match self.opening() {
            Opening::Everything => shared.claims.changed(&plugin.name),
            Opening::OnDemand => {
                let (agreed, latest) = shared.manifests.changed_before(plugin)?;
                claims::compare(&agreed.manifest, &latest, agreed.since)
            }
        }
    }

    /// What plugins are known to declare; where none is run, as far as it is remembered.
    async fn known_manifests(&self, config: &Arc<Config>) -> Arc<Snapshot> {
        match self.opening() {
            Opening::Everything => self.shared().registry.snapshot(),
            Opening::OnDemand => {
                let config = Arc::clone(config);
                let read = tokio::task::spawn_blocking(move || manifests::remembered(&config)).await;
                read.unwrap_or_default()
            }
        }
    }
}

/// Plugins that nothing is wrong with; one that has not come up yet is not called well.
#[derive(Default)]
struct Rest<'a> {
    up: usize,
    unknown: Vec<&'a PluginName>,
    leaving: Vec<&'a PluginName>,
    disabled: Vec<&'a PluginName>,
}

impl<'a> Rest<'a> {
    fn count(&mut self, name: &'a PluginName, state: PluginState) {
        match state {
            PluginState::Ready | PluginState::Busy | PluginState::Idle => self.up += 1,
            PluginState::Registered | PluginState::Starting => self.unknown.push(name),
            PluginState::Disabled => self.disabled.push(name),
            // The others have a finding of their own.
            PluginState::Stopping
            | PluginState::Stopped
            | PluginState::Failed
            | PluginState::Blocked
            | PluginState::Backoff => self.leaving.push(name),
        }
    }

    fn told(&self, opening: Opening) -> Vec<Finding> {
        let plugins =
            |count: usize| if count == 1 { "1 plugin".to_owned() } else { format!("{count} plugins") };
        let is = |count: usize| if count == 1 { "is" } else { "are" };
        let mut told = Vec::new();
        if self.up > 0 {
            told.push(ok(format!("{} {} well", plugins(self.up), is(self.up))));
        }
        let unknown = self.unknown.len();
        match opening {
            _ if unknown == 0 => {}
            Opening::Everything => told.push(ok(format!(
                "{} {} still starting, and nothing is known of how: {}",
                plugins(unknown),
                is(unknown),
                names(self.unknown.iter().copied())
            ))),
            // Their files are right; whether they start is another matter.
            Opening::OnDemand => {
                let was = if unknown == 1 { "was" } else { "were" };
                told.push(ok(format!(
                    "{} {was} found with nothing wrong; none was run, so that is all that is known",
                    plugins(unknown)
                )));
            }
        }
        if !self.leaving.is_empty() {
            told.push(ok(format!("just stopping: {}", names(self.leaving.iter().copied()))));
        }
        if !self.disabled.is_empty() {
            told.push(ok(format!("disabled, as is configured: {}", names(self.disabled.iter().copied()))));
        }
        told
    }
}

/// What is wrong with a configuration that cannot be used, for whoever has no engine to ask.
pub fn config_findings(error: &ConfigError) -> Vec<Finding> {
    let finding = |problem: &crate::config::ConfigProblem| Finding {
        hint: Some("mend it; `plugd config check` reads it again".to_owned()),
        ..about(Severity::Problem, format!("the configuration cannot be used: {problem}"))
    };
    error.problems.iter().map(finding).collect()
}

/// What is wrong with a plugin of a scanned folder, or with that folder.
fn broken_findings(broken: &Broken) -> impl Iterator<Item = Finding> {
    broken.problems.iter().map(|problem| Finding {
        plugin: broken.plugin.clone(),
        hint: Some("mend it; `plugd config check` reads it again".to_owned()),
        ..about(Severity::Problem, format!("cannot be taken up as it is: {problem}"))
    })
}

/// What is around the plugins: the files, the folders, the disk.
fn surroundings(config: &Config) -> Vec<Finding> {
    let mut findings = config_file(config);
    findings.extend(operator(config));
    findings.extend(state_dir(&config.state_dir));
    if config.plugins.is_empty() {
        let looked = config.scan_dirs.iter().map(|dir| format!("looked in {}", dir.display()));
        findings.push(Finding {
            details: looked.collect(),
            hint: Some(
                "name one as [plugins.NAME] with a command, or a folder under scan.dirs, in plugd.toml"
                    .to_owned(),
            ),
            ..about(Severity::Warning, "no plugin is configured")
        });
    }
    if !config.skipped.is_empty() {
        let skipped = config.skipped.iter().map(|skipped| format!("{}: {}", skipped.path, skipped.reason));
        let count = config.skipped.len();
        let files = if count == 1 { "entry" } else { "entries" };
        findings.push(Finding {
            details: skipped.collect(),
            ..ok(format!("{count} {files} of scanned folders passed over"))
        });
    }
    if !launcher::adopts_orphans() {
        findings.push(about(
            Severity::Warning,
            "processes that a plugin leaves behind in a session of their own are not found: this process does not take in orphans",
        ));
    }
    findings
}

/// The file as it is now, which need not be as it was read.
fn config_file(config: &Config) -> Vec<Finding> {
    let Some(file) = &config.file else {
        return vec![Finding {
            details: config.searched.iter().map(|path| format!("looked for {}", path.display())).collect(),
            hint: Some("write a plugd.toml, or name one with --config FILE".to_owned()),
            ..about(Severity::Warning, "no config file was found")
        }];
    };
    match Config::load(file) {
        Ok(now) => {
            let read = ok(format!("the configuration is {}", file.display()));
            std::iter::once(read).chain(now.broken.iter().flat_map(broken_findings)).collect()
        }
        Err(error) => config_findings(&error),
    }
}

fn operator(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(reason) = &config.operator.unreadable {
        let message =
            format!("what was changed by `plugd add`, `stop` and the like could not be read: {reason}");
        findings.push(Finding {
            hint: Some("make those changes again; what was there is in operator.json.bad".to_owned()),
            ..about(Severity::Warning, message)
        });
    }
    if !config.removed.is_empty() {
        let removed = names(config.removed.keys());
        findings.push(Finding {
            hint: Some("`plugd add NAME` brings one back".to_owned()),
            ..ok(format!("configured, and removed by an operator: {removed}"))
        });
    }
    findings
}

fn state_dir(dir: &Path) -> Vec<Finding> {
    let probe = dir.join(format!(".doctor-{}", std::process::id()));
    let written = fs::write(&probe, "").and_then(|()| fs::remove_file(&probe));
    if let Err(error) = written {
        return vec![Finding {
            hint: Some("make it writable, or name another with [daemon] state_dir".to_owned()),
            ..about(
                Severity::Problem,
                format!("the state folder {} cannot be written to: {error}", dir.display()),
            )
        }];
    }
    let mut findings = vec![ok(format!("the state folder is {}", dir.display()))];
    if let Ok(space) = rustix::fs::statvfs(dir) {
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if free < SPACE_LOW_BYTES {
            let message =
                format!("only {} MiB are free where the state folder {} is", free >> 20, dir.display());
            findings.push(Finding {
                hint: Some("make room: logs and caches cannot be written when it is full".to_owned()),
                ..about(Severity::Warning, message)
            });
        }
    }
    findings
}

/// What the processes are held to, and what they should be held to and are not.
fn enforcement(views: &BTreeMap<PluginName, PluginView>) -> Vec<Finding> {
    let held: BTreeSet<&str> =
        views.values().flat_map(|view| view.enforced.keys().map(String::as_str)).collect();
    let mut missing: BTreeMap<(&str, &str), Vec<&PluginName>> = BTreeMap::new();
    for (name, view) in views {
        for (what, why) in &view.not_enforced {
            missing.entry((what, why)).or_default().push(name);
        }
    }
    let mut findings = Vec::new();
    if !held.is_empty() {
        let held: Vec<&str> = held.into_iter().collect();
        findings.push(ok(format!("plugins are held to: {}", held.join(", "))));
    }
    findings.extend(missing.into_iter().map(|((what, why), plugins)| Finding {
        details: vec![format!("so for {}", names(plugins.into_iter()))],
        ..about(Severity::Warning, format!("{what} is not enforced: {why}"))
    }));
    findings
}

/// Names in one line, the many left out counted.
fn names<'a>(names: impl ExactSizeIterator<Item = &'a PluginName>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let shown: Vec<&str> = names.take(NAMES_SHOWN).map(PluginName::as_str).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Whether calls are recorded, and what became of a record that could not be read.
fn recording(recording: &Recording, config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    match recording.off() {
        Some(reason) if config.record.is_none() => findings.push(ok(format!("calls are not recorded: {reason}"))),
        Some(reason) => findings.push(Finding {
            hint: Some("mend that; until then calls run unrecorded, and those with a key only where a second run does no harm".to_owned()),
            ..about(Severity::Problem, format!("calls are not recorded: {reason}"))
        }),
        None => findings.push(ok("calls are recorded")),
    }
    let health = recording.store().map(Store::health);
    findings.extend(health.as_ref().and_then(lost_record));
    if let Some(dropped) = health.map(|health| health.dropped).filter(|dropped| *dropped > 0) {
        findings.push(about(
            Severity::Warning,
            format!("{dropped} calls were not recorded: the disk was too slow or failed"),
        ));
    }
    findings
}

/// That what was recorded before is gone: once, whatever of it is told, the latest of it.
fn lost_record(health: &Health) -> Option<Finding> {
    let mut hint =
        "a call that was made with a key before would run again: look first whether it has been done"
            .to_owned();
    let now = health.moved_aside.as_ref().map(|aside| &aside.to);
    let became = match (now, &health.begun_anew, &health.set_aside_before) {
        (Some(file), _, _) | (None, None, Some(file)) => {
            hint.push_str("; remove that file when this is settled, and it is not said any more");
            set_aside(file)
        }
        (None, Some(why), _) => why.clone(),
        (None, None, None) => return None,
    };
    let message = format!(
        "the record of calls {became}; a new one was begun: calls, keys and tokens of before are unknown now"
    );
    Some(Finding { hint: Some(hint), ..about(Severity::Warning, message) })
}

/// A finding about plugd itself.
fn about(severity: Severity, message: impl Into<String>) -> Finding {
    Finding { severity, plugin: None, message: message.into(), hint: None, details: Vec::new() }
}

fn ok(message: impl Into<String>) -> Finding {
    about(Severity::Ok, message)
}
