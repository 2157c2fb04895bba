//! The store of an engine, or why it has none.

use std::path::Path;

use plugd_protocol::CallError;
use plugd_protocol::error::ErrorKind;
use plugd_store::{Retention, Store, StoreError};

use crate::engine::Engine;

/// The file in the state folder.
const FILE: &str = "plugd.db";

/// Why an operator's wish that nothing be recorded leaves nothing to do.
const SWITCHED_OFF: &str = "switched off with enabled = false in [record] of plugd.toml";

/// What is kept of calls, where anything can be.
pub(crate) struct Recording(Result<Store, String>);

impl Recording {
    /// Opens the store; without it calls go on, unrecorded.
    pub(crate) async fn open(state_dir: &Path, keep: Option<Retention>) -> Recording {
        let Some(keep) = keep else { return Recording(Err(SWITCHED_OFF.to_owned())) };
        let path = state_dir.join(FILE);
        let opened = tokio::task::spawn_blocking(move || Store::open(&path, keep)).await;
        let opened = match opened {
            Ok(Ok((store, _moved_aside_is_in_its_health))) => Ok(store),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = &opened {
            tracing::warn!(reason, "calls are not recorded");
        }
        Recording(opened)
    }

    /// The store, where there is one.
    pub(crate) fn store(&self) -> Option<&Store> {
        self.0.as_ref().ok()
    }

    /// Why nothing is recorded now.
    pub(crate) fn off(&self) -> Option<String> {
        match &self.0 {
            Ok(store) => {
                let health = store.health();
                (!health.recording)
                    .then(|| health.reason.unwrap_or_else(|| "the store cannot be written".to_owned()))
            }
            Err(reason) => Some(reason.clone()),
        }
    }

    /// Writes what is queued, and ends.
    pub(crate) async fn close(&self) {
        if let Some(store) = self.store() {
            store.close().await;
        }
    }
}

impl Engine {
    /// The store.
    ///
    /// # Errors
    /// 9005 with the reason, where there is none.
    pub(crate) fn store(&self) -> Result<&Store, CallError> {
        self.shared().recording.0.as_ref().map_err(|reason| not_recorded(reason))
    }
}

/// The error for what cannot be done without the store.
pub(crate) fn not_recorded(reason: &str) -> CallError {
    CallError::new(ErrorKind::NotRecorded, format!("nothing is recorded: {reason}"))
}

/// The same for a store that does not do what it is asked.
pub(crate) fn refused_by_store(error: &StoreError) -> CallError {
    CallError::new(ErrorKind::NotRecorded, format!("the record cannot be used: {error}"))
}
