//! What is done about a change of what a plugin's process is made from.
//!
//! What is configured (`spec`) and what the runs use (`applied`) are two things while one serves:
//!
//! ```text
//! it is ready, and           on_change = replace                       manual
//! nothing differs            nothing, or a candidate is stopped        nothing
//! a reload is asked for      a candidate                               nothing
//! only config.* differs      in place if it can, else a candidate      marked
//! anything else differs      a candidate                               marked
//!
//! a reload in place   answered: applied          refused, late, died of: marked
//! a candidate         initialised: switched      anything else:          marked
//! ```
//!
//! Where nothing serves there is nothing to keep: a change is applied at once, and a run on its way
//! up is begun anew. An operator's stop, start or restart applies what is configured, too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use plugd_protocol::control::{PluginState, RestartRequired};

use super::lifecycle::{Hold, Lifecycle};
use super::replacing::Candidate;
use super::run::{Failure, Phase, later, seconds};
use super::{Action, OnChange, Revision, Spec, StopReason};

/// Keys of facets that begin so can change without another process.
const IN_PLACE: &str = "config.";

const MANUAL: &str = RestartRequired::MANUAL;
const UNSURE: &str = "an earlier reload was not answered";

/// What runs are made from.
#[derive(Debug, Clone)]
pub(super) struct Applied {
    pub(super) revision: Revision,
    pub(super) facets: Arc<BTreeMap<String, u64>>,
}

/// What is being done, while a run serves, about what differs from what it was made from.
#[derive(Debug, Default)]
pub(super) enum Change {
    /// There is nothing to do.
    #[default]
    None,
    /// A candidate waits for its turn to be spawned.
    Due,
    /// A second run is on its way to take over.
    Replacing(Box<Candidate>),
    /// The run was sent `reload` and has not answered yet.
    Reconfiguring { target: Applied, until: Instant },
    /// It was not taken up: runs go on with what they had.
    Refused { reason: String },
}

impl Applied {
    pub(super) fn of(spec: &Spec) -> Applied {
        Applied { revision: spec.revision, facets: Arc::clone(&spec.facets) }
    }

    /// Follows another revision of the same.
    fn follow(&mut self, spec: &Spec) {
        if self.facets == spec.facets {
            *self = Applied::of(spec);
        }
    }
}

impl Lifecycle {
    /// Takes another configuration; what can be done with the run it has, is.
    pub(super) fn configure(&mut self, now: Instant, spec: Spec, out: &mut Vec<Action>) {
        let before = std::mem::replace(&mut self.spec, spec);
        let back = std::mem::take(&mut self.removed);
        let declared = self.spec.declared.clone();
        if back {
            self.held = self.spec.held;
        } else if same(&before, &self.spec) {
            self.declared = self.declared.take().or(declared);
            return;
        }
        let made_anew = before.facets != self.spec.facets;
        let serves = self.is_ready();
        if serves && !self.spec.enabled {
            self.end_asked_for(now, StopReason::Stop, out);
            self.apply();
        } else if serves && (made_anew || before.on_change != self.spec.on_change) {
            self.catch_up(now, false, out);
        } else if !serves && (back || made_anew) && (self.run.is_some() || self.is_held_back()) {
            self.take_up_anew(now, out);
        } else if !serves && made_anew {
            self.apply();
        } else if self.is_down() && !same(&Spec { on_change: self.spec.on_change, ..before }, &self.spec) {
            // How changes are taken up is no reason to try again what refused.
            self.hold = Hold::Nothing;
            self.history.take_up();
        }
        self.keep_pace();
        if self.run.is_none() && (declared.is_some() || self.declared.is_none()) {
            self.described &= declared.is_none();
            self.declared = declared;
        }
    }

    /// It is to be taken up anew, whether anything changed or not; its failures still count.
    pub(super) fn reload(&mut self, now: Instant, out: &mut Vec<Action>) {
        if self.is_ready() {
            self.catch_up(now, true, out);
        } else {
            self.take_up_anew(now, out);
        }
    }

    /// Begins anew what does not serve.
    fn take_up_anew(&mut self, now: Instant, out: &mut Vec<Action>) {
        self.hold = Hold::Nothing;
        self.history.take_up();
        self.apply();
        match self.run.as_ref().map(|run| &run.phase) {
            None => {
                self.declared = None;
                self.described = true;
            }
            Some(Phase::Initialising { .. }) => {
                self.stale = true;
                self.up |= !self.held;
            }
            Some(Phase::Describing { .. } | Phase::Parked | Phase::Ready { .. } | Phase::Stopping(_)) => {
                self.stale = true
            }
        }
        let reason = if self.spec.enabled { StopReason::Reload } else { StopReason::Stop };
        self.end_asked_for(now, reason, out);
    }

    /// Begins what the table above says about a run that serves; a candidate that will do goes on.
    fn catch_up(&mut self, now: Instant, asked: bool, out: &mut Vec<Action>) {
        if matches!(self.change, Change::Reconfiguring { .. }) {
            // One at a time: its end comes here again.
            return;
        }
        let unsure = self.run.as_ref().is_some_and(|run| run.unsure);
        let differing = self.differing();
        let manual = self.spec.on_change == OnChange::Manual;
        // Where nothing differs, whoever asks means what no facet shows, such as an imported file.
        let in_place = self.declared.as_ref().is_some_and(|declared| declared.reload)
            && (unsure || !differing.is_empty())
            && differing.iter().all(|key| key.starts_with(IN_PLACE));
        if differing.is_empty() && !unsure && (manual || !asked) {
            self.withdraw_candidate(now, StopReason::Reload, out);
            self.apply();
        } else if manual {
            self.withdraw_candidate(now, StopReason::Reload, out);
            let reason = if differing.is_empty() { UNSURE } else { MANUAL };
            self.change = Change::Refused { reason: reason.to_owned() };
        } else if in_place {
            self.withdraw_candidate(now, StopReason::Reload, out);
            let run = self.latest;
            out.push(Action::Reconfigure(self.name.clone(), run, self.spec.revision));
            let until = later(now, self.spec.clocks.init);
            self.change = Change::Reconfiguring { target: Applied::of(&self.spec), until };
        } else if self.candidate().is_none_or(|it| it.target.facets != self.spec.facets) {
            self.withdraw_candidate(now, StopReason::Reload, out);
            self.up |= !self.held;
            self.change = Change::Due;
        }
    }

    /// It took up another configuration in place, which may not be the latest any more.
    pub(super) fn reconfigured(&mut self, now: Instant, out: &mut Vec<Action>) {
        let Some(target) = self.take_reconfiguring() else { return };
        self.applied = target;
        self.run.iter_mut().for_each(|run| run.unsure = false);
        self.catch_up(now, false, out);
    }

    /// It goes on with the configuration it had, unless there is another one by now.
    pub(super) fn reconfigure_refused(&mut self, now: Instant, reason: String, out: &mut Vec<Action>) {
        let Some(target) = self.take_reconfiguring() else { return };
        if target.facets == self.spec.facets {
            self.change = Change::Refused { reason };
        } else {
            self.catch_up(now, false, out);
        }
    }

    fn take_reconfiguring(&mut self) -> Option<Applied> {
        match std::mem::take(&mut self.change) {
            Change::Reconfiguring { target, .. } => Some(target),
            other @ (Change::None | Change::Due | Change::Replacing(_) | Change::Refused { .. }) => {
                self.change = other;
                None
            }
        }
    }

    /// Gives up a reload in place that was not answered in its time.
    pub(super) fn tick_reconfiguring(&mut self, now: Instant, out: &mut Vec<Action>) {
        if matches!(self.change, Change::Reconfiguring { until, .. } if until <= now) {
            let reason = format!("no answer to reload in {}", seconds(self.spec.clocks.init));
            self.run.iter_mut().for_each(|run| run.unsure = true);
            self.reconfigure_refused(now, reason, out);
        }
    }

    /// Makes what is configured what its runs use; a candidate must be withdrawn before.
    pub(super) fn apply(&mut self) {
        let same = self.applied.facets == self.spec.facets;
        // What its manifest says is that of another program: at once, or when its run has ended.
        if !same && self.run.is_some() {
            self.stale = true;
        } else if !same {
            self.declared = self.spec.declared.clone();
        }
        self.applied = Applied::of(&self.spec);
        self.change = Change::None;
    }

    /// Its run stops: there is nothing to keep, so that the next one uses what is configured.
    ///
    /// What was refused before stays so.
    pub(super) fn end_change(&mut self, now: Instant, reason: StopReason, out: &mut Vec<Action>) {
        self.withdraw_candidate(now, reason, out);
        match self.change {
            Change::None | Change::Refused { .. } => {}
            Change::Due | Change::Replacing(_) | Change::Reconfiguring { .. } => self.apply(),
        }
    }

    /// Its run fails while something is done about a change, and nothing takes its place.
    ///
    /// What it was to take up in place may be what it failed of; what is still due is used next.
    pub(super) fn end_change_by_failure(&mut self, failure: &Failure) {
        match self.change {
            Change::None | Change::Replacing(_) | Change::Refused { .. } => {}
            Change::Due => self.apply(),
            Change::Reconfiguring { .. } => {
                let reason = format!("it failed during the reload: {}", failure.reason);
                self.change = Change::Refused { reason };
            }
        }
    }

    /// Its run ended: what is marked without a difference was about that run alone.
    pub(super) fn end_mark(&mut self) {
        if matches!(self.change, Change::Refused { .. }) && self.applied.facets == self.spec.facets {
            self.change = Change::None;
        }
    }

    /// Settings that make the same process are followed by whatever uses them.
    fn keep_pace(&mut self) {
        self.applied.follow(&self.spec);
        self.spare_keeps_pace();
        match &mut self.change {
            Change::Replacing(candidate) => candidate.target.follow(&self.spec),
            Change::None | Change::Due | Change::Reconfiguring { .. } | Change::Refused { .. } => {}
        }
    }

    /// Whether something is being done about a change.
    pub(super) fn is_changing(&self) -> bool {
        match self.change {
            Change::Due | Change::Replacing(_) | Change::Reconfiguring { .. } => true,
            Change::None | Change::Refused { .. } => false,
        }
    }

    /// What of its configuration its runs do not use, and why, where nothing is done about it.
    pub(super) fn restart_required(&self) -> Option<RestartRequired> {
        match &self.change {
            Change::Refused { reason } => {
                Some(RestartRequired { changed: self.differing(), reason: reason.clone() })
            }
            Change::None | Change::Due | Change::Replacing(_) | Change::Reconfiguring { .. } => None,
        }
    }

    /// Why a change was tried and is not in use; `None` also where nobody was to try.
    pub fn refusal(&self) -> Option<&str> {
        match &self.change {
            Change::Refused { reason } if reason != MANUAL && reason != UNSURE => Some(reason),
            Change::None
            | Change::Due
            | Change::Replacing(_)
            | Change::Reconfiguring { .. }
            | Change::Refused { .. } => None,
        }
    }

    /// The settings that its runs use or its next ones will.
    pub fn revisions(&self) -> impl Iterator<Item = Revision> {
        let under_way = match &self.change {
            Change::Replacing(candidate) => Some(candidate.target.revision),
            Change::Reconfiguring { target, .. } => Some(target.revision),
            Change::None | Change::Due | Change::Refused { .. } => None,
        };
        let spare = self.spare_made_of().map(|made_of| made_of.revision);
        [self.applied.revision, self.spec.revision].into_iter().chain(under_way).chain(spare)
    }

    /// The keys of what is configured otherwise than what its runs use, sorted.
    fn differing(&self) -> Vec<String> {
        let (old, new) = (&self.applied.facets, &self.spec.facets);
        let mut keys: Vec<String> = old
            .iter()
            .filter(|(key, hash)| new.get(*key) != Some(hash))
            .map(|(key, _)| key.clone())
            .collect();
        keys.extend(new.keys().filter(|key| !old.contains_key(*key)).cloned());
        keys.sort();
        keys
    }

    /// Whether something is held against it, or it waits out a failure.
    fn is_held_back(&self) -> bool {
        self.is_down() || matches!(self.hold, Hold::Backoff { .. })
    }

    /// Whether something keeps it down that another configuration may have ended.
    fn is_down(&self) -> bool {
        match self.state {
            PluginState::Disabled | PluginState::Failed | PluginState::Blocked => true,
            PluginState::Registered
            | PluginState::Starting
            | PluginState::Ready
            | PluginState::Busy
            | PluginState::Idle
            | PluginState::Backoff
            | PluginState::Stopping
            | PluginState::Stopped => false,
        }
    }
}

/// Whether a configuration says the same as before, as far as it is what counts.
///
/// What is known without running it may have been learnt from running it, and whether an operator
/// stopped it is told by events.
fn same(before: &Spec, now: &Spec) -> bool {
    Spec { declared: before.declared.clone(), held: before.held, ..now.clone() } == *before
}
