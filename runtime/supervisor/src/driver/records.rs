//! Notes of what runs, so that the next start can end what a killed owner left.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::cgroup::Leaf;
use super::launch::RunMark;
use super::procfs::{self, Identity, Mark};

/// How long a start waits for what it killed: a successor may need what that still holds.
const DEATHS_AWAITED: Duration = Duration::from_secs(1);

/// How often is looked whether they are gone.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// One run's process, as it stands in a file of its own.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pid: u32,
    start_time: u64,
    boot_id: String,
    plugin: String,
    generation: u64,
    mark: String,
    cgroup: Option<PathBuf>,
    owner: Identity,
}

/// The folder with the records of our own runs, and of others'.
#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
    boot_id: String,
    owner: Identity,
}

/// What a record is about.
pub(super) struct Noted {
    pub(super) pid: u32,
    pub(super) run: RunMark,
    pub(super) mark: Arc<str>,
    pub(super) cgroup: Option<PathBuf>,
}

impl Records {
    /// Of this process; the folder is made with the first record.
    ///
    /// # Errors
    /// When this process is not to be found in /proc.
    pub(super) fn open(folder: &Path) -> io::Result<Records> {
        let owner = Identity::of(std::process::id())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "/proc does not show this process"))?;
        Ok(Records { folder: folder.to_owned(), boot_id: procfs::boot_id(), owner })
    }

    /// Notes a process that has just been made. It is not forced to the disk: a machine that loses
    /// it has lost the process as well.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn note(&self, noted: &Noted) -> io::Result<()> {
        let Some(identity) = Identity::of(noted.pid) else {
            return Ok(());
        };
        let record = Record {
            pid: noted.pid,
            start_time: identity.start_time,
            boot_id: self.boot_id.clone(),
            plugin: noted.run.plugin.to_string(),
            generation: noted.run.generation.0,
            mark: noted.mark.to_string(),
            cgroup: noted.cgroup.clone(),
            owner: self.owner,
        };
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let path = self.path(noted.pid);
        let mut file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                options.open(&path)?
            }
            opened => opened?,
        };
        file.write_all(&serde_json::to_vec(&record)?).inspect_err(|_| {
            // A part of a record says less than none.
            self.forget(noted.pid);
        })
    }

    /// Forgets a process that is gone.
    pub(super) fn forget(&self, pid: u32) {
        // A record that stays is removed by the next start.
        let _gone = fs::remove_file(self.path(pid));
    }

    fn path(&self, pid: u32) -> PathBuf {
        self.folder.join(format!("{pid}.json"))
    }

    /// Ends what dead owners left, and removes their records; those of the living stay.
    pub(super) fn sweep(&self) {
        let mut left = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match fs::read(&path).map(|text| serde_json::from_slice::<Record>(&text)) {
                Ok(Ok(record)) if record.boot_id == self.boot_id && record.owner.alive() => {}
                Ok(Ok(record)) => left.push((path, record)),
                Ok(Err(error)) => {
                    tracing::warn!(path = %path.display(), %error, "a record of a run is unreadable; removed");
                    remove(&path);
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a record of a run cannot be read");
                }
            }
        }
        // Another start of the machine has other processes: there is nothing left to end.
        let ours = left.iter().map(|(_, record)| record).filter(|record| record.boot_id == self.boot_id);
        end(&ours.collect::<Vec<_>>());
        left.iter().for_each(|(path, _)| remove(path));
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a record of a run cannot be removed");
    }
}

/// Kills what is left of these runs, and waits a moment for that.
fn end(records: &[&Record]) {
    if records.is_empty() {
        return;
    }
    let until = Instant::now() + DEATHS_AWAITED;
    let mut dying = Vec::new();
    for record in records {
        let leader = Identity { pid: record.pid, start_time: record.start_time };
        if leader.alive() {
            tracing::warn!(plugin = record.plugin, pid = record.pid, "ending what a killed plugd left");
            // Its number is not given away while it lives, and so the group is its own.
            if let Some(group) = procfs::raw(record.pid) {
                let _gone = rustix::process::kill_process_group(group, Signal::KILL);
            }
            leader.kill();
            dying.push(leader);
        }
    }
    let leaves: Vec<Leaf> = records.iter().filter_map(|record| Leaf::left(record.cgroup.as_ref()?)).collect();
    leaves.iter().for_each(Leaf::kill);
    let marks: HashSet<&str> = records.iter().map(|record| record.mark.as_str()).collect();
    loop {
        let settled = kill_marked(&marks, &mut dying);
        dying.retain(|identity| identity.alive());
        let unremoved = leaves.iter().filter(|leaf| !leaf.remove()).count();
        if (settled && dying.is_empty() && unremoved == 0) || Instant::now() >= until {
            break;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    leaves.iter().for_each(Leaf::remove_base);
}

/// Kills every process that belongs to one of these runs; says whether it found none.
fn kill_marked(marks: &HashSet<&str>, dying: &mut Vec<Identity>) -> bool {
    let own = std::process::id();
    let mut none = true;
    for pid in procfs::all().into_iter().filter(|pid| *pid != own) {
        match procfs::mark(pid) {
            Mark::None | Mark::Dead => {}
            Mark::Unsettled => none = false,
            Mark::Of(mark) if !marks.contains(mark.as_str()) => {}
            Mark::Of(mark) => {
                none = false;
                tracing::warn!(pid, mark, "ending what a killed plugd left");
                dying.extend(procfs::kill_marked(pid, mark));
            }
        }
    }
    none
}
