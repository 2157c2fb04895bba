//! Manifests kept from earlier runs: plugins are listed without being started.
//!
//! One file a plugin in `state_dir/manifests`. It holds the manifest as it was written, with the
//! digests of the files it came from; as soon as one of them differs it counts for nothing, and the
//! plugin is described afresh. It is a cache: whatever is wrong with a file, it is passed over.

mod taken_up;

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
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::claims::Agreed;
use crate::config::{Config, PluginConfig};
use crate::digests::{Digested, Digests, Stamp, hex};
use crate::engine::Opening;
use crate::pin;
use crate::registry::{Checked, Known};
use crate::spec;

pub(crate) use taken_up::{remembered, take_up};

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
    pub(crate) opening: Opening,
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
    /// What lay beside each plugin when its configuration was taken up last.
    beside: Mutex<HashMap<PluginName, Arc<RawValue>>>,
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
    /// A digest of the command, the folder, the variables and the manifest that is configured.
    made_from: String,
    files: BTreeMap<PathBuf, Digested>,
    /// Operations that are not offered, among them those whose schema does not compile.
    quarantined: Vec<Quarantined>,
    manifest: Arc<RawValue>,
    /// What it is compared with, where it claims something else under the same version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreed: Option<Agreed>,
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
        agreed: Option<Agreed>,
    },
    Forget(PluginName),
    /// Everything queued before has been done when this is answered.
    Flush(oneshot::Sender<()>),
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
            beside: Mutex::default(),
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
            let agreed = kept.agreed.clone();
            self.note(&plugin.name, Arc::clone(&kept.manifest), &kept.quarantined, agreed);
        }
        if !pin::allows(plugin, &kept.manifest) {
            return Ok(None);
        }
        let checked = Checked::Before(kept.quarantined.clone());
        Ok(Some(Known { manifest: Arc::clone(&kept.manifest), checked }))
    }

    /// What is kept of a plugin that does not run, if its files are as they were.
    pub(crate) fn recall(&self, plugin: &PluginConfig) -> Option<Known> {
        let kept = self.kept(plugin)?;
        self.memory.compare(&kept, &Look::of(plugin))?;
        if !pin::allows(plugin, &kept.manifest) {
            return None;
        }
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

    /// What a plugin is to be compared with, whatever became of its files since that was kept.
    pub(crate) fn agreed_before(&self, plugin: &PluginConfig) -> Option<Arc<RawValue>> {
        let kept = self.kept(plugin)?;
        Some(Arc::clone(kept.agreed.as_ref().map_or(&kept.manifest, |agreed| &agreed.manifest)))
    }

    /// What a plugin was kept to claim otherwise than before, and what it was to be compared with.
    pub(crate) fn changed_before(&self, plugin: &PluginConfig) -> Option<(Agreed, Arc<RawValue>)> {
        let kept = self.kept(plugin)?;
        let is_agreed = plugin.manifest_sha256.is_some() && pin::allows(plugin, &kept.manifest);
        let agreed = kept.agreed.clone().filter(|_| !is_agreed)?;
        Some((agreed, Arc::clone(&kept.manifest)))
    }

    /// The manifest that was kept of a plugin, whatever became of its files since.
    pub(crate) fn declared_before(&self, plugin: &PluginConfig) -> Option<Arc<RawValue>> {
        self.kept(plugin).map(|kept| Arc::clone(&kept.manifest))
    }

    fn kept(&self, plugin: &PluginConfig) -> Option<Arc<Kept>> {
        // One that is given has its name by chance: what is kept is of another.
        let is_given = plugin.source == Source::Embedded;
        // One that cannot be used is told of where all are read.
        if is_given { None } else { self.memory.kept(&plugin.name).ok().flatten() }
    }

    /// Takes note of the manifest that lies beside a plugin; true where it is another one.
    fn lies_beside(&self, plugin: &PluginName, manifest: &Arc<RawValue>) -> bool {
        let before = lock(&self.memory.beside).insert(plugin.clone(), Arc::clone(manifest));
        before.is_none_or(|before| before.get() != manifest.get())
    }

    /// Keeps a manifest for the next start, and what it was compared with; never waits.
    pub(crate) fn note(
        &self,
        plugin: &PluginName,
        manifest: Arc<RawValue>,
        quarantined: &[Quarantined],
        agreed: Option<Agreed>,
    ) {
        let Some(jobs) = &self.jobs else { return };
        let job = Job::Note { plugin: plugin.clone(), manifest, quarantined: quarantined.to_vec(), agreed };
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
        lock(&self.memory.beside).retain(|name, _| config.plugins.contains_key(name));
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
            Job::Note { plugin, manifest, quarantined, agreed } => {
                if let Err(error) = self.keep(&plugin, manifest, quarantined, agreed) {
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
        agreed: Option<Agreed>,
    ) -> io::Result<()> {
        let Some(look) = lock(&self.looks).get(plugin).cloned() else { return Ok(()) };
        // A file that cannot be read is written anew.
        let known = self.kept(plugin).ok().flatten();
        let known = known.filter(|known| known.manifest.get() == manifest.get());
        if known.is_some_and(|known| {
            (&known.quarantined, &known.agreed) == (&quarantined, &agreed)
                && self.compare(&known, &look) == Some(true)
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
            agreed,
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
        let manifest = plugin.manifest.as_ref().map(ToString::to_string).unwrap_or_default();
        Look { made_from: hex(&Sha256::digest(format!("{words:?}{manifest}"))), files }
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
