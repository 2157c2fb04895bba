//! A daemon in a process of its own, and what reaches it: a connected client, and whole commands.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_daemon::client::Client;
use plugd_protocol::control::CallParams;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::contender::{Case, Contender, Figures, SOCKET, TripTimes};
use crate::host::{check, echo_call, plugin_config};
use crate::programs::Programs;

/// How long a daemon may take to listen, and to leave when asked.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often its state is looked at while waiting.
const GLANCE: Duration = Duration::from_millis(5);

/// A running daemon with the echo plugin; dropping it stops and reaps it.
pub(crate) struct Daemon {
    child: Child,
    program: PathBuf,
    folder: TempDir,
}

impl Daemon {
    /// Starts it and waits until it listens.
    pub(crate) fn start(programs: &Programs) -> io::Result<Daemon> {
        let folder = TempDir::new()?;
        let config = format!(
            "[daemon]\nsocket = \"run/plugd.sock\"\nstate_dir = \"state\"\n\n{}start = \"eager\"\nconcurrency = 64\n",
            plugin_config("echo", &programs.echo_plugin)
        );
        std::fs::write(folder.path().join("plugd.toml"), config)?;
        let stderr = std::fs::File::create(folder.path().join("stderr"))?;
        let child = Command::new(&programs.plugd)
            .arg("--config")
            .arg(folder.path().join("plugd.toml"))
            .arg("serve")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()?;
        let mut daemon = Daemon { child, program: programs.plugd.clone(), folder };
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

    fn socket(&self) -> PathBuf {
        self.folder.path().join("run/plugd.sock")
    }

    /// One `plugd call`, from its start to its end.
    pub(crate) fn time_plugd_call(&self) -> io::Result<Duration> {
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(self.folder.path().join("plugd.toml")).arg("--output").arg("json");
        command.args(["call", "echo.echo", &format!("payload={}", "x".repeat(32))]);
        time_command(command, |answer| answer["status"] == "ok")
    }

    /// One `curl` that makes the same call, from its start to its end.
    pub(crate) fn time_curl(&self) -> io::Result<Duration> {
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

/// One connected client as a contender.
pub(crate) struct Socket {
    client: Arc<Client>,
    runtime: Runtime,
    _daemon: Rc<Daemon>,
}

impl Socket {
    pub(crate) fn connect(daemon: Rc<Daemon>) -> io::Result<Socket> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(Client::connect(&daemon.socket())).map_err(io::Error::other)?;
        Ok(Socket { client: Arc::new(client), runtime, _daemon: daemon })
    }
}

impl Contender for Socket {
    fn name(&self) -> &'static str {
        SOCKET
    }

    fn measure(&mut self, case: Case, slice: Duration) -> io::Result<Figures> {
        let call = Arc::new(echo_call("echo", case.payload));
        self.runtime.block_on(async {
            let mut all = TripTimes::begin(slice);
            if case.in_flight == 1 {
                return Ok(trips(Arc::clone(&self.client), call, slice).await?.figures());
            }
            let mut callers = JoinSet::new();
            for _ in 0..case.in_flight {
                callers.spawn(trips(Arc::clone(&self.client), Arc::clone(&call), slice));
            }
            while let Some(ended) = callers.join_next().await {
                all.join(ended.map_err(io::Error::other)??);
            }
            Ok(all.figures())
        })
    }
}

/// Calls one after another until the slice is over.
async fn trips(client: Arc<Client>, call: Arc<CallParams>, slice: Duration) -> io::Result<TripTimes> {
    let mut trips = TripTimes::begin(slice);
    while !trips.over() {
        let sent = Instant::now();
        let result = client.call(&call).await.map_err(io::Error::other)?;
        trips.add(sent.elapsed());
        check(&call, &result)?;
    }
    Ok(trips)
}
