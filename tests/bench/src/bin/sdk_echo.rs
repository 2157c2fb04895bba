//! The echo as an author would write it with the SDK.

use plugd_sdk::{Plugin, operation};

/// What came.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Echo {
    payload: String,
}

/// Gives its arguments back.
#[operation(read_only, idempotent)]
fn echo(
    /// What to give back.
    payload: String,
) -> Echo {
    Echo { payload }
}

fn main() -> std::process::ExitCode {
    Plugin::new("echo", env!("CARGO_PKG_VERSION")).concurrency(64).operation(echo::operation()).serve()
}
