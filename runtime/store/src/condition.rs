//! Whether calls are recorded at present, and if not, why.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::aside::MovedAside;

/// How the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether the latest that was to be written has been.
    pub recording: bool,
    /// Why not.
    pub reason: Option<String>,
    /// How many calls have no row since it was opened.
    pub dropped: u64,
    /// A damaged file that was moved aside since it was opened: the latest.
    pub moved_aside: Option<MovedAside>,
    /// A damaged file that was moved aside before that, as long as it is there: the latest.
    pub set_aside_before: Option<PathBuf>,
    /// What befell the file since it was opened, such as "was moved or deleted", so that a new one
    /// was begun.
    pub begun_anew: Option<String>,
}

/// The health, shared by whoever writes and whoever asks.
#[derive(Debug)]
pub(crate) struct Condition {
    health: Mutex<Health>,
    /// The same as in there, to be read without the lock.
    recording: AtomicBool,
    /// Batches that were dealt with, whatever came of them.
    batches: AtomicU64,
}

impl Condition {
    pub(crate) fn good(moved_aside: Option<MovedAside>, set_aside_before: Option<PathBuf>) -> Condition {
        let health = Health {
            recording: true,
            reason: None,
            dropped: 0,
            moved_aside,
            set_aside_before,
            begun_anew: None,
        };
        Condition { health: Mutex::new(health), recording: AtomicBool::new(true), batches: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn health(&self) -> Health {
        self.lock().clone()
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    /// Grows while the disk goes on.
    pub(crate) fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    pub(crate) fn batch_done(&self) {
        self.batches.fetch_add(1, Ordering::Relaxed);
    }

    /// So many calls have no row.
    pub(crate) fn dropped(&self, count: u64) {
        self.lock().dropped += count;
    }

    /// Something was written. Said once, where it could not be before.
    pub(crate) fn written(&self) {
        if self.is_recording() {
            return;
        }
        let mut health = self.lock();
        health.recording = true;
        health.reason = None;
        let dropped = health.dropped;
        drop(health);
        self.recording.store(true, Ordering::Relaxed);
        tracing::warn!(dropped, "calls are recorded again");
    }

    /// It could not be written. Said once, until it can be again.
    pub(crate) fn failed(&self, reason: &str) {
        let mut health = self.lock();
        let first = health.recording;
        health.recording = false;
        health.reason = Some(reason.to_owned());
        drop(health);
        self.recording.store(false, Ordering::Relaxed);
        if first {
            tracing::warn!(reason, "calls are not recorded");
        }
    }

    /// The file was lost, and a new one begun.
    pub(crate) fn begun_anew(&self, why: &str) {
        self.lock().begun_anew = Some(why.to_owned());
    }

    /// A damaged file was moved aside.
    pub(crate) fn moved(&self, aside: MovedAside) {
        self.lock().moved_aside = Some(aside);
    }
}
