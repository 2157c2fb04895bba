//! What is kept for how long, and how what is over goes: oldest first, a little at a time.

use std::cell::Cell;
use std::time::Duration;

use plugd_protocol::control::UnixMillis;
use rusqlite::{Connection, TransactionBehavior, params};

use crate::kept::Purpose;
use crate::owners::Owners;
use crate::packed::{count, millis_of, number};
use crate::rows::{first_number_since, unix_now};
use crate::tallies::{DAY, HOUR, MINUTE};

/// What is kept for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Rows and keys no longer than this.
    pub age: Duration,
    /// The file about no larger than this; three eighths of it are for rows at least.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention { age: Duration::from_secs(30 * 24 * 60 * 60), bytes: 1024 * 1024 * 1024 }
    }
}

/// Minutes are counted apart for so long, in seconds; statistics look at them for two hours.
const MINUTES_KEPT: i64 = 3 * HOUR;

/// So much of each goes in one transaction.
const AT_ONCE: i64 = 256;

/// So many rows go in one transaction: not so many that a small file is emptied.
pub(crate) const ROWS_AT_ONCE: usize = 128;

/// What was counted of so many spans goes at once.
const SPANS_AT_ONCE: i64 = 60;

/// Finished jobs and results for paging are kept no longer than this.
pub(crate) const RESULTS_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Space that is free inside the file is given back where it is more than one page of so many.
const FREE_SHARE: i64 = 8;

/// Fewer free pages than this are not worth it.
const FREE_PAGES_MIN: i64 = 1024;

impl Retention {
    /// How many bytes may be kept for a purpose.
    pub(crate) fn bytes_for(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Result => self.bytes / 4,
            Purpose::Key | Purpose::Data => self.bytes / 8,
            Purpose::Job | Purpose::Token => self.bytes / 16,
        }
    }

    /// Where the file is filled to here, the oldest rows go until it is below by a sixteenth.
    fn full_at(&self) -> u64 {
        self.bytes / 16 * 15
    }
}

/// Removes a part of what is over; whether there is more.
pub(crate) fn sweep(
    connection: &mut Connection,
    keep: &Retention,
    owners: &Owners,
    forgets: &Cell<bool>,
) -> rusqlite::Result<bool> {
    let now = unix_now();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut more = remove_rows(&transaction, first_number_since(now, keep.age))?.more;
    let oldest = oldest_row(&transaction)?.unwrap_or(first_number_since(now, keep.age));
    more |= remove_tallies(&transaction, now, millis_of(oldest) / 1000)?;
    more |= remove_keys(&transaction, owners, millis_of(first_number_since(now, keep.age)))?;
    for sql in [
        "DELETE FROM kept WHERE id IN (SELECT id FROM kept WHERE until <= ?1 LIMIT ?2)",
        "DELETE FROM tokens WHERE token IN (SELECT token FROM tokens WHERE expires <= ?1 LIMIT ?2)",
    ] {
        let removed = transaction.prepare_cached(sql)?.execute(params![number(now.0), AT_ONCE])?;
        forgets.set(forgets.get() | (removed > 0));
        more |= removed as i64 >= AT_ONCE;
    }
    let week_ago = number(now.0) - i64::try_from(RESULTS_KEPT.as_millis()).unwrap_or(i64::MAX);
    let ended = "DELETE FROM jobs WHERE call IN
                    (SELECT call FROM jobs WHERE at <= ?1 AND owner IS NULL ORDER BY at LIMIT ?2)";
    more |= transaction.prepare_cached(ended)?.execute(params![week_ago, AT_ONCE])? as i64 >= AT_ONCE;
    transaction.commit()?;
    Ok(more | give_back(connection)?)
}

/// Removes some of the oldest rows where the file is full; whether it may still be too full.
pub(crate) fn prune(
    connection: &mut Connection,
    keep: &Retention,
    owners: &Owners,
    pruning: bool,
) -> rusqlite::Result<bool> {
    let target = if pruning { keep.full_at() - keep.bytes / 16 } else { keep.full_at() };
    if used_bytes(connection)? <= target {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let removed = remove_rows(&transaction, i64::MAX)?;
    if let Some(last) = removed.last {
        remove_keys(&transaction, owners, millis_of(last))?;
    }
    transaction.commit()?;
    // Without rows there is nothing left to remove here.
    Ok(removed.more)
}

/// What the file holds, without what is free in it.
pub(crate) fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let one = |name: &str| -> rusqlite::Result<i64> {
        connection.prepare_cached(name)?.query_row([], |row| row.get(0))
    };
    let pages = one("PRAGMA page_count")? - one("PRAGMA freelist_count")?;
    Ok(count(pages).saturating_mul(count(one("PRAGMA page_size")?)))
}

/// Rows that were removed.
struct Removed {
    /// The latest of them.
    last: Option<i64>,
    /// Whether there may be more to remove.
    more: bool,
}

/// Removes some rows below a number, the oldest.
fn remove_rows(connection: &Connection, below: i64) -> rusqlite::Result<Removed> {
    let nth = "SELECT max(id), count(*) FROM (SELECT id FROM calls WHERE id < ?1 ORDER BY id LIMIT ?2)";
    let (last, found): (Option<i64>, i64) = connection
        .prepare_cached(nth)?
        .query_row(params![below, ROWS_AT_ONCE as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
    connection.prepare_cached("DELETE FROM calls WHERE id <= ?1")?.execute([last])?;
    Ok(Removed { last, more: found >= ROWS_AT_ONCE as i64 })
}

fn oldest_row(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached("SELECT min(id) FROM calls")?.query_row([], |row| row.get(0))
}

/// What was counted goes with the rows: spans that end before the oldest of them, some at a time.
/// Whether there may be more.
fn remove_tallies(connection: &Connection, now: UnixMillis, oldest_second: i64) -> rusqlite::Result<bool> {
    let minutes = number(now.0 / 1000) - MINUTES_KEPT;
    let mut more = false;
    for table in ["tallies", "mistakes"] {
        for span in [MINUTE, HOUR, DAY] {
            let before = if span == MINUTE { oldest_second.max(minutes) } else { oldest_second };
            let last = before - span;
            let first: Option<i64> = connection
                .prepare_cached(&format!("SELECT min(start) FROM {table} WHERE span = ?1"))?
                .query_row([span], |row| row.get(0))?;
            let Some(first) = first.filter(|first| *first <= last) else { continue };
            let last_now = last.min(first.saturating_add(span * SPANS_AT_ONCE));
            connection
                .prepare_cached(&format!("DELETE FROM {table} WHERE span = ?1 AND start <= ?2"))?
                .execute([span, last_now])?;
            more |= last_now < last;
        }
    }
    Ok(more)
}

/// Keys go with the rows of their time, not with their own, which they may never have got; one whose
/// call still runs stays. Whether there may be more.
fn remove_keys(connection: &Connection, owners: &Owners, before: i64) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT caller, key, answer, iif(answered, NULL, owner) FROM keys WHERE at < ?1 ORDER BY at LIMIT ?2",
    )?;
    let mut rows = statement.query([before, AT_ONCE])?;
    let (mut seen, mut over) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        seen += 1;
        let owner: Option<i64> = row.get(3)?;
        if !owner.is_some_and(|owner| owners.lives(owner)) {
            over.push((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?));
        }
    }
    for (caller, key, answer) in &over {
        connection
            .prepare_cached("DELETE FROM keys WHERE caller = ?1 AND key = ?2")?
            .execute(params![caller, key])?;
        connection.prepare_cached("DELETE FROM kept WHERE id = ?1")?.execute([answer])?;
    }
    Ok(seen >= AT_ONCE && !over.is_empty())
}

/// Gives free space back to the file system where there is much; whether there is more.
fn give_back(connection: &Connection) -> rusqlite::Result<bool> {
    let one = |name: &str| -> rusqlite::Result<i64> {
        connection.prepare_cached(name)?.query_row([], |row| row.get(0))
    };
    let (pages, free) = (one("PRAGMA page_count")?, one("PRAGMA freelist_count")?);
    if free < FREE_PAGES_MIN || free < pages / FREE_SHARE {
        return Ok(false);
    }
    let mut statement = connection.prepare_cached("PRAGMA incremental_vacuum(256)")?;
    let mut freed = statement.query([])?;
    while freed.next()?.is_some() {}
    Ok(true)
}

#[cfg(test)]
mod tests {
    use plugd_protocol::{CallId, OperationId, Status};
    use uuid::{NoContext, Timestamp, Uuid};

    use super::*;
    use crate::file;
    use crate::row::{Called, Row};
    use crate::rows::Rows;

    const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

    /// Days ago on which calls arrived, and how many on each.
    const ARRIVED: [(u64, u64); 3] = [(40, 300), (31, 10), (2, 20)];

    struct Filled {
        connection: Connection,
        owners: Owners,
        /// Whether the log must be emptied.
        forgets: Cell<bool>,
        folder: tempfile::TempDir,
    }

    impl Filled {
        fn new(text: &str) -> Filled {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("plugd.db");
            let owners = Owners::enter(&path).expect("entered");
            let connection = file::open(&path, &owners).expect("opened").connection;
            let mut rows = Rows::default();
            for (days, count) in ARRIVED {
                for _ in 0..count {
                    rows.insert(&connection, &row(days, text)).expect("written");
                }
            }
            rows.settle(&connection).expect("written");
            Filled { connection, owners, forgets: Cell::new(false), folder }
        }

        fn sweep(&mut self, keep: &Retention) -> usize {
            (1..10_000)
                .find(|_| !sweep(&mut self.connection, keep, &self.owners, &self.forgets).expect("swept"))
                .expect("a sweep comes to its end")
        }

        fn count(&self, what: &str) -> i64 {
            let sql = format!("SELECT count(*) FROM {what}");
            self.connection.query_row(&sql, [], |row| row.get(0)).expect("readable")
        }
    }

    fn row(days: u64, text: &str) -> Row {
        let at = UnixMillis(unix_now().0 - days * DAY_MILLIS);
        let id = Uuid::new_v7(Timestamp::from_unix(NoContext, at.0 / 1000, 0));
        let called = Called::Operation(OperationId::parse("a.b").expect("an operation"));
        let mut row = Row::new(CallId::new(id.to_string()), at, called, Status::Ok);
        row.given = Some(text.into());
        row
    }

    #[test]
    fn what_is_over_goes_a_little_at_a_time_and_what_is_not_stays() {
        let mut filled = Filled::new("{}");
        let now = number(unix_now().0);
        let (month_ago, yesterday) = (now - 31 * number(DAY_MILLIS), now - number(DAY_MILLIS));
        let insert = format!(
            "INSERT INTO kept VALUES (1, 'key', {yesterday}, 1, '1'), (2, 'token', {now} + 99999, 1, '1');
             INSERT INTO keys VALUES ('', 'old', 'a.b', x'00', x'00', {month_ago}, 0, NULL, 1, 1);
             INSERT INTO keys VALUES ('', 'lost', 'a.b', x'00', x'00', {month_ago}, 0, 5, 0, NULL);
             INSERT INTO keys VALUES ('', 'runs', 'a.b', x'00', x'00', {month_ago}, 0, {}, 0, NULL);
             INSERT INTO keys VALUES ('', 'new', 'a.b', x'00', x'00', {yesterday}, 0, NULL, 1, NULL);
             INSERT INTO tokens VALUES ('over', {yesterday}, NULL, NULL), ('good', {now} + 99999, NULL, 2);
             INSERT INTO jobs (call, operation, caller, at, owner, status, summary, result) VALUES (x'01', 'a.b', NULL, {month_ago}, NULL, 'ok', NULL, NULL);
             INSERT INTO jobs (call, operation, caller, at, owner, status, summary, result) VALUES (x'02', 'a.b', NULL, {month_ago}, 5, 'pending', NULL, NULL);
             INSERT INTO jobs (call, operation, caller, at, owner, status, summary, result) VALUES (x'03', 'a.b', NULL, {yesterday}, NULL, 'ok', NULL, NULL)",
            filled.owners.own()
        );
        filled.connection.execute_batch(&insert).expect("written");

        assert!(filled.sweep(&Retention::default()) > 2, "300 rows do not go at once");
        assert_eq!(filled.count("calls"), 20);
        assert_eq!(filled.count("tallies WHERE span = 86400"), 1);
        assert_eq!(filled.count("tallies WHERE span = 60"), 0, "minutes are kept for hours only");
        assert_eq!(filled.count("keys"), 2);
        assert_eq!(filled.count("keys WHERE key IN ('runs', 'new')"), 2);
        assert_eq!(filled.count("kept"), 1);
        assert_eq!(filled.count("tokens WHERE token = 'good'"), 1);
        assert_eq!(filled.count("tokens"), 1);
        assert!(filled.forgets.get(), "what was kept is to go from the log, too");
        assert_eq!(filled.count("jobs WHERE call IN (x'02', x'03')"), 2);
        assert_eq!(filled.count("jobs"), 2);
    }

    #[test]
    fn space_that_has_become_free_is_given_back() {
        let mut filled = Filled::new(&"x".repeat(16 * 1024));
        let path = filled.folder.path().join("plugd.db");
        let length = || std::fs::metadata(&path).expect("there").len();
        let log = "PRAGMA wal_checkpoint(TRUNCATE)";
        filled.connection.query_row(log, [], |_| Ok(())).expect("written back");
        let before = length();
        filled.sweep(&Retention::default());
        filled.connection.query_row(log, [], |_| Ok(())).expect("written back");
        let after = length();
        assert!(after < before / 4 * 3, "{before} bytes before, {after} after");
    }

    #[test]
    fn a_file_that_is_too_full_loses_its_oldest_rows_and_no_more_than_it_must() {
        let mut filled = Filled::new(&"x".repeat(4 * 1024));
        let keep = Retention { bytes: 1024 * 1024, ..Retention::default() };
        let mut pruning = true;
        while pruning {
            pruning = prune(&mut filled.connection, &keep, &filled.owners, pruning).expect("pruned");
        }
        assert!(used_bytes(&filled.connection).expect("readable") < keep.bytes);
        assert!((50..250).contains(&filled.count("calls")), "{} rows", filled.count("calls"));
        let latest = first_number_since(unix_now(), Duration::from_secs(3 * 24 * 60 * 60));
        assert_eq!(filled.count(&format!("calls WHERE id > {latest}")), 20);
    }
}
