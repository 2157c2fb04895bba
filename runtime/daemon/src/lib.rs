//! The engine behind a control socket, and the client that speaks to it.
//!
//! [`ControlSocket::bind`] takes the socket (one daemon at a time), [`serve`] answers on it until a
//! signal or the method `shutdown` ends it, and [`client::Client`] is how a program talks to it.

mod asks;
pub mod client;
mod follow;
mod methods;
mod params;
mod server;
mod signals;
mod socket;

pub use methods::discover;
pub use server::{Limits, Ready, ServeError, serve};
pub use signals::Signals;
pub use socket::{BindError, ControlSocket};

/// How much larger than a frame a body may be: the room for everything around the payload.
pub const BODY_SLACK: usize = 64 * 1024;

/// The body limit that goes with a frame limit, as the transports count it.
fn body_limit(frame_limit: usize) -> u32 {
    u32::try_from(frame_limit.saturating_add(BODY_SLACK)).unwrap_or(u32::MAX)
}
