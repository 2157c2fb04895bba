//! What must hold after every step of every simulated world.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use plugd_protocol::control::PluginState;

use super::super::{Action, Event, Fact, Generation, Spec, Supervisor, View};
use super::legal;
use super::world::{Process, World};

/// The whole of an ordinary stop: drain, shutdown, term, kill, unkillable.
const GRACES: Duration = Duration::from_secs(5 + 5 + 3 + 3 + 2);

/// What was seen so far, as far as later steps are judged by it.
#[derive(Default)]
pub(super) struct Invariants {
    /// What is configured now.
    pub(super) specs: BTreeMap<PluginName, Spec>,
    shown: BTreeMap<PluginName, PluginState>,
    /// Restarts an operator asked for, with the run there was then.
    asked: BTreeMap<PluginName, Generation>,
    /// The end of this run was asked for by an operator who wants the next one.
    again: BTreeSet<PluginName>,
    failures: BTreeMap<PluginName, Failures>,
    waiters: Vec<Waiter>,
    pub(super) answered: usize,
    /// When leaving began, how many levels there were, and whether it was asked for twice.
    leaving: Option<(Instant, u32, Option<Instant>)>,
    pub(super) left: bool,
}

/// The failures of a plugin that were followed by a start nobody asked for.
#[derive(Default)]
struct Failures {
    restarted: Vec<Instant>,
    latest: Option<Instant>,
}

struct Waiter {
    plugin: PluginName,
    start: bool,
}

impl Invariants {
    /// Notes an event before the machine is told.
    pub(super) fn before(&mut self, now: Instant, machine: &Supervisor, world: &World, event: &Event) {
        match event {
            Event::Configured(specs) if self.leaving.is_none() => {
                self.specs = specs.iter().map(|spec| (spec.name.clone(), spec.clone())).collect();
                self.asked.retain(|plugin, _| self.specs.get(plugin).is_some_and(|spec| spec.enabled));
                self.again.clear();
                self.failures.values_mut().for_each(|failures| failures.latest = None);
            }
            Event::Start(plugin) | Event::Restart(plugin) if self.leaving.is_none() => {
                self.failures.remove(plugin);
                let Some(view) = machine.view(plugin) else { return };
                if matches!(event, Event::Restart(_)) {
                    self.asked.insert(plugin.clone(), view.generation);
                }
                let ends = matches!(event, Event::Restart(_)) || view.state == PluginState::Stopping;
                if ends && world.alive.contains_key(plugin) {
                    self.again.insert(plugin.clone());
                }
                self.waiters.push(Waiter { plugin: plugin.clone(), start: true });
            }
            Event::Stop(plugin) => {
                self.asked.remove(plugin);
                self.again.remove(plugin);
                self.waiters.push(Waiter { plugin: plugin.clone(), start: false });
            }
            Event::Reload(plugin) => {
                self.failures.entry(plugin.clone()).or_default().latest = None;
            }
            Event::Wanted(plugin) => self.waiters.push(Waiter { plugin: plugin.clone(), start: true }),
            Event::Shutdown => match &mut self.leaving {
                None => {
                    let levels = u32::try_from(machine.graph().levels().len()).unwrap() + 1;
                    self.leaving = Some((now, levels, None));
                    self.asked.clear();
                    self.again.clear();
                }
                Some((_, _, twice)) => *twice = twice.or(Some(now)),
            },
            Event::Start(_) | Event::Restart(_) | Event::Configured(_) => {}
            Event::DescribeWanted(_) | Event::Fact(..) | Event::Tick => {}
        }
    }

    /// Judges a step, before the world acts on it.
    pub(super) fn judge_actions(
        &mut self,
        now: Instant,
        machine: &Supervisor,
        world: &World,
        actions: &[Action],
    ) {
        for action in actions {
            match action {
                Action::Spawn(plugin, generation) => {
                    assert!(self.leaving.is_none(), "{plugin} was spawned while leaving");
                    assert_eq!(machine.view(plugin).unwrap().generation, *generation);
                    self.judge_restart(now, plugin);
                    self.again.remove(plugin);
                }
                Action::Init(plugin, _) => self.judge_init(machine, world, plugin),
                Action::Entered(plugin, state) => {
                    let from = self.shown.insert(plugin.clone(), *state).unwrap_or(PluginState::Registered);
                    assert!(
                        from != *state && legal(from, *state),
                        "{plugin} went from {from:?} to {state:?}"
                    );
                }
                Action::Forget(plugin) => {
                    assert!(!world.alive.contains_key(plugin), "{plugin} was forgotten and lives");
                    self.shown.remove(plugin);
                    self.failures.remove(plugin);
                }
                Action::Leave => {
                    assert!(!self.left, "left twice");
                    self.left = true;
                }
                Action::Drain(plugin, _) | Action::CloseStdin(plugin, _) if self.leaving.is_some() => {
                    judge_stop_order(machine, world, plugin);
                }
                Action::Drain(..)
                | Action::AskToLeave(..)
                | Action::CloseStdin(..)
                | Action::Terminate(..)
                | Action::Kill(..)
                | Action::Abandon(..) => {}
            }
        }
    }

    /// Judges how everything is after a step.
    pub(super) fn judge(&mut self, now: Instant, machine: &Supervisor, world: &World) {
        for (plugin, view) in machine.views() {
            let shown = self.shown.get(plugin).copied().unwrap_or(PluginState::Registered);
            assert_eq!(shown, view.state, "{plugin} entered a state unannounced");
            judge_view(now, plugin, &view, world.alive.get(plugin));
        }
        let stray = world.alive.keys().find(|plugin| machine.view(plugin).is_none());
        assert_eq!(stray, None, "a process of a plugin that is forgotten");
        let waiting = self.waiters.len();
        self.waiters.retain(|waiter| {
            let settled = |view: View| if waiter.start { view.settled_start } else { view.settled_stop };
            machine.view(&waiter.plugin).is_some_and(|view| !settled(view))
        });
        self.answered += waiting - self.waiters.len();
        if let Some((since, levels, twice)) = self.leaving {
            let until = twice.map_or(since + GRACES * levels, |twice| twice + Duration::from_secs(2));
            assert!(self.left || now <= until.min(since + GRACES * levels), "leaving takes too long");
            assert_eq!(self.left, machine.is_down());
        }
    }

    /// Notes the end of a process, and judges what follows if it was asked for.
    pub(super) fn ended(
        &mut self,
        now: Instant,
        machine: &Supervisor,
        plugin: &PluginName,
        process: &Process,
        fact: &Fact,
    ) {
        let Some(view) = machine.view(plugin) else { return };
        let asked = process.ending_since.is_some() && !process.at_fault;
        if self.again.remove(plugin) {
            let lost = matches!(view.state, PluginState::Backoff | PluginState::Failed | PluginState::Idle);
            assert!(!lost, "{plugin} was to be started again and is {:?}: {:?}", view.state, view.reason);
        } else if !asked && matches!(fact, Fact::Exited(_)) {
            let failures = self.failures.entry(plugin.clone()).or_default();
            let ready_for = process.ready_since.map(|since| process.ending_since.unwrap_or(now) - since);
            if ready_for.is_some_and(|ready| {
                ready >= self.specs.get(plugin).map_or(Duration::MAX, |spec| spec.restart.reset_after)
            }) {
                failures.restarted.clear();
            }
            failures.latest = Some(now);
        } else {
            self.failures.entry(plugin.clone()).or_default().latest = None;
        }
    }

    /// Judges a world in which nothing was asked for a long time.
    pub(super) fn judge_rest(&self, machine: &Supervisor) {
        assert!(self.waiters.is_empty(), "{} still waits", self.waiters[0].plugin);
        for (plugin, generation) in &self.asked {
            let view = machine.view(plugin).unwrap();
            let down =
                matches!(view.state, PluginState::Blocked | PluginState::Disabled | PluginState::Failed);
            assert!(view.generation > *generation || down, "the restart of {plugin} was lost: {view:?}");
        }
        for (plugin, view) in machine.views() {
            if view.state == PluginState::Blocked {
                let down = |name: &PluginName| {
                    machine.view(name).is_none_or(|view| view.state != PluginState::Ready)
                };
                assert!(view.waits_for.iter().all(down), "{plugin} is blocked on what is ready");
                assert!(view.waits_for.iter().any(|name| !will_come(machine, name)), "{plugin}: {view:?}");
            }
            let waits =
                view.waits_for.iter().any(|name| machine.view(name).unwrap().state == PluginState::Idle);
            assert!(!waits, "{plugin} waits for one that nobody starts");
        }
    }

    /// Judges a start that nobody asked for, if it is one: no more than the policy allows.
    fn judge_restart(&mut self, now: Instant, plugin: &PluginName) {
        let Some(failures) = self.failures.get_mut(plugin) else { return };
        let policy = &self.specs[plugin].restart;
        let Some(failed) = failures.latest.take() else { return };
        if now - failed >= policy.probe_interval {
            return;
        }
        failures.restarted.push(failed);
        let recent = failures.restarted.iter().filter(|&&at| failed - at < policy.window).count();
        assert!(recent <= policy.max as usize, "{plugin} was restarted {recent} times in one window");
    }

    fn judge_init(&self, machine: &Supervisor, world: &World, plugin: &PluginName) {
        let declared = world.alive[plugin].described.as_ref().expect("init follows describe");
        let mut requires = declared.requires.clone();
        requires.extend(self.specs[plugin].requires.clone());
        for (required, requirement) in requires.iter().filter(|(_, requirement)| !requirement.optional) {
            let process = world.alive.get(required);
            let ready = process.is_some_and(|it| it.ready_since.is_some() && it.ending_since.is_none());
            assert!(ready, "{plugin} was initialised before {required} was ready");
            let version = machine.plugin(required).unwrap().declared().unwrap().version.clone();
            let fits = version.is_some_and(|version| requirement.version.matches(&version));
            assert!(fits || requirement.version.comparators.is_empty(), "{plugin} got a wrong {required}");
        }
    }
}

/// Whether a plugin that is not ready can become so without anybody's doing.
fn will_come(machine: &Supervisor, plugin: &PluginName) -> bool {
    let Some(view) = machine.view(plugin) else { return false };
    let given_up = machine.plugin(plugin).is_some_and(|it| it.history.given_up().is_some());
    match view.state {
        PluginState::Starting | PluginState::Backoff | PluginState::Idle | PluginState::Stopping => !given_up,
        PluginState::Registered | PluginState::Ready | PluginState::Busy => true,
        PluginState::Blocked | PluginState::Disabled | PluginState::Failed | PluginState::Stopped => false,
    }
}

/// Machine and world agree about a plugin's process, and no stop takes longer than its graces.
fn judge_view(now: Instant, plugin: &PluginName, view: &View, process: Option<&Process>) {
    let waited_for = process.is_some_and(|process| !process.abandoned);
    assert_eq!(view.settled_stop, !waited_for, "{plugin}: the machine does not know who is alive");
    match process {
        Some(process) => {
            assert_eq!(view.generation, process.generation);
            let ready = process.ready_since.is_some() && process.ending_since.is_none();
            assert_eq!(view.accepts_calls, ready, "{plugin}: {view:?} {process:?}");
            let overdue = process.ending_since.is_some_and(|since| now > since + GRACES);
            assert!(!overdue || process.abandoned, "{plugin} lives on: {process:?}");
        }
        None => assert!(!view.accepts_calls),
    }
    assert!(!(view.waits && view.accepts_calls));
}

/// While leaving, nobody is asked to stop before all that require it are down.
fn judge_stop_order(machine: &Supervisor, world: &World, plugin: &PluginName) {
    let stopping_before = world.alive[plugin].ending_since.is_some();
    let mut dependents = machine.graph().edges().filter(|edge| edge.orders && edge.to == plugin);
    let early = dependents.find(|edge| world.alive.get(edge.from).is_some_and(|process| !process.abandoned));
    assert!(
        stopping_before || early.is_none(),
        "{plugin} was stopped before {:?}",
        early.map(|edge| edge.from)
    );
}
