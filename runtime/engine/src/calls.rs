//! The calls that have not ended, so that they can be seen and stopped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use plugd_protocol::control::{ActiveCall, UnixMillis};
use plugd_protocol::{CallId, OperationId};
use tokio::sync::oneshot;

use crate::asks::Asker;

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
    /// Whom its questions go to.
    asker: Option<Asker>,
    /// How many of them are open.
    asking: u32,
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
        asker: Option<Asker>,
    ) -> (Listed, oneshot::Receiver<()>) {
        let (cancel, cancelled) = oneshot::channel();
        let asker = asker.map(|asker| asker.of_call(call_id, &operation));
        let entry = Entry { operation, since, cancel, asker, asking: 0 };
        self.with(|calls| calls.insert(call_id.clone(), entry));
        (Listed { calls: Arc::clone(self), call_id: call_id.clone() }, cancelled)
    }

    /// Stops a call; true when it was still running.
    pub(crate) fn cancel(&self, call_id: &CallId) -> bool {
        let entry = self.with(|calls| calls.remove(call_id));
        entry.is_some_and(|entry| entry.cancel.send(()).is_ok())
    }

    /// What a call is of, and whom its questions go to.
    pub(crate) fn behind(&self, call_id: &CallId) -> Option<(OperationId, Option<Asker>)> {
        self.with(|calls| calls.get(call_id).map(|entry| (entry.operation.clone(), entry.asker.clone())))
    }

    /// Takes note that a call asks a person one thing more, or less.
    pub(crate) fn set_asking(&self, call_id: &CallId, more: bool) {
        self.with(|calls| {
            if let Some(entry) = calls.get_mut(call_id) {
                entry.asking = if more { entry.asking + 1 } else { entry.asking.saturating_sub(1) };
            }
        });
    }

    /// All of them, oldest first.
    pub(crate) fn list(&self) -> Vec<ActiveCall> {
        let mut calls: Vec<ActiveCall> = self.with(|calls| {
            let active = |(call_id, entry): (&CallId, &Entry)| ActiveCall {
                call_id: call_id.clone(),
                operation: entry.operation.clone(),
                since: entry.since,
                asking: entry.asking > 0,
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
