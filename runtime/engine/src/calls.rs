//! The calls that have not ended, so that they can be seen and stopped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plugd_protocol::control::{ActiveCall, UnixMillis};
use plugd_protocol::{CallId, OperationId};
use tokio::sync::oneshot;

/// Every call that has not ended.
///
/// The lock is held for one operation on the map and never across an await.
#[derive(Debug, Default)]
pub(crate) struct ActiveCalls(Mutex<HashMap<CallId, Entry>>);

#[derive(Debug)]
struct Entry {
    operation: OperationId,
    since: UnixMillis,
    cancel: oneshot::Sender<()>,
}

/// Keeps a call in the table for as long as it lives.
#[derive(Debug)]
pub(crate) struct Listed {
    calls: Arc<ActiveCalls>,
    call_id: CallId,
}

impl ActiveCalls {
    /// Enters a call; the receiver tells when somebody wants it stopped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        call_id: &CallId,
        operation: OperationId,
        since: UnixMillis,
    ) -> (Listed, oneshot::Receiver<()>) {
        let (cancel, cancelled) = oneshot::channel();
        self.with(|calls| calls.insert(call_id.clone(), Entry { operation, since, cancel }));
        (Listed { calls: Arc::clone(self), call_id: call_id.clone() }, cancelled)
    }

    /// Stops a call; true when it was still running.
    pub(crate) fn cancel(&self, call_id: &CallId) -> bool {
        let entry = self.with(|calls| calls.remove(call_id));
        entry.is_some_and(|entry| entry.cancel.send(()).is_ok())
    }

    /// All of them, oldest first.
    pub(crate) fn list(&self) -> Vec<ActiveCall> {
        let mut calls: Vec<ActiveCall> = self.with(|calls| {
            let active = |(call_id, entry): (&CallId, &Entry)| ActiveCall {
                call_id: call_id.clone(),
                operation: entry.operation.clone(),
                since: entry.since,
            };
            calls.iter().map(active).collect()
        });
        calls.sort_by(|left, right| left.call_id.cmp(&right.call_id));
        calls
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<CallId, Entry>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.calls.with(|calls| calls.remove(&self.call_id));
    }
}
