//! Cases about encoding.
