//! Who has the file open: each store holds a byte of a lock file for as long as it lives.
//!
//! The kernel lets go of the byte when the process ends, however it ends, so nobody is taken for
//! alive who is not, and no process number that was given away again deceives. These are locks of
//! an open file description (OFD), which Linux has: two stores of one process tell each other apart
//! as well.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use uuid::Uuid;

/// How long one waits for another that opens or replaces the file.
const OPENING_AWAITED: Duration = Duration::from_secs(5);

/// How often is looked whether the other is done.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The byte that is held while the file is opened or replaced.
const OPENING: i64 = 0;

/// This store among those that have the same file open.
#[derive(Debug)]
pub(crate) struct Owners {
    locks: RwLock<File>,
    own: i64,
}

/// While this lives, no other store opens or replaces the file.
pub(crate) struct Opening<'a>(&'a Owners);

impl Owners {
    /// Enters as one more; the lock file lies beside the store's.
    ///
    /// # Errors
    /// Where it cannot be made or locked.
    pub(crate) fn enter(store: &Path) -> io::Result<Owners> {
        let locks = open_locks(store)?;
        loop {
            // 62 random bits: a number is never used twice.
            let own = 1 + i64::try_from(Uuid::new_v4().as_u128() >> 66).unwrap_or_default();
            if try_lock(&locks, own)? {
                return Ok(Owners { locks: RwLock::new(locks), own });
            }
        }
    }

    fn locks(&self) -> RwLockReadGuard<'_, File> {
        self.locks.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters again where the lock file was deleted: others have made another by now, or will.
    ///
    /// # Errors
    /// Where it cannot be made or locked.
    pub(crate) fn stay(&self, store: &Path) -> io::Result<()> {
        let locks = open_locks(store)?;
        let (here, held) = (locks.metadata()?, self.locks().metadata()?);
        if (here.dev(), here.ino()) != (held.dev(), held.ino()) {
            let _own = try_lock(&locks, self.own)?;
            *self.locks.write().unwrap_or_else(PoisonError::into_inner) = locks;
        }
        Ok(())
    }

    /// Whether the store's file has had something in it: then it is never empty again.
    pub(crate) fn was_filled(&self) -> bool {
        self.locks().metadata().is_ok_and(|metadata| metadata.len() > 0)
    }

    /// Notes whether it has: by a byte that takes no room on the disk.
    pub(crate) fn note_filled(&self, filled: bool) {
        if self.was_filled() != filled {
            // Without it an emptied file is taken for a new one.
            let _noted = self.locks().set_len(u64::from(filled));
        }
    }

    /// The number of this store.
    pub(crate) fn own(&self) -> i64 {
        self.own
    }

    /// Lets go of the byte: nobody takes this store for alive any more.
    pub(crate) fn leave(&self) {
        unlock(&self.locks(), self.own);
    }

    /// Whether the store with this number still lives. In doubt it does.
    pub(crate) fn lives(&self, other: i64) -> bool {
        let mut lock = byte(libc::F_WRLCK, other);
        let asked = fcntl(&*self.locks(), FcntlArg::F_OFD_GETLK(&mut lock));
        // One's own lock is in nobody's way, so it does not show.
        other == self.own || asked.is_err() || i32::from(lock.l_type) != libc::F_UNLCK
    }

    /// Waits until nobody else opens or replaces the file, then keeps others from it.
    ///
    /// # Errors
    /// Where another has been at it for too long, or nothing can be locked.
    pub(crate) fn opening(&self) -> io::Result<Opening<'_>> {
        let until = Instant::now() + OPENING_AWAITED;
        while !try_lock(&self.locks(), OPENING)? {
            if Instant::now() > until {
                let message = "another process has been opening it for too long";
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(Opening(self))
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        unlock(&self.0.locks(), OPENING);
    }
}

fn open_locks(store: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(beside(store, ".owners"))
}

/// A path with something added to its last part.
pub(crate) fn beside(path: &Path, added: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(added);
    PathBuf::from(name)
}

/// Whether the byte is ours now.
fn try_lock(locks: &File, at: i64) -> io::Result<bool> {
    match fcntl(locks, FcntlArg::F_OFD_SETLK(&byte(libc::F_WRLCK, at))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn unlock(locks: &File, at: i64) {
    // Where this fails the lock goes with the process.
    let _unlocked = fcntl(locks, FcntlArg::F_OFD_SETLK(&byte(libc::F_UNLCK, at)));
}

fn byte(kind: i32, at: i64) -> libc::flock {
    libc::flock {
        l_type: i16::try_from(kind).unwrap_or_default(),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: at,
        l_len: 1,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_lives_until_it_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plugd.db");
        let (first, second) = (Owners::enter(&path).expect("first"), Owners::enter(&path).expect("second"));
        assert!(first.lives(first.own()) && first.lives(second.own()) && second.lives(first.own()));
        let number = first.own();
        drop(first);
        assert!(!second.lives(number) && !second.lives(12));
    }

    #[test]
    fn only_one_opens_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plugd.db");
        let (first, second) = (Owners::enter(&path).expect("first"), Owners::enter(&path).expect("second"));
        let opening = first.opening().expect("nobody else opens");
        assert!(!try_lock(&second.locks(), OPENING).expect("lockable"));
        drop(opening);
        drop(second.opening().expect("the first is done"));
    }
}
