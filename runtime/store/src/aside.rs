//! A damaged file is moved aside, so that a new one can take its place and nothing is destroyed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::owners::beside;

/// What stands in the name of a file that was moved aside.
const MARK: &str = ".corrupt-";

/// So many damaged files are kept; the oldest is removed for a newer one.
const KEPT_MAX: usize = 3;

/// What SQLite keeps beside a file. They go first: beside a new file they would be taken for its own.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// A damaged file, and where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedAside {
    /// Where it was moved.
    pub to: PathBuf,
    /// What was wrong with it.
    pub reason: String,
}

/// Moves a file aside, and says so in the log. Only for whoever keeps others from opening it.
///
/// # Errors
/// Where it cannot be renamed.
pub(crate) fn move_aside(path: &Path, reason: &str) -> io::Result<MovedAside> {
    let to = free_name(path);
    for companion in COMPANIONS {
        match fs::rename(beside(path, companion), beside(&to, companion)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    fs::rename(path, &to)?;
    tracing::warn!(
        path = %path.display(),
        moved_to = %to.display(),
        reason,
        "the record of calls is damaged: it was moved aside and a new one begun; keys of earlier calls are unknown now"
    );
    remove_oldest(path);
    Ok(MovedAside { to, reason: reason.to_owned() })
}

/// The damaged file beside this one that was moved there last.
pub(crate) fn latest(path: &Path) -> Option<PathBuf> {
    // The time stands in the name.
    damaged_files(path).into_iter().map(|(_, file)| file).max()
}

/// Such as `plugd.db.corrupt-20261130T121913Z`.
fn free_name(path: &Path) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let now: String = now.chars().filter(|character| !matches!(character, '-' | ':')).collect();
    let named = |number: u32| match number {
        1 => beside(path, &format!("{MARK}{now}")),
        number => beside(path, &format!("{MARK}{now}-{number}")),
    };
    (1..u32::MAX).map(named).find(|name| !name.exists()).unwrap_or_else(|| named(1))
}

fn remove_oldest(path: &Path) {
    let mut damaged = damaged_files(path);
    damaged.sort();
    let too_many = damaged.len().saturating_sub(KEPT_MAX);
    for file in damaged.into_iter().take(too_many).map(|(_, file)| file) {
        let removed = fs::remove_file(&file);
        for companion in COMPANIONS {
            let _none_there = fs::remove_file(beside(&file, companion));
        }
        tracing::warn!(path = %file.display(), error = ?removed.err(), "an older damaged record was removed");
    }
}

/// The damaged files beside this one, each with when it was last written.
fn damaged_files(path: &Path) -> Vec<(SystemTime, PathBuf)> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned() + MARK;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let companion = COMPANIONS.iter().any(|companion| file.ends_with(companion));
        if file.starts_with(&name) && !companion {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            found.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_damaged_files_are_kept_with_their_companions() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plugd.db");
        let mut moved = Vec::new();
        for round in 0..5 {
            fs::write(&path, format!("{round}")).expect("written");
            fs::write(beside(&path, "-wal"), "log").expect("written");
            moved.push(move_aside(&path, "a test").expect("moved").to);
            assert!(!path.exists() && !beside(&path, "-wal").exists());
        }
        let left = damaged_files(&path);
        assert_eq!(left.len(), KEPT_MAX);
        let latest = moved.last().expect("five");
        assert!(super::latest(&path).is_some() && super::latest(&folder.path().join("other")).is_none());
        assert_eq!(fs::read_to_string(latest).expect("the latest is kept"), "4");
        assert!(beside(latest, "-wal").exists());
    }
}
