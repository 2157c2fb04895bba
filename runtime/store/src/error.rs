//! Why the store cannot do what it is asked.

use std::path::{Path, PathBuf};

use nix::sys::statvfs::{Statvfs, statvfs};
use rusqlite::ErrorCode;

const DISK_FULL: &str = "the disk is full";

/// A disk with fewer bytes free has no room for a new log with its index, which are the least that is made.
const ROOM_LEAST: u64 = 64 * 1024;

/// Why the store cannot do what it is asked; the text is a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A newer plugd has written the file. It is left as it is.
    #[error(
        "{} was written by a newer plugd (its form is {found}, this one knows {known}): calls are not recorded; \
         use the newer plugd, or move the file away", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The form it has.
        found: u32,
        /// The newest form known here.
        known: u32,
    },
    /// It cannot be opened, read or written at present.
    #[error("{} cannot be used: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It was not done in the time that was given; nothing of it stays.
    #[error("the record of calls was not written in time: the disk is slow, or another process holds it")]
    Late,
    /// The store has been closed.
    #[error("the record of calls has been closed")]
    Closed,
}

impl StoreError {
    pub(crate) fn unusable(path: &Path, reason: impl Into<String>) -> StoreError {
        StoreError::Unusable { path: path.to_owned(), reason: reason.into() }
    }

    pub(crate) fn of(path: &Path, error: &rusqlite::Error) -> StoreError {
        let failed = error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure);
        let reason = if failed && is_full(path) { DISK_FULL.to_owned() } else { in_words(error) };
        StoreError::unusable(path, reason)
    }
}

/// Whether there is next to no room beside a file: SQLite says of some of its files only that they failed.
fn is_full(path: &Path) -> bool {
    let folder = path.parent().unwrap_or(path);
    let room = |disk: Statvfs| disk.blocks_available().saturating_mul(disk.fragment_size());
    statvfs(folder).map(room).is_ok_and(|room| room < ROOM_LEAST)
}

/// What SQLite reports, in words.
pub(crate) fn in_words(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => DISK_FULL.to_owned(),
        Some(ErrorCode::ReadOnly) => "it cannot be written to".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process has held it for too long".to_owned()
        }
        Some(ErrorCode::CannotOpen) => format!("it cannot be opened ({error})"),
        Some(ErrorCode::SystemIoFailure) => format!("the disk failed ({error})"),
        _ => error.to_string(),
    }
}

/// Whether the file itself is broken.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Whether nothing else would succeed either, so that a transaction has no point any more.
pub(crate) fn is_fatal(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch) | None => false,
        Some(_) => true,
    }
}
