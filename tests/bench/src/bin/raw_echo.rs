//! The baseline: every line comes back as it is, by blocking reads and writes.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use plugd_bench::lines::Lines;

fn main() -> io::Result<()> {
    // Files on the descriptors themselves: the standard handles lock and buffer.
    let mut lines = Lines::new(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    while let Some(line) = lines.next_line()? {
        stdout.write_all(line)?;
    }
    Ok(())
}
