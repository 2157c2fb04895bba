//! Manifests kept from earlier runs: plugins are listed without being started.
//!
//! One file a plugin in `state_dir/manifests`. It holds the manifest as it was written, with the
//! digests of the files it came from; as soon as one of them differs it counts for nothing, and the
//! plugin is described afresh. It is a cache: whatever is wrong with a file, it is passed over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use plugd_protocol::PluginName;
use plugd_protocol::control::{Source, UnixMillis};
use plugd_protocol::manifest::Quarantined;
use plugd_supervisor::driver::unix_now;
use plugd_supervisor::machine::Declared;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::config::{Config, PluginConfig};
use crate::digests::{Digested, Digests, Stamp, hex};
use crate::engine::{Opening, Shared};
use crate::registry::{Checked, Known, Registry, Snapshot};
use crate::spec;

/// Another form of the file gets another number; a file with one that is not known is passed over.
const FORMAT: u32 = 1;

/// What a plugd of another version made of a schema need not be what this one makes of it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Manifests waiting to be written; one that finds no room is described again at the next start.
const QUEUED: usize = 1_024;

/// What a folder may say of the plugin in it.
const PLUGIN_FILE: &str = "plugin.toml";

/// A larger file was not written by us.
const FILE_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// How long the end of the program waits for what is not yet written.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// The manifests kept, and the thread that keeps them.
#[derive(Debug)]
pub(crate) struct ManifestCache {
    memory: Arc<Memory>,
    opening: Opening,
    opened: UnixMillis,
    /// None where nothing is kept.
    jobs: Option<mpsc::SyncSender<Job>>,
}

#[derive(Debug)]
struct Memory {
    dir: PathBuf,
    digests: Arc<Digests>,
    /// Each plugin's files when its configuration was taken up last.
    looks: Mutex<HashMap<PluginName, Look>>,
    /// What is in the folder, as far as it was looked for; none where that is of no use.
    kept: Mutex<HashMap<PluginName, Option<Arc<Kept>>>>,
}

/// What a plugin is made from.
#[derive(Debug, Clone)]
struct Look {
    made_from: String,
    files: BTreeMap<PathBuf, Option<Stamp>>,
}

/// A file of the cache.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    format: u32,
    /// The version of plugd that wrote it.
    plugd: String,
    /// A digest of the command, the folder and the variables.
    made_from: String,
    files: BTreeMap<PathBuf, Digested>,
    /// Operations that are not offered, among them those whose schema does not compile.
    quarantined: Vec<Quarantined>,
    manifest: Arc<RawValue>,
}

/// The part of a file that every format has.
#[derive(Deserialize)]
struct AnyFormat {
    format: u32,
}

#[derive(Debug)]
enum Job {
    Note {
        plugin: PluginName,
        manifest: Arc<RawValue>,
        quarantined: Vec<Quarantined>,
    },
    Forget(PluginName),
    /// Everything queued before has been done when this is answered.
    Flush(oneshot::Sender<()>),
}

/// Registers every manifest that is known without running its plugin; answers whose are.
///
/// Also takes note of how each plugin's files are now: it is what will run.
pub(crate) fn take_up(shared: &Shared, config: &Config) -> BTreeMap<PluginName, Declared> {
    let mut known = Vec::new();
    let mut unusable = Vec::new();
    for plugin in config.plugins.values() {
        let kept = match shared.manifests.known(plugin) {
            Ok(kept) => kept,
            Err(reason) => {
                unusable.push(format!("{}: {reason}", plugin.name));
                None
            }
        };
        let beside = plugin.manifest.as_ref().and_then(|manifest| to_raw_value(manifest).ok());
        let beside = beside.map(|manifest| Known { manifest: manifest.into(), checked: Checked::NotYet });
        known.extend(beside.or(kept).map(|known| (plugin.name.clone(), known)));
    }
    if !unusable.is_empty() {
        let (count, first) = (unusable.len(), unusable.first().map(String::as_str).unwrap_or_default());
        tracing::warn!(count, first, "kept manifests cannot be used; the plugins are described afresh");
    }
    shared.manifests.retain(config);
    let mut declared = BTreeMap::new();
    for (name, registered) in shared.registry.register_all(known) {
        match registered {
            Ok(registered) => drop(declared.insert(name, spec::declared(&registered.manifest))),
            Err(reason) => tracing::warn!(plugin = %name, reason, "the manifest known of it is not used"),
        }
    }
    declared
}

/// What is kept of each plugin whose files are as they were, for whoever runs none of them.
pub(crate) fn remembered(config: &Config) -> Arc<Snapshot> {
    let cache = ManifestCache::open(&config.state_dir, Opening::OnDemand);
    let known = |plugin: &PluginConfig| Some((plugin.name.clone(), cache.recall(plugin)?));
    let registry = Registry::new();
    // One that is refused is described anew when it is needed.
    drop(registry.register_all(config.plugins.values().filter_map(known).collect()));
    registry.snapshot()
}

impl ManifestCache {
    /// The cache in a state folder; nothing is read or made before that is needed.
    ///
    /// An engine for a single call does not look at every plugin: it keeps what the ones that it
    /// starts declare, and reads what is kept only when it finds no other answer.
    pub(crate) fn open(state_dir: &Path, opening: Opening) -> ManifestCache {
        let memory = Arc::new(Memory {
            dir: state_dir.join("manifests"),
            digests: Arc::default(),
            looks: Mutex::default(),
            kept: Mutex::default(),
        });
        let jobs = start(&memory);
        ManifestCache { memory, opening, opened: unix_now(), jobs }
    }

    /// What is kept of a plugin, if its files are as they were.
    ///
    /// # Errors
    /// Why its file cannot be used; told once.
    pub(crate) fn known(&self, plugin: &PluginConfig) -> Result<Option<Known>, String> {
        if self.opening == Opening::OnDemand || self.jobs.is_none() || plugin.source == Source::Embedded {
            return Ok(None);
        }
        let look = Look::of(plugin);
        lock(&self.memory.looks).insert(plugin.name.clone(), look.clone());
        let Some(kept) = self.memory.kept(&plugin.name)? else { return Ok(None) };
        let Some(as_it_was) = self.memory.compare(&kept, &look) else { return Ok(None) };
        if !as_it_was {
            // The same text under other stamps: with these, the next start need not read it.
            self.note(&plugin.name, Arc::clone(&kept.manifest), &kept.quarantined);
        }
        let checked = Checked::Before(kept.quarantined.clone());
        Ok(Some(Known { manifest: Arc::clone(&kept.manifest), checked }))
    }

    /// What is kept of a plugin that does not run, if its files are as they were.
    pub(crate) fn recall(&self, plugin: &PluginConfig) -> Option<Known> {
        if plugin.source == Source::Embedded {
            return None;
        }
        // One that cannot be used is told of by an engine that reads them all.
        let kept = self.memory.kept(&plugin.name).ok().flatten()?;
        self.memory.compare(&kept, &Look::of(plugin))?;
        let checked = Checked::Before(kept.quarantined.clone());
        Some(Known { manifest: Arc::clone(&kept.manifest), checked })
    }

    /// Looks at what a plugin is made from that was described before anything looked.
    ///
    /// Only files that are older than this engine are those that its run was started from.
    pub(crate) fn look_behind(&self, plugin: &PluginConfig) {
        if self.opening == Opening::Everything || plugin.source == Source::Embedded {
            return;
        }
        let look = Look::of(plugin);
        let mut looks = lock(&self.memory.looks);
        match look.files.values().all(|stamp| stamp.is_some_and(|stamp| stamp.is_older_than(self.opened))) {
            true => drop(looks.insert(plugin.name.clone(), look)),
            false => drop(looks.remove(&plugin.name)),
        }
    }

    /// Keeps a manifest for the next start; never waits.
    pub(crate) fn note(&self, plugin: &PluginName, manifest: Arc<RawValue>, quarantined: &[Quarantined]) {
        let Some(jobs) = &self.jobs else { return };
        let job = Job::Note { plugin: plugin.clone(), manifest, quarantined: quarantined.to_vec() };
        if jobs.try_send(job).is_err() {
            tracing::debug!(%plugin, "its manifest is not kept: too many wait to be");
        }
    }

    /// Forgets a plugin that is gone; never waits.
    pub(crate) fn forget(&self, plugin: &PluginName) {
        if let Some(jobs) = &self.jobs {
            // One that stays is passed over when a plugin of that name is made from something else.
            let _full = jobs.try_send(Job::Forget(plugin.clone()));
        }
    }

    /// Waits a moment until everything noted so far is kept.
    pub(crate) async fn flush(&self) {
        let Some(jobs) = &self.jobs else { return };
        let (reply, flushed) = oneshot::channel();
        if jobs.try_send(Job::Flush(reply)).is_ok() {
            // What is not kept by then is described again.
            let _late = tokio::time::timeout(FLUSH_MAX, flushed).await;
        }
    }

    /// The digests of files, remembered.
    pub(crate) fn digests(&self) -> &Arc<Digests> {
        &self.memory.digests
    }

    /// Forgets the files of plugins that are not configured any more.
    fn retain(&self, config: &Config) {
        if self.opening == Opening::OnDemand {
            return;
        }
        let mut looks = lock(&self.memory.looks);
        looks.retain(|name, _| config.plugins.contains_key(name));
        lock(&self.memory.kept).retain(|name, _| config.plugins.contains_key(name));
        let files: HashSet<&Path> =
            looks.values().flat_map(|look| look.files.keys().map(PathBuf::as_path)).collect();
        self.memory.digests.retain(|path| files.contains(path));
    }
}

/// The thread that digests and writes; without one nothing is kept.
fn start(memory: &Arc<Memory>) -> Option<mpsc::SyncSender<Job>> {
    let (jobs, inbox) = mpsc::sync_channel(QUEUED);
    let memory = Arc::clone(memory);
    let keep = move || {
        while let Ok(job) = inbox.recv() {
            memory.perform(job);
        }
    };
    match std::thread::Builder::new().name("plugd-manifests".to_owned()).spawn(keep) {
        Ok(_) => Some(jobs),
        Err(error) => {
            tracing::warn!(%error, "manifests are not kept: there is no thread for it");
            None
        }
    }
}

impl Memory {
    fn perform(&self, job: Job) {
        match job {
            Job::Note { plugin, manifest, quarantined } => {
                if let Err(error) = self.keep(&plugin, manifest, quarantined) {
                    tracing::warn!(%plugin, %error, "its manifest could not be kept");
                }
            }
            Job::Forget(plugin) => {
                lock(&self.kept).remove(&plugin);
                // Mostly there is none.
                let _none = fs::remove_file(self.file(&plugin));
            }
            // Whoever asked may have stopped waiting.
            Job::Flush(reply) => drop(reply.send(())),
        }
    }

    fn file(&self, plugin: &PluginName) -> PathBuf {
        self.dir.join(format!("{plugin}.json"))
    }

    /// What the folder has of a plugin, read once.
    fn kept(&self, plugin: &PluginName) -> Result<Option<Arc<Kept>>, String> {
        if let Some(kept) = lock(&self.kept).get(plugin) {
            return Ok(kept.clone());
        }
        let read = read(&self.file(plugin));
        let kept = read.as_ref().ok().and_then(|kept| kept.as_ref().map(Arc::clone));
        lock(&self.kept).insert(plugin.clone(), kept);
        read
    }

    /// Whether a kept manifest is of what a plugin is made from now: none if not, and true where
    /// no file had to be read to tell.
    fn compare(&self, kept: &Kept, look: &Look) -> Option<bool> {
        let same_files = kept.files.keys().eq(look.files.keys());
        if kept.plugd != VERSION || kept.made_from != look.made_from || !same_files {
            return None;
        }
        let mut as_it_was = true;
        for ((path, was), stamp) in kept.files.iter().zip(look.files.values()) {
            if was.holds_for((*stamp)?) {
                self.digests.remember(path, was.clone());
            } else {
                as_it_was = false;
                if self.digests.of(path)?.sha256 != was.sha256 {
                    return None;
                }
            }
        }
        Some(as_it_was)
    }

    /// Writes a manifest, unless the files it came from have changed since they were looked at.
    fn keep(
        &self,
        plugin: &PluginName,
        manifest: Arc<RawValue>,
        quarantined: Vec<Quarantined>,
    ) -> io::Result<()> {
        let Some(look) = lock(&self.looks).get(plugin).cloned() else { return Ok(()) };
        // A file that cannot be read is written anew.
        let known = self.kept(plugin).ok().flatten();
        let known = known.filter(|known| known.manifest.get() == manifest.get());
        if known.is_some_and(|known| {
            known.quarantined == quarantined && self.compare(&known, &look) == Some(true)
        }) {
            return Ok(());
        }
        let mut files = BTreeMap::new();
        for (path, stamp) in &look.files {
            match self.digests.of(path) {
                Some(digested) if Some(digested.stamp) == *stamp => files.insert(path.clone(), digested),
                // The run may be of what was there before or of what is there now.
                Some(_) | None => return Ok(()),
            };
        }
        let kept = Kept {
            format: FORMAT,
            plugd: VERSION.to_owned(),
            made_from: look.made_from,
            files,
            quarantined,
            manifest,
        };
        write(&self.file(plugin), &serde_json::to_vec(&kept)?)?;
        lock(&self.kept).insert(plugin.clone(), Some(Arc::new(kept)));
        Ok(())
    }
}

impl Look {
    fn of(plugin: &PluginConfig) -> Look {
        let made_from = spec::files(plugin).map(|(_, path)| path);
        let beside = plugin.cwd.join(PLUGIN_FILE);
        let mut files: BTreeMap<PathBuf, Option<Stamp>> = made_from
            .chain([beside])
            .filter_map(|path| Stamp::of(&path).map(|stamp| (path, Some(stamp))))
            .collect();
        files.insert(plugin.program.clone(), Stamp::of(&plugin.program));
        let words = (&plugin.command, &plugin.cwd, &plugin.env, &plugin.pass_env);
        Look { made_from: hex(&Sha256::digest(format!("{words:?}"))), files }
    }
}

fn read(path: &Path) -> Result<Option<Arc<Kept>>, String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() && metadata.len() <= FILE_MAX_BYTES => {}
        Ok(_) => return Err("it is no file that plugd writes".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let text = fs::read(path).map_err(|error| error.to_string())?;
    match serde_json::from_slice::<AnyFormat>(&text) {
        Ok(AnyFormat { format: FORMAT }) => {}
        Ok(AnyFormat { format }) => {
            return Err(format!("it has format {format}, and {FORMAT} is known here"));
        }
        Err(error) => return Err(error.to_string()),
    }
    serde_json::from_slice(&text).map(|kept| Some(Arc::new(kept))).map_err(|error| error.to_string())
}

/// Writes a file that others see whole or not at all, closed to everybody else.
///
/// It is not made to outlast a power cut: an empty file is passed over like any other that is wrong.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::other("a file has a folder"))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&temporary).and_then(|mut file| file.write_all(text));
    let placed = written.and_then(|()| fs::rename(&temporary, path));
    if placed.is_err() {
        // What is left of it is of no use to anybody.
        let _gone = fs::remove_file(&temporary);
    }
    placed
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
