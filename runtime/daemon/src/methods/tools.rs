//! What models are offered, and what could be said better to them: `tools`, `lint`.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use plugd_protocol::control::{LintParams, ToolsParams, method};

use super::{Daemon, command_failed};
use crate::params;

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    module.register_async_method(method::TOOLS, |given, daemon, _| async move {
        let params: ToolsParams = params::read(&given)?;
        daemon.engine.tools(params).await.map_err(command_failed)
    })?;
    module.register_async_method(method::LINT, |given, daemon, _| async move {
        let params: LintParams = params::read(&given)?;
        daemon.engine.lint(params).await.map_err(command_failed)
    })?;
    Ok(())
}
