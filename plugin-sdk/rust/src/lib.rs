//! Write a plugd plugin in Rust: one typed function is a whole plugin.
//!
//! ```no_run
//! use plugd_sdk::{Context, Error, Plugin, operation};
//!
//! /// Greets someone by name. Gives one friendly line back.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Hello {
//!     /// Who to greet, a first name.
//!     #[schemars(example = &"Ada")]
//!     name: String,
//!     /// How often.
//!     #[serde(default = "once")]
//!     #[schemars(range(min = 1, max = 10))]
//!     times: u32,
//! }
//!
//! fn once() -> u32 {
//!     1
//! }
//!
//! fn hello(args: Hello, cx: &Context) -> Result<String, Error> {
//!     cx.info(format!("greeting {}", args.name));
//!     Ok(vec![format!("hello {}", args.name); args.times as usize].join(", "))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Plugin::new("greet", env!("CARGO_PKG_VERSION"))
//!         .description("Greets people.")
//!         .operation(
//!             operation!(hello)
//!                 .when_to_use("Someone should be greeted.")
//!                 .examples(["say hello to Ada", "跟小明打个招呼"])
//!                 .read_only()
//!                 .idempotent(),
//!         )
//!         .serve()
//! }
//! ```
//!
//! The schemas, the defaults and the descriptions come from the types and their doc comments; the
//! host validates arguments against them before a handler sees them. Besides this crate a plugin
//! needs `serde` (with `derive`) and `schemars` 1 in its `Cargo.toml`.
//!
//! What else there is:
//! - **State and configuration**: [`Plugin::init`] opens what all operations share, from a typed
//!   configuration; handlers then take `(Arguments, &State, &Context)`.
//!   [`Plugin::reload`] takes a changed configuration without a new process.
//! - **The call**: a [`Context`] gives the deadline, cancellation, log and progress, uses other
//!   plugins with [`Context::host_call`], and asks the person behind the call with [`Context::ask`].
//! - **Answers**: any serialisable data, or a [`Reply`] with a summary.
//! - **Failures**: any error with `?`, or an [`Error`] with a name and a hint.
//! - **Tests**: a handler is a plain function to call with [`Context::for_test`];
//!   [`testing::Host`] runs the whole plugin in memory.
//!
//! What it takes care of: a panic fails that call only and is told on stderr (not where the plugin
//! is built with `panic = "abort"`); prints go to stderr and child programs get an empty stdin, so
//! nothing disturbs the protocol; cancellation arrives while a handler runs; it answers the host's
//! pings, whatever handlers do; the plugin leaves when its host does, a quarter of a second later at
//! most.
#![deny(missing_docs)]

/// The README's plugin compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod ask;
mod context;
mod error;
mod operation;
mod plugin;
mod pool;
mod process;
mod schema;
mod serve;
mod stdio;
pub mod testing;
mod wire;

pub use ask::{Answers, Question};
pub use context::{Context, HostReply, InitContext};
pub use error::Error;
pub use operation::{Handler, IntoReply, Operation, Reply};
pub use plugd_protocol::error::Cause;
pub use plugd_protocol::manifest::{Effects, Manifest};
pub use plugd_protocol::plugin::LogLevel;
pub use plugd_protocol::result::NextAction;
pub use plugd_protocol::{CallError, CallId};
pub use plugin::Plugin;
