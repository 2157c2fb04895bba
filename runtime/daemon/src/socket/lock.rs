//! The lock files of a daemon: of its socket and of its state folder.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{BindError, failed};

/// The file whose lock goes with a socket.
pub(super) fn lock_path(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// What came of trying to take a lock.
pub(super) enum Lock {
    /// Held for as long as the file is open.
    Ours(File),
    /// Somebody holds it.
    Theirs { pid: Option<u32> },
}

/// Takes the exclusive lock of a file and writes our pid into it.
///
/// The lock alone decides; the pid is for people, may be stale, and is never signalled.
pub(super) fn take_lock(path: &Path) -> Result<Lock, BindError> {
    let mut options = lock_options();
    options.create(true).mode(0o600);
    let mut file = options.open(path).map_err(failed("open the lock file", path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(Lock::Theirs { pid: holder(&mut file) }),
        Err(error) => return Err(failed("lock", path)(error.into())),
    }
    let write_pid = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    write_pid(&mut file).map_err(failed("write the lock file", path))?;
    Ok(Lock::Ours(file))
}

/// How a lock file is opened, by whoever takes it or only looks.
fn lock_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).truncate(false).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// A lock file that can be taken is one that can be opened, or is not there yet.
pub(super) fn can_be_locked(path: &Path) -> Result<(), BindError> {
    opened(path).map(drop)
}

/// Whether somebody holds a lock, and who. It is held shared for a moment: whoever takes it then must try
/// more than once.
pub(super) fn held_by(path: &Path) -> Result<Option<Option<u32>>, BindError> {
    let Some(mut file) = opened(path)? else { return Ok(None) };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(Some(holder(&mut file))),
        Ok(()) | Err(_) => Ok(None),
    }
}

/// A lock file as it lies there; `None` where there is none yet.
fn opened(path: &Path) -> Result<Option<File>, BindError> {
    match lock_options().open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(failed("open the lock file", path)),
    }
}

/// The process that a lock file names.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    text.trim().parse().ok()
}
