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
pub(crate) struct ActiveCalls {
    known: Mutex<HashMap<CallId, Entry>>,
    /// Those of which it is not known yet what they call, and how to stop them.
    arriving: Mutex<HashMap<CallId, (u64, oneshot::Sender<()>)>>,
}

/// A call of which it is not known yet what it calls; it can be stopped by its connection alone.
#[derive(Debug)]
pub(crate) struct Arriving {
    calls: Arc<ActiveCalls>,
    call_id: CallId,
    /// How to stop a call that came through no connection.
    unlisted: Option<oneshot::Sender<()>>,
    /// Tells when somebody wants it stopped; also after it was entered.
    pub(crate) cancelled: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Entry {
    operation: OperationId,
    since: UnixMillis,
    cancel: oneshot::Sender<()>,
    /// Whom its questions go to.
    asker: Option<Asker>,
    /// How many of them are open.
    asking: u32,
    /// What it was made through.
    connection: Option<u64>,
}

/// What a call is made through, as far as it matters while the call runs.
#[derive(Debug, Clone, Default)]
pub struct Via {
    /// Whom its questions go to; without one it stops where it needs a person.
    pub asker: Option<Asker>,
    /// What [`Engine::cancel_made_through`](crate::Engine::cancel_made_through) knows it by.
    pub connection: Option<u64>,
}

/// Keeps a call in the table for as long as it lives.
#[derive(Debug)]
pub(crate) struct Listed {
    calls: Arc<ActiveCalls>,
    call_id: CallId,
}

impl ActiveCalls {
    /// Takes note of a call that has come through a connection.
    pub(crate) fn arrive(self: &Arc<Self>, call_id: &CallId, connection: Option<u64>) -> Arriving {
        let (cancel, cancelled) = oneshot::channel();
        let unlisted = match connection {
            Some(connection) => {
                self.with_arriving(|calls| calls.insert(call_id.clone(), (connection, cancel)));
                None
            }
            None => Some(cancel),
        };
        Arriving { calls: Arc::clone(self), call_id: call_id.clone(), unlisted, cancelled }
    }

    /// Enters a call that had arrived.
    pub(crate) fn enter(
        self: &Arc<Self>,
        arriving: &mut Arriving,
        operation: OperationId,
        since: UnixMillis,
        via: Via,
    ) -> Listed {
        let call_id = &arriving.call_id;
        let listed = self.with_arriving(|calls| calls.remove(call_id)).map(|(_, cancel)| cancel);
        // One that was stopped just now has that word waiting, and needs no other.
        let cancel = listed.or_else(|| arriving.unlisted.take()).unwrap_or_else(|| oneshot::channel().0);
        let asker = via.asker.map(|asker| asker.of_call(call_id, &operation));
        let entry = Entry { operation, since, cancel, asker, asking: 0, connection: via.connection };
        self.with(|calls| calls.insert(call_id.clone(), entry));
        Listed { calls: Arc::clone(self), call_id: call_id.clone() }
    }

    /// Stops a call; true when it was still running.
    pub(crate) fn cancel(&self, call_id: &CallId) -> bool {
        let entry = self.with(|calls| calls.remove(call_id));
        entry.is_some_and(|entry| entry.cancel.send(()).is_ok())
    }

    /// Stops every call made through a connection; those that were still running.
    pub(crate) fn cancel_made_through(&self, connection: u64) -> Vec<CallId> {
        // These first: one that is entered meanwhile is found after.
        let arriving: Vec<_> =
            self.with_arriving(|calls| calls.extract_if(|_, (through, _)| *through == connection).collect());
        let made_through = self.with(|calls| {
            let made = calls.iter().filter(|(_, entry)| entry.connection == Some(connection));
            made.map(|(call_id, _)| call_id.clone()).collect::<Vec<_>>()
        });
        let mut stopped: Vec<CallId> = arriving
            .into_iter()
            .filter_map(|(call_id, (_, cancel))| cancel.send(()).is_ok().then_some(call_id))
            .collect();
        stopped.extend(made_through.into_iter().filter(|call_id| self.cancel(call_id)));
        stopped
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
        act(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_arriving<T>(&self, act: impl FnOnce(&mut HashMap<CallId, (u64, oneshot::Sender<()>)>) -> T) -> T {
        act(&mut self.arriving.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if self.unlisted.is_none() {
            self.calls.with_arriving(|calls| calls.remove(&self.call_id));
        }
    }
}

impl Listed {
    /// Takes note that the call goes on without whatever it was made through.
    pub(crate) fn let_go(&self) {
        self.calls.with(|calls| {
            if let Some(entry) = calls.get_mut(&self.call_id) {
                entry.connection = None;
            }
        });
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.calls.with(|calls| calls.remove(&self.call_id));
    }
}
