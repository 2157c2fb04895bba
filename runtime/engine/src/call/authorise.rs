//! Whether whoever calls may: a caller by its profile, a plugin by what it requires.

use std::sync::Arc;

use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, PluginName};
use plugd_supervisor::driver::Lineage;

use super::{Origin, Request};
use crate::config::{Limits, Profile};
use crate::engine::Engine;
use crate::registry::RegisteredOperation;

impl Engine {
    /// The profile a call is made as; what a plugin calls is its own affair.
    pub(super) fn profile_of(&self, request: &Request) -> Result<Option<Arc<Profile>>, CallError> {
        match &request.origin {
            Origin::Caller => self.profile(request.caller.as_deref()),
            Origin::Plugin { .. } => Ok(None),
        }
    }

    /// Whether the call may be made.
    ///
    /// # Errors
    /// 7001 to 7005; nothing was started.
    pub(super) fn authorise(
        &self,
        request: &Request,
        profile: Option<&Profile>,
        operation: &RegisteredOperation,
    ) -> Result<(), CallError> {
        match &request.origin {
            Origin::Caller => {
                profile.map_or(Ok(()), |profile| profile.may_use(&operation.id, &operation.operation))
            }
            Origin::Plugin { name, lineage } => self.admit_plugin(name, lineage, operation),
        }
    }

    /// Whether a plugin may use another one's operation.
    fn admit_plugin(
        &self,
        plugin: &PluginName,
        lineage: &Lineage,
        operation: &RegisteredOperation,
    ) -> Result<(), CallError> {
        let target = &operation.id.plugin;
        let config = self.config();
        let configured = config.plugins.get(plugin);
        let declared = self.shared().registry.snapshot().plugin(plugin).cloned();
        let requires = configured.is_some_and(|configured| configured.requires.contains_key(target))
            || declared.is_some_and(|declared| declared.manifest.requires.contains_key(target));
        if target != plugin && !requires {
            let message = format!("{plugin} does not require {target}, so it may not call {}", operation.id);
            return Err(CallError::new(ErrorKind::UndeclaredDependency, message));
        }
        let depth_max =
            configured.map_or(Limits::default().call_depth, |configured| configured.limits.call_depth);
        if lineage.depth() >= depth_max as usize {
            let message = format!("this call has come through {} plugins already", lineage.depth());
            return Err(CallError::new(ErrorKind::CallTooDeep, message));
        }
        let lanes = self.lanes(target);
        if lineage.times_through(target) >= lanes as usize {
            let message = match lanes {
                1 => format!("{target} has one lane, and a call that waits for this one holds it"),
                lanes => {
                    format!("{target} has {lanes} lanes, and calls that wait for this one hold them all")
                }
            };
            return Err(CallError::new(ErrorKind::ReentrantCall, message));
        }
        Ok(())
    }

    /// How many calls a plugin takes at once, by manifest and configuration.
    fn lanes(&self, plugin: &PluginName) -> u32 {
        let snapshot = self.shared().registry.snapshot();
        let declared = snapshot.plugin(plugin).map_or(1, |plugin| plugin.manifest.features.concurrency);
        let configured = self.config().plugins.get(plugin).and_then(|plugin| plugin.concurrency);
        configured.map_or(declared, |configured| configured.min(declared))
    }
}
