//! Public bug reports of systems like this one, each with the right outcome.

mod backpressure;
mod concurrency;
mod encoding;
mod environment;
mod framing;
mod garbage;
mod leaks;
mod lifecycle;
mod logging;
mod ordering;
mod orphans;
mod payloads;
mod reload;
mod restart;
mod security;
mod timeouts;
mod wire;
