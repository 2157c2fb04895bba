//! The methods of the control socket, registered one group a file.

mod calls;
pub mod discover;
mod observe;
mod plugins;
mod record;
mod tools;

use std::sync::Arc;

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::server::Methods;
use jsonrpsee::types::ErrorObjectOwned;
use plugd_engine::Engine;
use plugd_protocol::CallError;
use plugd_protocol::control::StopReport;
use tokio::sync::watch;

use crate::asks::Followers;

/// JSON-RPC's code for a command that cannot be carried out; its data is a `CallError`.
pub(crate) const COMMAND_FAILED: i32 = -32000;

/// What the methods work on.
pub(crate) struct Daemon {
    pub(crate) engine: Engine,
    /// The connections that can be asked.
    pub(crate) asks: Arc<Followers>,
    /// The control socket, for `status`.
    pub(crate) socket: String,
    /// Counts how often a stop was asked for.
    pub(crate) stop_wishes: watch::Sender<u32>,
    /// The report, once everything is down.
    pub(crate) stopped: watch::Receiver<Option<StopReport>>,
}

/// What a method answers.
type Answer<T> = Result<T, ErrorObjectOwned>;

/// All methods.
pub(crate) fn all(daemon: Daemon) -> Methods {
    let mut module = RpcModule::new(daemon);
    let registered = (|| -> Result<(), RegisterMethodError> {
        calls::register(&mut module)?;
        record::register(&mut module)?;
        tools::register(&mut module)?;
        plugins::register(&mut module)?;
        observe::register(&mut module)?;
        discover::register(&mut module)
    })();
    registered.expect("every method has a name of its own");
    module.into()
}

/// A command's failure as JSON-RPC puts it.
pub(crate) fn command_failed(error: CallError) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(COMMAND_FAILED, error.message.clone(), Some(error))
}

/// Runs an operator's command to its end, even if whoever gave it goes away meanwhile.
async fn to_its_end<T: Send + 'static>(
    command: impl Future<Output = Result<T, CallError>> + Send + 'static,
) -> Answer<T> {
    match tokio::spawn(command).await {
        Ok(outcome) => outcome.map_err(command_failed),
        Err(_) => Err(ErrorObjectOwned::owned(
            jsonrpsee::types::error::INTERNAL_ERROR_CODE,
            "the command panicked; the daemon's log has the details",
            None::<()>,
        )),
    }
}
