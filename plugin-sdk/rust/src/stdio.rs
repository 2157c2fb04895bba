//! Standard input and output, taken away from everyone but the protocol.

use std::fs::File;
use std::io;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio;

/// Descriptors below this one are the standard three.
const FIRST_FREE: i32 = 3;

/// Moves both protocol streams to descriptors of their own, closed to child programs.
///
/// Afterwards what anything prints goes to stderr, and a child program that reads its stdin finds
/// it empty: neither can touch the protocol.
///
/// # Errors
/// Whatever the system says; nothing that can be mended while running.
pub(crate) fn take() -> io::Result<(File, File)> {
    let input = File::from(fcntl_dupfd_cloexec(io::stdin(), FIRST_FREE)?);
    let output = File::from(fcntl_dupfd_cloexec(io::stdout(), FIRST_FREE)?);
    stdio::dup2_stdin(File::open("/dev/null")?)?;
    stdio::dup2_stdout(io::stderr())?;
    Ok((input, output))
}
