//! All plugins together: events in, actions out, and who has to wait for whom.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use plugd_protocol::PluginName;
use plugd_protocol::control::PluginState;

use super::graph::{Graph, Needs};
use super::lifecycle::Lifecycle;
use super::view::{Face, View};
use super::{Action, Event, Fact, Spec};

/// How many runs may be between spawn and description at once, unless told otherwise.
///
/// Enough to keep a few cores busy with the start of interpreters, too few to make all of them late.
const STARTING_MAX: usize = 8;

/// Decides about the lives of all plugins.
///
/// Each [`step`](Supervisor::step) applies one event and then settles: plugins that may be
/// concerned are looked at in the order of starting (of stopping, when leaving) until none is left.
#[derive(Debug)]
pub struct Supervisor {
    salt: u64,
    starting_max: usize,
    pub(super) plugins: BTreeMap<PluginName, Lifecycle>,
    pub(super) graph: Graph,
    graph_is_stale: bool,
    pub(super) leaving: Leaving,
    /// Still to be looked at, by rank.
    touched: BTreeSet<(usize, PluginName)>,
    /// Looked at in the latest step.
    seen: BTreeSet<PluginName>,
    /// When which plugin's time is up.
    due: BTreeSet<(Instant, PluginName)>,
    /// Those that wait for their turn to be spawned, in that order.
    pending: BTreeSet<(Turn, PluginName)>,
    /// Those between spawn and description.
    describing: BTreeSet<PluginName>,
    /// Those with a candidate, which may require what the graph does not know of.
    pub(super) replacing: BTreeSet<PluginName>,
    /// The latest instant it was told.
    now: Option<Instant>,
}

/// Whose turn to be spawned it is: calls come first, then the order of starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    unasked: bool,
    rank: usize,
}

/// How far leaving has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaving {
    No,
    Asked,
    Left,
}

impl Supervisor {
    /// A supervisor of nothing yet; `salt` makes its jitter differ from others'.
    pub fn new(salt: u64) -> Supervisor {
        Supervisor {
            salt,
            starting_max: STARTING_MAX,
            plugins: BTreeMap::new(),
            graph: Graph::default(),
            graph_is_stale: false,
            leaving: Leaving::No,
            touched: BTreeSet::new(),
            seen: BTreeSet::new(),
            due: BTreeSet::new(),
            pending: BTreeSet::new(),
            describing: BTreeSet::new(),
            replacing: BTreeSet::new(),
            now: None,
        }
    }

    /// Sets how many runs may be between spawn and description at once; at least one.
    #[must_use]
    pub fn with_starting_max(mut self, runs: usize) -> Supervisor {
        self.starting_max = runs.max(1);
        self
    }

    /// Applies one event and says what is to be done, in this order.
    pub fn step(&mut self, now: Instant, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.now = Some(now);
        self.seen.clear();
        self.apply(now, event, &mut out);
        self.settle(now, &mut out);
        self.announce(now, &mut out);
        debug_assert_eq!(
            self.deadline(),
            self.plugins.values().filter_map(Lifecycle::deadline).min(),
            "a plugin's deadline changed and it was not looked at"
        );
        out
    }

    /// When [`Event::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The plugins that the latest step may have changed; some of them may be gone.
    pub fn looked_at(&self) -> &BTreeSet<PluginName> {
        &self.seen
    }

    /// How a plugin is.
    pub fn view(&self, name: &PluginName) -> Option<View> {
        self.plugins.get(name).zip(self.now).map(|(plugin, now)| plugin.view(now))
    }

    /// How all plugins are, by name.
    pub fn views(&self) -> impl Iterator<Item = (&PluginName, View)> {
        let now = self.now;
        self.plugins.iter().filter_map(move |(name, plugin)| Some((name, plugin.view(now?))))
    }

    /// What is known of a plugin besides its view.
    pub fn plugin(&self, name: &PluginName) -> Option<&Lifecycle> {
        self.plugins.get(name)
    }

    /// Who requires whom.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether it was told to leave and nothing lives any more.
    pub fn is_down(&self) -> bool {
        self.leaving != Leaving::No && !self.plugins.values().any(Lifecycle::is_live)
    }

    fn apply(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let leaving = self.leaving != Leaving::No;
        match event {
            Event::Tick => self.tick(now, out),
            Event::Shutdown => self.shutdown(now, out),
            Event::Fact(name, generation, fact) => {
                // A dependent on its way up needs it, and one on its way down may still use it.
                if matches!(fact, Fact::Idle) && (leaving || self.is_needed(&name)) {
                    return;
                }
                self.update(&name, |plugin| plugin.fact(now, generation, fact, out));
            }
            Event::Configured(_)
            | Event::DescribeWanted(_)
            | Event::Wanted(_)
            | Event::Start(_)
            | Event::Stop(_)
            | Event::Restart(_)
            | Event::Reload(_)
                if leaving => {}
            Event::Configured(specs) => self.configure(now, specs, out),
            Event::DescribeWanted(name) => self.ask(&name, Lifecycle::describe_wanted),
            Event::Wanted(name) => self.ask(&name, |plugin| {
                plugin.want(true);
            }),
            Event::Start(name) => self.ask(&name, Lifecycle::start),
            Event::Stop(name) => self.ask(&name, |plugin| plugin.stop(now, out)),
            Event::Restart(name) => self.ask(&name, |plugin| plugin.restart(now, out)),
            Event::Reload(name) => self.ask(&name, |plugin| plugin.reload(now, out)),
        }
    }

    /// Changes a plugin that is configured; of one that is only on its way out nothing is wanted.
    fn ask(&mut self, name: &PluginName, change: impl FnOnce(&mut Lifecycle)) {
        if self.plugins.get(name).is_some_and(|plugin| !plugin.removed) {
            self.update(name, change);
        }
    }

    /// Changes one plugin, and notes who may be concerned.
    pub(super) fn update(&mut self, name: &PluginName, change: impl FnOnce(&mut Lifecycle)) {
        let Some(plugin) = self.plugins.get_mut(name) else { return };
        let before = plugin.declared.clone();
        change(plugin);
        if plugin.declared != before {
            let needs = |declared: &Option<super::Declared>| {
                declared.as_ref().map(|it| (it.requires.clone(), it.priority)).unwrap_or_default()
            };
            self.graph_is_stale |= needs(&plugin.declared) != needs(&before);
            self.touch_dependents(name);
        }
        self.touch(name);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Action>) {
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        let due: BTreeSet<PluginName> = due.map(|(_, name)| name.clone()).collect();
        for name in due {
            self.update(&name, |plugin| plugin.tick(now, out));
        }
    }

    fn shutdown(&mut self, now: Instant, out: &mut Vec<Action>) {
        match self.leaving {
            Leaving::No => {
                self.leaving = Leaving::Asked;
                self.touch_all();
            }
            Leaving::Asked => {
                let mut names: Vec<PluginName> = self.plugins.keys().cloned().collect();
                names.sort_by_key(|name| std::cmp::Reverse(self.graph.rank(name)));
                for name in names {
                    self.update(&name, |plugin| plugin.kill(now, out));
                }
            }
            Leaving::Left => {}
        }
    }

    fn configure(&mut self, now: Instant, specs: Vec<Spec>, out: &mut Vec<Action>) {
        let mut specs: BTreeMap<PluginName, Spec> =
            specs.into_iter().map(|spec| (spec.name.clone(), spec)).collect();
        for (name, plugin) in &mut self.plugins {
            match specs.remove(name) {
                Some(spec) => plugin.configure(now, spec, out),
                None => plugin.remove(now, out),
            }
        }
        for (name, spec) in specs {
            self.plugins.insert(name, Lifecycle::new(spec, self.salt, now));
        }
        self.graph_is_stale = true;
    }

    /// Looks at everybody concerned until nothing follows any more.
    fn settle(&mut self, now: Instant, out: &mut Vec<Action>) {
        loop {
            if std::mem::take(&mut self.graph_is_stale) {
                self.rebuild_graph();
                self.touch_all();
            }
            let next =
                if self.leaving == Leaving::No { self.touched.pop_first() } else { self.touched.pop_last() };
            if let Some((_, name)) = next {
                self.settle_one(now, &name, out);
            } else if let Some(name) = self.next_to_spawn() {
                self.update(&name, |plugin| plugin.spawn(now, out));
            } else {
                return;
            }
        }
    }

    fn settle_one(&mut self, now: Instant, name: &PluginName, out: &mut Vec<Action>) {
        if !self.plugins.contains_key(name) {
            return;
        }
        let gates = self.gates(&self.graph, name);
        let plugin = self.plugins.get_mut(name).expect("looked up above");
        plugin.settle(now, gates, out);
        self.settle_candidate(now, name, out);
        let plugin = self.plugins.get_mut(name).expect("looked up above");
        let face = plugin.current_face();
        let changed = face != plugin.face;
        let lost = plugin.face == Face::Ready && changed;
        plugin.face = face;
        let turn = Turn { unasked: !plugin.by_call, rank: self.graph.rank(name) };
        let turn = Some(turn).filter(|_| plugin.awaits_turn());
        let before = std::mem::replace(&mut plugin.turn, turn);
        let describes = plugin.is_describing();
        let (replaces, live) = (plugin.candidate().is_some(), plugin.is_live());
        let pulls = plugin.pulls();
        move_to(&mut self.pending, name, before, turn);
        note(&mut self.describing, name, describes);
        note(&mut self.replacing, name, replaces);
        self.seen.insert(name.clone());
        if lost {
            self.lose(now, name, out);
        }
        if changed {
            self.touch_dependents(name);
        }
        if pulls {
            self.pull(name);
        }
        if !live && self.leaving != Leaving::No {
            let required = self.graph.requirements(name).map(|edge| edge.to);
            let left: Vec<PluginName> = required
                .filter(|&to| self.plugins.get(to).is_some_and(Lifecycle::is_live))
                .cloned()
                .collect();
            left.iter().for_each(|required| self.touch(required));
        }
    }

    /// The plugin whose turn it is, if another run may start now.
    fn next_to_spawn(&self) -> Option<PluginName> {
        if self.describing.len() >= self.starting_max {
            return None;
        }
        self.pending.first().map(|(_, name)| name.clone())
    }

    fn rebuild_graph(&mut self) {
        self.graph = Graph::new(self.needs());
        // Ranks are those of the graph.
        let touched = std::mem::take(&mut self.touched);
        touched.iter().for_each(|(_, name)| self.touch(name));
    }

    /// What everybody requires that is configured.
    pub(super) fn needs(&self) -> BTreeMap<PluginName, Needs> {
        let configured = self.plugins.values().filter(|plugin| !plugin.removed);
        configured.map(|plugin| (plugin.name.clone(), plugin.needs())).collect()
    }

    pub(super) fn touch(&mut self, name: &PluginName) {
        self.touched.insert((self.graph.rank(name), name.clone()));
    }

    fn touch_all(&mut self) {
        let graph = &self.graph;
        self.touched.extend(self.plugins.keys().map(|name| (graph.rank(name), name.clone())));
    }

    fn touch_dependents(&mut self, name: &PluginName) {
        let dependents = self.graph.dependents(name).into_iter();
        let dependents: Vec<PluginName> = dependents.chain(&self.replacing).cloned().collect();
        dependents.iter().for_each(|dependent| self.touch(dependent));
    }

    /// Tells who is in another state now, who is gone, and whether everything is down.
    fn announce(&mut self, now: Instant, out: &mut Vec<Action>) {
        let mut seen: Vec<PluginName> = self.seen.iter().cloned().collect();
        seen.sort_by_key(|name| self.graph.rank(name));
        for name in seen {
            let Some(plugin) = self.plugins.get_mut(&name) else { continue };
            let is_over = plugin.is_over();
            let due = plugin.deadline().filter(|_| !is_over);
            move_to(&mut self.due, &name, std::mem::replace(&mut plugin.due, due), due);
            if is_over {
                move_to(&mut self.pending, &name, plugin.turn, None);
                self.plugins.remove(&name);
                self.describing.remove(&name);
                self.replacing.remove(&name);
                out.push(Action::Forget(name));
                continue;
            }
            let state: PluginState = plugin.current_state();
            let why = plugin.gates.block.clone().filter(|_| state == PluginState::Blocked);
            let explained = std::mem::replace(&mut plugin.told, why) != plugin.told;
            if state != plugin.state {
                plugin.state = state;
                plugin.since = now;
                out.push(Action::Entered(name, state));
            } else if explained {
                out.push(Action::Explained(name));
            }
        }
        if self.leaving == Leaving::Asked && self.is_down() {
            self.leaving = Leaving::Left;
            out.push(Action::Leave);
        }
    }
}

/// Moves a plugin to another place in an order; `None` is out of it.
fn move_to<K: Ord + Copy>(
    order: &mut BTreeSet<(K, PluginName)>,
    name: &PluginName,
    from: Option<K>,
    to: Option<K>,
) {
    if from == to {
        return;
    }
    if let Some(from) = from {
        order.remove(&(from, name.clone()));
    }
    if let Some(to) = to {
        order.insert((to, name.clone()));
    }
}

fn note(set: &mut BTreeSet<PluginName>, name: &PluginName, belongs: bool) {
    if !belongs {
        set.remove(name);
    } else if !set.contains(name) {
        set.insert(name.clone());
    }
}
