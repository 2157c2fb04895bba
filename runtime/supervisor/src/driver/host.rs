//! What the driver needs from whoever embeds it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use plugd_protocol::control::{LogEntry, PluginState};
use plugd_protocol::{CallId, PluginName, RpcError};
use serde_json::value::RawValue;

use crate::machine::{Declared, Generation};

/// The embedding side: takes manifests, log lines and events, and runs `host/call`s.
///
/// Except for [`Host::call`], methods are called from the tasks that serve plugins and must
/// return at once.
pub trait Host: Send + Sync + 'static {
    /// Takes a manifest as `describe` answered it; what it says about the plugin's life comes back.
    ///
    /// # Errors
    /// The reason for which the manifest is refused; the plugin is disabled with it.
    fn described(
        &self,
        plugin: &PluginName,
        generation: Generation,
        manifest: &RawValue,
    ) -> Result<Accepted, String>;

    /// The configuration to send with `init`, defaults filled in.
    ///
    /// # Errors
    /// The reason for which it does not fit; the plugin is disabled with it.
    fn init_config(&self, plugin: &PluginName) -> Result<Box<RawValue>, String>;

    /// Takes a line of a plugin's log.
    fn log(&self, entry: LogEntry);

    /// Takes something that happened.
    fn event(&self, plugin: &PluginName, generation: Generation, event: RunEvent);

    /// Runs a `host/call`; dropping the future cancels it.
    fn call(&self, call: HostCall) -> Pin<Box<dyn Future<Output = Result<HostReply, RpcError>> + Send>>;
}

/// What an accepted manifest means for the plugin's life and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// For its life.
    pub declared: Declared,
    /// How many calls it takes at once.
    pub concurrency: u32,
}

/// Something that happened to a plugin or one of its calls.
#[derive(Debug)]
pub enum RunEvent {
    /// The plugin entered a state.
    Entered {
        /// Which.
        state: PluginState,
        /// Why, where it is not plain.
        reason: Option<String>,
    },
    /// A call reported how far it is.
    Progress {
        /// Which call.
        call_id: CallId,
        /// The notification's params, as it wrote them.
        params: String,
    },
    /// A call gave a piece of its result.
    Partial {
        /// Which call.
        call_id: CallId,
        /// The notification's params, as it wrote them.
        params: String,
    },
    /// The plugin says that its manifest changed.
    ManifestChanged,
    /// The plugin was removed from the configuration and is gone.
    Forgotten,
}

/// One plugin's use of another.
#[derive(Debug)]
pub struct HostCall {
    /// Who calls.
    pub plugin: PluginName,
    /// On whose behalf.
    pub lineage: Lineage,
    /// When the outermost deadline passes, if there is one.
    pub deadline: Option<Instant>,
    /// What is called.
    pub operation: String,
    /// With what.
    pub arguments: Option<Box<RawValue>>,
    /// The session of the call it belongs to.
    pub session: Option<Arc<str>>,
    /// The trace of the call it belongs to.
    pub traceparent: Option<Arc<str>>,
}

/// The answer to a `host/call` that succeeded.
#[derive(Debug, serde::Serialize)]
pub struct HostReply {
    /// What the other plugin gave.
    pub data: Box<RawValue>,
    /// Its summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The inner call's id.
    pub call_id: CallId,
}

/// The plugins a call has come through, outermost first.
#[derive(Debug, Clone, Default)]
pub struct Lineage(Option<Arc<Link>>);

#[derive(Debug)]
struct Link {
    plugin: PluginName,
    outer: Lineage,
}

impl Lineage {
    /// The same lineage with one more plugin, through which the call now goes.
    #[must_use]
    pub fn through(&self, plugin: PluginName) -> Lineage {
        Lineage(Some(Arc::new(Link { plugin, outer: self.clone() })))
    }

    /// How many plugins it has come through.
    pub fn depth(&self) -> usize {
        self.iter().count()
    }

    /// Whether it has come through this plugin.
    pub fn contains(&self, plugin: &PluginName) -> bool {
        self.iter().any(|link| link == plugin)
    }

    fn iter(&self) -> impl Iterator<Item = &PluginName> {
        let mut at = self.0.as_deref();
        std::iter::from_fn(move || {
            let link = at?;
            at = link.outer.0.as_deref();
            Some(&link.plugin)
        })
    }
}
