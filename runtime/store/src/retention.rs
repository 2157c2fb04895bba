//! What is kept for how long, and how what is over goes: oldest first, a little at a time.

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
    /// The file about no larger than this; a half of it is for rows at least.
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
            Purpose::Key => self.bytes / 8,
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
) -> rusqlite::Result<bool> {
    let now = unix_now();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut more = remove_rows(&transaction, first_number_since(now, keep.age))?;
    let oldest = oldest_row(&transaction)?.unwrap_or(first_number_since(now, keep.age));
    remove_tallies(&transaction, now, millis_of(oldest) / 1000)?;
    more |= remove_keys(&transaction, owners, millis_of(oldest))?;
    for sql in [
        "DELETE FROM kept WHERE id IN (SELECT id FROM kept WHERE until <= ?1 LIMIT ?2)",
        "DELETE FROM tokens WHERE token IN (SELECT token FROM tokens WHERE expires <= ?1 LIMIT ?2)",
    ] {
        more |= transaction.prepare_cached(sql)?.execute(params![number(now.0), AT_ONCE])? as i64 >= AT_ONCE;
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
    if let Some(oldest) = oldest_row(&transaction)? {
        remove_keys(&transaction, owners, millis_of(oldest))?;
    }
    transaction.commit()?;
    // Without rows there is nothing left to remove here.
    Ok(removed)
}

/// What the file holds, without what is free in it.
pub(crate) fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let one = |name: &str| -> rusqlite::Result<i64> {
        connection.prepare_cached(name)?.query_row([], |row| row.get(0))
    };
    let pages = one("PRAGMA page_count")? - one("PRAGMA freelist_count")?;
    Ok(count(pages).saturating_mul(count(one("PRAGMA page_size")?)))
}

/// Removes some rows below a number; whether there may be more.
fn remove_rows(connection: &Connection, below: i64) -> rusqlite::Result<bool> {
    let sql = "DELETE FROM calls WHERE id IN (SELECT id FROM calls WHERE id < ?1 ORDER BY id LIMIT ?2)";
    let removed = connection.prepare_cached(sql)?.execute(params![below, ROWS_AT_ONCE as i64])?;
    Ok(removed >= ROWS_AT_ONCE)
}

fn oldest_row(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection.prepare_cached("SELECT min(id) FROM calls")?.query_row([], |row| row.get(0))
}

/// What was counted goes with the rows: a span that ends before the oldest of them.
fn remove_tallies(connection: &Connection, now: UnixMillis, oldest_second: i64) -> rusqlite::Result<()> {
    let minutes = number(now.0 / 1000) - MINUTES_KEPT;
    for table in ["tallies", "mistakes"] {
        for span in [MINUTE, HOUR, DAY] {
            let before = if span == MINUTE { oldest_second.max(minutes) } else { oldest_second };
            connection
                .prepare_cached(&format!("DELETE FROM {table} WHERE span = ?1 AND start <= ?2"))?
                .execute([span, before - span])?;
        }
    }
    Ok(())
}

/// Keys are kept as long as rows are; one whose call still runs stays. Whether there may be more.
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
