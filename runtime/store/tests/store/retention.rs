//! What is over goes, and the file does not outgrow its measure.

use std::time::Duration;

use plugd_store::{KeyState, Retention, Store};

use crate::{Place, all, keyed, raw, row};

#[tokio::test]
async fn the_file_stays_within_its_bytes_and_keeps_the_latest() {
    let place = Place::new();
    let keep = Retention { bytes: 8 * 1024 * 1024, ..Retention::default() };
    let (store, _) = Store::open(&place.path(), keep).expect("opened");
    let call = keyed("k");
    store.begin(&call).await.expect("written");
    store.answer(&call, &raw("1")).await.expect("written");
    let mut latest = row("a.b");
    for _ in 0..12_000 {
        let mut next = row("a.b");
        next.given = Some("g".repeat(1_000).into());
        latest = next.clone();
        store.record(next).await;
    }
    store.flush().await.expect("written");
    let bytes = std::fs::metadata(place.path()).expect("there").len();
    assert!(bytes <= keep.bytes, "{bytes} bytes");
    let calls = all(&store).await;
    assert_eq!(calls[0].call_id, latest.call_id);
    assert!(calls.len() == 1_000, "{} rows", calls.len());
    // Keys are kept as long as rows.
    assert!(matches!(store.key(&call).await.expect("readable"), KeyState::New));
    assert_eq!(store.health().dropped, 0);
}

#[tokio::test]
async fn rows_that_are_too_old_are_no_hindrance() {
    let place = Place::new();
    let keep = Retention { age: Duration::ZERO, ..Retention::default() };
    let (store, _) = Store::open(&place.path(), keep).expect("opened");
    store.record(row("a.b")).await;
    // Until the next sweep they are there.
    assert_eq!(all(&store).await.len(), 1);
}
