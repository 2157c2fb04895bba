//! Keys: one call for each, whoever comes how often.

use std::sync::Arc;
use std::time::Duration;

use plugd_protocol::control::CallsStatsParams;
use plugd_protocol::{Outcome, Status};
use plugd_store::{Called, KeyState, KeyedCall, Retention, Row, Store, StoreError};
use rusqlite::Connection;

use crate::{Place, all, eventually, id_at, keyed, now, operation, raw, row};

/// The same call again, under a new id.
fn again(call: &KeyedCall) -> KeyedCall {
    let at = plugd_protocol::control::UnixMillis(now());
    KeyedCall { call_id: id_at(at), at, ..call.clone() }
}

#[tokio::test]
async fn a_key_has_one_call_and_a_repeat_gets_its_answer() {
    let place = Place::new();
    let store = place.open();
    let call = keyed("k");
    assert!(matches!(store.key(&call).await.expect("readable"), KeyState::New));
    assert!(matches!(store.begin(&call).await.expect("written"), KeyState::New));
    let running = store.begin(&again(&call)).await.expect("written");
    assert!(matches!(running, KeyState::Running { call_id } if call_id == call.call_id));
    store.answer(&call, &raw(r#"{"status":"ok"}"#)).await.expect("written");
    store.close().await;

    let store = place.open();
    for state in [store.key(&again(&call)).await, store.begin(&again(&call)).await] {
        let KeyState::Answered { call_id, result } = state.expect("readable") else { panic!("not answered") };
        assert_eq!((call_id, result.get()), (call.call_id.clone(), r#"{"status":"ok"}"#));
    }
}

#[tokio::test]
async fn of_many_at_once_one_runs() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    let calls: Vec<KeyedCall> = (0..20).map(|_| again(&keyed("k"))).collect();
    let mut begun = tokio::task::JoinSet::new();
    for (index, call) in calls.into_iter().enumerate() {
        let store = if index % 2 == 0 { one.clone() } else { other.clone() };
        begun.spawn(async move { store.begin(&call).await.expect("written") });
    }
    let states = begun.join_all().await;
    assert_eq!(states.iter().filter(|state| matches!(state, KeyState::New)).count(), 1);
    assert!(states.iter().all(|state| matches!(state, KeyState::New | KeyState::Running { .. })));
}

#[tokio::test]
async fn another_call_under_the_same_key_is_refused() {
    let place = Place::new();
    let store = place.open();
    let call = keyed("k");
    store.begin(&call).await.expect("written");
    let arguments = KeyedCall { arguments_digest: [8; 32], ..again(&call) };
    let other = KeyedCall { operation: operation("mail.read"), ..again(&call) };
    for conflict in [arguments, other] {
        let state = store.begin(&conflict).await.expect("readable");
        assert!(matches!(state, KeyState::Conflict { call_id } if call_id == call.call_id));
    }
    // Another caller's keys are others.
    let callers = KeyedCall { caller: Some(Arc::from("ci")), ..again(&call) };
    assert!(matches!(store.begin(&callers).await.expect("written"), KeyState::New));
}

#[tokio::test]
async fn a_key_whose_call_did_not_run_is_free_again() {
    let place = Place::new();
    let store = place.open();
    let call = keyed("k");
    store.begin(&call).await.expect("written");
    store.forget_key(&call).await.expect("written");
    let next = again(&call);
    assert!(matches!(store.begin(&next).await.expect("written"), KeyState::New));
    // The first has it no more, and cannot take it from the second.
    store.forget_key(&call).await.expect("written");
    store.answer(&call, &raw("1")).await.expect("written");
    assert!(
        matches!(store.key(&again(&call)).await.expect("readable"), KeyState::Running { call_id } if call_id == next.call_id)
    );
}

#[tokio::test]
async fn an_abandoned_call_has_an_unknown_outcome_unless_it_may_run_again() {
    let place = Place::new();
    let store = place.open();
    let call = keyed("k");
    store.begin(&call).await.expect("written");
    store.abandon_key(&call);
    store.flush().await.expect("written");
    let state = store.begin(&again(&call)).await.expect("readable");
    assert!(
        matches!(state, KeyState::OutcomeUnknown { call_id, at } if call_id == call.call_id && at == call.at)
    );
    let harmless = KeyedCall { idempotent: true, ..again(&call) };
    assert!(matches!(store.begin(&harmless).await.expect("written"), KeyState::New));
    assert!(matches!(store.begin(&again(&call)).await.expect("readable"), KeyState::Running { .. }));
}

#[tokio::test]
async fn a_call_whose_store_is_gone_has_an_unknown_outcome() {
    let place = Place::new();
    let call = keyed("k");
    let store = place.open();
    store.begin(&call).await.expect("written");
    let other = place.open();
    assert!(matches!(other.key(&again(&call)).await.expect("readable"), KeyState::Running { .. }));
    drop(store);
    assert!(matches!(other.key(&again(&call)).await.expect("readable"), KeyState::OutcomeUnknown { .. }));
}

#[tokio::test]
async fn an_answer_that_had_to_go_does_not_free_its_key() {
    let place = Place::new();
    let keep = Retention { bytes: 4 * 1024 * 1024, ..Retention::default() };
    let (store, _) = Store::open(&place.path(), keep).expect("opened");
    let large = raw(&format!("\"{}\"", "x".repeat(200 * 1024)));
    let calls: Vec<KeyedCall> = (0..8).map(|index| keyed(&format!("k{index}"))).collect();
    for call in &calls {
        // Rows keep their keys from being removed as too old.
        store.record(row("mail.send")).await;
        store.begin(call).await.expect("written");
        store.answer(call, &large).await.expect("written");
    }
    let first = store.begin(&again(&calls[0])).await.expect("readable");
    assert!(matches!(first, KeyState::Forgotten { call_id, .. } if call_id == calls[0].call_id));
    assert!(matches!(store.begin(&again(&calls[7])).await.expect("readable"), KeyState::Answered { .. }));
}

/// The row of a call that begins.
fn row_of(call: &KeyedCall) -> Row {
    let called = Called::Operation(call.operation.clone());
    let mut row = Row::new(call.call_id.clone(), call.at, called, Status::Pending);
    (row.caller, row.key) = (call.caller.clone(), Some(Arc::clone(&call.key)));
    row.given = Some("{\"to\":\"ann\"}".into());
    row
}

async fn counted(store: &Store) -> u64 {
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    stats.iter().map(|stats| stats.count).sum()
}

#[tokio::test]
async fn a_call_with_a_key_has_a_row_from_its_beginning_which_counts_when_it_ends() {
    let place = Place::new();
    let store = place.open();
    let call = keyed("k");
    store.begin_with(&call, Some(row_of(&call)), None).await.expect("written");
    let begun = store.call(&call.call_id).await.expect("readable").expect("it has a row");
    assert_eq!((begun.call.status, begun.key.as_deref()), (Status::Pending, Some("k")));
    assert_eq!(counted(&store).await, 0);
    store.record(Row { status: Status::Ok, ..row_of(&call) }).await;
    let ended = store.call(&call.call_id).await.expect("readable").expect("it has a row");
    assert_eq!((ended.call.status, all(&store).await.len(), counted(&store).await), (Status::Ok, 1, 1));
    // A beginning that is written late does not take the place of the end.
    let late = KeyedCall { key: "late".into(), ..call.clone() };
    store.begin_with(&late, Some(row_of(&late)), None).await.expect("written");
    let ended = store.call(&call.call_id).await.expect("readable").expect("it has a row");
    assert_eq!((ended.call.status, counted(&store).await), (Status::Ok, 1));
}

#[tokio::test]
async fn a_call_whose_store_is_gone_before_its_end_has_an_unknown_outcome_or_that_of_its_answer() {
    let place = Place::new();
    let store = place.open();
    let (lost, answered) = (keyed("lost"), keyed("answered"));
    for call in [&lost, &answered] {
        store.begin_with(call, Some(row_of(call)), None).await.expect("written");
    }
    let answer = raw(
        r#"{"status":"ok","summary":"sent","meta":{"attempt":1,"queue_us":0,"run_us":5,"argument_bytes":0,"data_bytes":0}}"#,
    );
    store.answer(&answered, &answer).await.expect("written");
    let other = place.open();
    let runs = other.call(&lost.call_id).await.expect("readable").expect("it has a row");
    assert_eq!(runs.call.status, Status::Pending);
    drop(store);

    let ended = other.call(&lost.call_id).await.expect("readable").expect("it has a row");
    assert_eq!((ended.call.code, ended.given.as_deref()), (Some(6011), Some("{\"to\":\"ann\"}")));
    assert_eq!(ended.error.map(|error| error.outcome), Some(Outcome::Unknown));
    let sent = other.call(&answered.call_id).await.expect("readable").expect("it has a row");
    assert_eq!((sent.call.status, sent.call.summary.as_deref()), (Status::Ok, Some("sent")));
    assert_eq!(counted(&other).await, 2);
}

#[tokio::test]
async fn a_key_that_is_not_got_in_time_is_free_again() {
    let place = Place::new();
    let store = place.open();
    let held = Connection::open(place.path()).expect("opened");
    held.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let call = keyed("k");
    let begun = store.begin_with(&call, Some(row_of(&call)), Some(Duration::from_millis(50))).await;
    assert!(matches!(begun, Err(StoreError::Late)), "{begun:?}");
    held.execute_batch("ROLLBACK").expect("ended");
    eventually("it is free", async || {
        matches!(store.begin(&again(&call)).await, Ok(KeyState::New)).then_some(())
    })
    .await;
}
