//! Plugins as processes: their lives, their order, their calls.
//!
//! [`machine`] decides and is pure; [`driver`] acts and reports what it saw.

pub mod driver;
pub mod machine;
