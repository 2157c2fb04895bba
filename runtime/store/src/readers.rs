//! Connections for questions, kept open between them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::file::connect;

/// So many connections stay open when nobody asks.
const IDLE_MAX: usize = 2;

/// Connections that only read.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    /// Of which file they are: it grows when another takes the place of the first.
    file: u64,
    connections: Vec<Connection>,
}

impl Readers {
    pub(crate) fn new(path: &Path) -> Readers {
        Readers { path: path.to_owned(), idle: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which file is read now.
    pub(crate) fn file(&self) -> u64 {
        self.lock().file
    }

    /// Another file has taken the place of the one that was read.
    pub(crate) fn replace(&self) {
        let mut idle = self.lock();
        idle.file += 1;
        idle.connections.clear();
    }

    /// Asks something; it blocks. All of it sees one state of the file.
    pub(crate) fn ask<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let (file, connection) = {
            let mut idle = self.lock();
            (idle.file, idle.connections.pop())
        };
        let connection = match connection {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let snapshot = connection.unchecked_transaction()?;
        let answer = question(&snapshot)?;
        snapshot.finish()?;
        let mut idle = self.lock();
        if idle.file == file && idle.connections.len() < IDLE_MAX {
            idle.connections.push(connection);
        }
        Ok(answer)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = connect(&self.path)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }
}
