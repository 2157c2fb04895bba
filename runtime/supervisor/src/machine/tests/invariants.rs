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
    /// This step is about a run that cannot go on, whatever the order.
    refused: bool,
    pub(super) left: bool,
}

/// The failures of a plugin that were followed by a start nobody asked for.
#[derive(Default)]
struct Failures {
    restarted: Vec<Instant>,
    latest: Option<Instant>,
}

/// Somebody who waits for a plugin to be started, or for the end of the run there was.
struct Waiter {
    plugin: PluginName,
    stops: Option<Generation>,
}

impl Invariants {
    /// Notes an event before the machine is told.
    pub(super) fn before(&mut self, now: Instant, machine: &Supervisor, world: &mut World, event: &Event) {
        let refuses = |fact: &Fact| matches!(fact, Fact::DescribeRefused { .. } | Fact::InitRefused { .. });
        self.refused = matches!(event, Event::Fact(_, _, fact) if refuses(fact));
        if let Event::Start(plugin) | Event::Restart(plugin) | Event::Stop(plugin) | Event::Reload(plugin) =
            event
        {
            if !self.specs.contains_key(plugin) {
                return;
            }
            world.alive.entry(plugin.clone()).and_modify(|process| process.at_fault = false);
        }
        match event {
            Event::Configured(specs) if self.leaving.is_none() => self.configured(specs, world),
            Event::Start(plugin) | Event::Restart(plugin) if self.leaving.is_none() => {
                self.failures.remove(plugin);
                let Some(view) = machine.view(plugin) else { return };
                if matches!(event, Event::Restart(_)) {
                    self.asked.insert(plugin.clone(), view.generation);
                }
                let process = world.alive.get(plugin);
                let ends =
                    |process: &Process| matches!(event, Event::Restart(_)) || process.ending_since.is_some();
                if process.is_some_and(ends) {
                    self.again.insert(plugin.clone());
                }
                self.waiters.push(Waiter { plugin: plugin.clone(), stops: None });
            }
            Event::Stop(plugin) => {
                self.asked.remove(plugin);
                self.again.remove(plugin);
                let stops = machine.view(plugin).map(|view| view.generation);
                self.waiters.push(Waiter { plugin: plugin.clone(), stops });
            }
            Event::Reload(plugin) => {
                self.failures.entry(plugin.clone()).or_default().latest = None;
            }
            Event::Wanted(plugin) => self.waiters.push(Waiter { plugin: plugin.clone(), stops: None }),
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

    fn configured(&mut self, specs: &[Spec], world: &mut World) {
        let new: BTreeMap<PluginName, Spec> =
            specs.iter().map(|spec| (spec.name.clone(), spec.clone())).collect();
        let old = std::mem::replace(&mut self.specs, new);
        let policy = |specs: &BTreeMap<PluginName, Spec>, plugin: &PluginName| {
            specs.get(plugin).map(|spec| spec.restart.clone())
        };
        self.asked.retain(|plugin, _| self.specs.get(plugin).is_some_and(|spec| spec.enabled));
        self.again.clear();
        self.failures.retain(|plugin, _| policy(&old, plugin) == policy(&self.specs, plugin));
        self.failures.values_mut().for_each(|failures| failures.latest = None);
        for (plugin, process) in &mut world.alive {
            process.at_fault &= old.get(plugin) == self.specs.get(plugin);
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
                Action::Drain(plugin, _) | Action::CloseStdin(plugin, _)
                    if self.leaving.is_some() && !self.refused =>
                {
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
            let settled = |view: View| match waiter.stops {
                None => view.settled_start,
                Some(generation) => view.settled_stop || view.generation > generation,
            };
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
        let ready_for = process.ready_since.map(|since| process.ending_since.unwrap_or(now) - since);
        let reset_after = self.specs.get(plugin).map_or(Duration::MAX, |spec| spec.restart.reset_after);
        if ready_for.is_some_and(|ready| ready >= reset_after) {
            self.failures.remove(plugin);
        }
        if self.again.remove(plugin) {
            let lost = matches!(view.state, PluginState::Backoff | PluginState::Failed | PluginState::Idle);
            assert!(!lost, "{plugin} was to be started again and is {:?}: {:?}", view.state, view.reason);
        } else if !asked && matches!(fact, Fact::Exited(_)) {
            let failures = self.failures.entry(plugin.clone()).or_default();
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
            let waits = view
                .waits_for
                .iter()
                .any(|name| machine.view(name).is_some_and(|view| view.state == PluginState::Idle));
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
    let lives = |name: &PluginName| {
        world.alive.contains_key(name) && machine.view(name).is_some_and(|view| !view.settled_stop)
    };
    let early = dependents.find(|edge| lives(edge.from));
    assert!(
        stopping_before || early.is_none(),
        "{plugin} was stopped before {:?}",
        early.map(|edge| edge.from)
    );
}
