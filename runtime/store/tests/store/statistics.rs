//! Statistics: near enough for times, exact for counts.

use plugd_protocol::control::{AnsweredFrom, ArgumentErrorCount, CallsStatsParams};
use plugd_protocol::error::{ArgumentProblem, ErrorKind};
use plugd_protocol::{CallError, PluginName, Status};
use plugd_store::Called;

use crate::{Place, ago, row, row_at};

#[tokio::test]
async fn counts_are_exact_and_times_at_most_a_thirtysecond_too_long() {
    let place = Place::new();
    let store = place.open();
    for index in 0..1_000_u64 {
        let mut row = row_at(if index % 4 == 0 { "mail.send" } else { "forecast.now" }, ago(index));
        row.duration_us = 100 * (index + 1);
        row.status = if index % 10 == 3 { Status::Error } else { Status::Ok };
        store.record(row).await;
    }
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    assert_eq!(
        stats.iter().map(|stats| &*stats.operation).collect::<Vec<_>>(),
        ["forecast.now", "mail.send"]
    );
    assert_eq!(stats.iter().map(|stats| stats.count).collect::<Vec<_>>(), [750, 250]);
    assert!((stats[0].ok_percent - 86.666).abs() < 0.01, "{}", stats[0].ok_percent);
    assert_eq!(stats[1].ok_percent, 100.0);
    let near = |read: u64, exact: u64| (exact..=exact + exact / 16).contains(&read);
    assert!(near(stats[0].p50_us, 50_000), "{}", stats[0].p50_us);
    assert!(near(stats[1].p95_us, 94_900), "{}", stats[1].p95_us);

    let mail = CallsStatsParams {
        plugin: Some(PluginName::new("mail").expect("a name")),
        ..CallsStatsParams::default()
    };
    assert_eq!(store.stats(&mail).await.expect("readable").len(), 1);
}

#[tokio::test]
async fn statistics_since_a_moment_leave_out_what_was_before() {
    let place = Place::new();
    let store = place.open();
    // So far apart that full minutes and hours, to which moments are taken, do not matter.
    for (seconds, count) in [(30, 1), (40 * 60, 2), (26 * 3_600, 4), (5 * 86_400, 8)] {
        for _ in 0..count {
            store.record(row_at("a.b", ago(seconds))).await;
        }
    }
    for (since, expected) in [(10 * 60, 1), (60 * 60, 3), (30 * 3_600, 7), (6 * 86_400, 15)] {
        let params = CallsStatsParams { since: Some(ago(since)), ..CallsStatsParams::default() };
        let stats = store.stats(&params).await.expect("readable");
        assert_eq!(stats.iter().map(|stats| stats.count).sum::<u64>(), expected, "since {since} s");
    }
}

#[tokio::test]
async fn the_commonest_mistakes_in_arguments_are_named() {
    let place = Place::new();
    let store = place.open();
    for index in 0..100 {
        let mut row = row("forecast.now");
        let mut error = CallError::new(ErrorKind::InvalidArguments, "wrong");
        let mut problem = |path: String, problem: &str| {
            error.details.push(ArgumentProblem {
                path,
                problem: problem.to_owned(),
                expected: "another".to_owned(),
                got: None,
                suggestion: None,
            });
        };
        problem("/city".to_owned(), "required");
        if index % 2 == 0 {
            problem("/days".to_owned(), "type");
        }
        // What a model makes up is different each time.
        problem(format!("/made_up_{index}"), "additionalProperties");
        row.status = Status::Error;
        row.error = Some(Box::new(error));
        store.record(row).await;
    }
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    let mistake = |path: &str, problem: &str, count| ArgumentErrorCount {
        path: path.to_owned(),
        problem: problem.to_owned(),
        count,
    };
    let mistakes = &stats[0].argument_errors;
    assert_eq!(mistakes.len(), 5);
    assert_eq!(mistakes[..2], [mistake("/city", "required", 100), mistake("/days", "type", 50)]);
}

#[tokio::test]
async fn calls_of_nothing_that_exists_are_one_line() {
    let place = Place::new();
    let store = place.open();
    for index in 0..10 {
        let mut row = row("a.b");
        row.called = Called::Unknown(format!("made_up_{index}").into());
        row.status = Status::Error;
        store.record(row).await;
    }
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    assert_eq!(stats.len(), 1);
    assert_eq!((&*stats[0].operation, stats[0].count), ("(unknown)", 10));
}

#[tokio::test]
async fn earlier_answers_and_what_stopped_to_ask_have_no_times_and_no_share() {
    let place = Place::new();
    let store = place.open();
    let of = |status, duration_us, answered_from| {
        let mut row = row("shop.charge");
        (row.status, row.duration_us, row.answered_from) = (status, duration_us, answered_from);
        row
    };
    store.record(of(Status::Ok, 1_000_000, None)).await;
    store.record(of(Status::Error, 1_000_000, None)).await;
    for from in [AnsweredFrom::Key, AnsweredFrom::Cache, AnsweredFrom::Key] {
        store.record(of(Status::Ok, 10, Some(from))).await;
    }
    for asks in [Status::NeedsInput, Status::NeedsConfirmation] {
        store.record(of(asks, 10, None)).await;
    }
    // The same call again: what was counted of it before is taken back.
    let mut twice = of(Status::Ok, 10, Some(AnsweredFrom::Cache));
    store.record(twice.clone()).await;
    (twice.answered_from, twice.duration_us) = (None, 1_000_000);
    store.record(twice).await;
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    assert_eq!((stats[0].count, stats[0].ended), (8, 3));
    assert!((stats[0].ok_percent - 66.666).abs() < 0.01, "{}", stats[0].ok_percent);
    assert!(stats[0].p50_us >= 1_000_000 && stats[0].p50_us < 1_100_000, "{}", stats[0].p50_us);
}

#[tokio::test]
async fn where_nothing_ended_there_is_a_count_alone() {
    let place = Place::new();
    let store = place.open();
    let mut asks = row("shop.wipe");
    (asks.status, asks.duration_us) = (Status::NeedsConfirmation, 400);
    store.record(asks).await;
    let stats = store.stats(&CallsStatsParams::default()).await.expect("readable");
    assert_eq!((stats[0].count, stats[0].ended, stats[0].p95_us), (1, 0, 0));
}
