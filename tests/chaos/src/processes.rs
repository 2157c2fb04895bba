//! Looking at processes, and killing those that are ours beyond doubt.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::sandbox::MARK;

/// A process of ours: a plugin, or something that one started.
pub(crate) struct Marked {
    pub(crate) pid: u32,
    /// Whether it leads a session of its own.
    pub(crate) own_session: bool,
    /// When it was started, in ticks of the kernel since boot.
    pub(crate) started: u64,
    pub(crate) command: String,
}

/// Every process that carries the mark; zombies carry none.
pub(crate) fn marked(mark: &str) -> Vec<Marked> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| carries(*pid, mark)).filter_map(look).collect()
}

/// Kills a process if it carries the mark; false when it is gone or another one.
pub(crate) fn kill(pid: u32, mark: &str) -> bool {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    // Once it is open it stays this process's, so what is looked at next is what is killed.
    let Ok(pidfd) = rustix::process::pidfd_open(raw, PidfdFlags::empty()) else { return false };
    carries(pid, mark) && rustix::process::pidfd_send_signal(&pidfd, Signal::KILL).is_ok()
}

/// When a process was started, in ticks of the kernel since boot.
pub(crate) fn started(pid: u32) -> Option<u64> {
    stat(pid)?.get(19)?.parse().ok()
}

/// How many descriptors a process has open, one for each file in a folder of logs left out.
///
/// A log is opened with a plugin's first line, so how many there are says how talkative plugins were.
pub(crate) fn descriptors(pid: u32, logs: &Path) -> io::Result<usize> {
    let mut count = 0;
    let mut open_logs = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // One may be closed in between.
        let target = fs::read_link(entry?.path()).unwrap_or_default();
        if !target.starts_with(logs) || !open_logs.insert(target) {
            count += 1;
        }
    }
    Ok(count)
}

/// The memory of a process that no file backs, in KiB.
pub(crate) fn anonymous_kib(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse().ok())
        .ok_or_else(|| io::Error::other("the process's status has no RssAnon in kB"))
}

fn carries(pid: u32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let wanted = format!("{MARK}={mark}");
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

fn look(pid: u32) -> Option<Marked> {
    let fields = stat(pid)?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    Some(Marked {
        pid,
        own_session: fields.get(3)? == &pid.to_string(),
        started: fields.get(19)?.parse().ok()?,
        command: String::from_utf8_lossy(&command).replace('\0', " "),
    })
}

/// The fields of a process's `stat` from its state on.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}
