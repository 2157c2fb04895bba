//! The store on real files: what is written comes back, whatever happens in between.

mod damage;
mod jobs;
mod keys;
mod many;
mod processes;
mod recording;
mod retention;
mod statistics;
mod tokens;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plugd_protocol::control::{CallRow, CallsParams, UnixMillis};
use plugd_protocol::{CallId, OperationId, Status};
use plugd_store::{Called, KeyedCall, Retention, Row, Store};
use serde_json::value::RawValue;
use tempfile::TempDir;
use uuid::{NoContext, Timestamp, Uuid};

/// A folder for a store's file.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("plugd.db")
    }

    /// Opens a store whose file is sound.
    fn open(&self) -> Store {
        open(&self.path())
    }

    /// The names of the files there are, without those of SQLite and of ours beside the store's.
    fn damaged_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("readable");
        let names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
        names
            .filter(|name| name.contains("corrupt") && !name.ends_with("-wal") && !name.ends_with("-shm"))
            .collect()
    }
}

fn open(path: &Path) -> Store {
    let (store, moved_aside) = Store::open(path, Retention::default()).expect("the store can be opened");
    assert_eq!(moved_aside, None);
    store
}

fn operation(id: &str) -> OperationId {
    OperationId::parse(id).expect("an operation")
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("before the year 500 million")
}

fn ago(seconds: u64) -> UnixMillis {
    UnixMillis(now() - seconds * 1000)
}

/// An id of a call that arrived then.
fn id_at(at: UnixMillis) -> CallId {
    let nanos = u32::try_from(at.0 % 1000).expect("below a thousand") * 1_000_000;
    CallId::new(Uuid::new_v7(Timestamp::from_unix(NoContext, at.0 / 1000, nanos)).to_string())
}

/// A call that arrived then, and went well unless its test says otherwise.
fn row_at(id: &str, at: UnixMillis) -> Row {
    Row::new(id_at(at), at, Called::Operation(operation(id)), Status::Ok)
}

/// A call that arrives now, after all others of this test.
fn row(id: &str) -> Row {
    let call_id = Uuid::now_v7();
    let at = UnixMillis(u64::try_from(call_id.as_u128() >> 80).expect("48 bits"));
    Row::new(CallId::new(call_id.to_string()), at, Called::Operation(operation(id)), Status::Ok)
}

fn keyed(key: &str) -> KeyedCall {
    let at = UnixMillis(now());
    KeyedCall {
        caller: None,
        key: Arc::from(key),
        operation: operation("mail.send"),
        arguments_digest: [7; 32],
        call_id: id_at(at),
        at,
        idempotent: false,
    }
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

async fn all(store: &Store) -> Vec<CallRow> {
    store.calls(&CallsParams { limit: Some(1_000), ..CallsParams::default() }).await.expect("readable")
}

/// Waits until something holds, at most half a minute.
async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}
