//! A daemon in a process of its own, and whole commands that reach it.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::plugin_config;

/// How long a daemon may take to listen, and to leave when asked.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often its state is looked at while waiting.
const GLANCE: Duration = Duration::from_millis(5);

/// A running daemon with the echo plugin; dropping it stops and reaps it.
pub struct Daemon {
    child: Child,
    program: PathBuf,
    folder: TempDir,
}

impl Daemon {
    /// Starts the program `plugd` with the echo plugin and waits until it listens.
    ///
    /// # Errors
    /// It does not come to listen; what it said is told.
    pub fn start(plugd: &Path, echo_plugin: &Path) -> io::Result<Daemon> {
        let folder = TempDir::new()?;
        let config = format!(
            "[daemon]\nsocket = \"run/plugd.sock\"\nstate_dir = \"state\"\n\n{}start = \"eager\"\nconcurrency = 64\n",
            plugin_config("echo", echo_plugin)
        );
        std::fs::write(folder.path().join("plugd.toml"), config)?;
        let stderr = std::fs::File::create(folder.path().join("stderr"))?;
        let child = Command::new(plugd)
            .arg("--config")
            .arg(folder.path().join("plugd.toml"))
            .arg("serve")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()?;
        let mut daemon = Daemon { child, program: plugd.to_owned(), folder };
        daemon.wait_until_listening()?;
        Ok(daemon)
    }

    fn wait_until_listening(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        while UnixStream::connect(self.socket()).is_err() {
            let ended = self.child.try_wait()?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let said = std::fs::read_to_string(self.folder.path().join("stderr"))?;
                let how = ended.map_or("does not listen".to_owned(), |status| format!("ended with {status}"));
                return Err(io::Error::other(format!("plugd serve {how}: {said}")));
            }
            std::thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("run/plugd.sock")
    }

    /// The words of one `plugd call` of 32 bytes, the program first.
    pub fn plugd_call(&self) -> Vec<OsString> {
        let config = self.folder.path().join("plugd.toml").into_os_string();
        let payload = format!("payload={}", "x".repeat(32));
        let words = ["--output", "json", "call", "echo.echo", &payload].map(OsString::from);
        [self.program.clone().into_os_string(), "--config".into(), config].into_iter().chain(words).collect()
    }

    /// One `plugd call`, from its start to its end.
    ///
    /// # Errors
    /// It does not end well.
    pub fn time_plugd_call(&self) -> io::Result<Duration> {
        let words = self.plugd_call();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        time_command(command, |answer| answer["status"] == "ok")
    }

    /// One `curl` that makes the same call, from its start to its end.
    ///
    /// # Errors
    /// It does not end well.
    pub fn time_curl(&self) -> io::Result<Duration> {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "call", "params": {
            "operation": "echo.echo", "arguments": {"payload": "x".repeat(32)},
        }});
        let mut command = Command::new("curl");
        command.args([
            "--silent",
            "--show-error",
            "--header",
            "content-type: application/json",
            "--unix-socket",
        ]);
        command.arg(self.socket()).args(["--data", &request.to_string(), "http://localhost/"]);
        time_command(command, |answer| answer["result"]["status"] == "ok")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Asked first, so that it stops its plugins; the pid is ours until it has been waited for.
        let pid = rustix::process::Pid::from_child(&self.child);
        let asked = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let begun = Instant::now();
        while asked.is_ok() && begun.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(GLANCE);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn time_command(mut command: Command, went_well: impl Fn(&Value) -> bool) -> io::Result<Duration> {
    command.stdin(Stdio::null());
    let begun = Instant::now();
    let output = command.output()?;
    let took = begun.elapsed();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if output.status.success() && went_well(&answer) {
        return Ok(took);
    }
    let program = Path::new(command.get_program()).display();
    let said = [output.stdout, output.stderr].concat();
    Err(io::Error::other(format!("{program}, {}: {}", output.status, String::from_utf8_lossy(&said))))
}
