//! Alternatives of which none fits, and what came of trying each.

use std::collections::HashSet;

use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use crate::mend::{Change, Draft, Fault, Note, Pins, open, outers};
use crate::splice::{Edit, text_at};

/// So many alternatives of one value are tried.
const ALTERNATIVES_MAX: usize = 64;

/// An `anyOf` or `oneOf` that a value does not fit.
pub(crate) struct Union<'e> {
    /// A JSON Pointer to the value.
    pub(crate) at: &'e str,
    /// A JSON Pointer to the keyword in the schema.
    pub(crate) keyword: &'e str,
    pub(crate) branches: usize,
    /// Branches by which nothing is there.
    removed: usize,
    removal: Vec<Note>,
    /// Values that fit.
    fitting: Vec<Tried>,
    /// Values of the right type that are wrong in something else, such as a range, or lack something.
    typed: Vec<Tried>,
}

/// A value that came of trying an alternative.
struct Tried {
    value: Value,
    text: String,
    notes: Vec<Note>,
}

impl<'e> Union<'e> {
    pub(crate) fn of(fault: &Fault<'e>) -> Option<Union<'e>> {
        let branches = fault.alternatives()?.len().min(ALTERNATIVES_MAX);
        Some(Union {
            at: fault.at,
            keyword: fault.keyword,
            branches,
            removed: 0,
            removal: Vec::new(),
            fitting: Vec::new(),
            typed: Vec::new(),
        })
    }

    /// Notes what became of the value under one alternative; `left` is what is still wrong.
    pub(crate) fn tried(
        &mut self,
        branch: usize,
        (before, after): (&Draft, &Draft),
        left: Option<&Fault<'_>>,
        pins: &Pins,
    ) {
        let new = after.notes[before.notes.len()..].iter();
        let notes = new.filter(|note| outers(&note.at).any(|outer| outer == self.at)).cloned().collect();
        let Some(text) = text_at(after.text.get(), self.at) else {
            self.removed += 1;
            self.removal = notes;
            return;
        };
        let found = match left {
            None => &mut self.fitting,
            Some(left) if is_of_the_type(left, branch, pins) => &mut self.typed,
            Some(_) => return,
        };
        let value = after.value.pointer(self.at).cloned().unwrap_or_default();
        if found.iter().all(|tried| tried.value != value) {
            found.push(Tried { value, text: text.to_owned(), notes });
        }
    }

    /// The change it comes to: only where all that was tried agrees.
    fn outcome(mut self, before: &Draft) -> Option<Change> {
        let (edit, notes) = match (self.fitting.len(), self.typed.len()) {
            (0, _) if self.removed == self.branches => (Edit::Remove, self.removal),
            (1, _) => self.fitting.pop().map(|tried| (Edit::Set(tried.text), tried.notes))?,
            (0, 1) => self.typed.pop().map(|tried| (Edit::Set(tried.text), tried.notes))?,
            _ => return None,
        };
        let same = matches!(&edit, Edit::Set(text) if text_at(before.text.get(), self.at) == Some(text));
        (!same).then(|| Change { at: self.at.to_owned(), edit, notes })
    }
}

/// Whether what is wrong by one alternative tells nothing against the type the value has now.
fn is_of_the_type(fault: &Fault<'_>, branch: usize, pins: &Pins) -> bool {
    let errors = fault.alternatives().and_then(|branches| branches.get(branch));
    let mut faults = Vec::new();
    open(errors.map(Vec::as_slice).unwrap_or_default(), pins, &mut faults);
    let beside_the_type = |fault: &Fault<'_>| {
        matches!(
            fault.kind,
            Kind::ExclusiveMaximum { .. }
                | Kind::ExclusiveMinimum { .. }
                | Kind::Format { .. }
                | Kind::MaxItems { .. }
                | Kind::MaxLength { .. }
                | Kind::MaxProperties { .. }
                | Kind::Maximum { .. }
                | Kind::MinItems { .. }
                | Kind::MinLength { .. }
                | Kind::MinProperties { .. }
                | Kind::Minimum { .. }
                | Kind::MultipleOf { .. }
                | Kind::Pattern { .. }
                | Kind::Required { .. }
                | Kind::UniqueItems
        )
    };
    !faults.is_empty() && faults.iter().all(beside_the_type)
}

/// The changes that unions come to; what is within a changed value waits for the next round.
pub(crate) fn adopted(mut unions: Vec<Union<'_>>, before: &Draft) -> Vec<Change> {
    unions.sort_by_key(|union| union.at.len());
    let mut places: HashSet<&str> = HashSet::new();
    let mut changes = Vec::new();
    for union in unions {
        let at = union.at;
        if outers(at).any(|outer| places.contains(outer)) {
            continue;
        }
        if let Some(change) = union.outcome(before) {
            places.insert(at);
            changes.push(change);
        }
    }
    changes
}
