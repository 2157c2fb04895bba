//! The store of an engine, or why it has none.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, Outcome};
use plugd_store::{Retention, Store, StoreError};
use tokio::time::{sleep, timeout, timeout_at};

use crate::engine::Engine;

/// The file in the state folder.
const FILE: &str = "plugd.db";

/// Why an operator's wish that nothing be recorded leaves nothing to do.
const SWITCHED_OFF: &str = "switched off with enabled = false in [record] of plugd.toml";

/// Why there is no store where it was not waited for.
const NOT_OPEN_YET: &str = "it is not open yet: the disk is slow, or another process holds it";

/// How often it is tried again to open a store that could not be.
const TRIED_EVERY: Duration = Duration::from_secs(3);

/// What is over waits so much longer for its end to be written down: a disk that works has done it by
/// then, and nobody notices.
const WRITTEN_WITHIN: Duration = Duration::from_millis(200);

/// What is kept of calls, where anything can be.
pub(crate) struct Recording(Arc<Slot>);

/// The store's place: it may be filled later than at the start.
struct Slot {
    store: OnceLock<Store>,
    /// Why it is empty.
    reason: Mutex<String>,
}

impl Slot {
    fn empty(reason: String) -> Slot {
        Slot { store: OnceLock::new(), reason: Mutex::new(reason) }
    }

    /// Says why there is no store; in the log, too, where it was not said before.
    fn failed(&self, reason: String) {
        let mut known = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != reason {
            tracing::warn!(reason, "calls are not recorded");
            *known = reason;
        }
    }

    /// Tries to open the store; it blocks. Whether that is over.
    fn fill(&self, path: &Path, keep: Retention) -> bool {
        match Store::open(path, keep) {
            // That one was moved aside is in its health.
            Ok((store, _moved_aside)) => self.store.set(store).is_ok(),
            Err(error) => {
                self.failed(error.to_string());
                false
            }
        }
    }
}

impl Recording {
    /// Opens the store, which is waited for as long as that; without it calls go on, unrecorded, and it
    /// is tried again.
    pub(crate) async fn open(
        state_dir: &Path,
        keep: Option<Retention>,
        within: Option<Duration>,
    ) -> Recording {
        let Some(keep) = keep else { return Recording(Arc::new(Slot::empty(SWITCHED_OFF.to_owned()))) };
        let path = state_dir.join(FILE);
        let slot = Arc::new(Slot::empty(String::new()));
        let (filling, weak) = (Arc::clone(&slot), Arc::downgrade(&slot));
        let filled = tokio::spawn(async move {
            if !try_to_fill(&filling, &path, keep).await {
                drop(filling);
                tokio::spawn(fill_later(weak, path, keep));
            }
        });
        if timeout(within.unwrap_or(Duration::MAX), filled).await.is_err() {
            slot.failed(NOT_OPEN_YET.to_owned());
        }
        Recording(slot)
    }

    /// The store, where there is one.
    pub(crate) fn store(&self) -> Option<&Store> {
        self.0.store.get()
    }

    /// Why nothing is recorded now.
    pub(crate) fn off(&self) -> Option<String> {
        match self.store() {
            Some(store) => {
                let health = store.health();
                (!health.recording)
                    .then(|| health.reason.unwrap_or_else(|| "the store cannot be written".to_owned()))
            }
            None => Some(self.reason()),
        }
    }

    fn reason(&self) -> String {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what is queued, and ends.
    pub(crate) async fn close(&self) {
        if let Some(store) = self.store() {
            store.close().await;
        }
    }
}

/// Whether there is a store now.
async fn try_to_fill(slot: &Arc<Slot>, path: &Path, keep: Retention) -> bool {
    let (filled, path) = (Arc::clone(slot), path.to_owned());
    let opened = tokio::task::spawn_blocking(move || filled.fill(&path, keep)).await;
    opened.unwrap_or_else(|error| {
        slot.failed(error.to_string());
        false
    })
}

/// Tries until there is a store, or nobody who wants it: a disk that was full has room again, a
/// folder can be written to.
async fn fill_later(slot: Weak<Slot>, path: PathBuf, keep: Retention) {
    loop {
        sleep(TRIED_EVERY).await;
        let Some(slot) = slot.upgrade() else { return };
        if try_to_fill(&slot, &path, keep).await {
            tracing::warn!(path = %path.display(), "calls are recorded now");
            return;
        }
    }
}

impl Engine {
    /// What a person is to know of that has come up here, for a process that shows no log; ask before its end.
    ///
    /// That the record was lost, and what plugins claim otherwise than before.
    pub fn remarks(&self) -> Vec<String> {
        let health = self.shared().recording.store().map(Store::health);
        let why = health.and_then(|health| {
            let aside = health.moved_aside.map(|aside| set_aside(&aside.to));
            aside.or(health.begun_anew)
        });
        let lost = why.map(|why| {
            format!("the record of calls {why}; a new one was begun: keys and tokens of before are unknown now, and a call that was made with a key may run again; see `plugd doctor`")
        });
        lost.into_iter().chain(self.shared().claims_to_say()).collect()
    }

    /// The store.
    ///
    /// # Errors
    /// 9005 with the reason, where there is none.
    pub(crate) fn store(&self) -> Result<&Store, CallError> {
        let recording = &self.shared().recording;
        recording.store().ok_or_else(|| not_recorded(&recording.reason()))
    }
}

/// What became of a damaged record, as a sentence goes on; what SQLite says of it is in the log.
pub(crate) fn set_aside(to: &Path) -> String {
    format!("was damaged and has been moved to {}", to.display())
}

/// What the store does, where it is done by then; [`StoreError::Late`] otherwise.
pub(crate) async fn stored_by<T>(
    until: Option<Instant>,
    stored: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match until {
        Some(until) => timeout_at(until.into(), stored).await.unwrap_or(Err(StoreError::Late)),
        None => stored.await,
    }
}

/// The end of a wait that was to end then, for what is to be written down after it.
pub(crate) fn a_moment_more(ends: Instant) -> Instant {
    ends.max(Instant::now() + WRITTEN_WITHIN)
}

/// The error for what cannot be done without the store.
pub(crate) fn not_recorded(reason: &str) -> CallError {
    CallError::new(ErrorKind::NotRecorded, format!("nothing is recorded: {reason}"))
}

/// The same for a store that does not do what it is asked.
pub(crate) fn refused_by_store(error: &StoreError) -> CallError {
    if matches!(error, StoreError::Late) {
        let message = "the time of the call was over before the record was written: it was not run";
        return CallError::new(ErrorKind::TimedOut, message)
            .outcome(Outcome::NotRun)
            .hint("the disk is slow, or another process holds the record: try again with more time");
    }
    CallError::new(ErrorKind::NotRecorded, format!("the record cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_that_could_not_be_opened_is_tried_again() {
        let folder = tempfile::tempdir().expect("a folder");
        // What nobody can open as a file stands for a disk that takes nothing.
        std::fs::create_dir(folder.path().join(FILE)).expect("made");
        let recording = Recording::open(folder.path(), Some(Retention::default()), None).await;
        assert!(recording.store().is_none());
        assert!(recording.off().is_some_and(|reason| reason.contains(FILE)), "{:?}", recording.off());
        std::fs::remove_dir(folder.path().join(FILE)).expect("removed");
        while recording.store().is_none() {
            sleep(TRIED_EVERY / 10).await;
        }
        assert_eq!(recording.off(), None);
        recording.close().await;
    }

    #[tokio::test]
    async fn a_record_that_is_switched_off_is_not_tried() {
        let folder = tempfile::tempdir().expect("a folder");
        let recording = Recording::open(folder.path(), None, None).await;
        assert_eq!(recording.off().as_deref(), Some(SWITCHED_OFF));
        assert!(!folder.path().join(FILE).exists());
    }
}
