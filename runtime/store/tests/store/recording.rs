//! Rows: all of them come back, by whatever they are asked for.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::control::{AnsweredFrom, CallsParams, CallsShowParams, Stage, StageTime, UnixMillis};
use plugd_protocol::error::ErrorKind;
use plugd_protocol::{CallError, CallId, PluginName, Status};
use plugd_store::{Called, DATA_MAX, GIVEN_MAX, Recorded, Retention, Store, StoreError, clipped};

use crate::{Place, ago, all, id_at, now, open, operation, row, row_at};

#[tokio::test]
async fn everything_about_a_call_reads_back_after_the_file_was_closed() {
    let place = Place::new();
    let store = place.open();
    let mut row = row("orders.query_status");
    let error = CallError::new(ErrorKind::PluginError, "no such\nticket");
    row.status = Status::Error;
    row.caller = Some(Arc::from("ci"));
    row.error = Some(Box::new(error.clone()));
    row.duration_us = 1_234;
    row.attempt = 2;
    row.plugin_version = Some(Arc::from("1.2.0"));
    row.generation = Some(3);
    row.session = Some(Arc::from("0193d1f0-7c2e-7aaa-8bbb-0123456789ab"));
    row.trace_id = Some("0af7651916cd43dd8448eb211c80319c".into());
    row.parent = Some(id_at(ago(9)));
    row.key = Some(Arc::from("order-17"));
    row.given = Some(r#"{"n":"三"}"#.into());
    row.run = Some(r#"{"n":3}"#.into());
    row.data = Some("[1,2]".into());
    row.answered_from = Some(AnsweredFrom::Key);
    row.argument_bytes = 11;
    row.data_bytes = 5;
    row.stages =
        vec![StageTime { stage: Stage::Resolved, at_us: 4 }, StageTime { stage: Stage::Started, at_us: 900 }];
    assert_eq!(store.record(row.clone()).await, Recorded::Queued);
    store.close().await;

    let detail = place.open().call(&row.call_id).await.expect("readable").expect("recorded");
    assert_eq!(detail.call.call_id, row.call_id);
    assert_eq!(detail.call.at, row.at);
    assert_eq!(detail.call.operation, "orders.query_status");
    assert_eq!(detail.call.caller.as_deref(), Some("ci"));
    assert_eq!((detail.call.status, detail.call.code), (Status::Error, Some(4001)));
    assert_eq!(detail.call.summary.as_deref(), Some("no such ticket"));
    assert_eq!((detail.call.duration_us, detail.call.attempt), (1_234, 2));
    assert_eq!(detail.plugin_version.as_deref(), Some("1.2.0"));
    assert_eq!(detail.generation, Some(3));
    assert_eq!(detail.session.as_deref(), row.session.as_deref());
    assert_eq!(detail.trace_id.as_deref(), row.trace_id.as_deref());
    assert_eq!(detail.parent, row.parent);
    assert_eq!(detail.key.as_deref(), Some("order-17"));
    assert_eq!(detail.given.as_deref(), row.given.as_deref());
    assert_eq!(detail.run.as_deref(), row.run.as_deref());
    assert_eq!(detail.data.as_deref(), Some("[1,2]"));
    assert_eq!(detail.error, Some(error));
    assert_eq!(detail.answered_from, Some(AnsweredFrom::Key));
    assert_eq!((detail.argument_bytes, detail.data_bytes), (11, 5));
    assert_eq!(detail.stages, row.stages);
}

#[tokio::test]
async fn a_call_that_has_just_ended_is_in_the_list() {
    let place = Place::new();
    let store = place.open();
    for _ in 0..5 {
        let row = row("a.b");
        assert_eq!(store.record_now(row.clone()), Recorded::Queued);
        assert_eq!(all(&store).await[0].call_id, row.call_id);
        assert!(store.call(&row.call_id).await.expect("readable").is_some());
    }
}

#[tokio::test]
async fn calls_are_found_by_each_thing_about_them_and_by_several_at_once() {
    let place = Place::new();
    let store = place.open();
    for index in 0..600_u64 {
        let id = ["mail.send", "mail.read", "forecast.now"][index as usize % 3];
        let mut row = row_at(id, ago(1_000 - index));
        row.status = if index % 5 == 0 { Status::Error } else { Status::Ok };
        row.caller = (index % 2 == 0).then(|| Arc::from("ci"));
        row.session = (index % 7 == 0).then(|| Arc::from("s1"));
        row.duration_us = index;
        store.record(row).await;
    }
    let mut written = row("a.b");
    written.called = Called::Unknown("wether.now".into());
    written.status = Status::Error;
    store.record(written).await;

    let asked = async |params: CallsParams| -> Vec<u64> {
        let params = CallsParams { limit: Some(1_000), ..params };
        store.calls(&params).await.expect("readable").iter().map(|call| call.duration_us).collect()
    };
    let expected =
        |holds: &dyn Fn(u64) -> bool| (0..600).rev().filter(|index| holds(*index)).collect::<Vec<u64>>();
    let plugin = || Some(PluginName::new("mail").expect("a name"));
    let none = CallsParams::default;

    assert_eq!(asked(CallsParams { plugin: plugin(), ..none() }).await, expected(&|index| index % 3 != 2));
    let params = CallsParams { operation: Some("mail.read".to_owned()), ..none() };
    assert_eq!(asked(params).await, expected(&|index| index % 3 == 1));
    let params = CallsParams { caller: Some("ci".to_owned()), status: Some(Status::Error), ..none() };
    assert_eq!(asked(params).await, expected(&|index| index % 10 == 0));
    let params = CallsParams { session: Some("s1".to_owned()), plugin: plugin(), ..none() };
    assert_eq!(asked(params).await, expected(&|index| index % 7 == 0 && index % 3 != 2));
    let params = CallsParams { since: Some(ago(900)), until: Some(ago(700)), plugin: plugin(), ..none() };
    let seconds = asked(params).await;
    assert!((130..=136).contains(&seconds.len()), "{} of 200 seconds", seconds.len());
    let params = CallsParams { operation: Some("wether.now".to_owned()), ..none() };
    assert_eq!(asked(params).await.len(), 1);
    assert!(asked(CallsParams { operation: Some("mail.nothing".to_owned()), ..none() }).await.is_empty());

    let few = CallsParams { limit: Some(3), plugin: plugin(), ..none() };
    let few: Vec<u64> =
        store.calls(&few).await.expect("readable").iter().map(|call| call.duration_us).collect();
    assert_eq!(few, [598, 597, 595]);
    assert_eq!(store.calls(&none()).await.expect("readable").len(), 50);
}

#[tokio::test]
async fn a_call_that_was_carried_on_has_one_row() {
    let place = Place::new();
    let store = place.open();
    let mut row = row("mail.send");
    row.status = Status::NeedsConfirmation;
    store.record(row.clone()).await;
    store.flush().await.expect("written");
    row.status = Status::Ok;
    row.data = Some("1".into());
    store.record(row.clone()).await;

    let calls = all(&store).await;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].status, Status::Ok);
    let stats = store.stats(&Default::default()).await.expect("readable");
    assert_eq!((stats[0].count, stats[0].ok_percent), (1, 100.0));
}

#[tokio::test]
async fn calls_whose_ids_hardly_differ_have_a_row_each() {
    let place = Place::new();
    let store = place.open();
    // All that a row's number is made from is the same in these.
    let ids: Vec<CallId> = (0..40_u32)
        .map(|index| {
            CallId::new(format!("{:08x}-{:04x}-7aaa-8bbb-cccc{index:08x}", now() >> 16, now() & 0xFFFF))
        })
        .collect();
    for id in &ids {
        let mut row = row("a.b");
        row.call_id = id.clone();
        row.key = Some(Arc::from(id.as_str()));
        store.record(row).await;
    }
    assert_eq!(all(&store).await.len(), ids.len());
    for id in ids {
        let detail = store.call(&id).await.expect("readable").expect("recorded");
        assert_eq!(detail.key.as_deref(), Some(id.as_str()));
    }
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_what_has_no_proper_id_is_counted() {
    let place = Place::new();
    let store = place.open();
    let mut long = row("a.b");
    long.given = Some("三".repeat(GIVEN_MAX).into());
    long.data = Some("x".repeat(DATA_MAX * 3).into());
    long.data_bytes = DATA_MAX as u64 * 3;
    long.summary = Some("y".repeat(10_000).into());
    let mut error = CallError::new(ErrorKind::InvalidArguments, "wrong");
    error.details = vec![
        plugd_protocol::error::ArgumentProblem {
            path: "/a".to_owned(),
            problem: "type".to_owned(),
            expected: "z".repeat(500),
            got: None,
            suggestion: None,
        };
        500
    ];
    long.error = Some(Box::new(error));
    store.record(long.clone()).await;
    let mut nameless = row("a.b");
    nameless.call_id = CallId::new("c1");
    store.record(nameless).await;

    let detail = store.call(&long.call_id).await.expect("readable").expect("recorded");
    assert_eq!(detail.given.as_deref(), Some(&*clipped(&"三".repeat(GIVEN_MAX), GIVEN_MAX)));
    assert_eq!(detail.data.map(|data| data.len()), Some(DATA_MAX));
    assert!(detail.call.summary.is_some_and(|summary| summary.len() < 1_000));
    assert!(detail.error.is_some_and(|error| error.code == 2001));
    assert_eq!(all(&store).await.len(), 1);
    assert_eq!(store.health().dropped, 1);
    let unknown = CallsShowParams { call_id: CallId::new("c1"), caller: None };
    assert!(store.call(&unknown.call_id).await.expect("readable").is_none());
}

#[tokio::test]
async fn a_closed_store_says_so_and_what_was_queued_is_written() {
    let place = Place::new();
    let store = place.open();
    for _ in 0..700 {
        store.record(row("a.b")).await;
    }
    store.close().await;
    assert_eq!(store.record(row("a.b")).await, Recorded::Dropped);
    assert_eq!(store.flush().await, Err(StoreError::Closed));
    assert_eq!(all(&place.open()).await.len(), 700);
}

#[tokio::test]
async fn the_last_handle_that_is_dropped_writes_what_was_queued() {
    let place = Place::new();
    let store = place.open();
    let other = store.clone();
    drop(store);
    other.record(row("a.b")).await;
    drop(other);
    assert_eq!(all(&place.open()).await.len(), 1);
}

#[test]
fn the_file_is_its_owners_alone_also_where_it_was_not() {
    let place = Place::new();
    let mode = || std::fs::metadata(place.path()).expect("there").mode() & 0o777;
    drop(place.open());
    assert_eq!(mode(), 0o600);
    let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(place.path(), open_to_all).expect("changed");
    drop(place.open());
    assert_eq!(mode(), 0o600);
}

#[tokio::test]
async fn two_stores_of_one_file_write_side_by_side() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    let write = async |store: &Store, id: &str| {
        for _ in 0..300 {
            store.record(row(id)).await;
            if store.health().dropped > 0 {
                panic!("dropped");
            }
        }
        store.flush().await.expect("written");
    };
    tokio::join!(write(&one, "a.one"), write(&other, "a.other"));
    assert_eq!(all(&one).await.len(), 600);
    let stats = other.stats(&Default::default()).await.expect("readable");
    assert_eq!(stats.iter().map(|stats| stats.count).sum::<u64>(), 600);
}

#[tokio::test]
async fn a_full_queue_makes_callers_wait_and_loses_nothing() {
    let place = Place::new();
    let store = place.open();
    let write = async || {
        for _ in 0..400 {
            let mut row = row("a.b");
            row.given = Some("g".repeat(GIVEN_MAX).into());
            assert_eq!(store.record(row).await, Recorded::Queued);
        }
    };
    tokio::join!(write(), write(), write(), write());
    let stats = store.stats(&Default::default()).await.expect("readable");
    assert_eq!(stats[0].count, 1_600);
    assert_eq!(store.health().dropped, 0);
}

#[tokio::test]
async fn a_row_that_finds_no_room_in_its_time_is_dropped_and_counted() {
    let place = Place::new();
    let store = place.open();
    store.flush().await.expect("written");
    let other = rusqlite::Connection::open(place.path()).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let large = || {
        let mut row = row("a.b");
        row.given = Some("g".repeat(GIVEN_MAX).into());
        row
    };
    // The first batch is with the thread, which cannot write it; the others fill the queue.
    while store.record_now(large()) == Recorded::Queued {}
    let before = store.health().dropped;
    let began = Instant::now();
    let until = began + Duration::from_millis(100);
    assert_eq!(store.record_until(large(), until).await, Recorded::Dropped);
    assert!((100..900).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_eq!(store.health().dropped, before + 1);
    other.execute_batch("COMMIT").expect("committed");
    store.flush().await.expect("written");
    let until = Instant::now() + Duration::from_secs(20);
    assert_eq!(store.record_until(large(), until).await, Recorded::Queued);
}

#[tokio::test]
async fn ages_are_those_of_arrival() {
    let place = Place::new();
    let store = place.open();
    let hour_ago = UnixMillis(now() - 3_600_000);
    store.record(row("a.now")).await;
    store.record(row_at("a.earlier", hour_ago)).await;
    let calls = all(&store).await;
    assert_eq!(calls.iter().map(|call| &*call.operation).collect::<Vec<_>>(), ["a.now", "a.earlier"]);
    assert_eq!(calls[1].at, hour_ago);
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error_and_nothing_hangs() {
    let place = Place::new();
    let missing = place.folder.path().join("missing").join("plugd.db");
    let error = Store::open(&missing, Retention::default()).err().expect("it cannot be opened");
    assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
    let _sound = open(&place.path());
    let _id = operation("a.b");
}
