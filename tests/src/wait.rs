//! Waiting for conditions, each with a deadline, and looking at processes.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// Polls until the condition holds; panics after thirty seconds with what was expected.
///
/// Only for what tells nobody when it changes, such as a process table.
#[track_caller]
pub fn eventually(expected: &str, mut condition: impl FnMut() -> bool) {
    let ends = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < ends, "not within 30 s: {expected}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Whether a process exists and is no zombie.
pub fn alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// Sends a signal to a process that the test or its daemon started.
#[track_caller]
pub fn kill(pid: u32, signal: Signal) {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    rustix::process::kill_process(raw, signal).expect("the process is there");
}

/// The processes of a process group, zombies left out.
pub fn group_members(group: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
        fields.first() != Some(&"Z") && fields.get(2) == Some(&group.to_string().as_str())
    })
    .collect()
}
