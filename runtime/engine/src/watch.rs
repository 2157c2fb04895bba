//! Watching the files: what a person saves is applied once it has been still for a moment.
//!
//! Stamps are compared several times a second. That works on every file system and for every way of
//! writing a file (in place, by renaming, by removing first), and what is seen is what is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use plugd_protocol::control::ReloadParams;
use tokio::sync::watch;

use crate::config::{Config, files_of};
use crate::engine::{Engine, Inner};
use crate::spec::Stamp;

/// How often files are looked at: with the wait below, a save takes effect within a second.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Files are left alone until nothing about them has changed for so long: editors and copies write in
/// several steps, with pauses of up to a few hundred milliseconds.
const STILL_FOR: Duration = Duration::from_millis(500);

/// Starts to watch, for as long as the engine lives.
pub(crate) fn start(engine: Weak<Inner>, configs: watch::Receiver<Arc<Config>>) {
    let config = configs.borrow().clone();
    let mut watched = Watched::default();
    if config.watch {
        // What is there now is what was applied: nothing that is saved from here on is missed.
        watched.look(Snapshot::of(&config), Instant::now());
    }
    tokio::spawn(watch(engine, configs, watched));
}

async fn watch(engine: Weak<Inner>, mut configs: watch::Receiver<Arc<Config>>, mut watched: Watched) {
    loop {
        let config = configs.borrow_and_update().clone();
        if config.watch && watched.applied.is_none() {
            // What is saved from the moment it was read on is a change.
            watched.applied = config.files.as_deref().cloned();
        }
        if !config.watch {
            watched = Watched::default();
            if configs.changed().await.is_err() {
                return;
            }
            continue;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        if engine.strong_count() == 0 {
            return;
        }
        let Ok(seen) = tokio::task::spawn_blocking(move || Snapshot::of(&config)).await else { return };
        if watched.look(seen, Instant::now()) {
            let Some(engine) = engine.upgrade().map(Engine::of) else { return };
            match engine.reload(&ReloadParams::default()).await {
                Ok(report) => tracing::info!(generation = report.config_generation, "files changed: applied"),
                Err(error) => tracing::error!("files changed and are not applied: {}", error.message),
            }
        }
    }
}

/// What was seen of the files, and what of it was applied.
#[derive(Debug, Default)]
struct Watched {
    applied: Option<Snapshot>,
    /// What differs from that, and since when it is so.
    pending: Option<(Snapshot, Instant)>,
}

impl Watched {
    /// Takes note of how the files are; true when that is to be applied now.
    fn look(&mut self, seen: Snapshot, now: Instant) -> bool {
        let Some(applied) = &mut self.applied else {
            self.applied = Some(seen);
            return false;
        };
        applied.follow(&seen);
        if *applied == seen {
            self.pending = None;
            return false;
        }
        match &self.pending {
            Some((pending, since)) if *pending == seen => {
                if now.saturating_duration_since(*since) < STILL_FOR {
                    return false;
                }
                self.applied = Some(seen);
                self.pending = None;
                true
            }
            _ => {
                self.pending = Some((seen, now));
                false
            }
        }
    }
}

/// How all files that plugins come from are at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Those that the configuration names.
    named: BTreeMap<PathBuf, Option<Stamp>>,
    /// Those that lie in each scanned folder; others there are nobody's business here.
    found: BTreeMap<PathBuf, BTreeMap<PathBuf, Option<Stamp>>>,
}

impl Snapshot {
    pub(crate) fn of(config: &Config) -> Snapshot {
        let words = config.plugins.values().flat_map(|plugin| {
            let arguments = plugin.command.iter().skip(1).map(|word| plugin.cwd.join(word));
            std::iter::once(plugin.program.clone()).chain(arguments)
        });
        let found = config
            .scan_dirs
            .iter()
            .map(|dir| (dir.clone(), files_of(dir).into_iter().map(stamped).collect()));
        Snapshot {
            named: config.file.clone().into_iter().chain(words).map(stamped).collect(),
            found: found.collect(),
        }
    }

    /// The same where the config file was looked at earlier than the others: before it was read.
    pub(crate) fn with_file(mut self, file: PathBuf, stamp: Option<Stamp>) -> Snapshot {
        self.named.insert(file, stamp);
        self
    }

    /// Looks where `now` looks: what is named only now counts as it is now.
    fn follow(&mut self, now: &Snapshot) {
        follow(&mut self.named, &now.named);
        follow(&mut self.found, &now.found);
    }
}

/// How a file is; `None` for what is none.
pub(crate) fn stamp_of(path: &Path) -> Option<Stamp> {
    Stamp::of(path).filter(|_| path.is_file())
}

fn stamped(path: PathBuf) -> (PathBuf, Option<Stamp>) {
    let stamp = stamp_of(&path);
    (path, stamp)
}

fn follow<V: Clone>(then: &mut BTreeMap<PathBuf, V>, now: &BTreeMap<PathBuf, V>) {
    then.retain(|path, _| now.contains_key(path));
    for (path, value) in now {
        then.entry(path.clone()).or_insert_with(|| value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use crate::config::Environment;

    struct Folder {
        dir: tempfile::TempDir,
        text: &'static str,
    }

    impl Folder {
        fn new(text: &'static str) -> Folder {
            let folder = Folder { dir: tempfile::tempdir().unwrap(), text };
            fs::create_dir_all(folder.path("scanned/in")).unwrap();
            folder.write("plugd.toml", text);
            folder.write("main.py", "1");
            folder
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        fn make_executable(&self, name: &str) {
            fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o755)).unwrap();
        }

        fn seen(&self) -> Snapshot {
            let file: &Path = &self.path("plugd.toml");
            Snapshot::of(&Config::parse(self.text, file, &Environment::of_process()).unwrap())
        }
    }

    const TEXT: &str = "[scan]\ndirs = [\"scanned\"]\n[plugins.p]\ncommand = [\"sh\", \"main.py\", \"-v\"]\n";

    #[test]
    fn what_makes_a_plugin_is_seen_and_nothing_else() {
        let folder = Folder::new(TEXT);
        let mut last = folder.seen();
        let mut changed = |what: &str| {
            let seen = folder.seen();
            assert_ne!(last, seen, "{what}");
            last = seen;
        };
        folder.write("main.py", "22");
        changed("an argument is a file");
        folder.write("plugd.toml", "# more\n");
        changed("the config file");
        folder.write("scanned/in/plugin.toml", "command = [\"sh\"]\n");
        changed("a folder became a plugin");
        folder.write("scanned/greet.sh", "exit");
        folder.make_executable("scanned/greet.sh");
        changed("an executable came");
        fs::remove_file(folder.path("main.py")).unwrap();
        changed("a file went");
        fs::remove_file(folder.path("scanned/greet.sh")).unwrap();
        changed("an executable went");

        fs::create_dir_all(folder.path("scanned/__pycache__")).unwrap();
        fs::create_dir_all(folder.path("scanned/data")).unwrap();
        folder.write("scanned/in/state.db", "x");
        folder.write("scanned/notes.txt", "x");
        folder.write("scanned/greet.sh~", "x");
        folder.make_executable("scanned/greet.sh~");
        folder.write("beside", "x");
        assert_eq!(last, folder.seen(), "what plugins and editors write beside them is nobody's business");
    }

    fn snapshot(stamps: &[(&str, u64)]) -> Snapshot {
        let stamp = |size: u64| Some(Stamp::of_size(size));
        let named = stamps.iter().map(|(path, size)| (PathBuf::from(path), stamp(*size))).collect();
        Snapshot { named, found: BTreeMap::new() }
    }

    #[test]
    fn a_change_is_applied_once_and_only_when_it_is_still() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut watched = Watched::default();
        assert!(!watched.look(snapshot(&[("a", 1)]), at(0)));
        assert!(!watched.look(snapshot(&[("a", 1)]), at(250)));
        // Truncated, half written, whole.
        assert!(!watched.look(snapshot(&[("a", 0)]), at(500)));
        assert!(!watched.look(snapshot(&[("a", 0)]), at(750)));
        assert!(!watched.look(snapshot(&[("a", 5)]), at(1_000)));
        assert!(!watched.look(snapshot(&[("a", 9)]), at(1_250)));
        assert!(!watched.look(snapshot(&[("a", 9)]), at(1_500)));
        assert!(watched.look(snapshot(&[("a", 9)]), at(1_750)));
        assert!(!watched.look(snapshot(&[("a", 9)]), at(2_000)));
        assert!(!watched.look(snapshot(&[("a", 9)]), at(9_000)));
    }

    #[test]
    fn a_change_that_is_taken_back_is_none() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut watched = Watched::default();
        watched.look(snapshot(&[("a", 1)]), at(0));
        assert!(!watched.look(snapshot(&[("a", 2)]), at(250)));
        assert!(!watched.look(snapshot(&[("a", 1)]), at(500)));
        assert!(!watched.look(snapshot(&[("a", 2)]), at(1_000)));
        assert!(!watched.look(snapshot(&[("a", 2)]), at(1_250)));
        assert!(watched.look(snapshot(&[("a", 2)]), at(1_500)));
    }

    #[test]
    fn to_look_at_other_files_is_no_change() {
        let start = Instant::now();
        let mut watched = Watched::default();
        watched.look(snapshot(&[("a", 1), ("b", 1)]), start);
        for seconds in 1..5 {
            let later = start + Duration::from_secs(seconds);
            assert!(!watched.look(snapshot(&[("a", 1), ("c", 7)]), later));
        }
        // The one that is followed since then is followed like any other.
        let seen = || snapshot(&[("a", 1), ("c", 8)]);
        assert!(!watched.look(seen(), start + Duration::from_secs(6)));
        assert!(watched.look(seen(), start + Duration::from_secs(7)));
    }
}
