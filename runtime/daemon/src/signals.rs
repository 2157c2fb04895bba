//! The signals a daemon obeys: SIGTERM and SIGINT end it, SIGHUP applies the configuration.
//!
//! SIGXFSZ would end it as well: caught, a file that may not grow is a write that fails.

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The daemon's signals, caught from the moment this exists.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    _file_too_large: Signal,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Stop everything and leave.
    Stop,
    /// Apply the configuration.
    Reload,
}

impl Signals {
    /// Catches them; needs a runtime.
    ///
    /// # Errors
    /// What the system said when it refused a handler.
    pub fn catch() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            _file_too_large: signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?,
        })
    }

    /// The next signal; cancel safe.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }

    /// The next signal to stop, passing over all others; cancel safe.
    pub async fn stop(&mut self) {
        while self.next().await != Asked::Stop {}
    }
}
