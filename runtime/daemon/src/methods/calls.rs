//! `call` and `cancel`.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use plugd_protocol::control::{CancelParams, CancelReport, method};

use super::{Answer, Daemon};
use crate::params;

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    // A caller that goes away drops this future, and with it cancels its call.
    module.register_async_method(method::CALL, |given, daemon, _| async move {
        let params = params::read_call(&given)?;
        Answer::Ok(daemon.engine.call(params).await)
    })?;
    module.register_method(method::CANCEL, |given, daemon, _| {
        let CancelParams { call_id } = params::read(&given)?;
        let cancelled = daemon.engine.cancel(&call_id);
        Answer::Ok(CancelReport { call_id, cancelled })
    })?;
    Ok(())
}
