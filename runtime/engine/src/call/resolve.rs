//! From a name to an operation; a plugin that was never described is described first.

use std::sync::Arc;
use std::time::Instant;

use plugd_contract::export::plugin_in;
use plugd_contract::nearest;
use plugd_protocol::CallError;
use plugd_protocol::control::CallParams;
use plugd_protocol::error::ErrorKind;

use super::Request;
use crate::callers::sees;
use crate::calls::Via;
use crate::config::Profile;
use crate::engine::Engine;
use crate::outcome::builtin;
use crate::registry::{RegisteredOperation, Snapshot};

impl Engine {
    /// Finds what is called, by any of its spellings.
    ///
    /// # Errors
    /// Nothing has that name, or several things; nothing is guessed. Who may not use it by its name
    /// learns no more than that, and starts nothing.
    pub(crate) async fn resolve(
        &self,
        request: &Request,
        profile: Option<&Profile>,
    ) -> Result<Arc<RegisteredOperation>, CallError> {
        let name = request.operation.as_str();
        if let Some(operation) = self.shared().registry.snapshot().operation(name) {
            return Ok(Arc::clone(operation));
        }
        if let Some(own) = builtin::operation(name) {
            return Ok(Arc::clone(own));
        }
        if let Some(profile) = profile.filter(|_| name.contains('.')) {
            profile.allows_name(name)?;
        }
        let found = self.look_for(name, request.hard_deadline).await;
        match profile {
            Some(profile) => found.map_err(|error| self.without_what_is_hidden(name, error, profile)),
            None => found,
        }
    }

    /// Finds what a caller means by a name, as a call would.
    ///
    /// # Errors
    /// As for a call.
    pub(crate) async fn named(
        &self,
        name: &str,
        caller: Option<&str>,
    ) -> Result<Arc<RegisteredOperation>, CallError> {
        let profile = self.profile(caller)?;
        let params = CallParams { caller: caller.map(ToOwned::to_owned), ..CallParams::new(name) };
        self.resolve(&Request::of_caller(params, Via::default()), profile.as_deref()).await
    }

    /// Finds an operation by any of its spellings; its plugin is described first where need be.
    pub(super) async fn look_for(
        &self,
        name: &str,
        deadline: Option<Instant>,
    ) -> Result<Arc<RegisteredOperation>, CallError> {
        let registry = &self.shared().registry;
        let Some((plugin, _)) = name.split_once('.') else {
            return match self.look_for_spelling(name, deadline).await {
                Some(operation) => Ok(operation),
                None => self.look_for_bare(name, deadline).await,
            };
        };
        let Some(plugin) = self.configured(plugin) else {
            return Err(self.unknown_plugin(plugin));
        };
        self.await_described(Some(&plugin), deadline).await;
        if registry.snapshot().operation(name).is_none() {
            self.described_anew(&plugin, deadline).await;
        }
        let snapshot = registry.snapshot();
        if let Some(operation) = snapshot.operation(name) {
            return Ok(Arc::clone(operation));
        }
        match snapshot.plugin(&plugin) {
            Some(registered) => Err(registered
                .manifest
                .quarantined
                .iter()
                .find(|bad| name.ends_with(&format!(".{}", bad.name)))
                .map(|bad| {
                    let message = format!("{name} is quarantined: {}", bad.reason);
                    CallError::new(ErrorKind::UnknownOperation, message)
                        .hint("the plugin's author must mend it")
                })
                .unwrap_or_else(|| snapshot.unknown(name))),
            None => Err(self.undescribed(&plugin).await),
        }
    }

    /// A name without a dot may be that of an operation in the dialect of a model.
    async fn look_for_spelling(
        &self,
        name: &str,
        deadline: Option<Instant>,
    ) -> Option<Arc<RegisteredOperation>> {
        let registry = &self.shared().registry;
        if let Some(operation) = registry.snapshot().spelled(name) {
            return Some(Arc::clone(operation));
        }
        let plugin = self.configured(plugin_in(name)?.as_str())?;
        if registry.snapshot().plugin(&plugin).is_none() {
            self.await_described(Some(&plugin), deadline).await;
        }
        registry.snapshot().spelled(name).cloned()
    }

    /// Or else it is an operation's own, while only one plugin has it.
    async fn look_for_bare(
        &self,
        name: &str,
        deadline: Option<Instant>,
    ) -> Result<Arc<RegisteredOperation>, CallError> {
        let registry = &self.shared().registry;
        self.await_described(None, deadline).await;
        if registry.snapshot().bare(name).is_err() {
            self.remember_others();
        }
        registry.snapshot().bare(name).cloned()
    }

    /// The error for a name that nothing has, with the nearest of what this profile may use.
    fn without_what_is_hidden(&self, name: &str, error: CallError, profile: &Profile) -> CallError {
        let hidden = [ErrorKind::UnknownOperation, ErrorKind::AmbiguousOperation, ErrorKind::UnknownPlugin];
        if !hidden.iter().any(|kind| kind.code() == error.code) {
            return error;
        }
        let snapshot = self.shared().registry.snapshot();
        unknown_to(profile, &snapshot, name)
    }
}

fn unknown_to(profile: &Profile, snapshot: &Snapshot, name: &str) -> CallError {
    let ids: Vec<String> = snapshot
        .operations()
        .filter(|operation| sees(Some(profile), operation))
        .map(|operation| operation.id.to_string())
        .collect();
    let error = CallError::new(ErrorKind::UnknownOperation, format!("there is no operation {name:?}"));
    match nearest(name, ids.iter().map(String::as_str)) {
        Some(near) => {
            error.hint(format!("did you mean {near}? It was not run; `plugd list` shows what there is"))
        }
        None => error,
    }
}
