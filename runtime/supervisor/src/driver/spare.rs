//! A launcher made ahead of its order: a start then costs a plugin's own `execve` and no more.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;

use rustix::process::Pid;

use super::burial;
use super::procfs;
use super::spawner::{number, piped};
use crate::launcher::{self, Order, Post, Program};

/// What a launcher is known as before it belongs to a run.
const MARK: &str = "launcher";

/// A launcher that waits for its order; killed when it is dropped.
pub(super) struct Launcher {
    /// `None` once it has become a plugin.
    child: Option<Child>,
    pid: Pid,
}

impl Launcher {
    /// Makes one. It is known as ours from the start.
    ///
    /// # Errors
    /// When the operating system gives no process, or none of this program.
    pub(super) fn make(program: &Program, die_with_parent: bool) -> io::Result<Launcher> {
        let post = Post { parent: std::process::id(), die_with_parent };
        let mut command = Command::new(program.path());
        command.arg0(launcher::NAME).arg(serde_json::to_string(&post)?).current_dir("/").env_clear();
        // Until it is known as ours it must not be taken for an orphan.
        let mut leaders = burial::leaders();
        let (child, pid) = piped(command)?;
        leaders.insert(number(pid), MARK.into());
        Ok(Launcher { child: Some(child), pid })
    }

    /// Whether it can still be given an order.
    pub(super) fn waits(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Gives it its order, with which it becomes the process of a run.
    ///
    /// # Errors
    /// When it does not take it; it is gone then.
    pub(super) fn give(mut self, order: &Order, mark: &Arc<str>) -> io::Result<(Child, Pid)> {
        let order = order.write()?;
        let mut child = self.child.take().ok_or_else(|| io::Error::other("it has had its order"))?;
        let stdin = child.stdin.as_mut().ok_or_else(|| io::Error::other("a pipe is missing"));
        if let Err(error) = stdin.and_then(|stdin| stdin.write_all(&order)) {
            self.child = Some(child);
            return Err(error);
        }
        burial::leaders().insert(number(self.pid), Arc::clone(mark));
        Ok((child, self.pid))
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
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
