//! Who is asked: each WebSocket connection that follows `asks.subscribe`, for its own calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonrpsee::server::ConnectionId;
use plugd_engine::Asker;
use plugd_protocol::control::{AskNotice, AsksParams};
use tokio::sync::mpsc;

/// Questions that may wait for a connection to take them: more than its calls can have open.
const NOTICES_QUEUED: usize = 256;

/// The connections that follow their calls' questions. The lock is held for one operation.
#[derive(Debug, Default)]
pub(crate) struct Followers(Mutex<HashMap<ConnectionId, Way>>);

/// The way to one of them.
#[derive(Debug, Clone)]
struct Way {
    channel: mpsc::Sender<AskNotice>,
    /// Whether progress goes there, too.
    progress: bool,
}

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
        params: AsksParams,
    ) -> (Follower, mpsc::Receiver<AskNotice>) {
        let (channel, notices) = mpsc::channel(NOTICES_QUEUED);
        let way = Way { channel: channel.clone(), progress: params.progress };
        self.with(|all| all.insert(connection, way));
        (Follower { followers: Arc::clone(self), connection, channel }, notices)
    }

    /// The way to whoever makes a call on a connection, where it leads anywhere: to be asked, if it
    /// `can` be asked, and to be told of progress.
    pub(crate) fn asker(&self, connection: Option<ConnectionId>, can: bool) -> Option<Asker> {
        let connection = connection?;
        let way = self.with(|all| all.get(&connection).cloned())?;
        let asker = can.then(|| Asker::new(way.channel.clone()));
        match way.progress {
            true => Some(asker.unwrap_or_else(|| Asker::silent(way.channel.clone())).with_progress()),
            false => asker,
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<ConnectionId, Way>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.followers.with(|all| {
            if all.get(&self.connection).is_some_and(|way| way.channel.same_channel(&self.channel)) {
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
        let asker = |can| followers.asker(Some(connection), can);
        assert!(asker(true).is_none() && followers.asker(None, true).is_none());
        let (first, _notices) = followers.follow(connection, AsksParams::default());
        let (second, _notices) = followers.follow(connection, AsksParams::default());
        drop(first);
        assert!(asker(true).is_some() && asker(false).is_none());
        let (third, _notices) = followers.follow(connection, AsksParams { progress: true });
        drop(second);
        assert!(asker(true).is_some() && asker(false).is_some());
        drop(third);
        assert!(asker(true).is_none());
    }
}
