//! A plugin: what it is, what it opens, and the operations it offers.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use plugd_protocol::error::rpc_code;
use plugd_protocol::manifest::{CONCURRENCY_MAX, Features, Manifest, OnLoss, Requirement};
use plugd_protocol::name::PluginName;
use plugd_protocol::negotiation::PROTOCOL_VERSION;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::Error;
use crate::init::InitContext;
use crate::operation::Operation;
use crate::{process, schema};

/// A whole plugin, whose operations share a state `S`.
///
/// Declare it, then hand over to [`serve`](Plugin::serve); the crate's page shows one.
pub struct Plugin<S = ()> {
    name: String,
    version: String,
    description: Option<String>,
    requires: BTreeMap<PluginName, Requirement>,
    priority: Option<i32>,
    features: Features,
    config_schema: Option<Box<RawValue>>,
    pub(crate) operations: Vec<Operation<S>>,
    pub(crate) init: Init<S>,
    /// The state of a plugin that opens none: it needs no `init` to be called.
    pub(crate) ready: Option<S>,
    pub(crate) reload: Option<Reload<S>>,
    pub(crate) shutdown: Option<Shutdown<S>>,
    /// What is wrong with the declaration, a sentence each.
    faults: Vec<String>,
}

/// Opens the state from the configuration.
pub(crate) type Init<S> = Box<dyn Fn(&RawValue, &InitContext) -> Result<S, Error> + Send + Sync>;

/// Takes up a changed configuration.
pub(crate) type Reload<S> = Box<dyn Fn(&RawValue, &S) -> Result<(), Error> + Send + Sync>;

/// Releases what the state holds.
pub(crate) type Shutdown<S> = Box<dyn Fn(&S) -> Result<(), Error> + Send + Sync>;

impl Plugin<()> {
    /// A plugin without operations yet; the version is usually `env!("CARGO_PKG_VERSION")`.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Plugin {
        Plugin {
            name: name.into(),
            version: version.into(),
            description: None,
            requires: BTreeMap::new(),
            priority: None,
            features: Features { ping: true, ..Features::default() },
            config_schema: None,
            operations: Vec::new(),
            init: Box::new(|_, _| Ok(())),
            ready: Some(()),
            reload: None,
            shutdown: None,
            faults: Vec::new(),
        }
    }

    /// Opens, once at the start, the state that all operations then share.
    ///
    /// The configuration is any type with a JSON Schema, or `()`; its schema becomes the manifest's
    /// config schema. An error disables the plugin with its message as the reason. What the state
    /// holds is released by dropping it, after [`shutdown`](Plugin::shutdown).
    #[must_use]
    pub fn init<C, S, F>(mut self, open: F) -> Plugin<S>
    where
        C: DeserializeOwned + JsonSchema,
        S: Send + Sync + 'static,
        F: Fn(C, &InitContext) -> Result<S, Error> + Send + Sync + 'static,
    {
        self.declare_config::<C>();
        let init = move |raw: &RawValue, context: &InitContext| open(read_config(raw)?, context);
        Plugin {
            name: self.name,
            version: self.version,
            description: self.description,
            requires: self.requires,
            priority: self.priority,
            features: self.features,
            config_schema: self.config_schema,
            operations: self.operations.into_iter().map(Operation::with_any_state).collect(),
            init: Box::new(init),
            ready: None,
            reload: self
                .reload
                .map(|hook| Box::new(move |raw: &RawValue, _: &S| hook(raw, &())) as Reload<S>),
            shutdown: self.shutdown.map(|hook| Box::new(move |_: &S| hook(&())) as Shutdown<S>),
            faults: self.faults,
        }
    }
}

impl<S: Send + Sync + 'static> Plugin<S> {
    /// What the plugin is, in a sentence or two.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Offers an operation.
    #[must_use]
    pub fn operation(mut self, operation: Operation<S>) -> Self {
        self.operations.push(operation);
        self
    }

    /// Names a plugin this one uses and cannot do without, and the versions that will do.
    #[must_use]
    pub fn requires(self, plugin: &str, versions: &str) -> Self {
        self.require(plugin, versions, false)
    }

    /// Names a plugin this one uses where it is there.
    #[must_use]
    pub fn requires_optional(self, plugin: &str, versions: &str) -> Self {
        self.require(plugin, versions, true)
    }

    /// Starts it before plugins of smaller priority that nothing orders otherwise.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Takes up to `calls` calls at once, each on a thread of its own; 1 unless said.
    #[must_use]
    pub fn concurrency(mut self, calls: u32) -> Self {
        self.features.concurrency = calls.clamp(1, CONCURRENCY_MAX);
        self
    }

    /// Promises that handlers look at [`Context::is_cancelled`](crate::Context::is_cancelled) and
    /// stop early.
    #[must_use]
    pub fn stops_when_cancelled(mut self) -> Self {
        self.features.cancel = true;
        self
    }

    /// Takes up a changed configuration without a new process; `apply` gets it, and the state.
    ///
    /// It runs while calls do. An error leaves the plugin as it was, as `apply` must: the host goes
    /// on with the old configuration and shows the error. Without this the host starts the plugin
    /// anew when its configuration changes.
    #[must_use]
    pub fn reload<C, F>(mut self, apply: F) -> Self
    where
        C: DeserializeOwned + JsonSchema,
        F: Fn(C, &S) -> Result<(), Error> + Send + Sync + 'static,
    {
        self.features.reload = true;
        self.declare_config::<C>();
        self.reload = Some(Box::new(move |raw, state| apply(read_config(raw)?, state)));
        self
    }

    /// Runs `release` once when the host says to shut down, before the state is dropped.
    ///
    /// Not when the host is gone: a plugin then leaves at once.
    #[must_use]
    pub fn shutdown(mut self, release: impl Fn(&S) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        self.shutdown = Some(Box::new(release));
        self
    }

    /// The manifest, as `describe` answers it.
    ///
    /// # Errors
    /// Everything that is wrong with the declaration: a name that is none, an operation declared
    /// twice, arguments that are no object.
    pub fn manifest(&self) -> Result<Manifest, Error> {
        let mut faults = self.faults.clone();
        if let Err(error) = PluginName::new(&self.name) {
            faults.push(error.to_string());
        }
        let mut seen = BTreeSet::new();
        let mut operations = Vec::new();
        for operation in &self.operations {
            match &operation.declared {
                Ok(_) if !seen.insert(&operation.name) => {
                    faults.push(format!("{} is declared twice", operation.name));
                }
                Ok(declared) => operations.push(declared.clone()),
                Err(reason) => faults.push(format!("{}: {reason}", operation.name)),
            }
        }
        if !faults.is_empty() {
            return Err(Error::message(format!("the plugin is declared wrongly: {}", faults.join("; "))));
        }
        Ok(Manifest {
            protocol: PROTOCOL_VERSION,
            name: self.name.clone(),
            version: self.version.clone(),
            description: self.description.clone(),
            requires: self.requires.clone(),
            priority: self.priority,
            features: self.features.clone(),
            config_schema: self.config_schema.clone(),
            operations,
            quarantined: Vec::new(),
        })
    }

    /// Speaks the protocol over standard input and output until the host is done.
    ///
    /// The last thing `main` does. Before any handler runs, whatever prints is turned to stderr, so
    /// that it cannot disturb the protocol. Run by hand on a terminal it says what it is;
    /// `--describe` prints the manifest, `--help` and `--version` do what they do elsewhere. A
    /// declaration that is wrong ends it with exit code 125: starting again would not help.
    pub fn serve(self) -> ExitCode {
        process::run(self)
    }

    fn declare_config<C: JsonSchema>(&mut self) {
        if !schema::is_unit::<C>() && self.config_schema.is_none() {
            match schema::of_input::<C>() {
                Ok(schema) => self.config_schema = to_raw_value(&schema).ok(),
                Err(reason) => self.faults.push(format!("the configuration: {reason}")),
            }
        }
    }

    fn require(mut self, plugin: &str, versions: &str, optional: bool) -> Self {
        match (PluginName::new(plugin), versions.parse()) {
            (Ok(plugin), Ok(version)) => {
                self.requires.insert(plugin, Requirement { version, optional, on_loss: OnLoss::Stay });
            }
            (Err(error), _) => self.faults.push(error.to_string()),
            (_, Err(error)) => {
                self.faults
                    .push(format!("{plugin:?} is required in {versions:?}, which is no range: {error}"));
            }
        }
        self
    }
}

fn read_config<C: DeserializeOwned + JsonSchema>(raw: &RawValue) -> Result<C, Error> {
    let json = if schema::is_unit::<C>() { "null" } else { raw.get() };
    serde_json::from_str(json).map_err(|error| {
        Error::coded(rpc_code::INVALID_PARAMS, format!("the configuration does not fit: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;

    fn nothing(_: (), _: &Context) -> Result<(), Error> {
        Ok(())
    }

    fn listed(_: Vec<u8>, _: &Context) -> Result<(), Error> {
        Ok(())
    }

    #[test]
    fn every_fault_of_a_declaration_is_told_at_once() {
        let plugin = Plugin::new("my plugin", "1.0.0")
            .requires("weather", "soon")
            .operation(Operation::new("doIt", nothing))
            .operation(Operation::new("same", nothing))
            .operation(Operation::new("same", nothing))
            .operation(Operation::new("listed", listed));
        let message = plugin.manifest().expect_err("wrong").message;
        let faults = [
            "\"soon\"",
            "\"my plugin\" is not a plugin name",
            "did you mean \"do_it\"",
            "same is declared twice",
            "listed:",
        ];
        for fault in faults {
            assert!(message.contains(fault), "{fault} is not told in: {message}");
        }
    }

    #[test]
    fn operations_declared_before_the_state_work_with_it() {
        let plugin = Plugin::new("p", "1.0.0")
            .operation(Operation::new("nothing", nothing))
            .init(|_: (), _| Ok(5_u8))
            .operation(Operation::new("state", |_: (), state: &u8, _: &Context| Ok(*state)));
        let host = crate::testing::Host::new(plugin);
        assert_eq!(host.call("nothing", serde_json::json!({})).data(), serde_json::json!(null));
        assert_eq!(host.call("state", serde_json::json!({})).data(), serde_json::json!(5));
    }
}
