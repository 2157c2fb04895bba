//! What plugins claim otherwise than before under one version: seen, told, and shown until it is settled.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plugd_contract::changed_claims;
use plugd_protocol::control::{ClaimsChanged, Event, UnixMillis};
use plugd_protocol::{Manifest, PluginName};
use plugd_supervisor::driver::unix_now;
use plugd_supervisor::machine::Generation;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::engine::{Opening, Shared};
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
    /// Whether no daemon has told of that yet.
    untold: bool,
    /// Whether this engine was the one that told of it.
    told_here: bool,
}

/// What stands in the place of a declaration that has changed, to be kept with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Agreed {
    pub(crate) manifest: Arc<RawValue>,
    /// When the change was seen.
    pub(crate) since: UnixMillis,
    /// Whether a single command saw it, so that the next daemon is to tell of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) untold: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl PartialEq for Agreed {
    fn eq(&self, other: &Agreed) -> bool {
        let rest = |agreed: &Agreed| (agreed.since, agreed.untold);
        rest(self) == rest(other) && self.manifest.get() == other.manifest.get()
    }
}

impl Claims {
    /// Takes note of a change that was seen before this engine was opened.
    pub(crate) fn remember(&self, plugin: &PluginName, agreed: &Agreed, latest: &Arc<RawValue>) {
        if self.table().contains_key(plugin) {
            return;
        }
        let changed = compare(&agreed.manifest, latest, agreed.since).map(Arc::new);
        let stated = Stated {
            agreed: Arc::clone(&agreed.manifest),
            latest: Arc::clone(latest),
            changed,
            untold: agreed.untold,
            told_here: false,
        };
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
        let (agreed, told, as_told) = match known {
            Some(known) => (Some(known.agreed), known.changed, (known.untold, known.told_here)),
            None => (before(), None, (false, false)),
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
        let (untold, told_here) = if is_news { (false, true) } else { as_told };
        let stated =
            Stated { agreed, latest: Arc::clone(declared), changed: changed.clone(), untold, told_here };
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
        Some(Agreed { manifest: Arc::clone(&stated.agreed), since, untold: stated.untold })
    }

    /// The change that no daemon has told of, which is told now.
    fn take_untold(&self, plugin: &PluginName) -> Option<Arc<ClaimsChanged>> {
        let mut table = self.table();
        let stated = table.get_mut(plugin).filter(|stated| stated.untold)?;
        (stated.untold, stated.told_here) = (false, true);
        stated.changed.clone()
    }

    /// Leaves what this engine told of one plugin for the next daemon to tell.
    fn leave_untold(&self, plugin: &PluginName) {
        if let Some(stated) = self.table().get_mut(plugin) {
            stated.untold = stated.told_here && stated.changed.is_some();
        }
    }

    /// The changes that this engine told of and that stand, by plugin.
    fn told_here(&self) -> BTreeMap<PluginName, Arc<ClaimsChanged>> {
        let table = self.table();
        let told = table.iter().filter(|(_, stated)| stated.told_here);
        told.filter_map(|(name, stated)| Some((name.clone(), stated.changed.clone()?))).collect()
    }

    /// Every change that stands, by plugin.
    pub(crate) fn all_changed(&self) -> BTreeMap<PluginName, Arc<ClaimsChanged>> {
        let table = self.table();
        table.iter().filter_map(|(name, stated)| Some((name.clone(), stated.changed.clone()?))).collect()
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
pub(crate) fn compare(before: &RawValue, after: &RawValue, since: UnixMillis) -> Option<ClaimsChanged> {
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
        let single = self.manifests.opening == Opening::OnDemand;
        // An engine for a single call has not read what is kept yet.
        let unread = configured.filter(|_| single);
        if let Some((agreed, latest)) = unread.and_then(|plugin| self.manifests.changed_before(plugin)) {
            self.claims.remember(plugin, &agreed, &latest);
        }
        let Some(changed) = self.claims.look_at(plugin, declared, pinned, before) else { return };
        if single {
            self.claims.leave_untold(plugin);
        }
        self.tell_of_claims(plugin, generation, &changed);
    }

    /// Tells of a change that a single command saw before, where no daemon has yet; true where there is one.
    pub(crate) fn tell_of_claims_left(&self, plugin: &PluginName) -> bool {
        let left = self.claims.take_untold(plugin);
        if let Some(changed) = &left {
            self.tell_of_claims(plugin, None, changed);
        }
        left.is_some()
    }

    fn tell_of_claims(&self, plugin: &PluginName, generation: Option<Generation>, changed: &ClaimsChanged) {
        let (version, changes) = (changed.version.as_str(), changed.in_words(SHOWN));
        tracing::warn!(%plugin, version, changes, "it declares something else than before under the same version");
        self.events.emit(Event {
            plugin: Some(plugin.clone()),
            generation: generation.map(|generation| generation.0),
            reason: Some(format!("under version {version}: {changes}")),
            ..happening("plugin.claims_changed")
        });
    }

    /// What plugins were found to claim otherwise than before, for whoever sees no log of this engine; the
    /// next daemon tells of it, too.
    pub(crate) fn claims_to_say(&self) -> Vec<String> {
        let told = self.claims.told_here();
        let say = |(plugin, changed): (&PluginName, &Arc<ClaimsChanged>)| {
            self.claims.leave_untold(plugin);
            self.note_claims(plugin);
            let (version, changes) = (changed.version.as_str(), changed.in_words(SHOWN));
            format!(
                "{plugin} declares something else than before under the same version {version}: {changes}"
            )
        };
        told.iter().map(say).collect()
    }

    /// Keeps how a plugin's claims stand, with what it is known to declare.
    fn note_claims(&self, plugin: &PluginName) {
        if let Some(registered) = self.registry.snapshot().plugin(plugin) {
            let quarantined = &registered.manifest.quarantined;
            let agreed = self.claims.agreed(plugin);
            self.manifests.note(plugin, Arc::clone(&registered.written), quarantined, agreed);
        }
    }

    /// Takes what a plugin declares now as agreed to: an operator was told, and goes on with it.
    pub(crate) fn agree_to_claims(&self, plugin: &PluginName) {
        if !self.claims.agree(plugin) {
            return;
        }
        tracing::info!(%plugin, "what it declares now is agreed to");
        self.note_claims(plugin);
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
        assert!(after.take_untold(&name()).is_none() && after.told_here().is_empty());
        after.agree(&name());
        after.remember(&name(), &agreed, &declares("1", false));
        assert_eq!(after.changed(&name()), None, "what is known here goes before");
        after.forget(&name());
        let kept = || Some(declares("1", true));
        assert!(after.look_at(&name(), &declares("1", false), false, kept).is_some());
    }

    /// Row D19.
    #[test]
    fn d19_what_a_single_command_saw_the_next_daemon_tells_once() {
        let command = Claims::default();
        command.look_at(&name(), &declares("1", true), false, nothing);
        command.look_at(&name(), &declares("1", false), false, nothing);
        assert_eq!(command.told_here().len(), 1);
        command.leave_untold(&name());
        let agreed = command.agreed(&name()).unwrap();
        assert!(agreed.untold);

        let again = Claims::default();
        again.remember(&name(), &agreed, &declares("1", false));
        assert!(again.look_at(&name(), &declares("1", false), false, nothing).is_none(), "it was told");
        assert!(again.told_here().is_empty() && again.agreed(&name()).unwrap().untold);

        assert!(again.take_untold(&name()).is_some());
        assert!(again.take_untold(&name()).is_none() && !again.agreed(&name()).unwrap().untold);
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
