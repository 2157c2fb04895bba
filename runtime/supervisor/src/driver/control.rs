//! The control task: owns the machine, performs its actions, answers after the effect.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use plugd_protocol::control::{GraphEdge, PluginState, Stopped};
use plugd_protocol::manifest::CONCURRENCY_MAX;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::door::{Availability, Door, RunDoor, until};
use super::exit::ExitRecord;
use super::host::{Host, RunEvent};
use super::launch::Spawner;
use super::plugins::{GraphView, PluginSpec, PluginView, RunSettings};
use super::run::{self, Report, RunParts};
use super::waiters::{Goal, Reply, Waiter, Waiters, stopped};
use crate::machine::{Action, Event, Fact, Generation, Supervisor, View};

/// Facts on their way from the runs; a run waits when it is full.
const FACTS_QUEUED: usize = 256;

/// Commands to one run: a whole life needs fewer, so it is never full.
const RUN_COMMANDS: usize = 32;

/// What the control task is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    Configure { plugins: Vec<PluginSpec>, reply: oneshot::Sender<()> },
    Wanted(PluginName),
    Start { plugins: Vec<PluginName>, reply: oneshot::Sender<Vec<PluginView>> },
    Stop { plugins: Vec<PluginName>, reply: oneshot::Sender<Vec<Stopped>> },
    Restart { plugins: Vec<PluginName>, reply: oneshot::Sender<Vec<PluginView>> },
    Reload { plugin: PluginName, reply: oneshot::Sender<Vec<PluginView>> },
    Describe { plugins: Vec<PluginName>, reply: oneshot::Sender<()> },
    Views { reply: oneshot::Sender<Vec<PluginView>> },
    Graph { reply: oneshot::Sender<GraphView> },
    Shutdown { reply: oneshot::Sender<Vec<Stopped>> },
}

struct Control {
    machine: Supervisor,
    entries: BTreeMap<PluginName, Entry>,
    host: Arc<dyn Host>,
    spawner: Spawner,
    facts: mpsc::Sender<Report>,
    publish: watch::Sender<Arc<HashMap<PluginName, Arc<Door>>>>,
    waiters: Waiters,
    leaving: Vec<oneshot::Sender<Vec<Stopped>>>,
    /// What ended since the first shutdown, in that order.
    ended: Vec<Stopped>,
    left: bool,
}

/// What the driver keeps of a plugin beside the machine.
struct Entry {
    settings: Arc<RunSettings>,
    door: Arc<Door>,
    runs: BTreeMap<Generation, ActiveRun>,
    last_exit: Option<ExitRecord>,
    describe_took: Option<Duration>,
    init_took: Option<Duration>,
    described: bool,
}

struct ActiveRun {
    commands: mpsc::Sender<run::Command>,
    door: Arc<RunDoor>,
    described: bool,
    /// It was sent `init`.
    initialised: bool,
}

enum Turn {
    Command(Option<Command>),
    Fact(Report),
    Tick,
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
        host,
        spawner,
        facts,
        publish,
        waiters: Waiters::default(),
        leaving: Vec::new(),
        ended: Vec::new(),
        left: false,
    };
    let mut commands_open = true;
    while !control.left {
        let turn = tokio::select! {
            command = commands.recv(), if commands_open => Turn::Command(command),
            Some(report) = reports.recv() => Turn::Fact(report),
            () = until(control.machine.deadline()) => Turn::Tick,
        };
        match turn {
            Turn::Command(Some(command)) => control.obey(command),
            Turn::Command(None) => {
                // The last handle is gone without a shutdown: nobody can call any more.
                commands_open = false;
                control.step(Event::Shutdown);
            }
            Turn::Fact(report) => control.learn(report),
            Turn::Tick => control.step(Event::Tick),
        }
        control.answer_waiters();
    }
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
                let up = self.machine.view(&plugin).is_some_and(|view| view.wanted_up);
                let goals = match up {
                    true => self.started_goals(std::slice::from_ref(&plugin), true),
                    false => vec![(plugin.clone(), Goal::Described)],
                };
                if let Some(entry) = self.entries.get_mut(&plugin) {
                    entry.described = false;
                }
                self.step(Event::Reload(plugin));
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
            }
        }
    }

    /// A start is done when the plugin is ready or at rest; a restart needs a newer run.
    fn started_goals(&self, plugins: &[PluginName], newer: bool) -> Vec<(PluginName, Goal)> {
        let goal = |plugin: &PluginName| {
            let view = self.machine.view(plugin);
            let after = match view {
                Some(view) if newer || !view.accepts_calls => view.generation,
                _ => Generation(0),
            };
            // A run that is on its way up already will do for a start.
            let coming = !newer && view_state(&self.machine, plugin) == Some(PluginState::Starting);
            (plugin.clone(), Goal::Started { after: if coming { Generation(0) } else { after } })
        };
        plugins.iter().map(goal).collect()
    }

    fn configure(&mut self, plugins: Vec<PluginSpec>) {
        let mut specs = Vec::with_capacity(plugins.len());
        for PluginSpec { spec, settings } in plugins {
            let declared = spec.declared.is_some();
            let settings = Arc::new(settings);
            match self.entries.get_mut(&spec.name) {
                Some(entry) => {
                    entry.door.set_queue_length(settings.queue_length);
                    entry.settings = settings;
                    entry.described |= declared;
                }
                None => {
                    let door = Arc::new(Door::new(spec.name.clone(), settings.queue_length));
                    let entry = Entry {
                        settings,
                        door,
                        runs: BTreeMap::new(),
                        last_exit: None,
                        describe_took: None,
                        init_took: None,
                        described: declared,
                    };
                    self.entries.insert(spec.name.clone(), entry);
                }
            }
            specs.push(spec);
        }
        self.publish_doors();
        self.step(Event::Configured(specs));
    }

    fn publish_doors(&self) {
        let doors = self.entries.iter().map(|(name, entry)| (name.clone(), Arc::clone(&entry.door)));
        self.publish.send_replace(Arc::new(doors.collect()));
    }

    fn learn(&mut self, report: Report) {
        let Report { plugin, generation, fact, exit, took } = report;
        let ends = matches!(fact, Fact::Exited(_) | Fact::NotSpawned { .. });
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
                let run = entry.runs.remove(&generation);
                // That a process ended which only was to be described says nothing about the plugin.
                let told = run.is_none_or(|run| run.initialised || !run.described);
                entry.last_exit = exit.filter(|_| told).or(entry.last_exit.take());
            }
        }
        self.step(Event::Fact(plugin.clone(), generation, fact));
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
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Spawn(plugin, generation) => self.spawn(plugin, generation),
            Action::Init(plugin, generation) => {
                if let Some(run) =
                    self.entries.get_mut(&plugin).and_then(|entry| entry.runs.get_mut(&generation))
                {
                    run.initialised = true;
                }
                self.tell(&plugin, generation, run::Command::Init);
            }
            Action::Drain(plugin, generation) => self.tell(&plugin, generation, run::Command::Drain),
            Action::AskToLeave(plugin, generation, reason, grace) => {
                self.tell(&plugin, generation, run::Command::AskToLeave(reason, grace));
            }
            Action::CloseStdin(plugin, generation) => {
                self.tell(&plugin, generation, run::Command::CloseStdin)
            }
            Action::Terminate(plugin, generation) => self.tell(&plugin, generation, run::Command::Terminate),
            Action::Kill(plugin, generation) => self.tell(&plugin, generation, run::Command::Kill),
            Action::Abandon(plugin, generation) => {
                tracing::error!(%plugin, generation = generation.0, "SIGKILL did not end its process");
            }
            Action::Entered(plugin, state) => self.entered(&plugin, state),
            Action::Forget(plugin) => {
                self.entries.remove(&plugin);
                self.publish_doors();
                self.host.event(&plugin, Generation(0), RunEvent::Forgotten);
            }
            Action::Leave => self.left = true,
        }
    }

    fn spawn(&mut self, plugin: PluginName, generation: Generation) {
        let Some(entry) = self.entries.get_mut(&plugin) else {
            tracing::error!(%plugin, "the machine spawns what is not configured");
            return;
        };
        let (commands, run_commands) = mpsc::channel(RUN_COMMANDS);
        // As many calls as there can be lanes: a call with a lane always finds room.
        let (calls, run_calls) = mpsc::channel(CONCURRENCY_MAX as usize);
        let (ring, abandoned) = mpsc::channel(1);
        let door = Arc::new(RunDoor {
            generation,
            lanes: Arc::new(Semaphore::new(0)),
            calls,
            abandoned: ring,
            concurrency: AtomicU32::new(1),
            in_flight: AtomicU32::new(0),
            stray_lines: AtomicU64::new(0),
            unmatched_answers: AtomicU64::new(0),
        });
        let parts = RunParts {
            plugin,
            generation,
            settings: Arc::clone(&entry.settings),
            host: Arc::clone(&self.host),
            door: Arc::clone(&door),
            facts: self.facts.clone(),
            spawner: self.spawner.clone(),
            commands: run_commands,
            calls: run_calls,
            abandoned,
        };
        entry.runs.insert(generation, ActiveRun { commands, door, described: false, initialised: false });
        tokio::spawn(run::run(parts));
    }

    fn tell(&self, plugin: &PluginName, generation: Generation, command: run::Command) {
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
        if let Some(entry) = self.entries.get(plugin) {
            entry.door.publish(availability(&view, entry));
        }
        let event = RunEvent::Entered { state, reason: view.reason };
        self.host.event(plugin, view.view.generation, event);
    }

    fn view(&self, plugin: &PluginName) -> Option<PluginView> {
        let view = self.machine.view(plugin)?;
        let entry = self.entries.get(plugin)?;
        let run = entry.runs.get(&view.generation).map(|run| &run.door);
        let count = |counter: fn(&RunDoor) -> u64| run.map_or(0, |run| counter(run));
        let narrow = |wide: u64| u32::try_from(wide).unwrap_or(u32::MAX);
        Some(PluginView {
            name: plugin.clone(),
            reason: reason(&view, entry),
            last_exit: entry.last_exit.clone(),
            describe_took: entry.describe_took,
            init_took: entry.init_took,
            concurrency: narrow(count(|run| u64::from(run.concurrency.load(Ordering::Relaxed)))).max(1),
            in_flight: narrow(count(|run| u64::from(run.in_flight.load(Ordering::Relaxed)))),
            queued: entry.door.waiting(),
            stray_lines: count(|run| run.stray_lines.load(Ordering::Relaxed)),
            unmatched_answers: count(|run| run.unmatched_answers.load(Ordering::Relaxed)),
            view,
        })
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
            let described = self.entries.get(plugin).is_none_or(|entry| entry.described);
            goal.reached(view.as_ref(), described)
        };
        for waiter in self.waiters.take_satisfied(reached) {
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

fn view_state(machine: &Supervisor, plugin: &PluginName) -> Option<PluginState> {
    machine.view(plugin).map(|view| view.state)
}

fn availability(view: &PluginView, entry: &Entry) -> Availability {
    let run = entry.runs.get(&view.view.generation).filter(|_| view.view.accepts_calls);
    match run {
        Some(run) => Availability::Open(Arc::clone(&run.door)),
        None if view.view.waits => Availability::Wait { state: view.view.state, reason: view.reason.clone() },
        None => {
            let now = || (view.view.state, view.reason.clone());
            let (state, reason) = view.view.heading.clone().unwrap_or_else(now);
            Availability::Shut { state, reason }
        }
    }
}

/// The machine's reason, with the last words of the run that it is about.
fn reason(view: &View, entry: &Entry) -> Option<String> {
    let reason = view.reason.clone()?;
    if !matches!(view.state, PluginState::Backoff | PluginState::Failed) {
        return Some(reason);
    }
    let last = entry.last_exit.as_ref().filter(|last| last.generation == view.generation);
    let words = last.and_then(|last| match (last.stderr_tail.last(), &last.first_stray) {
        (Some(line), _) => Some(format!("last line on stderr: {line}")),
        (None, Some(line)) if !entry.described => Some(format!("not a plugin? first line on stdout: {line}")),
        (None, _) => None,
    });
    Some(match words {
        Some(words) => format!("{reason}; {words}"),
        None => reason,
    })
}
