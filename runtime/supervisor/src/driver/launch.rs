//! Making processes, from one thread that never ends.
//!
//! What a parent-death signal is tied to is the *thread* that spawned; tokio retires idle threads
//! after ten seconds. So every plugin is spawned from one thread that lives as long as the
//! program. Nothing is done between fork and exec: std then spawns by posix_spawn, whose cost
//! does not grow with the memory of this process.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

/// Spawns waiting for the thread; more than this many callers wait for their turn.
const SPAWNS_QUEUED: usize = 64;

/// How a plugin's process is made.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program: a path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// The folder it runs in.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The values of the environment may be secrets.
        let names: Vec<&String> = self.env.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .finish()
    }
}

/// The thread that spawns.
#[derive(Clone, Debug)]
pub(crate) struct Spawner {
    jobs: mpsc::SyncSender<Job>,
}

struct Job {
    launch: Launch,
    reply: oneshot::Sender<io::Result<(Child, OwnedFd)>>,
}

/// A running child and the three pipes to it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    /// Told by a task that waits on the pidfd: cheaper to look at in every turn than the pidfd.
    ended: oneshot::Receiver<()>,
}

/// Why there is no process.
#[derive(Debug)]
pub(crate) struct NotSpawned {
    /// In a sentence.
    pub(crate) reason: String,
    /// Whether this machine is short of something for now.
    pub(crate) passing: bool,
}

/// The pipes to a child.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

impl Spawner {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub(crate) fn start() -> io::Result<Spawner> {
        let (jobs, inbox) = mpsc::sync_channel::<Job>(SPAWNS_QUEUED);
        std::thread::Builder::new().name("plugd-spawner".to_owned()).spawn(move || {
            for job in inbox {
                // A caller that has gone away gets no process.
                if !job.reply.is_closed() {
                    let _gone = job.reply.send(spawn(&job.launch)).map_err(reap_unwanted);
                }
            }
        })?;
        Ok(Spawner { jobs })
    }

    /// Makes a process in a group of its own.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub(crate) async fn spawn(&self, launch: &Launch) -> Result<(Process, Pipes), NotSpawned> {
        let (reply, spawned) = oneshot::channel();
        let job = Job { launch: launch.clone(), reply };
        let queued = match self.jobs.try_send(job) {
            Ok(()) => Ok(()),
            Err(mpsc::TrySendError::Full(job)) => {
                let jobs = self.jobs.clone();
                tokio::task::spawn_blocking(move || jobs.send(job).is_ok())
                    .await
                    .map_or(Err(()), |sent| if sent { Ok(()) } else { Err(()) })
            }
            Err(mpsc::TrySendError::Disconnected(_)) => Err(()),
        };
        let gone = || NotSpawned { reason: "the spawning thread is gone".to_owned(), passing: false };
        queued.map_err(|()| gone())?;
        let outcome = spawned.await.map_err(|_| gone())?;
        let made = outcome.and_then(|(child, pidfd)| Process::adopt(child, pidfd));
        made.map_err(|error| NotSpawned { reason: explain(&error, launch), passing: is_shortage(&error) })
    }
}

fn spawn(launch: &Launch) -> io::Result<(Child, OwnedFd)> {
    let mut child = Command::new(&launch.program)
        .args(&launch.args)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let pid = pid_of(&child)?;
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok((child, pidfd)),
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(error.into())
        }
    }
}

fn reap_unwanted(spawned: io::Result<(Child, OwnedFd)>) {
    if let Ok((mut child, _)) = spawned {
        // Errors mean that it is gone already.
        let _gone = child.kill().and_then(|()| child.wait());
    }
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the operating system gave an impossible pid"))
}

/// Waits on a pidfd in a task of its own, and tells when it becomes readable.
#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that may give back another descriptor later; an OwnedFd that is never touched cannot"
)]
fn watch(pidfd: OwnedFd) -> io::Result<oneshot::Receiver<()>> {
    let pidfd = AsyncFd::new(pidfd)?;
    let (tell, ended) = oneshot::channel();
    tokio::spawn(async move {
        // An error would mean that the reactor is gone, and everything with it.
        let _ready = pidfd.readable().await;
        let _unheard = tell.send(());
    });
    Ok(ended)
}

impl Process {
    fn adopt(mut child: Child, pidfd: OwnedFd) -> io::Result<(Process, Pipes)> {
        let missing = || io::Error::other("a pipe is missing");
        let stdin = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
        let stdout = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
        let stderr = OwnedFd::from(child.stderr.take().ok_or_else(missing)?);
        let pid = pid_of(&child)?;
        let process = Process { child, pid, ended: watch(pidfd)? };
        let pipes = Pipes {
            stdin: pipe::Sender::from_owned_fd(stdin)?,
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        };
        Ok((process, pipes))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits for the process to end, whoever else holds its pipes.
    ///
    /// # Cancel safety
    /// Safe: nothing is taken before it is ready. Not to be awaited again once it has returned.
    pub(crate) async fn ended(&mut self) {
        // The watching task tells before it ends.
        let _told = (&mut self.ended).await;
    }

    /// Ends what the process left in its group, then takes its exit status.
    ///
    /// The group is killed first: until the leader is reaped its number cannot be given away.
    pub(crate) fn reap(&mut self) -> io::Result<std::process::ExitStatus> {
        self.signal_group(Signal::KILL);
        self.child.wait()
    }

    /// Sends a signal to the process group; a group that is gone is fine.
    pub(crate) fn signal_group(&self, signal: Signal) {
        let _gone = rustix::process::kill_process_group(self.pid, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Reached unreaped only when the runtime is torn down: leave nothing behind.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal_group(Signal::KILL);
            let _reaped = self.child.wait();
        }
    }
}

/// Whether the machine is short of descriptors, processes or memory, which passes.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    shortages.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Says what is missing when a program cannot be started.
fn explain(error: &io::Error, launch: &Launch) -> String {
    let program = launch.program.display();
    if is_shortage(error) {
        return format!("short of resources to start {program}: {error}; `ulimit -a` shows the limits");
    }
    if !launch.cwd.is_dir() {
        return format!("the folder {} does not exist", launch.cwd.display());
    }
    match error.kind() {
        io::ErrorKind::NotFound => match interpreter(&launch.program) {
            Some(interpreter) => format!("interpreter {interpreter} not found (first line of {program})"),
            None if launch.program.exists() => {
                format!(
                    "{program} cannot be executed here: its loader is missing (another architecture or libc?)"
                )
            }
            None => format!("{program} not found"),
        },
        io::ErrorKind::PermissionDenied if launch.program.is_dir() => format!("{program} is a folder"),
        io::ErrorKind::PermissionDenied => {
            format!("{program} is not executable: chmod +x it, or name its interpreter")
        }
        io::ErrorKind::ExecutableFileBusy => format!("{program} is being written to"),
        _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            format!("{program} is no program for this machine, or a script without a #! line")
        }
        _ => format!("{program} cannot be started: {error}"),
    }
}

/// The interpreter that a script's first line names, when it does not exist.
fn interpreter(program: &Path) -> Option<String> {
    let mut line = Vec::new();
    BufReader::new(File::open(program).ok()?.take(512)).read_until(b'\n', &mut line).ok()?;
    let line = String::from_utf8(line).ok()?;
    let interpreter = line.strip_prefix("#!")?.split_whitespace().next()?.to_owned();
    (!Path::new(&interpreter).exists()).then_some(interpreter)
}
