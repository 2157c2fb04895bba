//! Who is asked: each WebSocket connection that follows `asks.subscribe`, for its own calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonrpsee::server::ConnectionId;
use plugd_engine::Asker;
use plugd_protocol::control::AskNotice;
use tokio::sync::mpsc;

/// Questions that may wait for a connection to take them: more than its calls can have open.
const NOTICES_QUEUED: usize = 256;

/// The connections that follow their calls' questions. The lock is held for one operation.
#[derive(Debug, Default)]
pub(crate) struct Followers(Mutex<HashMap<ConnectionId, mpsc::Sender<AskNotice>>>);

/// One connection's place among them, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Follower {
    followers: Arc<Followers>,
    connection: ConnectionId,
    channel: mpsc::Sender<AskNotice>,
}

impl Followers {
    /// Sends the questions of a connection's calls this way from now on; the latest to ask for
    /// them has them.
    pub(crate) fn follow(
        self: &Arc<Self>,
        connection: ConnectionId,
    ) -> (Follower, mpsc::Receiver<AskNotice>) {
        let (channel, notices) = mpsc::channel(NOTICES_QUEUED);
        self.with(|all| all.insert(connection, channel.clone()));
        (Follower { followers: Arc::clone(self), connection, channel }, notices)
    }

    /// The way to whoever makes calls on a connection, where there is one.
    pub(crate) fn asker(&self, connection: Option<ConnectionId>) -> Option<Asker> {
        let connection = connection?;
        self.with(|all| all.get(&connection).cloned()).map(Asker::new)
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<ConnectionId, mpsc::Sender<AskNotice>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.followers.with(|all| {
            if all.get(&self.connection).is_some_and(|channel| channel.same_channel(&self.channel)) {
                all.remove(&self.connection);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_follower_of_a_connection_is_asked() {
        let followers = Arc::new(Followers::default());
        let connection = ConnectionId::from(7_usize);
        assert!(followers.asker(Some(connection)).is_none() && followers.asker(None).is_none());
        let (first, _notices) = followers.follow(connection);
        let (second, _notices) = followers.follow(connection);
        drop(first);
        assert!(followers.asker(Some(connection)).is_some());
        drop(second);
        assert!(followers.asker(Some(connection)).is_none());
    }
}
