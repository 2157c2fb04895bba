//! The control task: owns the machine, performs its actions, answers after the effect.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use plugd_protocol::PluginName;
use plugd_protocol::control::{GraphEdge, PluginState, Stopped};
use plugd_protocol::manifest::CONCURRENCY_MAX;
use tokio::sync::{mpsc, oneshot, watch};

use super::children::Children;
use super::door::{Availability, Door, RunDoor, until};
use super::entry::{ActiveRun, Entry};
use super::host::{Host, RunEvent, Standing};
use super::launch::Spawner;
use super::plugins::{GraphView, PluginSpec, PluginView};
use super::run::{self, Report, RunParts, Told};
use super::setup;
use super::waiters::{Goal, Reply, Waiter, Waiters, stopped};
use crate::machine::{Action, Event, Fact, Generation, Revision, Supervisor};

mod handing_over;

/// Facts on their way from the runs; a run waits when it is full.
const FACTS_QUEUED: usize = 256;

/// Commands to one run: a whole life needs few, and it takes them at once.
const RUN_COMMANDS: usize = 64;

/// What the control task is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    Configure { plugins: Vec<PluginSpec>, reply: oneshot::Sender<()> },
    Wanted(PluginName),
    Start { plugins: Vec<PluginName>, reply: oneshot::Sender<Vec<PluginView>> },
    Stop { plugins: Vec<PluginName>, reply: oneshot::Sender<Vec<Stopped>> },
    Restart { plugins: Vec<PluginName>, reply: oneshot::Sender<Vec<PluginView>> },
    Reload { plugin: PluginName, reply: oneshot::Sender<Vec<PluginView>> },
    Settled { plugins: Vec<PluginName>, reply: oneshot::Sender<Vec<PluginView>> },
    Describe { plugins: Vec<PluginName>, reply: oneshot::Sender<()> },
    Views { reply: oneshot::Sender<Vec<PluginView>> },
    Graph { reply: oneshot::Sender<GraphView> },
    Shutdown { reply: oneshot::Sender<Vec<Stopped>> },
}

struct Control {
    machine: Supervisor,
    entries: BTreeMap<PluginName, Entry>,
    /// The latest given to settings.
    revision: Revision,
    host: Arc<dyn Host>,
    spawner: Spawner,
    facts: mpsc::Sender<Told>,
    publish: watch::Sender<Arc<HashMap<PluginName, Arc<Door>>>>,
    waiters: Waiters,
    /// Plugins that may have changed since waiters were answered last.
    concerned: BTreeSet<PluginName>,
    leaving: Vec<oneshot::Sender<Vec<Stopped>>>,
    /// What ended since the first shutdown, in that order.
    ended: Vec<Stopped>,
    left: bool,
}

enum Turn {
    Command(Option<Command>),
    Told(Told),
    Tick,
    ChildEnded,
}

/// Runs until everything is down, or until nobody holds a handle any more.
pub(super) async fn run(
    host: Arc<dyn Host>,
    spawner: Spawner,
    salt: u64,
    mut commands: mpsc::Receiver<Command>,
    publish: watch::Sender<Arc<HashMap<PluginName, Arc<Door>>>>,
) {
    let (facts, mut reports) = mpsc::channel(FACTS_QUEUED);
    let mut control = Control {
        machine: Supervisor::new(salt),
        entries: BTreeMap::new(),
        revision: Revision::default(),
        host,
        spawner,
        facts,
        publish,
        waiters: Waiters::default(),
        concerned: BTreeSet::new(),
        leaving: Vec::new(),
        ended: Vec::new(),
        left: false,
    };
    let mut commands_open = true;
    let mut children = Children::listen(&control.spawner);
    while !control.left {
        let turn = tokio::select! {
            command = commands.recv(), if commands_open => Turn::Command(command),
            Some(told) = reports.recv() => Turn::Told(told),
            () = until(control.machine.deadline()) => Turn::Tick,
            () = children.ended() => Turn::ChildEnded,
        };
        match turn {
            Turn::Command(Some(command)) => control.obey(command),
            Turn::Command(None) => {
                // The last handle is gone without a shutdown: nobody can call any more.
                commands_open = false;
                control.step(Event::Shutdown);
            }
            Turn::Told(Told::Fact(report)) => control.learn(*report),
            Turn::Told(Told::Buried(plugin, generation)) => control.buried(&plugin, generation),
            Turn::Tick => control.step(Event::Tick),
            Turn::ChildEnded => control.spawner.reap_orphans(),
        }
        control.answer_waiters();
    }
    control.spawner.close().await;
    control.say_goodbye();
}

impl Control {
    fn obey(&mut self, command: Command) {
        match command {
            Command::Configure { plugins, reply } => {
                self.configure(plugins);
                let _gone = reply.send(());
            }
            Command::Wanted(plugin) => self.step(Event::Wanted(plugin)),
            Command::Start { plugins, reply } => {
                let goals = self.started_goals(&plugins, false);
                plugins.into_iter().for_each(|plugin| self.step(Event::Start(plugin)));
                self.waiters.push(Waiter::new(goals, Reply::Views(reply)));
            }
            Command::Restart { plugins, reply } => {
                let goals = self.started_goals(&plugins, true);
                plugins.into_iter().for_each(|plugin| self.step(Event::Restart(plugin)));
                self.waiters.push(Waiter::new(goals, Reply::Views(reply)));
            }
            Command::Stop { plugins, reply } => {
                let goal = |plugin: &PluginName| {
                    let running = self.machine.view(plugin).filter(|view| !view.settled_stop);
                    (plugin.clone(), Goal::Stopped { running: running.map(|view| view.generation) })
                };
                let goals = plugins.iter().map(goal).collect();
                plugins.into_iter().for_each(|plugin| self.step(Event::Stop(plugin)));
                self.waiters.push(Waiter::new(goals, Reply::Stopped(reply)));
            }
            Command::Reload { plugin, reply } => {
                let goal = self.reload(&plugin);
                self.waiters.push(Waiter::new(vec![(plugin, goal)], Reply::Views(reply)));
            }
            Command::Settled { plugins, reply } => {
                let goals = plugins.into_iter().map(|plugin| (plugin, Goal::Settled)).collect();
                self.waiters.push(Waiter::new(goals, Reply::Views(reply)));
            }
            Command::Describe { plugins, reply } => {
                for plugin in &plugins {
                    if self.entries.get(plugin).is_some_and(|entry| !entry.described) {
                        self.step(Event::DescribeWanted(plugin.clone()));
                    }
                }
                let plugins = plugins.into_iter().map(|plugin| (plugin, Goal::Described)).collect();
                self.waiters.push(Waiter::new(plugins, Reply::Done(reply)));
            }
            Command::Views { reply } => {
                // Failures grow old while nothing happens.
                self.step(Event::Tick);
                let views = self.entries.keys().filter_map(|plugin| self.view(plugin)).collect();
                let _gone = reply.send(views);
            }
            Command::Graph { reply } => {
                let _gone = reply.send(self.graph());
            }
            Command::Shutdown { reply } => {
                self.leaving.push(reply);
                self.step(Event::Shutdown);
                // What is not running is not started any more: nobody need wait to hear that.
                let plugins: Vec<PluginName> = self.entries.keys().cloned().collect();
                plugins.iter().for_each(|plugin| self.publish_door(plugin));
            }
        }
    }

    /// Takes a plugin up anew; says when that is done.
    fn reload(&mut self, plugin: &PluginName) -> Goal {
        let before = self.machine.view(plugin);
        let serving = before.as_ref().is_some_and(|view| view.accepts_calls);
        let goal = match before {
            Some(view) if serving || !view.wanted_up => Goal::Settled,
            _ => self.started_goal(plugin, true),
        };
        if let Some(entry) = self.entries.get_mut(plugin).filter(|_| !serving) {
            entry.described = false;
        }
        self.step(Event::Reload(plugin.clone()));
        goal
    }

    /// A start is done when the plugin is ready or at rest; a restart needs a newer run.
    fn started_goals(&self, plugins: &[PluginName], newer: bool) -> Vec<(PluginName, Goal)> {
        plugins.iter().map(|plugin| (plugin.clone(), self.started_goal(plugin, newer))).collect()
    }

    fn started_goal(&self, plugin: &PluginName, newer: bool) -> Goal {
        let view = self.machine.view(plugin);
        // A run that is on its way up already will do for a start.
        let coming = !newer && view.as_ref().is_some_and(|view| view.state == PluginState::Starting);
        let after = match view {
            Some(view) if (newer || !view.accepts_calls) && !coming => view.generation,
            _ => Generation(0),
        };
        Goal::Started { after }
    }

    fn configure(&mut self, plugins: Vec<PluginSpec>) {
        let mut specs = Vec::with_capacity(plugins.len());
        self.revision.0 += 1;
        for PluginSpec { mut spec, settings } in plugins {
            let declared = spec.declared.is_some();
            let entry = self
                .entries
                .entry(spec.name.clone())
                .or_insert_with(|| Entry::new(&spec.name, &settings, declared));
            // What was described before may be another program by now: the machine knows.
            entry.described = declared;
            spec.revision = entry.revise(settings, self.revision);
            specs.push(spec);
        }
        self.publish_doors();
        self.step(Event::Configured(specs));
        for (name, entry) in &mut self.entries {
            if let Some(plugin) = self.machine.plugin(name) {
                entry.keep(plugin.revisions());
            }
        }
    }

    fn publish_doors(&self) {
        let doors = self.entries.iter().map(|(name, entry)| (name.clone(), Arc::clone(&entry.door)));
        self.publish.send_replace(Arc::new(doors.collect()));
    }

    fn buried(&mut self, plugin: &PluginName, generation: Generation) {
        if let Some(entry) = self.entries.get_mut(plugin) {
            entry.burying.remove(&generation);
            self.concerned.insert(plugin.clone());
        }
    }

    fn learn(&mut self, report: Report) {
        let Report { plugin, generation, fact, exit, took } = report;
        let ends = matches!(fact, Fact::Exited(_) | Fact::NotSpawned { .. });
        let reconfigured = matches!(fact, Fact::Reconfigured);
        let beside = self.standing(&plugin, generation) != Standing::Serving;
        if let Some(entry) = self.entries.get_mut(&plugin) {
            match &fact {
                Fact::Described(_) => {
                    entry.described = true;
                    entry.describe_took = Some(took);
                    if let Some(run) = entry.runs.get_mut(&generation) {
                        run.described = true;
                    }
                }
                Fact::Initialised => entry.init_took = Some(took),
                _ => {}
            }
            if ends {
                if let Some(exit) = &exit {
                    tracing::info!(%plugin, generation = generation.0, exit = exit.report().text, "ended");
                }
                entry.ended(generation, exit, beside);
            }
        }
        self.step(Event::Fact(plugin.clone(), generation, fact));
        self.promote(&plugin);
        if reconfigured {
            self.host.event(&plugin, generation, RunEvent::Reconfigured);
        }
        if ends && !self.leaving.is_empty() {
            let view = self.machine.view(&plugin);
            self.ended.push(stopped(&plugin, Some(generation), view.as_ref()));
        }
    }

    fn step(&mut self, event: Event) {
        let actions = self.machine.step(Instant::now(), event);
        for action in actions {
            self.perform(action);
        }
        self.tell_refusals();
        self.concerned.extend(self.machine.looked_at().iter().cloned());
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Spawn(plugin, generation, revision) => self.spawn(plugin, generation, revision),
            Action::Switch { plugin, from, to } => self.switch(&plugin, from, to),
            Action::TakeOver { plugin, from, to } => self.take_over(&plugin, from, to),
            Action::SpareReady(plugin, generation) => {
                self.host.event(&plugin, generation, RunEvent::SpareReady);
            }
            Action::SpareFailed(plugin, generation, reason) => {
                self.spare_failed(&plugin, generation, reason);
            }
            Action::Reconfigure(plugin, generation, revision) => {
                let settings = self.entries.get(&plugin).and_then(|entry| entry.settings.get(&revision));
                if let Some(config) = settings.map(|settings| Arc::clone(&settings.config)) {
                    self.tell(&plugin, generation, setup::Command::Reconfigure(config));
                }
            }
            Action::Init(plugin, generation) => {
                if let Some(run) =
                    self.entries.get_mut(&plugin).and_then(|entry| entry.runs.get_mut(&generation))
                {
                    run.initialised = true;
                }
                self.tell(&plugin, generation, setup::Command::Init);
            }
            Action::Drain(plugin, generation) => self.tell(&plugin, generation, setup::Command::Drain),
            Action::AskToLeave(plugin, generation, reason, grace) => {
                self.tell(&plugin, generation, setup::Command::AskToLeave(reason, grace));
            }
            Action::CloseStdin(plugin, generation) => {
                self.tell(&plugin, generation, setup::Command::CloseStdin)
            }
            Action::Terminate(plugin, generation) => {
                self.tell(&plugin, generation, setup::Command::Terminate)
            }
            Action::Kill(plugin, generation) => self.tell(&plugin, generation, setup::Command::Kill),
            Action::Abandon(plugin, generation) => {
                tracing::error!(%plugin, generation = generation.0, "SIGKILL did not end its process");
            }
            Action::Entered(plugin, state) => self.entered(&plugin, state),
            Action::Explained(plugin) => self.publish_door(&plugin),
            Action::Forget(plugin) => {
                self.entries.remove(&plugin);
                self.publish_doors();
                self.host.event(&plugin, Generation(0), RunEvent::Forgotten);
            }
            Action::Leave => self.left = true,
        }
    }

    fn spawn(&mut self, plugin: PluginName, generation: Generation, revision: Revision) {
        let standing = self.standing(&plugin, generation);
        let Some(entry) = self.entries.get_mut(&plugin) else {
            tracing::error!(%plugin, "the machine spawns what is not configured");
            return;
        };
        let settings = entry.settings.get(&revision).or_else(|| entry.settings.values().last());
        let Some(settings) = settings.map(Arc::clone) else {
            tracing::error!(%plugin, "a run has no settings");
            return;
        };
        let (commands, run_commands) = mpsc::channel(RUN_COMMANDS);
        // As many calls as there can be lanes: a call with a lane always finds room.
        let (calls, run_calls) = mpsc::channel(CONCURRENCY_MAX as usize);
        let door = Arc::new(RunDoor::new(generation, settings.launch.sandbox, calls, standing));
        let parts = RunParts {
            plugin,
            generation,
            settings,
            host: Arc::clone(&self.host),
            door: Arc::clone(&door),
            facts: self.facts.clone(),
            spawner: self.spawner.clone(),
            commands: run_commands,
            calls: run_calls,
        };
        entry.runs.insert(generation, ActiveRun { commands, door, described: false, initialised: false });
        tokio::spawn(run::run(parts));
    }

    fn tell(&self, plugin: &PluginName, generation: Generation, command: setup::Command) {
        let run = self.entries.get(plugin).and_then(|entry| entry.runs.get(&generation));
        if let Some(run) = run
            && let Err(error) = run.commands.try_send(command)
        {
            // A run that has just ended needs no command; its exit is on its way.
            tracing::debug!(%plugin, generation = generation.0, %error, "a command was not taken");
        }
    }

    fn entered(&mut self, plugin: &PluginName, state: PluginState) {
        let Some(view) = self.view(plugin) else {
            return;
        };
        tracing::info!(%plugin, ?state, generation = view.view.generation.0, reason = view.reason, "entered");
        self.publish_door(plugin);
        let event = RunEvent::Entered { state, reason: view.reason };
        self.host.event(plugin, view.view.generation, event);
    }

    /// Shows callers whether they can hand over calls.
    fn publish_door(&self, plugin: &PluginName) {
        let (Some(view), Some(entry)) = (self.view(plugin), self.entries.get(plugin)) else { return };
        entry.door.publish(match entry.availability(&view) {
            open @ Availability::Open(_) => open,
            Availability::Wait { .. } | Availability::Shut { .. } if !self.leaving.is_empty() => {
                Availability::Shut { state: PluginState::Stopping, reason: None }
            }
            closed @ (Availability::Wait { .. } | Availability::Shut { .. }) => closed,
        });
    }

    fn view(&self, plugin: &PluginName) -> Option<PluginView> {
        let view = self.machine.view(plugin)?;
        Some(self.entries.get(plugin)?.view(plugin, view))
    }

    fn graph(&self) -> GraphView {
        let graph = self.machine.graph();
        GraphView {
            order: graph.start_order().map(|name| (name.clone(), graph.level(name))).collect(),
            edges: graph.edges().map(GraphEdge::from).collect(),
            cycles: graph.cycles().iter().map(|cycle| cycle.to_vec()).collect(),
        }
    }

    fn answer_waiters(&mut self) {
        let reached = |plugin: &PluginName, goal: Goal| {
            let view = self.machine.view(plugin);
            let entry = self.entries.get(plugin);
            let described = entry.is_none_or(|entry| entry.described);
            // Stopped means that nothing is left.
            let buried =
                !matches!(goal, Goal::Stopped { .. }) || entry.is_none_or(|it| it.burying.is_empty());
            buried && goal.reached(view.as_ref(), described, &self.machine)
        };
        let concerned = std::mem::take(&mut self.concerned);
        for waiter in self.waiters.take_satisfied(&concerned, reached) {
            self.answer(waiter);
        }
    }

    fn answer(&self, waiter: Waiter) {
        // Whoever stopped waiting needs no answer.
        let _gone = match waiter.reply {
            Reply::Done(reply) => reply.send(()).is_err(),
            Reply::Views(reply) => {
                let views = waiter.plugins.iter().filter_map(|(plugin, _)| self.view(plugin)).collect();
                reply.send(views).is_err()
            }
            Reply::Stopped(reply) => {
                let outcome = |(plugin, goal): &(PluginName, Goal)| {
                    let running = if let Goal::Stopped { running } = goal { *running } else { None };
                    stopped(plugin, running, self.machine.view(plugin).as_ref())
                };
                reply.send(waiter.plugins.iter().map(outcome).collect()).is_err()
            }
        };
    }

    fn say_goodbye(&mut self) {
        for waiter in self.waiters.take_all() {
            self.answer(waiter);
        }
        for reply in self.leaving.drain(..) {
            let _gone = reply.send(self.ended.clone());
        }
    }
}
