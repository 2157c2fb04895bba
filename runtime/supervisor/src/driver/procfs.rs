//! What /proc says of processes: which they are, whose children, and whose run they belong to.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

/// The variable that names the run a process belongs to; its descendants inherit it.
pub(super) const MARK: &str = "PLUGD_RUN";

/// The most that is read of a process's environment; Linux itself allows little more.
const ENVIRONMENT_MAX: u64 = 6 * 1024 * 1024;

/// Linux's flag of a process that ends.
const EXITING: u64 = 0x4;

/// Linux's flag of its own threads, which have no environment.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// So many descendants are looked at in one pass; the next goes on.
const DESCENDANTS_MAX: usize = 4096;

/// A process that cannot be mistaken for a later one with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: u32,
    /// In clock ticks since the machine started.
    pub(super) start_time: u64,
}

impl Identity {
    /// Who has this number now, dead or alive.
    pub(super) fn of(pid: u32) -> Option<Identity> {
        Some(Identity { pid, start_time: stat(pid)?.start_time })
    }

    /// Whether it lives: what is dead and unreaped does not.
    pub(super) fn alive(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.start_time == self.start_time && stat.lives)
    }

    /// Kills it, and nobody who came after it; says whether there was something to kill.
    pub(super) fn kill(self) -> bool {
        kill_where(self.pid, || self.alive())
    }
}

struct Stat {
    lives: bool,
    /// It has ended, or is about to: its memory is gone, and its children may not have come to us yet.
    leaves: bool,
    kernel_thread: bool,
    parent: u32,
    start_time: u64,
    /// Where its environment ends: nowhere while a program is being put in its place.
    environment_end: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold any: what follows the last one counts.
    let rest = stat.rsplit(|byte| *byte == b')').next()?;
    let fields: Vec<&str> = std::str::from_utf8(rest).ok()?.split_ascii_whitespace().collect();
    let lives = !matches!(*fields.first()?, "Z" | "X" | "x");
    let flags: u64 = fields.get(6)?.parse().ok()?;
    Some(Stat {
        lives,
        leaves: !lives || flags & EXITING != 0,
        kernel_thread: flags & KERNEL_THREAD != 0,
        parent: fields.get(1)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
        environment_end: fields.get(48)?.parse().ok()?,
    })
}

/// Kills a process that is still the right one once its number can no longer change hands.
pub(super) fn kill_where(pid: u32, right: impl FnOnce() -> bool) -> bool {
    let held = raw(pid).and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    held.is_some_and(|held| right() && rustix::process::pidfd_send_signal(&held, Signal::KILL).is_ok())
}

/// Kills a process that belongs to a run; says whom, so that his end can be waited for.
pub(super) fn kill_marked(pid: u32, run: String) -> Option<Identity> {
    let identity = Identity::of(pid)?;
    let run = Mark::Of(run);
    kill_where(pid, || mark(pid) == run).then_some(identity)
}

/// The number as the operating system's calls take it.
pub(super) fn raw(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Whose a process is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It belongs to this run.
    Of(String),
    /// It belongs to none, or there is no such process.
    None,
    /// It ends, or has ended and was not reaped: whose it was cannot be told any more.
    Dead,
    /// It is being put in place by `exec`, and can be asked in a moment.
    Unsettled,
}

/// The run that a process is marked with.
pub(super) fn mark(pid: u32) -> Mark {
    // Empty may also be what was left of the program before this one: then a second look tells.
    for _ in 0..2 {
        match environment(pid) {
            Ok(environment) if !environment.is_empty() => {
                let of_mark =
                    |entry: &[u8]| Some(entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?.to_vec());
                let found = environment.split(|byte| *byte == 0).find_map(of_mark);
                return found.and_then(|mark| String::from_utf8(mark).ok()).map_or(Mark::None, Mark::Of);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Mark::None,
            Ok(_) | Err(_) => {}
        }
        match stat(pid) {
            None => return Mark::None,
            Some(stat) if stat.kernel_thread => return Mark::None,
            Some(stat) if stat.leaves => return Mark::Dead,
            Some(stat) if stat.environment_end == 0 => return Mark::Unsettled,
            Some(_) => {}
        }
    }
    Mark::None
}

fn environment(pid: u32) -> io::Result<Vec<u8>> {
    let mut environment = Vec::new();
    File::open(format!("/proc/{pid}/environ"))?.take(ENVIRONMENT_MAX).read_to_end(&mut environment)?;
    Ok(environment)
}

/// All processes there are.
pub(super) fn all() -> Vec<u32> {
    numbers_in(Path::new("/proc"))
}

/// The children of a process.
pub(super) fn children(pid: u32) -> Vec<u32> {
    let tasks = numbers_in(&Path::new("/proc").join(pid.to_string()).join("task"));
    let mut found = Vec::new();
    for task in tasks {
        match fs::read_to_string(format!("/proc/{pid}/task/{task}/children")) {
            Ok(listed) => {
                found.extend(listed.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()))
            }
            // A thread that has just ended has none.
            Err(_) if Path::new("/proc/thread-self/children").exists() => {}
            // Some kernels are built without this list.
            Err(_) => return children_by_parent(pid),
        }
    }
    found
}

fn children_by_parent(parent: u32) -> Vec<u32> {
    all().into_iter().filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

/// These processes and all below them.
pub(super) fn families(roots: Vec<u32>) -> Vec<u32> {
    let mut found = roots;
    let mut next = 0;
    while next < found.len() && found.len() < DESCENDANTS_MAX {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}

/// Tells this start of the machine from all others.
pub(super) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

/// A name that no other spawner has.
pub(super) fn instance() -> String {
    match fs::read_to_string("/proc/sys/kernel/random/uuid") {
        Ok(id) => id.trim().to_owned(),
        Err(_) => {
            let pid = std::process::id();
            let start_time = Identity::of(pid).map_or(0, |own| own.start_time);
            format!("{pid}-{start_time}")
        }
    }
}

fn numbers_in(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).collect()
}
