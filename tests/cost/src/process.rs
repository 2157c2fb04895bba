//! Programs that are run to their end.

use std::io;
use std::process::{Command, Output, Stdio};

/// Runs it and takes what it writes.
///
/// # Errors
/// It cannot be run, or ends badly; what it said is told.
pub(crate) fn run(command: &mut Command) -> io::Result<Output> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        io::Error::other(format!("{} cannot be run: {error}", command.get_program().display()))
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?} ended with {}: {said}", output.status)))
}
