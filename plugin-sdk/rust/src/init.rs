//! What a plugin knows while it starts.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use plugd_protocol::plugin::LogLevel;

use crate::amount::{Amount, Total};
use crate::telling::{Origin, log, log_levels, progress};
use crate::wire::Wire;

/// What an [`init`](crate::Plugin::init) knows besides the configuration.
pub struct InitContext {
    pub(crate) logger: Logger,
    pub(crate) data_dir: String,
    pub(crate) locale: String,
}

impl InitContext {
    /// A start without a host, for tests of an `init` as a plain function.
    pub fn for_test(data_dir: impl Into<String>) -> InitContext {
        InitContext { logger: Logger::for_test(), data_dir: data_dir.into(), locale: "en".to_owned() }
    }

    /// A folder of the plugin's own that outlives its runs.
    pub fn data_dir(&self) -> &Path {
        Path::new(&self.data_dir)
    }

    /// The language to speak, a BCP 47 tag.
    pub fn locale(&self) -> &str {
        &self.locale
    }

    /// Where lines go that belong to no call; it may be kept for as long as the plugin runs.
    pub fn logger(&self) -> Logger {
        self.logger.clone()
    }

    /// Writes a line to the plugin's log.
    pub fn log(&self, level: LogLevel, message: impl fmt::Display) {
        self.logger.log(level, message);
    }

    log_levels!();

    /// Says how far the start is, as [`Context::progress`](crate::Context::progress), and thereby asks for more
    /// time (300 s at most).
    pub fn progress(&self, done: impl Amount, total: impl Total, message: &str) {
        progress(&self.logger.0, Origin::default(), done.amount(), total.total(), message);
    }
}

/// The plugin's log, for what belongs to no call: a thread of its own, a reload, the end.
#[derive(Clone)]
pub struct Logger(Arc<Wire>);

impl Logger {
    pub(crate) fn new(wire: Arc<Wire>) -> Logger {
        Logger(wire)
    }

    /// A log that is lost, for tests.
    pub fn for_test() -> Logger {
        Logger(Arc::new(Wire::loose()))
    }

    /// Writes a line.
    pub fn log(&self, level: LogLevel, message: impl fmt::Display) {
        log(&self.0, Origin::default(), level, &message);
    }

    log_levels!();
}

/// Shows nothing: there is nothing to be seen.
impl fmt::Debug for Logger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Logger").finish_non_exhaustive()
    }
}
