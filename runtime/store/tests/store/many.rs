//! Many rows: everything is found, and looks do not read the rest.

use std::sync::Arc;

use plugd_protocol::Status;
use plugd_protocol::control::{CallsParams, CallsStatsParams};

use crate::{Place, ago, row_at};

const ROWS: u64 = 20_000;

#[tokio::test]
async fn a_rare_call_is_found_among_many() {
    let place = Place::new();
    let store = place.open();
    let mut rare = None;
    for index in 0..ROWS {
        let mut row = row_at(&format!("p{}.run", index % 40), ago((ROWS - index) * 60));
        row.given = Some(format!(r#"{{"index":{index}}}"#).into());
        row.session = Some(Arc::from(format!("s{}", index / 100)));
        row.duration_us = index;
        if index == 17 {
            row.status = Status::Cancelled;
            row.caller = Some(Arc::from("rare"));
            rare = Some(row.call_id.clone());
        }
        store.record(row).await;
    }
    let rare = rare.expect("one of them");
    store.close().await;

    let store = place.open();
    let found = async |params: CallsParams| store.calls(&params).await.expect("readable");
    let none = CallsParams::default;
    let by_caller = found(CallsParams { caller: Some("rare".to_owned()), ..none() }).await;
    let by_status = found(CallsParams { status: Some(Status::Cancelled), ..none() }).await;
    let by_session =
        found(CallsParams { session: Some("s0".to_owned()), status: Some(Status::Cancelled), ..none() })
            .await;
    for calls in [by_caller, by_status, by_session] {
        assert_eq!((calls.len(), &calls[0].call_id), (1, &rare));
    }
    let detail = store.call(&rare).await.expect("readable").expect("recorded");
    assert_eq!(detail.given.as_deref(), Some(r#"{"index":17}"#));
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    assert_eq!(stats.len(), 40);
    assert_eq!(stats.iter().map(|stats| stats.count).sum::<u64>(), ROWS);
}
