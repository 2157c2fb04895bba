//! The record of calls: the row that each one leaves, and what can be read of them.

use std::sync::Arc;

use plugd_contract::Contract;
use plugd_protocol::control::{
    CallDetail, CallRow, CallsParams, CallsReport, CallsShowParams, CallsStatsParams, CallsStatsReport,
    LogsParams,
};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::result::PageUnit;
use plugd_protocol::{CallError, CallResult, OperationId, Outcome, PluginName, Status};
use plugd_store::{Called, DATA_MAX, GIVEN_MAX, Row, Sees, Store, WHOLE_MAX, clipped};
use serde_json::value::RawValue;

use super::recording::refused_by_store;
use crate::call::{Trail, ended};
use crate::callers::may_see;
use crate::config::OWN_NAME;
use crate::engine::Engine;

/// So many of a call's log lines are shown, the latest.
const LOG_LINES_SHOWN: u32 = 1_000;

/// At most so many calls are listed at once.
const CALLS_LISTED_MAX: u32 = 1_000;

/// Records a call that has ended; waits for room while more calls end than can be written.
pub(crate) async fn note(trail: &Trail, result: &CallResult) {
    if let Some(store) = trail.engine.shared().recording.store() {
        let row = row(store, trail, result);
        // What is dropped is counted, and `status` says so.
        let _counted = match trail.written_until() {
            Some(until) => store.record_until(row, until).await,
            None => store.record(row).await,
        };
    }
}

/// Records that a call that somebody agreed to is about to run: should plugd end before it does, that
/// stays. Where nothing is recorded it runs all the same.
pub(crate) async fn note_begun(trail: &Trail) {
    let recording = &trail.engine.shared().recording;
    let Some(store) = recording.store().filter(|_| recording.off().is_none()) else { return };
    let message = "it was agreed to and handed over, and how it ended is not recorded: it may run still";
    let mut result = ended(Status::Error);
    result.error = Some(CallError::new(ErrorKind::OutcomeUnknown, message).outcome(Outcome::Unknown));
    let written = async {
        let _counted = store.record(row(store, trail, &result)).await;
        store.flush().await
    };
    let _said_by_its_health = trail.in_half_the_time(written).await;
}

/// The row of a call that is about to run, for what must be on the disk before it does. The
/// store knows when nobody is left to end it; the row of its end takes its place.
pub(super) fn begun(store: &Store, trail: &Trail) -> Row {
    row(store, trail, &ended(Status::Pending))
}

/// Records a call whose caller has gone; never waits.
pub(crate) fn note_now(trail: &Trail, result: &CallResult) {
    if let Some(store) = trail.engine.shared().recording.store() {
        let _counted = store.record_now(row(store, trail, result));
    }
}

/// The whole data for whoever comes back for it: neither small nor large, no secret, and not kept already.
fn whole(store: &Store, result: &CallResult, output: Option<&Contract>) -> Option<Box<str>> {
    let data = result.data.as_deref().map(RawValue::get)?;
    let fits = (DATA_MAX + 1..=WHOLE_MAX).contains(&data.len());
    let again = result.page.is_some() || result.meta.answer_of.is_some();
    let secret = output.is_some_and(Contract::has_sensitive);
    (fits && !again && !secret && store.has_time_for_data()).then(|| data.into())
}

fn row(store: &Store, trail: &Trail, result: &CallResult) -> Row {
    let operation = trail.operation.as_deref();
    let called = match operation {
        Some(operation) => Called::Operation(operation.id.clone()),
        None => Called::Unknown(trail.request.operation.as_str().into()),
    };
    // What nothing is declared of may hold anything: it is not written down.
    let input = operation.and_then(|operation| operation.contract().ok());
    let output = operation.and_then(|operation| operation.output_contract());
    let arguments = |given: Option<&RawValue>| {
        input.zip(given).map(|(input, given)| masked(Some(input), given, GIVEN_MAX))
    };
    Row {
        caller: trail.request.caller.clone(),
        summary: result.summary.as_deref().map(Into::into),
        error: result.error.clone().map(Box::new),
        duration_us: u64::try_from(trail.elapsed().as_micros()).unwrap_or(u64::MAX),
        attempt: trail.attempt,
        plugin_version: operation.map(|operation| operation.plugin_version.clone()),
        generation: trail.generation,
        session: trail.request.session.clone(),
        trace_id: trail.request.traceparent.as_deref().and_then(trace_id).map(Into::into),
        parent: trail.request.parent.clone(),
        key: trail.request.key.clone(),
        given: arguments(trail.given()),
        run: arguments(trail.run_with()),
        data: data(trail, result, output),
        whole: whole(store, result, output),
        answered_from: trail.answered_from.as_ref().map(|(from, _)| *from),
        argument_bytes: result.meta.argument_bytes,
        data_bytes: result.meta.data_bytes,
        stages: trail.stages().collect(),
        ..Row::new(trail.call_id.clone(), trail.at, called, result.status)
    }
}

/// The beginning of the data; none where secrets in it cannot be told any more.
fn data(trail: &Trail, result: &CallResult, output: Option<&Contract>) -> Option<Box<str>> {
    let data = result.data.as_deref().or(trail.withheld.as_deref())?;
    let is_text = result.page.as_ref().is_some_and(|page| page.unit == PageUnit::Characters);
    match output {
        Some(output) if is_text && output.has_sensitive() => None,
        output => Some(masked(output, data, DATA_MAX)),
    }
}

/// A value with what is declared sensitive hidden, at most so long.
fn masked(contract: Option<&Contract>, value: &RawValue, max: usize) -> Box<str> {
    match contract {
        Some(contract) if contract.has_sensitive() => clipped(&contract.mask(value), max),
        Some(_) | None => clipped(value.get(), max),
    }
}

/// The trace in a W3C traceparent.
pub(super) fn trace_id(traceparent: &str) -> Option<&str> {
    let trace = traceparent.split('-').nth(1)?;
    (trace.len() == 32 && trace.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(trace)
}

impl Engine {
    /// Recorded calls that the caller may see, the latest first.
    ///
    /// # Errors
    /// 1001 for a limit out of range; 1002, 1003, 1010 for a plugin, an operation, a caller that is not
    /// there and of which nothing is recorded; 9005 where the store cannot be read.
    pub async fn calls(&self, mut params: CallsParams) -> Result<CallsReport, CallError> {
        let profile = self.profile(params.as_caller.as_deref())?;
        if let Some(limit) = params.limit.filter(|limit| !(1..=CALLS_LISTED_MAX).contains(limit)) {
            let message = format!("limit: expected 1 to {CALLS_LISTED_MAX}, got {limit}");
            return Err(
                CallError::new(ErrorKind::MalformedRequest, message).hint("50 are listed unless said")
            );
        }
        let sees = profile.map(|profile| {
            let declared = self.shared().registry.snapshot();
            let sees: Sees = Arc::new(move |operation| may_see(&profile, &declared, operation).is_ok());
            sees
        });
        let mut calls = self.recorded(&params, sees.clone()).await?;
        if calls.is_empty() && self.filters_are_names(&mut params, sees.as_ref()).await? {
            calls = self.recorded(&params, sees).await?;
        }
        Ok(CallsReport { calls })
    }

    async fn recorded(&self, params: &CallsParams, sees: Option<Sees>) -> Result<Vec<CallRow>, CallError> {
        self.store()?.calls_seen(params, sees).await.map_err(|error| refused_by_store(&error))
    }

    /// Whether names in filters that found nothing are those of something: a slip looks like no call
    /// otherwise. True where an operation was another spelling, which is put right.
    async fn filters_are_names(
        &self,
        params: &mut CallsParams,
        sees: Option<&Sees>,
    ) -> Result<bool, CallError> {
        let one = || CallsParams { limit: Some(1), ..CallsParams::default() };
        if let Some(plugin) = params.plugin.clone().filter(|plugin| !self.is_plugin(plugin)) {
            let any = CallsParams { plugin: Some(plugin.clone()), ..one() };
            if self.recorded(&any, sees.cloned()).await?.is_empty() {
                return Err(self.unknown_plugin(plugin.as_str()));
            }
        }
        if let Some(caller) = params.caller.clone().filter(|caller| !caller.starts_with("plugin:"))
            && let Err(unknown) = self.profile(Some(&caller))
        {
            let any = CallsParams { caller: Some(caller), ..one() };
            if self.recorded(&any, sees.cloned()).await?.is_empty() {
                return Err(unknown);
            }
        }
        let Some(operation) = params.operation.clone() else { return Ok(false) };
        let any = CallsParams { operation: Some(operation.clone()), ..one() };
        if !self.recorded(&any, sees.cloned()).await?.is_empty() {
            return Ok(false);
        }
        let found = self.named(&operation, params.as_caller.as_deref()).await?;
        params.operation = Some(found.id.to_string());
        Ok(true)
    }

    fn is_plugin(&self, plugin: &PluginName) -> bool {
        plugin.as_str() == OWN_NAME || self.config().plugins.contains_key(plugin)
    }

    /// All that is kept of one call, with what its plugins logged.
    ///
    /// # Errors
    /// 1005 where nothing is kept of it, 7004 or 7005 for a call of what the caller may not call, 9005
    /// where the store cannot be read.
    pub async fn call_detail(&self, params: CallsShowParams) -> Result<CallDetail, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        let call_id = params.call_id;
        let recorded = self.store()?.call(&call_id).await.map_err(|error| refused_by_store(&error))?;
        let Some(mut detail) = recorded else {
            let runs = self.shared().calls.list().iter().any(|call| call.call_id == call_id);
            let message = match runs {
                true => format!("the call {call_id} still runs: it is recorded when it ends"),
                false => format!("there is no record of a call {call_id}"),
            };
            let hint =
                "`plugd calls` lists those there are; [record] in plugd.toml says how long they are kept";
            return Err(CallError::new(ErrorKind::UnknownCall, message).hint(hint));
        };
        self.may_see(profile.as_deref(), &detail.call.operation)?;
        // An inner call's plugin logs under the id of that call.
        let plugin = OperationId::parse(&detail.call.operation).ok().map(|operation| operation.plugin);
        if let Some(plugin) = plugin {
            let wanted = LogsParams {
                plugin: Some(plugin),
                call_id: Some(call_id),
                level: None,
                tail: Some(LOG_LINES_SHOWN),
            };
            detail.log = self.logs(&wanted).await;
        }
        Ok(detail)
    }

    /// How operations that the caller may see do: how often they are called, how they end, how long
    /// they take.
    ///
    /// # Errors
    /// 1002 for a plugin that is not there and of which nothing is recorded, 1010 for a caller that is
    /// none, 9005 where the store cannot be read.
    pub async fn calls_stats(&self, params: CallsStatsParams) -> Result<CallsStatsReport, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        let mut operations = self.store()?.stats(&params).await.map_err(|error| refused_by_store(&error))?;
        operations.retain(|row| self.may_see(profile.as_deref(), &row.operation).is_ok());
        if operations.is_empty() {
            let mut filter = CallsParams { plugin: params.plugin, ..CallsParams::default() };
            self.filters_are_names(&mut filter, None).await?;
        }
        Ok(CallsStatsReport { operations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_off_its_traceparent() {
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace_id(traceparent), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(trace_id("what-ever"), None);
    }
}
