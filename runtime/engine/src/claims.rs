//! What plugins claim otherwise than before under one version: seen, told, and shown until it is settled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plugd_contract::changed_claims;
use plugd_protocol::control::{ClaimsChanged, Event, UnixMillis};
use plugd_protocol::{Manifest, PluginName};
use plugd_supervisor::driver::unix_now;
use plugd_supervisor::machine::Generation;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::engine::Shared;
use crate::events::happening;

/// More changes of one plugin are only counted: nobody reads them one by one.
const CHANGES_MAX: usize = 50;

/// So many are named in the log and in an event.
const SHOWN: usize = 5;

/// What each plugin declared. The lock is held to look or to put, never while manifests are compared.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<HashMap<PluginName, Stated>>);

/// What one plugin declared under the version that it has.
#[derive(Debug, Clone)]
struct Stated {
    /// What it is compared with: declared first, or agreed to by an operator.
    agreed: Arc<RawValue>,
    latest: Arc<RawValue>,
    /// How the one differs from the other.
    changed: Option<Arc<ClaimsChanged>>,
}

/// What stands in the place of a declaration that has changed, to be kept with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Agreed {
    pub(crate) manifest: Arc<RawValue>,
    /// When the change was seen.
    pub(crate) since: UnixMillis,
}

impl PartialEq for Agreed {
    fn eq(&self, other: &Agreed) -> bool {
        self.since == other.since && self.manifest.get() == other.manifest.get()
    }
}

impl Claims {
    /// Takes note of a change that was seen before this engine was opened.
    pub(crate) fn remember(&self, plugin: &PluginName, agreed: &Agreed, latest: &Arc<RawValue>) {
        if self.table().contains_key(plugin) {
            return;
        }
        let changed = compare(&agreed.manifest, latest, agreed.since).map(Arc::new);
        let stated = Stated { agreed: Arc::clone(&agreed.manifest), latest: Arc::clone(latest), changed };
        self.table().insert(plugin.clone(), stated);
    }

    /// Takes note of what a plugin declares; the change, where that is news.
    ///
    /// `before` is what it declared before anything was noted here. What is `pinned` is agreed to.
    pub(crate) fn look_at(
        &self,
        plugin: &PluginName,
        declared: &Arc<RawValue>,
        pinned: bool,
        before: impl FnOnce() -> Option<Arc<RawValue>>,
    ) -> Option<Arc<ClaimsChanged>> {
        let known = self.table().get(plugin).cloned();
        let (agreed, told) = match known {
            Some(known) => (Some(known.agreed), known.changed),
            None => (before(), None),
        };
        let agreed = agreed.filter(|_| !pinned);
        let changed = agreed.as_ref().and_then(|agreed| compare(agreed, declared, unix_now()));
        let is_told = |changed: &ClaimsChanged| {
            told.as_ref().is_some_and(|told| (&told.changes, told.more) == (&changed.changes, changed.more))
        };
        let (agreed, changed, is_news) = match (agreed, changed) {
            (Some(agreed), Some(changed)) => match is_told(&changed) {
                true => (agreed, told, false),
                false => (agreed, Some(Arc::new(changed)), true),
            },
            (Some(_) | None, _) => (Arc::clone(declared), None, false),
        };
        let stated = Stated { agreed, latest: Arc::clone(declared), changed: changed.clone() };
        self.table().insert(plugin.clone(), stated);
        changed.filter(|_| is_news)
    }

    /// Takes what a plugin declares as agreed to; true where something had changed.
    pub(crate) fn agree(&self, plugin: &PluginName) -> bool {
        let mut table = self.table();
        let Some(stated) = table.get_mut(plugin) else { return false };
        stated.agreed = Arc::clone(&stated.latest);
        stated.changed.take().is_some()
    }

    /// What a plugin claims otherwise than before.
    pub(crate) fn changed(&self, plugin: &PluginName) -> Option<ClaimsChanged> {
        self.table().get(plugin)?.changed.as_deref().cloned()
    }

    /// What is to be kept along with what a plugin declares.
    pub(crate) fn agreed(&self, plugin: &PluginName) -> Option<Agreed> {
        let table = self.table();
        let stated = table.get(plugin)?;
        let since = stated.changed.as_ref()?.since;
        Some(Agreed { manifest: Arc::clone(&stated.agreed), since })
    }

    /// Forgets a plugin that is gone.
    pub(crate) fn forget(&self, plugin: &PluginName) {
        self.table().remove(plugin);
    }

    fn table(&self) -> MutexGuard<'_, HashMap<PluginName, Stated>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the claims of one manifest differ from those of another of the same version.
fn compare(before: &RawValue, after: &RawValue, since: UnixMillis) -> Option<ClaimsChanged> {
    if before.get() == after.get() {
        return None;
    }
    let (before, after) = (Manifest::parse(before.get()).ok()?, Manifest::parse(after.get()).ok()?);
    if before.version != after.version {
        return None;
    }
    let mut changes = changed_claims(&before, &after);
    let more = u64::try_from(changes.len().saturating_sub(CHANGES_MAX)).unwrap_or(u64::MAX);
    changes.truncate(CHANGES_MAX);
    (!changes.is_empty()).then_some(ClaimsChanged { version: after.version, since, changes, more })
}

impl Shared {
    /// Compares what a plugin declares with what it declared before, and tells of a change under one version.
    ///
    /// Comes before that is registered.
    pub(crate) fn look_at_claims(
        &self,
        plugin: &PluginName,
        generation: Option<Generation>,
        declared: &Arc<RawValue>,
    ) {
        let config = self.config.borrow().clone();
        let configured = config.plugins.get(plugin);
        let pinned = configured.is_some_and(|plugin| plugin.manifest_sha256.is_some());
        let registered =
            || self.registry.snapshot().plugin(plugin).map(|registered| Arc::clone(&registered.written));
        let kept = || configured.and_then(|plugin| self.manifests.agreed_before(plugin));
        let before = || kept().or_else(registered);
        let Some(changed) = self.claims.look_at(plugin, declared, pinned, before) else { return };
        let (version, changes) = (changed.version.as_str(), changed.in_words(SHOWN));
        tracing::warn!(%plugin, version, changes, "it declares something else than before under the same version");
        self.events.emit(Event {
            plugin: Some(plugin.clone()),
            generation: generation.map(|generation| generation.0),
            reason: Some(format!("under version {version}: {changes}")),
            ..happening("plugin.claims_changed")
        });
    }

    /// Takes what a plugin declares now as agreed to: an operator was told, and goes on with it.
    pub(crate) fn agree_to_claims(&self, plugin: &PluginName) {
        if !self.claims.agree(plugin) {
            return;
        }
        tracing::info!(%plugin, "what it declares now is agreed to");
        if let Some(registered) = self.registry.snapshot().plugin(plugin) {
            let quarantined = &registered.manifest.quarantined;
            self.manifests.note(plugin, Arc::clone(&registered.written), quarantined, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> PluginName {
        PluginName::new("p").unwrap()
    }

    fn declares(version: &str, read_only: bool) -> Arc<RawValue> {
        let text = format!(
            r#"{{"protocol":1,"name":"p","version":"{version}","operations":[
                {{"name":"a","input_schema":{{}},"effects":{{"read_only":{read_only}}}}}]}}"#
        );
        RawValue::from_string(text).unwrap().into()
    }

    fn nothing() -> Option<Arc<RawValue>> {
        None
    }

    /// Row D19.
    #[test]
    fn d19_a_change_under_one_version_is_news_once_and_stands_until_it_is_settled() {
        let claims = Claims::default();
        let look = |declared| claims.look_at(&name(), &declared, false, nothing).is_some();
        assert!(!look(declares("1", true)), "what comes first changes nothing");
        assert!(look(declares("1", false)));
        assert_eq!(claims.changed(&name()).unwrap().in_words(9), "a: read_only true → false");
        assert!(!look(declares("1", false)), "it was told");
        assert!(claims.changed(&name()).is_some(), "it still stands");
        assert!(!look(declares("1", true)));
        assert_eq!(claims.changed(&name()), None, "it declares again what it did");
        assert!(look(declares("1", false)));
        assert!(!look(declares("2", true)));
        assert_eq!(claims.changed(&name()), None, "the version changed");
        assert!(look(declares("2", false)));
        assert!(claims.agree(&name()));
        assert_eq!(claims.changed(&name()), None, "an operator agreed");
        assert!(!claims.agree(&name()) && !look(declares("2", false)));
        assert!(look(declares("2", true)), "from what was agreed to");
        assert!(claims.look_at(&name(), &declares("2", true), true, nothing).is_none());
        assert_eq!(claims.changed(&name()), None, "it is pinned");
    }

    #[test]
    fn what_is_kept_goes_on_from_where_it_was() {
        let before = Claims::default();
        before.look_at(&name(), &declares("1", true), false, nothing);
        assert_eq!(before.agreed(&name()), None, "nothing changed");
        before.look_at(&name(), &declares("1", false), false, nothing);
        let agreed = before.agreed(&name()).unwrap();
        assert_eq!(agreed.manifest.get(), declares("1", true).get());

        let after = Claims::default();
        after.remember(&name(), &agreed, &declares("1", false));
        assert_eq!(after.changed(&name()), before.changed(&name()));
        assert!(after.look_at(&name(), &declares("1", false), false, nothing).is_none(), "it was told then");
        after.agree(&name());
        after.remember(&name(), &agreed, &declares("1", false));
        assert_eq!(after.changed(&name()), None, "what is known here goes before");
        after.forget(&name());
        let kept = || Some(declares("1", true));
        assert!(after.look_at(&name(), &declares("1", false), false, kept).is_some());
    }

    #[test]
    fn of_very_many_changes_the_rest_is_counted() {
        let many = |operations: usize| {
            let all: Vec<String> = (0..operations)
                .map(|number| format!(r#"{{"name":"o{number}","input_schema":{{}}}}"#))
                .collect();
            let text =
                format!(r#"{{"protocol":1,"name":"p","version":"1","operations":[{}]}}"#, all.join(","));
            RawValue::from_string(text).unwrap()
        };
        let changed = compare(&many(0), &many(CHANGES_MAX + 7), UnixMillis(0)).unwrap();
        assert_eq!((changed.changes.len(), changed.more), (CHANGES_MAX, 7));
    }
}
