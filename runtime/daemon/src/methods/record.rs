//! What is kept of calls: `calls`, `calls.show`, `calls.stats`, `jobs`, `jobs.wait`, `result`.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use plugd_protocol::control::{
    CallsParams, CallsShowParams, CallsStatsParams, JobsParams, JobsWaitParams, ResultParams, method,
};

use super::{Answer, Daemon, command_failed};
use crate::params;

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    module.register_async_method(method::CALLS, |given, daemon, _| async move {
        let params: CallsParams = params::read(&given)?;
        daemon.engine.calls(params).await.map_err(command_failed)
    })?;
    module.register_async_method(method::CALLS_SHOW, |given, daemon, _| async move {
        let params: CallsShowParams = params::read(&given)?;
        daemon.engine.call_detail(params).await.map_err(command_failed)
    })?;
    module.register_async_method(method::CALLS_STATS, |given, daemon, _| async move {
        let params: CallsStatsParams = params::read(&given)?;
        daemon.engine.calls_stats(params).await.map_err(command_failed)
    })?;
    module.register_async_method(method::JOBS, |given, daemon, _| async move {
        let params: JobsParams = params::read(&given)?;
        daemon.engine.jobs(params).await.map_err(command_failed)
    })?;
    // Whoever waits and goes away stops waiting; the job goes on.
    module.register_async_method(method::JOBS_WAIT, |given, daemon, _| async move {
        let params: JobsWaitParams = params::read(&given)?;
        Answer::Ok(daemon.engine.jobs_wait(params).await)
    })?;
    module.register_async_method(method::RESULT, |given, daemon, _| async move {
        let params: ResultParams = params::read(&given)?;
        daemon.engine.result(params).await.map_err(command_failed)
    })?;
    Ok(())
}
