//! The operator's commands: plugins started, stopped, changed, and the shutdown of everything.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::types::ErrorObjectOwned;
use plugd_engine::Engine;
use plugd_protocol::CallError;
use plugd_protocol::control::{AddParams, PluginsParams, ReloadParams, StopReport, method};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Answer, Daemon, to_its_end};
use crate::params;

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    type Plugins = PluginsParams;
    command(module, method::START, |engine, plugins: Plugins| async move { engine.start(&plugins).await })?;
    command(module, method::STOP, |engine, plugins: Plugins| async move { engine.stop(&plugins).await })?;
    command(
        module,
        method::RESTART,
        |engine, plugins: Plugins| async move { engine.restart(&plugins).await },
    )?;
    command(
        module,
        method::RELOAD,
        |engine, params: ReloadParams| async move { engine.reload(&params).await },
    )?;
    command(module, method::ADD, |engine, params: AddParams| async move { engine.add(&params).await })?;
    command(module, method::REMOVE, |engine, plugins: Plugins| async move { engine.remove(&plugins).await })?;
    command(module, method::ENABLE, |engine, plugins: Plugins| async move { engine.enable(&plugins).await })?;
    command(
        module,
        method::DISABLE,
        |engine, plugins: Plugins| async move { engine.disable(&plugins).await },
    )?;
    module.register_async_method(method::SHUTDOWN, |given, daemon, _| async move {
        params::read::<params::Nothing>(&given)?;
        shutdown(&daemon).await
    })?;
    Ok(())
}

/// Registers one that runs to its end even if whoever gave it goes away meanwhile.
fn command<P, R, F>(
    module: &mut RpcModule<Daemon>,
    name: &'static str,
    run: impl Fn(Engine, P) -> F + Copy + Send + Sync + 'static,
) -> Result<(), RegisterMethodError>
where
    P: DeserializeOwned + Send + 'static,
    R: Serialize + Clone + Send + 'static,
    F: Future<Output = Result<R, CallError>> + Send + 'static,
{
    let registered = module.register_async_method(name, move |given, daemon, _| async move {
        let params: P = params::read(&given)?;
        to_its_end(run(daemon.engine.clone(), params)).await
    });
    registered.map(drop)
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
