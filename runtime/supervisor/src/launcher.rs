//! The launcher as this program uses it, and the orphans it takes in.
//!
//! Every plugin is started through a launcher ([`plugd_launcher`]): the small one beside this program where
//! there is one of the same form, else this program itself. Programs that want that call [`take_over`]
//! first thing in `main`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use plugd_launcher::{FAILED, Failed, NAME, NOTE, Note, Order, Post, Sandbox};

/// This program, even where its file has been replaced since it was started.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Whether this program can be its own launcher.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Whether orphans come to this program.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Becomes the plugin where this process was started as the launcher; else returns at once.
///
/// Call it first thing in `main`: before a runtime, a thread or a look at the arguments. A program
/// that never calls it spawns its plugins directly, and `status` says what they are not held to.
pub fn take_over() {
    plugd_launcher::take_over();
    INSTALLED.store(true, Ordering::Relaxed);
}

/// Has orphans of plugins come to this process, which then kills and reaps them.
///
/// From then on every child of this process that plugd did not spawn counts as an orphan and is
/// reaped, so only a program without children of its own calls this.
///
/// # Errors
/// When the operating system refuses.
pub fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whether orphans come to this process.
pub fn adopts_orphans() -> bool {
    ADOPTS.load(Ordering::Relaxed)
}

/// Whether [`take_over`] was called.
pub(crate) fn installed() -> bool {
    INSTALLED.load(Ordering::Relaxed)
}

/// The program that plugins are started through.
#[derive(Debug)]
pub(crate) struct Program {
    /// Held open: it stays the program that was looked at, even where its file is replaced.
    beside: Option<File>,
}

impl Program {
    /// The launcher beside this program, if it takes the orders that this one gives; else this one.
    pub(crate) fn find() -> Program {
        let beside = std::env::current_exe().ok().map(|this| this.with_file_name(NAME));
        let beside = beside.filter(|path| path.is_file()).and_then(|path| match take(&path) {
            Ok(file) => Some(file),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "this launcher is not used: plugd does its work");
                None
            }
        });
        Program { beside }
    }

    /// What to execute.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.beside {
            Some(file) => format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
            None => OWN_PROGRAM.into(),
        }
    }
}

/// Opens a launcher, if it takes the orders that this program gives.
fn take(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let asked = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .arg(plugd_launcher::FORM_ASKED)
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    if asked.stdout == plugd_launcher::form().as_bytes() {
        Ok(file)
    } else {
        Err(io::Error::other("it belongs to another version"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_of_another_version_is_not_used() {
        let error = take(Path::new("/bin/echo")).expect_err("it says something else");
        assert_eq!(error.to_string(), "it belongs to another version");
    }
}
