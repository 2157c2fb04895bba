//! The calls that have not ended, so that they can be seen and stopped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;
use plugd_protocol::control::{ActiveCall, UnixMillis};
use plugd_protocol::{CallId, OperationId};
use tokio::sync::oneshot;

use crate::asks::Asker;

/// Every call that has not ended.
///
/// The lock is held for one operation on the map and never across an await.
#[derive(Debug, Default)]
pub(crate) struct ActiveCalls(Mutex<Table>);

/// Ids are our own: nobody can choose them so that they fall together.
type Table = HashMap<CallId, Entry, RandomState>;

/// A call of which it is not known yet what it calls.
#[derive(Debug)]
pub(crate) struct Arriving {
    calls: Arc<ActiveCalls>,
    call_id: CallId,
    begun: Begun,
    /// Tells when somebody wants it stopped; also after it was entered.
    pub(crate) cancelled: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Entry {
    /// None as long as it is not known.
    operation: Option<OperationId>,
    since: UnixMillis,
    cancel: oneshot::Sender<()>,
    /// Whom its questions go to.
    asker: Option<Asker>,
    /// How many of them are open.
    asking: u32,
    /// What it was made through.
    connection: Option<u64>,
}

/// How an arriving call can be stopped.
#[derive(Debug)]
enum Begun {
    /// By nobody yet: it came through no connection.
    Apart(oneshot::Sender<()>),
    /// It is in the table, without its operation.
    InTable,
    /// It was entered; whoever has it listed looks after that.
    Entered,
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
    pub(crate) fn arrive(
        self: &Arc<Self>,
        call_id: &CallId,
        since: UnixMillis,
        connection: Option<u64>,
    ) -> Arriving {
        let (cancel, cancelled) = oneshot::channel();
        let begun = match connection {
            Some(_) => {
                let entry = Entry { operation: None, since, cancel, asker: None, asking: 0, connection };
                self.with(|calls| calls.insert(call_id.clone(), entry));
                Begun::InTable
            }
            None => Begun::Apart(cancel),
        };
        Arriving { calls: Arc::clone(self), call_id: call_id.clone(), begun, cancelled }
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
        let asker = via.asker.map(|asker| asker.of_call(call_id, &operation));
        let (operation, connection) = (Some(operation), via.connection);
        self.with(|calls| match std::mem::replace(&mut arriving.begun, Begun::Entered) {
            Begun::Apart(cancel) => {
                let entry = Entry { operation, since, cancel, asker, asking: 0, connection };
                calls.insert(call_id.clone(), entry);
            }
            // One that was stopped just now is no longer there, and needs no other word.
            Begun::InTable | Begun::Entered => {
                if let Some(entry) = calls.get_mut(call_id) {
                    (entry.operation, entry.asker) = (operation, asker);
                }
            }
        });
        Listed { calls: Arc::clone(self), call_id: call_id.clone() }
    }

    /// Stops a call; true when it was still running.
    pub(crate) fn cancel(&self, call_id: &CallId) -> bool {
        let entry = self.with(|calls| calls.remove(call_id));
        entry.is_some_and(|entry| entry.cancel.send(()).is_ok())
    }

    /// Stops every call made through a connection; those that were still running.
    pub(crate) fn cancel_made_through(&self, connection: u64) -> Vec<CallId> {
        let made_through: Vec<CallId> = self.with(|calls| {
            let made = calls.iter().filter(|(_, entry)| entry.connection == Some(connection));
            made.map(|(call_id, _)| call_id.clone()).collect()
        });
        made_through.into_iter().filter(|call_id| self.cancel(call_id)).collect()
    }

    /// What a call is of, and whom its questions go to.
    pub(crate) fn behind(&self, call_id: &CallId) -> Option<(OperationId, Option<Asker>)> {
        self.with(|calls| {
            let entry = calls.get(call_id)?;
            Some((entry.operation.clone()?, entry.asker.clone()))
        })
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
            let active = |(call_id, entry): (&CallId, &Entry)| {
                Some(ActiveCall {
                    call_id: call_id.clone(),
                    operation: entry.operation.clone()?,
                    since: entry.since,
                    asking: entry.asking > 0,
                })
            };
            calls.iter().filter_map(active).collect()
        });
        calls.sort_by(|left, right| left.call_id.cmp(&right.call_id));
        calls
    }

    fn with<T>(&self, act: impl FnOnce(&mut Table) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if matches!(self.begun, Begun::InTable) {
            self.calls.with(|calls| calls.remove(&self.call_id));
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
