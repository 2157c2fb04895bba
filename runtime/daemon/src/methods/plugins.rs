//! The operator's commands: `start`, `stop`, `restart`, `reload`, `shutdown`.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::types::ErrorObjectOwned;
use plugd_protocol::control::{PluginsParams, ReloadParams, StopReport, method};

use super::{Answer, Daemon, to_its_end};
use crate::params;

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    module.register_async_method(method::START, |given, daemon, _| async move {
        let params: PluginsParams = params::read(&given)?;
        let engine = daemon.engine.clone();
        to_its_end(async move { engine.start(&params).await }).await
    })?;
    module.register_async_method(method::STOP, |given, daemon, _| async move {
        let params: PluginsParams = params::read(&given)?;
        let engine = daemon.engine.clone();
        to_its_end(async move { engine.stop(&params).await }).await
    })?;
    module.register_async_method(method::RESTART, |given, daemon, _| async move {
        let params: PluginsParams = params::read(&given)?;
        let engine = daemon.engine.clone();
        to_its_end(async move { engine.restart(&params).await }).await
    })?;
    module.register_async_method(method::RELOAD, |given, daemon, _| async move {
        let params: ReloadParams = params::read(&given)?;
        let engine = daemon.engine.clone();
        to_its_end(async move { engine.reload(&params).await }).await
    })?;
    module.register_async_method(method::SHUTDOWN, |given, daemon, _| async move {
        params::read::<params::Nothing>(&given)?;
        shutdown(&daemon).await
    })?;
    Ok(())
}

/// Asks for the stop and answers when everything is down.
async fn shutdown(daemon: &Daemon) -> Answer<StopReport> {
    daemon.stop_wishes.send_modify(|wishes| *wishes += 1);
    let mut stopped = daemon.stopped.clone();
    match stopped.wait_for(Option::is_some).await {
        Ok(report) => Ok(report.clone().unwrap_or(StopReport { plugins: Vec::new() })),
        Err(_) => Err(ErrorObjectOwned::owned(
            jsonrpsee::types::error::INTERNAL_ERROR_CODE,
            "the daemon ended without a report",
            None::<()>,
        )),
    }
}
