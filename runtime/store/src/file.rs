//! Opening the file: made private, looked over, brought to the latest form; or moved aside.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::aside::{MovedAside, move_aside};
use crate::error::{StoreError, in_words, is_damage};
use crate::migrations;
use crate::owners::{Owners, beside};

/// How long one waits for another process that writes.
const BUSY_AWAITED: Duration = Duration::from_secs(5);

/// How long a file is looked over before it is used. What is not found then is found in use.
const LOOKED_OVER: Duration = Duration::from_millis(10);

/// How often, in SQLite's steps, is looked whether that time is over.
const LOOK_STEPS: i32 = 500;

/// The log is written back into the file when it has so many pages (16 MiB).
const LOG_PAGES: i64 = 4096;

/// A log that had to grow beyond its measure is cut to this.
const LOG_BYTES_MAX: i64 = 32 * 1024 * 1024;

/// How long one waits for others to be done with the log, where it is to be emptied.
const LOG_AWAITED: Duration = Duration::from_millis(50);

/// So many statements stay prepared: more than there are.
const STATEMENTS: usize = 64;

/// Which file it is, whatever its name: another may be put in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Of the file that has this name now.
    pub(crate) fn of(path: &Path) -> Option<FileIdentity> {
        let metadata = fs::metadata(path).ok()?;
        Some(FileIdentity { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// Whether the file is there and there is nothing in it.
pub(crate) fn is_empty(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
}

/// A file that is ready to be written.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) identity: Option<FileIdentity>,
    pub(crate) moved_aside: Option<MovedAside>,
}

/// Why a file was not opened.
enum Refused {
    /// It is damaged: this is what was found.
    Damaged(String),
    Other(StoreError),
}

/// Opens the file, in the place of a damaged one if it must be. No other store opens it meanwhile.
pub(crate) fn open(path: &Path, owners: &Owners) -> Result<Opened, StoreError> {
    let _alone = owners.opening().map_err(|error| StoreError::unusable(path, error.to_string()))?;
    match try_open(path, owners) {
        Ok(connection) => Ok(opened(path, connection, None)),
        Err(Refused::Other(error)) => Err(error),
        Err(Refused::Damaged(reason)) => begin_anew(path, owners, &reason),
    }
}

/// Opens the file after the one with this identity was found damaged in use. Another process may
/// have moved that aside already.
pub(crate) fn reopen(
    path: &Path,
    owners: &Owners,
    damaged: Option<FileIdentity>,
    reason: &str,
) -> Result<Opened, StoreError> {
    let _alone = owners.opening().map_err(|error| StoreError::unusable(path, error.to_string()))?;
    if damaged.is_some() && FileIdentity::of(path) == damaged {
        return begin_anew(path, owners, reason);
    }
    match try_open(path, owners) {
        Ok(connection) => Ok(opened(path, connection, None)),
        Err(Refused::Other(error)) => Err(error),
        Err(Refused::Damaged(reason)) => begin_anew(path, owners, &reason),
    }
}

fn begin_anew(path: &Path, owners: &Owners, reason: &str) -> Result<Opened, StoreError> {
    let moved = move_aside(path, reason).map_err(|error| {
        StoreError::unusable(path, format!("it is damaged ({reason}) and cannot be moved aside: {error}"))
    })?;
    owners.note_filled(false);
    match try_open(path, owners) {
        Ok(connection) => Ok(opened(path, connection, Some(moved))),
        Err(Refused::Other(error)) => Err(error),
        Err(Refused::Damaged(reason)) => Err(StoreError::unusable(path, reason)),
    }
}

fn opened(path: &Path, connection: Connection, moved_aside: Option<MovedAside>) -> Opened {
    Opened { connection, identity: FileIdentity::of(path), moved_aside }
}

fn try_open(path: &Path, owners: &Owners) -> Result<Connection, Refused> {
    let refused = |error: rusqlite::Error| match is_damage(&error) {
        true => Refused::Damaged(in_words(&error)),
        false => Refused::Other(StoreError::of(path, &error)),
    };
    if was_emptied(path, owners) {
        return Err(Refused::Damaged("there is nothing in it any more".to_owned()));
    }
    let made = make_private(path);
    if made.map_err(|error| Refused::Other(StoreError::unusable(path, error.to_string())))? {
        owners.note_filled(false);
    }
    let mut connection = connect(path).map_err(refused)?;
    // What is no database shows here, before anything is written.
    let found = migrations::form(&connection).map_err(refused)?;
    let known = migrations::latest();
    if found > known {
        return Err(Refused::Other(StoreError::Newer { path: path.to_owned(), found, known }));
    }
    set_up_writing(&connection).map_err(refused)?;
    if let Some(problem) = look_over(&mut connection).map_err(refused)? {
        return Err(Refused::Damaged(problem));
    }
    migrations::migrate(&mut connection).map_err(refused)?;
    owners.note_filled(true);
    Ok(connection)
}

/// Whether somebody has taken out what was in the file: SQLite would take it for a new one, and
/// throw away the log that may lie beside it.
fn was_emptied(path: &Path, owners: &Owners) -> bool {
    let log = fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0);
    is_empty(path) && (log || owners.was_filled())
}

/// A file for the owner's eyes only. One that is there is never opened here: to close it would let
/// go of the locks that SQLite holds on it in this process. Whether it is new.
fn make_private(path: &Path) -> io::Result<bool> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let open_to_others = fs::metadata(path)?.mode() & 0o077 != 0;
            if open_to_others {
                fs::set_permissions(path, Permissions::from_mode(0o600))?;
            }
            Ok(false)
        }
        made => made.map(|_| true),
    }
}

/// A connection for questions or for writing.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_AWAITED)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // The file may hold what somebody else has put there: nothing in its form is to be run.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

fn set_up_writing(connection: &Connection) -> rusqlite::Result<()> {
    // Of effect in an empty file only, and only before anything is written to it.
    connection.pragma_update(None, "auto_vacuum", "incremental")?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        tracing::warn!(
            mode,
            "the record's file system allows no write-ahead log: readers and writers wait for each other"
        );
    }
    connection.pragma_update(None, "foreign_keys", true)?;
    // What is deleted may have been a secret: nothing of it stays in the file.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
    Ok(())
}

/// Writes the log back into the file and empties it, where nobody is in the way: what was deleted
/// is in neither any more.
pub(crate) fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(LOG_AWAITED)?;
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(BUSY_AWAITED)?;
    emptied
}

/// What is wrong with the file, as far as can be seen in a short time.
fn look_over(connection: &mut Connection) -> rusqlite::Result<Option<String>> {
    let until = Instant::now() + LOOKED_OVER;
    connection.progress_handler(LOOK_STEPS, Some(move || Instant::now() > until))?;
    let looked = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match looked {
        Ok(answer) if answer == "ok" => Ok(None),
        Ok(problem) => Ok(Some(problem)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(None),
        Err(error) => Err(error),
    }
}
