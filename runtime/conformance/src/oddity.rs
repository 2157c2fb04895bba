//! What a plugin does beside what it was asked for, counted over all conversations with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many of each kind are shown.
const SHOWN_MAX: usize = 3;

/// A kind of what should not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Oddity {
    /// A line on stdout that is no message.
    Stray,
    /// A message with the id of a request that is no answer to it.
    BrokenAnswer,
    /// A line above the frame limit.
    TooLong,
    /// An answer with an id that nobody used.
    Unmatched,
    /// A second answer.
    Twice,
    /// An answer whose id is nearly the one asked with.
    IdChanged,
    /// A method of the plugin's own that the protocol does not know.
    UnknownMethod,
    /// A notification whose params are not of its form.
    UnreadableParams,
    /// A notification or request on behalf of a call that the plugin does not have.
    ForeignCall,
    /// A `host/call` of what it does not require.
    Undeclared,
    /// More `host/call`s or `host/ask`s at once than a host takes.
    Crowd,
    /// An error of another form.
    ErrorForm,
    /// An error that tells what belongs into a log.
    ErrorTells,
    /// Processes left when it had ended.
    LeftBehind,
    /// The same, outside of its process group.
    LeftOutside,
}

/// What must have come at all for somebody to say that nothing was odd about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Heard {
    /// A line on stdout.
    Line,
    /// An answer to a request.
    Answer,
    /// An answer that is an error.
    Error,
    /// A notification, or a request of its own.
    Telling,
    /// A `host/call`.
    HostCall,
    /// The end of a process of it.
    End,
}

/// How often one kind came, and the first of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) shown: Vec<String>,
    /// What to do about the first of them, where that is not what the scenario says.
    pub(crate) fix: Option<&'static str>,
}

/// All that was noticed; shared by all conversations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Oddities(Arc<Mutex<Noticed>>);

#[derive(Debug, Default)]
struct Noticed {
    odd: BTreeMap<Oddity, Tally>,
    heard: BTreeSet<Heard>,
}

impl Oddities {
    /// Notes one; what is shown of it is made only if it is among the first.
    pub(crate) fn note(&self, kind: Oddity, shown: impl FnOnce() -> String) {
        self.note_with(kind, None, shown);
    }

    /// The same, with what to do about it.
    pub(crate) fn note_with(&self, kind: Oddity, fix: Option<&'static str>, shown: impl FnOnce() -> String) {
        let mut noticed = self.noticed();
        let tally = noticed.odd.entry(kind).or_default();
        tally.count += 1;
        tally.fix = tally.fix.or(fix);
        if tally.shown.len() < SHOWN_MAX {
            let shown = shown();
            if !tally.shown.contains(&shown) {
                tally.shown.push(shown);
            }
        }
    }

    /// What came of that kind, if any.
    pub(crate) fn of(&self, kind: Oddity) -> Option<Tally> {
        self.noticed().odd.get(&kind).cloned()
    }

    /// Notes that something came, odd or not.
    pub(crate) fn hear(&self, what: Heard) {
        self.noticed().heard.insert(what);
    }

    /// Whether it ever came.
    pub(crate) fn has_heard(&self, what: Heard) -> bool {
        self.noticed().heard.contains(&what)
    }

    fn noticed(&self) -> MutexGuard<'_, Noticed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
