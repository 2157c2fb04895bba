//! The thread that makes processes and buries them.

use std::collections::BTreeMap;
use std::io;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags};
use tokio::sync::oneshot;

use super::burial::{self, Burial, Grave};
use super::cgroup::{Cgroups, Leaf};
use super::launch::{Hosting, Launch, RunMark};
use super::limits::{Held, SANDBOX};
use super::not_spawned::{is_shortage, unenforced};
use super::process::Spawned;
use super::records::{Noted, Records};
use super::spare::{self, Launcher};
use super::stdio::{Connected, Stdio};
use crate::launcher::{self, Order, Program, Sandbox};

/// The next launcher is made when nothing was asked for in this time: not while plugins start.
const PREPARED_AFTER: Duration = Duration::from_millis(10);

/// Why a process is held to nothing that only the launcher can do.
const NO_LAUNCHER: &str = "this program does not serve as its own launcher";

/// What the thread is asked to do.
pub(super) enum Job {
    Spawn {
        launch: Launch,
        mark: RunMark,
        reply: oneshot::Sender<io::Result<Spawned>>,
    },
    Bury(Burial),
    /// Look at the orphans; they are looked at after every job.
    Reap,
    /// Finish all that is under way, and leave no folder behind.
    Close(oneshot::Sender<()>),
}

/// What the thread owns.
pub(super) struct Workshop {
    hosting: Hosting,
    /// Told from the marks of all other spawners.
    instance: String,
    records: Option<Records>,
    /// What a killed owner left is ended.
    swept: bool,
    /// What plugins are started through; looked for when it is needed first.
    program: Option<Program>,
    /// The launcher of the next start, for each kind of stdin and stdout that was asked for.
    spares: BTreeMap<Stdio, Option<Launcher>>,
    /// Looked for when the first process is made; or why there is none.
    cgroups: Option<Result<Cgroups, String>>,
    graves: Vec<Grave>,
    /// Whether somebody's child has ended since orphans were looked at last.
    reap_wanted: Arc<AtomicBool>,
}

impl Workshop {
    pub(super) fn new(
        hosting: Hosting,
        instance: String,
        records: Option<Records>,
        reap_wanted: Arc<AtomicBool>,
    ) -> Workshop {
        let swept = hosting.stays;
        Workshop {
            hosting,
            instance,
            records,
            swept,
            program: None,
            spares: BTreeMap::from([(Stdio::Pipes, None)]),
            cgroups: None,
            graves: Vec::new(),
            reap_wanted,
        }
    }

    /// Works until nobody can ask for anything any more.
    pub(super) fn run(mut self, inbox: &Receiver<Job>) {
        loop {
            let job = if !self.graves.is_empty() {
                inbox.recv_timeout(burial::pause(&self.graves))
            } else if self.wants_spare() {
                inbox.recv_timeout(PREPARED_AFTER)
            } else {
                inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            match job {
                // After a death the next start is about to be asked for: it comes before the burial.
                Ok(job) => {
                    self.perform(job);
                    if self.graves.iter().any(Grave::is_overdue) {
                        self.bury();
                    }
                }
                Err(RecvTimeoutError::Timeout) if self.graves.is_empty() => self.prepare(),
                Err(RecvTimeoutError::Timeout) => self.bury(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.reap_wanted.swap(false, Ordering::Relaxed) {
                burial::reap_orphans();
            }
        }
        self.close();
    }

    fn perform(&mut self, job: Job) {
        match job {
            // A caller that has gone away gets no process.
            Job::Spawn { reply, .. } if reply.is_closed() => {}
            Job::Spawn { launch, mark, reply } => {
                if !std::mem::replace(&mut self.swept, true)
                    && let Some(records) = &self.records
                {
                    records.sweep();
                }
                let spawned = self.spawn(&launch, &mark);
                // Whoever waits for the process need not wait for the note of it.
                let noted = |spawned: &Spawned| Noted {
                    pid: number(spawned.pid),
                    run: mark.clone(),
                    mark: Arc::clone(&spawned.mark),
                    cgroup: spawned.leaf.as_ref().map(|leaf| leaf.path().to_owned()),
                };
                let note = spawned.as_ref().ok().map(noted);
                if let Err(Ok(unwanted)) = reply.send(spawned) {
                    self.discard(unwanted);
                } else if let Some(note) = note {
                    self.note(&note);
                }
            }
            Job::Bury(burial) => self.graves.push(Grave::new(burial)),
            Job::Reap => {}
            Job::Close(done) => {
                self.close();
                let _gone = done.send(());
            }
        }
    }

    fn spawn(&mut self, launch: &Launch, mark: &RunMark) -> io::Result<Spawned> {
        let RunMark { plugin, generation } = mark;
        let name: Arc<str> = format!("{}/{plugin}/{}", self.instance, generation.0).into();
        let mut held = Held::default();
        held.holds("process_group", "its own");
        let leaf = self.leaf(launch, mark, &mut held);
        let made = self.make(launch, leaf.as_ref(), &name, &mut held);
        let Connected { child, pid, ends } = made.inspect_err(|_| {
            leaf.as_ref().map(Leaf::remove);
        })?;
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Spawned { child, pid, ends, pidfd, mark: name, leaf, held }),
            Err(error) => {
                self.end(child, pid, name, leaf);
                Err(error.into())
            }
        }
    }

    fn note(&mut self, note: &Noted) {
        if let Some(records) = &mut self.records
            && let Err(error) = records.note(note)
        {
            tracing::warn!(plugin = %note.run.plugin, %error, "no record of its process can be kept");
        }
    }

    /// The cgroup of a run, where there can be one.
    fn leaf(&mut self, launch: &Launch, mark: &RunMark, held: &mut Held) -> Option<Leaf> {
        let why_not = if !self.hosting.cgroups {
            "switched off with daemon.cgroups".to_owned()
        } else if !launcher::installed() {
            NO_LAUNCHER.to_owned()
        } else {
            match self.cgroups.get_or_insert_with(Cgroups::find) {
                Err(reason) => reason.clone(),
                Ok(cgroups) => {
                    let name = format!("{}.{}", mark.plugin, mark.generation.0);
                    match cgroups.leaf(&name, launch.cgroup, held) {
                        Ok(leaf) => return Some(leaf),
                        Err(error) => format!("its cgroup cannot be made: {error}"),
                    }
                }
            }
        };
        if launch.cgroup.memory_max.is_some() {
            held.lacks("memory_max", why_not.clone());
        }
        if launch.cgroup.pids_max.is_some() {
            held.lacks("pids_max", why_not.clone());
        }
        held.lacks("cgroup", why_not);
        None
    }

    /// Makes the process: by way of the launcher where this program can be that.
    fn make(
        &mut self,
        launch: &Launch,
        leaf: Option<&Leaf>,
        mark: &Arc<str>,
        held: &mut Held,
    ) -> io::Result<Connected> {
        let mut why_not = NO_LAUNCHER.to_owned();
        if launcher::installed() {
            match self.launched(launch, leaf, mark) {
                Ok(made) => {
                    self.launcher_holds(launch, held);
                    return Ok(made);
                }
                Err(error) if is_shortage(&error) => return Err(error),
                Err(error) => why_not = format!("this program cannot be its own launcher: {error}"),
            }
        }
        if launch.sandbox != Sandbox::None {
            return Err(io::Error::other(unenforced(launch.sandbox, &why_not)));
        }
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).current_dir(&launch.cwd);
        command.env_clear().envs(spare::marked(&launch.env, mark));
        let made = {
            // Until it is known as ours it must not be taken for an orphan.
            let mut leaders = burial::leaders();
            let connected = Connected::start(command, launch.stdio)?;
            leaders.insert(number(connected.pid), Arc::clone(mark));
            connected
        };
        for what in ["parent_death_signal", "close_descriptors"] {
            held.lacks(what, why_not.clone());
        }
        for (limited, _) in launch.rlimits.wanted() {
            held.lacks(limited.name(), why_not.clone());
        }
        if leaf.is_some() {
            held.lacks("cgroup", why_not);
        }
        Ok(made)
    }

    /// Makes the process by way of a launcher: the one that waits, or a new one.
    fn launched(&mut self, launch: &Launch, leaf: Option<&Leaf>, mark: &Arc<str>) -> io::Result<Connected> {
        let order = Order {
            cgroup: leaf.map(|leaf| leaf.path().to_owned()),
            sandbox: launch.sandbox,
            rlimits: launch.rlimits.wanted(),
            cwd: launch.cwd.clone(),
            env: spare::marked(&launch.env, mark),
            program: launch.program.clone(),
            args: launch.args.clone(),
        };
        let spare = self.spares.entry(launch.stdio).or_default();
        if let Some(launcher) = spare.take_if(|spare| spare.waits())
            && let Ok(made) = launcher.give(&order, mark)
        {
            return Ok(made);
        }
        self.new_launcher(launch.stdio)?.give(&order, mark)
    }

    fn new_launcher(&mut self, stdio: Stdio) -> io::Result<Launcher> {
        let program = self.program.get_or_insert_with(Program::find);
        Launcher::make(program, self.hosting.parent_death_signal, stdio)
    }

    /// Makes the launcher of the next start, where this program stays and nothing else is to do.
    fn prepare(&mut self) {
        // Where there is none it is made when it is needed, and then told why not.
        let Some(stdio) = self.missing_spare() else { return };
        let spare = self.new_launcher(stdio).ok();
        self.hosting.stays &= spare.is_some();
        self.spares.insert(stdio, spare);
    }

    fn wants_spare(&self) -> bool {
        self.hosting.stays && launcher::installed() && self.missing_spare().is_some()
    }

    fn missing_spare(&self) -> Option<Stdio> {
        self.spares.iter().find(|(_, spare)| spare.is_none()).map(|(stdio, _)| *stdio)
    }

    /// Notes what the launcher does; where it cannot, it says so itself.
    fn launcher_holds(&self, launch: &Launch, held: &mut Held) {
        if self.hosting.parent_death_signal {
            held.holds("parent_death_signal", "SIGKILL");
        } else {
            held.lacks("parent_death_signal", "switched off with daemon.parent_death_signal");
        }
        held.holds("close_descriptors", "all but stdin, stdout and stderr");
        if launch.sandbox != Sandbox::None {
            held.holds(SANDBOX, launch.sandbox.as_str());
        }
        for (limited, most) in launch.rlimits.wanted() {
            held.limit(limited, most);
        }
    }

    fn discard(&mut self, unwanted: Spawned) {
        let Spawned { child, pid, mark, leaf, .. } = unwanted;
        self.end(child, pid, mark, leaf);
    }

    /// Kills a process that nobody has asked for, with what it may have started.
    fn end(&mut self, child: Child, pid: Pid, mark: Arc<str>, leaf: Option<Leaf>) {
        // Errors mean that it is gone already.
        let _gone = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        if let Some(leaf) = &leaf {
            leaf.kill();
        }
        let burial = Burial { pid: number(pid), mark, leaf, child: Some(child), done: None };
        self.graves.push(Grave::new(burial));
    }

    fn bury(&mut self) {
        if self.graves.is_empty() {
            return;
        }
        for grave in burial::look(&mut self.graves) {
            let mut leaders = burial::leaders();
            if leaders.get(&grave.pid()) == Some(grave.mark()) {
                leaders.remove(&grave.pid());
            }
            // A number can be a newer run's by now.
            if let Some(records) = &mut self.records
                && !leaders.contains_key(&grave.pid())
            {
                records.forget(grave.pid());
            }
        }
    }

    fn close(&mut self) {
        self.hosting.stays = false;
        self.spares.clear();
        let until = Instant::now() + burial::DEADLINE;
        while !self.graves.iter().all(Grave::late) && Instant::now() < until {
            self.bury();
            if !self.graves.is_empty() {
                std::thread::sleep(burial::pause(&self.graves));
            }
        }
        if let Some(Ok(mut cgroups)) = self.cgroups.take() {
            cgroups.close();
        }
        if let Some(records) = &mut self.records {
            records.close();
        }
    }
}

pub(super) fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}
