//! Arguments made ready for a call: mended, defaults filled in, checked, and what is missing named.

use std::collections::HashMap;

use jsonschema::ValidationError;
use plugd_protocol::error::ArgumentProblem;
use plugd_protocol::plugin::Question;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::contract::Contract;
use crate::cost::{self, Bearable};
use crate::document::Document;
use crate::mend::{Draft, Note, Said, faults, mended};
use crate::nearest::nearest;
use crate::questions::{self, Want, name_of};
use crate::{coerce, numbers};

/// So many changes are noted; arguments may be long lists.
const NOTES_MAX: usize = 100;

/// What became of some arguments.
#[derive(Debug)]
pub enum Prepared {
    /// They run as they are: nothing had to be changed.
    Fits,
    /// They run as `arguments`.
    Ready {
        /// Brought to their declared types, defaults filled in; what needed no change is as it was given.
        arguments: Box<RawValue>,
        /// A line for each value that was changed for its declared type.
        notes: Vec<String>,
    },
    /// Nothing is wrong, but values are missing.
    Missing {
        /// What is known so far, to be completed by [`Contract::answer`].
        known: Box<RawValue>,
        /// A line for each value that was changed for its declared type.
        notes: Vec<String>,
        /// At most five; where one of several values is enough, there is a question for each.
        questions: Vec<Question>,
        /// All of the questions in one sentence.
        prompt: String,
    },
    /// They cannot run: every problem at once, missing values included.
    Wrong(Vec<ArgumentProblem>),
}

impl Contract {
    /// Makes arguments ready for a call; `null` counts as none.
    ///
    /// Texts become what is declared instead of a text, where that is clear and loses nothing;
    /// defaults are filled in; values out of range are problems, and never questions.
    pub fn prepare(&self, given: &RawValue) -> Prepared {
        let value = match numbers::parse(given) {
            Ok(Value::Object(members)) => Value::Object(members),
            Ok(Value::Null) => return self.prepared_from_nothing(),
            Ok(_) | Err(_) => return Prepared::Wrong(self.check(given).err().unwrap_or_default()),
        };
        let fits = self.admits(&value);
        if fits && !self.defaults.deeper {
            let lacking = self.defaults.lacking(&value);
            let lacking: Vec<(String, String)> =
                lacking.map(|(name, text)| (pointer_to(name), text.to_owned())).collect();
            if lacking.is_empty() {
                return Prepared::Fits;
            }
            let filled = Draft::new(given.to_owned(), value.clone()).with_set(lacking);
            if let Some(Draft { text, .. }) = filled.filter(|filled| self.admits(&filled.value)) {
                return Prepared::Ready { arguments: text, notes: Vec::new() };
            }
        }
        let draft = mended(self, Draft::new(given.to_owned(), value));
        if draft.text.get() == given.get() && fits {
            return Prepared::Fits;
        }
        self.settled(draft)
    }

    /// Completes arguments by answers to the questions asked for them, and prepares them anew.
    ///
    /// Answers go by the questions' names and need not be complete: what is left out is asked for
    /// again, as are the next values where more than five are missing. Only what is missing can be
    /// answered. Arguments that are complete are [`Prepared::Ready`], never [`Prepared::Fits`].
    pub fn answer(&self, known: &RawValue, answers: &Map<String, Value>) -> Prepared {
        let value = match numbers::parse(known) {
            Ok(Value::Object(members)) => Value::Object(members),
            Ok(_) | Err(_) => return Prepared::Wrong(self.check(known).err().unwrap_or_default()),
        };
        let draft = mended(self, Draft::new(known.to_owned(), value));
        let document = Document::new(&self.schema);
        let wants = self.missing(&draft, &document).unwrap_or_default();
        // Whether the name of a value that is missing is one of several that would do.
        let mut open: HashMap<&str, bool> = HashMap::new();
        for want in &wants {
            let is_choice = matches!(want, Want::OneOf(_));
            open.extend(want.values().map(|value| (value.at.as_str(), is_choice)));
        }
        let mut problems = Vec::new();
        let mut set = Vec::new();
        for (name, answer) in answers {
            let at = if name.starts_with('/') { name.clone() } else { format!("/{name}") };
            let is_blank = answer.as_str().is_some_and(|text| text.trim().is_empty());
            match open.get(at.as_str()) {
                Some(true) if is_blank => {}
                Some(_) => set.push((at, answer.to_string())),
                None => problems.push(not_asked(at, &open)),
            }
        }
        if !problems.is_empty() {
            return Prepared::Wrong(problems);
        }
        let draft = mended(self, draft.with_set(set).unwrap_or(draft));
        self.settled(draft)
    }

    /// Brings one answer to the type its schema declares, and checks it; it may be any JSON.
    ///
    /// # Errors
    /// Every problem at once; the list is never empty.
    pub fn answered(&self, answer: &Value) -> Result<Value, Vec<ArgumentProblem>> {
        let Ok(text) = RawValue::from_string(answer.to_string()) else {
            return self.check_value(answer).map(|()| answer.clone());
        };
        let draft = mended(self, Draft::new(text, answer.clone()));
        match self.check_filled(&draft.value, &draft.filled) {
            Ok(()) => Ok(draft.value),
            Err(problems) => Err(self.explained(problems, &draft)),
        }
    }

    fn admits(&self, value: &Value) -> bool {
        self.validator.is_valid(value) && self.shapes.admit(value)
    }

    fn prepared_from_nothing(&self) -> Prepared {
        let nothing = RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
        match self.prepare(&nothing) {
            Prepared::Fits => Prepared::Ready { arguments: nothing, notes: Vec::new() },
            other => other,
        }
    }

    /// What is to be said of arguments that nothing more can be done for.
    fn settled(&self, draft: Draft) -> Prepared {
        let Err(problems) = self.check_filled(&draft.value, &draft.filled) else {
            return Prepared::Ready { notes: self.told(&draft.notes), arguments: draft.text };
        };
        let document = Document::new(&self.schema);
        match self.missing(&draft, &document) {
            Some(wants) if !wants.is_empty() => {
                let (questions, prompt) = questions::asked(self, &document, &wants);
                let notes = self.told(&draft.notes);
                Prepared::Missing { known: draft.text, notes, questions, prompt }
            }
            _ => Prepared::Wrong(self.explained(problems, &draft)),
        }
    }

    /// What is missing, where nothing else is wrong and giving it would help.
    fn missing<'a>(&'a self, draft: &Draft, document: &Document<'a>) -> Option<Vec<Want<'a>>> {
        if !self.shapes.admit(&draft.value) {
            return None;
        }
        let wants = questions::wants(&self.all_errors(draft, document)?, document)?;
        let declared = wants.into_iter().map(|want| want.among_declared(|at| !self.shapes.refuse(at)));
        Some(declared.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }

    fn all_errors<'v>(
        &'v self,
        draft: &'v Draft,
        document: &Document<'_>,
    ) -> Option<Vec<ValidationError<'v>>> {
        match cost::of(document, &draft.value) {
            Bearable::Everything => Some(self.validator.iter_errors(&draft.value).collect()),
            Bearable::First | Bearable::Nothing => None,
        }
    }

    /// The problems, with the reason where a text that looks like a number was not taken for one.
    fn explained(&self, mut problems: Vec<ArgumentProblem>, draft: &Draft) -> Vec<ArgumentProblem> {
        let document = Document::new(&self.schema);
        let errors = self.all_errors(draft, &document).unwrap_or_default();
        let reasons: HashMap<&str, &str> = faults(&errors)
            .iter()
            .filter_map(|fault| Some((fault.at, coerce::reason(fault.instance.as_str()?, fault.kind)?)))
            .collect();
        for problem in problems.iter_mut().filter(|problem| problem.problem == "type") {
            if let Some(reason) = reasons.get(problem.path.as_str()) {
                problem.expected.push_str(", ");
                problem.expected.push_str(reason);
            }
        }
        problems
    }

    /// Notes in words, without what is sensitive.
    fn told(&self, notes: &[Note]) -> Vec<String> {
        let in_words = |Note { at, said }: &Note| match said {
            Said::Dropped(what) => format!("{at}: {what} dropped"),
            Said::Read { .. } if self.is_sensitive(at) => format!("{at}: read as its declared type"),
            Said::Read { from, to } => format!("{at}: {from} read as {to}"),
        };
        let mut told: Vec<String> = notes.iter().take(NOTES_MAX).map(in_words).collect();
        if let Some(more @ 1..) = notes.len().checked_sub(NOTES_MAX) {
            told.push(format!("and {more} more"));
        }
        told
    }
}

fn pointer_to(name: &str) -> String {
    format!("/{}", crate::document::pointer_segment(name))
}

/// An answer to what was not asked.
fn not_asked(at: String, open: &HashMap<&str, bool>) -> ArgumentProblem {
    let mut names: Vec<&str> = open.keys().map(|at| name_of(at)).collect();
    names.sort_unstable();
    let suggestion = nearest(name_of(&at), names.iter().copied()).map(str::to_owned);
    let expected = match names.as_slice() {
        [] => "no answer, for nothing is missing".to_owned(),
        names => format!("only answers to {}", names.join(", ")),
    };
    ArgumentProblem { path: at, problem: "additionalProperties".to_owned(), expected, got: None, suggestion }
}
