//! What there is and how it is: `status`, `doctor`, `list`, `describe`, `graph`, `logs`, `events`.

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use plugd_protocol::control::{DescribeParams, EventsParams, ListParams, LogsParams, StatusParams, method};

use super::{Answer, Daemon, command_failed};
use crate::{follow, params};

/// The name of a notification with a log entry.
const LOGS_NOTIFICATION: &str = "logs";

/// The name of a notification with an event.
const EVENTS_NOTIFICATION: &str = "events";

pub(super) fn register(module: &mut RpcModule<Daemon>) -> Result<(), RegisterMethodError> {
    module.register_async_method(method::STATUS, |given, daemon, _| async move {
        let params: StatusParams = params::read(&given)?;
        let mut report = daemon.engine.status(&params).await.map_err(command_failed)?;
        report.daemon.socket = Some(daemon.socket.clone());
        Answer::Ok(report)
    })?;
    module.register_async_method(method::DOCTOR, |given, daemon, _| async move {
        let params: StatusParams = params::read(&given)?;
        daemon.engine.doctor(&params).await.map_err(command_failed)
    })?;
    module.register_async_method(method::LIST, |given, daemon, _| async move {
        let params: ListParams = params::read(&given)?;
        daemon.engine.list(&params).await.map_err(command_failed)
    })?;
    module.register_async_method(method::DESCRIBE, |given, daemon, _| async move {
        let params: DescribeParams = params::read(&given)?;
        daemon.engine.describe(&params).await.map_err(command_failed)
    })?;
    module.register_async_method(method::GRAPH, |given, daemon, _| async move {
        params::read::<params::Nothing>(&given)?;
        Answer::Ok(daemon.engine.graph().await)
    })?;
    module.register_async_method(method::LOGS, |given, daemon, _| async move {
        let params: LogsParams = params::read(&given)?;
        let entries = daemon.engine.logs(&params).await;
        // What a plugin said that has gone since can still be read.
        if entries.is_empty() {
            daemon.engine.expect_plugin(params.plugin.as_ref()).map_err(command_failed)?;
        }
        Answer::Ok(entries)
    })?;
    module.register_async_method(method::EVENTS, |given, daemon, _| async move {
        let params: EventsParams = params::read(&given)?;
        let events = daemon.engine.events(&params).await;
        if events.is_empty() {
            daemon.engine.expect_plugin(params.plugin.as_ref()).map_err(command_failed)?;
        }
        Answer::Ok(events)
    })?;
    module.register_subscription(
        method::LOGS_SUBSCRIBE,
        LOGS_NOTIFICATION,
        method::LOGS_UNSUBSCRIBE,
        |given, pending, daemon, _| async move { follow::logs(&daemon.engine, &given, pending).await },
    )?;
    module.register_subscription(
        method::EVENTS_SUBSCRIBE,
        EVENTS_NOTIFICATION,
        method::EVENTS_UNSUBSCRIBE,
        |given, pending, daemon, _| async move { follow::events(&daemon.engine, &given, pending).await },
    )?;
    Ok(())
}
