//! Where the programs lie that the bench runs.

use std::io;
use std::path::PathBuf;

use plugd_bench::beside::beside;

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
        let beside = |name| beside(name, "bench");
        Ok(Programs {
            raw_echo: beside("raw_echo")?,
            echo_plugin: beside("echo_plugin")?,
            sdk_echo: beside("sdk_echo")?,
            plugd: beside("plugd")?,
            rmcp_peer: beside("rmcp_peer")?,
        })
    }
}
