//! The launcher: what happens in a plugin's process before the plugin.
//!
//! A process can be held to something only from within, before it executes the plugin's program.
//! Between fork and exec that would cost a fork of the whole supervisor, so it is done by a program of
//! its own: it waits on its stdin for one [`Order`], carries it out and becomes the plugin. So one can
//! be made ahead of its order.
//!
//! It is a small program since every plugin starts through it: linked statically against a C library
//! that asks the processor nothing when it starts, for in a virtual machine each such question
//! (`CPUID`) leaves to the hypervisor, and a dynamic program asks dozens. Any program that runs
//! plugins can do the same work itself by calling [`take_over`], only more slowly.

mod carry_out;
mod limited;
mod order;
mod sandbox;

use serde::{Deserialize, Serialize};

pub use carry_out::take_over;
pub use limited::{Limited, hold};
pub use order::{Order, Post};
pub use sandbox::Sandbox;

/// The name by which a program knows that it is to be the launcher.
pub const NAME: &str = "plugd-launcher";

/// Asked with this as its only argument, the launcher prints [`form`] and ends.
pub const FORM_ASKED: &str = "--form";

/// What a launcher and the program that gives it orders must agree on.
pub fn form() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), " order 2\n")
}

/// The notification by which the launcher says what it could not do; the plugin runs nevertheless.
pub const NOTE: &str = "launcher/note";

/// The notification by which it says that there is no plugin.
pub const FAILED: &str = "launcher/failed";

/// The parameters of [`NOTE`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Note {
    /// What the process is not held to.
    pub what: String,
    /// Why.
    pub why: String,
}

/// The parameters of [`FAILED`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failed {
    /// The operating system's error number.
    Errno(i32),
    /// Why the sandbox that was ordered cannot be had.
    Sandbox(String),
}
