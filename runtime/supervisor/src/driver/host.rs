//! What the driver needs from whoever embeds it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use plugd_protocol::control::{LogEntry, PluginState};
use plugd_protocol::plugin::{HostAskResult, Question};
use plugd_protocol::{CallId, PluginName, RpcError};
use serde_json::value::RawValue;

use super::deadline::{CallClock, Deadline};
use crate::machine::{Declared, Generation};

/// The embedding side: takes manifests, log lines and events, runs `host/call`s and asks people.
///
/// Except for [`Host::call`] and [`Host::ask`], methods are called from the tasks that serve plugins and must
/// return at once.
pub trait Host: Send + Sync + 'static {
    /// Takes a manifest as `describe` answered it; what it says about the plugin's life comes back.
    ///
    /// The manifest of a [`Standing::Candidate`] is only looked at: it comes again, as that of the
    /// serving run, when the candidate takes over. So is that of a [`Standing::Spare`], which is refused
    /// where it is another than that of the run that serves.
    ///
    /// # Errors
    /// The reason for which the manifest is refused; the plugin is disabled with it.
    fn described(
        &self,
        plugin: &PluginName,
        generation: Generation,
        manifest: &RawValue,
        standing: Standing,
    ) -> Result<Accepted, String>;

    /// The configuration to send with `init` or `reload`: as written, defaults filled in from the
    /// schema of this manifest, or of the one taken last.
    ///
    /// # Errors
    /// The reason for which it does not fit; the plugin is disabled with it.
    fn init_config(
        &self,
        plugin: &PluginName,
        written: &serde_json::Value,
        manifest: Option<&RawValue>,
    ) -> Result<Box<RawValue>, String>;

    /// Takes a line of a plugin's log.
    fn log(&self, entry: LogEntry);

    /// Takes something that happened.
    fn event(&self, plugin: &PluginName, generation: Generation, event: RunEvent);

    /// Runs a `host/call`; dropping the future cancels it.
    fn call(&self, call: HostCall) -> Pin<Box<dyn Future<Output = Result<HostReply, RpcError>> + Send>>;

    /// Asks the person behind a call; dropping the future takes the questions back.
    fn ask(&self, ask: HostAsk) -> Pin<Box<dyn Future<Output = Result<HostAskResult, RpcError>> + Send>>;
}

/// What an accepted manifest means for the plugin's life and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// For its life.
    pub declared: Declared,
    /// How many calls it takes at once.
    pub concurrency: u32,
    /// Whether it answers `ping`.
    pub ping: bool,
}

/// What a run is to its plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The one that serves, or will.
    Serving,
    /// About to take over from the one that serves.
    Candidate,
    /// Would take its place if that failed, and declares the same or is none.
    Spare,
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
    /// A new run has taken over from this one.
    Replaced {
        /// The run that served until now.
        from: Generation,
    },
    /// This run took the place of one that failed.
    TookOver {
        /// The run that served until then.
        from: Generation,
    },
    /// This run is ready to take the place of the one that serves.
    SpareReady,
    /// This run was to be ready to take the place of the one that serves, and cannot.
    SpareFailed {
        /// Why.
        reason: String,
    },
    /// A new configuration is in use, without a new process.
    Reconfigured,
    /// A change was not taken up: a new run failed, or a reload was refused. This run goes on as it was.
    Refused {
        /// Why.
        reason: String,
    },
    /// The plugin was removed from the configuration and is gone.
    Forgotten,
}

/// One plugin's use of another.
#[derive(Debug)]
pub struct HostCall {
    /// Who calls.
    pub plugin: PluginName,
    /// The call it belongs to, if there is one.
    pub belongs_to: Option<CallId>,
    /// On whose behalf.
    pub lineage: Lineage,
    /// When that call must have ended, by its clock.
    pub deadline: Option<Deadline>,
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

/// Questions of a plugin to the person behind one of its calls.
#[derive(Debug)]
pub struct HostAsk {
    /// Who asks.
    pub plugin: PluginName,
    /// On behalf of which call.
    pub call_id: CallId,
    /// What: at least one question, each with a name of its own.
    pub questions: Vec<Question>,
}

/// The plugins a call has come through, outermost first.
#[derive(Debug, Clone, Default)]
pub struct Lineage(Option<Arc<Link>>);

#[derive(Debug)]
struct Link {
    plugin: PluginName,
    outer: Lineage,
    /// The clock of the call to that plugin.
    call_clock: CallClock,
}

impl Lineage {
    /// The same lineage with one more plugin, through which the call now goes.
    #[must_use]
    pub fn through(&self, plugin: PluginName) -> Lineage {
        Lineage(Some(Arc::new(Link { plugin, outer: self.clone(), call_clock: CallClock::default() })))
    }

    /// How many plugins it has come through.
    pub fn depth(&self) -> usize {
        self.iter().count()
    }

    /// How many of the calls it has come through are with this plugin.
    pub fn times_through(&self, plugin: &PluginName) -> usize {
        self.iter().filter(|link| *link == plugin).count()
    }

    /// The clocks of its calls, innermost first.
    pub(super) fn clocks(&self) -> impl Iterator<Item = &CallClock> {
        self.links().map(|link| &link.call_clock)
    }

    fn iter(&self) -> impl Iterator<Item = &PluginName> {
        self.links().map(|link| &link.plugin)
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        let mut at = self.0.as_deref();
        std::iter::from_fn(move || {
            let link = at?;
            at = link.outer.0.as_deref();
            Some(link)
        })
    }
}
