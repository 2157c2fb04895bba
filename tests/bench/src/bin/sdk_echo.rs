//! The echo as an author would write it with the SDK.

use plugd_sdk::{Context, Error, Plugin, operation};

/// Gives its arguments back.
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// What to give back.
    payload: String,
}

fn echo(arguments: Echo, _: &Context) -> Result<Echo, Error> {
    Ok(arguments)
}

fn main() -> std::process::ExitCode {
    Plugin::new("echo", env!("CARGO_PKG_VERSION"))
        .concurrency(64)
        .operation(operation!(echo).read_only().idempotent())
        .serve()
}
