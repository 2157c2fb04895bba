//! Running calls: failure, deadlines, cancel, isolation.
