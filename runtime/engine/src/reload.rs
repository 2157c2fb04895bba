//! Taking up what changed: the config file as a difference, or one plugin anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use plugd_protocol::control::{ClaimsChanged, Event, PluginState, PluginsParams, ReloadParams, ReloadReport};
use plugd_protocol::error::{ErrorKind, MESSAGE_MAX_CHARS, clip};
use plugd_protocol::{CallError, PluginName};
use plugd_supervisor::driver::{ExitRecord, PluginSpec, PluginView};
use plugd_supervisor::machine::OnChange;
use tokio::sync::MutexGuard;

use crate::changes::invalid;
use crate::check;
use crate::config::{self, Config, ConfigError};
use crate::engine::{Engine, gone};
use crate::events::happening;
use crate::failure::{self, word};
use crate::watch::{self, Snapshot};

impl Engine {
    /// Applies the config file anew as a difference, or takes one plugin up anew.
    ///
    /// Answers after the effect: plugins that are replaced have been, those that are new are described, and
    /// up where they are to be. What did not come to that is in the report's `failed`. A file that cannot
    /// be used, or is empty, changes nothing. Several at once come one after the other.
    ///
    /// # Errors
    /// An unknown plugin, one whose new run did not take over, a configuration that cannot be used, or
    /// plugd is going.
    pub async fn reload(&self, params: &ReloadParams) -> Result<ReloadReport, CallError> {
        match &params.plugin {
            Some(plugin) => self.reload_one(plugin).await,
            None => self.reload_all().await,
        }
    }

    async fn reload_one(&self, plugin: &PluginName) -> Result<ReloadReport, CallError> {
        let plugins = self.known(&PluginsParams { plugins: vec![plugin.clone()] })?;
        // Whoever was told of a change and takes the plugin up all the same agrees to it.
        self.shared().agree_to_claims(plugin);
        let claims = self.shared().claims.all_changed();
        self.look_again(&plugins, false).await?;
        let views = self.plugins().reload(plugin.clone()).await.map_err(gone)?;
        let config = self.config();
        let manual =
            config.plugins.get(plugin).is_some_and(|plugin| plugin.on_change == config::OnChange::Manual);
        let mut report = ReloadReport {
            config_generation: self.config_generation(),
            added: Vec::new(),
            removed: Vec::new(),
            changed: Vec::new(),
            unchanged: config.plugins.keys().filter(|name| *name != plugin).cloned().collect(),
            restart_required: Vec::new(),
            failed: BTreeMap::new(),
            generations: BTreeMap::new(),
            claims_changed: BTreeMap::new(),
            next_start: Vec::new(),
        };
        report.claims_changed = self.newly_claimed(&claims);
        let Some(view) = views.into_iter().find(|view| view.name == *plugin) else { return Ok(report) };
        match &view.view.restart_required {
            Some(_) if manual => report.restart_required.push(plugin.clone()),
            Some(required) => return Err(not_replaced(&view, &required.reason)),
            None => {
                if let Some(error) = failure::not_up(&view).or_else(|| self.would_not_start(&view)) {
                    return Err(error);
                }
                report.changed.push(plugin.clone());
                report.generations.insert(plugin.clone(), view.view.generation.0);
            }
        }
        Ok(report)
    }

    async fn reload_all(&self) -> Result<ReloadReport, CallError> {
        let Some(file) = self.config().file.clone() else {
            let message = "there is no config file to read again";
            return Err(
                CallError::new(ErrorKind::InvalidConfig, message).hint("start plugd with --config FILE")
            );
        };
        // The turn is taken before the file is read: what was read last is what stands last.
        let applied = self.applied().await;
        let running = self.config();
        let read = tokio::task::spawn_blocking(move || {
            let stamp = watch::stamp_of(&file);
            let mut config = running.again(&file)?;
            if config.watch {
                config.files = Some(Arc::new(Snapshot::of(&config).with_file(file, stamp)));
            }
            Ok(config)
        });
        let read = read.await;
        let config = read
            .map_err(|error| CallError::new(ErrorKind::Internal, error.to_string()))?
            .map_err(|error| self.refused(error))?;
        self.take_over(config, applied).await
    }

    /// The error for a plugin that was taken up anew and could not be started as things are now.
    fn would_not_start(&self, view: &PluginView) -> Option<CallError> {
        let known = check::problems(&self.config(), &self.shared().registry.snapshot());
        let told: Vec<String> =
            known.into_iter().filter(|(name, _)| *name == view.name).map(|(_, problem)| problem).collect();
        if told.is_empty() {
            return None;
        }
        let message = format!("{} {}", view.name, hopeless(view, &told.join("; "))?);
        let kind = if view.view.accepts_calls { ErrorKind::NotReplaced } else { ErrorKind::Disabled };
        Some(CallError::new(kind, message).hint(format!("mend it, then `plugd reload {}`", view.name)))
    }

    /// Applies another configuration as a difference, as [`Engine::reload`] does that of its file.
    ///
    /// The places of the new one mean nothing: the engine keeps its own.
    ///
    /// # Errors
    /// Plugd is going.
    pub async fn reload_with(&self, mut config: Config) -> Result<ReloadReport, CallError> {
        let applied = self.applied().await;
        let running = self.config();
        config.socket.clone_from(&running.socket);
        config.state_dir.clone_from(&running.state_dir);
        self.take_over(config, applied).await
    }

    /// Applies a configuration in place of what was applied before.
    async fn take_over(
        &self,
        config: Config,
        mut applied: MutexGuard<'_, Vec<PluginSpec>>,
    ) -> Result<ReloadReport, CallError> {
        let before = applied.clone();
        let claims = self.shared().claims.all_changed();
        let serving = Serving(self.plugins().views().await.map_err(gone)?);
        self.take_up(config, &mut applied).await?;
        let mut report = difference(&before, &applied, self.config_generation());
        drop(applied);
        let taken_up: Vec<PluginName> = report.added.iter().chain(&report.changed).cloned().collect();
        self.plugins().described(taken_up.clone()).await.map_err(gone)?;
        self.until_settled(taken_up.iter().chain(&report.removed).cloned()).await?;
        let views = self.plugins().views().await.map_err(gone)?;
        outcome(&mut report, &views);
        let config = self.config();
        let problems = check::problems(&config, &self.shared().registry.snapshot());
        report.failed = failed(&report, &views, &config, &problems.into_iter().collect());
        report.failed.extend(serving.lost(&views, &config));
        report.claims_changed = self.newly_claimed(&claims);
        // The file of the record is open as it was said when plugd started.
        if config.record != self.shared().record_as_opened {
            report.next_start.push("record".to_owned());
        }
        self.shared().events.emit(happening("config.reloaded"));
        Ok(report)
    }

    /// What is claimed otherwise than before, save what was so already.
    fn newly_claimed(
        &self,
        before: &BTreeMap<PluginName, Arc<ClaimsChanged>>,
    ) -> BTreeMap<PluginName, ClaimsChanged> {
        let now = self.shared().claims.all_changed().into_iter();
        let news = now.filter(|(plugin, changed)| before.get(plugin) != Some(changed));
        news.map(|(plugin, changed)| (plugin, ClaimsChanged::clone(&changed))).collect()
    }

    /// Waits for these plugins, and for those that another reload is still about to replace.
    async fn until_settled(&self, plugins: impl Iterator<Item = PluginName>) -> Result<(), CallError> {
        let views = self.plugins().views().await.map_err(gone)?;
        let under_way = views.into_iter().filter(|view| !view.view.settled_change).map(|view| view.name);
        let plugins = plugins.chain(under_way).collect();
        self.plugins().settled(plugins).await.map_err(gone).map(drop)
    }

    /// Tells whoever follows that a configuration is not used.
    fn refused(&self, error: ConfigError) -> CallError {
        let error = invalid(error);
        self.shared()
            .events
            // Events are kept in memory: whoever asked for the reload is told all of it.
            .emit(Event {
                reason: Some(clip(error.message.clone(), MESSAGE_MAX_CHARS)),
                ..happening("config.refused")
            });
        error
    }

    /// Takes note of how the files of these plugins are now, since they are about to be run anew: a later
    /// reload finds no change in what runs already.
    ///
    /// With `hold`, nothing is replaced because of what is found: a restart that follows takes it up.
    pub(crate) async fn look_again(&self, plugins: &[PluginName], hold: bool) -> Result<(), CallError> {
        let mut applied = self.applied().await;
        let now = self.specs();
        for spec in now.into_iter().filter(|spec| plugins.contains(&spec.spec.name)) {
            if let Some(known) = applied.iter_mut().find(|known| known.spec.name == spec.spec.name) {
                *known = spec;
            }
        }
        let mut specs = applied.clone();
        for spec in specs.iter_mut().filter(|spec| hold && plugins.contains(&spec.spec.name)) {
            spec.spec.on_change = OnChange::Manual;
        }
        self.plugins().configure(specs).await.map_err(gone)
    }
}

/// What differs between two configurations.
fn difference(before: &[PluginSpec], after: &[PluginSpec], config_generation: u64) -> ReloadReport {
    let before_by_name: BTreeMap<&PluginName, &PluginSpec> =
        before.iter().map(|spec| (&spec.spec.name, spec)).collect();
    let mut report = ReloadReport {
        config_generation,
        added: Vec::new(),
        removed: Vec::new(),
        changed: Vec::new(),
        unchanged: Vec::new(),
        restart_required: Vec::new(),
        failed: BTreeMap::new(),
        generations: BTreeMap::new(),
        claims_changed: BTreeMap::new(),
        next_start: Vec::new(),
    };
    for spec in after {
        let list = match before_by_name.get(&spec.spec.name) {
            None => &mut report.added,
            Some(was) if is_same(was, spec) => &mut report.unchanged,
            Some(_) => &mut report.changed,
        };
        list.push(spec.spec.name.clone());
    }
    let is_gone = |name: &&PluginName| !after.iter().any(|spec| spec.spec.name == **name);
    report.removed = before_by_name.keys().copied().filter(is_gone).cloned().collect();
    report
}

/// Whether nothing was configured anew: what was learnt meanwhile, or done by an operator, is no change.
fn is_same(before: &PluginSpec, after: &PluginSpec) -> bool {
    let configured = |spec: &PluginSpec| {
        let mut configured = spec.spec.clone();
        (configured.declared, configured.held) = (None, false);
        configured
    };
    before.settings == after.settings && configured(before) == configured(after)
}

/// What came of it: the runs that plugins are in now, and those that go on as they were.
fn outcome(report: &mut ReloadReport, views: &[PluginView]) {
    let required = views.iter().filter(|view| view.view.restart_required.is_some());
    report.restart_required = required.map(|view| view.name.clone()).collect();
    for list in [&mut report.changed, &mut report.unchanged] {
        list.retain(|name| !report.restart_required.contains(name));
    }
    let taken_up =
        |view: &&PluginView| report.added.contains(&view.name) || report.changed.contains(&view.name);
    let generations = views.iter().filter(taken_up).map(|view| (view.name.clone(), view.view.generation.0));
    report.generations = generations.collect();
}

/// How plugins were before a reload.
struct Serving(Vec<PluginView>);

impl Serving {
    fn served(&self, plugin: &PluginName) -> bool {
        self.0.iter().any(|view| view.name == *plugin && view.view.accepts_calls)
    }

    /// Those that served and are down, though nobody said that they are not to be used.
    fn lost(&self, views: &[PluginView], config: &Config) -> BTreeMap<PluginName, String> {
        let enabled =
            |view: &&PluginView| config.plugins.get(&view.name).is_some_and(|plugin| plugin.enabled);
        let lost = views.iter().filter(enabled).filter(|view| self.served(&view.name));
        lost.filter_map(|view| Some((view.name.clone(), down(view)?))).collect()
    }
}

/// Why plugins that were taken up, go on as they were, or were given up before are not as they are to be.
fn failed(
    report: &ReloadReport,
    views: &[PluginView],
    config: &Config,
    problems: &BTreeMap<PluginName, String>,
) -> BTreeMap<PluginName, String> {
    let why = |view: &PluginView| {
        let name = &view.name;
        let plugin = config.plugins.get(name).filter(|plugin| plugin.enabled)?;
        if let Some(required) = &view.view.restart_required {
            let manual = plugin.on_change == config::OnChange::Manual;
            return (!manual).then(|| required.reason.clone());
        }
        let taken_up = report.added.contains(name) || report.changed.contains(name);
        // One that is lazy may wait for what it requires to be configured.
        let waits = view.view.state == PluginState::Blocked && plugin.start == config::StartMode::Lazy;
        // Nothing but a person brings it back, so it is said until somebody does.
        let given_up = matches!(view.view.state, PluginState::Failed | PluginState::Disabled);
        let is_down = down(view).filter(|_| (taken_up && !waits) || given_up);
        is_down.or_else(|| Some(format!("it {}", hopeless(view, problems.get(name)?)?)))
    };
    views.iter().filter_map(|view| Some((view.name.clone(), why(view)?))).collect()
}

/// What a problem that was found without a start means for a plugin; `None` while it waits for others anyway.
fn hopeless(view: &PluginView, problem: &str) -> Option<String> {
    // A process that only was to describe itself serves nobody.
    match (view.view.accepts_calls, view.view.state) {
        (true, _) => Some(format!("goes on, and would not start again: {problem}")),
        (false, PluginState::Blocked) => None,
        (false, _) => Some(format!("cannot run: {problem}")),
    }
}

/// How a plugin is that is not there for callers, and why.
fn down(view: &PluginView) -> Option<String> {
    let state = view.view.state;
    match state {
        PluginState::Backoff | PluginState::Failed | PluginState::Disabled | PluginState::Blocked => {
            let reason = view.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            Some(format!("it is {}{reason}", word(state)))
        }
        PluginState::Registered
        | PluginState::Starting
        | PluginState::Ready
        | PluginState::Busy
        | PluginState::Idle
        | PluginState::Stopping
        | PluginState::Stopped => None,
    }
}

/// The error for a plugin whose new run did not take over.
fn not_replaced(view: &PluginView, reason: &str) -> CallError {
    let name = &view.name;
    let newer = view.exits.last().filter(|exit| exit.generation > view.view.generation);
    let last_words = newer.map(ExitRecord::last_words).unwrap_or_default();
    let message = format!("{name} goes on as it was: {reason}{last_words}");
    CallError::new(ErrorKind::NotReplaced, message).hint(format!(
        "mend it, then `plugd reload {name}`; `plugd status {name}` shows what is not in use yet"
    ))
}
