//! What declarations could say better, of the plugins that are configured.

use std::collections::BTreeSet;
use std::sync::Arc;

use plugd_contract::lint;
use plugd_protocol::control::{LintFinding, LintParams, LintReport};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, PluginName};

use crate::config::Config;
use crate::engine::Engine;
use crate::registry::Snapshot;

impl Engine {
    /// What declarations could say better; nothing is run but to be described.
    ///
    /// Overlaps are looked for among all plugins that are enabled.
    ///
    /// # Errors
    /// An unknown plugin, or one that was named and cannot be described.
    pub async fn lint(&self, params: LintParams) -> Result<LintReport, CallError> {
        let config = self.config();
        if let Some(unknown) = params.plugins.iter().find(|plugin| !config.plugins.contains_key(*plugin)) {
            return Err(self.unknown_plugin(unknown.as_str()));
        }
        self.await_described(None, None).await;
        let snapshot = self.shared().registry.snapshot();
        for plugin in &params.plugins {
            if snapshot.plugin(plugin).is_none() {
                return Err(self.undescribed(plugin).await);
            }
        }
        let wanted: BTreeSet<PluginName> = match params.plugins.is_empty() {
            true => config.plugins.keys().cloned().collect(),
            false => params.plugins.into_iter().collect(),
        };
        // Of very many declarations it takes a while, and calls are not to wait for that.
        let looked = tokio::task::spawn_blocking(move || look_at(&config, &snapshot, &wanted));
        looked.await.map_err(|error| CallError::new(ErrorKind::Internal, error.to_string()))
    }

    /// The same of one plugin, as far as it is described.
    pub(crate) async fn findings_of(&self, plugin: &PluginName) -> Vec<LintFinding> {
        let (config, snapshot) = (self.config(), self.shared().registry.snapshot());
        let wanted = BTreeSet::from([plugin.clone()]);
        let looked = tokio::task::spawn_blocking(move || look_at(&config, &snapshot, &wanted));
        looked.await.map(|report| report.findings).unwrap_or_default()
    }
}

fn look_at(config: &Arc<Config>, snapshot: &Snapshot, wanted: &BTreeSet<PluginName>) -> LintReport {
    let mut report = LintReport::default();
    for plugin in wanted {
        let Some(registered) = snapshot.plugin(plugin) else { continue };
        for operation in registered.operations() {
            report.findings.extend(lint::operation(&operation.id, &operation.operation));
            report.operations += 1;
        }
        report.findings.extend(lint::manifest(plugin.as_str(), &registered.written));
        let quarantined = &registered.manifest.quarantined;
        report.findings.extend(quarantined.iter().map(|bad| lint::quarantined(plugin.as_str(), bad)));
        report.operations += u64::try_from(quarantined.len()).unwrap_or(u64::MAX);
    }
    let enabled = config.plugins.values().filter(|plugin| plugin.enabled || wanted.contains(&plugin.name));
    let registered = enabled.filter_map(|plugin| snapshot.plugin(&plugin.name));
    let operations = registered.flat_map(|registered| registered.operations());
    let declared = operations.map(|operation| (&operation.id, &operation.operation));
    report.findings.extend(lint::overlaps(declared, |id| wanted.contains(&id.plugin)));
    // Of one operation the order stays: the name first, what it shares with others last.
    report.findings.sort_by(|one, other| one.subject.cmp(&other.subject));
    report
}
