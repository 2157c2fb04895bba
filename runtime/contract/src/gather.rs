//! The shapes of a schema, gathered once: which schemas look at one value together, and what they say.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde_json::{Map, Value};

use crate::document::{Document, Located, Unresolved, is_schema};
use crate::schema::IN_PLACE_DEPTH_MAX;
use crate::shape::{Inner, Pattern, Shape, Shapes};
use crate::validator;

/// So many different objects and lists of one schema are looked at; further ones may have any key.
const SHAPES_MAX: usize = 1_000;

/// So many steps are taken to gather them; a schema of many large alternatives multiplies.
const STEPS_MAX: usize = 500_000;

/// The shape of what was not looked at any more, in a schema where something is sensitive.
const UNSEEN: usize = 0;

/// Gathers the shapes of a whole schema.
pub(crate) fn shapes(schema: &Value) -> Shapes {
    let document = Document::new(schema);
    let mut gathering = Gathering {
        document: &document,
        unseen: mentions_sensitive(schema).then_some(UNSEEN),
        patterns: HashMap::new(),
        indices: HashMap::new(),
        known: HashMap::new(),
        open: VecDeque::new(),
        steps_left: STEPS_MAX,
    };
    let root = Branch { schema: document.root(), certain: true };
    let root = gathering.index_of(vec![root], Loose::default());
    let mut all = vec![Shape { sensitive: true, ..Shape::default() }];
    while let Some(together) = gathering.open.pop_front() {
        all.push(gathering.shape(&together));
    }
    let mut shapes = Shapes { all, root };
    spread(&mut shapes.all);
    shapes.forget_empty();
    shapes
}

/// Whether a schema says that values of it are never to be shown.
pub(crate) fn says_sensitive(members: &Map<String, Value>) -> bool {
    let is_true = |keyword: &str| members.get(keyword) == Some(&Value::Bool(true));
    let password = members.get("format").is_some_and(|format| format == "password");
    is_true("writeOnly") || is_true("x-sensitive") || password
}

fn mentions_sensitive(schema: &Value) -> bool {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) if says_sensitive(members) => return true,
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// Tells every shape whether something within it is sensitive.
fn spread(all: &mut [Shape]) {
    loop {
        let hides = |inner: Inner| inner.is_some_and(|at| all[at].sensitive || all[at].guarded);
        let found: Vec<usize> =
            (0..all.len()).filter(|&at| !all[at].guarded && all[at].inners().any(hides)).collect();
        if found.is_empty() {
            return;
        }
        for at in found {
            all[at].guarded = true;
        }
    }
}

impl Shapes {
    /// Forgets shapes that say nothing, so that no check walks through them.
    fn forget_empty(&mut self) {
        let all = &mut self.all;
        let mut telling: Vec<bool> =
            all.iter().map(|shape| shape.closed || shape.sensitive || shape.guarded).collect();
        loop {
            let leads = |inner: Inner| inner.is_some_and(|at| telling[at]);
            let found: Vec<usize> =
                (0..all.len()).filter(|&at| !telling[at] && all[at].inners().any(leads)).collect();
            if found.is_empty() {
                break;
            }
            for at in found {
                telling[at] = true;
            }
        }
        let kept = |inner: &mut Inner| *inner = inner.filter(|&at| telling[at]);
        for shape in all.iter_mut() {
            shape.members.values_mut().for_each(kept);
            shape.patterns.iter_mut().for_each(|pattern| kept(&mut pattern.inner));
            shape.prefix.iter_mut().for_each(kept);
            kept(&mut shape.rest);
            kept(&mut shape.items);
        }
        kept(&mut self.root);
    }
}

impl Shape {
    fn inners(&self) -> impl Iterator<Item = Inner> {
        let patterns = self.patterns.iter().map(|pattern| pattern.inner);
        let members = self.members.values().copied().chain(patterns);
        members.chain(self.prefix.iter().copied()).chain([self.rest, self.items])
    }
}

/// One schema that looks at a value, and whether it does so in any case.
#[derive(Clone, Copy)]
struct Branch<'a> {
    schema: Located<'a>,
    /// Whether it is no mere alternative.
    certain: bool,
}

/// Whether some alternative takes values of a kind and says nothing of what is in them.
#[derive(Default, Clone, Copy, PartialEq, Eq, Hash)]
struct Loose {
    objects: bool,
    lists: bool,
}

impl Loose {
    const ALL: Loose = Loose { objects: true, lists: true };

    fn when(loose: bool) -> Loose {
        Loose { objects: loose, lists: loose }
    }

    fn or(self, other: Loose) -> Loose {
        Loose { objects: self.objects || other.objects, lists: self.lists || other.lists }
    }
}

/// The schemas that look at one value together.
struct Together<'a> {
    branches: Vec<Branch<'a>>,
    loose: Loose,
    /// Whether a schema nobody can look into has a say.
    open: bool,
}

/// Which schemas look at a value, by address, so that equal ones share a shape.
type Key = (BTreeSet<(*const Value, bool)>, Loose);

fn key_of(branches: &[Branch<'_>], loose: Loose) -> Key {
    let schemas = branches.iter();
    (schemas.map(|branch| (std::ptr::from_ref(branch.schema.value), branch.certain)).collect(), loose)
}

/// Shapes being gathered: each set of schemas that apply together gets one.
struct Gathering<'d, 'a> {
    document: &'d Document<'a>,
    unseen: Inner,
    patterns: HashMap<&'a str, Option<jsonschema::Validator>>,
    /// The shapes there are, by all the schemas of each.
    indices: HashMap<Key, usize>,
    /// What was answered before, by the schemas that were asked for.
    known: HashMap<Key, Inner>,
    open: VecDeque<Together<'a>>,
    steps_left: usize,
}

impl<'a> Gathering<'_, 'a> {
    /// The number of the shape of what these schemas describe, `None` where that says nothing.
    fn index_of(&mut self, roots: Vec<Branch<'a>>, loose: Loose) -> Inner {
        let roots: Vec<Branch<'a>> = roots.into_iter().map(|root| self.referred_to(root)).collect();
        let asked = key_of(&roots, loose);
        if let Some(&known) = self.known.get(&asked) {
            return known;
        }
        let together = self.flattened(roots, loose);
        let tells_nothing =
            !together.branches.iter().any(|branch| branch.schema.members().is_some_and(tells));
        let key = key_of(&together.branches, together.loose);
        let next = self.indices.len() + 1;
        let inner = if self.steps_left == 0 {
            self.unseen
        } else if tells_nothing {
            None
        } else if let Some(&index) = self.indices.get(&key) {
            Some(index)
        } else if next > SHAPES_MAX {
            self.unseen
        } else {
            self.indices.insert(key, next);
            self.open.push_back(together);
            Some(next)
        };
        self.known.insert(asked, inner);
        inner
    }

    /// Takes some of the steps left; at the end of them nothing more is found out.
    fn pay(&mut self, steps: usize) {
        self.steps_left = self.steps_left.saturating_sub(steps);
    }

    /// What a schema that only refers to another stands for.
    fn referred_to(&self, root: Branch<'a>) -> Branch<'a> {
        let mut at = root;
        // No chain of references is longer once a schema has been checked.
        for _ in 0..IN_PLACE_DEPTH_MAX {
            let mut references = at.schema.references();
            let only = at.schema.members().is_some_and(|members| members.len() == 1);
            let Some(reference) = references.next().filter(|_| only) else { break };
            match self.document.resolve(at.schema, reference).unwrap_or_default()[..] {
                [schema] => at.schema = schema,
                _ => break,
            }
        }
        at
    }

    /// These schemas with all that apply to the same value through them.
    fn flattened(&mut self, roots: Vec<Branch<'a>>, loose: Loose) -> Together<'a> {
        let mut together = Together { branches: Vec::new(), loose, open: false };
        let mut places: HashMap<*const Value, usize> = HashMap::new();
        for root in roots.iter().filter(|root| !root.certain) {
            together.loose = together.loose.or(self.taken_whole(root.schema));
        }
        let mut open = roots;
        while let Some(here) = open.pop() {
            let next = places.len();
            let place = *places.entry(std::ptr::from_ref(here.schema.value)).or_insert(next);
            match together.branches.get_mut(place) {
                Some(known) if known.certain || !here.certain => continue,
                Some(known) => known.certain = true,
                None => together.branches.push(here),
            }
            self.pay(1);
            if self.steps_left == 0 {
                break;
            }
            self.referred(here, &mut together, &mut open);
            self.alternatives(here, &mut together, &mut open);
        }
        together
    }

    fn referred(&self, here: Branch<'a>, together: &mut Together<'a>, open: &mut Vec<Branch<'a>>) {
        for reference in here.schema.references() {
            match self.document.resolve(here.schema, reference) {
                Ok(targets) => {
                    let certain = here.certain && targets.len() == 1;
                    open.extend(targets.into_iter().map(|schema| Branch { schema, certain }));
                }
                Err(Unresolved::Meta | Unresolved::External | Unresolved::Missing) => together.open = true,
            }
        }
        let all = here.schema.value.get("allOf").and_then(Value::as_array).into_iter().flatten();
        open.extend(all.map(|branch| Branch { schema: here.schema.child(branch), ..here }));
    }

    fn alternatives(&mut self, here: Branch<'a>, together: &mut Together<'a>, open: &mut Vec<Branch<'a>>) {
        let Some(members) = here.schema.members() else { return };
        for keyword in ["anyOf", "oneOf"] {
            let branches = members.get(keyword).and_then(Value::as_array);
            let certain = here.certain && branches.is_some_and(|branches| branches.len() == 1);
            for branch in branches.into_iter().flatten() {
                let schema = here.schema.child(branch);
                if !certain {
                    together.loose = together.loose.or(self.taken_whole(schema));
                }
                open.push(Branch { schema, certain });
            }
        }
        let conditional = ["if", "then", "else"].into_iter().filter_map(|keyword| members.get(keyword));
        let dependent = ["dependentSchemas", "dependencies"].into_iter();
        let dependent = dependent.filter_map(|keyword| members.get(keyword)?.as_object());
        for branch in conditional.chain(dependent.flat_map(Map::values)).filter(|branch| is_schema(branch)) {
            // Where the condition does not hold, nothing is said.
            together.loose = Loose::ALL;
            open.push(Branch { schema: here.schema.child(branch), certain: false });
        }
    }

    /// Of what kinds an alternative takes values whatever is in them.
    fn taken_whole(&mut self, schema: Located<'a>) -> Loose {
        let mut loose = Loose::ALL;
        let parts = self.document.together(schema);
        self.pay(parts.len());
        for part in parts {
            let Some(members) = part.members() else {
                loose = if part.value == &Value::Bool(false) { Loose::default() } else { loose };
                continue;
            };
            let says = |keywords: &[&str]| keywords.iter().any(|keyword| members.contains_key(*keyword));
            let takes = |kind: &str| match members.get("type") {
                Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
                Some(one) => one == kind,
                None => true,
            };
            let any = !says(&["const", "enum", "anyOf", "oneOf"]);
            loose.objects &= any && takes("object") && !says(KEY_KEYWORDS);
            loose.lists &= any && takes("array") && !says(ITEM_KEYWORDS);
        }
        loose
    }

    fn shape(&mut self, together: &Together<'a>) -> Shape {
        let says = || together.branches.iter().filter_map(|branch| Some((branch, branch.schema.members()?)));
        let lists = |(_, members): &(_, &Map<String, Value>)| has_properties(members);
        let certain = says().any(|said| lists(&said) && said.0.certain);
        let open = together.open || says().any(|(_, members)| allows_further_keys(members));
        let closed = says().any(|said| lists(&said)) && !open && (certain || !together.loose.objects);
        let sensitive = says().any(|(_, members)| says_sensitive(members));
        let mut shape = Shape { closed, sensitive, ..Shape::default() };
        self.keys(together, &mut shape);
        self.items(together, &mut shape);
        // What was not found out is not held against anybody.
        shape.closed &= self.steps_left > 0;
        shape
    }

    fn keys(&mut self, together: &Together<'a>, shape: &mut Shape) {
        let loose = Loose::when(together.loose.objects);
        let mut names: BTreeMap<&'a str, Vec<Branch<'a>>> = BTreeMap::new();
        let mut patterns: BTreeMap<&'a str, Vec<Branch<'a>>> = BTreeMap::new();
        let mut rest = Vec::new();
        for branch in &together.branches {
            for (name, inner) in branch.entries("properties") {
                self.pay(1);
                names.entry(name).or_default().push(inner);
            }
            for (pattern, inner) in branch.entries("patternProperties") {
                patterns.entry(pattern).or_default().push(inner);
            }
            rest.extend(branch.rest_of_keys());
        }
        for branch in together.branches.iter().filter(|branch| branch.reaches_beyond_names()) {
            for (name, roots) in &mut names {
                let further = self.beyond_names(branch, name);
                roots.extend(further);
            }
        }
        for (name, roots) in names {
            let inner = self.index_of(roots, loose);
            shape.members.insert(name.to_owned(), inner);
        }
        for (text, mut roots) in patterns {
            let others = together.branches.iter();
            let others = others.filter(|branch| branch.entry("patternProperties", text).is_none());
            roots.extend(others.filter_map(Branch::rest_of_keys));
            let inner = self.index_of(roots, loose);
            if let Some(validator) = self.pattern(text).cloned() {
                shape.patterns.push(Pattern { text: text.to_owned(), validator, inner });
            }
        }
        shape.rest = self.index_of(rest, loose);
    }

    /// What a branch says of a key other than by its name.
    fn beyond_names(&mut self, branch: &Branch<'a>, name: &str) -> Vec<Branch<'a>> {
        let mut roots = Vec::new();
        for (pattern, inner) in branch.entries("patternProperties") {
            self.pay(1);
            if self.steps_left > 0 && self.pattern(pattern).is_some_and(|pattern| is_match(pattern, name)) {
                roots.push(inner);
            }
        }
        self.pay(1);
        if roots.is_empty() && branch.entry("properties", name).is_none() {
            roots.extend(branch.rest_of_keys());
        }
        roots
    }

    fn items(&mut self, together: &Together<'a>, shape: &mut Shape) {
        let contained =
            |branch: &Branch<'a>| branch.single("contains").map(|inner| Branch { certain: false, ..inner });
        let contains: Vec<Branch<'a>> = together.branches.iter().filter_map(contained).collect();
        let loose = Loose::when(together.loose.lists || !contains.is_empty());
        let first = together.branches.iter().map(|branch| branch.prefix().len()).max().unwrap_or(0);
        for index in 0..first.min(SHAPES_MAX) {
            let mut roots = contains.clone();
            for branch in &together.branches {
                self.pay(1);
                let own = branch.prefix().get(index).map(|schema| branch.inner(schema));
                roots.extend(own.or_else(|| branch.rest_of_items()));
            }
            let inner = self.index_of(roots, loose);
            shape.prefix.push(inner);
        }
        let mut roots = contains;
        roots.extend(together.branches.iter().filter_map(Branch::rest_of_items));
        shape.items = self.index_of(roots, loose);
    }

    /// A pattern of keys, compiled once.
    fn pattern(&mut self, text: &'a str) -> Option<&jsonschema::Validator> {
        self.patterns.entry(text).or_insert_with(|| validator::of_pattern(text)).as_ref()
    }
}

fn is_match(pattern: &jsonschema::Validator, key: &str) -> bool {
    pattern.is_valid(&Value::String(key.to_owned()))
}

impl<'a> Branch<'a> {
    fn inner(&self, schema: &'a Value) -> Branch<'a> {
        Branch { schema: self.schema.child(schema), certain: self.certain }
    }

    fn single(&self, keyword: &str) -> Option<Branch<'a>> {
        let inner = self.schema.members()?.get(keyword).filter(|inner| is_schema(inner))?;
        Some(self.inner(inner))
    }

    fn entries(&self, keyword: &str) -> impl Iterator<Item = (&'a str, Branch<'a>)> {
        let branch = *self;
        let entries = self.schema.members().and_then(|members| members.get(keyword)?.as_object());
        entries.into_iter().flatten().map(move |(name, schema)| (name.as_str(), branch.inner(schema)))
    }

    fn entry(&self, keyword: &str, name: &str) -> Option<Branch<'a>> {
        Some(self.inner(self.schema.members()?.get(keyword)?.get(name)?))
    }

    /// Whether it says anything of keys it does not name.
    fn reaches_beyond_names(&self) -> bool {
        self.rest_of_keys().is_some() || self.entries("patternProperties").next().is_some()
    }

    fn rest_of_keys(&self) -> Option<Branch<'a>> {
        self.single("additionalProperties").or_else(|| self.single("unevaluatedProperties"))
    }

    /// The schemas of the first items, one by one: `prefixItems`, or a list in draft-07's `items`.
    fn prefix(&self) -> &'a [Value] {
        let listed = |keyword: &str| self.schema.members()?.get(keyword)?.as_array();
        listed("prefixItems").or_else(|| listed("items")).map(Vec::as_slice).unwrap_or_default()
    }

    fn rest_of_items(&self) -> Option<Branch<'a>> {
        let own = self.single("items").or_else(|| self.single("additionalItems"));
        own.or_else(|| self.single("unevaluatedItems"))
    }
}

/// Keywords that say what keys an object has.
const KEY_KEYWORDS: &[&str] =
    &["additionalProperties", "patternProperties", "properties", "unevaluatedProperties"];

/// Keywords that say what items a list has.
const ITEM_KEYWORDS: &[&str] = &["additionalItems", "contains", "items", "prefixItems", "unevaluatedItems"];

/// Whether a schema says anything of what is in a value, or whether to show it.
fn tells(members: &Map<String, Value>) -> bool {
    let says = |keyword: &&str| members.get(*keyword).is_some_and(|said| !said.is_boolean());
    KEY_KEYWORDS.iter().chain(ITEM_KEYWORDS).any(says) || says_sensitive(members)
}

fn has_properties(members: &Map<String, Value>) -> bool {
    members.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty())
}

/// Whether a schema says expressly that other keys than it lists may be there.
fn allows_further_keys(members: &Map<String, Value>) -> bool {
    let says_more = |keyword: &str| members.get(keyword).is_some_and(|value| value != &Value::Bool(false));
    says_more("additionalProperties") || says_more("unevaluatedProperties")
}
