//! An interrupted run ends like any other: everything it started is stopped and reaped.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Takes note of SIGINT and SIGTERM from now on, in a thread of its own.
pub(crate) fn watch() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        INTERRUPTED.store(true, Ordering::Relaxed);
    })?;
    Ok(())
}

/// Asked before every turn.
///
/// # Errors
/// Once a signal has come.
pub(crate) fn check() -> io::Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(io::Error::other("interrupted")) } else { Ok(()) }
}
