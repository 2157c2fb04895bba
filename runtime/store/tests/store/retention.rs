//! What is over goes, and the file does not outgrow its measure.

use std::time::Duration;

use plugd_store::{KeyState, Retention, Store};

use crate::{Place, ago, all, keyed, raw, row, row_at};

#[tokio::test]
async fn the_file_stays_within_its_bytes_and_keeps_the_latest() {
    let place = Place::new();
    let keep = Retention { bytes: 8 * 1024 * 1024, ..Retention::default() };
    let (store, _) = Store::open(&place.path(), keep).expect("opened");
    let call = keyed("k");
    store.begin(&call).await.expect("written");
    store.answer(&call, &raw("1")).await.expect("written");
    let mut latest = row("a.b");
    for _ in 0..20_000 {
        let mut next = row("a.b");
        next.given = Some("g".repeat(500).into());
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
async fn what_is_too_old_goes_with_the_next_end_of_a_store() {
    let place = Place::new();
    let keep = Retention { age: Duration::ZERO, ..Retention::default() };
    let (store, _) = Store::open(&place.path(), keep).expect("opened");
    store.record(row_at("a.b", ago(60))).await;
    assert_eq!(all(&store).await.len(), 1);
    store.close().await;
    assert!(all(&place.open()).await.is_empty());
}
