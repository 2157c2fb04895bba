//! Where the programs lie that are counted or called.

use std::io;
use std::path::PathBuf;

use plugd_bench::beside::beside;

/// The programs, all built into one folder.
pub(crate) struct Programs {
    pub(crate) this: PathBuf,
    pub(crate) raw_echo: PathBuf,
    pub(crate) echo_plugin: PathBuf,
    pub(crate) hold_plugin: PathBuf,
    pub(crate) cost_client: PathBuf,
    pub(crate) plugd: PathBuf,
}

impl Programs {
    /// Looks beside this program.
    ///
    /// # Errors
    /// Names the first that is missing and how to build it.
    pub(crate) fn find() -> io::Result<Programs> {
        let this = std::env::current_exe()?;
        let beside = |name| beside(name, "cost");
        Ok(Programs {
            raw_echo: beside("raw_echo")?,
            echo_plugin: beside("echo_plugin")?,
            hold_plugin: beside("hold_plugin")?,
            cost_client: beside("cost_client")?,
            plugd: beside("plugd")?,
            this,
        })
    }
}
