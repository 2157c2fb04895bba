//! The configuration as the commands need it: found, loaded, and asked for a few things.

use std::path::{Path, PathBuf};

use plugd_daemon::Limits;
use plugd_engine::config::{Config, ConfigError};

/// A loaded configuration.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) config: Config,
}
