//! One declaration applied to one call: schemas compiled once, arguments checked against them.
//!
//! [`Contract::compile`] takes an operation's `input_schema` and refuses what could hurt the host;
//! [`Contract::check`] names every problem of some arguments at once, in words a person or a model
//! can act on. [`Contract::prepare`] makes arguments ready for a call: brought to their declared types,
//! defaults filled in, and what is missing as questions. The crate is pure: no task, no I/O, no clock, no randomness.

mod canonical;
mod claims;
mod coerce;
mod contract;
mod cost;
mod defaults;
mod document;
pub mod export;
mod gather;
pub mod lint;
mod mask;
mod meant;
mod mend;
mod nearest;
mod numbers;
mod numerals;
mod pattern;
mod place;
mod prepare;
mod problem;
mod questions;
mod required;
mod schema;
mod shape;
mod splice;
mod union;
mod validator;
mod words;

pub use canonical::canonical;
pub use claims::changed_claims;
pub use contract::{Contract, warm};
pub use defaults::fill_defaults;
pub use nearest::nearest;
pub use numbers::KEY_TWICE;
pub use prepare::Prepared;
pub use schema::SchemaError;
