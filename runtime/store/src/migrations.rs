//! The form of the file, and the way to it from every older one.

use rusqlite::{Connection, TransactionBehavior};

/// Each step from one form to the next; the file says how many have been taken. A step that has
/// been released is never changed.
pub(crate) const STEPS: &[&str] = &[RECORD, KEPT, JOBS, BEGUN];

/// The rows of calls, and what is counted of them.
///
/// A row's number is made from its call's id (`packed::row_number`). Short columns come first: a
/// list of calls then reads nothing of a row that has spilt over its page.
const RECORD: &str = "
CREATE TABLE kinds (
    id INTEGER PRIMARY KEY,
    operation TEXT NOT NULL,
    caller TEXT NOT NULL,
    status TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX kinds_by_name ON kinds (operation, caller, status);

CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    call BLOB NOT NULL,
    kind INTEGER NOT NULL,
    late_ms INTEGER NOT NULL,
    duration_us INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    code INTEGER,
    written TEXT,
    summary TEXT,
    answered_from TEXT,
    plugin_version TEXT,
    generation INTEGER,
    session ANY,
    trace ANY,
    parent ANY,
    key TEXT,
    argument_bytes INTEGER NOT NULL,
    data_bytes INTEGER NOT NULL,
    stages BLOB NOT NULL,
    error TEXT,
    given TEXT,
    run TEXT,
    data TEXT
) STRICT;
CREATE INDEX calls_by_kind ON calls (kind);
CREATE INDEX calls_by_session ON calls (session) WHERE session IS NOT NULL;

CREATE TABLE tallies (
    span INTEGER NOT NULL,
    start INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    count INTEGER NOT NULL,
    times BLOB NOT NULL,
    PRIMARY KEY (span, start, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE mistakes (
    span INTEGER NOT NULL,
    start INTEGER NOT NULL,
    operation TEXT NOT NULL,
    path TEXT NOT NULL,
    problem TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (span, start, operation, path, problem)
) STRICT, WITHOUT ROWID;
";

/// Texts that are kept whole, within a number of bytes for each purpose, and what they are kept for.
const KEPT: &str = "
CREATE TABLE kept (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    purpose TEXT NOT NULL,
    until INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX kept_by_purpose ON kept (purpose);
CREATE INDEX kept_by_end ON kept (until);
CREATE TABLE kept_bytes (purpose TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TRIGGER kept_more AFTER INSERT ON kept BEGIN
    INSERT INTO kept_bytes VALUES (new.purpose, new.bytes)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER kept_less AFTER DELETE ON kept BEGIN
    UPDATE kept_bytes SET bytes = bytes - old.bytes WHERE purpose = old.purpose;
END;

CREATE TABLE results (
    call ANY PRIMARY KEY NOT NULL,
    operation TEXT NOT NULL,
    kept INTEGER NOT NULL REFERENCES kept (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX results_by_kept ON results (kept);

CREATE TABLE keys (
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    operation TEXT NOT NULL,
    digest BLOB NOT NULL,
    call ANY NOT NULL,
    at INTEGER NOT NULL,
    idempotent INTEGER NOT NULL,
    owner INTEGER,
    answered INTEGER NOT NULL DEFAULT 0,
    answer INTEGER REFERENCES kept (id) ON DELETE SET NULL,
    PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_at ON keys (at);
CREATE INDEX keys_by_answer ON keys (answer) WHERE answer IS NOT NULL;

CREATE TABLE tokens (
    token TEXT PRIMARY KEY NOT NULL,
    expires INTEGER NOT NULL,
    decided TEXT,
    kept INTEGER REFERENCES kept (id) ON DELETE SET NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_end ON tokens (expires);
CREATE INDEX tokens_by_kept ON tokens (kept) WHERE kept IS NOT NULL;
";

/// Calls in the background. While one runs it has an owner.
const JOBS: &str = "
CREATE TABLE jobs (
    call ANY PRIMARY KEY NOT NULL,
    operation TEXT NOT NULL,
    caller TEXT,
    at INTEGER NOT NULL,
    owner INTEGER,
    status TEXT NOT NULL,
    summary TEXT,
    result INTEGER REFERENCES kept (id) ON DELETE SET NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_by_at ON jobs (at);
CREATE INDEX jobs_running ON jobs (owner) WHERE owner IS NOT NULL;
CREATE INDEX jobs_by_result ON jobs (result) WHERE result IS NOT NULL;
";

/// Calls that have a row from their beginning: until they end, it says no duration. And whether a
/// job has been handed over.
const BEGUN: &str = "
CREATE INDEX calls_begun ON calls (kind) WHERE duration_us < 0;
ALTER TABLE jobs ADD COLUMN handed_over INTEGER NOT NULL DEFAULT 0;
";

/// How many steps the file has taken.
pub(crate) fn form(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The form that is written here.
pub(crate) fn latest() -> u32 {
    u32::try_from(STEPS.len()).unwrap_or(u32::MAX)
}

/// Takes the steps that are left, all of them or none.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    migrate_to(connection, STEPS.len())
}

fn migrate_to(connection: &mut Connection, target: usize) -> rusqlite::Result<()> {
    if form(connection)? as usize >= target {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have taken them meanwhile.
    let taken = form(&transaction)? as usize;
    for step in STEPS.iter().take(target).skip(taken) {
        transaction.execute_batch(step)?;
    }
    if taken < target {
        transaction.pragma_update(None, "user_version", i64::try_from(target).unwrap_or(i64::MAX))?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_step(step: usize) -> Connection {
        let mut connection = Connection::open_in_memory().expect("in memory");
        migrate_to(&mut connection, step).expect("the steps are right");
        connection
    }

    fn form_of(connection: &Connection) -> Vec<String> {
        let mut statement = connection
            .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
            .expect("readable");
        let rows = statement.query_map([], |row| row.get(0)).expect("readable");
        rows.collect::<Result<_, _>>().expect("readable")
    }

    #[test]
    fn every_older_form_leads_to_the_latest() {
        let expected = form_of(&at_step(STEPS.len()));
        for step in 0..STEPS.len() {
            let mut connection = at_step(step);
            migrate(&mut connection).expect("the steps that are left");
            assert_eq!(form(&connection).expect("readable"), latest(), "from {step}");
            assert_eq!(form_of(&connection), expected, "from {step}");
        }
    }

    #[test]
    fn a_step_keeps_what_the_one_before_wrote() {
        let row = "INSERT INTO kinds VALUES (7, 'a.b', '', 'ok');
            INSERT INTO calls (id, call, kind, late_ms, duration_us, attempt, argument_bytes, data_bytes, stages)
            VALUES (1, x'00', 7, 0, 5, 1, 2, 3, x'')";
        let kept = "INSERT INTO kept (purpose, until, bytes, text) VALUES ('page', 9, 4, 'null');
            INSERT INTO results VALUES (x'00', 'a.b', 1)";
        for (step, written, count) in [(1, row, "calls"), (2, kept, "results")] {
            let mut connection = at_step(step);
            connection.execute_batch(written).expect("the form of that step");
            migrate_to(&mut connection, step + 1).expect("the next step");
            let sql = format!("SELECT count(*) FROM {count}");
            let left: i64 = connection.query_row(&sql, [], |row| row.get(0)).expect("readable");
            assert_eq!(left, 1, "step {}", step + 1);
        }
    }

    #[test]
    fn what_goes_with_a_text_that_is_dropped_goes_too() {
        let connection = at_step(STEPS.len());
        let insert = "INSERT INTO kept (purpose, until, bytes, text) VALUES ('page', 9, 4, 'null');
            INSERT INTO results VALUES (x'00', 'a.b', 1);
            INSERT INTO keys VALUES ('', 'k', 'a.b', x'00', x'00', 1, 0, 5, 1, 1);
            DELETE FROM kept";
        connection.execute_batch(insert).expect("the latest form");
        let one = |sql: &str| connection.query_row::<i64, _, _>(sql, [], |row| row.get(0)).expect(sql);
        assert_eq!(one("SELECT count(*) FROM results"), 0);
        assert_eq!(one("SELECT count(*) FROM keys WHERE answer IS NULL"), 1);
        assert_eq!(one("SELECT sum(bytes) FROM kept_bytes"), 0);
    }
}
