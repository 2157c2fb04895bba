//! A manifest that is only remembered refuses nothing: before it would, its plugin is asked.
//!
//! The files that a manifest was kept for are those of the command. What a program loads besides may
//! have changed since, and what it declares with it.

use std::time::{Duration, Instant};

use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, PluginName};
use plugd_supervisor::driver::Patience;

use crate::config::TIMEOUT_DEFAULT;
use crate::engine::Engine;
use crate::failure::not_admitted;

impl Engine {
    /// Why a plugin is not described, as an error for a call to it.
    pub(crate) async fn undescribed(&self, plugin: &PluginName) -> CallError {
        let patience =
            Patience { hard: Some(Instant::now()), unavailable: Duration::ZERO, queue: Duration::ZERO };
        match self.plugins().admit(plugin, patience).await {
            Err(failure) => not_admitted(plugin, failure),
            Ok(_lease) => {
                CallError::new(ErrorKind::Internal, format!("{plugin} is ready without a manifest"))
            }
        }
    }

    /// Takes up what is remembered of the plugins that nothing is known of otherwise.
    ///
    /// A single call looks at no plugin that it does not need. A bare name may be that of one which
    /// cannot be started, and then the call is to say that and not that there is no such operation.
    pub(crate) fn remember_others(&self) {
        let (config, shared) = (self.config(), self.shared());
        let declared = shared.registry.snapshot();
        let others = config.plugins.values().filter(|plugin| declared.plugin(&plugin.name).is_none());
        let known = others.filter_map(|plugin| Some((plugin.name.clone(), shared.manifests.recall(plugin)?)));
        // One that is refused stays unknown.
        shared.registry.register_all(known.collect());
    }

    /// Has a plugin started whose manifest is only remembered; true where it is described now.
    pub(crate) async fn described_anew(&self, plugin: &PluginName, deadline: Option<Instant>) -> bool {
        let registry = &self.shared().registry;
        let is_remembered = || registry.snapshot().plugin(plugin).is_some_and(|known| known.is_remembered());
        if !is_remembered() {
            return false;
        }
        let config = self.config();
        let limits = config.plugins.get(plugin).map_or(config.limits, |plugin| plugin.limits);
        let patience = Patience { hard: deadline, unavailable: TIMEOUT_DEFAULT, queue: limits.queue_timeout };
        // Whether it comes up or not: what it declares is known then, or the error stands.
        drop(self.plugins().admit(plugin, patience).await);
        !is_remembered()
    }
}
