//! What parameters could say better: each described, its form shown, required only where it must be.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::text::contains_word;
use super::{Declared, Rule};
use crate::document::{Document, Located, pointer_segment};

/// More schemas of one operation are not looked at.
pub(super) const SCHEMAS_MAX: usize = 2_000;

/// Last words of names of identifiers.
const IDENTIFIERS: &[&str] =
    &["guid", "iban", "id", "identifier", "ids", "imei", "isbn", "serial", "sku", "uuid", "vin"];

/// Last words of names of identifiers, where another word stands before.
const NUMBERED: &[&str] = &["code", "no", "num", "number"];

/// Of these the code is a text of any form.
const WRITTEN_CODE: &[&str] =
    &["css", "html", "java", "javascript", "js", "program", "python", "rust", "script", "source", "sql"];

const IDENTIFIERS_CHINESE: &[&str] = &["编号", "单号", "号码", "代码", "序号", "账号", "证号"];

/// Last words of names of dates and times.
const DATES: &[&str] =
    &["birthday", "date", "dates", "datetime", "day", "deadline", "since", "time", "timestamp", "until"];

const DATES_CHINESE: &[&str] = &["日期", "时间", "时刻", "日"];

const DATE_FORMATS: &[&str] = &["date", "date-time", "duration", "time"];

/// With these a description shows a form.
const CUES: &[&str] = &[
    "e.g.",
    "for example",
    "for instance",
    "such as",
    "example:",
    "examples:",
    "formatted",
    "in the form",
    "of the form",
    "例如",
    "比如",
    "形如",
    "示例",
    "如：",
    "如:",
    "格式",
];

pub(super) fn look_at(declared: &mut Declared<'_>) {
    let Ok(schema) = serde_json::from_str::<Value>(declared.operation.input_schema.get()) else { return };
    let document = Document::new(&schema);
    let mut walk = Walk { document: &document, seen: HashSet::new(), declared };
    let root = Place { at: document.root(), path: "/input_schema".to_owned() };
    walk.object(&root);
}

/// A schema, and where it stands in the declaration.
#[derive(Clone)]
pub(super) struct Place<'a> {
    pub(super) at: Located<'a>,
    pub(super) path: String,
}

impl<'a> Place<'a> {
    pub(super) fn below(&self, value: &'a Value, steps: &[&str]) -> Place<'a> {
        let mut path = self.path.clone();
        for step in steps {
            path.push('/');
            path.push_str(&pointer_segment(step));
        }
        Place { at: self.at.child(value), path }
    }

    fn member(&self, key: &str) -> Option<&'a Value> {
        self.at.members()?.get(key)
    }
}

struct Walk<'a, 'd, 'o> {
    document: &'d Document<'a>,
    /// Each schema is looked at once, however often it is referred to.
    seen: HashSet<*const Value>,
    declared: &'d mut Declared<'o>,
}

impl<'a> Walk<'a, '_, '_> {
    /// Looks at the properties of an object, and at what is in them.
    fn object(&mut self, place: &Place<'a>) {
        let views = self.views(place);
        let required: Vec<&str> = views
            .iter()
            .filter_map(|view| view.member("required")?.as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        for view in &views {
            if self.seen.len() >= SCHEMAS_MAX || !self.seen.insert(view.at.value) {
                continue;
            }
            if let Some(properties) = view.member("properties").and_then(Value::as_object) {
                for (name, schema) in properties {
                    let property = view.below(schema, &["properties", name]);
                    self.property(name, &property, required.contains(&name.as_str()));
                }
            }
            for deeper in ["items", "additionalProperties"] {
                if let Some(schema) = view.member(deeper).filter(|schema| schema.is_object()) {
                    self.object(&view.below(schema, &[deeper]));
                }
            }
        }
    }

    fn property(&mut self, name: &str, place: &Place<'a>, required: bool) {
        let views = self.views(place);
        let items = views.iter().filter_map(|view| Some(view.below(view.member("items")?, &["items"])));
        let items: Vec<Place<'a>> = items.flat_map(|items| self.views(&items)).collect();
        let seen = Seen { name, own: &views, items: &items };
        if seen.descriptions().all(|text| text.trim().is_empty()) {
            self.find(Rule::UndescribedParameter, place, format!("{name} has no description"));
        }
        if required && views.iter().any(|view| view.member("default").is_some()) {
            let message = format!("{name} is required, and has a default all the same");
            self.find(Rule::RequiredWithDefault, place, message);
        }
        if seen.is_choice() {
            if !seen.shows_choice() {
                let message =
                    format!("{name} is one of several values, and nothing shows how they are meant");
                self.find(Rule::EnumWithoutExample, place, message);
            }
        } else if seen.is_date() {
            if !seen.shows_form(false) {
                let message = format!("{name} is a date or a time, and nothing shows how it is written");
                self.find(Rule::DateWithoutExample, place, message);
            }
        } else if seen.is_identifier() && !seen.shows_form(true) {
            let message = format!("{name} identifies something, and nothing shows what it looks like");
            self.find(Rule::IdentifierWithoutPattern, place, message);
        }
        self.object(place);
    }

    fn find(&mut self, rule: Rule, place: &Place<'a>, message: String) {
        self.declared.find(rule, &place.path, message);
    }

    /// A schema with all that see the same value: what it refers to and its alternatives.
    fn views(&self, place: &Place<'a>) -> Vec<Place<'a>> {
        /// More is written by no person.
        const VIEWS_MAX: usize = 64;
        let mut views: Vec<Place<'a>> = Vec::new();
        let mut open = vec![place.clone()];
        while let Some(view) = open.pop() {
            let known = views.iter().any(|known| std::ptr::eq(known.at.value, view.at.value));
            if known || views.len() >= VIEWS_MAX {
                continue;
            }
            for reference in view.at.references() {
                for target in self.document.resolve(view.at, reference).unwrap_or_default() {
                    let path = match reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/')) {
                        Some(pointer) => format!("/input_schema{pointer}"),
                        None => view.path.clone(),
                    };
                    open.push(Place { at: target, path });
                }
            }
            for key in ["allOf", "anyOf", "oneOf"] {
                let parts = view.member(key).and_then(Value::as_array).into_iter().flatten();
                open.extend(
                    parts.enumerate().map(|(index, part)| view.below(part, &[key, &index.to_string()])),
                );
            }
            for key in ["then", "else"] {
                open.extend(view.member(key).map(|part| view.below(part, &[key])));
            }
            views.push(view);
        }
        views
    }
}

/// A property as rules see it.
struct Seen<'s, 'a> {
    name: &'s str,
    own: &'s [Place<'a>],
    items: &'s [Place<'a>],
}

impl<'a> Seen<'_, 'a> {
    fn members(&self) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.own.iter().chain(self.items).filter_map(|view| view.at.members())
    }

    fn has(&self, key: &str) -> bool {
        self.members().any(|members| members.contains_key(key))
    }

    fn descriptions(&self) -> impl Iterator<Item = &'a str> {
        let own = self.own.iter().filter_map(|view| view.at.members());
        own.filter_map(|members| members.get("description")?.as_str())
    }

    /// Whether it may be a text; one that says nothing may be anything.
    fn is_text(&self) -> bool {
        let kinds: Vec<&Value> = self.members().filter_map(|members| members.get("type")).collect();
        let names = |kind: &Value| match kind {
            Value::Array(kinds) => kinds.iter().any(|kind| kind == "string"),
            kind => kind == "string",
        };
        kinds.is_empty() || kinds.into_iter().any(names)
    }

    fn is_identifier(&self) -> bool {
        let words = name_words(self.name);
        let last = words.last().map(String::as_str).unwrap_or_default();
        let numbered = words.len() > 1
            && NUMBERED.contains(&last)
            && !words.iter().any(|word| WRITTEN_CODE.contains(&word.as_str()));
        let chinese = IDENTIFIERS_CHINESE.iter().any(|end| self.name.ends_with(end));
        self.is_text() && (IDENTIFIERS.contains(&last) || numbered || chinese)
    }

    fn is_date(&self) -> bool {
        let formats = self.members().filter_map(|members| members.get("format")?.as_str());
        if formats.into_iter().any(|format| DATE_FORMATS.contains(&format)) {
            return true;
        }
        let words = name_words(self.name);
        let last = words.last().map(String::as_str).unwrap_or_default();
        let at = words.len() > 1 && matches!(last, "at" | "on");
        let chinese = DATES_CHINESE.iter().any(|end| self.name.ends_with(end));
        self.is_text() && (DATES.contains(&last) || at || chinese)
    }

    /// The values it may have, where those are listed.
    fn choice(&self) -> Vec<&'a Value> {
        let listed = self.members().filter_map(|members| members.get("enum")?.as_array()).flatten();
        listed
            .chain(self.members().filter_map(|members| members.get("const")))
            .filter(|value| !value.is_null())
            .collect()
    }

    fn is_choice(&self) -> bool {
        self.choice().len() > 1
    }

    fn shows_choice(&self) -> bool {
        // A part that has a description of its own says what its constant means.
        let explained = |members: &Map<String, Value>| {
            members.contains_key("const")
                && ["description", "title"].iter().any(|key| members.contains_key(*key))
        };
        let values: Vec<String> = self.choice().into_iter().map(in_text).collect();
        let mentions = |text: &str| {
            let lower = text.to_lowercase();
            has_cue(&lower) || values.iter().any(|value| mentioned(&lower, value))
        };
        self.has_sample() || self.members().any(explained) || self.descriptions().any(mentions)
    }

    /// Whether something shows what it looks like; for identifiers a format does.
    fn shows_form(&self, format_will_do: bool) -> bool {
        self.has_sample()
            || ["pattern", "const", "enum"].iter().any(|key| self.has(key))
            || (format_will_do && self.has("format"))
            || self
                .descriptions()
                .any(|text| has_cue(&text.to_lowercase()) || text.split_whitespace().any(is_sample))
    }

    fn has_sample(&self) -> bool {
        let some = |value: &Value| value.as_array().is_none_or(|values| !values.is_empty());
        self.members().any(|members| {
            members.get("examples").is_some_and(some)
                || ["example", "default"]
                    .iter()
                    .any(|key| members.get(*key).is_some_and(|value| !value.is_null()))
        })
    }
}

fn has_cue(lower: &str) -> bool {
    CUES.iter().any(|cue| lower.contains(cue)) || lower.contains("yyyy")
}

/// Whether a word is one that shows a form: `TK-20241215-001`, `2024-12-15`, `08:30`.
fn is_sample(word: &str) -> bool {
    let core = word.trim_matches(|character: char| !character.is_alphanumeric());
    let digits = core.chars().filter(char::is_ascii_digit).count();
    let others = core.chars().count() - digits;
    digits >= 2
        && others >= 1
        && core
            .chars()
            .any(|character| matches!(character, '-' | ':' | '/' | '_') || character.is_alphabetic())
}

/// Whether a text mentions a value; a Chinese one stands in it without spaces.
fn mentioned(lower: &str, value: &str) -> bool {
    let spaced = value.replace(['_', '-'], " ");
    contains_word(lower, value) || contains_word(lower, &spaced)
}

fn in_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_lowercase(),
        other => other.to_string(),
    }
}

/// The words of a name, in lower case: `ticketId` and `ticket-id` have two.
fn name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for character in name.chars() {
        let begins = character.is_uppercase() && before.is_lowercase();
        if begins || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    words.retain(|word| !word.is_empty());
    words
}
