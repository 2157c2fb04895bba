//! A simulated world: processes of every temper that do what the machine tells them, or do not.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;

use super::super::{Action, Declared, Exit, Fact, Generation};

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
    pub(super) generation: Generation,
    temper: Temper,
    end: End,
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

/// All processes and what they are going to do.
pub(super) struct World {
    pub(super) dice: Dice,
    /// What each plugin is like: usually all its runs are.
    natures: BTreeMap<PluginName, (Temper, End, Declared)>,
    pub(super) alive: BTreeMap<PluginName, Process>,
    pub(super) to_come: BTreeMap<(Instant, u64), (PluginName, Generation, Fact)>,
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

    /// What the world does about an action.
    pub(super) fn act(&mut self, now: Instant, action: &Action) {
        match action {
            Action::Spawn(plugin, generation) => self.spawn(now, plugin, *generation),
            Action::Init(plugin, generation) => self.init(now, plugin, *generation),
            Action::Drain(plugin, _) => {
                self.begin_end(now, plugin, 1);
                if self.dice.chance(70) {
                    self.later(now, 4000, plugin, Fact::Drained);
                }
            }
            Action::AskToLeave(plugin, ..) => {
                self.begin_end(now, plugin, 2);
                if self.dice.chance(50) {
                    self.later(now, 7000, plugin, Fact::ShutdownAnswered);
                }
                self.may_end(now, plugin, End::Shutdown, Exit::Code(0));
            }
            Action::CloseStdin(plugin, _) => {
                self.begin_end(now, plugin, 3);
                self.may_end(now, plugin, End::Stdin, Exit::Code(0));
            }
            Action::Terminate(plugin, _) => {
                self.begin_end(now, plugin, 4);
                self.may_end(now, plugin, End::Sigterm, Exit::Signal(15));
            }
            Action::Kill(plugin, _) => {
                let process = self.alive.get_mut(plugin).expect("killed, so it is alive");
                process.at_fault = process.ending_since.is_none();
                self.begin_end(now, plugin, 5);
                self.may_end(now, plugin, End::Sigkill, Exit::Signal(9));
                if self.alive[plugin].end == End::Never {
                    self.later(now, 60_000, plugin, Fact::Exited(Exit::Signal(9)));
                }
            }
            Action::Abandon(plugin, _) => {
                self.begin_end(now, plugin, 6);
                self.alive.get_mut(plugin).expect("abandoned, so it is alive").abandoned = true;
            }
            Action::Entered(..) | Action::Forget(_) | Action::Leave => {}
        }
    }

    /// The next thing that happens to a process, if its time has come.
    pub(super) fn happens(&mut self, now: Instant) -> Option<(PluginName, Generation, Fact)> {
        while let Some(entry) = self.to_come.first_entry() {
            if entry.key().0 > now {
                return None;
            }
            let (plugin, generation, fact) = entry.remove();
            let Some(process) = self.alive.get_mut(&plugin).filter(|alive| alive.generation == generation)
            else {
                continue;
            };
            match &fact {
                Fact::Exited(_) | Fact::NotSpawned { .. } => {}
                // A process that is stopped in the middle of its start may answer late, or not.
                Fact::Described(declared) => process.described = Some(declared.clone()),
                Fact::Initialised => {
                    let until_ready = process.initialising && process.ending_since.is_none();
                    process.ready_since = until_ready.then_some(now);
                    process.initialising = false;
                    self.live(now, &plugin);
                }
                Fact::Spawned { .. }
                | Fact::DescribeRefused { .. }
                | Fact::InitRefused { .. }
                | Fact::Progressed
                | Fact::Idle
                | Fact::Misbehaved { .. }
                | Fact::Drained
                | Fact::ShutdownAnswered => {}
            }
            return Some((plugin, generation, fact));
        }
        None
    }

    fn spawn(&mut self, now: Instant, plugin: &PluginName, generation: Generation) {
        let (mut temper, mut end, declared) = self.natures[plugin].clone();
        if self.dice.chance(15) {
            temper = self.dice.pick(&TEMPERS);
        }
        if self.dice.chance(15) {
            end = self.dice.pick(&ENDS);
        }
        let process = Process {
            generation,
            temper,
            end,
            described: None,
            ready_since: None,
            step: 0,
            ending_since: None,
            initialising: false,
            at_fault: false,
            abandoned: false,
        };
        let before = self.alive.insert(plugin.clone(), process);
        assert!(before.is_none(), "a second process of {plugin} beside {before:?}");
        if temper == Temper::CannotBeSpawned {
            return self.later(
                now,
                10,
                plugin,
                Fact::NotSpawned { reason: "no such file".into(), passing: plugin.as_str().ends_with('b') },
            );
        }
        self.later(now, 2, plugin, Fact::Spawned { pid: 1 });
        match temper {
            Temper::CrashesInDescribe => self.later(now, 900, plugin, Fact::Exited(Exit::Code(1))),
            Temper::HangsInDescribe => {}
            Temper::ExitsPermanently => self.later(now, 900, plugin, Fact::Exited(Exit::Code(125))),
            Temper::RefusesDescribe => {
                self.later(now, 900, plugin, Fact::DescribeRefused { reason: "no".into() });
            }
            Temper::IsSlow => self.later(now, 12_000, plugin, Fact::Described(declared)),
            Temper::Good
            | Temper::CrashesInInit
            | Temper::CrashesWhenReady
            | Temper::HangsInInit
            | Temper::RefusesInit
            | Temper::Misbehaves
            | Temper::CannotBeSpawned
            | Temper::BecomesIdle => self.later(now, 300, plugin, Fact::Described(declared)),
        }
    }

    fn init(&mut self, now: Instant, plugin: &PluginName, generation: Generation) {
        let process = self.alive.get_mut(plugin).expect("initialised, so it is alive");
        assert_eq!(process.generation, generation);
        assert!(process.described.is_some() && process.ready_since.is_none() && !process.initialising);
        process.initialising = true;
        match process.temper {
            Temper::CrashesInInit => self.later(now, 900, plugin, Fact::Exited(Exit::Code(2))),
            Temper::HangsInInit => {}
            Temper::RefusesInit => self.later(now, 900, plugin, Fact::InitRefused { reason: "no".into() }),
            Temper::IsSlow => {
                (0..4).for_each(|_| self.later(now, 40_000, plugin, Fact::Progressed));
                self.later(now, 60_000, plugin, Fact::Initialised);
            }
            Temper::Good
            | Temper::CrashesInDescribe
            | Temper::CrashesWhenReady
            | Temper::HangsInDescribe
            | Temper::ExitsPermanently
            | Temper::RefusesDescribe
            | Temper::Misbehaves
            | Temper::CannotBeSpawned
            | Temper::BecomesIdle => self.later(now, 300, plugin, Fact::Initialised),
        }
    }

    /// What a ready process is going to do.
    fn live(&mut self, now: Instant, plugin: &PluginName) {
        match self.alive[plugin].temper {
            Temper::CrashesWhenReady => {
                let within = self.dice.pick(&[100, 15_000, 90_000]);
                let status = self.dice.pick(&[0, 1, 1]);
                self.later(now, within, plugin, Fact::Exited(Exit::Code(status)));
            }
            Temper::Misbehaves => {
                self.later(now, 20_000, plugin, Fact::Misbehaved { reason: "nonsense".into() });
            }
            Temper::BecomesIdle => self.later(now, 20_000, plugin, Fact::Idle),
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

    fn begin_end(&mut self, now: Instant, plugin: &PluginName, step: u8) {
        let process = self.alive.get_mut(plugin).expect("told to end, so it is alive");
        assert!(process.step < step, "{plugin} was told step {step} of its end after step {}", process.step);
        process.step = step;
        process.ending_since.get_or_insert(now);
    }

    /// Ends a process by something, if that is what it takes.
    fn may_end(&mut self, now: Instant, plugin: &PluginName, by: End, exit: Exit) {
        if self.alive[plugin].end == by {
            let within = self.dice.pick(&[1, 500, 6000]);
            self.later(now, within, plugin, Fact::Exited(exit));
        } else if by == End::Sigkill && self.alive[plugin].end != End::Never {
            self.later(now, 5, plugin, Fact::Exited(exit));
        } else if by == End::Sigterm && matches!(self.alive[plugin].end, End::Shutdown | End::Stdin) {
            self.later(now, 200, plugin, Fact::Exited(exit));
        }
    }

    fn later(&mut self, now: Instant, within_ms: u64, plugin: &PluginName, fact: Fact) {
        let at = now + self.dice.millis(within_ms);
        let generation = self.alive[plugin].generation;
        self.sequence += 1;
        self.to_come.insert((at, self.sequence), (plugin.clone(), generation, fact));
    }
}
