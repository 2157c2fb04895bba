//! The daemon: socket, detaching, signals, the control API.
