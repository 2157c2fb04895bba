//! The daemon: its socket, its signals, its control API, its life in the background.

mod calls;
mod control_api;
mod detach;
mod signals;
mod socket;
