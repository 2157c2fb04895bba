//! Calls that run in the background: started, followed, waited for, and their results kept.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plugd_protocol::control::{Job, JobProgress, JobsParams, JobsReport, JobsWaitParams};
use plugd_protocol::error::{ErrorKind, clip};
use plugd_protocol::plugin::ProgressParams;
use plugd_protocol::{CallError, CallId, CallResult, OperationId, Outcome, Status};
use plugd_store::{NewJob, StoreError};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::record::begun;
use super::recording::{a_moment_more, refused_by_store, stored_by};
use crate::call::{Ready, Trail, ended};
use crate::config::Profile;
use crate::engine::{Engine, Opening};

/// So many run at once; each is a task and holds its arguments.
const RUNNING_MAX: usize = 1_000;

/// So many results are held in memory where the store cannot keep them.
const UNKEPT_MAX: usize = 64;

/// A wait is so long where nothing is said.
const WAIT_DEFAULT: Duration = Duration::from_secs(60);

/// And at most so long.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// How often another process is asked whether its job has ended.
const OTHER_PROCESS_EVERY: Duration = Duration::from_millis(200);

/// What a job is doing is told in at most so many characters.
const PROGRESS_MAX_CHARS: usize = 200;

/// The jobs of one engine. The lock is held for one operation on the table, never across an await.
#[derive(Debug)]
pub(crate) struct Jobs {
    table: Mutex<Table>,
    running: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Table {
    running: HashMap<CallId, Running>,
    /// Ended, and not in the store.
    unkept: VecDeque<(Job, CallResult)>,
}

#[derive(Debug)]
struct Running {
    job: Job,
    /// Whether the store knows of it.
    noted: bool,
    /// Closed when it has ended and its result is kept.
    over: watch::Receiver<()>,
}

/// A job's place among those that run; what waits for it goes on when this is dropped.
struct Place {
    jobs: Arc<Jobs>,
    call_id: CallId,
    _over: watch::Sender<()>,
}

impl Default for Jobs {
    fn default() -> Jobs {
        Jobs { table: Mutex::default(), running: watch::Sender::new(0) }
    }
}

impl Jobs {
    fn with<T>(&self, act: impl FnOnce(&mut Table) -> T) -> T {
        act(&mut self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn enter(self: &Arc<Self>, job: Job) -> Result<Place, CallError> {
        let call_id = job.call_id.clone();
        let (sender, over) = watch::channel(());
        let entered = self.with(|table| {
            let room = table.running.len() < RUNNING_MAX;
            if room {
                table.running.insert(call_id.clone(), Running { job, over, noted: false });
            }
            room
        });
        if !entered {
            let message = format!("{RUNNING_MAX} calls run in the background already");
            return Err(CallError::new(ErrorKind::Overloaded, message)
                .hint("`plugd jobs` shows them; cancel some, or try later"));
        }
        self.running.send_modify(|running| *running += 1);
        Ok(Place { jobs: Arc::clone(self), call_id, _over: sender })
    }

    /// The store knows of a job.
    fn is_noted(&self, call_id: &CallId) {
        self.with(|table| {
            if let Some(running) = table.running.get_mut(call_id) {
                running.noted = true;
            }
        });
    }

    fn has_noted(&self, call_id: &CallId) -> bool {
        self.with(|table| table.running.get(call_id).is_some_and(|running| running.noted))
    }

    /// Takes note of how far a call is, where that is a job.
    pub(crate) fn progress(&self, call_id: &CallId, params: &str) {
        if *self.running.borrow() == 0 {
            return;
        }
        self.with(|table| {
            let Some(running) = table.running.get_mut(call_id) else { return };
            let Ok(said) = serde_json::from_str::<ProgressParams<'_>>(params) else { return };
            let message = said.message.map(|message| clip(message.into_owned(), PROGRESS_MAX_CHARS));
            running.job.progress = Some(JobProgress { done: said.done, total: said.total, message });
        });
    }

    /// Waits until none runs, at most so long.
    pub(crate) async fn over(&self, within: Duration) {
        let mut running = self.running.subscribe();
        // What has not ended by then is told as such at the next start.
        let _late = tokio::time::timeout(within, running.wait_for(|running| *running == 0)).await;
    }

    fn keep(&self, job: Job, result: CallResult) {
        self.with(|table| {
            if table.unkept.len() == UNKEPT_MAX {
                table.unkept.pop_front();
            }
            table.unkept.push_back((job, result));
        });
    }

    /// The job that runs in this engine, and what tells its end.
    fn running(&self, call_id: &CallId) -> Option<(Job, watch::Receiver<()>)> {
        self.with(|table| {
            table.running.get(call_id).map(|running| (running.job.clone(), running.over.clone()))
        })
    }

    fn unkept(&self, call_id: &CallId) -> Option<(Job, CallResult)> {
        self.with(|table| table.unkept.iter().find(|(job, _)| job.call_id == *call_id).cloned())
    }

    /// What the store knows, with what only this engine knows; the latest first.
    fn listed(&self, mut known: Vec<Job>, params: &JobsParams) -> Vec<Job> {
        self.with(|table| {
            for job in &mut known {
                if let Some(running) = table.running.get(&job.call_id) {
                    job.progress.clone_from(&running.job.progress);
                }
            }
            let mut here: Vec<&Job> = table.running.values().map(|running| &running.job).collect();
            if !params.running {
                here.extend(table.unkept.iter().map(|(job, _)| job));
            }
            here.retain(|job| known.iter().all(|known| known.call_id != job.call_id));
            known.extend(here.into_iter().cloned());
        });
        known.sort_by(|one, other| other.call_id.cmp(&one.call_id));
        known
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs.with(|table| table.running.remove(&self.call_id));
        self.jobs.running.send_modify(|running| *running -= 1);
    }
}

/// Lets a call go on in the background; its caller is told under which name.
pub(crate) async fn begin(mut trail: Box<Trail>, ready: Ready) -> CallResult {
    let engine = trail.engine.clone();
    let job = NewJob {
        call_id: trail.call_id.clone(),
        operation: trail.called().id.clone(),
        caller: trail.request.caller.clone(),
        at: trail.at,
    };
    let jobs = Arc::clone(&engine.shared().outcomes.jobs);
    let place = match jobs.enter(as_pending(&job)) {
        Ok(place) => place,
        Err(error) => {
            let result = trail.result_of(Err(error.into()));
            return trail.close(result).await;
        }
    };
    // Written before anybody is told of it, so that a kill leaves no job without an end.
    let written = match engine.store() {
        Ok(store) => {
            // What comes too late is written before its end is.
            trail.in_half_the_time(store.put_job_with(&job, Some(begun(store, &trail)))).await.is_ok()
        }
        Err(_) => false,
    };
    if written {
        jobs.is_noted(&job.call_id);
    }
    let mut pending = pending(&job.call_id, &job.operation);
    pending.meta.plugin_version = Some(trail.called().plugin_version.to_string());
    if !written {
        pending
            .meta
            .warnings
            .push("nothing is recorded: its result is kept only while plugd runs".to_owned());
    }
    // Kept whole; who asks for it gets its pages.
    trail.request.whole = true;
    // What is opened for one call alone lasts no longer than whoever waits for it.
    if engine.opening() == Opening::Everything {
        ready.let_go();
    }
    tokio::spawn(async move {
        let result = engine.run_ready(ready, &mut trail).await;
        let result = trail.close(result).await;
        end(&engine, &job, result).await;
        drop(place);
    });
    pending
}

/// Notes that a job is handed over to its plugin now: without that it has not run, whatever befalls plugd.
///
/// # Errors
/// 9005 where that cannot be written: then nobody could tell later whether it ran.
pub(crate) async fn handing_over(trail: &Trail) -> Result<(), CallError> {
    let jobs = &trail.engine.shared().outcomes.jobs;
    if *jobs.running.borrow() == 0 || !jobs.has_noted(&trail.call_id) {
        return Ok(());
    }
    let store = trail.engine.store()?;
    let handed_over = trail.in_time(store.job_is_handed_over(&trail.call_id)).await;
    handed_over
        .map_err(|error| refused_by_store(&error).hint("nothing was run: mend what `plugd doctor` names"))
}

/// Keeps how a job ended.
async fn end(engine: &Engine, job: &NewJob, result: CallResult) {
    let summary = result.summary.clone().or_else(|| result.error.as_ref().map(|error| error.message.clone()));
    let kept = match (engine.store(), to_raw_value(&result)) {
        (Ok(store), Ok(json)) => {
            store.finish_job(&job.call_id, result.status, summary.as_deref(), &json).await.is_ok()
        }
        (Err(_), _) | (_, Err(_)) => false,
    };
    if !kept {
        let job = Job { status: result.status, summary, ..as_pending(job) };
        engine.shared().outcomes.jobs.keep(job, result);
    }
}

fn as_pending(job: &NewJob) -> Job {
    Job {
        call_id: job.call_id.clone(),
        operation: job.operation.clone(),
        caller: job.caller.as_deref().map(ToOwned::to_owned),
        at: job.at,
        status: Status::Pending,
        progress: None,
        summary: None,
    }
}

/// The result of a call that goes on.
pub(crate) fn pending(call_id: &CallId, operation: &OperationId) -> CallResult {
    let mut result = ended(Status::Pending);
    result.summary = Some(format!("{operation} runs in the background as {call_id}"));
    result.meta.call_id = Some(call_id.clone());
    result.meta.operation = Some(operation.clone());
    result.meta.attempt = 1;
    result
}

fn failed(error: CallError) -> CallResult {
    CallResult { error: Some(error), ..ended(Status::Error) }
}

impl Engine {
    /// The calls in the background that the caller may see, those that ended as long as they are kept;
    /// the latest first.
    ///
    /// # Errors
    /// 1010 for a caller that is none, 9005 where the store cannot be read.
    pub async fn jobs(&self, params: JobsParams) -> Result<JobsReport, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        let known = match self.store() {
            Ok(store) => store.jobs(&params).await.map_err(|error| refused_by_store(&error))?,
            // Those of this engine are known without it.
            Err(_) => Vec::new(),
        };
        let mut jobs = self.shared().outcomes.jobs.listed(known, &params);
        jobs.retain(|job| self.may_see(profile.as_deref(), &job.operation.to_string()).is_ok());
        Ok(JobsReport { jobs })
    }

    /// Waits for a call in the background and gives its result: `pending` where the wait was too short.
    pub async fn jobs_wait(&self, params: JobsWaitParams) -> CallResult {
        self.waited(params).await.unwrap_or_else(failed)
    }

    async fn waited(&self, params: JobsWaitParams) -> Result<CallResult, CallError> {
        let profile = self.profile(params.caller.as_deref())?;
        let wait = params.timeout_ms.map_or(WAIT_DEFAULT, Duration::from_millis).min(WAIT_MAX);
        let ends = Instant::now() + wait;
        let call_id = params.call_id;
        let jobs = &self.shared().outcomes.jobs;
        if let Some((job, mut over)) = jobs.running(&call_id) {
            self.may_see(profile.as_deref(), &job.operation.to_string())?;
            // It is never sent anything: it closes.
            let closed = async { while over.changed().await.is_ok() {} };
            if timeout_at(ends, closed).await.is_err() {
                return Ok(pending(&call_id, &job.operation));
            }
        }
        if let Some((job, result)) = jobs.unkept(&call_id) {
            self.may_see(profile.as_deref(), &job.operation.to_string())?;
            return Ok(result);
        }
        let mut result = self.job_of_store(&call_id, profile.as_deref(), ends).await?;
        if !params.whole {
            self.paged(&mut result, a_moment_more(ends.into_std())).await;
        }
        Ok(result)
    }

    /// Whether a call is under way: here, or as a job of another process.
    pub(super) async fn runs(&self, call_id: &CallId) -> Result<bool, CallError> {
        let here = self.shared().calls.list().iter().any(|call| call.call_id == *call_id);
        if here || self.shared().outcomes.jobs.running(call_id).is_some() {
            return Ok(true);
        }
        let state = self.store()?.job(call_id).await.map_err(|error| refused_by_store(&error))?;
        Ok(state.is_some_and(|state| state.job.status == Status::Pending))
    }

    /// What a job that has ended gave, where that is kept; none where it is no job, either.
    pub(super) async fn result_of_job(&self, call_id: &CallId) -> Result<Option<CallResult>, CallError> {
        if let Some((_, result)) = self.shared().outcomes.jobs.unkept(call_id) {
            return Ok(Some(result));
        }
        let state = self.store()?.job(call_id).await.map_err(|error| refused_by_store(&error))?;
        state.and_then(|state| state.result).map(|result| read(call_id, &result)).transpose()
    }

    /// The result of a job that the store knows; one of another process is waited for.
    async fn job_of_store(
        &self,
        call_id: &CallId,
        profile: Option<&Profile>,
        ends: Instant,
    ) -> Result<CallResult, CallError> {
        let store = self.store()?;
        loop {
            let state = stored_by(Some(a_moment_more(ends.into_std())), store.job(call_id)).await;
            let state = state.map_err(|error| match error {
                StoreError::Late => not_looked_up(call_id),
                error => refused_by_store(&error),
            })?;
            let Some(state) = state else { return Err(unknown(call_id)) };
            self.may_see(profile, &state.job.operation.to_string())?;
            if let Some(result) = state.result {
                return read(call_id, &result);
            }
            if state.job.status != Status::Pending {
                let message = format!("the result of {call_id} is kept no more");
                return Err(CallError::new(ErrorKind::UnknownResult, message));
            }
            if Instant::now() >= ends {
                return Ok(pending(call_id, &state.job.operation));
            }
            sleep(OTHER_PROCESS_EVERY.min(ends - Instant::now())).await;
        }
    }
}

fn read(call_id: &CallId, result: &RawValue) -> Result<CallResult, CallError> {
    serde_json::from_str(result.get()).map_err(|error| {
        CallError::new(ErrorKind::UnknownResult, format!("the result of {call_id} cannot be read: {error}"))
    })
}

/// The error for a job that is not known here, while the record does not answer.
fn not_looked_up(call_id: &CallId) -> CallError {
    let message = format!("how the call {call_id} is could not be looked up in time");
    CallError::new(ErrorKind::TimedOut, message)
        .outcome(Outcome::Unknown)
        .hint("the disk is slow, or another process holds the record: wait again with more time")
}

fn unknown(call_id: &CallId) -> CallError {
    CallError::new(ErrorKind::UnknownCall, format!("no call {call_id} runs in the background, or did"))
        .hint("`plugd jobs` shows those that do; `plugd calls show` says how any other call ended")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_protocol::control::UnixMillis;

    fn job(id: usize) -> Job {
        let operation = OperationId::parse("report.make").expect("an operation");
        as_pending(&NewJob {
            call_id: CallId::new(format!("c{id:05}")),
            operation,
            caller: None,
            at: UnixMillis(1),
        })
    }

    #[test]
    fn so_many_jobs_run_at_once_and_no_more() {
        let jobs = Arc::new(Jobs::default());
        let mut places: Vec<Place> = (0..RUNNING_MAX).map(|id| jobs.enter(job(id)).expect("room")).collect();
        let refused = jobs.enter(job(RUNNING_MAX)).err().expect("no room");
        assert_eq!(refused.code, ErrorKind::Overloaded.code());
        places.pop();
        drop(jobs.enter(job(RUNNING_MAX)).expect("room again"));
        places.clear();
        assert_eq!(*jobs.running.borrow(), 0);
    }

    #[test]
    fn the_latest_progress_of_a_job_is_known() {
        let jobs = Arc::new(Jobs::default());
        jobs.progress(&job(1).call_id, r#"{"done":1}"#);
        let _place = jobs.enter(job(1)).expect("room");
        let long = "三".repeat(10_000);
        jobs.progress(
            &job(1).call_id,
            &format!(r#"{{"call_id":"c00001","done":1.5,"total":3,"message":"{long}"}}"#),
        );
        jobs.progress(&job(2).call_id, r#"{"done":9}"#);
        jobs.progress(&job(1).call_id, "no JSON");
        let listed = jobs.listed(Vec::new(), &JobsParams::default());
        let progress = listed[0].progress.as_ref().expect("it told");
        assert_eq!((progress.done, progress.total), (1.5, Some(3.0)));
        assert!(progress.message.as_ref().is_some_and(|message| message.chars().count() < 300));
    }

    #[test]
    fn what_the_store_knows_is_listed_once_and_the_latest_first() {
        let jobs = Arc::new(Jobs::default());
        let _places = [jobs.enter(job(2)).expect("room"), jobs.enter(job(4)).expect("room")];
        jobs.keep(Job { status: Status::Ok, ..job(3) }, ended(Status::Ok));
        let ids = |params: &JobsParams| {
            let listed = jobs.listed(vec![job(2), Job { status: Status::Error, ..job(1) }], params);
            listed.iter().map(|job| job.call_id.as_str().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids(&JobsParams::default()), ["c00004", "c00003", "c00002", "c00001"]);
        for number in 0..2 * UNKEPT_MAX {
            jobs.keep(job(number), ended(Status::Ok));
        }
        assert_eq!(jobs.with(|table| table.unkept.len()), UNKEPT_MAX);
    }
}
