//! Write a plugd plugin in Rust: one typed function is a whole plugin.
//!
//! ```no_run
//! use plugd_sdk::{Context, Error, Plugin, operation};
//!
//! /// Greets someone by name. Gives one friendly line back.
//! #[operation(read_only, idempotent, examples("say hello to Ada", "跟小明打个招呼"))]
//! fn hello(
//!     /// Who is greeted, a first name.
//!     name: String,
//!     /// How often.
//!     #[arg(default = 1, range = 1..=10)]
//!     times: u32,
//!     cx: &Context,
//! ) -> Result<String, Error> {
//!     cx.info(format!("greeting {name}"));
//!     Ok(vec![format!("hello {name}"); times as usize].join(", "))
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Plugin::new("greet", env!("CARGO_PKG_VERSION"))
//!         .description("Greets people.")
//!         .operation(hello::operation())
//!         .serve()
//! }
//! ```
//!
//! Name, schema, defaults and descriptions come from the function; the host checks arguments against
//! them before it is called. Types of your own, such as an enum, a nested argument or a configuration,
//! derive `serde::Deserialize` and `schemars::JsonSchema`; what is given back, `serde::Serialize` and
//! `schemars::JsonSchema`. Those are two crates beside this one (serde 1, schemars 1).
//!
//! What else there is:
//! - **Operations**: [`operation`](macro@operation) says what may be said of one and of its arguments.
//!   Arguments may also be a struct, and [`Operation::new`] takes a function without the attribute.
//! - **State and configuration**: [`Plugin::init`] opens what all operations share, from a typed
//!   configuration; a parameter that is a reference, `state: &State`, then gets it.
//!   [`Plugin::reload`] takes a changed configuration without a new process.
//! - **The call**: a [`Context`] gives the deadline, cancellation, log and progress, calls other
//!   plugins with [`Context::call`], and asks the person behind the call with [`Context::ask`].
//! - **Answers**: any serialisable data, or a [`Reply`] with a summary.
//! - **Failures**: any error with `?`, or an [`Error`] with a name and a hint.
//! - **`async`**: with the feature of that name a handler may be an `async fn` and take an
//!   `AsyncContext`; it runs on a tokio runtime.
//! - **Tests**: a handler is a plain function to call with [`Context::for_test`];
//!   [`testing::Host`] runs the whole plugin in memory.
//!
//! What it takes care of: a panic fails that call only, and the log has what it said and where (not where
//! the plugin is built with `panic = "abort"`); its stack comes with it where the plugin runs with
//! `env = { RUST_BACKTRACE = "1" }` in plugd.toml. Prints go to stderr and child programs get an empty stdin,
//! so nothing disturbs the protocol; cancellation arrives while a handler runs; it answers the host's
//! pings, whatever handlers do; the plugin leaves when its host does, a quarter of a second later at
//! most; a result that is too large for a message fails its call and says so.
#![deny(missing_docs)]

/// The README's plugin compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod amount;
mod ask;
#[cfg(feature = "async")]
mod asynchronous;
mod attribute;
mod calls;
mod cancel;
mod context;
mod error;
mod finite;
mod guard;
mod handler;
mod host;
mod init;
mod offered;
mod operation;
mod plugin;
mod process;
mod prose;
mod reply;
mod request;
mod schema;
mod serve;
mod standby;
mod stdio;
mod telling;
pub mod testing;
mod turns;
mod wire;

pub use amount::{Amount, Total};
pub use ask::{Answers, Question};
#[cfg(feature = "async")]
pub use asynchronous::{AsyncContext, AsyncHandler, AsyncVars, block_on};
pub use attribute::operation;
pub use context::Context;
pub use error::Error;
pub use handler::Handler;
pub use host::Vars;
pub use init::{InitContext, Logger};
pub use operation::Operation;
pub use plugd_protocol::error::Cause;
pub use plugd_protocol::manifest::{Confirm, Effects, Manifest};
pub use plugd_protocol::plugin::LogLevel;
pub use plugd_protocol::result::NextAction;
pub use plugd_protocol::{CallError, CallId};
pub use plugin::Plugin;
pub use reply::{IntoReply, Reply};
pub use request::HostReply;
#[doc(hidden)]
pub use {reply::is_given_back, schemars, serde};
