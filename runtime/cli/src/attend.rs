//! A call under way, attended to: its questions asked, its progress drawn, its end shown.

use std::pin::Pin;
use std::time::Duration;

use plugd_engine::Asker;
use plugd_protocol::result::Meta;
use plugd_protocol::{CallError, CallResult, ErrorKind, OperationId, Outcome, Status};

use crate::ask::{self, Prompter};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::Bar;
use crate::render::{self, Instead};
use crate::runtime::{Interruptions, Runtime};

/// Starting took so long that a daemon would be felt.
const SLOW_START: Duration = Duration::from_secs(1);

/// So long after it was stopped a call's result is waited for: it is at hand, unless the daemon hangs.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// So long where nothing was left to be stopped: the result is on its way, or what is called is not known.
const IN_TRANSIT: Duration = Duration::from_millis(100);

/// The exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// How whoever called can be reached meanwhile.
pub(crate) struct Reach {
    /// For an engine in this process.
    pub(crate) asker: Option<Asker>,
    /// Whether somebody can be asked.
    pub(crate) can_ask: bool,
}

/// How the wait for a call ended.
pub(crate) enum Attended<T> {
    /// It came to its end.
    Ended(T),
    /// Somebody interrupted it; what the cancelled call came to, where that was told in time.
    Interrupted(Option<T>),
    /// Somebody interrupted what comes before it.
    NotBegun,
}

/// Waits for what ends a call; asks and draws meanwhile. SIGINT and SIGTERM cancel it.
pub(crate) async fn attend<T>(
    runtime: &Runtime,
    may_ask: bool,
    context: &Context,
    begin: impl AsyncFnOnce(Reach) -> T,
) -> Attended<T> {
    attend_with(&mut Interruptions::watch(), runtime, may_ask, context, begin).await
}

/// The same with signals that were watched for before.
pub(crate) async fn attend_with<T>(
    signals: &mut Interruptions,
    runtime: &Runtime,
    may_ask: bool,
    context: &Context,
    begin: impl AsyncFnOnce(Reach) -> T,
) -> Attended<T> {
    let asks = may_ask && ask::somebody_is_there();
    let ready = tokio::select! {
        ready = Prompter::begin(runtime, asks, Bar::new(context.output.quiet)) => ready,
        () = signals.next() => return Attended::NotBegun,
    };
    let can_ask = asks && ready.is_some();
    let (prompter, asker) = ready.map_or((None, None), |(prompter, asker)| (Some(prompter), asker));
    let prompting = async {
        match prompter {
            Some(prompter) => prompter.run().await,
            None => std::future::pending().await,
        }
    };
    let ended = begin(Reach { asker, can_ask });
    tokio::pin!(prompting, ended);
    tokio::select! {
        // What became of a question is said before the result.
        biased;
        never = &mut prompting => match never {},
        ended = &mut ended => return Attended::Ended(ended),
        () = signals.next() => {}
    }
    // The prompt stays until then: without it the call would end for want of an answer.
    Attended::Interrupted(tokio::select! {
        last = last_of(runtime, ended) => last,
        () = signals.next() => None,
    })
}

/// What comes before a call, unless somebody interrupts that.
pub(crate) async fn unless_interrupted<T>(
    signals: &mut Interruptions,
    before: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = before => Some(done),
        () = signals.next() => None,
    }
}

/// What a call comes to that is cancelled now: its own result names it, and says whether it ran.
async fn last_of<T>(runtime: &Runtime, mut ended: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let stopping = async {
        let stopped = runtime.cancel_mine().await.unwrap_or(false);
        tokio::time::sleep(if stopped { TOLD_WITHIN } else { IN_TRANSIT }).await;
    };
    tokio::select! {
        biased;
        ended = &mut ended => Some(ended),
        () = stopping => None,
        () = tokio::time::sleep(TOLD_WITHIN) => None,
    }
}

/// The result and the exit code of a call that was attended to.
pub(crate) fn result_of(
    attended: Attended<Result<CallResult, Failure>>,
    operation: Option<OperationId>,
    context: &Context,
) -> (CallResult, u8) {
    match attended {
        Attended::Ended(ended) => {
            let code = match &ended {
                Ok(result) => result.exit_code(),
                Err(failure) => failure.exit,
            };
            (ended.unwrap_or_else(|failure| failed(Status::Error, failure.error, operation)), code)
        }
        Attended::Interrupted(Some(Ok(result))) => (point_at_record(result, context), INTERRUPTED),
        Attended::Interrupted(Some(Err(_)) | None) => interrupted(Outcome::Unknown, operation),
        Attended::NotBegun => interrupted(Outcome::NotRun, operation),
    }
}

/// The result and the exit code of a call that was interrupted and has no result of its own.
fn interrupted(outcome: Outcome, operation: Option<OperationId>) -> (CallResult, u8) {
    let message = match outcome {
        Outcome::NotRun => "the call was interrupted before it began",
        Outcome::Unknown | Outcome::Completed => "the call was interrupted and is cancelled",
    };
    let error = CallError::new(ErrorKind::Cancelled, message).outcome(outcome);
    (failed(Status::Cancelled, error, operation), INTERRUPTED)
}

/// The failure of a call whose daemon was lost meanwhile: which call it was is not known here, and to
/// call again may do it twice, unless it has a key.
pub(crate) fn lost_meanwhile(
    mut failure: Failure,
    keyed: bool,
    operation: Option<&OperationId>,
    context: &Context,
) -> Failure {
    let error = &mut failure.error;
    if error.code != ErrorKind::DaemonUnreachable.code() || error.outcome != Outcome::Unknown {
        return failure;
    }
    error.retryable = keyed;
    let status = context.command_line("status");
    let calls = match operation {
        Some(operation) => context.command_line(&format!("calls --operation {operation}")),
        None => context.command_line("calls"),
    };
    error.hint = Some(match keyed {
        true => format!(
            "`{status}` tells whether the daemon still runs; call again with the same key: what ran does not run twice"
        ),
        false => format!(
            "it may have run: `{status}` tells whether the daemon still runs, `{calls}` has the call where it was recorded; look before calling again"
        ),
    });
    failure
}

/// The result of a call that was cancelled from here, with where the rest of it is to be found.
fn point_at_record(mut result: CallResult, context: &Context) -> CallResult {
    if let (Status::Cancelled, Some(call_id), Some(error)) =
        (result.status, &result.meta.call_id, &mut result.error)
    {
        error.message = format!("call {call_id} was cancelled");
        let command = context.command_line(&format!("calls show {call_id}"));
        error.hint = Some(format!("`{command}` tells how far it came"));
    }
    result
}

/// The result of a call that has none of its own: whether it got an id is not known here.
pub(crate) fn failed(status: Status, error: CallError, operation: Option<OperationId>) -> CallResult {
    CallResult {
        status,
        data: None,
        summary: None,
        error: Some(error),
        next_actions: Vec::new(),
        pending: None,
        page: None,
        meta: Meta { operation, ..Meta::default() },
    }
}

/// The result as asked for; whatever is no data goes to stderr except in the JSON document.
pub(crate) fn show(result: &CallResult, context: &Context) -> Result<(), Failure> {
    show_with(result, None, context)
}

/// The same, with the command line that calls `again` where the call stopped and no token carries it on.
pub(crate) fn show_with(result: &CallResult, again: Option<&str>, context: &Context) -> Result<(), Failure> {
    let output = &context.output;
    match output.format {
        Format::Json => return output.document(result),
        Format::Data => {
            if let Some(data) = &result.data {
                output.raw(data)?;
            }
            job_aside(result, context);
        }
        Format::Text => {
            output.text(&render::result(result, output.paint()))?;
            for note in &result.meta.notes {
                output.note(&format!("note: {}", render::visible_line(note)));
            }
            if result.meta.attempt > 1 {
                output.note(&format!("note: attempt {}: those before failed", result.meta.attempt));
            }
        }
    }
    for warning in &result.meta.warnings {
        output.note(&format!("warning: {}", render::visible_line(warning)));
    }
    match (&result.pending, &result.error) {
        (Some(pending), error) => {
            // What another engine could not carry on has a hint that names no token.
            let hint = error.as_ref().and_then(|error| error.hint.as_deref());
            let hint = hint.filter(|hint| pending.token.as_ref().is_none_or(|token| !hint.contains(token)));
            let instead = match again.filter(|_| pending.token.is_none()) {
                Some(command) => Some(Instead::Command(command)),
                None => hint.map(Instead::Hint),
            };
            let line = |rest: &str| context.command_line(rest);
            output.say(&render::pending(pending, instead, output.paint_aside(), line));
        }
        (None, Some(error)) => output.error(error),
        (None, None) => {}
    }
    Ok(())
}

/// Names a job where stdout, which has data alone, does not: there would be no way back to it.
fn job_aside(result: &CallResult, context: &Context) {
    if let (Status::Pending, Some(call_id)) = (result.status, &result.meta.call_id) {
        let summary = result.summary.as_deref().unwrap_or("it runs in the background");
        let command = context.command_line(&format!("jobs wait {call_id}"));
        context.output.say(&format!(
            "{}\n  {}",
            render::visible_line(summary),
            render::visible_line(&command)
        ));
    }
}

/// Ends what a call began: soon where nobody waits for it any more.
pub(crate) async fn finish(result: &CallResult, runtime: Runtime, context: &Context) {
    advise(result, &runtime, context);
    match result.error.as_ref().map(CallError::class) {
        Some(plugd_protocol::error::ErrorClass::Time) => runtime.finish_soon().await,
        _ => runtime.finish().await,
    }
}

/// Points at `serve` where starting the plugin was most of the wait.
fn advise(result: &CallResult, runtime: &Runtime, context: &Context) {
    let Runtime::Embedded { opened_in, .. } = runtime else { return };
    let starting = *opened_in + Duration::from_micros(result.meta.queue_us);
    if starting > SLOW_START
        && result.meta.generation.is_some()
        && !result.meta.cached
        && !result.meta.replayed
    {
        let seconds = starting.as_secs_f64();
        context.output.note(&format!(
            "starting took {seconds:.1} s: with `plugd serve` running, plugins stay up and calls begin at once"
        ));
    }
}
