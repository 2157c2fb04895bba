//! Whether naming every problem of a value would take too long.

use serde_json::Value;

use crate::document::{Document, Located};

/// So many times a schema may be held against a part of the value to name all problems.
///
/// Whether a value is valid is remembered for each part of it; what is wrong with it is not, so
/// that schemas which meet twice in one value double the work with every level.
const VISITS_MAX: usize = 200_000;

/// Among alternatives fewer, for there every problem is copied once for each level above it.
const VISITS_AMONG_ALTERNATIVES_MAX: usize = 20_000;

/// Alternatives within alternatives of the same or a deeper value are told apart this deeply.
///
/// Each level takes some stack while it is, and calls are checked on small stacks.
const ALTERNATIVES_DEPTH_MAX: usize = 48;

/// How much of what is wrong can be named in good time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bearable {
    /// All of it.
    Everything,
    /// The first problem.
    First,
    /// Nothing in particular.
    Nothing,
}

/// Counts what naming the problems of a value would take, without doing it.
pub(crate) fn of(document: &Document<'_>, value: &Value) -> Bearable {
    weighed(document, value).0
}

/// The same with a measure of the work, in which what lies among alternatives weighs more.
pub(crate) fn weighed(document: &Document<'_>, value: &Value) -> (Bearable, usize) {
    /// How much more.
    const AMONG_ALTERNATIVES_WEIGH: usize = 50;
    let mut tally = Tally { open: Vec::new(), visits: 0, among_alternatives: 0 };
    tally.push(Visit { schema: document.root(), value, alternatives: 0 });
    while let Some(visit) = tally.open.pop() {
        visit.same_value(document, &mut tally);
        visit.deeper(&mut tally);
        if tally.among_alternatives > VISITS_AMONG_ALTERNATIVES_MAX {
            return (Bearable::Nothing, usize::MAX);
        }
    }
    let weight = tally.visits + tally.among_alternatives * AMONG_ALTERNATIVES_WEIGH;
    (if tally.visits > VISITS_MAX { Bearable::First } else { Bearable::Everything }, weight)
}

struct Tally<'a, 'v> {
    open: Vec<Visit<'a, 'v>>,
    visits: usize,
    among_alternatives: usize,
}

impl<'a, 'v> Tally<'a, 'v> {
    fn push(&mut self, visit: Visit<'a, 'v>) {
        self.visits += 1;
        if visit.alternatives > ALTERNATIVES_DEPTH_MAX {
            self.among_alternatives = usize::MAX;
            return;
        }
        self.among_alternatives = self.among_alternatives.saturating_add(visit.alternatives.min(1));
        if self.visits <= VISITS_MAX && self.among_alternatives <= VISITS_AMONG_ALTERNATIVES_MAX {
            self.open.push(visit);
        }
    }
}

/// One schema held against one value.
#[derive(Clone, Copy)]
struct Visit<'a, 'v> {
    schema: Located<'a>,
    value: &'v Value,
    /// Within how many alternatives.
    alternatives: usize,
}

impl<'a, 'v> Visit<'a, 'v> {
    fn with(self, schema: &'a Value) -> Visit<'a, 'v> {
        Visit { schema: self.schema.child(schema), ..self }
    }

    fn same_value(self, document: &Document<'a>, tally: &mut Tally<'a, 'v>) {
        for reference in self.schema.references() {
            for schema in document.resolve(self.schema, reference).unwrap_or_default() {
                tally.push(Visit { schema, ..self });
            }
        }
        let Some(members) = self.schema.members() else { return };
        let branches = |keyword: &str| members.get(keyword).and_then(Value::as_array).into_iter().flatten();
        branches("allOf").for_each(|branch| tally.push(self.with(branch)));
        for branch in branches("anyOf").chain(branches("oneOf")) {
            tally.push(Visit { alternatives: self.alternatives + 1, ..self.with(branch) });
        }
        for branch in ["then", "else"].into_iter().filter_map(|keyword| members.get(keyword)) {
            tally.push(self.with(branch));
        }
        let dependent = ["dependentSchemas", "dependencies"].into_iter();
        for (key, branch) in dependent.filter_map(|keyword| members.get(keyword)?.as_object()).flatten() {
            if self.value.get(key).is_some() {
                tally.push(self.with(branch));
            }
        }
    }

    fn deeper(self, tally: &mut Tally<'a, 'v>) {
        let Some(members) = self.schema.members() else { return };
        let one = |keyword: &str| members.get(keyword).filter(|schema| schema.is_object());
        match self.value {
            Value::Object(keys) => {
                let named = members.get("properties").and_then(Value::as_object);
                let patterns = members.get("patternProperties").and_then(Value::as_object);
                let rest = one("additionalProperties");
                for (key, value) in keys {
                    let named = named.and_then(|properties| properties.get(key));
                    let patterns = patterns.into_iter().flat_map(|all| all.values());
                    for schema in named.or(rest).into_iter().chain(patterns) {
                        tally.push(Visit { value, ..self.with(schema) });
                    }
                }
            }
            Value::Array(items) => {
                let listed = members.get("prefixItems").or_else(|| members.get("items"));
                let listed = listed.and_then(Value::as_array);
                let rest = one("items").or_else(|| one("additionalItems"));
                for (index, value) in items.iter().enumerate() {
                    if let Some(schema) = listed.and_then(|listed| listed.get(index)).or(rest) {
                        tally.push(Visit { value, ..self.with(schema) });
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
