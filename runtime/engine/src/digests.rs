//! Digests of files, computed once for as long as the stamp of a file stays the same.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plugd_protocol::control::UnixMillis;
use plugd_supervisor::driver::unix_now;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Two writes within a tick of the file system's clock leave one stamp: a stamp that was taken this
/// soon after the last write proves nothing.
const SETTLED_AFTER_MS: u64 = 2_000;

/// The clock that stamps files lags behind by no more than one tick of the kernel.
const TICK_MS: u64 = 20;

/// A file that changes while it is read is read again this often.
const ATTEMPTS: usize = 3;

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    mtime: (i64, i64),
    ctime: (i64, i64),
    size: u64,
    inode: u64,
    device: u64,
}

/// A file's digest, and when the file was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digested {
    /// Its stamp then.
    pub(crate) stamp: Stamp,
    /// SHA-256 in hexadecimal.
    pub(crate) sha256: String,
    seen: UnixMillis,
}

/// The digests known so far.
#[derive(Debug, Default)]
pub(crate) struct Digests(Mutex<HashMap<PathBuf, Digested>>);

impl Stamp {
    /// The stamp of a regular file, where there is one.
    pub(crate) fn of(path: &Path) -> Option<Stamp> {
        let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Stamp {
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            ctime: (metadata.ctime(), metadata.ctime_nsec()),
            size: metadata.size(),
            inode: metadata.ino(),
            device: metadata.dev(),
        })
    }

    /// Whether the file was last changed before that moment, and surely so.
    pub(crate) fn is_older_than(self, moment: UnixMillis) -> bool {
        changed_ms(self).saturating_add(TICK_MS) < moment.0
    }
}

/// When a file was changed: only the kernel sets ctime, and whoever writes a file can set its mtime back.
fn changed_ms(stamp: Stamp) -> u64 {
    let (seconds, nanos) = stamp.ctime;
    u64::try_from(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000)).unwrap_or(0)
}

impl Digested {
    /// Whether a file with this stamp is still the file that was looked at.
    pub(crate) fn holds_for(&self, stamp: Stamp) -> bool {
        let settled = changed_ms(self.stamp).saturating_add(SETTLED_AFTER_MS) < self.seen.0;
        settled && self.stamp == stamp
    }
}

impl Digests {
    /// The digest of a regular file; reads it where it is not known.
    pub(crate) fn of(&self, path: &Path) -> Option<Digested> {
        for _ in 0..ATTEMPTS {
            let stamp = Stamp::of(path)?;
            if let Some(known) = self.known(path).filter(|known| known.holds_for(stamp)) {
                return Some(known);
            }
            let seen = unix_now();
            let sha256 = digest(path).ok()?;
            if Stamp::of(path) == Some(stamp) {
                let digested = Digested { stamp, sha256, seen };
                self.remember(path, digested.clone());
                return Some(digested);
            }
        }
        None
    }

    /// The digests of many files in hexadecimal; what cannot be read has none.
    pub(crate) async fn of_all(self: &Arc<Self>, paths: Vec<PathBuf>) -> HashMap<PathBuf, String> {
        let digests = Arc::clone(self);
        let hashed = tokio::task::spawn_blocking(move || {
            let digested = |path: PathBuf| digests.of(&path).map(|digested| (path, digested.sha256));
            paths.into_iter().filter_map(digested).collect()
        });
        hashed.await.unwrap_or_default()
    }

    /// Takes over a digest from where it was kept.
    pub(crate) fn remember(&self, path: &Path, digested: Digested) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), digested);
    }

    /// Forgets the files that are of no interest any more.
    pub(crate) fn retain(&self, keep: impl Fn(&Path) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|path, _| keep(path));
    }

    fn known(&self, path: &Path) -> Option<Digested> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(64 * 1024, File::open(path)?);
    let mut hasher = Sha256::new();
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        hasher.update(chunk);
        let read = chunk.len();
        file.consume(read);
    }
    Ok(hex(&hasher.finalize()))
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_a_file_just_written_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "one").unwrap();
        let digests = Digests::default();
        let one = digests.of(&path).unwrap();
        assert!(!one.holds_for(one.stamp), "it was written this moment");
        // The second write may well leave the stamp as it was.
        fs::write(&path, "two").unwrap();
        assert_ne!(digests.of(&path).unwrap().sha256, one.sha256);
    }

    #[test]
    fn a_file_is_read_once_for_one_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "text").unwrap();
        let digests = Digests::default();
        let stamp = Stamp::of(&path).unwrap();
        let later = UnixMillis(unix_now().0 + 60_000);
        let known = Digested { stamp, sha256: "from memory".to_owned(), seen: later };
        digests.remember(&path, known.clone());
        assert_eq!(digests.of(&path), Some(known));
        digests.retain(|_| false);
        let read = digests.of(&path).unwrap();
        assert_eq!(read.sha256, "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1");
    }

    #[test]
    fn what_is_no_regular_file_has_no_digest() {
        let digests = Digests::default();
        for path in ["/", "/dev/null", "/nowhere"] {
            assert_eq!(digests.of(Path::new(path)), None, "{path}");
        }
    }
}
