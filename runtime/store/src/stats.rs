//! Statistics, from what was counted with each batch: no row is read for them.

use std::collections::HashMap;

use plugd_protocol::Status;
use plugd_protocol::control::{ArgumentErrorCount, CallsStatsParams, OperationStats};
use rusqlite::{Connection, Row};

use crate::histogram::Times;
use crate::kinds::{Kind, is_of_plugin, kinds_where};
use crate::packed::count;
use crate::rows::unix_now;
use crate::tallies::{DAY, HOUR, MINUTE, floor, second};

/// What calls of nothing that exists are shown under.
const UNKNOWN: &str = "(unknown)";

/// So many operations are shown: the most called.
const OPERATIONS_MAX: usize = 1_000;

/// So many mistakes of each.
const MISTAKES_MAX: usize = 5;

/// Minutes are looked at for so long, in seconds.
const MINUTES_SHOWN: i64 = 2 * HOUR;

/// Spans of one length, from a beginning to before an end.
type Spans = [i64; 3];

#[derive(Default)]
struct Sum {
    count: u64,
    ok: u64,
    times: Times,
    mistakes: HashMap<(String, String), u64>,
}

/// How each operation does, the most called first.
pub(crate) fn of_operations(
    connection: &Connection,
    params: &CallsStatsParams,
) -> rusqlite::Result<Vec<OperationStats>> {
    let wanted = |operation: Option<&str>| match (&params.plugin, operation) {
        (None, _) => true,
        (Some(plugin), Some(operation)) => is_of_plugin(operation, plugin.as_str()),
        (Some(_), None) => false,
    };
    let kinds = kinds_where(connection, |kind| wanted(kind.operation.as_deref()))?;
    let kinds: HashMap<i64, Kind> = kinds.into_iter().map(|kind| (kind.number, kind)).collect();
    let mut sums: HashMap<String, Sum> = HashMap::new();
    let since = params.since.map(|since| second(since.0));
    for spans in spans_since(since, second(unix_now().0)) {
        each(connection, "SELECT kind, count, times FROM tallies", spans, |row| {
            let Some(kind) = kinds.get(&row.get(0)?) else { return Ok(()) };
            let operation = kind.operation.clone().unwrap_or_else(|| UNKNOWN.to_owned());
            let sum = sums.entry(operation).or_default();
            let counted = count(row.get(1)?);
            sum.count += counted;
            // What stopped to ask has not ended; what got an earlier answer has no time.
            if !matches!(kind.status, Status::NeedsInput | Status::NeedsConfirmation) {
                let mut times = Times::default();
                times.add_packed(row.get_ref(2)?.as_blob()?);
                if kind.status == Status::Ok {
                    sum.ok += times.all();
                }
                sum.times.add(&times);
            }
            Ok(())
        })?;
        each(connection, "SELECT operation, path, problem, count FROM mistakes", spans, |row| {
            // One that no call is counted of has been replaced by an answer.
            if let Some(sum) = sums.get_mut(row.get_ref(0)?.as_str()?) {
                *sum.mistakes.entry((row.get(1)?, row.get(2)?)).or_default() += count(row.get(3)?);
            }
            Ok(())
        })?;
    }
    sums.retain(|_, sum| sum.count > 0);
    let mut stats: Vec<OperationStats> =
        sums.into_iter().map(|(operation, sum)| sum.shown(operation)).collect();
    stats.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.operation.cmp(&other.operation)));
    stats.truncate(OPERATIONS_MAX);
    Ok(stats)
}

fn each(
    connection: &Connection,
    what: &str,
    spans: Spans,
    mut see: impl FnMut(&Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let sql = format!("{what} WHERE span = ?1 AND start >= ?2 AND start < ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(spans)?;
    while let Some(row) = rows.next()? {
        see(row)?;
    }
    Ok(())
}

/// The fewest spans that together cover all since then: minutes to the next hour, hours to the next
/// day, then days.
fn spans_since(since: Option<i64>, now: i64) -> Vec<Spans> {
    let Some(since) = since else { return vec![[DAY, i64::MIN, i64::MAX]] };
    let ceiling = |second: i64, span: i64| floor(second + span - 1, span);
    let mut spans = Vec::new();
    let mut from = floor(since, HOUR);
    if since >= now - MINUTES_SHOWN {
        from = ceiling(since, HOUR);
        spans.push([MINUTE, floor(since, MINUTE), from]);
    }
    let days = ceiling(from, DAY);
    spans.push([HOUR, from, days]);
    spans.push([DAY, days, i64::MAX]);
    spans
}

impl Sum {
    fn shown(self, operation: String) -> OperationStats {
        let mut mistakes: Vec<ArgumentErrorCount> = self
            .mistakes
            .into_iter()
            .map(|((path, problem), count)| ArgumentErrorCount { path, problem, count })
            .collect();
        mistakes.sort_by(|one, other| {
            other
                .count
                .cmp(&one.count)
                .then_with(|| (&one.path, &one.problem).cmp(&(&other.path, &other.problem)))
        });
        mistakes.truncate(MISTAKES_MAX);
        let ended = self.times.all();
        OperationStats {
            operation,
            count: self.count,
            ended,
            ok_percent: self.ok as f64 * 100.0 / ended.max(1) as f64,
            p50_us: self.times.percentile(50),
            p95_us: self.times.percentile(95),
            argument_errors: mistakes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_cover_all_since_then_once() {
        let now = 1_796_041_153;
        for since in [now - 5, now - HOUR, now - 5 * HOUR, now - 3 * DAY] {
            let spans = spans_since(Some(since), now);
            let begin = spans.iter().find(|[_, from, to]| from < to).expect("something is covered")[1];
            assert!(begin <= since && since - begin < HOUR);
            for (one, next) in spans.iter().zip(&spans[1..]) {
                assert_eq!(one[2], next[1], "{spans:?}");
            }
            for [span, from, _] in spans {
                assert_eq!(from % span, 0);
            }
        }
        assert_eq!(spans_since(None, now).len(), 1);
    }
}
