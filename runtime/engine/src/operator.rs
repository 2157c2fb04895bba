//! What an operator changed, kept in the state folder: it survives restarts of plugd.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use serde::{Deserialize, Serialize};

const FILE: &str = "operator.json";

/// Where a file that could not be read is moved to, for a person to look at.
const SET_ASIDE: &str = "operator.json.bad";

/// Locked by whoever changes what is kept. It stays: two files of one name would be two locks.
const LOCK: &str = "operator.lock";

/// Others hold the lock for as long as it takes to write two small files.
const LOCK_WAIT: Duration = Duration::from_secs(5);

const LOCK_TRIED_EVERY: Duration = Duration::from_millis(10);

/// Another form of the file gets another number; a file with one that is not known is not used.
const FORMAT: u32 = 1;

/// An operator's standing decisions; those about plugins that are no longer there do no harm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Operator {
    /// Configured plugins that are to be as good as not there.
    pub(crate) removed: BTreeSet<PluginName>,
    /// Plugins that may be used, or may not, whatever their files say.
    pub(crate) enabled: BTreeMap<PluginName, bool>,
    /// Plugins that stay down until an operator starts them.
    pub(crate) stopped: BTreeSet<PluginName>,
    /// Why the file could not be used, where there was one.
    pub(crate) unreadable: Option<String>,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Kept {
    format: u32,
    #[serde(default)]
    removed: BTreeSet<PluginName>,
    #[serde(default)]
    enabled: BTreeMap<PluginName, bool>,
    #[serde(default)]
    stopped: BTreeSet<PluginName>,
}

impl Operator {
    /// Reads what is kept; what cannot be read counts as nothing, with the reason.
    pub(crate) fn read(state_dir: &Path) -> Operator {
        let unreadable = |reason: String| Operator { unreadable: Some(reason), ..Operator::default() };
        let text = match fs::read(state_dir.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Operator::default(),
            Err(error) => return unreadable(error.to_string()),
        };
        match serde_json::from_slice::<Kept>(&text) {
            Ok(Kept { format: FORMAT, removed, enabled, stopped }) => {
                Operator { removed, enabled, stopped, unreadable: None }
            }
            Ok(Kept { format, .. }) => {
                unreadable(format!("it has format {format}, and {FORMAT} is known here"))
            }
            Err(error) => unreadable(error.to_string()),
        }
    }

    /// Keeps it: whole or not at all.
    ///
    /// # Errors
    /// The state folder cannot be written to.
    pub(crate) fn save(&self, state_dir: &Path) -> io::Result<()> {
        let kept = Kept {
            format: FORMAT,
            removed: self.removed.clone(),
            enabled: self.enabled.clone(),
            stopped: self.stopped.clone(),
        };
        replace_file(&state_dir.join(FILE), &serde_json::to_vec(&kept)?)
    }

    /// Forgets everything about a plugin.
    pub(crate) fn forget(&mut self, plugin: &PluginName) {
        self.removed.remove(plugin);
        self.enabled.remove(plugin);
        self.stopped.remove(plugin);
    }
}

/// The turn to read what is kept, change it and write it again: one process at a time has it.
#[derive(Debug)]
pub(crate) struct Turn(
    /// Held, never read: closing it gives the lock back.
    #[expect(dead_code, reason = "its end is what counts")]
    File,
);

impl Turn {
    /// Waits for the turn, and blocks meanwhile.
    ///
    /// # Errors
    /// The state folder cannot be written to, or somebody keeps the turn for too long.
    pub(crate) fn take(state_dir: &Path) -> io::Result<Turn> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
        let options = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).clone();
        let file = options.open(state_dir.join(LOCK))?;
        let until = Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Turn(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOCK_TRIED_EVERY),
                Err(TryLockError::WouldBlock) => {
                    let message = format!("{LOCK} is held by another plugd");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// Moves a file that cannot be read out of the way of the next one.
pub(crate) fn set_aside(state_dir: &Path) -> io::Result<PathBuf> {
    let aside = state_dir.join(SET_ASIDE);
    fs::rename(state_dir.join(FILE), &aside)?;
    Ok(aside)
}

/// Writes a file that others see whole or not at all, closed to everybody else.
pub(crate) fn replace_file(path: &Path, text: &[u8]) -> io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("a file has a folder and a name"));
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let temporary = dir.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = (|| {
        let options = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
        let mut file = options.open(&temporary)?;
        file.write_all(text)?;
        // A power cut must not leave the name on an empty file.
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // What is left of it is of no use to anybody.
        let _gone = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn name(text: &str) -> PluginName {
        PluginName::new(text).unwrap()
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        assert_eq!(Operator::read(&state), Operator::default());
        let operator = Operator {
            removed: [name("a")].into(),
            enabled: [(name("b"), false), (name("c"), true)].into(),
            stopped: [name("d"), name("e")].into(),
            unreadable: None,
        };
        operator.save(&state).unwrap();
        assert_eq!(Operator::read(&state), operator);
        let file = state.join(FILE);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            r#"{"format":1,"removed":["a"],"enabled":{"b":false,"c":true},"stopped":["d","e"]}"#
        );
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn what_cannot_be_read_counts_as_nothing_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        for garbage in ["", "{", "[]", r#"{"format":2}"#, r#"{"format":1,"stopped":["a b"]}"#, "\u{0}\u{1}"] {
            fs::write(dir.path().join(FILE), garbage).unwrap();
            let read = Operator::read(dir.path());
            assert!(read.unreadable.is_some(), "{garbage}");
            assert_eq!(Operator { unreadable: None, ..read }, Operator::default(), "{garbage}");
        }
        set_aside(dir.path()).unwrap();
        assert_eq!(Operator::read(dir.path()), Operator::default());
        assert!(dir.path().join(SET_ASIDE).exists());
    }

    #[test]
    fn those_who_change_what_is_kept_come_one_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let names: Vec<PluginName> = (0..16).map(|number| name(&format!("p{number}"))).collect();
        thread::scope(|scope| {
            for plugin in &names {
                scope.spawn(|| {
                    let _turn = Turn::take(&state).unwrap();
                    let mut operator = Operator::read(&state);
                    operator.removed.insert(plugin.clone());
                    operator.save(&state).unwrap();
                });
            }
        });
        assert_eq!(Operator::read(&state).removed, names.into_iter().collect());
    }

    #[test]
    fn what_is_said_of_one_plugin_is_forgotten_together() {
        let all = || [name("a"), name("b")];
        let mut operator = Operator {
            removed: all().into(),
            enabled: all().map(|name| (name, true)).into(),
            stopped: all().into(),
            unreadable: None,
        };
        operator.forget(&name("a"));
        assert_eq!((operator.removed.len(), operator.enabled.len(), operator.stopped.len()), (1, 1, 1));
    }
}
