//! Jobs: each has an end, also where its store has met its own first.

use std::sync::Arc;

use plugd_protocol::control::{JobsParams, UnixMillis};
use plugd_protocol::{CallResult, Outcome, Status};
use plugd_store::{Called, NewJob, Row};

use crate::{Place, all, id_at, now, operation, raw};

fn job() -> NewJob {
    let at = UnixMillis(now());
    NewJob { call_id: id_at(at), operation: operation("reports.build"), caller: Some(Arc::from("ci")), at }
}

#[tokio::test]
async fn a_job_is_listed_while_it_runs_and_after_it_has_ended() {
    let place = Place::new();
    let store = place.open();
    let (first, second) = (job(), job());
    store.put_job(&first).await.expect("written");
    store.put_job(&second).await.expect("written");
    store.finish_job(&first.call_id, Status::Ok, Some("built"), &raw("{}")).await.expect("written");

    let jobs = store.jobs(&JobsParams::default()).await.expect("readable");
    assert_eq!(jobs.len(), 2);
    let running = store.jobs(&JobsParams { running: true, caller: None }).await.expect("readable");
    assert_eq!(running.len(), 1);
    assert_eq!((&running[0].call_id, running[0].status), (&second.call_id, Status::Pending));
    assert_eq!(running[0].caller.as_deref(), Some("ci"));

    let ended = store.job(&first.call_id).await.expect("readable").expect("known");
    assert_eq!((ended.job.status, ended.job.summary.as_deref()), (Status::Ok, Some("built")));
    assert_eq!(ended.result.expect("kept").get(), "{}");
    assert!(store.job(&second.call_id).await.expect("readable").expect("known").result.is_none());
    assert!(store.job(&id_at(UnixMillis(now()))).await.expect("readable").is_none());
}

#[tokio::test]
async fn a_job_whose_store_is_gone_ends_with_an_unknown_outcome() {
    let place = Place::new();
    let job = job();
    let store = place.open();
    store.put_job(&job).await.expect("written");
    store.job_is_handed_over(&job.call_id).await.expect("written");
    let other = place.open();
    assert_eq!(other.jobs(&JobsParams { running: true, caller: None }).await.expect("readable").len(), 1);
    drop(store);

    assert!(other.jobs(&JobsParams { running: true, caller: None }).await.expect("readable").is_empty());
    let ended = other.job(&job.call_id).await.expect("readable").expect("known");
    assert_eq!(ended.job.status, Status::Error);
    let result: CallResult = serde_json::from_str(ended.result.expect("kept").get()).expect("a result");
    assert_eq!(result.error.map(|error| error.code), Some(6011));
    assert_eq!(result.meta.call_id, Some(job.call_id.clone()));
    let calls = all(&other).await;
    assert_eq!((calls.len(), &calls[0].call_id, calls[0].code), (1, &job.call_id, Some(6011)));
}

#[tokio::test]
async fn a_job_that_was_never_handed_over_has_not_run() {
    let place = Place::new();
    let job = job();
    let store = place.open();
    let mut row =
        Row::new(job.call_id.clone(), job.at, Called::Operation(job.operation.clone()), Status::Pending);
    row.given = Some("{\"a\":1}".into());
    row.caller = job.caller.clone();
    store.put_job_with(&job, Some(row)).await.expect("written");
    drop(store);

    let store = place.open();
    let ended = store.job(&job.call_id).await.expect("readable").expect("known");
    let result: CallResult = serde_json::from_str(ended.result.expect("kept").get()).expect("a result");
    assert_eq!(result.error.map(|error| error.outcome), Some(Outcome::NotRun));
    let call = store.call(&job.call_id).await.expect("readable").expect("it has a row");
    assert_eq!((call.call.status, call.given.as_deref()), (Status::Error, Some("{\"a\":1}")));
    assert_eq!(call.error.map(|error| error.outcome), Some(Outcome::NotRun));
}
