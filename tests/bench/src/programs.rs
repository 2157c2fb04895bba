//! Where the programs lie that the bench runs.

use std::io;
use std::path::PathBuf;

/// The programs, all built into one folder.
pub(crate) struct Programs {
    pub(crate) raw_echo: PathBuf,
    pub(crate) echo_plugin: PathBuf,
    pub(crate) sdk_echo: PathBuf,
    pub(crate) plugd: PathBuf,
    pub(crate) rmcp_peer: PathBuf,
}

impl Programs {
    /// Looks beside the bench itself.
    ///
    /// # Errors
    /// Names the first that is missing and how to build it.
    pub(crate) fn find() -> io::Result<Programs> {
        let this = std::env::current_exe()?;
        let beside = |name: &str| {
            let path = this.with_file_name(name);
            if path.is_file() {
                return Ok(path);
            }
            Err(io::Error::other(format!(
                "{} is not built: run `make bench` or `make bench-quick`, which build it first",
                path.display()
            )))
        };
        Ok(Programs {
            raw_echo: beside("raw_echo")?,
            echo_plugin: beside("echo_plugin")?,
            sdk_echo: beside("sdk_echo")?,
            plugd: beside("plugd")?,
            rmcp_peer: beside("rmcp_peer")?,
        })
    }
}
