//! The daemon or the engine in this process: the same answers either way.

use std::time::{Duration, Instant};

use plugd_daemon::client::Client;
use plugd_engine::config::Config;
use plugd_engine::{Engine, Opening};
use plugd_protocol::CallResult;
use plugd_protocol::control::{
    CallParams, DescribeParams, Description, GraphReport, ListParams, ListReport, LogEntry, LogsParams,
};

use crate::failure::Failure;

/// How long a plugin may take to leave after its call was cancelled.
const MOMENT: Duration = Duration::from_secs(1);

/// Where a command's work is done.
pub(crate) enum Runtime {
    /// In the daemon.
    Daemon(Client),
    /// Here.
    Embedded {
        engine: Engine,
        /// How long opening took.
        opened_in: Duration,
    },
}

impl Runtime {
    /// Opens an engine in this process.
    pub(crate) async fn embedded(config: Config, opening: Opening) -> Result<Runtime, Failure> {
        // Whatever our caller left open must not reach the plugins.
        close_fds::set_fds_cloexec(3, &[]);
        let began = Instant::now();
        let engine = Engine::open(config, opening).await?;
        Ok(Runtime::Embedded { engine, opened_in: began.elapsed() })
    }

    pub(crate) async fn call(&self, params: CallParams) -> Result<CallResult, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.call(&params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.call(params).await),
        }
    }

    pub(crate) async fn list(&self, params: &ListParams) -> Result<ListReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.list(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.list(params).await),
        }
    }

    pub(crate) async fn describe(&self, params: &DescribeParams) -> Result<Description, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.describe(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.describe(params).await?),
        }
    }

    pub(crate) async fn graph(&self) -> Result<GraphReport, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.graph().await?),
            Runtime::Embedded { engine, .. } => Ok(engine.graph().await),
        }
    }

    pub(crate) async fn logs(&self, params: &LogsParams) -> Result<Vec<LogEntry>, Failure> {
        match self {
            Runtime::Daemon(client) => Ok(client.logs(params).await?),
            Runtime::Embedded { engine, .. } => Ok(engine.logs(params).await),
        }
    }

    /// Ends what was begun here soon, when nobody waits for a call of it any more.
    ///
    /// A plugin has a moment to see that the call is cancelled, and is then ended.
    pub(crate) async fn finish_soon(self) {
        let Runtime::Embedded { engine, .. } = self else { return };
        let first = engine.shutdown();
        tokio::pin!(first);
        if tokio::time::timeout(MOMENT, &mut first).await.is_err() {
            tokio::join!(first, engine.shutdown());
        }
    }

    /// Ends what was begun here: an embedded engine's plugins stop, a connection closes.
    ///
    /// A signal meanwhile skips the graces.
    pub(crate) async fn finish(self) {
        let Runtime::Embedded { engine, .. } = self else { return };
        let first = engine.shutdown();
        tokio::pin!(first);
        let interrupted = tokio::select! {
            _ = &mut first => return,
            interrupted = interrupted() => interrupted,
        };
        if interrupted {
            tokio::join!(first, engine.shutdown());
        } else {
            first.await;
        }
    }
}

/// Resolves at SIGINT or SIGTERM; false if they cannot be caught.
pub(crate) async fn interrupted() -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return false;
    };
    tokio::select! {
        _ = interrupt.recv() => true,
        _ = terminate.recv() => true,
    }
}
