//! What is known of manifests without running anything, taken up.

use std::collections::BTreeMap;
use std::sync::Arc;

use plugd_protocol::PluginName;
use plugd_supervisor::machine::Declared;
use serde_json::value::{RawValue, to_raw_value};

use super::ManifestCache;
use crate::config::{Config, PluginConfig};
use crate::engine::{Opening, Shared};
use crate::pin;
use crate::registry::{Checked, Known, Registry, Snapshot};
use crate::spec;

/// Registers every manifest that is known without running its plugin; answers whose are.
///
/// Also takes note of how each plugin's files are now: it is what will run.
pub(crate) fn take_up(shared: &Shared, config: &Config) -> BTreeMap<PluginName, Declared> {
    let mut known = Vec::new();
    let mut unusable = Vec::new();
    for plugin in config.plugins.values() {
        let kept = match shared.manifests.known(plugin) {
            Ok(kept) => kept,
            Err(reason) => {
                unusable.push(format!("{}: {reason}", plugin.name));
                None
            }
        };
        // An engine for a single call reads what is kept of a plugin when that is described.
        let read = (shared.manifests.opening == Opening::Everything).then_some(plugin);
        if let Some((agreed, latest)) = read.and_then(|plugin| shared.manifests.changed_before(plugin)) {
            shared.claims.remember(&plugin.name, &agreed, &latest);
            if shared.tell_of_claims_left(&plugin.name) {
                // Where its files are others by now, that it was told is kept with what they declare.
                if let Some(Known { manifest, checked: Checked::Before(quarantined) }) = &kept {
                    let agreed = shared.claims.agreed(&plugin.name);
                    shared.manifests.note(&plugin.name, Arc::clone(manifest), quarantined, agreed);
                }
            }
        }
        let beside = beside(shared, plugin, kept.is_some());
        known.extend(beside.or(kept).map(|known| (plugin.name.clone(), known)));
    }
    if !unusable.is_empty() {
        let (count, first) = (unusable.len(), unusable.first().map(String::as_str).unwrap_or_default());
        tracing::warn!(count, first, "kept manifests cannot be used; the plugins are described afresh");
    }
    shared.manifests.retain(config);
    let mut declared = BTreeMap::new();
    for (name, registered) in shared.registry.register_all(known) {
        match registered {
            Ok(registered) => drop(declared.insert(name, spec::declared(&registered.manifest))),
            Err(reason) => tracing::warn!(plugin = %name, reason, "the manifest known of it is not used"),
        }
    }
    declared
}

/// What lies beside a plugin of what it would answer to `describe`, unless something else is pinned.
///
/// Where it is the same as before, what the plugin itself said since goes before it.
fn beside(shared: &Shared, plugin: &PluginConfig, as_kept: bool) -> Option<Known> {
    let manifest: Arc<RawValue> = to_raw_value(plugin.manifest.as_ref()?).ok()?.into();
    let is_news = shared.manifests.lies_beside(&plugin.name, &manifest);
    let snapshot = shared.registry.snapshot();
    let registered = snapshot.plugin(&plugin.name).map(|registered| &registered.written);
    if let Some(registered) = registered.filter(|registered| !is_news && pin::allows(plugin, registered)) {
        return Some(Known { manifest: Arc::clone(registered), checked: Checked::NotYet });
    }
    if let Some(reason) = pin::refusal(plugin, &manifest, registered.map(|registered| &**registered)) {
        if is_news {
            tracing::warn!(plugin = %plugin.name, reason, "the manifest that lies beside it is not used");
        }
        return None;
    }
    // An engine for a single call looks only at what it runs.
    if is_news && !as_kept && shared.manifests.opening == Opening::Everything {
        shared.look_at_claims(&plugin.name, None, &manifest);
    }
    Some(Known { manifest, checked: Checked::NotYet })
}

/// What is kept of each plugin whose files are as they were, for whoever runs none of them.
pub(crate) fn remembered(config: &Config) -> Arc<Snapshot> {
    let cache = ManifestCache::open(&config.state_dir, Opening::OnDemand);
    let known = |plugin: &PluginConfig| Some((plugin.name.clone(), cache.recall(plugin)?));
    let registry = Registry::new();
    // One that is refused is described anew when it is needed.
    drop(registry.register_all(config.plugins.values().filter_map(known).collect()));
    registry.snapshot()
}
