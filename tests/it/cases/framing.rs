//! Cases about framing.
