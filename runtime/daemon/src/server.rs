//! The daemon at work: connections accepted, signals obeyed, an orderly end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jsonrpsee::server::{
    BatchRequestConfig, Methods, Server, ServerConfig, ServerHandle, StopHandle,
    serve_with_graceful_shutdown, stop_channel,
};
use plugd_engine::Engine;
use plugd_protocol::control::{ReloadParams, StopReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use crate::methods::{self, Daemon};
use crate::signals::{Asked, Signals};
use crate::socket::ControlSocket;

/// Connections at once: far above any use, far below what would starve the plugins' pipes.
const CONNECTIONS_MAX: u32 = 1_000;

/// Subscriptions on one connection: events and logs for each of a few dozen plugins.
const SUBSCRIPTIONS_PER_CONNECTION_MAX: u32 = 64;

/// Messages waiting to be written on one connection before a subscriber misses some.
const CONNECTION_BUFFER: u32 = 1_024;

/// Requests in one batch; each runs on its own, so this only bounds memory.
const BATCH_MAX: u32 = 256;

/// How long to leave the listener alone when the process is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long the last answers may take to leave once every plugin is down.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Said, unread by any protocol, to a connection too many.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    connection: close\r\ncontent-length: 50\r\n\r\nthe daemon holds all the connections it may hold.\n";

/// What bounds the control socket.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The largest frame, in bytes; bodies may be larger by [`crate::BODY_SLACK`].
    pub frame: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { frame: plugd_protocol::frame::DEFAULT_FRAME_LIMIT }
    }
}

/// Said once the daemon answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// The program's version.
    pub version: String,
    /// The daemon's process.
    pub pid: u32,
    /// The control socket.
    pub socket: String,
    /// The config file in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// How many plugins it knows.
    pub plugins: usize,
    /// Whether it was there before, and nothing was started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already_running: bool,
}

/// Why a daemon could not serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listening socket cannot be used.
    #[error("cannot accept on the control socket: {0}")]
    Accept(#[from] std::io::Error),
}

/// Serves an engine until a signal or the method `shutdown` ends it, then stops every plugin.
///
/// `ready` runs once, when the first request can be answered. SIGHUP applies the configuration, and so
/// does a change of its files where `[daemon] watch` is set; a second request to stop skips the graces. The socket goes away after the plugins, and only then
/// is whoever asked for the shutdown answered.
///
/// # Errors
/// [`ServeError`] when serving could not begin; the engine is shut down then, too.
pub async fn serve(
    engine: Engine,
    socket: ControlSocket,
    limits: Limits,
    signals: Signals,
    ready: impl FnOnce(&Ready),
) -> Result<StopReport, ServeError> {
    let listener = match socket.listener().and_then(UnixListener::from_std) {
        Ok(listener) => listener,
        Err(error) => {
            engine.shutdown().await;
            return Err(error.into());
        }
    };
    let (wishes, wished) = watch::channel(0);
    let (reports, reported) = watch::channel(None);
    let path = socket.path().display().to_string();
    let daemon = Daemon {
        engine: engine.clone(),
        asks: Arc::default(),
        socket: path.clone(),
        stop_wishes: wishes,
        stopped: reported,
    };
    let front = Front::new(methods::all(daemon), limits);

    engine.watch();
    engine.watch_overlaps();
    // Plugins may still be being described: nobody who calls another one waits for that.
    let config = engine.config();
    ready(&Ready {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        socket: path,
        config: config.file.as_ref().map(|file| file.display().to_string()),
        plugins: config.plugins.len(),
        already_running: false,
    });

    let report = front.accept_until(&listener, ended(engine, signals, wished)).await;
    // Whoever asked for the shutdown is answered when the socket is free for the next daemon.
    drop((listener, socket));
    reports.send_replace(Some(report.clone()));
    front.close().await;
    Ok(report)
}

/// Resolves when a stop was asked for and every plugin is down.
async fn ended(engine: Engine, mut signals: Signals, mut wished: watch::Receiver<u32>) -> StopReport {
    let (done, mut report) = oneshot::channel();
    let mut done = Some(done);
    loop {
        let asked = tokio::select! {
            asked = signals.next() => asked,
            Ok(()) = wished.changed() => Asked::Stop,
            Ok(report) = &mut report => return report,
        };
        let engine = engine.clone();
        match (asked, done.take()) {
            (Asked::Reload, kept) => {
                done = kept;
                tokio::spawn(reload(engine));
            }
            (Asked::Stop, Some(done)) => {
                tracing::info!("stopping every plugin");
                tokio::spawn(async move { done.send(engine.shutdown().await) });
            }
            (Asked::Stop, None) => {
                tracing::info!("asked again to stop: graces skipped");
                tokio::spawn(async move { engine.shutdown().await });
            }
        }
    }
}

async fn reload(engine: Engine) {
    match engine.reload(&ReloadParams::default()).await {
        Ok(report) => tracing::info!(generation = report.config_generation, "configuration applied"),
        Err(error) => tracing::error!("configuration not applied: {}", error.message),
    }
}

/// Everything it takes to answer a connection.
struct Front {
    config: ServerConfig,
    /// Tells connections apart; a subscription belongs to one of them.
    next_connection: AtomicU32,
    methods: Methods,
    stop: StopHandle,
    stopper: ServerHandle,
    room: Arc<Semaphore>,
    connections_max: u32,
}

impl Front {
    fn new(methods: Methods, limits: Limits) -> Front {
        let body = crate::body_limit(limits.frame);
        let connections_max = connections_max();
        let config = ServerConfig::builder()
            .max_request_body_size(body)
            .max_response_body_size(body)
            .max_connections(connections_max)
            .max_subscriptions_per_connection(SUBSCRIPTIONS_PER_CONNECTION_MAX)
            .set_message_buffer_capacity(CONNECTION_BUFFER)
            .set_batch_request_config(BatchRequestConfig::Limit(BATCH_MAX))
            .build();
        let (stop, stopper) = stop_channel();
        Front {
            config,
            next_connection: AtomicU32::new(0),
            methods,
            stop,
            stopper,
            room: Arc::new(Semaphore::new(connections_max as usize)),
            connections_max,
        }
    }

    /// Accepts connections until `end` resolves.
    async fn accept_until<T>(&self, listener: &UnixListener, end: impl Future<Output = T>) -> T {
        tokio::pin!(end);
        loop {
            let accepted = tokio::select! {
                output = &mut end => return output,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.admit(stream),
                Err(error) => {
                    tracing::warn!("cannot accept a connection, trying again: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Answers a connection in a task of its own, if it is ours and there is room.
    fn admit(&self, stream: UnixStream) {
        let us = rustix::process::geteuid().as_raw();
        match stream.peer_cred() {
            Ok(peer) if peer.uid() == us || peer.uid() == 0 => {}
            Ok(peer) => return tracing::warn!(uid = peer.uid(), "a connection by another user was closed"),
            Err(error) => return tracing::warn!("a connection by nobody knows whom was closed: {error}"),
        }
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            tracing::warn!("a connection was refused: {} are open", self.connections_max);
            let _ = stream.try_write(TOO_MANY);
            return;
        };
        tokio::spawn(self.connection(stream, place));
    }

    /// One connection, from its first request until it and its WebSocket are closed.
    fn connection(
        &self,
        stream: UnixStream,
        place: OwnedSemaphorePermit,
    ) -> impl Future<Output = ()> + use<> {
        let mut service = Server::builder()
            .set_config(self.config.clone())
            .to_service_builder()
            .connection_id(self.next_connection.fetch_add(1, Ordering::Relaxed))
            .build(self.methods.clone(), self.stop.clone());
        let web_socket_closed = service.on_session_closed();
        let stopped = self.stop.clone().shutdown();
        async move {
            if let Err(error) = serve_with_graceful_shutdown(stream, service, stopped).await {
                tracing::debug!("a connection ended: {error}");
            }
            // The HTTP side ends at the upgrade; the place is free when the WebSocket is gone, too.
            web_socket_closed.await;
            drop(place);
        }
    }

    /// Lets answers in flight leave, then closes every connection.
    async fn close(self) {
        let _ = self.stopper.stop();
        let all = self.room.acquire_many(self.connections_max);
        if tokio::time::timeout(FLUSH_TIMEOUT, all).await.is_err() {
            tracing::warn!("a client did not take its last answer; leaving without it");
        }
    }
}

/// How many connections to allow: never more than half of the descriptors this process may have.
fn connections_max() -> u32 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let half = limit.current.map_or(u64::from(CONNECTIONS_MAX), |descriptors| descriptors / 2);
    u32::try_from(half).unwrap_or(CONNECTIONS_MAX).clamp(1, CONNECTIONS_MAX)
}
