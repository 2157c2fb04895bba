//! Plugins in languages nobody here wrote an SDK for.
