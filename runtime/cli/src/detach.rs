//! A daemon in the background, which holds nothing of whoever started it.
//!
//! The program starts itself again with stdin from /dev/null, stdout as a pipe for the one line
//! that says how the start went, and stderr into the log file. The new process leaves the
//! session, and swaps stdout for /dev/null once it has said its line.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plugd_daemon::Ready;
use plugd_protocol::control::{DaemonStatus, StatusParams, StatusReport};
use plugd_protocol::{CallError, ErrorKind};
use serde::Deserialize;

use crate::context::Context;
use crate::failure::Failure;

/// A daemon that has just taken its socket answers within this.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Nobody tells when another process begins to answer.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What the background side says about its start.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Failed { error: CallError },
    Ready(Ready),
}

/// Starts the daemon in the background and waits until it answers.
///
/// # Errors
/// What kept it from starting, as it said itself.
pub(crate) async fn launch(context: &Context) -> Result<Ready, Failure> {
    let settings = context.settings()?;
    settings.make_state_dir()?;
    let log_path = settings.config.state_dir.join("daemon.log");
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&log_path).map_err(|error| {
        Failure::environment(
            format!("cannot write the daemon's log {}: {error}", log_path.display()),
            "another folder can be named with daemon.state_dir",
        )
    })?;
    let mut daemon = start(context, log)?;
    let mut line = String::new();
    let stdout = daemon.stdout.take().expect("stdout is a pipe");
    let read = BufReader::new(stdout).read_line(&mut line);
    match serde_json::from_str(&line) {
        Ok(Said::Ready(ready)) => Ok(ready),
        Ok(Said::Failed { error }) if error.code == ErrorKind::AlreadyRunning.code() => {
            already_there(context, error.into()).await
        }
        Ok(Said::Failed { error }) => Err(error.into()),
        Err(_) => Err(died(daemon, read.err(), &log_path)),
    }
}

/// The daemon that has the socket already, once it answers; whoever wants one to be there has it.
///
/// # Errors
/// The refusal, where it does not answer.
async fn already_there(context: &Context, refusal: Failure) -> Result<Ready, Failure> {
    let ends = Instant::now() + ANSWERS_WITHIN;
    loop {
        if let Ok(daemon) = context.daemon().await
            && let Ok(StatusReport { daemon, plugins }) = daemon.status(&StatusParams::default()).await
        {
            let DaemonStatus { version, pid, config, socket, .. } = daemon;
            let (socket, plugins) = (socket.unwrap_or_default(), plugins.len());
            return Ok(Ready { version, pid, socket, config, plugins, already_running: true });
        }
        if Instant::now() >= ends {
            return Err(refusal);
        }
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
}

fn start(context: &Context, log: File) -> Result<Child, Failure> {
    let failed = |error: std::io::Error| {
        Failure::environment(
            format!("cannot start the daemon: {error}"),
            "try `plugd serve` in the foreground",
        )
    };
    let program = std::env::current_exe().map_err(failed)?;
    // Descriptors that our caller left open would be held by the daemon for as long as it lives.
    // rustix and nix can mark one only through `unsafe`; close_fds marks them all, safely.
    close_fds::set_fds_cloexec(3, &[]);
    let mut command = Command::new(program);
    command.args(["serve", "--detached", "--output", "json"]);
    if let Some(config) = &context.global.config {
        command.arg("--config").arg(config);
    }
    if let Some(socket) = &context.global.socket {
        command.arg("--socket").arg(socket);
    }
    if let Some(filter) = &context.global.log {
        command.arg("--log").arg(filter);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().map_err(failed)
}

/// Why a daemon that said nothing is gone, as far as that can be told.
fn died(mut daemon: Child, unreadable: Option<std::io::Error>, log: &Path) -> Failure {
    let how = match (unreadable, daemon.wait()) {
        (Some(error), _) => error.to_string(),
        (None, Ok(status)) => status.to_string(),
        (None, Err(error)) => error.to_string(),
    };
    Failure::environment(
        format!("the daemon ended before it was ready ({how})"),
        &format!("its log {} says more", log.display()),
    )
}

/// Leaves the caller's session, so that its terminal and its signals are no longer ours.
pub(crate) fn leave_session() {
    // It fails only for the leader of a process group, which a spawned process is not.
    let _ = rustix::process::setsid();
}

/// Swaps stdout, the pipe to whoever waited for us, for /dev/null.
pub(crate) fn let_go_of_stdout() {
    let swapped = OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .and_then(|null| rustix::stdio::dup2_stdout(null).map_err(std::io::Error::from));
    if let Err(error) = swapped {
        tracing::warn!("cannot let go of stdout: {error}");
    }
}
