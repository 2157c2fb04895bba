//! The engine: one handle to plugins, registry, logs and events.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use plugd_contract::nearest;
use plugd_protocol::control::{
    Event, EventsParams, LogEntry, LogsParams, PluginsParams, ReloadParams, ReloadReport, StartReport,
    StopReport, UnixMillis,
};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, PluginName};
use plugd_supervisor::driver::{Gone, PluginSpec, Plugins};
use tokio::sync::{Mutex, broadcast, watch};
use uuid::Uuid;

use crate::calls::ActiveCalls;
use crate::config::{Config, Environment};
use crate::events::{Events, happening};
use crate::host::EngineHost;
use crate::listing;
use crate::logs::Logs;
use crate::registry::Registry;
use crate::spec::plugin_specs;
use plugd_supervisor::driver::unix_now;

/// A running engine; cheap to clone, all clones are the same engine.
///
/// [`Engine::shutdown`] ends it in order. When the last clone is dropped without that, plugins
/// are stopped in the background for as long as the runtime lives.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

/// What an engine does by itself when it opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Describes every plugin and starts the eager ones, as the daemon does.
    Everything,
    /// Touches no plugin before a call needs it, as a single `plugd call` does.
    OnDemand,
}

/// Why an engine could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder for state cannot be used.
    #[error(
        "cannot use the state folder {path}: {source}; set [daemon] state_dir to one that can be written"
    )]
    State {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The operating system gave no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

pub(crate) struct Inner {
    shared: Arc<Shared>,
    plugins: Plugins,
    opening: Opening,
    /// What was applied last. Whoever applies a configuration holds it meanwhile, so that two
    /// reloads come one after the other and each sees what the other did.
    applied: Mutex<Vec<PluginSpec>>,
}

/// What the engine and the supervisor's host both use.
pub(crate) struct Shared {
    pub(crate) config: watch::Sender<Arc<Config>>,
    pub(crate) registry: Registry,
    pub(crate) logs: Logs,
    pub(crate) events: Events,
    pub(crate) calls: Arc<ActiveCalls>,
    pub(crate) config_generation: watch::Sender<u64>,
    pub(crate) since: UnixMillis,
}

impl Engine {
    /// Opens an engine on the current tokio runtime, which needs I/O and time enabled.
    ///
    /// Returns before plugins are up: [`Engine::list`] waits until they are described.
    ///
    /// # Errors
    /// [`OpenError`] when the state folder cannot be used.
    pub async fn open(config: Config, opening: Opening) -> Result<Engine, OpenError> {
        let state_dir = config.state_dir.clone();
        let unusable = |source| OpenError::State { path: state_dir.display().to_string(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&state_dir).map_err(unusable)?;
        let logs = Logs::open(state_dir.join("logs"), config.limits.log_size).map_err(unusable)?;
        if opening == Opening::Everything {
            plugd_contract::warm();
        }
        let shared = Arc::new(Shared {
            config: watch::Sender::new(Arc::new(config)),
            registry: Registry::new(),
            logs,
            events: Events::new(),
            calls: Arc::default(),
            config_generation: watch::Sender::new(1),
            since: unix_now(),
        });
        let host = Arc::new(EngineHost { shared: Arc::clone(&shared), engine: OnceLock::new() });
        let salt = Uuid::now_v7().as_u64_pair().1;
        let supervised = Arc::<EngineHost>::clone(&host);
        let plugins = Plugins::open(supervised, salt).map_err(OpenError::Thread)?;
        let inner = Arc::new(Inner { shared, plugins, opening, applied: Mutex::default() });
        // Set once, here: nothing has been spawned that could have asked for it.
        let _first = host.engine.set(Arc::downgrade(&inner));
        let engine = Engine(inner);
        let mut applied = engine.0.applied.lock().await;
        engine
            .apply(&mut applied)
            .await
            .map_err(|Gone| OpenError::Thread(std::io::Error::other("the control task ended")))?;
        drop(applied);
        Ok(engine)
    }

    /// Hands the current configuration to the supervisor and takes note of what it was.
    async fn apply(&self, applied: &mut Vec<PluginSpec>) -> Result<(), Gone> {
        let config = self.config();
        for (name, plugin) in &config.plugins {
            if let Some(manifest) = &plugin.manifest
                && let Err(reason) = self.0.shared.registry.register(name, &manifest.to_string())
            {
                tracing::warn!(plugin = %name, reason, "the manifest beside the program is not used");
            }
        }
        let specs = plugin_specs(&config, &Environment::of_process(), self.0.opening);
        applied.clone_from(&specs);
        self.0.plugins.configure(specs).await
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Engine {
        Engine(inner)
    }

    /// The configuration in use.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.0.shared.config.borrow())
    }

    /// Stops a call; true when it was still running.
    pub fn cancel(&self, call_id: &CallId) -> bool {
        self.0.shared.calls.cancel(call_id)
    }

    /// Starts plugins; answers when each is ready or has come to rest.
    ///
    /// # Errors
    /// An unknown plugin, or plugd is going.
    pub async fn start(&self, params: &PluginsParams) -> Result<StartReport, CallError> {
        let plugins = self.known(params)?;
        let views = self.0.plugins.start(plugins).await.map_err(gone)?;
        Ok(listing::start_report(views))
    }

    /// Stops plugins, to stay stopped; answers when their processes are gone.
    ///
    /// # Errors
    /// An unknown plugin, or plugd is going.
    pub async fn stop(&self, params: &PluginsParams) -> Result<StopReport, CallError> {
        let plugins = self.known(params)?;
        let plugins = self.0.plugins.stop(plugins).await.map_err(gone)?;
        Ok(StopReport { plugins })
    }

    /// Stops plugins and starts them again; answers when each is ready or has come to rest.
    ///
    /// # Errors
    /// An unknown plugin, or plugd is going.
    pub async fn restart(&self, params: &PluginsParams) -> Result<StartReport, CallError> {
        let plugins = self.known(params)?;
        self.look_again(&plugins).await?;
        let views = self.0.plugins.restart(plugins).await.map_err(gone)?;
        Ok(listing::start_report(views))
    }

    /// Takes note of how the programs of these plugins are now, since they are about to be run anew:
    /// a later reload finds no change in what runs already.
    async fn look_again(&self, plugins: &[PluginName]) -> Result<(), CallError> {
        let mut applied = self.0.applied.lock().await;
        let now = plugin_specs(&self.config(), &Environment::of_process(), self.0.opening);
        for spec in now.into_iter().filter(|spec| plugins.contains(&spec.spec.name)) {
            if let Some(known) = applied.iter_mut().find(|known| known.spec.name == spec.spec.name) {
                *known = spec;
            }
        }
        self.0.plugins.configure(applied.clone()).await.map_err(gone)
    }

    /// Applies the config file anew as a difference, or takes one plugin up anew.
    ///
    /// A file that cannot be used changes nothing.
    ///
    /// # Errors
    /// An unknown plugin, a configuration that cannot be used, or plugd is going.
    pub async fn reload(&self, params: &ReloadParams) -> Result<ReloadReport, CallError> {
        let before = self.config();
        if let Some(plugin) = &params.plugin {
            self.known(&PluginsParams { plugins: vec![plugin.clone()] })?;
            self.look_again(std::slice::from_ref(plugin)).await?;
            let views = self.0.plugins.reload(plugin.clone()).await.map_err(gone)?;
            if let Some(error) = views.iter().find_map(crate::failure::not_up) {
                return Err(error);
            }
            return Ok(listing::one_reloaded(&before, plugin, *self.0.shared.config_generation.borrow()));
        }
        let Some(file) = before.file.clone() else {
            let message = "there is no config file to read again";
            return Err(
                CallError::new(ErrorKind::InvalidConfig, message).hint("start plugd with --config FILE")
            );
        };
        // The turn is taken before the file is read: what was read last is what stands last.
        let mut applied = self.0.applied.lock().await;
        let read = tokio::task::spawn_blocking(move || Config::load(&file)).await;
        let config = read
            .map_err(|error| CallError::new(ErrorKind::Internal, error.to_string()))?
            .map_err(|error| CallError::new(ErrorKind::InvalidConfig, error.to_string()))?;
        let specs_before = applied.clone();
        self.0.shared.config.send_replace(Arc::new(config));
        self.apply(&mut applied).await.map_err(gone)?;
        self.0.shared.config_generation.send_modify(|generation| *generation += 1);
        let report = listing::reloaded(&specs_before, &applied, *self.0.shared.config_generation.borrow());
        drop(applied);
        let taken_up = report.added.iter().chain(&report.changed).cloned().collect();
        self.0.plugins.described(taken_up).await.map_err(gone)?;
        self.0.shared.events.emit(happening("config.reloaded"));
        Ok(report)
    }

    /// The latest log lines that match, oldest first.
    pub async fn logs(&self, params: &LogsParams) -> Vec<LogEntry> {
        self.0.shared.logs.latest(params).await
    }

    /// Log lines from now on; filter them with [`crate::logs::matches`].
    pub fn follow_logs(&self) -> broadcast::Receiver<LogEntry> {
        self.0.shared.logs.follow()
    }

    /// The latest events that match, oldest first.
    pub async fn events(&self, params: &EventsParams) -> Vec<Event> {
        self.0.shared.events.latest(params)
    }

    /// Events from now on; filter them with [`crate::events::matches`].
    pub fn follow_events(&self) -> broadcast::Receiver<Event> {
        self.0.shared.events.follow()
    }

    /// Stops every plugin, dependents first; a second call while it lasts skips the graces.
    pub async fn shutdown(&self) -> StopReport {
        // Gone means that it has been done.
        let plugins = self.0.plugins.shutdown().await.unwrap_or_default();
        // What plugins said last is in their logs before the program may end.
        self.0.shared.logs.flush().await;
        StopReport { plugins }
    }

    /// The configured plugin of that name.
    pub(crate) fn configured(&self, name: &str) -> Option<PluginName> {
        self.config().plugins.keys().find(|plugin| plugin.as_str() == name).cloned()
    }

    /// The error for a plugin that is not configured, with the nearest that is.
    pub(crate) fn unknown_plugin(&self, name: &str) -> CallError {
        let config = self.config();
        let error = CallError::new(ErrorKind::UnknownPlugin, format!("there is no plugin {name:?}"));
        match nearest(name, config.plugins.keys().map(PluginName::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}? `plugd list` shows what there is")),
            None if config.file.is_none() => error.hint(
                "no config file was found: `plugd list` shows where was looked; --config FILE names one",
            ),
            None => error,
        }
    }

    fn known(&self, params: &PluginsParams) -> Result<Vec<PluginName>, CallError> {
        let config = self.config();
        match params.plugins.iter().find(|plugin| !config.plugins.contains_key(*plugin)) {
            Some(unknown) => Err(self.unknown_plugin(unknown.as_str())),
            None => Ok(params.plugins.clone()),
        }
    }

    /// Waits until a plugin, or every one, is described or cannot be.
    pub(crate) async fn await_described(&self, plugin: Option<&PluginName>, deadline: Option<Instant>) {
        let config = self.config();
        let plugins: Vec<PluginName> = match plugin {
            Some(plugin) => vec![plugin.clone()],
            None => config
                .plugins
                .values()
                .filter(|plugin| plugin.enabled)
                .map(|plugin| plugin.name.clone())
                .collect(),
        };
        let longest = plugins.iter().filter_map(|plugin| config.plugins.get(plugin));
        let longest = longest.map(|plugin| plugin.limits.describe_timeout).max().unwrap_or_default();
        // Several may wait for their turn to be described.
        let patience = Instant::now() + longest * 3;
        let ends = deadline.map_or(patience, |deadline| deadline.min(patience));
        // What was not described by then is shown as it is.
        let _late = tokio::time::timeout_at(ends.into(), self.0.plugins.described(plugins)).await;
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    pub(crate) fn plugins(&self) -> &Plugins {
        &self.0.plugins
    }
}

/// The error for a command that came while plugd goes.
pub(crate) fn gone(Gone: Gone) -> CallError {
    CallError::new(ErrorKind::ShuttingDown, "plugd is shutting down")
}
