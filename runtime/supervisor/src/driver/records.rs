//! Notes of what runs, so that the next start can end what a killed owner left.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
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

/// A journal is written anew, without what is gone, when so many bytes were added to it.
const ANEW_AFTER: usize = 256 * 1024;

/// How the names of journals end.
const EXTENSION: &str = "jsonl";

/// A line of a journal; the first says whose it is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Owner(Owner),
    Run(Record),
    Gone(u32),
}

/// Who wrote a journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Owner {
    pid: u32,
    start_time: u64,
    boot_id: String,
}

impl Owner {
    fn alive(&self, boot_id: &str) -> bool {
        let Owner { pid, start_time, .. } = *self;
        self.boot_id == boot_id && Identity { pid, start_time }.alive()
    }
}

/// One run's process.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pid: u32,
    start_time: u64,
    plugin: String,
    generation: u64,
    mark: String,
    cgroup: Option<PathBuf>,
}

/// The folder with the journals of our own runs, and of others'.
///
/// One file for all runs of an owner, to which lines are added: to make and remove a file for
/// each took a tenth of what hundreds of starts cost.
#[derive(Debug)]
pub(super) struct Records {
    folder: PathBuf,
    path: PathBuf,
    owner: Owner,
    /// Opened with the first record.
    journal: Option<File>,
    /// What it says of runs that are not gone.
    standing: BTreeMap<u32, Vec<u8>>,
    /// Bytes in it.
    length: usize,
    /// Its last line may be a part of one.
    torn: bool,
}

/// What a record is about.
pub(super) struct Noted {
    pub(super) pid: u32,
    pub(super) run: RunMark,
    pub(super) mark: Arc<str>,
    pub(super) cgroup: Option<PathBuf>,
}

impl Records {
    /// Of this process; the journal and its folder are made with the first record.
    ///
    /// `instance` tells it from other owners in this process.
    ///
    /// # Errors
    /// When this process is not to be found in /proc.
    pub(super) fn open(folder: &Path, instance: &str) -> io::Result<Records> {
        let own = Identity::of(std::process::id())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "/proc does not show this process"))?;
        Ok(Records {
            folder: folder.to_owned(),
            path: folder.join(instance).with_extension(EXTENSION),
            owner: Owner { pid: own.pid, start_time: own.start_time, boot_id: procfs::boot_id() },
            journal: None,
            standing: BTreeMap::new(),
            length: 0,
            torn: false,
        })
    }

    /// Notes a process that has just been made. It is not forced to the disk: a machine that loses
    /// it has lost the process as well.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn note(&mut self, noted: &Noted) -> io::Result<()> {
        let Some(identity) = Identity::of(noted.pid) else {
            return Ok(());
        };
        let line = line(&Line::Run(Record {
            pid: noted.pid,
            start_time: identity.start_time,
            plugin: noted.run.plugin.to_string(),
            generation: noted.run.generation.0,
            mark: noted.mark.to_string(),
            cgroup: noted.cgroup.clone(),
        }))?;
        // What could not be added now is written with the rest when the journal is written anew.
        self.standing.insert(noted.pid, line.clone());
        self.add(&line)
    }

    /// Forgets a process that is gone.
    pub(super) fn forget(&mut self, pid: u32) {
        if self.standing.remove(&pid).is_none() {
            return;
        }
        let noted = line(&Line::Gone(pid)).and_then(|line| self.add(&line));
        if let Err(error) = noted {
            // The next start looks for it, and for its start time, in vain.
            tracing::debug!(pid, %error, "the record of a run that is gone stays");
        }
    }

    /// Leaves no journal behind, unless something still runs.
    pub(super) fn close(&mut self) {
        if self.standing.is_empty() && self.journal.take().is_some() {
            remove(&self.path);
            self.length = 0;
        }
    }

    fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let standing = || self.standing.values().map(Vec::len).sum::<usize>();
        if self.journal.is_none() || (self.length > ANEW_AFTER && self.length > 2 * standing()) {
            return self.write_anew();
        }
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if self.torn {
            journal.write_all(b"\n")?;
        }
        self.torn = true;
        journal.write_all(line)?;
        self.torn = false;
        self.length += line.len();
        Ok(())
    }

    /// Writes all that stands into a new file, which takes the place of the old one.
    fn write_anew(&mut self) -> io::Result<()> {
        let mut text = line(&Line::Owner(self.owner.clone()))?;
        self.standing.values().for_each(|line| text.extend_from_slice(line));
        let new = self.path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = match options.open(&new) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                options.open(&new)?
            }
            opened => opened?,
        };
        file.write_all(&text).and_then(|()| fs::rename(&new, &self.path)).inspect_err(|_| remove(&new))?;
        self.journal = Some(file);
        self.length = text.len();
        self.torn = false;
        Ok(())
    }

    /// Ends what dead owners left, and removes their journals; those of the living stay.
    pub(super) fn sweep(&self) {
        let mut left = Vec::new();
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            match fs::read(&path).map(|text| read(&text)) {
                Ok(Some((owner, _))) if owner.alive(&self.owner.boot_id) => {}
                Ok(Some((owner, records))) => {
                    // Another start of the machine has other processes: there is nothing left to end.
                    left.extend(records.into_iter().filter(|_| owner.boot_id == self.owner.boot_id));
                    paths.push(path);
                }
                Ok(None) => {
                    tracing::warn!(path = %path.display(), "a journal of runs does not say whose it is; removed");
                    remove(&path);
                }
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a journal of runs cannot be read");
                }
            }
        }
        end(&left);
        paths.iter().for_each(|path| remove(path));
    }
}

/// A line as it is written.
fn line(line: &Line) -> io::Result<Vec<u8>> {
    let mut written = serde_json::to_vec(line)?;
    written.push(b'\n');
    Ok(written)
}

/// Whose a journal is, and the runs that are not gone; lines that cannot be read are passed over.
fn read(text: &[u8]) -> Option<(Owner, Vec<Record>)> {
    let mut lines = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let Some(Line::Owner(owner)) = lines.next() else { return None };
    let mut standing = BTreeMap::new();
    for line in lines {
        match line {
            Line::Owner(_) => {}
            Line::Run(record) => {
                standing.insert(record.pid, record);
            }
            Line::Gone(pid) => {
                standing.remove(&pid);
            }
        }
    }
    Some((owner, standing.into_values().collect()))
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "a record of a run cannot be removed");
    }
}

/// Kills what is left of these runs, and waits a moment for that.
fn end(records: &[Record]) {
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

#[cfg(test)]
mod tests {
    use plugd_protocol::PluginName;

    use super::*;
    use crate::machine::Generation;

    /// This process as run so many of a plugin.
    fn noted(generation: u64) -> Noted {
        let plugin = PluginName::new("probe").expect("a name");
        let run = RunMark { plugin, generation: Generation(generation) };
        Noted { pid: std::process::id(), run, mark: "m".repeat(400).into(), cgroup: None }
    }

    fn journal(records: &Records) -> (usize, Vec<u64>) {
        let text = fs::read(&records.path).expect("a journal");
        let (_, standing) = read(&text).expect("it says whose it is");
        (text.len(), standing.iter().map(|record| record.generation).collect())
    }

    #[test]
    fn a_journal_does_not_grow_with_what_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records = Records::open(&folder.path().join("runs"), "own").expect("this process");
        for generation in 0..2_000 {
            records.note(&noted(generation)).expect("it is written");
            records.forget(std::process::id());
        }
        records.note(&noted(7)).expect("it is written");
        let (length, standing) = journal(&records);
        assert!(length < 2 * ANEW_AFTER, "{length} bytes for one run");
        assert_eq!(standing, [7]);
        records.forget(std::process::id());
        assert_eq!(journal(&records).1, [0; 0]);
        records.close();
        assert_eq!(fs::read_dir(folder.path().join("runs")).expect("a folder").count(), 0);
    }

    #[test]
    fn a_torn_line_spoils_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records = Records::open(folder.path(), "own").expect("this process");
        records.note(&noted(1)).expect("it is written");
        records.journal.as_mut().expect("open").write_all(b"{\"run\":{\"pid\":").expect("it is written");
        records.torn = true;
        records.note(&noted(2)).expect("it is written");
        assert_eq!(journal(&records).1, [2]);
    }
}
