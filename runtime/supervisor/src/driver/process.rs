//! A plugin's process while it lives, and how nothing of it stays behind.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::burial::{self, Burial};
use super::cgroup::Leaf;
use super::launch::Jobs;
use super::limits::Held;
use super::procfs;
use super::stdio::{Ends, Pipes};
use crate::launcher;

/// How long a killed process may take to be gone where nobody can be told to wait for it.
const MOMENT: Duration = Duration::from_millis(100);

/// The burial itself gives up after its own deadline; this is for a spawner that is held up.
const BURIED_WITHIN: Duration = burial::DEADLINE.saturating_mul(2);

/// A running child and what is known of it.
#[derive(Debug)]
pub struct Process {
    /// Gone once it is reaped.
    child: Option<Child>,
    pid: Pid,
    /// Gone once it is buried.
    mark: Option<Arc<str>>,
    leaf: Option<Leaf>,
    held: Held,
    jobs: Jobs,
    /// Told by a task that waits on the pidfd: cheaper to look at in every turn than the pidfd.
    ended: oneshot::Receiver<()>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// As the operating system has it.
    pub status: ExitStatus,
    /// Whether the kernel killed something of the run for want of memory.
    pub oom: bool,
}

/// A process as the spawning thread hands it over.
pub(super) struct Spawned {
    pub(super) child: Child,
    pub(super) pid: Pid,
    pub(super) ends: Ends,
    pub(super) pidfd: OwnedFd,
    pub(super) mark: Arc<str>,
    pub(super) leaf: Option<Leaf>,
    pub(super) held: Held,
}

impl Process {
    pub(super) fn adopt(spawned: Spawned, jobs: Jobs) -> io::Result<(Process, Pipes)> {
        let Spawned { child, pid, ends, pidfd, mark, leaf, held } = spawned;
        let (tell, ended) = oneshot::channel();
        // From here on it is killed where anything fails.
        let process = Process { child: Some(child), pid, mark: Some(mark), leaf, held, jobs, ended };
        watch(pidfd, tell)?;
        Ok((process, ends.watched()?))
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// What it is held to, as what and how, and what it should be held to and is not, as what and why.
    ///
    /// It is given away: whoever shows it keeps it. The launcher may add what it could not do.
    pub fn enforced(&mut self) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        let Held { enforced, not_enforced } = std::mem::take(&mut self.held);
        (enforced, not_enforced)
    }

    /// Waits for the process to end, whoever else holds its pipes.
    ///
    /// # Cancel safety
    /// Safe: nothing is taken before it is ready. Not to be awaited again once it has returned.
    pub async fn ended(&mut self) {
        // The watching task tells before it ends.
        let _told = (&mut self.ended).await;
    }

    /// Ends what the process left in its group and its cgroup, then takes its exit status.
    ///
    /// The group is killed first: until the leader is reaped its number cannot be given away.
    ///
    /// # Errors
    /// When the operating system has no exit status for it.
    pub fn reap(&mut self) -> io::Result<Ended> {
        self.kill();
        let oom = self.leaf.as_ref().is_some_and(Leaf::out_of_memory);
        let mut child = self.child.take().ok_or_else(|| io::Error::other("it was reaped before"))?;
        Ok(Ended { status: child.wait()?, oom })
    }

    /// Has the rest of a reaped run ended, and waits until nothing is left.
    ///
    /// What left the group is found in the cgroup or by its mark. What cannot be killed is given up
    /// on after two seconds.
    pub async fn bury(&mut self) {
        let (done, buried) = oneshot::channel();
        if let Some(burial) = self.burial(Some(done)) {
            self.jobs.bury(burial).await;
            // A spawner that is gone has nothing left to do.
            let _given_up = tokio::time::timeout(BURIED_WITHIN, buried).await;
        }
    }

    /// Who else belongs to the run now: what its process started, wherever that has gone.
    ///
    /// To be asked before [`Process::reap`], which kills them. Who is just being executed may be missing.
    pub fn relatives(&self) -> Vec<u32> {
        let Some(mark) = self.mark.as_deref() else { return Vec::new() };
        let own = std::process::id();
        // Where orphans come here, nobody of a run is anywhere else.
        let all = match launcher::adopts_orphans() {
            true => procfs::families(procfs::children(own)),
            false => procfs::all(),
        };
        let is_relative = |pid: &u32| {
            *pid != self.pid() && matches!(procfs::mark(*pid), procfs::Mark::Of(found) if found == mark)
        };
        all.into_iter().filter(is_relative).collect()
    }

    /// Sends a signal to the process group; a group that is gone is fine.
    pub fn signal_group(&self, signal: Signal) {
        if self.child.is_none() {
            // Its number may be somebody else's by now.
            return;
        }
        let reached = rustix::process::kill_process_group(self.pid, signal);
        // A process may have joined another group; SIGKILL must reach it wherever it is.
        if reached.is_err() || signal == Signal::KILL {
            let _gone = rustix::process::kill_process(self.pid, signal);
        }
    }

    fn kill(&self) {
        self.signal_group(Signal::KILL);
        if let Some(leaf) = &self.leaf {
            leaf.kill();
        }
    }

    /// What is left to do, once; with the process itself where it was not reaped.
    fn burial(&mut self, done: Option<oneshot::Sender<()>>) -> Option<Burial> {
        let (pid, mark) = (self.pid(), self.mark.take()?);
        Some(Burial { pid, mark, leaf: self.leaf.take(), child: self.child.take(), done })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Reached unburied only when the runtime is torn down, or when SIGKILL did not help: leave
        // nothing behind, and wait for nobody.
        self.kill();
        if let Some(burial) = self.burial(None)
            && let Err(burial) = self.jobs.bury_unseen(burial)
        {
            burial.await_child(MOMENT);
        }
    }
}

/// Waits on a pidfd in a task of its own, and tells when it becomes readable.
#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types that may give back another descriptor later; an OwnedFd that is never touched cannot"
)]
fn watch(pidfd: OwnedFd, tell: oneshot::Sender<()>) -> io::Result<()> {
    let pidfd = AsyncFd::new(pidfd)?;
    tokio::spawn(async move {
        // An error would mean that the reactor is gone, and everything with it.
        let _ready = pidfd.readable().await;
        let _unheard = tell.send(());
    });
    Ok(())
}
