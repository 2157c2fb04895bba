//! What is counted of calls, by minute, hour and day, so that statistics need not read every row.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use crate::histogram::Times;
use crate::line::Text;
use crate::packed::number;
use crate::row::clipped;

/// The spans that are counted, in seconds.
pub(crate) const MINUTE: i64 = 60;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;
const SPANS: [i64; 3] = [MINUTE, HOUR, DAY];

/// In one span, so many different problems of an operation: a model can invent any number. The rarest
/// makes room for a new one.
const DIFFERENT_PROBLEMS_MAX: i64 = 64;

/// Of a path, so many bytes tell one from another.
const PATH_MAX: usize = 128;

/// What was counted and is not written yet.
#[derive(Default)]
pub(crate) struct Tallies {
    /// By the minute and the kind.
    calls: HashMap<(i64, i64), Tally>,
    /// By the minute and the problem.
    mistakes: HashMap<(i64, Mistake), i64>,
}

#[derive(Default)]
struct Tally {
    count: i64,
    times: Times,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Mistake {
    operation: String,
    path: Box<str>,
    problem: Box<str>,
}

/// The beginning of the span that a second lies in.
pub(crate) fn floor(second: i64, span: i64) -> i64 {
    second - second.rem_euclid(span)
}

impl Tallies {
    /// Counts a call that arrived then, or takes it back; one that got an earlier answer has no time.
    pub(crate) fn count(&mut self, second: i64, kind: i64, duration_us: Option<u64>, by: i64) {
        let tally = self.calls.entry((floor(second, MINUTE), kind)).or_default();
        tally.count += by;
        if let Some(duration_us) = duration_us {
            tally.times.count(duration_us, by);
        }
    }

    /// Counts what was wrong with a call's arguments.
    pub(crate) fn count_mistakes(&mut self, second: i64, operation: &str, problems: &[(Text<'_>, Text<'_>)]) {
        for (path, problem) in problems {
            let mistake = Mistake {
                operation: operation.to_owned(),
                path: clipped(path, PATH_MAX),
                problem: clipped(problem, PATH_MAX),
            };
            *self.mistakes.entry((floor(second, MINUTE), mistake)).or_default() += 1;
        }
    }

    /// Writes what was counted.
    pub(crate) fn write(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for span in SPANS {
            let mut calls: HashMap<(i64, i64), Tally> = HashMap::new();
            for ((minute, kind), tally) in &self.calls {
                let sum = calls.entry((floor(*minute, span), *kind)).or_default();
                sum.count += tally.count;
                sum.times.add(&tally.times);
            }
            for ((start, kind), tally) in calls {
                add_calls(connection, [span, start, kind], tally)?;
            }
            let mut mistakes: HashMap<(i64, &Mistake), i64> = HashMap::new();
            for ((minute, mistake), count) in &self.mistakes {
                *mistakes.entry((floor(*minute, span), mistake)).or_default() += count;
            }
            // The commonest first, so that what a model made up does not drive it out.
            let mut mistakes: Vec<_> = mistakes.into_iter().collect();
            mistakes.sort_unstable_by_key(|(_, count)| std::cmp::Reverse(*count));
            for ((start, mistake), count) in mistakes {
                add_mistakes(connection, span, start, mistake, count)?;
            }
        }
        self.clear();
        Ok(())
    }

    /// Forgets what was counted.
    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        self.mistakes.clear();
    }
}

fn add_calls(connection: &Connection, place: [i64; 3], mut tally: Tally) -> rusqlite::Result<()> {
    let [span, start, kind] = place;
    let known = connection
        .prepare_cached("SELECT count, times FROM tallies WHERE span = ?1 AND start = ?2 AND kind = ?3")?
        .query_row(place, |row| {
            tally.times.add_packed(row.get_ref(1)?.as_blob()?);
            row.get::<_, i64>(0)
        })
        .optional()?;
    let count = tally.count.saturating_add(known.unwrap_or(0)).max(0);
    connection
        .prepare_cached(
            "INSERT INTO tallies (span, start, kind, count, times) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET count = excluded.count, times = excluded.times",
        )?
        .execute(params![span, start, kind, count, tally.times.pack()])?;
    Ok(())
}

fn add_mistakes(
    connection: &Connection,
    span: i64,
    start: i64,
    mistake: &Mistake,
    count: i64,
) -> rusqlite::Result<()> {
    let Mistake { operation, path, problem } = mistake;
    let added = connection
        .prepare_cached(
            "UPDATE mistakes SET count = count + ?6
             WHERE span = ?1 AND start = ?2 AND operation = ?3 AND path = ?4 AND problem = ?5",
        )?
        .execute(params![span, start, operation, path, problem, count])?;
    if added > 0 {
        return Ok(());
    }
    let different: i64 = connection
        .prepare_cached("SELECT count(*) FROM mistakes WHERE span = ?1 AND start = ?2 AND operation = ?3")?
        .query_row(params![span, start, operation], |row| row.get(0))?;
    if different >= DIFFERENT_PROBLEMS_MAX {
        connection
            .prepare_cached(
                "DELETE FROM mistakes WHERE span = ?1 AND start = ?2 AND operation = ?3 AND (path, problem) =
                     (SELECT path, problem FROM mistakes WHERE span = ?1 AND start = ?2 AND operation = ?3
                      ORDER BY count LIMIT 1)",
            )?
            .execute(params![span, start, operation])?;
    }
    connection
        .prepare_cached(
            "INSERT INTO mistakes (span, start, operation, path, problem, count) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![span, start, operation, path, problem, count])?;
    Ok(())
}

/// The second in which something happened.
pub(crate) fn second(millis: u64) -> i64 {
    number(millis / 1000)
}
