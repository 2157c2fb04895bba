//! How plugins are found, named and listed.
