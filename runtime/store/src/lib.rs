//! What outlives the daemon, in one SQLite file: the record of calls, keys, kept results, tokens, jobs.
//!
//! [`Store`] is the handle. Everything that changes the file goes through one bounded queue to one
//! thread, which writes it in batches; questions are answered over connections of their own. So a
//! call waits for the disk only where it must: before it runs under a caller's key.
//!
//! Several processes may have the file open at once. A file that is damaged is moved aside, and a
//! new one begun; a file that a newer plugd has written is left alone.

mod aside;
mod begun;
mod calls;
mod condition;
mod error;
mod file;
mod histogram;
mod jobs;
mod kept;
mod keys;
mod kinds;
mod line;
mod migrations;
mod owners;
mod packed;
mod queue;
mod readers;
mod retention;
mod row;
mod rows;
mod stats;
mod store;
mod tallies;
mod tokens;
mod writer;

pub use aside::MovedAside;
pub use calls::Sees;
pub use condition::Health;
pub use error::StoreError;
pub use jobs::{JobState, NewJob};
pub use kept::Kept;
pub use keys::{KeyState, KeyedCall};
pub use retention::Retention;
pub use row::{Called, DATA_MAX, GIVEN_MAX, Row, WHOLE_MAX, clipped};
pub use store::{Recorded, Store};
pub use tokens::TokenState;
