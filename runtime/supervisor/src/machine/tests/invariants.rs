//! What must hold after every step of every simulated world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use plugd_protocol::control::PluginState;

use super::super::{Action, Event, Fact, Generation, Revision, Spec, Supervisor, View};
use super::legal;
use super::world::{Process, Run, World};

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
    /// What each revision of each plugin is made from, and what runs of it were made from so far.
    facets: BTreeMap<(PluginName, Revision), Facets>,
    used: BTreeSet<(PluginName, Facets)>,
    /// How everybody was before this step, and who is told of in it.
    before: BTreeMap<PluginName, View>,
    told_of: Option<Run>,
    waiters: Vec<Waiter>,
    pub(super) answered: usize,
    /// How often a candidate took over, and how often configurations were taken up in place.
    pub(super) switched: usize,
    pub(super) reconfigured: usize,
    /// How often a spare took over.
    pub(super) taken_over: usize,
    /// How many runs of each plugin were sent `init`.
    inits: BTreeMap<PluginName, u64>,
    /// When leaving began, how many levels there were, and whether it was asked for twice.
    leaving: Option<(Instant, u32, Option<Instant>)>,
    /// This step is about a run that cannot go on, whatever the order.
    refused: bool,
    pub(super) left: bool,
}

type Facets = Arc<BTreeMap<String, u64>>;

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
        self.before = machine.views().map(|(name, view)| (name.clone(), view)).collect();
        self.told_of = match event {
            Event::Fact(plugin, generation, _) => Some((plugin.clone(), *generation)),
            _ => None,
        };
        if let Event::Start(plugin) | Event::Restart(plugin) | Event::Stop(plugin) | Event::Reload(plugin) =
            event
        {
            if !self.specs.contains_key(plugin) {
                return;
            }
            if let Some(view) = machine.view(plugin) {
                let run = (plugin.clone(), view.generation);
                world.alive.entry(run).and_modify(|process| process.at_fault = false);
            }
        }
        match event {
            Event::Configured(specs) if self.leaving.is_none() => self.configured(specs, world),
            Event::Start(plugin) | Event::Restart(plugin) if self.leaving.is_none() => {
                self.failures.remove(plugin);
                let Some(view) = machine.view(plugin) else { return };
                if matches!(event, Event::Restart(_)) {
                    self.asked.insert(plugin.clone(), view.generation);
                }
                let process = world.alive.get(&(plugin.clone(), view.generation));
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
        for spec in new.values() {
            self.facets.insert((spec.name.clone(), spec.revision), Arc::clone(&spec.facets));
        }
        let old = std::mem::replace(&mut self.specs, new);
        let policy = |specs: &BTreeMap<PluginName, Spec>, plugin: &PluginName| {
            specs.get(plugin).map(|spec| spec.restart.clone())
        };
        self.asked.retain(|plugin, _| self.specs.get(plugin).is_some_and(|spec| spec.enabled));
        self.again.clear();
        self.failures.retain(|plugin, _| policy(&old, plugin) == policy(&self.specs, plugin));
        self.failures.values_mut().for_each(|failures| failures.latest = None);
        for ((plugin, _), process) in &mut world.alive {
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
                Action::Spawn(plugin, generation, revision) => {
                    self.judge_spawn(now, machine, plugin, *generation, *revision);
                }
                Action::Init(plugin, run) => {
                    *self.inits.entry(plugin.clone()).or_default() += 1;
                    self.judge_init(machine, world, &(plugin.clone(), *run));
                }
                Action::Switch { plugin, from, to } => {
                    self.switched += 1;
                    judge_switch(world, plugin, *from, *to);
                    let ready_for = world.alive[&(plugin.clone(), *from)].ready_since.map(|at| now - at);
                    self.forget_failures(plugin, ready_for);
                }
                Action::TakeOver { plugin, from, to } => {
                    self.taken_over += 1;
                    self.judge_take_over(now, machine, world, plugin, (*from, *to));
                }
                Action::SpareReady(plugin, run) => {
                    let process = &world.alive[&(plugin.clone(), *run)];
                    assert!(process.serves() && machine.view(plugin).unwrap().accepts_calls);
                }
                Action::Reconfigure(plugin, run, revision) => {
                    self.reconfigured += 1;
                    assert_eq!(self.specs[plugin].revision, *revision);
                    self.used.insert((plugin.clone(), Arc::clone(&self.specs[plugin].facets)));
                    assert_eq!(machine.view(plugin).map(|view| view.generation), Some(*run));
                }
                Action::Entered(plugin, state) => {
                    let from = self.shown.insert(plugin.clone(), *state).unwrap_or(PluginState::Registered);
                    assert!(
                        from != *state && legal(from, *state),
                        "{plugin} went from {from:?} to {state:?}"
                    );
                }
                Action::Forget(plugin) => {
                    assert!(world.of(plugin).next().is_none(), "{plugin} was forgotten and lives");
                    self.shown.remove(plugin);
                    self.failures.remove(plugin);
                    self.inits.remove(plugin);
                    self.used.retain(|(other, _)| other != plugin);
                }
                Action::Leave => {
                    assert!(!self.left, "left twice");
                    self.left = true;
                }
                Action::Drain(plugin, run) | Action::CloseStdin(plugin, run)
                    if self.leaving.is_some() && !self.refused =>
                {
                    judge_stop_order(machine, world, &(plugin.clone(), *run));
                }
                Action::Explained(_)
                | Action::SpareFailed(..)
                | Action::Drain(..)
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
            judge_view(now, plugin, &view, world);
            let stopped = view.state == PluginState::Stopped && self.leaving.is_none();
            assert!(!stopped || view.next_start.is_none(), "{plugin} is stopped and would be tried again");
            assert_eq!(view.starts, self.inits.get(plugin).copied().unwrap_or(0), "{plugin}");
        }
        self.judge_losses(machine);
        self.judge_others(machine);
        let stray = world.alive.keys().find(|(plugin, _)| machine.view(plugin).is_none());
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
        (plugin, generation): &Run,
        process: &Process,
        fact: &Fact,
    ) {
        if let (Fact::Exited(exit), Some(view)) = (fact, machine.view(plugin)) {
            assert_eq!(view.last_exit, Some((*generation, *exit)), "{plugin}");
        }
        let was_the_run = self.before.get(plugin).is_some_and(|view| view.generation == *generation);
        let Some(view) = machine.view(plugin).filter(|_| was_the_run) else { return };
        let asked = process.ending_since.is_some() && !process.at_fault;
        let replaced = self.before[plugin].replacing.is_some_and(|by| by == view.generation);
        let ready_for = process.ready_since.map(|since| process.ending_since.unwrap_or(now) - since);
        self.forget_failures(plugin, ready_for);
        if self.again.remove(plugin) {
            let lost = matches!(view.state, PluginState::Backoff | PluginState::Failed | PluginState::Idle);
            assert!(!lost, "{plugin} was to be started again and is {:?}: {:?}", view.state, view.reason);
        } else if !asked && !replaced && matches!(fact, Fact::Exited(_)) {
            let failures = self.failures.entry(plugin.clone()).or_default();
            failures.latest = Some(now);
        } else {
            self.failures.entry(plugin.clone()).or_default().latest = None;
        }
    }

    /// Judges a world in which nothing was asked for a long time.
    pub(super) fn judge_rest(&self, machine: &Supervisor, world: &World) {
        self.judge_applied(machine, world);
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
            assert!(!waits, "{plugin} waits for one that nobody starts: {view:?}");
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

    /// A spare takes over from a run that has failed, as often as it might have been started again.
    fn judge_take_over(
        &mut self,
        now: Instant,
        machine: &Supervisor,
        world: &World,
        plugin: &PluginName,
        (from, to): (Generation, Generation),
    ) {
        let process = &world.alive[&(plugin.clone(), to)];
        assert!(process.serves(), "{plugin}: {to:?} took over and is not ready");
        let failed = world.alive.get(&(plugin.clone(), from)).is_none_or(|it| it.ending_since.is_none());
        assert!(failed && self.told_of == Some((plugin.clone(), from)), "{plugin}: {from:?} did not fail");
        assert!(is_spare(&self.before[plugin], to) && self.before[plugin].spare.as_ref().unwrap().ready);
        assert_eq!(machine.view(plugin).map(|view| view.generation), Some(to));
        self.failures.entry(plugin.clone()).or_default().latest = Some(now);
        self.judge_restart(now, plugin);
    }

    /// A run that was ready for long enough makes the failures before it forgotten.
    fn forget_failures(&mut self, plugin: &PluginName, ready_for: Option<Duration>) {
        let reset_after = self.specs.get(plugin).map_or(Duration::MAX, |spec| spec.restart.reset_after);
        if ready_for.is_some_and(|ready| ready >= reset_after) {
            self.failures.remove(plugin);
        }
    }

    /// A run is spawned with what is configured, or with what runs of the plugin used before.
    fn judge_spawn(
        &mut self,
        now: Instant,
        machine: &Supervisor,
        plugin: &PluginName,
        generation: Generation,
        revision: Revision,
    ) {
        assert!(self.leaving.is_none(), "{plugin} was spawned while leaving");
        let facets = Arc::clone(&self.facets[&(plugin.clone(), revision)]);
        let configured = facets == self.specs[plugin].facets;
        let first = self.used.insert((plugin.clone(), facets));
        assert!(!first || configured, "{plugin} got {revision:?}, which it never had");
        assert!(machine.plugin(plugin).unwrap().revisions().any(|known| known == revision));
        let view = machine.view(plugin).unwrap();
        if is_spare(&view, generation) {
            let own = &machine.plugin(plugin).unwrap().applied.facets;
            assert_eq!(own, &self.facets[&(plugin.clone(), revision)], "a spare is made as the run is");
            assert!(view.accepts_calls, "a spare where nothing serves");
        } else if view.replacing == Some(generation) {
            assert_eq!(self.specs[plugin].revision, revision, "a candidate is made from what is configured");
        } else {
            assert_eq!(view.generation, generation);
            self.judge_restart(now, plugin);
            self.again.remove(plugin);
        }
    }

    /// Who runs and does not stay up without what it requires is stopped with it.
    fn judge_losses(&self, machine: &Supervisor) {
        if self.leaving.is_some() {
            return;
        }
        let accepts = |view: Option<&View>| view.is_some_and(|view| view.accepts_calls);
        for edge in machine.graph().edges().filter(|edge| !edge.requirement.on_loss.is_stay()) {
            let lost = accepts(self.before.get(edge.to)) && !accepts(machine.view(edge.to).as_ref());
            let stays = accepts(self.before.get(edge.from)) && accepts(machine.view(edge.from).as_ref());
            assert!(!(lost && stays), "{} stays up without {}", edge.from, edge.to);
        }
    }

    /// What is seen of a run beside the plugin's own does not change how the plugin is.
    fn judge_others(&self, machine: &Supervisor) {
        let Some((plugin, generation)) = &self.told_of else { return };
        let (Some(before), Some(after)) = (self.before.get(plugin), machine.view(plugin)) else { return };
        if before.generation == *generation || after.generation == *generation {
            return;
        }
        let shown = |view: &View| {
            (view.state, view.reason.clone(), view.generation, view.pid, view.next_start, view.wanted_up)
        };
        assert_eq!(shown(before), shown(&after), "{plugin}: a run beside the own one changed something");
    }

    /// At rest, runs use what is configured, or it is said what they do not use.
    fn judge_applied(&self, machine: &Supervisor, world: &World) {
        for (plugin, view) in machine.views() {
            let settings = &self.specs[plugin].facets;
            assert!(view.settled_change, "{plugin} is still being changed: {view:?}");
            let marked = view.restart_required.is_some();
            assert!(marked || machine.plugin(plugin).unwrap().applied.facets == *settings);
            let Some(process) = world.alive.get(&(plugin.clone(), view.generation)) else { continue };
            let made_from = &self.facets[&(plugin.clone(), process.revision)];
            assert!(
                marked || !view.accepts_calls || made_from == settings,
                "{plugin} runs with {made_from:?} instead of {settings:?}: {view:?} {process:?}"
            );
        }
    }

    fn judge_init(&self, machine: &Supervisor, world: &World, run: &Run) {
        let plugin = &run.0;
        let declared = world.alive[run].described.as_ref().expect("init follows describe");
        let mut requires = declared.requires.clone();
        requires.extend(self.specs[plugin].requires.clone());
        for (required, requirement) in requires.iter().filter(|(_, requirement)| !requirement.optional) {
            let ready = world.of(required).any(|(_, process)| process.serves());
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

/// Machine and world agree about a plugin's processes, and no stop takes longer than its graces.
fn judge_view(now: Instant, plugin: &PluginName, view: &View, world: &World) {
    let waited_for = world.of(plugin).any(|(_, process)| !process.abandoned);
    assert_eq!(view.settled_stop, !waited_for, "{plugin}: the machine does not know who is alive");
    let serving: Vec<Generation> = world
        .of(plugin)
        .filter(|(run, process)| process.serves() && !is_spare(view, *run))
        .map(|(run, _)| run)
        .collect();
    let expected: &[Generation] = if view.accepts_calls { &[view.generation] } else { &[] };
    assert_eq!(serving, expected, "{plugin}: who takes calls? {view:?}");
    for (run, process) in world.of(plugin) {
        let known = run == view.generation || view.replacing == Some(run) || is_spare(view, run);
        assert!(known || process.ending_since.is_some(), "{plugin}#{run:?} is beside the others: {view:?}");
        let overdue = process.ending_since.is_some_and(|since| now > since + GRACES);
        assert!(!overdue || process.abandoned, "{plugin} lives on: {process:?}");
    }
    if let Some(candidate) = view.replacing {
        let process = &world.alive[&(plugin.clone(), candidate)];
        assert!(process.ending_since.is_none() && process.ready_since.is_none());
        assert!(view.accepts_calls && !view.settled_change, "a candidate where nothing serves");
    }
    if let Some(spare) = &view.spare {
        assert!(view.accepts_calls, "a spare where nothing serves");
        let process = spare.generation.map(|run| &world.alive[&(plugin.clone(), run)]);
        let ready = process.is_some_and(Process::serves);
        assert_eq!(spare.ready, ready, "{plugin}: {spare:?}");
    }
    let ending = world.of(plugin).filter(|(_, process)| process.ending_since.is_some()).count();
    // The run, one that it took over from, a candidate and a spare that came to nothing.
    assert!(ending <= 4, "{plugin} has {ending} processes on their way out");
    assert!(!(view.waits && view.accepts_calls));
    assert!(view.settled_change || view.restart_required.is_none());
}

/// Whether a run is the spare.
fn is_spare(view: &View, run: Generation) -> bool {
    view.spare.as_ref().is_some_and(|spare| spare.generation == Some(run))
}

/// Calls go from a run that serves to one that has just become ready.
fn judge_switch(world: &World, plugin: &PluginName, from: Generation, to: Generation) {
    let serves = |run: Generation| world.alive[&(plugin.clone(), run)].serves();
    assert!(serves(from) && serves(to) && from < to, "{plugin} was switched from {from:?} to {to:?}");
}

/// While leaving, nobody is asked to stop before all that require it are down.
fn judge_stop_order(machine: &Supervisor, world: &World, run: &Run) {
    let plugin = &run.0;
    let stopping_before = world.alive[run].ending_since.is_some();
    let is_the_run = machine.view(plugin).is_some_and(|view| view.generation == run.1);
    let mut dependents = machine.graph().edges().filter(|edge| edge.orders && edge.to == plugin);
    let lives = |name: &PluginName| {
        world.of(name).next().is_some() && machine.view(name).is_some_and(|view| !view.settled_stop)
    };
    let early = dependents.find(|edge| lives(edge.from));
    assert!(
        stopping_before || !is_the_run || early.is_none(),
        "{plugin} was stopped before {:?}",
        early.map(|edge| edge.from)
    );
}
