//! `call`, `call.explain`, `cancel`, and what people are asked meanwhile: `asks.subscribe`, `answer`.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::server::ConnectionId;
use plugd_protocol::control::{AnswerParams, CancelParams, CancelReport, method};

use super::{Answer, Daemon, command_failed};
use crate::{follow, params};

/// The name of a notification about questions.
const ASK_NOTIFICATION: &str = "ask";

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    // A caller that goes away drops this future, and with it cancels its call.
    module.register_async_method(method::CALL, |given, daemon, connection| async move {
        let params = params::read_call(&given)?;
        let asker = daemon.asks.asker(connection.get::<ConnectionId>().copied(), params.can_ask);
        Answer::Ok(daemon.engine.call_asking(params, asker).await)
    })?;
    module.register_async_method(method::CALL_EXPLAIN, |given, daemon, _| async move {
        let params = params::read_call(&given)?;
        daemon.engine.explain(params).await.map_err(command_failed)
    })?;
    module.register_method(method::CANCEL, |given, daemon, _| {
        let CancelParams { call_id } = params::read(&given)?;
        let cancelled = daemon.engine.cancel(&call_id);
        Answer::Ok(CancelReport { call_id, cancelled })
    })?;
    // Whoever carries a call on and goes away cancels it, as its first caller would have.
    module.register_async_method(method::ANSWER, |given, daemon, connection| async move {
        let params: AnswerParams = params::read(&given)?;
        let asker = daemon.asks.asker(connection.get::<ConnectionId>().copied(), params.can_ask);
        daemon.engine.answer(params, asker).await.map_err(command_failed)
    })?;
    module.register_subscription(
        method::ASKS_SUBSCRIBE,
        ASK_NOTIFICATION,
        method::ASKS_UNSUBSCRIBE,
        |given, pending, daemon, _| async move { follow::asks(&daemon.asks, &given, pending).await },
    )?;
    Ok(())
}
