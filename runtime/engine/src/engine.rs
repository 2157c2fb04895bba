//! The engine: one handle to plugins, registry, logs and events.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plugd_contract::nearest;
use plugd_protocol::control::{
    Event, EventsParams, LogEntry, LogsParams, PluginsParams, StopReport, UnixMillis,
};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, PluginName};
use plugd_store::Retention;
use plugd_supervisor::driver::{Gone, Hosting, PluginSpec, Plugins};
use tokio::sync::{Mutex, MutexGuard, broadcast, watch};
use uuid::Uuid;

use crate::asks::Asks;
use crate::call::Tokens;
use crate::calls::ActiveCalls;
use crate::changes::at_the_start;
use crate::claims::Claims;
use crate::config::{Broken, Config, Environment};
use crate::events::Events;
use crate::host::EngineHost;
use crate::logs::Logs;
use crate::manifests::{self, ManifestCache};
use crate::operator;
use crate::outcome::{Outcomes, Recording};
use crate::registry::Registry;
use crate::spec::plugin_specs;
use plugd_supervisor::driver::unix_now;

/// So long the ends of background calls are waited for once every plugin is gone.
const JOBS_END_WITHIN: Duration = Duration::from_secs(5);

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
    pub(crate) manifests: ManifestCache,
    pub(crate) claims: Claims,
    pub(crate) logs: Logs,
    pub(crate) events: Events,
    pub(crate) calls: Arc<ActiveCalls>,
    pub(crate) asks: Asks,
    /// Calls that wait for a person and that the store could not take.
    pub(crate) tokens: Tokens,
    pub(crate) recording: Recording,
    pub(crate) outcomes: Outcomes,
    pub(crate) config_generation: watch::Sender<u64>,
    pub(crate) since: UnixMillis,
    /// What was to be kept of calls when the record was opened.
    pub(crate) record_as_opened: Option<Retention>,
}

impl Engine {
    /// Opens an engine on the current tokio runtime, which needs I/O and time enabled.
    ///
    /// Returns before plugins are up: [`Engine::list`] waits until they are described.
    ///
    /// # Errors
    /// [`OpenError`] when the state folder cannot be used.
    pub async fn open(config: Config, opening: Opening) -> Result<Engine, OpenError> {
        Engine::open_within(config, opening, None).await
    }

    /// The same, where the record of calls is waited for no longer than that: it is opened in the
    /// background then, and calls go on without it.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub async fn open_within(
        config: Config,
        opening: Opening,
        record: Option<Duration>,
    ) -> Result<Engine, OpenError> {
        let state_dir = config.state_dir.clone();
        let unusable = |source| OpenError::State { path: state_dir.display().to_string(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&state_dir).map_err(unusable)?;
        let config = match opening {
            Opening::Everything => tokio::task::spawn_blocking(move || at_the_start(config))
                .await
                .map_err(|error| OpenError::Thread(std::io::Error::other(error)))?,
            Opening::OnDemand => config,
        };
        config.warn_of_broken();
        if let Some(reason) = &config.operator.unreadable {
            start_without_decisions(&state_dir, reason);
        }
        let logs = Logs::open(state_dir.join("logs")).map_err(unusable)?;
        if opening == Opening::Everything {
            plugd_contract::warm();
        }
        let keep = config.record;
        let hosting = Hosting {
            parent_death_signal: config.parent_death_signal,
            cgroups: config.cgroups,
            runs_dir: Some(state_dir.join("runs")),
            stays: opening == Opening::Everything,
        };
        let shared = Arc::new(Shared {
            config: watch::Sender::new(Arc::new(config)),
            registry: Registry::new(),
            manifests: ManifestCache::open(&state_dir, opening),
            claims: Claims::default(),
            logs,
            events: Events::new(),
            calls: Arc::default(),
            asks: Asks::default(),
            tokens: Tokens::default(),
            recording: Recording::open(&state_dir, keep, record).await,
            outcomes: Outcomes::default(),
            config_generation: watch::Sender::new(1),
            since: unix_now(),
            record_as_opened: keep,
        });
        let host = Arc::new(EngineHost { shared: Arc::clone(&shared), engine: OnceLock::new() });
        let salt = Uuid::now_v7().as_u64_pair().1;
        let supervised = Arc::<EngineHost>::clone(&host);
        let plugins = Plugins::open(supervised, salt, hosting).map_err(OpenError::Thread)?;
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
    pub(crate) async fn apply(&self, applied: &mut Vec<PluginSpec>) -> Result<(), Gone> {
        let specs = self.specs();
        self.forget_answers(applied, &specs);
        applied.clone_from(&specs);
        self.0.plugins.configure(specs).await
    }

    /// Forgets what plugins answered that are not to be run as they were.
    fn forget_answers(&self, before: &[PluginSpec], now: &[PluginSpec]) {
        let same = |one: &PluginSpec, other: &PluginSpec| {
            one.spec.name == other.spec.name && one.spec.facets == other.spec.facets
        };
        for gone in before.iter().filter(|one| !now.iter().any(|other| same(one, other))) {
            self.0.shared.outcomes.cache.forget(&gone.spec.name);
        }
    }

    /// What the supervisor is to run, as configuration, files and known manifests are now.
    pub(crate) fn specs(&self) -> Vec<PluginSpec> {
        let config = self.config();
        let sizes = config.plugins.iter().map(|(name, plugin)| (name.clone(), plugin.limits.log_size));
        self.0.shared.logs.keep(sizes.collect());
        let known = manifests::take_up(&self.0.shared, &config);
        plugin_specs(&config, &Environment::of_process(), self.0.opening, &known)
    }

    pub(crate) fn of(inner: Arc<Inner>) -> Engine {
        Engine(inner)
    }

    /// The configuration in use.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.0.shared.config.borrow())
    }

    /// Stops every call made through a connection: [`Via::connection`](crate::Via::connection).
    ///
    /// Those that were still running are returned; each ends as cancelled where it is awaited.
    pub fn cancel_made_through(&self, connection: u64) -> Vec<CallId> {
        self.0.shared.calls.cancel_made_through(connection)
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
        // Their calls have ended: what is left is to keep how.
        self.0.shared.outcomes.jobs.over(JOBS_END_WITHIN).await;
        self.0.shared.manifests.flush().await;
        // What plugins said last is in their logs before the program may end.
        self.0.shared.logs.flush().await;
        self.0.shared.recording.close().await;
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
        let is_broken = |broken: &&Broken| broken.plugin.as_ref().is_some_and(|own| own.as_str() == name);
        if let Some(problem) = config.broken.iter().find(is_broken).and_then(|own| own.problems.first()) {
            return error.hint(format!("it is passed over until its file is mended: {problem}"));
        }
        match nearest(name, config.plugins.keys().map(PluginName::as_str)) {
            Some(near) => error.hint(format!("did you mean {near}? `plugd list` shows what there is")),
            None if config.file.is_none() => error.hint(
                "no config file was found: `plugd list` shows where was looked; --config FILE names one",
            ),
            None => error,
        }
    }

    pub(crate) fn known(&self, params: &PluginsParams) -> Result<Vec<PluginName>, CallError> {
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

    /// What was applied last, for whoever is to apply something else.
    pub(crate) async fn applied(&self) -> MutexGuard<'_, Vec<PluginSpec>> {
        self.0.applied.lock().await
    }

    pub(crate) fn opening(&self) -> Opening {
        self.0.opening
    }

    pub(crate) fn config_generation(&self) -> u64 {
        *self.0.shared.config_generation.borrow()
    }

    /// Applies changes of the files by itself from now on, while `[daemon] watch` says so.
    pub fn watch(&self) {
        crate::watch::start(Arc::downgrade(&self.0), self.0.shared.config.subscribe());
    }

    /// Warns from now on of operations that seem to be for the same, once for each pair of them.
    ///
    /// It looks once nothing has been registered for a moment, and holds up nobody.
    pub fn watch_overlaps(&self) {
        crate::overlaps::start(Arc::downgrade(&self.0), self.shared());
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    pub(crate) fn plugins(&self) -> &Plugins {
        &self.0.plugins
    }
}

/// Makes room for new decisions of an operator where the ones that were kept cannot be read.
fn start_without_decisions(state_dir: &Path, reason: &str) {
    match operator::set_aside(state_dir) {
        Ok(aside) => {
            tracing::warn!(file = %aside.display(), reason, "what an operator changed cannot be read and was set aside");
        }
        Err(error) => tracing::warn!(reason, %error, "what an operator changed cannot be read"),
    }
}

/// The error for a command that came while plugd goes.
pub(crate) fn gone(Gone: Gone) -> CallError {
    CallError::new(ErrorKind::ShuttingDown, "plugd is shutting down")
}
