//! What plugins declare, compiled and indexed once and not for every call.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use plugd_contract::export::spelling;
use plugd_contract::{Contract, SchemaError, nearest};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::manifest::{Manifest, Quarantined};
use plugd_protocol::negotiation;
use plugd_protocol::{CallError, Operation, OperationId, PluginName};
use serde_json::value::RawValue;
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
    /// Made when it is first asked for: while many plugins are described, most snapshots never are.
    names: OnceLock<Names>,
}

#[derive(Debug, Default)]
struct Names {
    /// By `plugin.operation`.
    operations: HashMap<String, Arc<RegisteredOperation>>,
    /// By the name in a model's dialect; none where two would have the same.
    spelled: HashMap<String, Option<Arc<RegisteredOperation>>>,
    /// By bare name.
    bare: HashMap<String, Vec<Arc<RegisteredOperation>>>,
}

/// What one plugin declares.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) manifest: Manifest,
    /// The manifest as it was written, to notice a change.
    pub(crate) written: Arc<RawValue>,
    operations: Vec<Arc<RegisteredOperation>>,
    /// Whether no process has declared it yet, as far as this engine knows.
    remembered: AtomicBool,
}

/// One operation, ready to be called.
#[derive(Debug)]
pub(crate) struct RegisteredOperation {
    pub(crate) id: OperationId,
    pub(crate) operation: Operation,
    pub(crate) plugin_version: Arc<str>,
    contract: OnceLock<Result<Contract, SchemaError>>,
    /// That of its data, where it declares one.
    output_contract: OnceLock<Option<Result<Contract, SchemaError>>>,
}

/// A manifest that is known without running its plugin.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) manifest: Arc<RawValue>,
    pub(crate) checked: Checked,
}

/// Whether the schemas of a manifest are known to compile.
#[derive(Debug)]
pub(crate) enum Checked {
    /// Those of all operations but these; they are compiled when they are first needed.
    Before(Vec<Quarantined>),
    /// They are compiled at once.
    NotYet,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        Registry { snapshot: watch::Sender::new(Arc::default()) }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Tells of every change from now on.
    pub(crate) fn follow(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.snapshot.subscribe()
    }

    /// Looks at what a plugin declares, without taking it up.
    ///
    /// An operation whose schema cannot be used is quarantined; the others work.
    ///
    /// # Errors
    /// The reason for which the manifest as a whole is refused.
    pub(crate) fn look_at(&self, plugin: &PluginName, written: &RawValue) -> Result<Arc<Registered>, String> {
        match self.snapshot().plugins.get(plugin) {
            Some(known) if known.written.get() == written.get() => Ok(Arc::clone(known)),
            Some(_) | None => {
                Registered::new(plugin, written.to_owned().into(), &Checked::NotYet).map(Arc::new)
            }
        }
    }

    /// Takes up what a plugin declares; true when that differs from what was known.
    pub(crate) fn register(&self, plugin: &PluginName, declared: &Arc<Registered>) -> bool {
        declared.remembered.store(false, Ordering::Relaxed);
        let snapshot = self.snapshot();
        let known = snapshot.plugins.get(plugin);
        let news = known.is_none_or(|known| known.written.get() != declared.written.get());
        if news {
            self.change(|plugins| drop(plugins.insert(plugin.clone(), Arc::clone(declared))));
        }
        news
    }

    /// Takes up many at once; each that is not refused, with its reason, is as good as described.
    pub(crate) fn register_all(
        &self,
        known: Vec<(PluginName, Known)>,
    ) -> Vec<(PluginName, Result<Arc<Registered>, String>)> {
        let snapshot = self.snapshot();
        let registered = |(plugin, known): (PluginName, Known)| {
            let registered = match snapshot.plugins.get(&plugin) {
                Some(same) if same.written.get() == known.manifest.get() => Ok(Arc::clone(same)),
                Some(_) | None => Registered::new(&plugin, known.manifest, &known.checked).map(Arc::new),
            };
            (plugin, registered)
        };
        let all: Vec<_> = known.into_iter().map(registered).collect();
        let news = all.iter().filter_map(|(plugin, registered)| {
            let registered = registered.as_ref().ok()?;
            let known = snapshot.plugins.get(plugin).is_some_and(|known| Arc::ptr_eq(known, registered));
            (!known).then(|| (plugin.clone(), Arc::clone(registered)))
        });
        let news: Vec<_> = news.collect();
        if !news.is_empty() {
            self.change(|plugins| plugins.extend(news));
        }
        all
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
        self.snapshot.send_modify(|snapshot| {
            let mut plugins = snapshot.plugins.clone();
            change(&mut plugins);
            *snapshot = Arc::new(Snapshot { plugins, names: OnceLock::new() });
        });
    }
}

impl Registered {
    fn new(plugin: &PluginName, written: Arc<RawValue>, checked: &Checked) -> Result<Registered, String> {
        let mut manifest = Manifest::parse(written.get()).map_err(|error| error.to_string())?;
        negotiation::accept(manifest.protocol).map_err(|error| error.to_string())?;
        let version: Arc<str> = manifest.version.as_str().into();
        let mut operations = Vec::with_capacity(manifest.operations.len());
        for operation in manifest.operations.clone() {
            let id = OperationId { plugin: plugin.clone(), operation: operation.name.clone() };
            let registered = RegisteredOperation::new(id, operation, Arc::clone(&version));
            match registered.unusable(checked) {
                None => operations.push(Arc::new(registered)),
                Some(reason) => manifest.quarantine(registered.id.operation.as_str(), reason),
            }
        }
        let remembered = AtomicBool::new(matches!(checked, Checked::Before(_)));
        Ok(Registered { manifest, written, operations, remembered })
    }

    /// What it offers.
    pub(crate) fn operations(&self) -> &[Arc<RegisteredOperation>] {
        &self.operations
    }

    /// Whether it is only known from an earlier time.
    pub(crate) fn is_remembered(&self) -> bool {
        self.remembered.load(Ordering::Relaxed)
    }
}

impl RegisteredOperation {
    pub(crate) fn new(
        id: OperationId,
        operation: Operation,
        plugin_version: Arc<str>,
    ) -> RegisteredOperation {
        let (contract, output_contract) = (OnceLock::new(), OnceLock::new());
        RegisteredOperation { id, operation, plugin_version, contract, output_contract }
    }

    /// Its schema compiled, at the first use where that was not done before.
    ///
    /// # Errors
    /// The operation is quarantined after all.
    pub(crate) fn contract(&self) -> Result<&Contract, CallError> {
        self.compiled().map_err(|error| {
            let message = format!("{} is quarantined: input_schema: {error}", self.id);
            CallError::new(ErrorKind::UnknownOperation, message).hint("the plugin's author must mend it")
        })
    }

    /// The schema of its data compiled, where it declares one that can be used.
    pub(crate) fn output_contract(&self) -> Option<&Contract> {
        self.output_compiled()?.as_ref().ok()
    }

    fn output_compiled(&self) -> Option<&Result<Contract, SchemaError>> {
        let compile = || self.operation.output_schema.as_deref().map(Contract::compile);
        self.output_contract.get_or_init(compile).as_ref()
    }

    fn compiled(&self) -> Result<&Contract, &SchemaError> {
        self.contract.get_or_init(|| Contract::of_arguments(&self.operation.input_schema)).as_ref()
    }

    /// Why it cannot be offered.
    fn unusable(&self, checked: &Checked) -> Option<String> {
        match checked {
            Checked::NotYet => {
                let input = self.compiled().err().map(|error| format!("input_schema: {error}"));
                let output = || self.output_compiled()?.as_ref().err();
                input.or_else(|| output().map(|error| format!("output_schema: {error}")))
            }
            Checked::Before(quarantined) => {
                let own = quarantined.iter().find(|bad| bad.name == self.id.operation.as_str());
                own.map(|bad| bad.reason.clone())
            }
        }
    }
}

impl Snapshot {
    fn names(&self) -> &Names {
        self.names.get_or_init(|| {
            let mut names = Names::default();
            for operation in self.plugins.values().flat_map(|plugin| &plugin.operations) {
                names.operations.insert(operation.id.to_string(), Arc::clone(operation));
                let one = Some(Arc::clone(operation));
                names.spelled.entry(spelling(&operation.id)).and_modify(|known| *known = None).or_insert(one);
                let bare = names.bare.entry(operation.id.operation.to_string()).or_default();
                bare.push(Arc::clone(operation));
            }
            names
        })
    }

    /// What a plugin declares, where that is known.
    pub(crate) fn plugin(&self, plugin: &PluginName) -> Option<&Arc<Registered>> {
        self.plugins.get(plugin)
    }

    /// The operation of that identity.
    pub(crate) fn operation(&self, identity: &str) -> Option<&Arc<RegisteredOperation>> {
        self.names().operations.get(identity)
    }

    /// The operation that is called so in the dialects of models.
    pub(crate) fn spelled(&self, name: &str) -> Option<&Arc<RegisteredOperation>> {
        self.names().spelled.get(name)?.as_ref()
    }

    /// Every operation that can be called, by plugin.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &Arc<RegisteredOperation>> {
        self.plugins.values().flat_map(|plugin| &plugin.operations)
    }

    /// The operation of that spelling, or the only one of that bare name.
    ///
    /// A bare name with `__` would look like a spelling of something else, so it is none.
    ///
    /// # Errors
    /// An unknown or an ambiguous operation; nothing is guessed.
    pub(crate) fn bare(&self, name: &str) -> Result<&Arc<RegisteredOperation>, CallError> {
        if let Some(operation) = self.spelled(name) {
            return Ok(operation);
        }
        if name.contains("__") {
            return Err(self.unknown(name));
        }
        match self.names().bare.get(name).map(Vec::as_slice) {
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
        let names = self.names();
        // In the form that was meant, where that can be told.
        let is_spelling = name.contains("__");
        let bare = names.bare.keys().filter(|bare| !bare.contains("__"));
        let spelled = names.spelled.keys().filter(|_| is_spelling);
        let candidates = names.operations.keys().chain(bare).chain(spelled).map(String::as_str);
        match nearest(name, candidates) {
            Some(near) => {
                error.hint(format!("did you mean {near}? It was not run; `plugd list` shows what there is"))
            }
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PluginName {
        PluginName::new(text).unwrap()
    }

    /// A manifest with one good operation and one whose schema does not compile.
    fn manifest(version: &str) -> Box<RawValue> {
        let text = format!(
            r#"{{"protocol":1,"name":"x","version":"{version}","operations":[
                {{"name":"good","input_schema":{{"type":"object"}}}},
                {{"name":"bad","input_schema":{{"type":"objct"}}}}]}}"#
        );
        RawValue::from_string(text).unwrap()
    }

    #[test]
    fn looking_at_a_manifest_changes_nothing_for_callers() {
        let registry = Registry::new();
        let one = registry.look_at(&name("fp"), &manifest("1.0.0")).unwrap();
        assert!(registry.snapshot().plugin(&name("fp")).is_none());
        assert!(registry.register(&name("fp"), &one));
        let two = registry.look_at(&name("fp"), &manifest("2.0.0")).unwrap();
        assert_eq!(registry.snapshot().plugin(&name("fp")).unwrap().manifest.version, "1.0.0");
        assert!(registry.register(&name("fp"), &two));
        assert!(!registry.register(&name("fp"), &two), "the same again is no news");
        assert_eq!(registry.snapshot().operation("fp.good").unwrap().plugin_version.as_ref(), "2.0.0");
    }

    #[test]
    fn a_schema_that_does_not_compile_keeps_its_operation_out() {
        let registry = Registry::new();
        let declared = registry.look_at(&name("fp"), &manifest("1.0.0")).unwrap();
        registry.register(&name("fp"), &declared);
        let snapshot = registry.snapshot();
        assert!(snapshot.operation("fp.good").is_some_and(|good| good.contract().is_ok()));
        assert!(snapshot.operation("fp.bad").is_none());
        let [bad] = declared.manifest.quarantined.as_slice() else { panic!("{declared:?}") };
        assert!(bad.name == "bad" && bad.reason.starts_with("input_schema: "), "{bad:?}");
    }

    /// Row R9.
    #[test]
    fn r_r9_an_output_schema_that_does_not_compile_keeps_its_operation_out_too() {
        let declared = |schema: &str| {
            let text = format!(
                r#"{{"protocol":1,"name":"x","version":"1","operations":[
                    {{"name":"a","input_schema":{{}},"output_schema":{schema}}}]}}"#
            );
            Registry::new().look_at(&name("fp"), &RawValue::from_string(text).unwrap()).unwrap()
        };
        let bad = declared(r#"{"type":"objct"}"#);
        assert!(bad.manifest.quarantined[0].reason.starts_with("output_schema: "), "{bad:?}");
        let good = declared(r#"{"type":"object"}"#);
        assert!(good.operations[0].output_contract().is_some());
        assert!(declared("null").operations[0].output_contract().is_none());
    }

    #[test]
    fn what_was_checked_before_is_compiled_when_it_is_needed() {
        let registry = Registry::new();
        let known =
            |quarantined| Known { manifest: manifest("1.0.0").into(), checked: Checked::Before(quarantined) };
        let bad = Quarantined { name: "bad".to_owned(), reason: "input_schema: no".to_owned() };
        let wrong = Known {
            manifest: RawValue::from_string("{}".to_owned()).unwrap().into(),
            checked: Checked::NotYet,
        };
        let registered = registry.register_all(vec![
            (name("one"), known(vec![bad.clone()])),
            (name("two"), known(Vec::new())),
            (name("three"), wrong),
        ]);
        let refused: Vec<bool> = registered.iter().map(|(_, registered)| registered.is_err()).collect();
        assert_eq!(refused, [false, false, true]);
        let snapshot = registry.snapshot();
        assert!(snapshot.operation("one.bad").is_none());
        assert_eq!(snapshot.plugin(&name("one")).unwrap().manifest.quarantined, [bad]);
        let one = Arc::clone(snapshot.plugin(&name("one")).unwrap());
        assert!(one.is_remembered());
        let described = registry.look_at(&name("one"), &manifest("1.0.0")).unwrap();
        assert!(!registry.register(&name("one"), &described), "it declares what was remembered");
        assert!(!one.is_remembered());
        let good = snapshot.operation("one.good").unwrap();
        assert!(good.contract.get().is_none(), "nothing is compiled before it is needed");
        assert!(good.contract().is_ok());
        // A schema that an earlier check let pass is found out at its first use.
        let error = snapshot.operation("two.bad").unwrap().contract().unwrap_err();
        assert!(error.message.starts_with("two.bad is quarantined: input_schema: "), "{}", error.message);
    }

    #[test]
    fn r14_every_spelling_leads_to_its_operation_and_a_bare_name_to_no_other() {
        let registry = Registry::new();
        let declare = |plugin: &str, operation: &str| {
            let text = format!(
                r#"{{"protocol":1,"name":"x","version":"1","operations":[{{"name":"{operation}","input_schema":{{}}}}]}}"#
            );
            let declared = registry.look_at(&name(plugin), &RawValue::from_string(text).unwrap()).unwrap();
            registry.register(&name(plugin), &declared);
        };
        declare("a", "b");
        declare("c", "a__b");
        declare("a__b", "b");
        let snapshot = registry.snapshot();
        for id in ["a.b", "c.a__b", "a__b.b"] {
            let operation = snapshot.operation(id).unwrap();
            let spelled = snapshot.spelled(&spelling(&operation.id)).unwrap();
            assert!(Arc::ptr_eq(operation, spelled), "{id}");
            assert!(Arc::ptr_eq(operation, snapshot.bare(&spelling(&operation.id)).unwrap()), "{id}");
        }
        assert_eq!(snapshot.bare("a__b").unwrap().id.to_string(), "a.b", "the spelling, not the bare name");
        registry.forget(&name("a"));
        let error = registry.snapshot().bare("a__b").unwrap_err();
        assert_eq!(error.code, ErrorKind::UnknownOperation.code());
        assert_eq!(registry.snapshot().operations().count(), 2);
    }

    #[test]
    fn many_are_registered_in_one_change() {
        let registry = Registry::new();
        let mut changes = registry.snapshot.subscribe();
        let known = |number: u32| {
            let known = Known { manifest: manifest("1.0.0").into(), checked: Checked::Before(Vec::new()) };
            (name(&format!("plugin{number}")), known)
        };
        registry.register_all((0..500).map(known).collect());
        assert!(changes.has_changed().unwrap());
        let snapshot = changes.borrow_and_update().clone();
        assert_eq!(snapshot.plugins.len(), 500);
        registry.register_all((0..500).map(known).collect());
        assert!(!changes.has_changed().unwrap(), "the same again is no change");
        assert!(Arc::ptr_eq(&snapshot, &registry.snapshot()));
    }
}
