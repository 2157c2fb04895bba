//! The daemon under trial: started, killed, started again.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use plugd_daemon::client::Client;
use rustix::process::{Pid, Signal};

use crate::processes;
use crate::sandbox::Sandbox;

/// How long a daemon may take to listen, and to leave when asked.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often its state is looked at while waiting.
const GLANCE: Duration = Duration::from_millis(5);

/// A running daemon; dropping it ends it, and all that carries the mark of its sandbox.
pub(crate) struct Daemon<'a> {
    child: Child,
    program: &'a Path,
    sandbox: &'a Sandbox,
}

impl<'a> Daemon<'a> {
    /// Starts one and waits until it listens.
    pub(crate) async fn start(program: &'a Path, sandbox: &'a Sandbox) -> io::Result<Daemon<'a>> {
        let mut daemon = Daemon { child: spawn(program, sandbox)?, program, sandbox };
        daemon.listening().await?;
        Ok(daemon)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, and starts another at once.
    pub(crate) async fn replace(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(self.program, self.sandbox)?;
        self.listening().await
    }

    /// Asks it to leave and waits for that.
    pub(crate) async fn stop(&mut self) -> io::Result<ExitStatus> {
        rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if begun.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("the daemon did not leave within {PATIENCE:?}")));
            }
            tokio::time::sleep(GLANCE).await;
        }
    }

    async fn listening(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        while connect(self.sandbox).await.is_none() {
            let ended = self.child.try_wait()?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let how = ended.map_or("does not listen".to_owned(), |status| format!("ended with {status}"));
                let said = std::fs::read_to_string(self.sandbox.log()).unwrap_or_default();
                return Err(io::Error::other(format!("plugd serve {how}: {said}")));
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // Errors mean that it is gone already.
        let _gone = self.child.kill().and_then(|()| self.child.wait());
        for process in processes::marked(self.sandbox.mark()) {
            processes::kill(process.pid, self.sandbox.mark());
        }
    }
}

/// A connection to whatever daemon there is, if there is one.
pub(crate) async fn connect(sandbox: &Sandbox) -> Option<Client> {
    tokio::time::timeout(PATIENCE, Client::connect(&sandbox.socket())).await.ok()?.ok()
}

fn spawn(program: &Path, sandbox: &Sandbox) -> io::Result<Child> {
    let log = OpenOptions::new().append(true).create(true).open(sandbox.log())?;
    Command::new(program)
        .arg("--config")
        .arg(sandbox.config())
        .args(["--log", "warn", "serve"])
        .env_remove("PLUGD_CONFIG")
        .env_remove("PLUGD_LOG")
        // An interrupt at the terminal is for the trial, which then ends the daemon itself.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
}
