//! A folder with the plugins, their configuration and the ledger.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::tempers::TEMPERS;

/// The program that all plugins are.
const PROGRAM: &str = include_str!("../plugins/temper.py");

/// Short graces, so that much happens; a deaf plugin takes all of them.
const HEAD: &str = "[daemon]\nsocket = \"run/plugd.sock\"\nstate_dir = \"state\"\n\n\
    [limits]\ntimeout = \"3s\"\nqueue_timeout = \"3s\"\ndrain_timeout = \"500ms\"\n\
    shutdown_timeout = \"300ms\"\nterm_timeout = \"200ms\"\nkill_timeout = \"200ms\"\n";

/// The variable whose value tells our plugins, and all that they start, from every other process.
pub(crate) const MARK: &str = "PLUGD_CHAOS_MARK";

pub(crate) struct Sandbox {
    folder: TempDir,
    mark: String,
}

impl Sandbox {
    pub(crate) fn new(seed: u64) -> io::Result<Sandbox> {
        let folder = tempfile::Builder::new().prefix("plugd-chaos-").tempdir()?;
        let mark = format!("{}-{seed}", folder.path().display());
        let sandbox = Sandbox { folder, mark };
        fs::write(sandbox.path().join("temper.py"), PROGRAM)?;
        sandbox.configure(0, None)?;
        Ok(sandbox)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("run/plugd.sock")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path().join("plugd.toml")
    }

    /// What the daemons say on stderr.
    pub(crate) fn log(&self) -> PathBuf {
        self.path().join("daemon.log")
    }

    /// Where the plugins' logs are.
    pub(crate) fn logs(&self) -> PathBuf {
        self.path().join("state/logs")
    }

    /// Where every execution that must not happen twice is written down.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.path().join("ledger")
    }

    /// What [`MARK`] is set to here.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// Writes the configuration; one plugin may get another variable, or other keys of its own, than before.
    pub(crate) fn configure(&self, variant: u64, changed: Option<&str>) -> io::Result<()> {
        let mut text = HEAD.to_owned();
        for temper in TEMPERS {
            let variant = if changed == Some(temper.name) { variant } else { 0 };
            // The one that takes a new configuration in place gets one, the others are replaced.
            let own = temper.name == "changes";
            let (environment, configuration) = if own { (0, variant) } else { (variant, 0) };
            // A Rust string literal of a path without control characters is a TOML basic string too.
            let _written = writeln!(
                text,
                "\n[plugins.{}]\ncommand = [\"python3\", \"-S\", \"temper.py\", {:?}]\nstart = \"eager\"\n{}\
                 env = {{ {MARK} = {:?}, LEDGER = {:?}, VARIANT = \"{environment}\" }}\n\
                 config = {{ variant = {configuration} }}",
                temper.name,
                temper.program,
                temper.table,
                self.mark,
                self.ledger().display().to_string()
            );
        }
        // A reload must never see half a file.
        let new = self.path().join("plugd.toml.new");
        fs::write(&new, text)?;
        fs::rename(new, self.config())
    }
}
