//! One declaration applied to one call: schemas compiled once, arguments checked against them.
//!
//! [`Contract::compile`] takes an operation's `input_schema` and refuses what could hurt the host;
//! [`Contract::check`] names every problem of some arguments at once, in words a person or a model
//! can act on. The crate is pure: no task, no I/O, no clock, no randomness.

mod contract;
mod defaults;
mod document;
mod nearest;
mod numbers;
mod problem;
mod schema;
mod shape;
mod words;

pub use contract::{Contract, warm};
pub use defaults::fill_defaults;
pub use nearest::nearest;
pub use schema::SchemaError;
