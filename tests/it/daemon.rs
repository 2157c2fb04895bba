//! The daemon: its socket, its signals, its control API, its life in the background.

mod control_api;
mod detach;
mod signals;
mod socket;
