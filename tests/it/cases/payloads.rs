//! Cases about payloads.
