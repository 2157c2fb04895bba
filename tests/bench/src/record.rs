//! The record with a million calls: what it costs to ask it, to open it and to write it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plugd_protocol::control::{CallsParams, CallsStatsParams, Stage, StageTime, UnixMillis};
use plugd_protocol::error::{ArgumentProblem, ErrorKind};
use plugd_protocol::{CallError, CallId, OperationId, PluginName, Status};
use plugd_store::{Called, Retention, Row, Store};
use tokio::runtime::Runtime;
use uuid::{NoContext, Timestamp, Uuid};

/// How many calls are recorded.
pub(crate) const MILLION: u64 = 1_000_000;

/// They arrived within so long before now: less than the record keeps.
const WITHIN: Duration = Duration::from_secs(29 * 24 * 60 * 60);

/// Rows that are written to see how fast they can be.
const BURST: u64 = 200_000;

/// What was measured, in milliseconds where nothing else is said.
pub(crate) struct Record {
    /// The slowest of several lists, the file opened for it.
    pub(crate) list: Vec<f64>,
    /// One call in full, the file opened for it.
    pub(crate) show: Vec<f64>,
    /// Statistics of all operations, the file opened for them.
    pub(crate) stats: Vec<f64>,
    /// The file opened, and the first row taken.
    pub(crate) open: Vec<f64>,
    pub(crate) file_mib: f64,
    /// Rows a second, one after the other without a pause, until all are written.
    pub(crate) rows_per_second: Vec<f64>,
}

/// Fills a file and asks it.
pub(crate) fn measure(repetitions: usize) -> io::Result<Record> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("plugd.db");
    crate::progress("a million calls are recorded");
    let ids = runtime.block_on(fill(&path, MILLION, WITHIN))?;
    let mut record = Record {
        list: Vec::new(),
        show: Vec::new(),
        stats: Vec::new(),
        open: Vec::new(),
        file_mib: std::fs::metadata(&path)?.len() as f64 / 1024.0 / 1024.0,
        rows_per_second: Vec::new(),
    };
    for repetition in 0..repetitions {
        crate::interrupt::check()?;
        crate::progress(&format!("the record: repetition {} of {repetitions}", repetition + 1));
        record.open.push(time(&runtime, &path, async |store| {
            store.record(row(repetition as u64, now())).await;
            Ok(())
        })?);
        let mut slowest = 0.0_f64;
        for params in lists() {
            slowest = slowest.max(time(&runtime, &path, async |store| {
                let calls = store.calls(&params).await.map_err(io::Error::other)?;
                expect(!calls.is_empty(), "a list is empty")
            })?);
        }
        record.list.push(slowest);
        let id = &ids[repetition * 7919 % ids.len()];
        record.show.push(time(&runtime, &path, async |store| {
            let call = store.call(id).await.map_err(io::Error::other)?;
            expect(call.is_some(), "a call is missing")
        })?);
        record.stats.push(time(&runtime, &path, async |store| {
            let params = CallsStatsParams {
                since: Some(UnixMillis(now().0 - 20 * 86_400_000)),
                ..CallsStatsParams::default()
            };
            let stats = store.stats(&params).await.map_err(io::Error::other)?;
            expect(stats.len() == 40, "an operation is missing")
        })?);
    }
    // Afterwards: what is still on its way to the disk would slow the questions.
    for _ in 0..repetitions {
        crate::interrupt::check()?;
        record.rows_per_second.push(rows_per_second(&runtime, &folder.path().join("burst.db"))?);
    }
    Ok(record)
}

/// The lists that are asked for: of all, and of a few in a million.
fn lists() -> Vec<CallsParams> {
    let plugin = PluginName::new("p3").ok();
    let none = CallsParams::default;
    vec![
        none(),
        CallsParams { limit: Some(1_000), ..none() },
        CallsParams { plugin, since: Some(UnixMillis(now().0 - 10 * 86_400_000)), ..none() },
        CallsParams { operation: Some("p0.run20".to_owned()), status: Some(Status::Error), ..none() },
        CallsParams { status: Some(Status::Cancelled), ..none() },
        CallsParams { caller: Some("ci".to_owned()), ..none() },
        CallsParams { session: Some("session-77".to_owned()), ..none() },
    ]
}

/// Opens the file, asks, and closes it again; the time until the answer, in milliseconds.
fn time(runtime: &Runtime, path: &Path, ask: impl AsyncFnOnce(&Store) -> io::Result<()>) -> io::Result<f64> {
    runtime.block_on(async {
        let begun = Instant::now();
        let store = open(path)?;
        ask(&store).await?;
        let took = begun.elapsed();
        store.close().await;
        Ok(took.as_secs_f64() * 1000.0)
    })
}

fn open(path: &Path) -> io::Result<Store> {
    let (store, moved_aside) = Store::open(path, Retention::default()).map_err(io::Error::other)?;
    expect(moved_aside.is_none(), "the file is damaged")?;
    Ok(store)
}

/// Records so many calls, evenly within that time; their ids.
async fn fill(path: &Path, count: u64, within: Duration) -> io::Result<Vec<CallId>> {
    let store = open(path)?;
    let (begin, millis) = (now().0 - within.as_millis() as u64, within.as_millis() as u64);
    let mut ids = Vec::new();
    for index in 0..count {
        let row = row(index, UnixMillis(begin + millis * index / count));
        ids.push(row.call_id.clone());
        store.record(row).await;
        if index % 100_000 == 0 {
            crate::interrupt::check()?;
        }
    }
    store.flush().await.map_err(io::Error::other)?;
    expect(store.health().dropped == 0, "calls were dropped")?;
    store.close().await;
    Ok(ids)
}

fn rows_per_second(runtime: &Runtime, path: &PathBuf) -> io::Result<f64> {
    let mut made = Vec::new();
    for index in 0..BURST {
        made.push(row(index, UnixMillis(now().0)));
    }
    let per_second = runtime.block_on(async {
        let store = open(path)?;
        let begun = Instant::now();
        for row in made {
            store.record(row).await;
        }
        store.flush().await.map_err(io::Error::other)?;
        let took = begun.elapsed();
        expect(store.health().dropped == 0, "calls were dropped")?;
        store.close().await;
        Ok::<_, io::Error>(BURST as f64 / took.as_secs_f64())
    })?;
    std::fs::remove_file(path)?;
    Ok(per_second)
}

/// A call as calls are: some arguments, a screenful of data at most, one in twenty wrong.
fn row(index: u64, at: UnixMillis) -> Row {
    let dice = index.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let operation = OperationId::parse(&format!("p{}.run{}", dice % 10, dice % 40));
    let nanos = u32::try_from(at.0 % 1000).unwrap_or(0) * 1_000_000;
    let id = Uuid::new_v7(Timestamp::from_unix(NoContext, at.0 / 1000, nanos));
    let mut row = Row::new(
        CallId::new(id.to_string()),
        at,
        operation.map_or_else(|_| Called::Unknown("p".into()), Called::Operation),
        Status::Ok,
    );
    row.duration_us = 200 + dice % 50_000;
    row.caller = dice.is_multiple_of(3).then(|| Arc::from("ci"));
    row.session = dice.is_multiple_of(2).then(|| Arc::from(format!("session-{}", index / 50)));
    row.plugin_version = Some(Arc::from("1.4.2"));
    row.generation = Some(3);
    row.trace_id = Some(format!("{:032x}", u128::from(dice) * 0x1234_5678_9abc).into());
    let given = format!(
        r#"{{"ticket_id":"TK-20261130-{index:07}","fields":["status","owner"],"locale":"en","page":{}}}"#,
        dice % 9
    );
    row.argument_bytes = given.len() as u64;
    row.given = Some(given.into());
    let item = format!(r#"{{"id":{index},"status":"in review","owner":"somebody"}},"#);
    let data = format!("[{}]", item.repeat(1 + (dice % 12) as usize).trim_end_matches(','));
    row.data_bytes = data.len() as u64;
    row.data = Some(data.into());
    row.summary = Some(format!("TK-20261130-{index:07} is in review, owned by somebody").into());
    let stages = [
        Stage::Resolved,
        Stage::Checked,
        Stage::Confirmed,
        Stage::Queued,
        Stage::Started,
        Stage::Answered,
        Stage::Shaped,
    ];
    row.stages =
        (1..).zip(stages).map(|(step, stage)| StageTime { stage, at_us: step * (dice % 900) }).collect();
    match dice % 20 {
        0 => wrong(&mut row),
        1 if dice % 1_000 == 1 => row.status = Status::Cancelled,
        _ => {}
    }
    row
}

fn wrong(row: &mut Row) {
    let mut error =
        CallError::new(ErrorKind::InvalidArguments, "the arguments do not fit: page: expected 1 to 9, got 0");
    error.details.push(ArgumentProblem {
        path: "/page".to_owned(),
        problem: "minimum".to_owned(),
        expected: "1 to 9".to_owned(),
        got: Some("0".to_owned()),
        suggestion: None,
    });
    row.status = Status::Error;
    row.data = None;
    row.summary = None;
    row.error = Some(Box::new(error));
}

fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(0))
}

fn expect(holds: bool, otherwise: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(io::Error::other(otherwise)) }
}
