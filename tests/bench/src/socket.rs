//! One connected client as a contender.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_bench::daemon::Daemon;
use plugd_bench::host::{check, echo_call};
use plugd_daemon::client::Client;
use plugd_protocol::control::CallParams;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::contender::{Case, Contender, Figures, SOCKET, TripTimes};

/// A client that stays connected.
pub(crate) struct Socket {
    client: Arc<Client>,
    runtime: Runtime,
    _daemon: Rc<Daemon>,
}

impl Socket {
    pub(crate) fn connect(daemon: Rc<Daemon>) -> io::Result<Socket> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(Client::connect(&daemon.socket())).map_err(io::Error::other)?;
        Ok(Socket { client: Arc::new(client), runtime, _daemon: daemon })
    }
}

impl Contender for Socket {
    fn name(&self) -> &'static str {
        SOCKET
    }

    fn measure(&mut self, case: Case, slice: Duration) -> io::Result<Figures> {
        let call = Arc::new(echo_call("echo", case.payload));
        self.runtime.block_on(async {
            let mut all = TripTimes::begin(slice);
            if case.in_flight == 1 {
                return Ok(trips(Arc::clone(&self.client), call, slice).await?.figures());
            }
            let mut callers = JoinSet::new();
            for _ in 0..case.in_flight {
                callers.spawn(trips(Arc::clone(&self.client), Arc::clone(&call), slice));
            }
            while let Some(ended) = callers.join_next().await {
                all.join(ended.map_err(io::Error::other)??);
            }
            Ok(all.figures())
        })
    }
}

/// Calls one after another until the slice is over.
async fn trips(client: Arc<Client>, call: Arc<CallParams>, slice: Duration) -> io::Result<TripTimes> {
    let mut trips = TripTimes::begin(slice);
    while !trips.over() {
        let sent = Instant::now();
        let result = client.call(&call).await.map_err(io::Error::other)?;
        trips.add(sent.elapsed());
        check(&call, &result)?;
    }
    Ok(trips)
}
