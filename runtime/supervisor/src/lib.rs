//! Plugins as processes: their lives, their order, their calls.
//!
//! [`machine`] decides and is pure; [`driver`] acts and reports what it saw. [`launcher`] is what a
//! plugin's process does before it becomes the plugin.

pub mod driver;
pub mod launcher;
pub mod machine;
