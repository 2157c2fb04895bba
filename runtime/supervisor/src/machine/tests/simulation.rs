//! Random worlds: plugins of every temper, operators, changes of configuration, and the invariants.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;

use super::super::{
    Declared, Event, Fact, Generation, OnChange, RestartMode, Revision, Spec, Supervisor, View,
};
use super::invariants::Invariants;
use super::name;
use super::script::{plain_spec, requirements};
use super::world::{Dice, Run, World};

/// How many worlds each test lives through; more where `PLUGD_WORLDS` says so.
const WORLDS: u64 = 1000;

/// How many of its latest steps a world that failed tells.
const TOLD: usize = 60;

type Tale = Rc<RefCell<VecDeque<String>>>;

struct Simulation {
    machine: Supervisor,
    world: World,
    invariants: Invariants,
    names: Vec<PluginName>,
    revision: Revision,
    now: Instant,
    began: Instant,
    steps: usize,
    tale: Tale,
}

impl Simulation {
    fn new(seed: u64, tale: Tale) -> Simulation {
        let mut world = World::new(Dice::new(seed));
        let count = world.dice.below(6) + 1;
        let names: Vec<PluginName> = (0..count).map(|number| name(&format!("p{number}"))).collect();
        let starting_max = usize::try_from(world.dice.below(3) + 1).unwrap();
        let machine = Supervisor::new(seed).with_starting_max(starting_max);
        let invariants = Invariants::default();
        let now = Instant::now();
        let mut simulation = Simulation {
            machine,
            world,
            invariants,
            names,
            revision: Revision(0),
            now,
            began: now,
            steps: 0,
            tale,
        };
        let mut specs = Vec::new();
        for number in 0..simulation.names.len() {
            simulation.inhabit(number);
            specs.push(simulation.spec(number));
        }
        simulation.step(Event::Configured(specs));
        simulation
    }

    /// Says what a plugin is like from now on, whenever it is spawned.
    fn inhabit(&mut self, number: usize) {
        let declared = Declared {
            version: self.world.dice.pick(&["1.0.0", "2.1.0", ""]).parse().ok(),
            requires: requirements(&self.needs(number, 15)),
            priority: None,
            reload: self.world.dice.chance(50),
        };
        self.world.inhabit(&self.names[number].clone(), declared);
    }

    /// Some requirements, mostly of those with a lower number, now and then of anybody.
    fn needs(&mut self, number: usize, percent: u64) -> String {
        let dice = &mut self.world.dice;
        let mut needs = Vec::new();
        for other in 0..self.names.len() {
            if dice.chance(if other < number { percent * 2 } else { percent / 10 }) {
                let kind = dice.pick(&["", "", "", "?", "@^1", "@>=1"]);
                let on_loss = dice.pick(&["", "", "!restart", "!stop"]);
                needs.push(format!("p{other}{kind}{on_loss}"));
            }
        }
        if dice.chance(3) {
            needs.push("nobody".to_owned());
        }
        needs.join(",")
    }

    fn spec(&mut self, number: usize) -> Spec {
        let mut spec = plain_spec(self.names[number].as_str());
        spec.requires = requirements(&self.needs(number, 15));
        let dice = &mut self.world.dice;
        spec.eager = dice.chance(40);
        spec.lingers = dice.chance(20);
        spec.spare = dice.chance(30);
        spec.describe = dice.chance(30);
        spec.enabled = dice.chance(95);
        spec.priority = dice.chance(30).then(|| i32::try_from(dice.below(9)).unwrap());
        spec.restart.max = u32::try_from(dice.below(5)).unwrap();
        spec.restart.mode = match dice.below(8) {
            0 => RestartMode::Never,
            1 => RestartMode::Always,
            _ => RestartMode::OnFailure,
        };
        spec.restart.jitter = 0.2;
        spec.held = dice.chance(5);
        spec.on_change = if dice.chance(85) { OnChange::Replace } else { OnChange::Manual };
        let facets = Arc::make_mut(&mut spec.facets);
        facets.insert("command".into(), dice.below(2));
        facets.insert("config.a".into(), dice.below(3));
        spec.revision = self.next_revision();
        spec
    }

    fn next_revision(&mut self) -> Revision {
        self.revision.0 += 1;
        self.revision
    }

    /// One step of the machine between all checks.
    fn step(&mut self, event: Event) {
        self.steps += 1;
        let is_tick = matches!(event, Event::Tick);
        let end = match &event {
            Event::Fact(plugin, generation, fact @ (Fact::Exited(_) | Fact::NotSpawned { .. })) => {
                let run = (plugin.clone(), *generation);
                self.world.alive.remove(&run).map(|process| (run, process, fact.clone()))
            }
            _ => None,
        };
        self.invariants.before(self.now, &self.machine, &mut self.world, &event);
        self.tell(&format!("{event:?}"));
        let actions = self.machine.step(self.now, event);
        actions.iter().for_each(|action| self.tell(&format!("    {action:?}")));
        if let Some((run, process, fact)) = &end {
            self.invariants.ended(self.now, &self.machine, run, process, fact);
        }
        self.invariants.judge_actions(self.now, &self.machine, &self.world, &actions);
        for action in &actions {
            self.world.act(self.now, action);
        }
        self.invariants.judge(self.now, &self.machine, &self.world);
        let deadline = self.machine.deadline();
        assert!(!is_tick || deadline.is_none_or(|at| at > self.now), "a deadline in the past");
    }

    fn tell(&self, line: &str) {
        let mut tale = self.tale.borrow_mut();
        if tale.len() == TOLD {
            tale.pop_front();
        }
        tale.push_back(format!("{:?} {line}", self.now - self.began));
    }

    /// Lets time pass until something happened, at most until `until`.
    fn pass(&mut self, until: Instant) {
        let world = self.world.to_come.keys().next().map(|key| key.0);
        let deadline = self.machine.deadline();
        let next = [world, deadline].into_iter().flatten().min().unwrap_or(until).min(until);
        self.now = self.now.max(next);
        let tick_first = self.world.dice.chance(50);
        if tick_first && deadline.is_some_and(|at| at <= self.now) {
            return self.step(Event::Tick);
        }
        match self.world.happens(self.now) {
            Some((run, fact)) => {
                self.facts_of_the_dead_change_nothing(&run, &fact);
                self.step(Event::Fact(run.0, run.1, fact));
            }
            None => self.step(Event::Tick),
        }
    }

    fn facts_of_the_dead_change_nothing(&mut self, (plugin, generation): &Run, fact: &Fact) {
        let views = |machine: &Supervisor| -> Vec<_> {
            // The count of failures ages with the clock alone, which these steps carry forward.
            machine.views().map(|(name, view)| (name.clone(), View { restarts: 0, ..view })).collect()
        };
        let before = views(&self.machine);
        let any_older = self.world.dice.below(generation.0) + 1;
        for wrong in [generation.0 - 1, any_older, generation.0 + 1, generation.0 + 9] {
            let wrong = Generation(wrong);
            if self.world.alive.contains_key(&(plugin.clone(), wrong)) {
                continue;
            }
            let event = Event::Fact(plugin.clone(), wrong, fact.clone());
            assert_eq!(self.machine.step(self.now, event), [], "an action upon a fact of another run");
        }
        assert_eq!(views(&self.machine), before, "a fact of another run changed something");
    }

    fn operator(&mut self) {
        let plugin = self.world.dice.pick(&self.names);
        let event = match self.world.dice.below(24) {
            0 | 1 => Event::Start(plugin),
            2 | 3 => Event::Stop(plugin),
            4..=6 => Event::Restart(plugin),
            7..=9 => Event::Reload(plugin),
            10 | 11 => Event::Wanted(plugin),
            12 => Event::DescribeWanted(plugin),
            13 => Event::Tick,
            _ => self.reconfigure(),
        };
        self.step(event);
    }

    /// The configuration with one plugin changed, added or removed, or the same again.
    fn reconfigure(&mut self) -> Event {
        let mut specs = self.invariants.specs.clone();
        let number = usize::try_from(self.world.dice.below(self.names.len() as u64)).unwrap();
        let plugin = self.names[number].clone();
        let revision = self.next_revision();
        let dice = &mut self.world.dice;
        let facet = |spec: &mut Spec, key: &str, value: u64| {
            let before = Arc::make_mut(&mut spec.facets).insert(key.to_owned(), value);
            if before != Some(value) {
                spec.revision = revision;
            }
        };
        let (kind, value) = (dice.below(10), dice.below(3));
        let becomes_another = matches!(kind, 1..=3) && dice.chance(30);
        match (kind, specs.get_mut(&plugin)) {
            (0, _) => {}
            (1..=3, Some(spec)) => facet(spec, "command", value),
            (4 | 5, Some(spec)) => facet(spec, "config.a", value),
            (6, Some(spec)) => spec.enabled = !spec.enabled,
            (7, Some(spec)) => {
                spec.on_change = if value == 0 { OnChange::Manual } else { OnChange::Replace };
            }
            (8, _) => {
                specs.remove(&plugin);
            }
            (_, _) => {
                let spec = self.spec(number);
                specs.insert(plugin, spec);
            }
        }
        if becomes_another {
            self.inhabit(number);
        }
        Event::Configured(specs.into_values().collect())
    }

    /// Operators meddle for a while.
    fn meddle(&mut self, events: u64) {
        for _ in 0..events {
            self.operator();
            let longest = self.world.dice.pick(&[5, 500, 5000, 60_000]);
            let until = self.now + self.world.dice.millis(longest);
            while self.now < until {
                self.pass(until);
            }
        }
    }

    /// Nobody meddles for so long that everything must have come to rest.
    fn rest(&mut self) {
        let until = self.now + Duration::from_secs(3000);
        while self.now < until {
            self.pass(until);
        }
        // In case just now something is on its way again: it arrives within the longest start.
        self.invariants.judge_rest(&self.machine, &self.world);
    }

    fn leave(&mut self) {
        self.step(Event::Shutdown);
        let mut again = self.world.dice.chance(40);
        while !self.invariants.left {
            let until = self.now + self.world.dice.millis(4000);
            self.pass(until);
            if self.world.dice.chance(10) {
                self.operator();
            }
            if again && self.world.dice.chance(30) {
                again = self.world.dice.chance(30);
                self.step(Event::Shutdown);
            }
        }
        let until = self.now + Duration::from_secs(200);
        while self.now < until {
            self.pass(until);
        }
        assert!(self.world.alive.is_empty(), "a process outlived everything");
        self.step(Event::Shutdown);
    }
}

/// Lives through many worlds; a failure names the seed of the world it happened in.
fn worlds(first: u64, scenario: impl Fn(&mut Simulation)) {
    let (mut steps, mut answered, mut changed) = (0, 0, (0, 0, 0));
    let count = std::env::var("PLUGD_WORLDS").map_or(WORLDS, |count| count.parse().unwrap());
    for seed in first..first + count {
        let tale = Tale::default();
        let attempt = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut simulation = Simulation::new(seed, Rc::clone(&tale));
            scenario(&mut simulation);
            (simulation.steps, simulation.invariants)
        }));
        let Ok((taken, seen)) = attempt else {
            tale.borrow().iter().for_each(|line| eprintln!("{line}"));
            panic!("in the world of seed {seed}");
        };
        steps += taken;
        answered += seen.answered;
        changed.0 += seen.switched;
        changed.1 += seen.reconfigured;
        changed.2 += seen.taken_over;
    }
    let enough = usize::try_from(count).unwrap();
    let quiet = format!("the worlds are too quiet: {steps} {answered} {changed:?}");
    assert!(steps > 10 * enough && answered > enough, "{quiet}");
    assert!(changed.0 > enough / 10 && changed.1 > enough / 20 && changed.2 > enough / 40, "{quiet}");
}

#[test]
fn everything_comes_to_rest_when_nobody_meddles_any_more() {
    worlds(1, |simulation| {
        simulation.meddle(25);
        simulation.rest();
    });
}

#[test]
fn everything_is_down_in_time_once_told_to_leave() {
    worlds(1_000_001, |simulation| {
        simulation.meddle(15);
        simulation.leave();
    });
}
