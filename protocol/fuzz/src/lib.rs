//! What must hold of the protocol crate for every input: run by the fuzz targets and by `tests/corpus.rs`.
//!
//! Each function takes bytes as a plugin may write them, and panics where a promise is broken.

mod decoding;
mod manifests;
mod messages;

pub use decoding::{decoder, decoder_at_every_cut};
pub use manifests::manifest;
pub use messages::message;
