//! Plugins as processes: their lives, their order, their calls.
