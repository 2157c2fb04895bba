//! What happens to the rest of a run once its process has ended.
//!
//! A process that left its group, or whose parent died, comes to us where this program adopts
//! orphans; else it goes to init. Either way it is known by its mark, killed, and looked for again
//! until none is left: what is killed leaves children of its own.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{WaitId, WaitIdOptions};
use tokio::sync::oneshot;

use super::cgroup::Leaf;
use super::procfs::{self, Identity, Mark};
use crate::launcher;

/// How long is tried to end what a run left.
pub(super) const DEADLINE: Duration = Duration::from_secs(2);

/// How often is looked for what is left, while anything is.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// How often is looked for a process that SIGKILL does not end.
const LOOK_LATE_EVERY: Duration = Duration::from_millis(500);

/// Rounds of one look: whoever goes on as a child of his own all the time is gone before he is killed.
const ROUNDS_MAX: usize = 100;

/// After so many looks without a trace of it a run is over, although other processes came and went.
const QUIET_LOOKS: u32 = 8;

/// The processes that were spawned here and not yet buried, each with its mark. All spawners of this
/// program share it: nobody takes the exit status of another's.
static LEADERS: Mutex<BTreeMap<u32, Arc<str>>> = Mutex::new(BTreeMap::new());

/// The leaders, held while one is spawned or orphans are told from them.
pub(super) fn leaders() -> MutexGuard<'static, BTreeMap<u32, Arc<str>>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is left of a run.
pub(super) struct Burial {
    pub(super) pid: u32,
    pub(super) mark: Arc<str>,
    pub(super) leaf: Option<Leaf>,
    /// The process itself, where nobody has waited for it.
    pub(super) child: Option<Child>,
    /// Whoever wants to know when nothing is left.
    pub(super) done: Option<oneshot::Sender<()>>,
}

impl Burial {
    /// Waits for the process where no thread can do that.
    pub(super) fn await_child(mut self, longest: Duration) {
        let until = Instant::now() + longest;
        while self.child_lives() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn child_lives(&mut self) -> bool {
        let lives = self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if !lives {
            self.child = None;
        }
        lives
    }
}

/// A burial under way.
pub(super) struct Grave {
    burial: Burial,
    until: Instant,
    /// Killed, and not yet seen to be gone.
    dying: Vec<Identity>,
    /// How often in a row nothing was found.
    clean: u32,
    /// How often in a row nothing of this run was found, whatever others were up to.
    quiet: u32,
    /// Only the process itself is waited for any more.
    late: bool,
}

/// Starts go before burials, for so long.
const LOOKED_AT_WITHIN: Duration = Duration::from_millis(20);

/// How long to wait before the next look.
pub(super) fn pause(graves: &[Grave]) -> Duration {
    if graves.iter().all(|grave| grave.late) { LOOK_LATE_EVERY } else { LOOK_EVERY }
}

impl Grave {
    pub(super) fn new(burial: Burial) -> Grave {
        let mut leaders = leaders();
        // Reaped already: its number is free, or somebody else's.
        if burial.child.is_none() && leaders.get(&burial.pid) == Some(&burial.mark) {
            leaders.remove(&burial.pid);
        }
        Grave { burial, until: Instant::now() + DEADLINE, dying: Vec::new(), clean: 0, quiet: 0, late: false }
    }

    /// Whether it has waited so long that it comes before other work.
    pub(super) fn is_overdue(&self) -> bool {
        self.until.saturating_duration_since(Instant::now()) + LOOKED_AT_WITHIN < DEADLINE
    }

    /// Whether the only thing left is a process that SIGKILL does not end.
    pub(super) fn late(&self) -> bool {
        self.late
    }

    pub(super) fn pid(&self) -> u32 {
        self.burial.pid
    }

    pub(super) fn mark(&self) -> &Arc<str> {
        &self.burial.mark
    }

    /// Takes in what a look found of it, where it found anything; says whether this is over.
    fn look(&mut self, found: Option<Vec<Identity>>, settled: bool) -> bool {
        self.quiet = if found.is_some() { 0 } else { self.quiet + 1 };
        self.dying.extend(found.unwrap_or_default());
        self.dying.retain(|identity| identity.alive());
        let emptied = self.burial.leaf.as_ref().is_none_or(|leaf| {
            leaf.remove() || {
                leaf.kill();
                false
            }
        });
        let buried = !self.burial.child_lives();
        // An emptied cgroup proves it. Elsewhere another run, whose processes come and go, must not
        // keep this one from being over.
        let none = (emptied && self.burial.leaf.is_some()) || settled || self.quiet >= QUIET_LOOKS;
        if none && self.quiet > 0 && self.dying.is_empty() && emptied && buried {
            self.clean += 1;
            self.answer();
        } else {
            self.clean = 0;
        }
        // One that came to us during a look may have been missed: without a cgroup there is another.
        let enough = if self.burial.leaf.is_none() && launcher::adopts_orphans() { 2 } else { 1 };
        if self.clean >= enough {
            return true;
        }
        if Instant::now() < self.until {
            return false;
        }
        self.answer();
        if !self.late {
            let (mark, left) = (&self.burial.mark, self.dying.len());
            tracing::warn!(%mark, left, emptied, "something of a run cannot be killed");
        }
        // The process itself stays known until the kernel lets it go: nobody else may reap it.
        self.late = true;
        buried
    }

    fn answer(&mut self) {
        if let Some(done) = self.burial.done.take() {
            // Whoever stopped waiting needs no answer.
            let _gone = done.send(());
        }
    }
}

/// Looks for what these runs left, and gives back those that are over.
pub(super) fn look(graves: &mut Vec<Grave>) -> Vec<Grave> {
    let mut found = Found::new();
    let mut settled = false;
    for _ in 0..ROUNDS_MAX {
        settled = kill_marked(graves, &mut found);
        // Elsewhere the orphans are not ours, and whom to look for again is not known.
        if settled || !launcher::adopts_orphans() {
            break;
        }
    }
    graves.extract_if(.., |grave| grave.look(found.remove(&**grave.mark()), settled)).collect()
}

/// Whom a look found, by mark.
type Found = BTreeMap<Arc<str>, Vec<Identity>>;

/// Kills whoever belongs to one of these runs; says whether there was nobody, nor may have been.
fn kill_marked(graves: &[Grave], found: &mut Found) -> bool {
    let own = std::process::id();
    let leaders = leaders();
    let adopts = launcher::adopts_orphans();
    // Never a process that a living run is led by.
    let mut ours = if adopts { procfs::children(own) } else { procfs::all() };
    ours.retain(|pid| *pid != own && !leaders.contains_key(pid));
    let adopted = if adopts { ours.len() } else { 0 };
    let people = if adopts { procfs::families(ours) } else { ours };
    let mut settled = true;
    for (at, pid) in people.into_iter().enumerate() {
        match procfs::mark(pid) {
            Mark::None => {}
            // It may belong to any of them.
            Mark::Unsettled => settled = false,
            // It may have left a child, which came to us after it; unless it is another's to reap.
            Mark::Dead => settled &= at >= adopted,
            Mark::Of(mark) => {
                if let Some(grave) = graves.iter().find(|grave| **grave.mark() == *mark) {
                    settled = false;
                    let found = found.entry(Arc::clone(grave.mark())).or_default();
                    found.extend(procfs::kill_marked(pid, mark));
                }
            }
        }
    }
    reap_unknown(&leaders);
    settled
}

/// Takes the exit status of orphans that have died.
pub(super) fn reap_orphans() {
    reap_unknown(&leaders());
}

fn reap_unknown(leaders: &BTreeMap<u32, Arc<str>>) {
    // Where orphans do not come to us, an unknown child is one that this program will wait for.
    if !launcher::adopts_orphans() {
        return;
    }
    let unknown = procfs::children(std::process::id()).into_iter().filter(|pid| !leaders.contains_key(pid));
    for pid in unknown.filter_map(procfs::raw) {
        // One that lives, or that is gone already, is left.
        let _alive = rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}
