//! Public bug reports of systems like this one, each with the right outcome.

mod encoding;
mod framing;
mod garbage;
mod payloads;
mod wire;
