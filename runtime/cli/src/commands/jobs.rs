//! `plugd jobs`: calls that run in the background, and waiting for them.

use std::time::{Duration, Instant};

use plugd_engine::Opening;
use plugd_protocol::control::{Event, EventsParams, JobProgress, JobsParams, JobsReport, JobsWaitParams};
use plugd_protocol::result::Meta;
use plugd_protocol::{CallId, CallResult, Status};

use super::cancel;
use crate::attend::{self, Attended, INTERRUPTED};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::progress::Bar;
use crate::render;
use crate::runtime::{Runtime, interrupted};

/// Calls that run in the background
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A long-running operation is called without waiting for it: the call ends at once, and its id is the \
job's. Jobs run in the daemon; how they ended is kept, and shown without one, too.

Examples:
  plugd jobs
  plugd jobs --running
  plugd jobs wait 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10
  plugd jobs cancel 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10")]
pub(crate) struct Args {
    /// Only those that run
    #[arg(long)]
    running: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Wait for the end of a job, and show its result as `plugd call` would
    #[command(after_help = "\
Ends with the exit code that the call itself would have had; 5 if it still runs after --timeout. \
Ctrl-C ends the waiting, not the job.

Examples:
  plugd jobs wait 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10
  plugd jobs wait 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10 --timeout 10m --output json")]
    Wait {
        /// The job
        id: String,
        /// How long to wait at most, such as 30s or 10m; to its end unless said
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        timeout: Option<Duration>,
        /// The whole result, however large; so it is under --output json and data
        #[arg(long)]
        whole: bool,
        /// A large result page by page, also under --output json and data
        #[arg(long, conflicts_with = "whole")]
        page: bool,
    },
    /// Stop a job
    #[command(after_help = "\
Exits 4 if it does not run.

Examples:
  plugd jobs cancel 0193d6f8-54a1-7c3e-9a41-2f0c7f6f7b10")]
    Cancel {
        /// The job
        id: String,
    },
}

/// The daemon is asked again after so long: it is not believed to be there forever.
const WAIT_AT_ONCE: Duration = Duration::from_secs(60);

/// The exit code where the wait was over before the job.
const TIMED_OUT: u8 = 5;

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    match args.action {
        Some(_) if args.running => {
            return Err(Failure::usage("--running is about all jobs, and this about one"));
        }
        Some(Action::Cancel { id }) => return cancel::stop(CallId::new(id), context).await,
        Some(Action::Wait { id, timeout, whole, page }) => {
            let mut params = wanted(CallId::new(id), page, context);
            params.whole |= whole;
            return wait(params, timeout, context).await;
        }
        None => {}
    }
    let runtime = context.runtime(Opening::OnDemand).await?;
    let params = JobsParams { running: args.running, caller: context.global.caller.clone() };
    let shown = match runtime.jobs(&params).await {
        Ok(report) => context.output.report(&report, |paint| render::jobs(&report, args.running, paint)),
        Err(failure) => Err(failure),
    };
    runtime.finish().await;
    shown.map(|()| 0)
}

/// What is asked for of a job: its result whole for scripts, unless they want pages.
pub(super) fn wanted(call_id: CallId, page: bool, context: &Context) -> JobsWaitParams {
    let whole = !page && context.output.format != Format::Text;
    JobsWaitParams { call_id, timeout_ms: None, whole, caller: context.global.caller.clone() }
}

async fn wait(params: JobsWaitParams, timeout: Option<Duration>, context: &Context) -> Result<u8, Failure> {
    let runtime = context.runtime(Opening::OnDemand).await?;
    let ends = timeout.map(|timeout| Instant::now() + timeout);
    let ended = {
        let watched = watch(&params, &runtime, Bar::new(context.output.quiet));
        let interruption = async {
            if !interrupted().await {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            ended = until_its_end(&params, ends, &runtime) => Some(ended),
            () = watched => None,
            () = interruption => None,
        }
    };
    let Some(ended) = ended else {
        runtime.finish().await;
        let id = render::visible_line(params.call_id.as_str());
        context
            .output
            .note(&format!("the job goes on: `{}`", context.command_line(&format!("jobs wait {id}"))));
        if context.output.format == Format::Json {
            context.output.document(&goes_on(&params.call_id))?;
        }
        return Ok(INTERRUPTED);
    };
    let (result, code) = match ended {
        Ok(result) => {
            let code = if result.status == Status::Pending { TIMED_OUT } else { result.exit_code() };
            (result, code)
        }
        ended @ Err(_) => attend::result_of(Attended::Ended(ended), None, context),
    };
    let shown = attend::show(&result, context);
    runtime.finish().await;
    shown.map(|()| code)
}

/// The result of a job that is waited for no more.
fn goes_on(call_id: &CallId) -> CallResult {
    CallResult {
        status: Status::Pending,
        data: None,
        summary: Some(format!("the wait was interrupted; the job goes on as {call_id}")),
        error: None,
        next_actions: Vec::new(),
        pending: None,
        page: None,
        meta: Meta { call_id: Some(call_id.clone()), ..Meta::default() },
    }
}

/// Waits until the job has ended, or the time is over: then its result is `pending`.
pub(super) async fn until_its_end(
    params: &JobsWaitParams,
    ends: Option<Instant>,
    runtime: &Runtime,
) -> Result<CallResult, Failure> {
    loop {
        let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        let now = left.map_or(WAIT_AT_ONCE, |left| left.min(WAIT_AT_ONCE));
        let timeout_ms = Some(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        let result = runtime.jobs_wait(&JobsWaitParams { timeout_ms, ..params.clone() }).await?;
        if result.status != Status::Pending || left.is_some_and(|left| left <= WAIT_AT_ONCE) {
            return Ok(result);
        }
    }
}

/// Draws how far the job is; never ends by itself.
async fn watch(params: &JobsWaitParams, runtime: &Runtime, mut bar: Bar) {
    if let (true, Runtime::Daemon(client)) = (bar.is_on(), runtime) {
        // Followed before it is asked for, so that nothing falls between the two.
        let following = client.follow_events(&EventsParams::default()).await;
        let call_id = &params.call_id;
        let all = JobsParams { caller: params.caller.clone(), ..JobsParams::default() };
        let known = runtime.jobs(&all).await.unwrap_or(JobsReport { jobs: Vec::new() });
        let job = known.jobs.into_iter().find(|job| job.call_id == *call_id);
        let what = job.as_ref().map_or_else(|| call_id.to_string(), |job| job.operation.to_string());
        if let Some(progress) = job.and_then(|job| job.progress) {
            bar.draw(&what, &progress);
        }
        if let Ok(mut events) = following {
            while let Some(event) = events.next().await {
                if let Some(progress) = event.ok().and_then(|event| progress_of(call_id, &event)) {
                    bar.draw(&what, &progress);
                }
            }
        }
    }
    std::future::pending().await
}

/// The progress of a call that an event tells of.
fn progress_of(call_id: &CallId, event: &Event) -> Option<JobProgress> {
    let of_it = event.kind == "call.progress" && event.call_id.as_ref() == Some(call_id);
    of_it.then(|| serde_json::from_value(event.detail.clone()?).ok()).flatten()
}
