//! Word of ended children, where orphans come to this process and must be reaped by it.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::launch::Spawner;
use crate::launcher;

/// Tells when a child of this process has ended; never, where no orphans come to it.
pub(super) struct Children(Option<Signal>);

impl Children {
    pub(super) fn listen(spawner: &Spawner) -> Children {
        if !launcher::adopts_orphans() {
            return Children(None);
        }
        let listening = signal(SignalKind::child());
        if let Err(error) = &listening {
            tracing::warn!(%error, "ended orphans are reaped late");
        }
        // Some may have come before anybody listened.
        spawner.reap_orphans();
        Children(listening.ok())
    }

    /// Waits until one has ended; several may be told as one.
    ///
    /// # Cancel safety
    /// Safe: it only waits.
    pub(super) async fn ended(&mut self) {
        match &mut self.0 {
            Some(children) => drop(children.recv().await),
            None => std::future::pending().await,
        }
    }
}
