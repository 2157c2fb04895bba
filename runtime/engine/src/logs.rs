//! The logs of plugins: written beside the calls by a thread of their own, read back from files.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use plugd_protocol::PluginName;
use plugd_protocol::control::{LogEntry, LogsParams};
use tokio::sync::{broadcast, oneshot};

use crate::events::TAIL_DEFAULT;

/// Lines waiting to be written; more are counted and dropped, so that no plugin waits for a disk.
const LINES_QUEUED: usize = 4_096;

/// A follower that is further behind than this loses the oldest; nobody waits for it.
const FOLLOWERS_BEHIND_MAX: usize = 1_024;

/// The log of every plugin: two files each, the older one dropped when the newer is full.
#[derive(Debug)]
pub(crate) struct Logs {
    dir: PathBuf,
    jobs: mpsc::SyncSender<Job>,
    sizes: Sizes,
    followers: broadcast::Sender<LogEntry>,
    dropped: AtomicU64,
}

enum Job {
    Write(LogEntry),
    /// Everything queued before is in the files when this is answered.
    Flush(oneshot::Sender<()>),
}

struct Writer {
    dir: PathBuf,
    sizes: Sizes,
    files: HashMap<PluginName, LogFile>,
    failing: bool,
}

struct LogFile {
    file: io::BufWriter<File>,
    length: u64,
}

/// How many bytes of each plugin's log are kept.
type Sizes = Arc<Mutex<HashMap<PluginName, u64>>>;

/// What is kept of a plugin whose size nobody has said: one that has just been removed.
const SIZE_UNSAID: u64 = 1024 * 1024;

impl Logs {
    /// Opens the folder and starts the thread.
    ///
    /// # Errors
    /// When the folder cannot be made or no thread is given.
    pub(crate) fn open(dir: PathBuf) -> io::Result<Logs> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let (jobs, inbox) = mpsc::sync_channel(LINES_QUEUED);
        let sizes = Sizes::default();
        let mut writer =
            Writer { dir: dir.clone(), sizes: Arc::clone(&sizes), files: HashMap::new(), failing: false };
        std::thread::Builder::new().name("plugd-logs".to_owned()).spawn(move || {
            while let Ok(job) = inbox.recv() {
                writer.perform(job);
                while let Ok(job) = inbox.try_recv() {
                    writer.perform(job);
                }
                writer.flush();
            }
        })?;
        Ok(Logs {
            dir,
            jobs,
            sizes,
            followers: broadcast::Sender::new(FOLLOWERS_BEHIND_MAX),
            dropped: AtomicU64::new(0),
        })
    }

    /// Says how many bytes of each plugin's log are kept from now on.
    pub(crate) fn keep(&self, sizes: HashMap<PluginName, u64>) {
        *self.sizes.lock().unwrap_or_else(PoisonError::into_inner) = sizes;
    }

    /// Takes a line; never waits.
    pub(crate) fn append(&self, entry: LogEntry) {
        if self.followers.receiver_count() > 0 {
            let _none = self.followers.send(entry.clone());
        }
        if self.jobs.try_send(Job::Write(entry)).is_err() {
            let dropped = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                tracing::warn!(dropped, "log lines were dropped: the disk is slower than the plugins");
            }
        }
    }

    pub(crate) fn follow(&self) -> broadcast::Receiver<LogEntry> {
        self.followers.subscribe()
    }

    /// Waits until every line taken so far is in its file.
    pub(crate) async fn flush(&self) {
        let (reply, flushed) = oneshot::channel();
        let jobs = self.jobs.clone();
        let sent = tokio::task::spawn_blocking(move || jobs.send(Job::Flush(reply)).is_ok()).await;
        if matches!(sent, Ok(true)) {
            let _thread_gone = flushed.await;
        }
    }

    /// The latest lines that match, oldest first.
    pub(crate) async fn latest(&self, params: &LogsParams) -> Vec<LogEntry> {
        self.flush().await;
        let (dir, params) = (self.dir.clone(), params.clone());
        let read = tokio::task::spawn_blocking(move || read_latest(&dir, &params)).await;
        read.unwrap_or_default()
    }
}

impl Writer {
    fn perform(&mut self, job: Job) {
        match job {
            Job::Write(entry) => match self.write(&entry) {
                Ok(()) => self.failing = false,
                Err(error) => {
                    // Told once, until it works again.
                    if !self.failing {
                        tracing::warn!(plugin = %entry.plugin, %error, "its log cannot be written");
                    }
                    self.failing = true;
                    self.files.remove(&entry.plugin);
                }
            },
            Job::Flush(reply) => {
                self.flush();
                let _gone = reply.send(());
            }
        }
    }

    fn write(&mut self, entry: &LogEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let path = path_of(&self.dir, &entry.plugin);
        let full =
            self.files.get(&entry.plugin).is_some_and(|open| open.length > self.file_max(&entry.plugin));
        if full && let Some(mut open) = self.files.remove(&entry.plugin) {
            open.file.flush()?;
            fs::rename(&path, older(&path))?;
        }
        let open = match self.files.entry(entry.plugin.clone()) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
                let length = file.metadata()?.len();
                let mut file = io::BufWriter::new(file);
                if length > 0 && !ends_with_newline(&path)? {
                    // A line that was cut off, by a full disk or a power cut, spoils only itself.
                    file.write_all(b"\n")?;
                }
                vacant.insert(LogFile { file, length })
            }
        };
        open.length += line.len() as u64;
        open.file.write_all(&line)
    }

    /// Half of what may be kept of a plugin: it has two files.
    fn file_max(&self, plugin: &PluginName) -> u64 {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.get(plugin).copied().unwrap_or(SIZE_UNSAID) / 2
    }

    fn flush(&mut self) {
        self.files.retain(|_, open| open.file.flush().is_ok());
    }
}

fn ends_with_newline(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    file.seek(io::SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn path_of(dir: &Path, plugin: &PluginName) -> PathBuf {
    dir.join(format!("{plugin}.log"))
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

fn read_latest(dir: &Path, params: &LogsParams) -> Vec<LogEntry> {
    let tail = params.tail.unwrap_or(TAIL_DEFAULT) as usize;
    let paths = match &params.plugin {
        Some(plugin) => vec![path_of(dir, plugin)],
        None => {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
            entries.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect()
        }
    };
    let mut latest = Vec::new();
    for path in paths {
        let mut of_one = VecDeque::new();
        for path in [older(&path), path] {
            read_matching(&path, params, tail, &mut of_one);
        }
        latest.extend(of_one);
    }
    latest.sort_by_key(|entry: &LogEntry| entry.at);
    let surplus = latest.len().saturating_sub(tail);
    latest.split_off(surplus)
}

fn read_matching(path: &Path, params: &LogsParams, tail: usize, latest: &mut VecDeque<LogEntry>) {
    // A file that is not there holds no lines.
    let Ok(file) = File::open(path) else { return };
    for line in BufReader::new(file).split(b'\n').map_while(Result::ok) {
        // A line that was cut off when the machine went down is passed over.
        let Ok(entry) = serde_json::from_slice::<LogEntry>(&line) else { continue };
        if matches(params, &entry) {
            if latest.len() == tail {
                latest.pop_front();
            }
            latest.push_back(entry);
        }
    }
}

/// Whether a line is one that was asked for.
pub fn matches(params: &LogsParams, entry: &LogEntry) -> bool {
    let plugin = params.plugin.as_ref().is_none_or(|plugin| *plugin == entry.plugin);
    let call = params.call_id.is_none() || params.call_id == entry.call_id;
    let level = params.level.is_none_or(|least| entry.level >= least);
    plugin && call && level
}
