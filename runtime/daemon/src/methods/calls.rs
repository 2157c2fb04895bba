//! `call`, `call.explain`, `cancel`, and what people are asked meanwhile: `asks.subscribe`, `answer`.

use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::server::ConnectionId;
use jsonrpsee::{Extensions, RpcModule};
use plugd_engine::Via;
use plugd_protocol::control::{AnswerParams, CancelMineReport, CancelParams, CancelReport, method};

use super::{Answer, Daemon, command_failed};
use crate::{follow, params};

/// The name of a notification about questions.
const ASK_NOTIFICATION: &str = "ask";

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    // A caller that goes away drops this future, and with it cancels its call.
    module.register_async_method(method::CALL, |given, daemon, connection| async move {
        let params = params::read_call(&given)?;
        let via = via(&daemon, &connection, params.can_ask);
        // Moved several times before it is first polled: as a box it is small.
        Answer::Ok(Box::pin(daemon.engine.call_via(params, via)).await)
    })?;
    module.register_async_method(method::CALL_EXPLAIN, |given, daemon, _| async move {
        let params = params::read_call(&given)?;
        daemon.engine.explain(params).await.map_err(command_failed)
    })?;
    module.register_method(method::CANCEL, |given, daemon, _| {
        let params: CancelParams = params::read(&given)?;
        let cancelled = daemon.engine.cancel(&params).map_err(command_failed)?;
        Answer::Ok(CancelReport { call_id: params.call_id, cancelled })
    })?;
    module.register_method(method::CANCEL_MINE, |given, daemon, connection| {
        params::read::<params::Nothing>(&given)?;
        let connection = connection.get::<ConnectionId>().map(number);
        let call_ids = connection.map(|connection| daemon.engine.cancel_made_through(connection));
        Answer::Ok(CancelMineReport { call_ids: call_ids.unwrap_or_default() })
    })?;
    // Whoever carries a call on and goes away cancels it, as its first caller would have.
    module.register_async_method(method::ANSWER, |given, daemon, connection| async move {
        let params: AnswerParams = params::read(&given)?;
        let via = via(&daemon, &connection, params.can_ask);
        daemon.engine.answer(params, via).await.map_err(command_failed)
    })?;
    module.register_subscription(
        method::ASKS_SUBSCRIBE,
        ASK_NOTIFICATION,
        method::ASKS_UNSUBSCRIBE,
        |given, pending, daemon, _| async move { follow::asks(&daemon.asks, &given, pending).await },
    )?;
    Ok(())
}

/// What a call that comes through a connection is made through.
fn via(daemon: &Daemon, connection: &Extensions, can_ask: bool) -> Via {
    let connection = connection.get::<ConnectionId>();
    Via { asker: daemon.asks.asker(connection.copied(), can_ask), connection: connection.map(number) }
}

fn number(connection: &ConnectionId) -> u64 {
    connection.0 as u64
}
