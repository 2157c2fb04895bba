//! Scratch.
use std::time::*; use std::sync::Arc;
use plugd_store::*; use plugd_protocol::*; use plugd_protocol::control::*;
fn main() {
    let n: usize = std::env::args().nth(1).map_or(100_000, |n| n.parse().unwrap());
    let size: usize = std::env::args().nth(2).map_or(400, |n| n.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (store, _) = Store::open(&dir.path().join("a.db"), Retention::default()).unwrap();
    let rows: Vec<Row> = (0..n).map(|i| {
        let id = uuid::Uuid::now_v7();
        let at = UnixMillis((id.as_u128() >> 80) as u64);
        let mut row = Row::new(CallId::new(id.to_string()), at, Called::Operation(OperationId::parse(&format!("p.run{}", i % 3)).unwrap()), Status::Ok);
        row.given = Some("g".repeat(size / 4).into()); row.data = Some("d".repeat(size).into()); row.summary = Some("tttttttttttttttttttt ttttttttt".into());
        row.plugin_version = Some(Arc::from("1.0.0")); row.generation = Some(1); row.duration_us = 15 + (i as u64 * 7919 % 40);
        row.stages = [Stage::Resolved, Stage::Checked, Stage::Confirmed, Stage::Queued, Stage::Started, Stage::Answered, Stage::Shaped].iter().map(|s| StageTime { stage: *s, at_us: 9 }).collect();
        row
    }).collect();
    rt.block_on(async {
        let begun = Instant::now();
        for row in rows { store.record(row).await; }
        let given = begun.elapsed();
        store.flush().await.unwrap();
        let took = begun.elapsed();
        println!("{:?} {:?} per row {:?}; dropped {}", given, took, took / n as u32, store.health().dropped);
        store.close().await;
        println!("{} bytes per row", std::fs::metadata(dir.path().join("a.db")).unwrap().len() / n as u64);
    });
}
