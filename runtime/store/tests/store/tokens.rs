//! Tokens and kept results.

use std::time::Duration;

use plugd_protocol::control::UnixMillis;
use plugd_store::{Retention, Store, TokenState, WHOLE_MAX};
use rusqlite::Connection;

use crate::{Place, id_at, keyed, now, raw, row};

fn in_an_hour() -> UnixMillis {
    UnixMillis(now() + 3_600_000)
}

#[tokio::test]
async fn of_all_who_take_a_token_one_gets_it() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    one.put_token("t", &raw("[1]"), in_an_hour()).await.expect("written");
    assert!(
        matches!(other.token("t").await.expect("readable"), TokenState::Open { json, .. } if json.get() == "[1]")
    );
    let mut taken = tokio::task::JoinSet::new();
    for index in 0..20 {
        let store = if index % 2 == 0 { one.clone() } else { other.clone() };
        taken.spawn(async move { store.take_token("t", "answered").await.expect("written") });
    }
    let states = taken.join_all().await;
    assert_eq!(states.iter().filter(|state| matches!(state, TokenState::Open { .. })).count(), 1);
    let decided = |state: &&TokenState| matches!(state, TokenState::Decided(how) if how == "answered");
    assert_eq!(states.iter().filter(decided).count(), 19);
}

/// Whoever gives up waiting has no token, and neither has anybody who comes later.
#[tokio::test]
async fn a_token_that_was_not_waited_for_is_worth_nothing() {
    let place = Place::new();
    let store = place.open();
    store.flush().await.expect("written");
    let other = Connection::open(place.path()).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let (secret, expires) = (raw("\"GEHEIM\""), in_an_hour());
    let put = tokio::time::timeout(Duration::from_millis(100), store.put_token("t", &secret, expires));
    assert!(put.await.is_err(), "another one writes");
    other.execute_batch("COMMIT").expect("committed");
    drop(other);
    store.flush().await.expect("written");
    assert!(matches!(store.token("t").await.expect("readable"), TokenState::Unknown));
    assert!(matches!(store.take_token("t", "answered").await.expect("written"), TokenState::Unknown));
    store.close().await;
    assert!(!has(&bytes_of(&place), "GEHEIM"));
    // One that was waited for is there, however long ago it was asked for.
    let store = place.open();
    store.put_token("t", &secret, expires).await.expect("written");
    assert!(matches!(store.token("t").await.expect("readable"), TokenState::Open { .. }));
}

#[tokio::test]
async fn a_token_outlives_its_store_and_ends_with_its_time() {
    let place = Place::new();
    let store = place.open();
    let expires = in_an_hour();
    store.put_token("good", &raw("{}"), expires).await.expect("written");
    store.put_token("late", &raw("{}"), UnixMillis(now() - 1)).await.expect("written");
    store.close().await;
    let store = place.open();
    assert!(
        matches!(store.token("good").await.expect("readable"), TokenState::Open { expires: at, .. } if at == expires)
    );
    for unknown in ["late", "none"] {
        assert!(matches!(store.take_token(unknown, "answered").await.expect("written"), TokenState::Unknown));
    }
}

#[tokio::test]
async fn results_are_kept_whole_within_their_own_bytes() {
    let place = Place::new();
    let keep = Retention { age: Duration::from_secs(3_600), bytes: 4 * 1024 * 1024 };
    let (store, _) = Store::open(&place.path(), keep).expect("opened");
    let large = raw(&format!("\"{}\"", "x".repeat(400 * 1024)));
    let ids: Vec<_> = (0..4).map(|_| id_at(UnixMillis(now()))).collect();
    for id in &ids {
        store.keep_result(id, "a.b", &large).await.expect("written");
    }
    let kept = store.result(&ids[3]).await.expect("readable").expect("the latest is kept");
    assert_eq!((&*kept.operation, kept.data.get()), ("a.b", large.get()));
    assert!(store.result(&ids[0]).await.expect("readable").is_none(), "a quarter of 4 MiB is one MiB");
    // One that is larger than all that is allowed is kept while it is the latest.
    let larger = raw(&format!("\"{}\"", "y".repeat(3 * 1024 * 1024)));
    store.keep_result(&ids[0], "a.b", &larger).await.expect("written");
    assert!(store.result(&ids[0]).await.expect("readable").is_some());
    // The same call's result again takes the place of the first.
    store.keep_result(&ids[0], "a.c", &raw("1")).await.expect("written");
    let kept = store.result(&ids[0]).await.expect("readable").expect("kept");
    assert_eq!((&*kept.operation, kept.data.get()), ("a.c", "1"));
}

#[tokio::test]
async fn data_of_middling_size_is_kept_whole_beside_its_row() {
    let place = Place::new();
    let store = place.open();
    assert!(store.has_time_for_data());
    let (mut fits, mut too_large) = (row("a.b"), row("a.b"));
    fits.whole = Some(format!("\"{}\"", "x".repeat(WHOLE_MAX - 2)).into());
    too_large.whole = Some(format!("\"{}\"", "x".repeat(WHOLE_MAX)).into());
    for row in [&fits, &too_large] {
        store.record(row.clone()).await;
    }
    store.flush().await.expect("written");
    let kept = store.result(&fits.call_id).await.expect("readable").expect("kept");
    assert_eq!((&*kept.operation, Some(kept.data.get())), ("a.b", fits.whole.as_deref()));
    assert!(store.result(&too_large.call_id).await.expect("readable").is_none());
}

/// All the bytes there are of the store, but those of files that were moved aside.
fn bytes_of(place: &Place) -> Vec<u8> {
    let name = |end: &str| place.path().with_file_name(format!("plugd.db{end}"));
    ["", "-wal"].into_iter().flat_map(|end| std::fs::read(name(end)).unwrap_or_default()).collect()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test]
async fn nothing_is_left_in_the_file_of_what_a_used_token_carried_on() {
    let place = Place::new();
    let keep = Retention { age: Duration::from_secs(3_600), bytes: 32 * 1024 * 1024 };
    let (store, _) = Store::open(&place.path(), keep).expect("opened");
    // Large and small neighbours that come and go move it about within the file.
    let large = raw(&format!("\"{}\"", "x".repeat(900_000)));
    for round in 0..30 {
        let (token, filler) = (format!("t{round}"), "f".repeat(round * 90));
        for _ in 0..round % 4 {
            store.keep_result(&id_at(UnixMillis(now())), "a.b", &large).await.expect("written");
        }
        let secret = raw(&format!("{{\"given\":\"GEHEIM{round}\",\"known\":\"GEHEIM{round}{filler}\"}}"));
        store.put_token(&token, &secret, in_an_hour()).await.expect("written");
        for number in 0..round % 7 {
            let key = keyed(&format!("k{round}-{number}"));
            store.begin(&key).await.expect("written");
            store.answer(&key, &raw(&format!("\"{}\"", "k".repeat(200 * number)))).await.expect("written");
        }
    }
    for round in 0..30 {
        let taken = store.take_token(&format!("t{round}"), "answered").await.expect("written");
        assert!(matches!(taken, TokenState::Open { .. }));
        store.keep_result(&id_at(UnixMillis(now())), "a.b", &large).await.expect("written");
    }
    // Another process that has the file open keeps the log from being removed.
    let other = place.open();
    store.close().await;
    assert!(!has(&bytes_of(&place), "GEHEIM"));
    drop(other);
    assert!(!has(&bytes_of(&place), "GEHEIM"));
}
