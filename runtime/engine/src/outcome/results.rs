//! What a plugin gave, checked and in the shape that callers get: a summary, and pages where it is large.

use std::time::Instant;

use plugd_protocol::control::{ResultParams, ResultReport};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::result::{NextAction, Page};
use plugd_protocol::{CallError, CallId, CallResult, OperationId, Outcome, Status};
use plugd_store::WHOLE_MAX;
use serde_json::value::RawValue;

use super::pages::{self, Cut};
use super::recording::{refused_by_store, stored_by};
use super::summary;
use crate::call::{Origin, Trail, in_words};
use crate::engine::Engine;
use crate::registry::{RegisteredOperation, Snapshot};

/// Data of more bytes is given in pages, where the operation declares no limit of its own.
const RESULT_LIMIT_DEFAULT: usize = 64 * 1024;

/// A page is never smaller than this, whatever is declared: it would hold next to nothing.
const RESULT_LIMIT_LEAST: usize = plugd_protocol::manifest::RESULT_LIMIT_MIN as usize;

/// An answer holds so much of a result that is wanted whole: whoever asks takes that, however configured.
const ANSWER_MAX: usize = plugd_protocol::frame::DEFAULT_FRAME_LIMIT;

/// So many suggestions of a plugin are handed on.
const NEXT_ACTIONS_MAX: usize = 20;

/// So many problems with an output are named.
const PROBLEMS_NAMED_MAX: usize = 3;

/// Whether data is what its operation declares: a warning where it is not, or an error under `strict`.
pub(crate) fn check_output(
    operation: &RegisteredOperation,
    data: &RawValue,
    strict: bool,
) -> Result<Option<String>, CallError> {
    let Some(contract) = operation.output_contract() else { return Ok(None) };
    let Err(problems) = contract.check_output(data) else { return Ok(None) };
    let named: Vec<String> = problems.iter().take(PROBLEMS_NAMED_MAX).map(in_words).collect();
    let more = problems.len().saturating_sub(PROBLEMS_NAMED_MAX);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let told = format!(
        "the data of {} does not fit the output_schema it declares: {}{more}",
        operation.id,
        named.join("; ").replace("arguments: ", "the data: "),
    );
    match strict {
        false => Ok(Some(told)),
        true => Err(CallError::new(ErrorKind::OutputMismatch, told).outcome(Outcome::Completed)),
    }
}

/// What a plugin suggests to do next; what is none of that form is left out, with a warning.
pub(crate) fn next_actions(operation: &OperationId, written: &RawValue) -> (Vec<NextAction>, Option<String>) {
    let Ok(listed) = serde_json::from_str::<Vec<&RawValue>>(written.get()) else {
        return (Vec::new(), Some(format!("next_actions of {operation} are left out: they are no array")));
    };
    let read = |(place, action): (usize, &&RawValue)| match next_action(action) {
        Ok(action) => Ok(action),
        Err(why) => Err(format!("next_actions[{place}] {why}")),
    };
    let (good, bad): (Vec<_>, Vec<_>) = listed.iter().enumerate().map(read).partition(Result::is_ok);
    let mut actions: Vec<NextAction> = good.into_iter().flatten().collect();
    let mut why: Vec<String> = bad.into_iter().filter_map(Result::err).take(PROBLEMS_NAMED_MAX).collect();
    if actions.len() > NEXT_ACTIONS_MAX {
        why.push(format!("only the first {NEXT_ACTIONS_MAX} are handed on"));
        actions.truncate(NEXT_ACTIONS_MAX);
    }
    let left_out = listed.len() > actions.len();
    let warning = format!("some next_actions of {operation} are left out: {}", why.join("; "));
    (actions, left_out.then_some(warning))
}

/// A warning where suggestions name operations that plugins do not have whose operations are known.
pub(crate) fn not_there(
    snapshot: &Snapshot,
    operation: &OperationId,
    actions: &[NextAction],
) -> Option<String> {
    let is_missing = |name: &&str| match OperationId::parse(name) {
        Ok(id) => snapshot.plugin(&id.plugin).is_some() && snapshot.operation(name).is_none(),
        // A bare name, or one in a model's spelling: what it means is not told here.
        Err(_) => false,
    };
    let named = actions.iter().filter_map(|action| action.operation.as_deref());
    let missing: Vec<&str> = named.filter(is_missing).collect();
    let told = format!("next_actions of {operation} name what is not offered: {}", missing.join(", "));
    (!missing.is_empty()).then_some(told)
}

fn next_action(written: &RawValue) -> Result<NextAction, String> {
    let action: NextAction = serde_json::from_str(written.get())
        .map_err(|error| format!("is unusable: {}", plugd_protocol::plain(&error)))?;
    if action.operation.is_none() && action.description.is_none() {
        return Err("has neither operation nor description".to_owned());
    }
    if action.arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
        return Err("has arguments that are no object".to_owned());
    }
    Ok(action)
}

/// Gives a result its shape: a line about it, and only the first page where the data is large.
pub(crate) async fn shape(trail: &Trail, result: &mut CallResult) {
    let Some(data) = result.data.as_deref().filter(|_| result.status == Status::Ok) else { return };
    result.summary = Some(match result.summary.take() {
        Some(said) => summary::given(said),
        None => summary::made_of(data),
    });
    let Some(operation) = trail.operation.as_deref() else { return };
    let whole = match trail.request.origin {
        Origin::Caller => trail.request.whole || super::builtin::is_builtin(&operation.id),
        Origin::Plugin { .. } => true,
    };
    if !whole {
        let limit = limit_of(operation);
        give_first_page(&trail.engine, &operation.id, limit, trail.written_until(), result).await;
    } else if trail.request.key.is_some()
        && data.get().len() > WHOLE_MAX
        && let Ok(store) = trail.engine.store()
    {
        // Its row holds the beginning alone. The caller has all of it now: that is not held up by a disk.
        let id = operation.id.to_string();
        let kept = store.keep_result(&trail.call_id, &id, data);
        let _best_effort = stored_by(trail.written_until(), kept).await;
    }
}

/// The length from which on the data of an operation is given in pages.
pub(crate) fn limit_of(operation: &RegisteredOperation) -> usize {
    let declared = operation.operation.result_limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    declared.map_or(RESULT_LIMIT_DEFAULT, |limit| limit.max(RESULT_LIMIT_LEAST))
}

/// Keeps large data and leaves its first page; where it cannot be kept until then it is given whole.
async fn give_first_page(
    engine: &Engine,
    operation: &OperationId,
    limit: usize,
    until: Option<Instant>,
    result: &mut CallResult,
) {
    let (Some(data), Some(call_id)) = (&result.data, &result.meta.call_id) else { return };
    if data.get().len() <= limit {
        return;
    }
    let kept = match engine.store() {
        Ok(store) => {
            let operation = operation.to_string();
            let kept = store.keep_result(call_id, &operation, data);
            stored_by(until, kept).await.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.message),
    };
    if let Err(why) = kept {
        result.meta.warnings.push(format!("the data is given whole, for it could not be kept: {why}"));
        return;
    }
    let cut = pages::first(data, limit);
    result.page = Some(Box::new(page_of(&cut, call_id, data)));
    result.data = Some(cut.data);
}

fn page_of(cut: &Cut, call_id: &CallId, whole: &RawValue) -> Page {
    Page {
        reference: call_id.clone(),
        pointer: cut.pointer.clone(),
        unit: cut.unit,
        offset: cut.offset,
        count: cut.count,
        total: cut.total,
        next: cut.next(),
        bytes: whole.get().len() as u64,
    }
}

impl Engine {
    /// A page of a result that is kept: the result of a large one, or one that its record holds whole.
    ///
    /// # Errors
    /// 1009 where it is kept no more, or where the pointer leads nowhere in it; 7004 or 7005 for a
    /// result of what the caller may not call.
    pub async fn result(&self, params: ResultParams) -> Result<ResultReport, CallError> {
        let ResultParams { reference, pointer, offset, limit, whole, caller } = params;
        let profile = self.profile(caller.as_deref())?;
        if limit == Some(0) {
            let error = CallError::new(ErrorKind::MalformedRequest, "limit: expected at least 1, got 0");
            return Err(error.hint("leave it out for as many as fit a page"));
        }
        let (operation, data) = self.kept(&reference).await?;
        self.may_see(profile.as_deref(), &operation)?;
        let pointer = pointer.filter(|pointer| !pointer.is_empty());
        let part = pages::locate(&data, pointer.as_deref().unwrap_or_default()).map_err(|why| {
            CallError::new(ErrorKind::UnknownResult, why)
                .hint(format!("`plugd result {reference}` shows what there is"))
        })?;
        let page_bytes = || {
            let snapshot = self.shared().registry.snapshot();
            snapshot.operation(&operation).map_or(RESULT_LIMIT_DEFAULT, |operation| limit_of(operation))
        };
        // Whoever reads all of it has it loaded and looked through once, and not for each page.
        let limit_bytes = if whole { ANSWER_MAX } else { page_bytes() };
        let cut = pages::page(part, offset.unwrap_or(0), limit, limit_bytes);
        let page = Page { pointer, ..page_of(&cut, &reference, part) };
        Ok(ResultReport { call_id: reference, operation, data: cut.data, page })
    }

    /// The whole data of a call, where that is kept, and what was called.
    async fn kept(&self, call_id: &CallId) -> Result<(String, Box<RawValue>), CallError> {
        let store = self.store()?;
        if let Some(kept) = store.result(call_id).await.map_err(|error| refused_by_store(&error))? {
            return Ok((kept.operation, kept.data));
        }
        let unknown = |message: String| CallError::new(ErrorKind::UnknownResult, message);
        let still_runs = || {
            unknown(format!("the call {call_id} still runs: it has no result yet"))
                .hint("`plugd jobs wait` waits for one that runs in the background")
        };
        let detail = store.call(call_id).await.map_err(|error| refused_by_store(&error))?;
        let Some(detail) = detail else {
            if self.runs(call_id).await? {
                return Err(still_runs());
            }
            return Err(unknown(format!("there is no call {call_id}, or its result is kept no more")));
        };
        let is_whole = |data: &String| data.len() as u64 == detail.data_bytes;
        let whole = detail.data.filter(is_whole).and_then(|data| RawValue::from_string(data).ok());
        if let Some(data) = whole {
            return Ok((detail.call.operation, data));
        }
        // A job's result is kept whole for whoever waits for it.
        if let Some(data) = self.result_of_job(call_id).await?.and_then(|result| result.data) {
            return Ok((detail.call.operation, data));
        }
        // A job is recorded just before its result is kept, and some calls are before they run.
        if self.runs(call_id).await? {
            return Err(still_runs());
        }
        match detail.call.status {
            Status::Ok => Err(unknown(format!("of the result of {call_id} only the beginning is kept"))
                .hint(format!(
                    "`plugd calls show {call_id}` has that; --page or --key has all of it kept next time"
                ))),
            _ => Err(unknown(format!("the call {call_id} did not end with data"))
                .hint(format!("`plugd calls show {call_id}` says how it ended"))),
        }
    }

    /// Pages the result of a job, which was kept whole.
    pub(super) async fn paged(&self, result: &mut CallResult, until: Instant) {
        let Some(operation) = result.meta.operation.clone().filter(|_| result.status == Status::Ok) else {
            return;
        };
        let registered = self.shared().registry.snapshot().operation(&operation.to_string()).cloned();
        let limit = registered.as_deref().map_or(RESULT_LIMIT_DEFAULT, limit_of);
        give_first_page(self, &operation, limit, Some(until), result).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("JSON")
    }

    /// Row O1.
    #[test]
    fn r_o1_suggestions_of_no_use_are_left_out_and_said_so() {
        let operation = OperationId::parse("shop.query").expect("an operation");
        let good = r#"{"operation":"shop.close","arguments":{"id":1.50}}"#;
        let written =
            raw(&format!(r#"[{good}, {{}}, "call again", {{"description":"wait","arguments":3}}]"#));
        let (actions, warning) = next_actions(&operation, &written);
        assert_eq!(actions.len(), 1);
        let warning = warning.expect("three are left out");
        for said in [
            "some next_actions of shop.query",
            "next_actions[1] has neither operation nor description",
            "next_actions[2] is unusable: expected an object, got string",
            "next_actions[3] has arguments that are no object",
        ] {
            assert!(warning.contains(said), "{warning}");
        }
        assert_eq!(next_actions(&operation, &raw(&format!("[{good}]"))).1, None);
        assert!(next_actions(&operation, &raw("{}")).1.is_some_and(|warning| warning.contains("no array")));
        let many = vec![good; NEXT_ACTIONS_MAX + 5].join(",");
        let (actions, warning) = next_actions(&operation, &raw(&format!("[{many}]")));
        assert_eq!(actions.len(), NEXT_ACTIONS_MAX);
        assert!(warning.is_some_and(|warning| warning.contains("only the first 20")));
    }
}
