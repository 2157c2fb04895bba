//! A small language for scripts: on each line an event, and behind `|` what must follow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plugd_protocol::PluginName;
use plugd_protocol::control::RestartRequired;
use plugd_protocol::manifest::{OnLoss, Requirement};

use super::super::{
    Action, Clocks, Declared, Event, Exit, Fact, Generation, OnChange, RestartMode, RestartPolicy, Revision,
    Spec, Supervisor, View,
};
use super::{legal, name};

/// Plays the events of a script against plugins and compares what follows with what it says.
///
/// ```text
/// +1500ms  next  shutdown                        time passes; to the next deadline; leave
/// start a  stop a  restart a  reload a           the operator
/// want a  describe a  config a eager; b          callers; another configuration
/// a described 1.2.0 needs=b,c? reload            facts of its run; a#1 for that of another one
/// ? a  revisions a                               how it is, and why; the settings it needs
/// ```
///
/// What must follow: `spawn a#2@3` (with revision 3), `switch a#1>a#2`, `a:ready` and so on.
pub(super) fn check(plugins: &str, script: &str) {
    check_with(Supervisor::new(1), plugins, script);
}

/// The same with a supervisor that is set up otherwise.
pub(super) fn check_with(machine: Supervisor, plugins: &str, script: &str) {
    let mut stage = Stage { machine, now: Instant::now(), states: BTreeMap::new() };
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let (mut expected, mut got) = (String::new(), String::new());
    let first = format!("config {plugins}");
    stage.play(&first);
    for line in lines {
        let event = line.split('|').next().unwrap().trim();
        let said = line.split_once('|').map_or("", |(_, said)| said.trim());
        expected.push_str(&format!("{event} | {said}\n"));
        got.push_str(&format!("{event} | {}\n", stage.play(event)));
    }
    assert!(got == expected, "expected:\n{expected}\ngot:\n{got}");
}

struct Stage {
    machine: Supervisor,
    now: Instant,
    states: BTreeMap<PluginName, plugd_protocol::control::PluginState>,
}

impl Stage {
    fn play(&mut self, text: &str) -> String {
        let before = self.now;
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        let event = match first {
            "?" => return describe(&self.machine.view(&name(rest)).unwrap()),
            "revisions" => return revisions(&self.machine, &name(rest)),
            "config" => Event::Configured(specs(rest)),
            "start" => Event::Start(name(rest)),
            "stop" => Event::Stop(name(rest)),
            "restart" => Event::Restart(name(rest)),
            "reload" => Event::Reload(name(rest)),
            "want" => Event::Wanted(name(rest)),
            "describe" => Event::DescribeWanted(name(rest)),
            "shutdown" => Event::Shutdown,
            "next" => {
                self.now = self.machine.deadline().unwrap();
                Event::Tick
            }
            _ if first.starts_with('+') => {
                self.now += duration(&first[1..]);
                Event::Tick
            }
            plugin => self.fact(plugin, rest),
        };
        let actions = self.machine.step(self.now, event);
        for action in &actions {
            if let Action::Entered(plugin, state) = action {
                let from = self.states.insert(plugin.clone(), *state);
                let from = from.unwrap_or(plugd_protocol::control::PluginState::Registered);
                assert!(legal(from, *state), "{text}: {plugin} went from {from:?} to {state:?}");
            }
        }
        let mut words: Vec<String> = actions.iter().map(action).collect();
        if first == "next" {
            words.insert(0, format!("{}s:", (self.now - before).as_secs_f64()));
        }
        words.join(" ")
    }

    fn fact(&self, plugin: &str, text: &str) -> Event {
        let (plugin, generation) = match plugin.split_once('#') {
            Some((plugin, run)) => (name(plugin), Generation(run.parse().unwrap())),
            None => (name(plugin), self.machine.view(&name(plugin)).unwrap().generation),
        };
        let (what, rest) = text.split_once(' ').unwrap_or((text, ""));
        let reason = rest.to_owned();
        let fact = match what {
            "spawned" => Fact::Spawned { pid: 7 },
            "unspawned" => Fact::NotSpawned { passing: reason.starts_with("short of"), reason },
            "described" => Fact::Described(declared(rest)),
            "undescribed" => Fact::DescribeRefused { reason },
            "initialised" => Fact::Initialised,
            "uninitialised" => Fact::InitRefused { reason },
            "progressed" => Fact::Progressed,
            "reconfigured" => Fact::Reconfigured,
            "unreconfigured" => Fact::ReconfigureRefused { reason },
            "idle" => Fact::Idle,
            "misbehaved" => Fact::Misbehaved { reason },
            "drained" => Fact::Drained,
            "answered" => Fact::ShutdownAnswered,
            "exited" => Fact::Exited(Exit::Code(rest.parse().unwrap())),
            "killed" => Fact::Exited(Exit::Signal(rest.parse().unwrap())),
            other => panic!("no such fact: {other}"),
        };
        Event::Fact(plugin, generation, fact)
    }
}

/// Plugins as in `a eager needs=b,c?,d@^2; b prio=3 max=2 mode=never; c print=2 config.x=1 rev=4`.
pub(super) fn specs(text: &str) -> Vec<Spec> {
    text.split(';').map(str::trim).filter(|text| !text.is_empty()).map(spec).collect()
}

fn spec(text: &str) -> Spec {
    let mut words = text.split_whitespace();
    let mut spec = plain_spec(words.next().unwrap());
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("eager", _) => spec.eager = true,
            ("describe", _) => spec.describe = true,
            ("lingers", _) => spec.lingers = true,
            ("spare", _) => spec.spare = true,
            ("disabled", _) => spec.enabled = false,
            ("prio", value) => spec.priority = Some(value.parse().unwrap()),
            ("max", value) => spec.restart.max = value.parse().unwrap(),
            ("held", _) => spec.held = true,
            ("manual", _) => spec.on_change = OnChange::Manual,
            ("rev", value) => spec.revision = Revision(value.parse().unwrap()),
            ("init_max", value) => spec.clocks.init_max = Duration::from_secs(value.parse().unwrap()),
            ("print", value) => facet(&mut spec, "command", value),
            (key, value) if key.starts_with("config.") => facet(&mut spec, key, value),
            ("mode", "never") => spec.restart.mode = RestartMode::Never,
            ("mode", "always") => spec.restart.mode = RestartMode::Always,
            ("known", value) => spec.declared = Some(declared(value)),
            ("needs", value) => spec.requires = requirements(value),
            (other, _) => panic!("no such setting: {other}"),
        }
    }
    spec
}

fn facet(spec: &mut Spec, key: &str, value: &str) {
    Arc::make_mut(&mut spec.facets).insert(key.to_owned(), value.parse().unwrap());
}

/// A lazy plugin with all defaults, and no jitter.
pub(super) fn plain_spec(plugin: &str) -> Spec {
    Spec {
        name: name(plugin),
        enabled: true,
        held: false,
        overruled: false,
        eager: false,
        describe: false,
        lingers: false,
        spare: false,
        priority: None,
        requires: BTreeMap::new(),
        declared: None,
        restart: RestartPolicy { jitter: 0.0, ..RestartPolicy::default() },
        clocks: Clocks::default(),
        on_change: OnChange::Replace,
        facets: Arc::default(),
        revision: Revision(0),
    }
}

fn declared(text: &str) -> Declared {
    let mut declared = Declared::default();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some(("needs", value)) => declared.requires = requirements(value),
            Some(("prio", value)) => declared.priority = Some(value.parse().unwrap()),
            Some((other, _)) => panic!("no such declaration: {other}"),
            None if word == "reload" => declared.reload = true,
            None => declared.version = Some(word.parse().unwrap()),
        }
    }
    declared
}

/// Requirements as in `b,c?,d@^2,e!restart`.
pub(super) fn requirements(text: &str) -> BTreeMap<PluginName, Requirement> {
    let one = |text: &str| {
        let (text, on_loss) = match text.split_once('!') {
            Some((text, "restart")) => (text, OnLoss::Restart),
            Some((text, "stop")) => (text, OnLoss::Stop),
            Some((_, other)) => panic!("no such on_loss: {other}"),
            None => (text, OnLoss::Stay),
        };
        let optional = text.ends_with('?');
        let (plugin, version) =
            text.trim_end_matches('?').split_once('@').unwrap_or((text.trim_end_matches('?'), "*"));
        (name(plugin), Requirement { version: version.parse().unwrap(), optional, on_loss })
    };
    text.split(',').filter(|text| !text.is_empty()).map(one).collect()
}

fn duration(text: &str) -> Duration {
    match text.strip_suffix("ms") {
        Some(millis) => Duration::from_millis(millis.parse().unwrap()),
        None => Duration::from_secs(text.strip_suffix('s').unwrap().parse().unwrap()),
    }
}

fn action(action: &Action) -> String {
    match action {
        Action::Spawn(plugin, run, revision) => format!("spawn {plugin}#{}{}", run.0, at(*revision)),
        Action::Reconfigure(plugin, run, revision) => {
            format!("reconfigure {plugin}#{}{}", run.0, at(*revision))
        }
        Action::Switch { plugin, from, to } => format!("switch {plugin}#{}>{plugin}#{}", from.0, to.0),
        Action::TakeOver { plugin, from, to } => format!("takeover {plugin}#{}>{plugin}#{}", from.0, to.0),
        Action::SpareFailed(plugin, run, _) => format!("unspared {plugin}#{}", run.0),
        Action::SpareReady(plugin, run) => format!("spare {plugin}#{}", run.0),
        Action::Init(plugin, run) => format!("init {plugin}#{}", run.0),
        Action::Drain(plugin, run) => format!("drain {plugin}#{}", run.0),
        Action::AskToLeave(plugin, run, reason, grace) => {
            format!("ask {plugin}#{} {} {}s", run.0, reason.as_str(), grace.as_secs())
        }
        Action::CloseStdin(plugin, run) => format!("close {plugin}#{}", run.0),
        Action::Terminate(plugin, run) => format!("term {plugin}#{}", run.0),
        Action::Kill(plugin, run) => format!("kill {plugin}#{}", run.0),
        Action::Abandon(plugin, run) => format!("abandon {plugin}#{}", run.0),
        Action::Entered(plugin, state) => format!("{plugin}:{}", format!("{state:?}").to_lowercase()),
        Action::Explained(plugin) => format!("{plugin}:explained"),
        Action::Forget(plugin) => format!("forget {plugin}"),
        Action::Leave => "leave".to_owned(),
    }
}

fn at(revision: Revision) -> String {
    if revision == Revision(0) { String::new() } else { format!("@{}", revision.0) }
}

fn revisions(machine: &Supervisor, plugin: &PluginName) -> String {
    let mut revisions: Vec<u64> =
        machine.plugin(plugin).unwrap().revisions().map(|revision| revision.0).collect();
    revisions.sort_unstable();
    revisions.dedup();
    format!("{revisions:?}")
}

/// State, reason, what it waits for, and what a call and the operator's waiters would be told.
fn describe(view: &View) -> String {
    let mut text = format!("{:?}", view.state).to_lowercase();
    if let Some(reason) = &view.reason {
        text.push_str(&format!(" ({reason})"));
    }
    if let Some((next, reason)) = &view.heading {
        text.push_str(&format!(" -> {}", format!("{next:?}").to_lowercase()));
        if reason != &view.reason {
            text.push_str(&format!(" ({})", reason.as_deref().unwrap_or_default()));
        }
    }
    if !view.waits_for.is_empty() {
        let names: Vec<&str> = view.waits_for.iter().map(PluginName::as_str).collect();
        text.push_str(&format!(" for {}", names.join(",")));
    }
    let flags = [
        (view.accepts_calls, "accepts"),
        (view.waits, "waits"),
        (view.settled_start, "started"),
        (view.settled_stop, "down"),
    ];
    for (_, word) in flags.iter().filter(|(set, _)| *set) {
        text.push_str(&format!(" {word}"));
    }
    if let Some(generation) = view.replacing {
        text.push_str(&format!(" replacing by #{}", generation.0));
    }
    if let Some(spare) = &view.spare {
        let run = spare.generation.map_or_else(|| "none".to_owned(), |run| format!("#{}", run.0));
        text.push_str(&format!(" spare {run}{}", if spare.ready { " ready" } else { "" }));
        if let Some(failure) = &spare.failure {
            text.push_str(&format!(" ({failure})"));
        }
    }
    if !view.settled_change {
        text.push_str(" changing");
    }
    if let Some(RestartRequired { changed, reason }) = &view.restart_required {
        text.push_str(&format!(" marked {} ({reason})", changed.join(",")));
    }
    if let Some(stop) = view.last_stop {
        text.push_str(&format!(" {:?}#{} in {}s", stop.ended, stop.generation.0, stop.took.as_secs_f64()));
    }
    text
}

/// How `a` becomes ready.
pub(super) const UP: &str = "want a | spawn a#1 a:starting
    a spawned |
    a described |  init a#1
    a initialised | a:ready\n";

/// Plays a script that begins when `a` is ready.
pub(super) fn check_up(plugins: &str, script: &str) {
    check(plugins, &format!("{UP}{script}"));
}
