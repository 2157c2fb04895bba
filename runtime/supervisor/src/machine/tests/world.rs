//! A simulated world: processes of every temper that do what the machine tells them, or do not.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;

use super::super::{Action, Declared, Exit, Fact, Generation, Revision};

/// A small generator of numbers (xorshift64*), so that a seed is a world.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `sides`.
    pub(super) fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()].clone()
    }

    pub(super) fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.below(most) + 1)
    }
}

/// What a run does with its life.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Temper {
    Good,
    CrashesInDescribe,
    CrashesInInit,
    CrashesWhenReady,
    HangsInDescribe,
    HangsInInit,
    IsSlow,
    ExitsPermanently,
    RefusesDescribe,
    RefusesInit,
    Misbehaves,
    CannotBeSpawned,
    BecomesIdle,
}

/// What it takes to end a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum End {
    Shutdown,
    Stdin,
    Sigterm,
    Sigkill,
    /// It is there for long after SIGKILL, as one in an uninterruptible wait is.
    Never,
}

/// What a run does about `reload`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reload {
    Takes,
    TakesLate,
    Refuses,
    Ignores,
    CrashesOfIt,
}

const RELOADS: [Reload; 5] =
    [Reload::Takes, Reload::TakesLate, Reload::Refuses, Reload::Ignores, Reload::CrashesOfIt];

const TEMPERS: [Temper; 13] = [
    Temper::Good,
    Temper::CrashesInDescribe,
    Temper::CrashesInInit,
    Temper::CrashesWhenReady,
    Temper::HangsInDescribe,
    Temper::HangsInInit,
    Temper::IsSlow,
    Temper::ExitsPermanently,
    Temper::RefusesDescribe,
    Temper::RefusesInit,
    Temper::Misbehaves,
    Temper::CannotBeSpawned,
    Temper::BecomesIdle,
];

const ENDS: [End; 5] = [End::Shutdown, End::Stdin, End::Sigterm, End::Sigkill, End::Never];

/// A process that exists.
#[derive(Debug)]
pub(super) struct Process {
    /// The settings it goes by, and those it was sent and has not taken up.
    pub(super) revision: Revision,
    reloading: Option<Revision>,
    temper: Temper,
    end: End,
    reload: Reload,
    pub(super) described: Option<Declared>,
    pub(super) ready_since: Option<Instant>,
    /// The latest step of its end it was told, and since when it is ending.
    pub(super) step: u8,
    pub(super) ending_since: Option<Instant>,
    pub(super) initialising: bool,
    /// Its end was begun by SIGKILL and nobody asked for it.
    pub(super) at_fault: bool,
    pub(super) abandoned: bool,
}

impl Process {
    /// Whether calls go to it, unless another is to have them.
    pub(super) fn serves(&self) -> bool {
        self.ready_since.is_some() && self.ending_since.is_none()
    }
}

/// Which run of which plugin.
pub(super) type Run = (PluginName, Generation);

/// All processes and what they are going to do.
pub(super) struct World {
    pub(super) dice: Dice,
    /// What each plugin is like: usually all its runs are.
    natures: BTreeMap<PluginName, (Temper, End, Declared)>,
    pub(super) alive: BTreeMap<Run, Process>,
    pub(super) to_come: BTreeMap<(Instant, u64), (Run, Fact)>,
    sequence: u64,
}

impl World {
    pub(super) fn new(dice: Dice) -> World {
        let (natures, alive, to_come) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        World { dice, natures, alive, to_come, sequence: 0 }
    }

    /// Says what a plugin is going to be like.
    pub(super) fn inhabit(&mut self, plugin: &PluginName, declared: Declared) {
        let temper = if self.dice.chance(50) { Temper::Good } else { self.dice.pick(&TEMPERS) };
        let end = if self.dice.chance(50) { End::Shutdown } else { self.dice.pick(&ENDS) };
        self.natures.insert(plugin.clone(), (temper, end, declared));
    }

    /// The processes of a plugin.
    pub(super) fn of<'a>(&'a self, plugin: &PluginName) -> impl Iterator<Item = (Generation, &'a Process)> {
        let runs = (plugin.clone(), Generation(0))..=(plugin.clone(), Generation(u64::MAX));
        self.alive.range(runs).map(|((_, generation), process)| (*generation, process))
    }

    /// What the world does about an action.
    pub(super) fn act(&mut self, now: Instant, action: &Action) {
        match action {
            Action::Spawn(plugin, run, revision) => self.spawn(now, &(plugin.clone(), *run), *revision),
            Action::Init(plugin, run) => self.init(now, &(plugin.clone(), *run)),
            Action::Reconfigure(plugin, run, revision) => {
                self.reconfigure(now, &(plugin.clone(), *run), *revision);
            }
            Action::Drain(plugin, run) => {
                let run = (plugin.clone(), *run);
                self.begin_end(now, &run, 1);
                if self.dice.chance(70) {
                    self.later(now, 4000, &run, Fact::Drained);
                }
            }
            Action::AskToLeave(plugin, run, ..) => {
                let run = (plugin.clone(), *run);
                self.begin_end(now, &run, 2);
                if self.dice.chance(50) {
                    self.later(now, 7000, &run, Fact::ShutdownAnswered);
                }
                self.may_end(now, &run, End::Shutdown, Exit::Code(0));
            }
            Action::CloseStdin(plugin, run) => {
                let run = (plugin.clone(), *run);
                self.begin_end(now, &run, 3);
                self.may_end(now, &run, End::Stdin, Exit::Code(0));
            }
            Action::Terminate(plugin, run) => {
                let run = (plugin.clone(), *run);
                self.begin_end(now, &run, 4);
                self.may_end(now, &run, End::Sigterm, Exit::Signal(15));
            }
            Action::Kill(plugin, run) => {
                let run = (plugin.clone(), *run);
                let process = self.alive.get_mut(&run).expect("killed, so it is alive");
                process.at_fault = process.ending_since.is_none();
                self.begin_end(now, &run, 5);
                self.may_end(now, &run, End::Sigkill, Exit::Signal(9));
                if self.alive[&run].end == End::Never {
                    self.later(now, 60_000, &run, Fact::Exited(Exit::Signal(9)));
                }
            }
            Action::Abandon(plugin, run) => {
                let run = (plugin.clone(), *run);
                self.begin_end(now, &run, 6);
                self.alive.get_mut(&run).expect("abandoned, so it is alive").abandoned = true;
            }
            // Its runs are counted from 1 again, and its processes said the last they had to say.
            Action::Forget(plugin) => self.to_come.retain(|_, ((of, _), _)| of != plugin),
            Action::Switch { .. }
            | Action::TakeOver { .. }
            | Action::SpareReady(..)
            | Action::SpareFailed(..)
            | Action::Entered(..)
            | Action::Explained(_)
            | Action::Leave => {}
        }
    }

    /// The next thing that happens to a process, if its time has come.
    pub(super) fn happens(&mut self, now: Instant) -> Option<(Run, Fact)> {
        while let Some(entry) = self.to_come.first_entry() {
            if entry.key().0 > now {
                return None;
            }
            let (run, fact) = entry.remove();
            let Some(process) = self.alive.get_mut(&run) else { continue };
            match &fact {
                Fact::Exited(_) | Fact::NotSpawned { .. } => {}
                // A process that is stopped in the middle of its start may answer late, or not.
                Fact::Described(declared) => process.described = Some(declared.clone()),
                Fact::Initialised => {
                    let until_ready = process.initialising && process.ending_since.is_none();
                    process.ready_since = until_ready.then_some(now);
                    process.initialising = false;
                    self.live(now, &run);
                }
                Fact::Reconfigured => {
                    process.revision = process.reloading.take().unwrap_or(process.revision);
                }
                Fact::Spawned { .. }
                | Fact::DescribeRefused { .. }
                | Fact::InitRefused { .. }
                | Fact::Progressed
                | Fact::ReconfigureRefused { .. }
                | Fact::Idle
                | Fact::Misbehaved { .. }
                | Fact::Drained
                | Fact::ShutdownAnswered => {}
            }
            return Some((run, fact));
        }
        None
    }

    fn spawn(&mut self, now: Instant, run: &Run, revision: Revision) {
        let (mut temper, mut end, declared) = self.natures[&run.0].clone();
        if self.dice.chance(15) {
            temper = self.dice.pick(&TEMPERS);
        }
        if self.dice.chance(15) {
            end = self.dice.pick(&ENDS);
        }
        let reload = if self.dice.chance(50) { Reload::Takes } else { self.dice.pick(&RELOADS) };
        let process = Process {
            revision,
            reloading: None,
            temper,
            end,
            reload,
            described: None,
            ready_since: None,
            step: 0,
            ending_since: None,
            initialising: false,
            at_fault: false,
            abandoned: false,
        };
        let before = self.alive.insert(run.clone(), process);
        assert!(before.is_none(), "{run:?} was spawned twice");
        if temper == Temper::CannotBeSpawned {
            let passing = run.0.as_str().ends_with('b');
            let fact = Fact::NotSpawned { reason: "no such file".into(), passing };
            return self.later(now, 10, run, fact);
        }
        self.later(now, 2, run, Fact::Spawned { pid: 1 });
        match temper {
            Temper::CrashesInDescribe => self.later(now, 900, run, Fact::Exited(Exit::Code(1))),
            Temper::HangsInDescribe => {}
            Temper::ExitsPermanently => self.later(now, 900, run, Fact::Exited(Exit::Code(125))),
            Temper::RefusesDescribe => {
                self.later(now, 900, run, Fact::DescribeRefused { reason: "no".into() });
            }
            Temper::IsSlow => {
                self.later(now, 9000, run, Fact::Progressed);
                self.later(now, 12_000, run, Fact::Described(declared));
            }
            Temper::Good
            | Temper::CrashesInInit
            | Temper::CrashesWhenReady
            | Temper::HangsInInit
            | Temper::RefusesInit
            | Temper::Misbehaves
            | Temper::CannotBeSpawned
            | Temper::BecomesIdle => self.later(now, 300, run, Fact::Described(declared)),
        }
    }

    fn init(&mut self, now: Instant, run: &Run) {
        let process = self.alive.get_mut(run).expect("initialised, so it is alive");
        assert!(process.described.is_some() && process.ready_since.is_none() && !process.initialising);
        process.initialising = true;
        match process.temper {
            Temper::CrashesInInit => self.later(now, 900, run, Fact::Exited(Exit::Code(2))),
            Temper::HangsInInit => {}
            Temper::RefusesInit => self.later(now, 900, run, Fact::InitRefused { reason: "no".into() }),
            Temper::IsSlow => {
                (0..4).for_each(|_| self.later(now, 40_000, run, Fact::Progressed));
                self.later(now, 60_000, run, Fact::Initialised);
            }
            Temper::Good
            | Temper::CrashesInDescribe
            | Temper::CrashesWhenReady
            | Temper::HangsInDescribe
            | Temper::ExitsPermanently
            | Temper::RefusesDescribe
            | Temper::Misbehaves
            | Temper::CannotBeSpawned
            | Temper::BecomesIdle => self.later(now, 300, run, Fact::Initialised),
        }
    }

    fn reconfigure(&mut self, now: Instant, run: &Run, revision: Revision) {
        let process = self.alive.get_mut(run).expect("reconfigured, so it is alive");
        assert!(process.ready_since.is_some() && process.ending_since.is_none());
        process.reloading = Some(revision);
        // An answer to an earlier one is known as such by its id.
        let answers = |fact: &Fact| matches!(fact, Fact::Reconfigured | Fact::ReconfigureRefused { .. });
        self.to_come.retain(|_, (of, fact)| of != run || !answers(fact));
        match self.alive[run].reload {
            Reload::Takes => self.later(now, 900, run, Fact::Reconfigured),
            Reload::TakesLate => self.later(now, 60_000, run, Fact::Reconfigured),
            Reload::Refuses => {
                self.later(now, 900, run, Fact::ReconfigureRefused { reason: "no".into() });
            }
            Reload::Ignores => {}
            Reload::CrashesOfIt => self.later(now, 900, run, Fact::Exited(Exit::Code(4))),
        }
    }

    /// What a ready process is going to do.
    fn live(&mut self, now: Instant, run: &Run) {
        match self.alive[run].temper {
            Temper::CrashesWhenReady => {
                let within = self.dice.pick(&[100, 15_000, 90_000]);
                let status = self.dice.pick(&[0, 1, 1]);
                self.later(now, within, run, Fact::Exited(Exit::Code(status)));
            }
            Temper::Misbehaves => {
                self.later(now, 20_000, run, Fact::Misbehaved { reason: "nonsense".into() });
            }
            Temper::BecomesIdle => self.later(now, 20_000, run, Fact::Idle),
            Temper::Good
            | Temper::CrashesInDescribe
            | Temper::CrashesInInit
            | Temper::HangsInDescribe
            | Temper::HangsInInit
            | Temper::IsSlow
            | Temper::ExitsPermanently
            | Temper::RefusesDescribe
            | Temper::RefusesInit
            | Temper::CannotBeSpawned => {}
        }
    }

    fn begin_end(&mut self, now: Instant, run: &Run, step: u8) {
        let process = self.alive.get_mut(run).expect("told to end, so it is alive");
        assert!(process.step < step, "{run:?} was told step {step} of its end after step {}", process.step);
        process.step = step;
        process.ending_since.get_or_insert(now);
    }

    /// Ends a process by something, if that is what it takes.
    fn may_end(&mut self, now: Instant, run: &Run, by: End, exit: Exit) {
        if self.alive[run].end == by {
            let within = self.dice.pick(&[1, 500, 6000]);
            self.later(now, within, run, Fact::Exited(exit));
        } else if by == End::Sigkill && self.alive[run].end != End::Never {
            self.later(now, 5, run, Fact::Exited(exit));
        } else if by == End::Sigterm && matches!(self.alive[run].end, End::Shutdown | End::Stdin) {
            self.later(now, 200, run, Fact::Exited(exit));
        }
    }

    fn later(&mut self, now: Instant, within_ms: u64, run: &Run, fact: Fact) {
        let at = now + self.dice.millis(within_ms);
        self.sequence += 1;
        self.to_come.insert((at, self.sequence), (run.clone(), fact));
    }
}
