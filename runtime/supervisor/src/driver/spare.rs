//! A launcher made ahead of its order: a start then costs a plugin's own `execve` and no more.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use rustix::process::Pid;

use super::burial;
use super::procfs;
use super::spawner::number;
use super::stdio::{Connected, Stdio};
use crate::launcher::{self, Order, Post, Program};

/// What a launcher is known as before it belongs to a run.
const MARK: &str = "launcher";

/// A launcher that waits for its order; killed when it is dropped.
pub(super) struct Launcher {
    /// `None` once it has become a plugin.
    connected: Option<Connected>,
    pid: Pid,
}

impl Launcher {
    /// Makes one. It is known as ours from the start.
    ///
    /// # Errors
    /// When the operating system gives no process, or none of this program.
    pub(super) fn make(program: &Program, die_with_parent: bool, stdio: Stdio) -> io::Result<Launcher> {
        let post = Post { parent: std::process::id(), die_with_parent };
        let mut command = Command::new(program.path());
        command.arg0(launcher::NAME).arg(serde_json::to_string(&post)?).current_dir("/").env_clear();
        // Until it is known as ours it must not be taken for an orphan.
        let mut leaders = burial::leaders();
        let connected = Connected::start(command, stdio)?;
        let pid = connected.pid;
        leaders.insert(number(pid), MARK.into());
        Ok(Launcher { connected: Some(connected), pid })
    }

    /// Whether it can still be given an order.
    pub(super) fn waits(&mut self) -> bool {
        self.connected.as_mut().is_some_and(|it| matches!(it.child.try_wait(), Ok(None)))
    }

    /// Gives it its order, with which it becomes the process of a run.
    ///
    /// # Errors
    /// When it does not take it; it is gone then.
    pub(super) fn give(mut self, order: &Order, mark: &Arc<str>) -> io::Result<Connected> {
        let order = order.write()?;
        let connected = self.connected.take().ok_or_else(|| io::Error::other("it has had its order"))?;
        if let Err(error) = connected.ends.write_all(&order) {
            self.connected = Some(connected);
            return Err(error);
        }
        burial::leaders().insert(number(self.pid), Arc::clone(mark));
        Ok(connected)
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if let Some(Connected { mut child, .. }) = self.connected.take() {
            // Errors mean that it is gone already.
            let _gone = child.kill().and_then(|()| child.wait());
            forget(&mut burial::leaders(), self.pid);
        }
    }
}

fn forget(leaders: &mut BTreeMap<u32, Arc<str>>, pid: Pid) {
    let pid = number(pid);
    if leaders.get(&pid).is_some_and(|mark| **mark == *MARK) {
        leaders.remove(&pid);
    }
}

/// The environment of a run's process: what is configured, and its mark.
pub(super) fn marked(env: &[(String, String)], mark: &str) -> Vec<(String, String)> {
    let others = env.iter().filter(|(name, _)| name != procfs::MARK).cloned();
    others.chain([(procfs::MARK.to_owned(), mark.to_owned())]).collect()
}
