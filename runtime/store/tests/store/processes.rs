//! Several processes, and what a killed one leaves.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plugd_protocol::control::{CallsStatsParams, JobsParams};
use plugd_store::{KeyState, KeyedCall, NewJob, Store, StoreError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{Place, all, eventually, id_at, keyed, now, open, operation, row};

/// Set in a process that is to do something for a test.
const PART: &str = "PLUGD_STORE_TEST_PART";
const PATH: &str = "PLUGD_STORE_TEST_PATH";

/// Rows that the other process writes.
const ROWS: usize = 500;

/// The signal of a file that grows beyond its limit.
const SIGXFSZ: i32 = 25;

/// Where the disk is full, in bytes of one file.
const FULL_AT: u64 = 400 * 1024;

/// Where not even one page fits.
const FULL_AT_ONCE: u64 = 1024;

/// A process of its own that plays a part, until it is killed or told to go.
struct Other {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(part: &str, path: &Path) -> Other {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "processes::another_process", "--nocapture"])
            .env(PART, part)
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let said = BufReader::new(child.stdout.take().expect("piped"));
        Other { child, said }
    }

    fn await_said(&mut self, wanted: &str) {
        let mut line = String::new();
        while self.said.read_line(&mut line).expect("readable") > 0 {
            if line.trim_end().ends_with(wanted) {
                return;
            }
            line.clear();
        }
        panic!("the other process ended without {wanted:?}");
    }

    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // Told to go by the end of its stdin.
        drop(self.child.stdin.take());
        let _gone = self.child.wait();
    }
}

/// What the other process does; without a part it does nothing.
#[tokio::test]
async fn another_process() {
    let (Ok(part), Some(path)) = (std::env::var(PART), std::env::var_os(PATH)) else { return };
    let store = open(Path::new(&path));
    match &*part {
        "calls" => play_calls(&store).await,
        "full" => play_full(&store).await,
        "rows" => {
            say("begins");
            for _ in 0..ROWS {
                store.record(row("other.row")).await;
            }
            store.flush().await.expect("written");
            say("written");
        }
        other => panic!("no part: {other}"),
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("readable");
}

/// Begins three calls with keys, answers one, and begins a job.
async fn play_calls(store: &Store) {
    store.begin(&keyed("answered")).await.expect("written");
    let answered = keyed("answered_at_once");
    store.begin(&answered).await.expect("written");
    store.answer(&answered, &crate::raw("42")).await.expect("written");
    store.begin(&KeyedCall { idempotent: true, ..keyed("harmless") }).await.expect("written");
    let at = plugd_protocol::control::UnixMillis(now());
    let job = NewJob { call_id: id_at(at), operation: operation("reports.build"), caller: None, at };
    store.put_job(&job).await.expect("written");
    store.job_is_handed_over(&job.call_id).await.expect("written");
    say("ready");
}

/// Records until the disk takes no more, then has room again.
async fn play_full(store: &Store) {
    // Beyond a limit the kernel sends this; with somebody who listens it says "file too large" instead.
    let signal = tokio::signal::unix::SignalKind::from_raw(SIGXFSZ);
    let _heard = tokio::signal::unix::signal(signal).expect("listened for");
    let limit = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(FULL_AT), ..limit }).expect("limited");
    eventually("the disk is full", async || {
        let mut row = row("a.b");
        row.given = Some("g".repeat(8_000).into());
        store.record(row).await;
        let flushed = store.flush().await;
        (flushed.is_err() && !store.health().recording).then_some(())
    })
    .await;
    setrlimit(Resource::Fsize, Rlimit { current: Some(FULL_AT_ONCE), ..limit }).expect("limited");
    let error = store.begin(&keyed("k")).await.expect_err("it cannot be written");
    assert!(matches!(error, StoreError::Unusable { .. }), "{error}");
    assert!(!all(store).await.is_empty(), "what was written can be read");
    setrlimit(Resource::Fsize, limit).expect("lifted");
    store.begin(&keyed("k")).await.expect("written");
    let health = store.health();
    assert!(health.recording && health.dropped > 0 && health.moved_aside.is_none(), "{health:?}");
    say("recovered");
}

fn say(what: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{what}").expect("written");
    stdout.flush().expect("written");
}

#[tokio::test]
async fn after_a_kill_what_ran_is_unknown_and_what_was_answered_is_known() {
    let place = Place::new();
    let mut other = Other::start("calls", &place.path());
    other.await_said("ready");
    let store = place.open();
    let state = async |key: &str, idempotent: bool| {
        store.key(&KeyedCall { idempotent, ..keyed(key) }).await.expect("readable")
    };
    assert!(matches!(state("answered", false).await, KeyState::Running { .. }));
    assert_eq!(store.jobs(&JobsParams { running: true, caller: None }).await.expect("readable").len(), 1);
    other.kill();

    assert!(matches!(state("answered", false).await, KeyState::OutcomeUnknown { .. }));
    assert!(
        matches!(state("answered_at_once", false).await, KeyState::Answered { result, .. } if result.get() == "42")
    );
    assert!(matches!(state("harmless", true).await, KeyState::New));
    assert!(store.jobs(&JobsParams { running: true, caller: None }).await.expect("readable").is_empty());
    assert_eq!(all(&store).await[0].code, Some(6011));
    store.close().await;
    // It stays so, also for those who come later.
    let store = place.open();
    assert!(matches!(
        store.begin(&keyed("answered")).await.expect("readable"),
        KeyState::OutcomeUnknown { .. }
    ));
}

#[tokio::test]
async fn rows_that_were_flushed_survive_a_kill() {
    let place = Place::new();
    let mut other = Other::start("rows", &place.path());
    other.await_said("written");
    other.kill();
    let store = place.open();
    assert_eq!(all(&store).await.len(), ROWS);
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    assert_eq!(stats[0].count, ROWS as u64);
}

#[tokio::test]
async fn two_processes_write_at_once_and_no_row_is_lost() {
    let place = Place::new();
    let mut other = Other::start("rows", &place.path());
    other.await_said("begins");
    let store = place.open();
    for _ in 0..ROWS {
        store.record(row("own.row")).await;
        if store.health().dropped > 0 {
            panic!("dropped");
        }
    }
    store.flush().await.expect("written");
    other.await_said("written");
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    let counts: Vec<_> = stats.iter().map(|stats| (&*stats.operation, stats.count)).collect();
    assert_eq!(counts, [("other.row", ROWS as u64), ("own.row", ROWS as u64)]);
}

#[tokio::test]
async fn a_full_disk_is_said_and_calls_are_recorded_again_when_there_is_room() {
    let place = Place::new();
    let mut other = Other::start("full", &place.path());
    other.await_said("recovered");
    drop(other);
    assert!(!all(&place.open()).await.is_empty());
}
