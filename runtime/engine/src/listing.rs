//! What there is and how it is: listings, descriptions, status and the graph.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use plugd_contract::export::plugin_in;
use plugd_protocol::control::{
    DaemonStatus, DescribeParams, Description, EffectsBacking, ExitReport, Exported, GraphNode, GraphReport,
    Health, ListParams, ListReport, OperationListing, PluginListing, PluginState, PluginStatus, SpareStatus,
    StartReport, StatusParams, StatusReport, UnixMillis,
};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::manifest::{Effects, Manifest};
use plugd_protocol::{CallError, OperationId, OperationName, PluginName};
use plugd_store::Store;
use plugd_supervisor::driver::{ExitRecord, PluginView};

use crate::callers::sees;
use crate::claims::Claims;
use crate::config::{Config, PluginConfig, Profile};
use crate::engine::{Engine, gone};
use crate::pin;
use crate::registry::Snapshot;
use crate::spec::plugin_file;
use plugd_supervisor::driver::unix_now;
use plugd_supervisor::machine::SpareView;

impl Engine {
    /// What there is for whoever calls; waits until every plugin was described or cannot be.
    ///
    /// # Errors
    /// An unknown caller, with the nearest name.
    pub async fn list(&self, params: &ListParams) -> Result<ListReport, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        self.await_described(None, None).await;
        let config = self.config();
        let views = self.views_by_name().await;
        let snapshot = self.shared().registry.snapshot();
        let files = config.plugins.values().map(plugin_file).collect();
        let digests = self.shared().manifests.digests().of_all(files).await;
        let plugins = config.plugins.values().map(|plugin| listing(plugin, &views, &snapshot, &digests));
        let plugins = plugins.filter(|plugin| params.state.is_none_or(|state| state == plugin.state));
        Ok(ListReport {
            plugins: plugins.filter_map(|plugin| seen_by(profile.as_deref(), plugin, &snapshot)).collect(),
            config: config.file.as_ref().map(|file| file.display().to_string()),
            looked_in: config.scan_dirs.iter().map(|dir| dir.display().to_string()).collect(),
            skipped: config.passed_over(),
        })
    }

    /// One plugin, or one operation of it.
    ///
    /// # Errors
    /// An unknown plugin, operation or caller, with the nearest name; 7004 or 7005 for an operation
    /// that the caller may not use.
    pub async fn describe(&self, params: &DescribeParams) -> Result<Description, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        if let Some(profile) = profile.as_deref().filter(|_| params.name.contains('.')) {
            profile.allows_name(&params.name)?;
        }
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
        let digests = self.shared().manifests.digests().of_all(vec![plugin_file(configured)]).await;
        let plugin = listing(configured, &self.views_by_name().await, &snapshot, &digests);
        let mut description = Description {
            plugin,
            manifest_sha256: None,
            manifest_pinned: false,
            requires: configured.requires.clone(),
            features: plugd_protocol::manifest::Features::default(),
            config_schema: None,
            operations: Vec::new(),
            quarantined: Vec::new(),
            exported: Vec::new(),
        };
        if let Some(registered) = snapshot.plugin(&name) {
            let manifest = &registered.manifest;
            if operation.is_none() {
                description.manifest_sha256 = Some(pin::digest(&registered.written));
                description.manifest_pinned = configured.manifest_sha256 == description.manifest_sha256;
            }
            for (required, requirement) in &manifest.requires {
                description.requires.entry(required.clone()).or_insert_with(|| requirement.clone());
            }
            description.features = manifest.features.clone();
            description.config_schema.clone_from(&manifest.config_schema);
            description.operations.clone_from(&manifest.operations);
            description.quarantined.clone_from(&manifest.quarantined);
        }
        if let Some(profile) = &profile {
            narrow(&mut description, profile, operation.as_deref())?;
        }
        if let Some(operation) = &operation {
            description.operations.retain(|declared| declared.name.as_str() == operation);
            description.quarantined.retain(|bad| bad.name == *operation);
            if description.operations.is_empty() {
                return Err(snapshot.unknown(&params.name));
            }
        }
        // What a profile may not use is in neither list.
        let shown = |exported: &Exported| {
            let declared = description.operations.iter().map(|operation| operation.name.as_str());
            let bad = description.quarantined.iter().map(|bad| bad.name.as_str());
            declared.chain(bad).any(|own| exported.id == format!("{name}.{own}"))
        };
        let exported = self.exported(&name, operation.as_deref()).await;
        description.exported = exported.into_iter().filter(shown).collect();
        Ok(description)
    }

    /// A name without a dot is a plugin's, or else an operation's that only one plugin has.
    async fn plugin_or_bare_operation(&self, name: &str) -> Result<(String, Option<String>), CallError> {
        let is_spelling = name.contains("__");
        if self.configured(name).is_some() || (OperationName::new(name).is_err() && !is_spelling) {
            return Ok((name.to_owned(), None));
        }
        // One that a spelling names is enough; for any other name all have to be known.
        let only = plugin_in(name).and_then(|plugin| self.configured(plugin.as_str()));
        self.await_described(only.as_ref(), None).await;
        match self.shared().registry.snapshot().bare(name) {
            Ok(operation) => {
                let id = &operation.id;
                Ok((id.plugin.to_string(), Some(id.operation.to_string())))
            }
            Err(ambiguous) if ambiguous.code == plugd_protocol::ErrorKind::AmbiguousOperation.code() => {
                Err(ambiguous)
            }
            Err(unknown) if is_spelling => Err(unknown),
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
        let config = self.config();
        let claims = &self.shared().claims;
        let all: Vec<PluginStatus> =
            views.into_iter().map(|view| status(view, &config, &snapshot, claims)).collect();
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
                not_recorded: self.shared().recording.off(),
                record_begun_anew: self.shared().recording.store().and_then(begun_anew),
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

    /// Whether logs and events of a plugin may be asked for: it is configured, or was and is removed.
    ///
    /// # Errors
    /// An unknown plugin, with the nearest name.
    pub fn expect_plugin(&self, plugin: Option<&PluginName>) -> Result<(), CallError> {
        let config = self.config();
        let known =
            |name: &PluginName| config.plugins.contains_key(name) || config.removed.contains_key(name);
        match plugin.filter(|name| !known(name)) {
            Some(unknown) => Err(self.unknown_plugin(unknown.as_str())),
            None => Ok(()),
        }
    }

    /// Who requires whom; waits until every plugin was described or cannot be.
    pub async fn graph(&self) -> GraphReport {
        self.await_described(None, None).await;
        let views = self.views_by_name().await;
        let Ok(graph) = self.plugins().graph().await else {
            return GraphReport { nodes: Vec::new(), edges: Vec::new(), cycles: Vec::new() };
        };
        let node = |(name, level): (PluginName, Option<u32>)| {
            let view = views.get(&name);
            let state = view.map_or(PluginState::Registered, shown_state);
            GraphNode { state, reason: view.and_then(|view| view.reason.clone()), name, level }
        };
        let nodes = graph.order.into_iter().map(node).collect();
        GraphReport { nodes, edges: graph.edges, cycles: graph.cycles }
    }

    /// Plugins as a start or restart leaves them.
    pub(crate) fn started(&self, views: Vec<PluginView>) -> StartReport {
        let (config, snapshot) = (self.config(), self.shared().registry.snapshot());
        let claims = &self.shared().claims;
        let status = |view| status(view, &config, &snapshot, claims);
        StartReport { plugins: views.into_iter().map(status).collect() }
    }

    /// How every plugin is.
    pub(crate) async fn views_by_name(&self) -> BTreeMap<PluginName, PluginView> {
        // While plugd goes, what is configured is still listed.
        let views = self.plugins().views().await.unwrap_or_default();
        views.into_iter().map(|view| (view.name.clone(), view)).collect()
    }
}

/// A plugin as this profile sees it; none where it may use nothing of it.
fn seen_by(
    profile: Option<&Profile>,
    mut plugin: PluginListing,
    snapshot: &Snapshot,
) -> Option<PluginListing> {
    let Some(profile) = profile else { return Some(plugin) };
    let seen = |id: &OperationId| {
        snapshot.operation(&id.to_string()).is_some_and(|operation| sees(Some(profile), operation))
    };
    plugin.operations.retain(|operation| seen(&operation.id));
    plugin.quarantined.clear();
    (!plugin.operations.is_empty()).then_some(plugin)
}

/// Leaves of a plugin what a profile may use; `operation` is the one that was asked for.
fn narrow(
    description: &mut Description,
    profile: &Profile,
    operation: Option<&str>,
) -> Result<(), CallError> {
    let plugin = description.plugin.name.clone();
    let id = |declared: &plugd_protocol::Operation| OperationId {
        plugin: plugin.clone(),
        operation: declared.name.clone(),
    };
    let asked_for = |declared: &&plugd_protocol::Operation| Some(declared.name.as_str()) == operation;
    if let Some(declared) = description.operations.iter().find(asked_for) {
        profile.may_use(&id(declared), declared)?;
    }
    description.operations.retain(|declared| profile.may_use(&id(declared), declared).is_ok());
    description
        .plugin
        .operations
        .retain(|listed| description.operations.iter().any(|declared| declared.name == listed.id.operation));
    description.quarantined.clear();
    description.plugin.quarantined.clear();
    match (operation, description.operations.is_empty()) {
        (None, true) => {
            let message = format!("{} may use nothing of {plugin}", profile.name());
            Err(CallError::new(ErrorKind::NotAllowed, message))
        }
        (Some(_), _) | (None, false) => Ok(()),
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
        reason: view.and_then(|view| view.reason_for_callers.clone()),
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
pub(crate) fn shown_state(view: &PluginView) -> PluginState {
    if view.view.state == PluginState::Ready && view.in_flight > 0 {
        PluginState::Busy
    } else {
        view.view.state
    }
}

/// How a plugin is, with what is known of it without its running.
pub(crate) fn status(
    view: PluginView,
    config: &Config,
    snapshot: &Snapshot,
    claims: &Claims,
) -> PluginStatus {
    let state = shown_state(&view);
    let manifest = snapshot.plugin(&view.name).map(|registered| &registered.manifest);
    let lanes = || {
        let configured = config.plugins.get(&view.name).and_then(|plugin| plugin.concurrency);
        let declared = manifest.map_or(1, |manifest| manifest.features.concurrency);
        configured.map_or(declared, |configured| configured.min(declared))
    };
    let effects = manifest.and_then(|manifest| backing(manifest, view.is_read_only()));
    let claims_changed = claims.changed(&view.name);
    let exits: Vec<ExitReport> = view.exits.iter().map(ExitRecord::report).collect();
    PluginStatus {
        version: manifest.map(|manifest| manifest.version.clone()),
        concurrency: if view.view.pid.is_some() { view.concurrency } else { lanes() },
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
        last_exit: exits.last().cloned(),
        describe_ms: view.describe_took.map(millis),
        init_ms: view.init_took.map(millis),
        in_flight: view.in_flight,
        queued: view.queued,
        stray_lines: view.stray_lines,
        unmatched_answers: view.unmatched_answers,
        exits,
        restart_required: view.view.restart_required,
        replacing: view.view.replacing.map(|generation| generation.0),
        spare: view.view.spare.map(spare),
        enforced: view.enforced,
        not_enforced: view.not_enforced,
        effects,
        claims_changed,
    }
}

fn spare(view: SpareView) -> SpareStatus {
    SpareStatus {
        generation: view.generation.map(|generation| generation.0),
        pid: view.pid,
        ready: view.ready,
        failure: view.failure,
        next_start: view.next.map(wall_clock),
    }
}

/// What stands behind the effects that a manifest declares; none where it declares none.
fn backing(manifest: &Manifest, runs_read_only: bool) -> Option<EffectsBacking> {
    let mut effects = manifest.operations.iter().map(|operation| operation.effects);
    if effects.clone().all(|effects| effects == Effects::default()) {
        return None;
    }
    let enforced = runs_read_only && effects.all(|effects| effects.read_only == Some(true));
    Some(if enforced { EffectsBacking::Enforced } else { EffectsBacking::Claimed })
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

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Why the record was begun anew, and where the one before lies.
fn begun_anew(store: &Store) -> Option<String> {
    let health = store.health();
    let aside = health
        .moved_aside
        .map(|aside| format!("the one before was damaged and lies in {}", aside.to.display()));
    let lost = || Some(format!("the one before {}", health.begun_anew?));
    let before =
        || Some(format!("an earlier one was damaged and lies in {}", health.set_aside_before?.display()));
    aside.or_else(lost).or_else(before)
}
