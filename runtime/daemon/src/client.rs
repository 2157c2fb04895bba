//! A client of the daemon: typed methods over one WebSocket on its Unix socket.

mod calls;
mod tools;

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jsonrpsee::client_transport::ws::{Url, WsTransportClientBuilder};
use jsonrpsee::core::client::async_client::Client as RpcClient;
use jsonrpsee::core::client::{ClientBuilder, ClientT, Error, Subscription, SubscriptionClientT};
use jsonrpsee::core::middleware::RpcServiceBuilder;
use jsonrpsee::core::traits::ToRpcParams;
use plugd_protocol::control::{
    AddParams, AddReport, ChangeReport, DescribeParams, Description, DoctorReport, Event, EventsParams,
    GraphReport, ListParams, ListReport, LogEntry, LogsParams, PluginsParams, ReloadParams, ReloadReport,
    StartReport, StatusParams, StatusReport, StopReport, method,
};
use plugd_protocol::{CallError, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::Limits;
use crate::methods::COMMAND_FAILED;

/// Longer than any call may take, an hour, and a person to answer its questions, by default a day:
/// the daemon, not this client, says when time is up.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3_600);

/// Connecting takes no longer than this, where nothing else is said.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Events that may wait here for a consumer that is slower than the socket.
const SUBSCRIPTION_BUFFER: usize = 4_096;

/// A connection to the daemon; dropping it cancels the calls made through it.
#[derive(Debug)]
pub struct Client {
    rpc: RpcClient<jsonrpsee::core::client::async_client::RpcService>,
    body_limit: usize,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens there.
    #[error("no daemon is running on {socket}", socket = socket.display())]
    NotRunning {
        /// The socket.
        socket: PathBuf,
    },
    /// The socket is there and may not be used.
    #[error("the daemon's socket {socket} cannot be used: {source}", socket = socket.display())]
    Io {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something listens there that does not answer as a daemon does.
    #[error("what listens on {socket} does not answer as plugd does: {reason}", socket = socket.display())]
    Refused {
        /// The socket.
        socket: PathBuf,
        /// How it answered.
        reason: String,
    },
    /// Something listens there and does not answer.
    #[error("the daemon on {socket} did not answer within {} s", waited.as_secs_f64(), socket = socket.display())]
    Silent {
        /// The socket.
        socket: PathBuf,
        /// How long it was given.
        waited: Duration,
    },
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon could not carry it out.
    #[error("{}", .0.message)]
    Command(Box<CallError>),
    /// The daemon did not take the request as it is.
    #[error("the daemon refused the request: {message} ({code})")]
    Malformed {
        /// JSON-RPC's code.
        code: i32,
        /// What it said.
        message: String,
    },
    /// The connection broke before the answer, or was given up because the daemon hangs.
    #[error("the connection to the daemon was lost: {0}")]
    Lost(String),
}

/// What a subscription brings, item by item.
#[derive(Debug)]
pub struct Following<T> {
    subscription: Subscription<Box<RawValue>>,
    item: PhantomData<T>,
}

struct JsonParams(Box<RawValue>);

impl ToRpcParams for JsonParams {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(Some(self.0))
    }
}

impl Client {
    /// Connects to the daemon on a socket, with the default limits.
    ///
    /// # Errors
    /// [`ConnectError`], which tells a daemon that is not running from one that cannot be used.
    pub async fn connect(socket: &Path) -> Result<Client, ConnectError> {
        Client::connect_with(socket, Limits::default()).await
    }

    /// Connects to the daemon on a socket that was given these limits.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_with(socket: &Path, limits: Limits) -> Result<Client, ConnectError> {
        Client::connect_within(CONNECT_TIMEOUT, socket, limits).await
    }

    /// Connects as [`Client::connect_with`] does, and gives up after that time.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_within(
        time: Duration,
        socket: &Path,
        limits: Limits,
    ) -> Result<Client, ConnectError> {
        let silent = |_late| ConnectError::Silent { socket: socket.to_owned(), waited: time };
        timeout(time, Client::begin(socket, limits)).await.map_err(silent)?
    }

    async fn begin(socket: &Path, limits: Limits) -> Result<Client, ConnectError> {
        let stream = UnixStream::connect(socket).await.map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                ConnectError::NotRunning { socket: socket.to_owned() }
            }
            _ => ConnectError::Io { socket: socket.to_owned(), source },
        })?;
        let body_limit = crate::body_limit(limits.frame);
        let refused = |reason: String| ConnectError::Refused { socket: socket.to_owned(), reason };
        let url = Url::parse("ws://localhost/").map_err(|error| refused(error.to_string()))?;
        let (sender, receiver) = WsTransportClientBuilder::default()
            .max_request_size(body_limit)
            .max_response_size(body_limit)
            // Whoever connects says how long that may take.
            .connection_timeout(REQUEST_TIMEOUT)
            .build_with_stream(url, stream)
            .await
            .map_err(|error| refused(error.to_string()))?;
        let rpc = ClientBuilder::new()
            .request_timeout(REQUEST_TIMEOUT)
            .max_buffer_capacity_per_subscription(SUBSCRIPTION_BUFFER)
            .set_rpc_middleware(RpcServiceBuilder::new())
            .build_with_tokio(sender, receiver);
        Ok(Client { rpc, body_limit: body_limit as usize })
    }

    /// How everything is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn status(&self, params: &StatusParams) -> Result<StatusReport, ClientError> {
        self.request(method::STATUS, params).await
    }

    /// What is wrong, why, and what to do about it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn doctor(&self, params: &StatusParams) -> Result<DoctorReport, ClientError> {
        self.request(method::DOCTOR, params).await
    }

    /// What there is.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list(&self, params: &ListParams) -> Result<ListReport, ClientError> {
        self.request(method::LIST, params).await
    }

    /// One plugin or operation in full.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn describe(&self, params: &DescribeParams) -> Result<Description, ClientError> {
        self.request(method::DESCRIBE, params).await
    }

    /// Starts plugins and waits until they are up.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn start(&self, params: &PluginsParams) -> Result<StartReport, ClientError> {
        self.request(method::START, params).await
    }

    /// Stops plugins and keeps them stopped.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn stop(&self, params: &PluginsParams) -> Result<StopReport, ClientError> {
        self.request(method::STOP, params).await
    }

    /// Stops and starts plugins.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn restart(&self, params: &PluginsParams) -> Result<StartReport, ClientError> {
        self.request(method::RESTART, params).await
    }

    /// Applies the configuration, or takes up one plugin anew.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn reload(&self, params: &ReloadParams) -> Result<ReloadReport, ClientError> {
        self.request(method::RELOAD, params).await
    }

    /// Adds a plugin and waits until it is described, or cannot be.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn add(&self, params: &AddParams) -> Result<AddReport, ClientError> {
        self.request(method::ADD, params).await
    }

    /// Removes plugins.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove(&self, params: &PluginsParams) -> Result<ChangeReport, ClientError> {
        self.request(method::REMOVE, params).await
    }

    /// Lets plugins be used.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn enable(&self, params: &PluginsParams) -> Result<ChangeReport, ClientError> {
        self.request(method::ENABLE, params).await
    }

    /// Lets plugins no longer be used.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn disable(&self, params: &PluginsParams) -> Result<ChangeReport, ClientError> {
        self.request(method::DISABLE, params).await
    }

    /// Stops everything and the daemon itself; answers when the socket is free again.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn shutdown(&self) -> Result<StopReport, ClientError> {
        self.request(method::SHUTDOWN, &serde_json::Map::new()).await
    }

    /// Who requires whom.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn graph(&self) -> Result<GraphReport, ClientError> {
        self.request(method::GRAPH, &serde_json::Map::new()).await
    }

    /// The latest log entries.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn logs(&self, params: &LogsParams) -> Result<Vec<LogEntry>, ClientError> {
        self.request(method::LOGS, params).await
    }

    /// The latest events.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn events(&self, params: &EventsParams) -> Result<Vec<Event>, ClientError> {
        self.request(method::EVENTS, params).await
    }

    /// Log entries as they come, the `tail` latest ones first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow_logs(&self, params: &LogsParams) -> Result<Following<LogEntry>, ClientError> {
        self.subscribe(method::LOGS_SUBSCRIBE, params, method::LOGS_UNSUBSCRIBE).await
    }

    /// Events as they happen, the `tail` latest ones first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn follow_events(&self, params: &EventsParams) -> Result<Following<Event>, ClientError> {
        self.subscribe(method::EVENTS_SUBSCRIBE, params, method::EVENTS_UNSUBSCRIBE).await
    }

    async fn request<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, ClientError> {
        let params = self.json(params)?;
        self.rpc.request(method, params).await.map_err(failure)
    }

    async fn subscribe<T>(
        &self,
        subscribe: &str,
        params: &impl Serialize,
        unsubscribe: &str,
    ) -> Result<Following<T>, ClientError> {
        let params = self.json(params)?;
        let subscription = self.rpc.subscribe(subscribe, params, unsubscribe).await.map_err(failure)?;
        Ok(Following { subscription, item: PhantomData })
    }

    /// The params as text, refused here where they are too large to be sent.
    fn json(&self, params: &impl Serialize) -> Result<JsonParams, ClientError> {
        /// Room for method, id and version around the params.
        const ENVELOPE: usize = 256;
        let json = to_raw_value(params).map_err(|error| ClientError::Malformed {
            code: jsonrpsee::types::error::INVALID_PARAMS_CODE,
            message: error.to_string(),
        })?;
        let (size, limit) = (json.get().len(), self.body_limit.saturating_sub(ENVELOPE));
        if size > limit {
            let message = format!("the request has {size} bytes and at most {limit} can be sent");
            return Err(ClientError::Command(Box::new(CallError::new(
                ErrorKind::ArgumentsTooLarge,
                message,
            ))));
        }
        Ok(JsonParams(json))
    }
}

impl<T: DeserializeOwned> Following<T> {
    /// The next item; `None` when the daemon is gone or this consumer was far too slow.
    ///
    /// # Errors
    /// [`ClientError::Malformed`] for an item that is not of the expected form.
    pub async fn next(&mut self) -> Option<Result<T, ClientError>> {
        let item = self.subscription.next().await?;
        let parsed = item.and_then(|json| serde_json::from_str(json.get()));
        Some(parsed.map_err(|error| ClientError::Malformed {
            code: jsonrpsee::types::error::PARSE_ERROR_CODE,
            message: error.to_string(),
        }))
    }
}

fn failure(error: Error) -> ClientError {
    match error {
        Error::Call(object) => {
            let command = (object.code() == COMMAND_FAILED)
                .then(|| object.data().and_then(|data| serde_json::from_str(data.get()).ok()))
                .flatten();
            match command {
                Some(error) => ClientError::Command(error),
                None => ClientError::Malformed { code: object.code(), message: object.message().to_owned() },
            }
        }
        Error::ParseError(error) => ClientError::Malformed {
            code: jsonrpsee::types::error::PARSE_ERROR_CODE,
            message: format!("its answer is not of the expected form: {error}"),
        },
        Error::RestartNeeded(reason) => ClientError::Lost(reason.to_string()),
        other => ClientError::Lost(other.to_string()),
    }
}
