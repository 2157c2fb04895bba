//! The engine to embed: plugins found, supervised, and called through one pipeline.
//!
//! ```no_run
//! use plugd_engine::{CallParams, Config, Engine, Opening};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::load("plugd.toml".as_ref())?;
//! let engine = Engine::open(config, Opening::Everything).await?;
//! let result = engine.call(CallParams::new("greet.hello").arguments(r#"{"name":"Ada"}"#)?).await;
//! println!("{:?}", result.status);
//! engine.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! An engine runs on the tokio runtime it was opened on; a current-thread one is the fastest.

mod answers;
mod asks;
mod call;
mod callers;
mod calls;
mod changes;
mod check;
mod claims;
pub mod config;
mod diagnosis;
mod digests;
pub mod doctor;
mod engine;
pub mod events;
mod failure;
mod host;
mod lint;
mod listing;
pub mod logs;
mod manifests;
mod operator;
mod outcome;
mod overlaps;
mod pin;
mod registry;
mod reload;
mod remembered;
mod spec;
mod tools;
mod watch;

pub use asks::Asker;
pub use calls::Via;
pub use check::check;
pub use config::Config;
pub use engine::{Engine, OpenError, Opening};
pub use failure::seconds;
pub use plugd_protocol::control::CallParams;
pub use plugd_protocol::{CallError, CallResult, Status};
pub use plugd_supervisor::driver::{command_line, telling};
pub use plugd_supervisor::launcher;
pub use spec::run_settings;
