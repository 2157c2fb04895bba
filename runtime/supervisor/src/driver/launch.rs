//! How a plugin's process is made, and the handle to the thread that makes it.
//!
//! What a parent-death signal is tied to is the *thread* that spawned; tokio retires idle threads
//! after ten seconds. So every plugin is spawned from one thread that lives as long as the
//! program. Nothing is done between fork and exec: std then spawns by posix_spawn, whose cost
//! does not grow with the memory of this process.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::time::Duration;

use plugd_protocol::PluginName;
use tokio::sync::oneshot;

use super::burial::{self, Burial};
use super::limits::{CgroupLimits, Rlimits};
pub use super::not_spawned::{NotSpawned, command_line, is_program, not_launched, not_on_path};
pub use super::process::{Ended, Process};
use super::procfs;
use super::records::Records;
use super::spawner::{Job, Workshop};
pub use super::stdio::{FromPlugin, Pipes, Stdio, ToPlugin};
use crate::launcher::{self, Sandbox};
use crate::machine::Generation;

/// Jobs waiting for the thread; more than this many callers wait for their turn.
const JOBS_QUEUED: usize = 64;

/// How long everybody who closes waits for the last burials, and for jobs before them.
const CLOSED_WITHIN: Duration = burial::DEADLINE.saturating_mul(2);

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
    /// What the process is held to.
    pub rlimits: Rlimits,
    /// What it is held to together with all it starts.
    pub cgroup: CgroupLimits,
    /// What it is kept from, with all it starts; where that cannot be, there is no process.
    pub sandbox: Sandbox,
    /// What its stdin and stdout are.
    pub stdio: Stdio,
    /// The command that makes the program, to be named where that is not there; nothing is done with it.
    pub build: Vec<String>,
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
            .field("rlimits", &self.rlimits)
            .field("cgroup", &self.cgroup)
            .field("sandbox", &self.sandbox)
            .field("stdio", &self.stdio)
            .field("build", &self.build)
            .finish()
    }
}

/// What the program that runs plugins does for all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosting {
    /// Whether plugins are killed when this program is.
    pub parent_death_signal: bool,
    /// Whether each run gets a cgroup, where this program may make one.
    pub cgroups: bool,
    /// Where runs are noted, so that the next start can end what a killed one left.
    pub runs_dir: Option<PathBuf>,
    /// Whether this program stays. One that does ends at once what a killed one left, and keeps a
    /// launcher ready; another does so before it makes its first process.
    pub stays: bool,
}

impl Default for Hosting {
    fn default() -> Hosting {
        Hosting { parent_death_signal: true, cgroups: true, runs_dir: None, stays: true }
    }
}

/// Which run a process is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunMark {
    /// The plugin.
    pub plugin: PluginName,
    /// Which of its runs.
    pub generation: Generation,
}

/// The handle to the thread that spawns; cheap to clone, all clones are the same.
#[derive(Clone, Debug)]
pub struct Spawner {
    jobs: Jobs,
    reap_wanted: Arc<AtomicBool>,
}

/// The way to the thread.
#[derive(Clone, Debug)]
pub(super) struct Jobs(SyncSender<Job>);

impl Spawner {
    /// Starts the thread; what a killed owner of the same folder left is ended before or with the
    /// first process, as `hosting` says.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn start(hosting: Hosting) -> io::Result<Spawner> {
        let instance = procfs::instance();
        let records = hosting.runs_dir.as_deref().and_then(|folder| match Records::open(folder, &instance) {
            Ok(records) => Some(records),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "runs cannot be noted");
                None
            }
        });
        if let Some(records) = records.as_ref().filter(|_| hosting.stays) {
            records.sweep();
        }
        let (jobs, inbox) = mpsc::sync_channel(JOBS_QUEUED);
        let reap_wanted = Arc::new(AtomicBool::new(false));
        let workshop = Workshop::new(hosting, instance, records, Arc::clone(&reap_wanted));
        let thread = std::thread::Builder::new().name("plugd-spawner".to_owned());
        thread.spawn(move || workshop.run(&inbox))?;
        Ok(Spawner { jobs: Jobs(jobs), reap_wanted })
    }

    /// Makes a process in a group of its own.
    ///
    /// # Errors
    /// A sentence that says what is missing.
    pub async fn spawn(&self, launch: &Launch, mark: &RunMark) -> Result<(Process, Pipes), NotSpawned> {
        let gone = || NotSpawned { reason: "the spawning thread is gone".to_owned(), passing: false };
        let (reply, spawned) = oneshot::channel();
        let job = Job::Spawn { launch: launch.clone(), mark: mark.clone(), reply };
        if !self.jobs.send(job).await {
            return Err(gone());
        }
        let outcome = spawned.await.map_err(|_| gone())?;
        let made = outcome.and_then(|spawned| Process::adopt(spawned, self.jobs.clone()));
        made.map_err(|error| NotSpawned::because(&error, launch))
    }

    /// Has orphans reaped that have died: to be called whenever a child of this process has ended.
    ///
    /// It never waits, and does nothing where this program adopts no orphans.
    pub fn reap_orphans(&self) {
        if launcher::adopts_orphans() && !self.reap_wanted.swap(true, Ordering::Relaxed) {
            // Where the queue is full the thread is awake, and looks after each job.
            let _awake = self.jobs.0.try_send(Job::Reap);
        }
    }

    /// Finishes the burials that are under way, and leaves no folder behind.
    ///
    /// It gives up after a few seconds. Nothing should be spawned any more.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.jobs.send(Job::Close(done)).await {
            let _given_up = tokio::time::timeout(CLOSED_WITHIN, closed).await;
        }
    }
}

impl Jobs {
    /// Says whether the thread is still there.
    async fn send(&self, job: Job) -> bool {
        match self.0.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(job)) => {
                let jobs = self.0.clone();
                tokio::task::spawn_blocking(move || jobs.send(job).is_ok()).await.unwrap_or(false)
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    pub(super) async fn bury(&self, burial: Burial) {
        self.send(Job::Bury(burial)).await;
    }

    /// Has something buried where nobody can wait; gives it back where that cannot be.
    pub(super) fn bury_unseen(&self, burial: Burial) -> Result<(), Burial> {
        match self.0.try_send(Job::Bury(burial)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => match job {
                Job::Bury(burial) => Err(burial),
                Job::Spawn { .. } | Job::Reap | Job::Close(_) => Ok(()),
            },
        }
    }
}
