//! What an operator changes while plugd runs: plugins added, removed, allowed, forbidden, stopped.
//!
//! Each change is kept before it takes effect, and an answer comes after the effect.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use plugd_protocol::control::{
    AddParams, AddReport, ChangeReport, PluginsParams, StartReport, StatusParams, StopReport,
};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, OperationId, PluginName};
use plugd_supervisor::driver::PluginSpec;
use tokio::sync::MutexGuard;

use crate::config::{self, Config, ConfigError, Environment};
use crate::engine::{Engine, Opening, gone};
use crate::operator::{Operator, Turn};

impl Engine {
    /// Adds a plugin, to be there from now on; answers when it is described, or cannot be.
    ///
    /// One that cannot be described stays added: its state in the report says why. Without anything
    /// but its name, a plugin that was removed is restored.
    ///
    /// # Errors
    /// What is wrong with it, a name that is taken, a state folder that cannot be written to, or plugd is
    /// going.
    pub async fn add(&self, params: &AddParams) -> Result<AddReport, CallError> {
        let name = &params.name;
        let mut change = self.begin_change().await?;
        let mut operator = change.config.operator.clone();
        operator.forget(name);
        if change.config.removed.contains_key(name) && params.plugin.is_empty() {
            change.keep(operator, |_| Ok(())).await?;
        } else {
            name_is_free(&change.config, params)?;
            let (text, plugin) =
                config::compose(&change.config, params, &Environment::of_process()).map_err(invalid)?;
            change.config.plugins.insert(name.clone(), plugin);
            let file_name = name.clone();
            change.keep(operator, move |state_dir| config::keep_added(state_dir, &file_name, &text)).await?;
        }
        self.carry_out(change).await?;
        self.plugins().described(vec![name.clone()]).await.map_err(gone)?;
        self.added(name).await
    }

    /// How a plugin that was just added is.
    async fn added(&self, name: &PluginName) -> Result<AddReport, CallError> {
        let status = self.status(&StatusParams { plugin: Some(name.clone()) }).await?;
        let plugin = status.plugins.into_iter().next();
        let plugin = plugin.ok_or_else(|| self.unknown_plugin(name.as_str()))?;
        let snapshot = self.shared().registry.snapshot();
        let registered = snapshot.plugin(name).map(|registered| registered.manifest.operations.iter());
        let id = |operation: &plugd_protocol::Operation| OperationId {
            plugin: name.clone(),
            operation: operation.name.clone(),
        };
        let operations = registered.into_iter().flatten().map(id).collect();
        let (exported, findings) = (self.exported(name, None).await, self.findings_of(name).await);
        Ok(AddReport { plugin, operations, exported, findings })
    }

    /// Removes plugins; answers when their processes are gone.
    ///
    /// One that was added is forgotten. One that is configured stays in its file and is as good as not
    /// there, until `add` with its name alone restores it.
    ///
    /// # Errors
    /// An unknown plugin, in which case nothing was changed; a state folder that cannot be written to, or
    /// plugd is going.
    pub async fn remove(&self, params: &PluginsParams) -> Result<ChangeReport, CallError> {
        let mut change = self.begin_change().await?;
        let config = &mut change.config;
        let report = self.sorted(params, |name| match config.removed.contains_key(name) {
            true => Some(false),
            false => config.plugins.contains_key(name).then_some(true),
        })?;
        let mut operator = config.operator.clone();
        let mut files = Vec::new();
        for name in &report.changed {
            operator.forget(name);
            match config.plugins.get(name) {
                Some(plugin) if plugin.is_added() => {
                    config.plugins.remove(name);
                    files.push(name.clone());
                }
                _ => drop(operator.removed.insert(name.clone())),
            }
        }
        if report.changed.is_empty() && !change.learnt {
            return Ok(report);
        }
        let forget = move |state_dir: &Path| {
            files.iter().try_for_each(|name| config::forget_added(state_dir, name).map(drop))
        };
        change.keep(operator, forget).await?;
        self.carry_out(change).await?;
        // To be removed is to be stopped, and more: this waits for it.
        self.plugins().stop(report.changed.clone()).await.map_err(gone)?;
        Ok(report)
    }

    /// Lets plugins be used, whatever their files say; answers when they are described, or cannot be.
    ///
    /// # Errors
    /// As [`Engine::remove`].
    pub async fn enable(&self, params: &PluginsParams) -> Result<ChangeReport, CallError> {
        let report = self.allow(params, true).await?;
        match self.opening() {
            Opening::Everything => self.plugins().described(report.changed.clone()).await.map_err(gone)?,
            Opening::OnDemand => {}
        }
        Ok(report)
    }

    /// Lets plugins no longer be used, whatever their files say; answers when their processes are gone.
    ///
    /// # Errors
    /// As [`Engine::remove`].
    pub async fn disable(&self, params: &PluginsParams) -> Result<ChangeReport, CallError> {
        let report = self.allow(params, false).await?;
        self.plugins().settled(report.changed.clone()).await.map_err(gone)?;
        Ok(report)
    }

    async fn allow(&self, params: &PluginsParams, enabled: bool) -> Result<ChangeReport, CallError> {
        let mut change = self.begin_change().await?;
        let config = &change.config;
        let is_enabled = |name: &PluginName| config.plugins.get(name).map(|plugin| plugin.enabled);
        let report = self.sorted(params, |name| is_enabled(name).map(|is| is != enabled))?;
        if report.changed.is_empty() && !change.learnt {
            return Ok(report);
        }
        let mut operator = config.operator.clone();
        for name in &report.changed {
            // What the files say anyway needs no decision: the next change of them counts again.
            match config.plugins.get(name).is_some_and(|plugin| plugin.enabled_as_written == enabled) {
                true => drop(operator.enabled.remove(name)),
                false => drop(operator.enabled.insert(name.clone(), enabled)),
            }
        }
        change.keep(operator, |_| Ok(())).await?;
        self.carry_out(change).await?;
        Ok(report)
    }

    /// Starts plugins; answers when each is ready or has come to rest.
    ///
    /// # Errors
    /// An unknown plugin, a state folder that cannot be written to, or plugd is going.
    pub async fn start(&self, params: &PluginsParams) -> Result<StartReport, CallError> {
        let plugins = self.known(params)?;
        let kept = self.note_stopped(&plugins, false).await;
        let views = self.plugins().start(plugins).await.map_err(gone)?;
        kept.map(|()| self.started(views))
    }

    /// Stops plugins, to stay stopped; answers when their processes are gone.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn stop(&self, params: &PluginsParams) -> Result<StopReport, CallError> {
        let plugins = self.known(params)?;
        let kept = self.note_stopped(&plugins, true).await;
        let plugins = self.plugins().stop(plugins).await.map_err(gone)?;
        kept.map(|()| StopReport { plugins })
    }

    /// Stops plugins and starts them again; answers when each is ready or has come to rest.
    ///
    /// What changed about them is taken up.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn restart(&self, params: &PluginsParams) -> Result<StartReport, CallError> {
        let plugins = self.known(params)?;
        let kept = self.note_stopped(&plugins, false).await;
        self.look_again(&plugins, true).await?;
        let views = self.plugins().restart(plugins).await;
        // What was held back for the restart is as it is configured again.
        let applied = self.applied().await;
        self.plugins().configure(applied.clone()).await.map_err(gone)?;
        drop(applied);
        let views = views.map_err(gone)?;
        kept.map(|()| self.started(views))
    }

    /// Notes which plugins an operator stopped. The command itself is carried out either way: a full
    /// disk must not keep a plugin running.
    async fn note_stopped(&self, plugins: &[PluginName], stopped: bool) -> Result<(), CallError> {
        let mut change = self.begin_change().await?;
        let mut operator = change.config.operator.clone();
        for name in plugins {
            match stopped {
                true => drop(operator.stopped.insert(name.clone())),
                false => drop(operator.stopped.remove(name)),
            }
        }
        if operator == change.config.operator && !change.learnt {
            return Ok(());
        }
        let kept = change.keep(operator, |_| Ok(())).await;
        match change.learnt {
            true => self.carry_out(change).await?,
            false => {
                // The command itself tells the supervisor.
                let Change { mut applied, config, .. } = change;
                for spec in applied.iter_mut() {
                    spec.spec.held = config.operator.stopped.contains(&spec.spec.name);
                }
                self.shared().config.send_replace(Arc::new(config));
            }
        }
        kept.map_err(|error| error.hint("it was done; only the next start of plugd does not know it"))
    }

    /// Sorts plugins by whether something is to be changed about them; `None` is an unknown one.
    fn sorted(
        &self,
        params: &PluginsParams,
        changes: impl Fn(&PluginName) -> Option<bool>,
    ) -> Result<ChangeReport, CallError> {
        let mut report = ChangeReport { changed: Vec::new(), unchanged: Vec::new() };
        for name in &params.plugins {
            let list = match changes(name) {
                Some(true) => &mut report.changed,
                Some(false) => &mut report.unchanged,
                None => return Err(self.unknown_plugin(name.as_str())),
            };
            if !list.contains(name) {
                list.push(name.clone());
            }
        }
        Ok(report)
    }

    /// Takes the turn to change what operators decided, with what others made of it by now.
    ///
    /// A folder that cannot be written to is found out when something is to be kept.
    async fn begin_change(&self) -> Result<Change<'_>, CallError> {
        let applied = self.applied().await;
        let running = self.config();
        let is_daemon = match self.opening() {
            Opening::Everything => true,
            Opening::OnDemand => false,
        };
        let looked = tokio::task::spawn_blocking(move || {
            let turn = Turn::take(&running.state_dir);
            // One that comes up later reads what is kept when it is its turn.
            let elsewhere = !is_daemon && UnixStream::connect(&running.socket).is_ok();
            let refreshed = running.refreshed();
            let learnt = refreshed.is_some();
            let config = refreshed.unwrap_or_else(|| Config::clone(&running));
            (elsewhere, turn, config, learnt)
        });
        let (elsewhere, turn, config, learnt) =
            looked.await.map_err(|error| CallError::new(ErrorKind::Internal, error.to_string()))?;
        match elsewhere {
            true => Err(CallError::new(
                ErrorKind::AlreadyRunning,
                format!("a daemon has started on {}, and changes are its own", config.socket.display()),
            )),
            false => Ok(Change { applied, config, learnt, turn: Some(turn) }),
        }
    }

    /// Takes up what a change made of the configuration.
    async fn carry_out(&self, change: Change<'_>) -> Result<(), CallError> {
        let Change { mut applied, config, .. } = change;
        self.take_up(config, &mut applied).await
    }

    /// Takes up a configuration in place of the one before.
    pub(crate) async fn take_up(
        &self,
        config: Config,
        applied: &mut Vec<PluginSpec>,
    ) -> Result<(), CallError> {
        self.shared().config.send_replace(Arc::new(config));
        self.apply(applied).await.map_err(gone)?;
        self.shared().config_generation.send_modify(|generation| *generation += 1);
        Ok(())
    }
}

/// A change of what operators decided, under way: nobody else makes one before it is kept or given up.
struct Change<'a> {
    applied: MutexGuard<'a, Vec<PluginSpec>>,
    /// The configuration that it is to lead to.
    config: Config,
    /// Whether others changed something meanwhile, which is to be taken up in any case.
    learnt: bool,
    /// Given back when the change is kept.
    turn: Option<io::Result<Turn>>,
}

impl Change<'_> {
    /// Makes the decisions those of the configuration, and keeps them with what else is to be written.
    async fn keep(
        &mut self,
        operator: Operator,
        also: impl FnOnce(&Path) -> io::Result<()> + Send + 'static,
    ) -> Result<(), CallError> {
        self.config.obey(operator.clone());
        let (turn, state_dir) = (self.turn.take(), self.config.state_dir.clone());
        let (before, kept) = (self.config.kept.clone(), operator.clone());
        let written = tokio::task::spawn_blocking(move || {
            let _turn = turn.transpose()?;
            also(&state_dir)?;
            if operator == before { Ok(()) } else { operator.save(&state_dir) }
        });
        match written.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(()) => {
                self.config.kept = kept;
                Ok(())
            }
            Err(error) => {
                let state_dir = self.config.state_dir.display();
                let message = format!("the change cannot be kept in {state_dir}: {error}");
                Err(CallError::new(ErrorKind::CannotServe, message)
                    .hint("nothing was changed; plugd must be able to write to its state folder"))
            }
        }
    }
}

/// The configuration of a daemon that starts, with what was changed since it was read.
///
/// Its socket is bound by now: a change that comes later is its own, and one under way is waited for.
pub(crate) fn at_the_start(config: Config) -> Config {
    let turn = Turn::take(&config.state_dir);
    if let Err(error) = &turn {
        tracing::warn!(%error, "a change of an operator may be under way and is not waited for");
    }
    config.refreshed().unwrap_or(config)
}

/// Refuses a name that something else has.
fn name_is_free(config: &Config, params: &AddParams) -> Result<(), CallError> {
    let name = &params.name;
    let refused =
        |message: String, hint: String| Err(CallError::new(ErrorKind::InvalidConfig, message).hint(hint));
    if name.as_str() == config::OWN_NAME {
        return refused(config::OWN_NAME_TAKEN.to_owned(), "name it with --name".to_owned());
    }
    if let Some(plugin) = config.plugins.get(name) {
        let place = match &plugin.source {
            plugd_protocol::control::Source::Config { file } => file.clone(),
            plugd_protocol::control::Source::Scan { dir } => dir.clone(),
            plugd_protocol::control::Source::Added { file } => file.clone(),
            _ => "the program".to_owned(),
        };
        let hint = format!("give this one another name, or `plugd remove {name}` first");
        return refused(format!("there is a plugin {name} already, from {place}"), hint);
    }
    if config.removed.contains_key(name) {
        let message = format!("there is a plugin {name} already, which is configured and was removed");
        return refused(message, format!("give this one another name; `plugd add {name}` restores that one"));
    }
    if params.plugin.is_empty() {
        let message = format!("no plugin {name} was removed that could be restored");
        let hint = "to add a program name it by its path, as `plugd add ./FILE`; one that was added before \
            is forgotten once it is removed";
        return refused(message, hint.to_owned());
    }
    Ok(())
}

/// The error for a configuration that cannot be used.
pub(crate) fn invalid(error: ConfigError) -> CallError {
    // Unlike what a plugin says this is not clipped: each problem is to be mended.
    CallError { message: error.told(), ..CallError::new(ErrorKind::InvalidConfig, "") }
}
