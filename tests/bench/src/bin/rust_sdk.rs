//! The same echo with the SDK, one call at a time as by default.

use plugd_sdk::{Plugin, operation};

/// Gives its text back.
#[operation(read_only)]
fn echo(
    /// What to give back.
    payload: String,
) -> String {
    payload
}

fn main() -> std::process::ExitCode {
    Plugin::new("echo", env!("CARGO_PKG_VERSION")).operation(echo::operation()).serve()
}
