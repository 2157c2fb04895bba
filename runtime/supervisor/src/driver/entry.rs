//! What the driver keeps of a plugin beside the machine, and how both together look from outside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plugd_protocol::PluginName;
use plugd_protocol::control::PluginState;
use tokio::sync::mpsc;

use super::door::{Availability, Door, RunDoor};
use super::exit::ExitRecord;
use super::plugins::{PluginView, RunSettings};
use super::setup::Command;
use crate::machine::{Generation, Revision, View};

/// The ends of so many runs are kept.
const EXITS_KEPT: usize = 5;

pub(super) struct Entry {
    /// What is configured, by revision: the latest, and those that runs still use.
    pub(super) settings: BTreeMap<Revision, Arc<RunSettings>>,
    pub(super) door: Arc<Door>,
    pub(super) runs: BTreeMap<Generation, ActiveRun>,
    /// How its latest runs ended, oldest first.
    exits: VecDeque<ExitRecord>,
    /// Runs that have ended, and of which something may be left.
    pub(super) burying: BTreeSet<Generation>,
    pub(super) describe_took: Option<Duration>,
    pub(super) init_took: Option<Duration>,
    pub(super) described: bool,
    /// It was told that the latest change is not in use.
    pub(super) refused: bool,
}

/// A run as the control task knows it.
pub(super) struct ActiveRun {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) door: Arc<RunDoor>,
    pub(super) described: bool,
    /// It was sent `init`.
    pub(super) initialised: bool,
}

impl Entry {
    /// A plugin that has no run yet.
    pub(super) fn new(plugin: &PluginName, settings: &RunSettings, described: bool) -> Entry {
        Entry {
            settings: BTreeMap::new(),
            door: Arc::new(Door::new(plugin.clone(), settings.live.queue_length)),
            runs: BTreeMap::new(),
            exits: VecDeque::new(),
            burying: BTreeSet::new(),
            describe_took: None,
            init_took: None,
            described,
            refused: false,
        }
    }

    /// Takes up settings; the same as the latest keep their revision, others get the given one.
    pub(super) fn revise(&mut self, settings: RunSettings, next: Revision) -> Revision {
        if let Some((revision, latest)) = self.settings.last_key_value()
            && **latest == settings
        {
            return *revision;
        }
        self.door.set_queue_length(settings.live.queue_length);
        for run in self.runs.values() {
            // A run that has just ended needs no settings.
            let _gone = run.commands.try_send(Command::Live(Box::new(settings.live)));
        }
        self.settings.insert(next, Arc::new(settings));
        next
    }

    /// Lets go of settings that nothing uses any more; the latest stay.
    pub(super) fn keep(&mut self, used: impl Iterator<Item = Revision>) {
        let latest = self.settings.last_key_value().map(|(revision, _)| *revision);
        let used: Vec<Revision> = used.chain(latest).collect();
        self.settings.retain(|revision, _| used.contains(revision));
    }

    /// Takes note of how a run ended; one on its way to take over is missed by nobody.
    pub(super) fn ended(&mut self, generation: Generation, exit: Option<ExitRecord>, candidate: bool) {
        let run = self.runs.remove(&generation);
        self.burying.insert(generation);
        // That a process ended which only was to be described says nothing about the plugin.
        let told = run.is_none_or(|run| run.initialised || !run.described);
        if let Some(mut exit) = exit.filter(|_| told) {
            exit.unasked &= !candidate;
            if self.exits.len() == EXITS_KEPT {
                self.exits.pop_front();
            }
            self.exits.push_back(exit);
        }
    }

    /// How it is, from what the machine knows and what is kept here.
    pub(super) fn view(&self, plugin: &PluginName, view: View) -> PluginView {
        let run = self.runs.get(&view.generation).map(|run| &run.door);
        let count = |counter: fn(&RunDoor) -> u64| run.map_or(0, |run| counter(run));
        let narrow = |wide: u64| u32::try_from(wide).unwrap_or(u32::MAX);
        let (enforced, not_enforced) = run.map(|run| run.enforced()).unwrap_or_default();
        PluginView {
            name: plugin.clone(),
            reason: self.reason(&view, ExitRecord::last_words),
            reason_for_callers: self.reason(&view, ExitRecord::words_for_callers),
            exits: self.exits.iter().cloned().collect(),
            describe_took: self.describe_took,
            init_took: self.init_took,
            concurrency: narrow(count(|run| u64::from(run.concurrency.load(Ordering::Relaxed)))).max(1),
            in_flight: narrow(count(|run| u64::from(run.in_flight.load(Ordering::Relaxed)))),
            queued: self.door.waiting(),
            stray_lines: count(|run| run.stray_lines.load(Ordering::Relaxed)),
            unmatched_answers: count(|run| run.unmatched_answers.load(Ordering::Relaxed)),
            enforced,
            not_enforced,
            view,
        }
    }

    /// Whether calls can be handed over, as things are.
    pub(super) fn availability(&self, view: &PluginView) -> Availability {
        let run = self.runs.get(&view.view.generation).filter(|_| view.view.accepts_calls);
        match run {
            Some(run) => Availability::Open(Arc::clone(&run.door)),
            None if view.view.waits => {
                Availability::Wait { state: view.view.state, reason: view.reason_for_callers.clone() }
            }
            None => {
                let now = || (view.view.state, view.reason_for_callers.clone());
                let (state, reason) = view.view.heading.clone().unwrap_or_else(now);
                Availability::Shut { state, reason }
            }
        }
    }

    /// The machine's reason, with the last words of the run that it is about.
    fn reason(&self, view: &View, last_words: fn(&ExitRecord) -> String) -> Option<String> {
        let reason = view.reason.clone()?;
        if !matches!(view.state, PluginState::Backoff | PluginState::Failed) {
            return Some(reason);
        }
        let last = self.exits.back().filter(|last| last.generation == view.generation);
        let Some(last) = last else { return Some(reason) };
        let words = match (last_words(last), &last.first_stray) {
            (said, Some(line)) if said.is_empty() && !self.described => {
                format!("; not a plugin? first line on stdout: {line}")
            }
            (said, _) => said,
        };
        Some(reason + &words)
    }
}
