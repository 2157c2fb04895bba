//! Damage: a broken file is moved aside, a newer one left alone, a full disk said.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt};

use plugd_store::{KeyState, KeyedCall, Recorded, Retention, Store, StoreError};

use crate::{Place, all, eventually, keyed, row};

/// A closed file with some rows.
async fn filled(place: &Place, rows: usize) {
    let store = place.open();
    for index in 0..rows {
        let mut row = row("a.b");
        row.given = Some(format!("{index}{}", "g".repeat(500)).into());
        store.record(row).await;
    }
    store.close().await;
}

fn overwrite(place: &Place, from: u64, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(place.path()).expect("there");
    file.write_all_at(bytes, from).expect("written");
}

#[tokio::test]
async fn what_is_no_database_is_moved_aside_and_a_new_one_begun() {
    let place = Place::new();
    fs::write(place.path(), "this is no database at all, and long enough to be taken for one".repeat(100))
        .expect("written");
    let (store, moved) = Store::open(&place.path(), Retention::default()).expect("a new one is begun");
    let moved = moved.expect("the old one was moved");
    assert!(fs::read_to_string(&moved.to).expect("nothing is destroyed").starts_with("this is no database"));
    assert!(!moved.reason.is_empty());
    assert_eq!(store.health().moved_aside, Some(moved));
    assert_eq!(store.record(row("a.b")).await, Recorded::Queued);
    assert_eq!(all(&store).await.len(), 1);
}

#[tokio::test]
async fn a_malformed_page_is_found_when_it_is_opened() {
    let place = Place::new();
    filled(&place, 200).await;
    // Everything but the first page, which says what the file is.
    let length = fs::metadata(place.path()).expect("there").len();
    overwrite(&place, 4096, &vec![0xA5; usize::try_from(length).expect("small") - 4096]);
    let (store, moved) = Store::open(&place.path(), Retention::default()).expect("a new one is begun");
    assert!(moved.is_some());
    store.record(row("a.b")).await;
    assert_eq!(all(&store).await.len(), 1);
    assert_eq!(place.damaged_files().len(), 1);
}

#[tokio::test]
async fn damage_that_a_question_meets_is_answered_with_a_new_file() {
    let place = Place::new();
    filled(&place, 200).await;
    let store = place.open();
    let length = fs::metadata(place.path()).expect("there").len();
    overwrite(&place, 0, &vec![0xA5; usize::try_from(length).expect("small")]);
    assert!(all(&store).await.is_empty());
    assert!(store.health().moved_aside.is_some());
    store.record(row("c.d")).await;
    assert_eq!(all(&store).await.len(), 1);
    assert_eq!(place.damaged_files().len(), 1);
}

#[tokio::test]
async fn damage_that_a_row_meets_is_answered_with_a_new_file_that_has_the_row() {
    let place = Place::new();
    // Far more than SQLite has in memory after it has looked the file over.
    filled(&place, 12_000).await;
    let store = place.open();
    let length = fs::metadata(place.path()).expect("there").len();
    overwrite(&place, 4096, &vec![0xA5; usize::try_from(length).expect("small") - 4096]);
    eventually("the damage shows", async || {
        assert_eq!(store.record(row("c.d")).await, Recorded::Queued);
        store.flush().await.expect("written");
        store.health().moved_aside
    })
    .await;
    store.begin(&keyed("k")).await.expect("written");
    let calls = all(&store).await;
    assert!(!calls.is_empty() && calls.iter().all(|call| call.operation == "c.d"), "{calls:?}");
    assert_eq!(store.health().dropped, 0);
    assert_eq!(place.damaged_files().len(), 1);
}

#[tokio::test]
async fn a_store_follows_another_that_has_moved_the_file_aside() {
    let place = Place::new();
    filled(&place, 200).await;
    let store = place.open();
    let length = fs::metadata(place.path()).expect("there").len();
    overwrite(&place, 0, &vec![0xA5; usize::try_from(length).expect("small")]);
    let (other, moved) = Store::open(&place.path(), Retention::default()).expect("a new one is begun");
    assert!(moved.is_some());
    let seen = eventually("both write to one file", async || {
        store.record(row("c.d")).await;
        store.flush().await.expect("written");
        let calls = all(&other).await;
        (!calls.is_empty()).then_some(calls)
    })
    .await;
    assert!(seen.iter().all(|call| call.operation == "c.d"));
    assert_eq!(place.damaged_files().len(), 1);
}

#[tokio::test]
async fn a_file_that_is_deleted_under_the_store_is_made_again() {
    let place = Place::new();
    let store = place.open();
    store.record(row("a.b")).await;
    store.flush().await.expect("written");
    fs::remove_file(place.path()).expect("deleted");
    let why = store.health().begun_anew.expect("whoever asks is told at once");
    assert!(why.contains("deleted"), "{why}");
    eventually("rows are in a file again", async || {
        store.record(row("c.d")).await;
        store.flush().await.expect("written");
        place.path().exists().then_some(())
    })
    .await;
    store.record(row("e.f")).await;
    store.close().await;
    assert!(all(&place.open()).await.iter().any(|call| call.operation == "e.f"));
}

#[tokio::test]
async fn a_newer_file_is_refused_and_left_as_it_is() {
    let place = Place::new();
    filled(&place, 3).await;
    // Where SQLite keeps the number of the form.
    overwrite(&place, 60, &99_u32.to_be_bytes());
    let before = fs::read(place.path()).expect("readable");
    let error = Store::open(&place.path(), Retention::default()).err().expect("refused");
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(error.to_string().contains("newer plugd"), "{error}");
    assert_eq!(fs::read(place.path()).expect("readable"), before);
    assert!(place.damaged_files().is_empty());
}

#[tokio::test]
async fn a_file_system_that_takes_nothing_is_said_and_nothing_hangs() {
    let place = Place::new();
    let store = place.open();
    store.record(row("a.b")).await;
    store.flush().await.expect("written");
    // A name that cannot be made again stands for a disk that takes nothing; root may write anywhere.
    fs::remove_file(place.path()).expect("deleted");
    fs::create_dir(place.path()).expect("made");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).expect("changed");
    eventually("it says that it does not record", async || {
        let recorded = store.record(row("a.b")).await;
        let flushed = store.flush().await;
        let health = store.health();
        (!health.recording && flushed.is_err()).then_some((recorded, health))
    })
    .await;
    let health = store.health();
    assert!(health.reason.is_some() && health.dropped > 0, "{health:?}");
    assert!(matches!(store.begin(&keyed("k")).await, Err(StoreError::Unusable { .. })));

    fs::remove_dir(place.path()).expect("removed");
    eventually("it records again", async || {
        store.record(row("c.d")).await;
        let _may_fail = store.flush().await;
        store.health().recording.then_some(())
    })
    .await;
    store.record(row("e.f")).await;
    assert!(all(&store).await.iter().any(|call| call.operation == "e.f"));
}

/// What is deleted is noticed by the next call, so that its key is kept where others look for it.
#[tokio::test]
async fn a_key_that_is_taken_after_all_files_were_deleted_is_in_the_new_one() {
    let place = Place::new();
    let store = place.open();
    store.begin(&keyed("before")).await.expect("written");
    for end in ["", "-wal", "-shm", ".owners"] {
        fs::remove_file(place.path().with_file_name(format!("plugd.db{end}"))).expect("deleted");
    }
    let key = keyed("k");
    assert!(matches!(store.begin(&key).await, Ok(KeyState::New)));
    let other = place.open();
    let again = KeyedCall { call_id: keyed("k").call_id, ..key };
    let state = other.begin(&again).await;
    assert!(matches!(state, Ok(KeyState::Running { .. })), "its owner is known to live: {state:?}");
    assert!(store.health().begun_anew.is_some() && store.health().recording);
}

#[tokio::test]
async fn a_file_that_was_emptied_counts_as_damaged() {
    let place = Place::new();
    filled(&place, 20).await;
    OpenOptions::new().write(true).truncate(true).open(place.path()).expect("emptied");
    let (store, moved) = Store::open(&place.path(), Retention::default()).expect("a new one is begun");
    assert!(moved.is_some(), "it had been filled before");
    store.record(row("a.b")).await;
    store.flush().await.expect("written");
    // The same under a store that runs. A process of its own does it, as the locks of SQLite go with a file that is closed.
    let emptied = std::process::Command::new("truncate").args(["-s", "0"]).arg(place.path()).status();
    assert!(emptied.expect("coreutils").success());
    assert!(store.health().begun_anew.is_some());
    store.record(row("c.d")).await;
    let calls = all(&store).await;
    assert_eq!((calls.len(), &*calls[0].operation), (1, "c.d"));
    assert!(store.health().moved_aside.is_some());
    assert_eq!(place.damaged_files().len(), 2);
}

/// A disk that was full when the file was to be made leaves an empty one: that is no damage.
#[tokio::test]
async fn an_empty_file_that_never_had_anything_in_it_is_filled() {
    let place = Place::new();
    fs::write(place.path(), "").expect("made");
    place.open().close().await;
    fs::remove_file(place.path()).expect("deleted");
    place.open().close().await;
    assert!(place.damaged_files().is_empty());
}
