//! Programs that lie beside this one, as the bench and the guard of costs need them.

use std::io;
use std::path::PathBuf;

/// A program that is built into the folder of this one.
///
/// # Errors
/// Names it where it is missing, and what to run: `make` with `target`.
pub fn beside(name: &str, target: &str) -> io::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(io::Error::other(format!(
        "{} is not built: run `make {target}`, which builds it first",
        path.display()
    )))
}
