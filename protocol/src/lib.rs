//! All that crosses a process boundary of plugd: frames, messages, manifests, results, errors.
//!
//! Two conversations are described here. Between the runtime and a plugin: one JSON-RPC 2.0
//! message per line over stdin and stdout ([`frame`], [`message`], [`plugin`], [`manifest`]).
//! Between a client and the daemon: JSON-RPC 2.0 over a Unix socket ([`control`]), where every
//! call ends in one [`result::CallResult`], failed or not.
//!
//! The crate is pure: no task, no I/O, no clock. `docs/protocol.md` is the same treaty in prose.
#![deny(missing_docs)]

pub mod control;
pub mod error;
pub mod frame;
pub mod manifest;
pub mod message;
pub mod name;
pub mod negotiation;
mod plain;
pub mod plugin;
pub mod result;

pub use error::{CallError, ErrorKind, Outcome, RpcError};
pub use frame::{Decoder, Frame};
pub use manifest::{Manifest, Operation};
pub use name::{CallId, OperationId, OperationName, PluginName};
pub use negotiation::{PROTOCOL_VERSION, PROTOCOL_VERSIONS};
pub use plain::plain;
pub use result::{CallResult, Status};
