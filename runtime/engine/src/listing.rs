//! What there is and how it is: listings, descriptions, status and the graph.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use plugd_protocol::control::{
    DaemonStatus, DescribeParams, Description, GraphNode, GraphReport, Health, ListParams, ListReport,
    OperationListing, PluginListing, PluginState, PluginStatus, ReloadReport, StartReport, StatusParams,
    StatusReport, UnixMillis,
};
use plugd_protocol::{CallError, OperationName, PluginName};
use plugd_supervisor::driver::{PluginSpec, PluginView};
use sha2::{Digest, Sha256};

use crate::config::{Config, PluginConfig};
use crate::engine::{Engine, gone};
use crate::registry::Snapshot;
use crate::spec::plugin_file;
use plugd_supervisor::driver::unix_now;

impl Engine {
    /// What there is; waits until every plugin was described or cannot be.
    pub async fn list(&self, params: &ListParams) -> ListReport {
        self.await_described(None, None).await;
        let config = self.config();
        let views = self.views_by_name().await;
        let snapshot = self.shared().registry.snapshot();
        let digests = digests(config.plugins.values().map(plugin_file).collect()).await;
        let plugins = config.plugins.values().map(|plugin| listing(plugin, &views, &snapshot, &digests));
        ListReport {
            plugins: plugins
                .filter(|plugin| params.state.is_none_or(|state| state == plugin.state))
                .collect(),
            config: config.file.as_ref().map(|file| file.display().to_string()),
            looked_in: config.scan_dirs.iter().map(|dir| dir.display().to_string()).collect(),
            skipped: config.skipped.clone(),
        }
    }

    /// One plugin, or one operation of it.
    ///
    /// # Errors
    /// An unknown plugin or operation, with the nearest name.
    pub async fn describe(&self, params: &DescribeParams) -> Result<Description, CallError> {
        let (plugin_name, operation) = match params.name.split_once('.') {
            Some((plugin, operation)) => (plugin.to_owned(), Some(operation.to_owned())),
            None => self.plugin_or_bare_operation(&params.name).await?,
        };
        let Some(name) = self.configured(&plugin_name) else {
            return Err(self.unknown_plugin(&plugin_name));
        };
        self.await_described(Some(&name), None).await;
        let config = self.config();
        let configured = config.plugins.get(&name).ok_or_else(|| self.unknown_plugin(&plugin_name))?;
        let snapshot = self.shared().registry.snapshot();
        let digests = digests(vec![plugin_file(configured)]).await;
        let plugin = listing(configured, &self.views_by_name().await, &snapshot, &digests);
        let mut description = Description {
            plugin,
            requires: configured.requires.clone(),
            features: plugd_protocol::manifest::Features::default(),
            config_schema: None,
            operations: Vec::new(),
            quarantined: Vec::new(),
        };
        if let Some(registered) = snapshot.plugin(&name) {
            let manifest = &registered.manifest;
            for (required, requirement) in &manifest.requires {
                description.requires.entry(required.clone()).or_insert_with(|| requirement.clone());
            }
            description.features = manifest.features.clone();
            description.config_schema.clone_from(&manifest.config_schema);
            description.operations.clone_from(&manifest.operations);
            description.quarantined.clone_from(&manifest.quarantined);
        }
        if let Some(operation) = operation {
            description.operations.retain(|declared| declared.name.as_str() == operation);
            if description.operations.is_empty() {
                return Err(snapshot.unknown(&params.name));
            }
        }
        Ok(description)
    }

    /// A name without a dot is a plugin's, or else an operation's that only one plugin has.
    async fn plugin_or_bare_operation(&self, name: &str) -> Result<(String, Option<String>), CallError> {
        if self.configured(name).is_some() || OperationName::new(name).is_err() {
            return Ok((name.to_owned(), None));
        }
        self.await_described(None, None).await;
        match self.shared().registry.snapshot().bare(name) {
            Ok(operation) => {
                let id = &operation.id;
                Ok((id.plugin.to_string(), Some(id.operation.to_string())))
            }
            Err(ambiguous) if ambiguous.code == plugd_protocol::ErrorKind::AmbiguousOperation.code() => {
                Err(ambiguous)
            }
            Err(_unknown) => Err(self.unknown_plugin(name)),
        }
    }

    /// How everything is, or one plugin; `daemon.socket` is for the daemon to fill in.
    ///
    /// # Errors
    /// An unknown plugin, or plugd is going.
    pub async fn status(&self, params: &StatusParams) -> Result<StatusReport, CallError> {
        if let Some(plugin) = &params.plugin
            && !self.config().plugins.contains_key(plugin)
        {
            return Err(self.unknown_plugin(plugin.as_str()));
        }
        let views = self.plugins().views().await.map_err(gone)?;
        let snapshot = self.shared().registry.snapshot();
        let all: Vec<PluginStatus> = views.into_iter().map(|view| status(view, &snapshot)).collect();
        let config = self.config();
        let enabled = |name: &PluginName| config.plugins.get(name).is_some_and(|plugin| plugin.enabled);
        let broken = |plugin: &PluginStatus| {
            enabled(&plugin.name)
                && matches!(plugin.state, PluginState::Failed | PluginState::Disabled | PluginState::Blocked)
        };
        Ok(StatusReport {
            daemon: DaemonStatus {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                health: if all.iter().any(broken) { Health::Degraded } else { Health::Ok },
                config: config.file.as_ref().map(|file| file.display().to_string()),
                socket: None,
                config_generation: *self.shared().config_generation.borrow(),
                since: self.shared().since,
                calls: self.shared().calls.list(),
            },
            plugins: all
                .into_iter()
                .filter(|plugin| params.plugin.as_ref().is_none_or(|name| *name == plugin.name))
                .collect(),
        })
    }

    /// Who requires whom; waits until every plugin was described or cannot be.
    pub async fn graph(&self) -> GraphReport {
        self.await_described(None, None).await;
        let views = self.views_by_name().await;
        let Ok(graph) = self.plugins().graph().await else {
            return GraphReport { nodes: Vec::new(), edges: Vec::new(), cycles: Vec::new() };
        };
        let state = |name: &PluginName| views.get(name).map_or(PluginState::Registered, shown_state);
        let node = |(name, level): (PluginName, Option<u32>)| GraphNode { state: state(&name), name, level };
        let nodes = graph.order.into_iter().map(node).collect();
        GraphReport { nodes, edges: graph.edges, cycles: graph.cycles }
    }

    async fn views_by_name(&self) -> BTreeMap<PluginName, PluginView> {
        // While plugd goes, what is configured is still listed.
        let views = self.plugins().views().await.unwrap_or_default();
        views.into_iter().map(|view| (view.name.clone(), view)).collect()
    }
}

fn listing(
    plugin: &PluginConfig,
    views: &BTreeMap<PluginName, PluginView>,
    snapshot: &Snapshot,
    digests: &HashMap<PathBuf, String>,
) -> PluginListing {
    let view = views.get(&plugin.name);
    let manifest = snapshot.plugin(&plugin.name).map(|registered| &registered.manifest);
    let path = plugin_file(plugin);
    let operations = manifest.map(|manifest| {
        let listed = |operation: &plugd_protocol::Operation| OperationListing {
            id: plugd_protocol::OperationId {
                plugin: plugin.name.clone(),
                operation: operation.name.clone(),
            },
            description: operation.description.clone(),
        };
        manifest.operations.iter().map(listed).collect()
    });
    PluginListing {
        name: plugin.name.clone(),
        state: view.map_or(PluginState::Registered, shown_state),
        reason: view.and_then(|view| view.reason.clone()),
        enabled: plugin.enabled,
        priority: plugin.priority.or_else(|| manifest.and_then(|manifest| manifest.priority)).unwrap_or(0),
        version: manifest.map(|manifest| manifest.version.clone()),
        description: manifest.and_then(|manifest| manifest.description.clone()),
        source: plugin.source.clone(),
        digest: digests.get(&path).cloned(),
        path: path.display().to_string(),
        operations: operations.unwrap_or_default(),
        quarantined: manifest.map(|manifest| manifest.quarantined.clone()).unwrap_or_default(),
    }
}

/// What the machine calls ready is busy while calls are in flight.
fn shown_state(view: &PluginView) -> PluginState {
    if view.view.state == PluginState::Ready && view.in_flight > 0 {
        PluginState::Busy
    } else {
        view.view.state
    }
}

fn status(view: PluginView, snapshot: &Snapshot) -> PluginStatus {
    let state = shown_state(&view);
    PluginStatus {
        version: snapshot.plugin(&view.name).map(|registered| registered.manifest.version.clone()),
        name: view.name,
        state,
        reason: view.reason,
        waits_for: view.view.waits_for,
        pid: view.view.pid,
        generation: view.view.generation.0,
        since: wall_clock(view.view.since),
        starts: view.view.starts,
        restarts: view.view.restarts,
        next_start: view.view.next_start.map(wall_clock),
        last_exit: view.last_exit.map(|exit| exit.report()),
        describe_ms: view.describe_took.map(millis),
        init_ms: view.init_took.map(millis),
        concurrency: view.concurrency,
        in_flight: view.in_flight,
        queued: view.queued,
        stray_lines: view.stray_lines,
        unmatched_answers: view.unmatched_answers,
        exits: Vec::new(),
        restart_required: None,
        replacing: None,
        enforced: BTreeMap::new(),
        not_enforced: BTreeMap::new(),
    }
}

/// Plugins as a start or restart leaves them.
pub(crate) fn start_report(views: Vec<PluginView>) -> StartReport {
    let nothing = Snapshot::default();
    StartReport { plugins: views.into_iter().map(|view| status(view, &nothing)).collect() }
}

/// What a reload of the whole configuration changed.
pub(crate) fn reloaded(before: &[PluginSpec], after: &[PluginSpec], config_generation: u64) -> ReloadReport {
    let find =
        |specs: &[PluginSpec], name: &PluginName| specs.iter().find(|spec| spec.spec.name == *name).cloned();
    let names = |specs: &[PluginSpec], keep: &dyn Fn(&PluginSpec) -> bool| {
        specs.iter().filter(|spec| keep(spec)).map(|spec| spec.spec.name.clone()).collect::<Vec<_>>()
    };
    ReloadReport {
        config_generation,
        added: names(after, &|spec| find(before, &spec.spec.name).is_none()),
        removed: names(before, &|spec| find(after, &spec.spec.name).is_none()),
        changed: names(after, &|spec| find(before, &spec.spec.name).is_some_and(|was| was != *spec)),
        unchanged: names(after, &|spec| find(before, &spec.spec.name).is_some_and(|was| was == *spec)),
        restart_required: Vec::new(),
        generations: BTreeMap::new(),
    }
}

/// What taking up one plugin anew changed.
pub(crate) fn one_reloaded(config: &Config, plugin: &PluginName, config_generation: u64) -> ReloadReport {
    ReloadReport {
        config_generation,
        added: Vec::new(),
        removed: Vec::new(),
        changed: vec![plugin.clone()],
        unchanged: config.plugins.keys().filter(|name| *name != plugin).cloned().collect(),
        restart_required: Vec::new(),
        generations: BTreeMap::new(),
    }
}

/// SHA-256 of each file, in hexadecimal; what cannot be read has none.
async fn digests(paths: Vec<PathBuf>) -> HashMap<PathBuf, String> {
    let hashed = tokio::task::spawn_blocking(move || {
        let digested = |path: PathBuf| digest(&path).ok().map(|digest| (path, digest));
        paths.into_iter().filter_map(digested).collect()
    });
    hashed.await.unwrap_or_default()
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(64 * 1024, File::open(path)?);
    let mut hasher = Sha256::new();
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        hasher.update(chunk);
        let read = chunk.len();
        file.consume(read);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A moment of the monotonic clock on the wall clock.
fn wall_clock(moment: Instant) -> UnixMillis {
    let now = Instant::now();
    let ahead = moment.saturating_duration_since(now);
    let ago = now.saturating_duration_since(moment);
    let wall = SystemTime::now().checked_add(ahead).and_then(|wall| wall.checked_sub(ago));
    let since = wall.and_then(|wall| wall.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.map_or_else(unix_now, |since| UnixMillis(millis(since)))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
