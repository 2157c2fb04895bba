//! What the bench and the echoes it measures share: lines over blocking pipes.
#![deny(missing_docs)]

pub mod lines;
