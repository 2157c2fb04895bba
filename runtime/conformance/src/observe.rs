//! What can be seen of a process and of folders from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::process::Pid;

/// A folder with more entries is not compared: it would take longer than all else.
const ENTRIES_MAX: usize = 20_000;

/// Folders that tools fill while they run or build: no effect of the plugin.
const PASSED_OVER: &[&str] =
    &["__pycache__", ".git", "node_modules", "target", ".pytest_cache", ".mypy_cache"];

/// So many characters of a command line are shown.
const COMMAND_CHARS: usize = 80;

/// Resident memory of a process, in KiB; also the most it ever had.
pub(crate) fn memory(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
        rest.trim().split(' ').next()?.parse().ok()
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// How many descriptors a process has open.
pub(crate) fn descriptors(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

/// The pipes that a process holds, as the system names them.
pub(crate) fn pipes(pid: u32) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let linked = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    linked.filter(|path| path.to_string_lossy().starts_with("pipe:")).collect()
}

/// What a descriptor of a process leads to.
pub(crate) fn leads_to(pid: u32, descriptor: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()
}

/// Processor time that a process has used, in milliseconds.
pub(crate) fn processor_ms(pid: u32) -> Option<u64> {
    let fields = stat(pid)?;
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
}

/// The process group of a process.
pub(crate) fn group(pid: u32) -> Option<u32> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    let group = rustix::process::getpgid(Some(raw)).ok()?;
    u32::try_from(group.as_raw_nonzero().get()).ok()
}

/// Whether a process is there and not merely unreaped.
pub(crate) fn lives(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| !matches!(fields.first().map(String::as_str), Some("Z" | "X")))
}

/// A process in words: its number and what it runs.
pub(crate) fn in_words(pid: u32) -> String {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&command).replace('\0', " ");
    let words: String = words.trim().chars().take(COMMAND_CHARS).collect();
    format!("process {pid}: {words}")
}

/// The fields of a process's state, from the one after its name.
fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold any: what follows the last one counts.
    let rest = String::from_utf8_lossy(stat.rsplit(|byte| *byte == b')').next()?).into_owned();
    Some(rest.split_ascii_whitespace().map(str::to_owned).collect())
}

/// The files of a folder as they are at one moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl Snapshot {
    /// What lies in these folders and below; `None` where that is too much to compare.
    pub(crate) fn of(folders: &[&Path]) -> Option<Snapshot> {
        let mut found = BTreeMap::new();
        let mut open: Vec<PathBuf> = folders.iter().map(|folder| (*folder).to_owned()).collect();
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    let name = entry.file_name();
                    if !PASSED_OVER.iter().any(|passed| name == *passed) {
                        open.push(entry.path());
                    }
                    found.insert(entry.path(), (0, None));
                } else {
                    found.insert(entry.path(), (metadata.len(), metadata.modified().ok()));
                }
                if found.len() > ENTRIES_MAX {
                    return None;
                }
            }
        }
        found.retain(|path, _| !PASSED_OVER.iter().any(|passed| path.ends_with(passed)));
        Some(Snapshot(found))
    }

    /// What differs in a later one, a line each.
    pub(crate) fn changes(&self, later: &Snapshot) -> Vec<String> {
        let mut changes = Vec::new();
        for (path, state) in &later.0 {
            match self.0.get(path) {
                None => changes.push(format!("made {}", path.display())),
                Some(before) if before != state => changes.push(format!("changed {}", path.display())),
                Some(_) => {}
            }
        }
        let gone = self.0.keys().filter(|path| !later.0.contains_key(*path));
        changes.extend(gone.map(|path| format!("removed {}", path.display())));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_changed_and_removed_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("stays"), "1").unwrap();
        fs::write(path("grows"), "1").unwrap();
        fs::write(path("goes"), "1").unwrap();
        let before = Snapshot::of(&[dir.path()]).unwrap();
        assert_eq!(before.changes(&Snapshot::of(&[dir.path()]).unwrap()), Vec::<String>::new());
        fs::write(path("grows"), "12").unwrap();
        fs::remove_file(path("goes")).unwrap();
        fs::create_dir(path("__pycache__")).unwrap();
        fs::write(path("__pycache__/x.pyc"), "1").unwrap();
        fs::create_dir(path("sub")).unwrap();
        let changes = before.changes(&Snapshot::of(&[dir.path()]).unwrap());
        let told = |verb: &str, name: &str| format!("{verb} {}", path(name).display());
        assert_eq!(changes, [told("changed", "grows"), told("made", "sub"), told("removed", "goes")]);
    }

    #[test]
    fn of_oneself_there_is_something_to_see() {
        let own = std::process::id();
        assert!(memory(own).is_some_and(|(now, most)| now > 0 && most >= now));
        assert!(descriptors(own).is_some_and(|count| count >= 3));
        assert!(group(own).is_some() && lives(own) && processor_ms(own).is_some());
        assert!(in_words(own).starts_with(&format!("process {own}: ")));
    }
}
