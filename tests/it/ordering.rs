//! Dependencies and the order that follows from them.
