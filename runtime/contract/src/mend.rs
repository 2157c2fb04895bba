//! Arguments mended step by step: what the validator finds wrong is brought to its declared type.

use std::collections::{HashMap, HashSet};

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::contract::Contract;
use crate::cost::{self, Bearable};
use crate::defaults::{Absent, FILLED_BYTES_MAX, Search};
use crate::document::Document;
use crate::splice::{Edit, spliced};
use crate::union::{Union, adopted};
use crate::{coerce, numbers, words};

/// So often arguments are looked at anew after a change; texts within texts take one each.
const ROUNDS_MAX: usize = 64;

/// Alternatives are tried within alternatives this deeply.
const ALTERNATIVES_DEPTH_MAX: usize = 4;

/// So much work, as [`cost::weighed`] measures it, goes into mending one call's arguments.
const WORK_MAX: usize = 20_000_000;

/// What looking for what is wrong counts at least, so that it is never done more than some thousand times.
const WORK_LEAST: usize = 5_000;

/// Arguments on their way to what their schema declares.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) text: Box<RawValue>,
    /// The text, parsed.
    pub(crate) value: Value,
    pub(crate) notes: Vec<Note>,
    /// Where defaults were filled in.
    pub(crate) filled: HashSet<String>,
    /// So many bytes of defaults may still be filled in.
    filled_left: usize,
}

/// A change that was made for the sake of a declared type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// A JSON Pointer to the value.
    pub(crate) at: String,
    pub(crate) said: Said,
}

/// What was done to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// A text was read as another value; both as JSON, clipped.
    Read { from: String, to: String },
    /// What counts as absent was dropped.
    Dropped(&'static str),
}

/// An edit, and what there is to say of it.
pub(crate) struct Change {
    pub(crate) at: String,
    pub(crate) edit: Edit,
    pub(crate) notes: Vec<Note>,
}

impl Change {
    fn new(at: &str, edit: Edit, said: Said) -> Change {
        Change { at: at.to_owned(), edit, notes: vec![Note { at: at.to_owned(), said }] }
    }
}

impl Draft {
    pub(crate) fn new(text: Box<RawValue>, value: Value) -> Draft {
        Draft { text, value, notes: Vec::new(), filled: HashSet::new(), filled_left: FILLED_BYTES_MAX }
    }

    /// The arguments with values set at these pointers; `None` where there are none.
    pub(crate) fn with_set(&self, values: impl IntoIterator<Item = (String, String)>) -> Option<Draft> {
        let set = |(at, text)| Change { at, edit: Edit::Set(text), notes: Vec::new() };
        self.with(values.into_iter().map(set).collect())
    }

    /// `None` where nothing changes, or where what came of it could not be read.
    fn with(&self, changes: Vec<Change>) -> Option<Draft> {
        if changes.is_empty() {
            return None;
        }
        let edits = changes.iter().map(|change| (change.at.as_str(), &change.edit));
        let text = RawValue::from_string(spliced(self.text.get(), edits)).ok()?;
        let value = numbers::parse(&text).ok()?;
        let (notes, filled) = (self.notes.clone(), self.filled.clone());
        let mut next = Draft { text, value, notes, filled, filled_left: self.filled_left };
        next.notes.extend(changes.into_iter().flat_map(|change| change.notes));
        Some(next)
    }
}

/// Which alternative is being tried where: by pointer, the union's keyword and the branch.
pub(crate) type Pins = HashMap<String, Vec<(String, usize)>>;

/// One thing the validator found wrong.
#[derive(Clone, Copy)]
pub(crate) struct Fault<'e> {
    pub(crate) kind: &'e Kind,
    /// A JSON Pointer to the value.
    pub(crate) at: &'e str,
    /// A JSON Pointer to the keyword in the schema.
    pub(crate) keyword: &'e str,
    pub(crate) instance: &'e Value,
    /// Whether it counts only while something else is as it is.
    conditional: bool,
}

impl<'e> Fault<'e> {
    pub(crate) fn of(error: &'e ValidationError<'_>) -> Fault<'e> {
        let is_condition = |part| matches!(part, "then" | "else" | "dependentSchemas" | "dependencies");
        Fault {
            kind: error.kind(),
            at: error.instance_path().as_str(),
            keyword: error.schema_path().as_str(),
            instance: error.instance().as_ref(),
            conditional: error.evaluation_path().as_str().split('/').any(is_condition),
        }
    }

    /// What is wrong by each alternative, where none fits.
    pub(crate) fn alternatives(&self) -> Option<&'e [Vec<ValidationError<'static>>]> {
        match self.kind {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => Some(context),
            _ => None,
        }
    }
}

/// What is wrong, by the alternatives that are pinned.
pub(crate) fn open<'e>(errors: &'e [ValidationError<'_>], pins: &Pins, found: &mut Vec<Fault<'e>>) {
    for error in errors {
        let fault = Fault::of(error);
        let pinned = pins.get(fault.at).into_iter().flatten();
        match pinned.into_iter().find(|(union, _)| union == fault.keyword) {
            Some((_, branch)) => {
                let branch = fault.alternatives().and_then(|branches| branches.get(*branch));
                open(branch.map(Vec::as_slice).unwrap_or_default(), pins, found);
            }
            None => found.push(fault),
        }
    }
}

/// All that is wrong, one by one.
pub(crate) fn faults<'e>(errors: &'e [ValidationError<'_>]) -> Vec<Fault<'e>> {
    errors.iter().map(Fault::of).collect()
}

/// Brings arguments to their declared types and fills in defaults, as far as that goes.
pub(crate) fn mended(contract: &Contract, draft: Draft) -> Draft {
    let document = Document::new(&contract.schema);
    let mut mending = Mending { contract, document, work_left: WORK_MAX };
    mending.settled(draft, &Pins::new(), 0)
}

struct Mending<'c> {
    contract: &'c Contract,
    document: Document<'c>,
    work_left: usize,
}

impl<'c> Mending<'c> {
    fn settled(&mut self, mut draft: Draft, pins: &Pins, depth: usize) -> Draft {
        for _ in 0..ROUNDS_MAX {
            match self.round(&draft, pins, depth) {
                Some(next) => draft = next,
                None => break,
            }
        }
        draft
    }

    /// One step further: what is plain first, then defaults, then what depends on them.
    fn round(&mut self, draft: &Draft, pins: &Pins, depth: usize) -> Option<Draft> {
        let errors = self.errors(draft)?;
        let mut faults = Vec::new();
        open(&errors, pins, &mut faults);
        mended_once(draft, &faults)
            .or_else(|| self.filled(draft, &faults))
            .or_else(|| self.decided(draft, &faults, pins, depth))
    }

    /// What is wrong, unless finding out takes too long.
    fn errors<'v>(&mut self, draft: &'v Draft) -> Option<Vec<ValidationError<'v>>>
    where
        'c: 'v,
    {
        let contract: &'c Contract = self.contract;
        let (bearable, work) = cost::weighed(&self.document, &draft.value);
        self.work_left = self.work_left.checked_sub(work.max(WORK_LEAST))?;
        match bearable {
            Bearable::Everything => Some(contract.validator.iter_errors(&draft.value).collect()),
            Bearable::First | Bearable::Nothing => None,
        }
    }

    /// The draft with defaults where keys are absent; one that would not fit is left out.
    fn filled(&mut self, draft: &Draft, faults: &[Fault<'_>]) -> Option<Draft> {
        if self.contract.defaults.is_empty() {
            return None;
        }
        let mut absent = self.absent(draft, faults);
        let fitted = self.contract.validator.is_valid(&draft.value);
        loop {
            let set = absent.iter().map(|absent| (absent.at.clone(), absent.text.clone()));
            let mut next = draft.with_set(set)?;
            let errors = self.errors(&next)?;
            let wrong: HashSet<&str> =
                errors.iter().flat_map(|error| outers(error.instance_path().as_str())).collect();
            let fits = |absent: &Absent| !wrong.contains(absent.at.as_str());
            if absent.iter().all(fits) {
                let spoiled = fitted && !errors.is_empty();
                drop(errors);
                let bytes = absent.iter().map(|absent| absent.text.len()).sum();
                next.filled_left = next.filled_left.saturating_sub(bytes);
                next.filled.extend(absent.into_iter().map(|absent| absent.at));
                return (!spoiled).then_some(next);
            }
            absent.retain(fits);
        }
    }

    fn absent(&self, draft: &Draft, faults: &[Fault<'_>]) -> Vec<Absent> {
        let contract = self.contract;
        let matching = self.matching(draft);
        let holds = |branch: &Value, at: &str| {
            matching.get(&std::ptr::from_ref(branch)).is_some_and(|places| places.contains(at))
        };
        let mut search = Search::new(&self.document, &holds, &draft.filled, draft.filled_left);
        search.through(&draft.value);
        // An alternative that only lacks its defaults does not match before it has them.
        for fault in faults {
            let schema = fault.keyword.strip_suffix("/required").unwrap_or(fault.keyword);
            if let (Kind::Required { property }, Some(schema)) = (fault.kind, contract.schema.pointer(schema))
                && let Some(name) = property.as_str()
            {
                search.key(name, schema, fault.at);
            }
        }
        search.found()
    }

    /// The alternatives that match, by address, with the pointers to what they match.
    fn matching(&self, draft: &Draft) -> HashMap<*const Value, HashSet<String>> {
        let mut matching: HashMap<*const Value, HashSet<String>> = HashMap::new();
        if !self.contract.defaults.conditional {
            return matching;
        }
        let mut add = |schema: &str, at: &str| {
            if let Some(schema) = self.contract.schema.pointer(schema) {
                matching.entry(schema).or_default().insert(at.to_owned());
            }
        };
        let evaluation = self.contract.validator.evaluate(&draft.value);
        let mut units = vec![evaluation.root()];
        while let Some(unit) = units.pop() {
            if unit.valid() {
                add(unit.schema_location(), unit.instance_location().as_str());
            }
            units.extend(unit.children());
        }
        matching
    }

    /// The draft with what the alternatives come to, where that is one thing.
    fn decided(&mut self, draft: &Draft, faults: &[Fault<'_>], pins: &Pins, depth: usize) -> Option<Draft> {
        if depth == ALTERNATIVES_DEPTH_MAX {
            return None;
        }
        let mut unions: Vec<Union<'_>> = faults.iter().filter_map(Union::of).collect();
        let most = unions.iter().map(|union| union.branches).max()?;
        for branch in 0..most {
            let mut tried = pins.clone();
            for union in &unions {
                tried.entry(union.at.to_owned()).or_default().push((union.keyword.to_owned(), branch));
            }
            let outcome = self.settled(draft.clone(), &tried, depth + 1);
            let errors = self.errors(&outcome)?;
            let mut left = Vec::new();
            open(&errors, pins, &mut left);
            let left: HashMap<(&str, &str), Fault<'_>> =
                left.into_iter().map(|fault| ((fault.at, fault.keyword), fault)).collect();
            for union in unions.iter_mut().filter(|union| branch < union.branches) {
                let left = left.get(&(union.at, union.keyword));
                union.tried(branch, (draft, &outcome), left, &tried);
            }
        }
        draft.with(adopted(unions, draft))
    }
}

/// The draft with what is plainly mended: first what counts in any case.
fn mended_once(draft: &Draft, faults: &[Fault<'_>]) -> Option<Draft> {
    [false, true].into_iter().find_map(|conditional| {
        let mut places: HashSet<&str> = HashSet::new();
        let faults = faults.iter().filter(|fault| fault.conditional == conditional);
        let changes = faults.filter_map(|fault| Some((fault.at, change(fault, &draft.value)?)));
        draft.with(changes.filter(|(at, _)| places.insert(at)).map(|(_, change)| change).collect())
    })
}

/// What mends one fault, where a change of type does.
fn change(fault: &Fault<'_>, arguments: &Value) -> Option<Change> {
    let dropped = |what| {
        let (object, _) = fault.at.rsplit_once('/')?;
        let is_member = arguments.pointer(object)?.is_object();
        is_member.then(|| Change::new(fault.at, Edit::Remove, Said::Dropped(what)))
    };
    let options = match fault.kind {
        Kind::Type { .. } => &[],
        Kind::Enum { options } => options.as_array()?.as_slice(),
        Kind::Constant { expected_value } => std::slice::from_ref(expected_value.as_ref()),
        _ => return None,
    };
    let read = match (fault.instance, fault.kind) {
        (Value::Null, _) => return dropped("null"),
        (Value::String(text), _) if text.trim().is_empty() && !options.iter().any(Value::is_string) => {
            return dropped("blank");
        }
        (Value::String(text), Kind::Type { kind }) => coerce::by_type(text, kind)?,
        (Value::String(text), _) => coerce::by_options(text, options)?,
        _ => return None,
    };
    let said = Said::Read { from: words::clip(&fault.instance.to_string()), to: words::clip(&read) };
    Some(Change::new(fault.at, Edit::Set(read), said))
}

/// A pointer and those to what is around it, the whole included.
pub(crate) fn outers(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(outer, _)| outer))
}
