//! A call under way, attended to: its questions asked, its progress drawn, its end shown.

use std::time::Duration;

use plugd_engine::Asker;
use plugd_protocol::result::Meta;
use plugd_protocol::{CallError, CallResult, ErrorKind, OperationId, Outcome, Status};

use crate::ask::{self, Prompter};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::Bar;
use crate::render;
use crate::runtime::{Runtime, interrupted};

/// Starting took so long that a daemon would be felt.
const SLOW_START: Duration = Duration::from_secs(1);

/// The exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// How whoever called can be reached meanwhile.
pub(crate) struct Reach {
    /// For an engine in this process.
    pub(crate) asker: Option<Asker>,
    /// Whether somebody can be asked.
    pub(crate) can_ask: bool,
}

/// Waits for what ends a call; asks and draws meanwhile. SIGINT and SIGTERM end it: `None`.
pub(crate) async fn attend<T>(
    runtime: &Runtime,
    may_ask: bool,
    context: &Context,
    begin: impl AsyncFnOnce(Reach) -> T,
) -> Option<T> {
    let asks = may_ask && ask::somebody_is_there();
    let ready = Prompter::begin(runtime, asks, Bar::new(context.output.quiet)).await;
    let can_ask = asks && ready.is_some();
    let (prompter, asker) = ready.map_or((None, None), |(prompter, asker)| (Some(prompter), asker));
    let prompting = async {
        match prompter {
            Some(prompter) => prompter.run().await,
            None => std::future::pending().await,
        }
    };
    let interruption = async {
        if !interrupted().await {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        // What became of a question is said before the result.
        biased;
        never = prompting => match never {},
        ended = begin(Reach { asker, can_ask }) => Some(ended),
        () = interruption => None,
    }
}

/// The result and the exit code of a call that was attended to.
pub(crate) fn result_of(
    ended: Option<Result<CallResult, Failure>>,
    operation: Option<OperationId>,
) -> (CallResult, u8) {
    match ended {
        Some(Ok(result)) => {
            let code = result.exit_code();
            (result, code)
        }
        Some(Err(failure)) => {
            let code = failure.exit;
            (failed(Status::Error, failure.error, operation), code)
        }
        None => {
            let error = CallError::new(ErrorKind::Cancelled, "the call was interrupted and is cancelled");
            (failed(Status::Cancelled, error.outcome(Outcome::Unknown), operation), INTERRUPTED)
        }
    }
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
            let instead =
                hint.filter(|hint| pending.token.as_ref().is_none_or(|token| !hint.contains(token)));
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
