//! What plugins declare, compiled and indexed once: nothing of it is done on the way of a call.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plugd_contract::{Contract, nearest};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::manifest::Manifest;
use plugd_protocol::negotiation;
use plugd_protocol::{CallError, Operation, OperationId, PluginName};
use tokio::sync::watch;

/// Every declaration known; read through snapshots.
#[derive(Debug)]
pub(crate) struct Registry {
    snapshot: watch::Sender<Arc<Snapshot>>,
}

/// The declarations at one moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    plugins: BTreeMap<PluginName, Arc<Registered>>,
    /// By `plugin.operation`.
    operations: HashMap<String, Arc<RegisteredOperation>>,
    /// By bare name.
    bare: HashMap<String, Vec<Arc<RegisteredOperation>>>,
}

/// What one plugin declares.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) manifest: Manifest,
    /// The manifest as it was written, to notice a change.
    written: String,
    operations: Vec<Arc<RegisteredOperation>>,
}

/// One operation, ready to be called.
#[derive(Debug)]
pub(crate) struct RegisteredOperation {
    pub(crate) id: OperationId,
    pub(crate) operation: Operation,
    pub(crate) contract: Contract,
    pub(crate) plugin_version: Arc<str>,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        Registry { snapshot: watch::Sender::new(Arc::default()) }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Takes up what a plugin declares; true when that differs from what was known.
    ///
    /// An operation whose schema cannot be used is quarantined; the others work.
    ///
    /// # Errors
    /// The reason for which the manifest as a whole is refused.
    pub(crate) fn register(&self, plugin: &PluginName, written: &str) -> Result<bool, String> {
        if self.snapshot().plugins.get(plugin).is_some_and(|known| known.written == written) {
            return Ok(false);
        }
        let mut manifest = Manifest::parse(written).map_err(|error| error.to_string())?;
        negotiation::accept(manifest.protocol).map_err(|error| error.to_string())?;
        let version: Arc<str> = manifest.version.as_str().into();
        let mut operations = Vec::with_capacity(manifest.operations.len());
        for operation in manifest.operations.clone() {
            match Contract::compile(&operation.input_schema) {
                Ok(contract) => operations.push(Arc::new(RegisteredOperation {
                    id: OperationId { plugin: plugin.clone(), operation: operation.name.clone() },
                    operation,
                    contract,
                    plugin_version: Arc::clone(&version),
                })),
                Err(error) => manifest.quarantine(operation.name.as_str(), format!("input_schema: {error}")),
            }
        }
        let registered = Registered { manifest, written: written.to_owned(), operations };
        self.change(|plugins| drop(plugins.insert(plugin.clone(), Arc::new(registered))));
        Ok(true)
    }

    /// Forgets what a plugin declared; true when something was known.
    pub(crate) fn forget(&self, plugin: &PluginName) -> bool {
        let known = self.snapshot().plugins.contains_key(plugin);
        if known {
            self.change(|plugins| drop(plugins.remove(plugin)));
        }
        known
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<PluginName, Arc<Registered>>)) {
        let mut plugins = self.snapshot().plugins.clone();
        change(&mut plugins);
        self.snapshot.send_replace(Arc::new(Snapshot::of(plugins)));
    }
}

impl Snapshot {
    fn of(plugins: BTreeMap<PluginName, Arc<Registered>>) -> Snapshot {
        let mut operations = HashMap::new();
        let mut bare: HashMap<String, Vec<_>> = HashMap::new();
        for operation in plugins.values().flat_map(|plugin| &plugin.operations) {
            operations.insert(operation.id.to_string(), Arc::clone(operation));
            bare.entry(operation.id.operation.to_string()).or_default().push(Arc::clone(operation));
        }
        Snapshot { plugins, operations, bare }
    }

    /// What a plugin declares, where that is known.
    pub(crate) fn plugin(&self, plugin: &PluginName) -> Option<&Arc<Registered>> {
        self.plugins.get(plugin)
    }

    /// The operation of that identity.
    pub(crate) fn operation(&self, identity: &str) -> Option<&Arc<RegisteredOperation>> {
        self.operations.get(identity)
    }

    /// The only operation of that bare name.
    ///
    /// # Errors
    /// An unknown or an ambiguous operation; nothing is guessed.
    pub(crate) fn bare(&self, name: &str) -> Result<&Arc<RegisteredOperation>, CallError> {
        match self.bare.get(name).map(Vec::as_slice) {
            Some([only]) => Ok(only),
            Some(several) if !several.is_empty() => {
                let mut ids: Vec<String> = several.iter().map(|operation| operation.id.to_string()).collect();
                ids.sort();
                let message = format!("{} plugins offer {name}: {}", ids.len(), ids.join(", "));
                Err(CallError::new(ErrorKind::AmbiguousOperation, message))
            }
            _ => Err(self.unknown(name)),
        }
    }

    /// The error for a name that nothing has, with the nearest that something has.
    pub(crate) fn unknown(&self, name: &str) -> CallError {
        let error = CallError::new(ErrorKind::UnknownOperation, format!("there is no operation {name:?}"));
        let candidates = self.operations.keys().chain(self.bare.keys()).map(String::as_str);
        match nearest(name, candidates) {
            Some(near) => {
                error.hint(format!("did you mean {near}? It was not run; `plugd list` shows what there is"))
            }
            None => error,
        }
    }
}
