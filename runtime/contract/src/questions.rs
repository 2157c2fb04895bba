//! What is missing, as questions in the words of the parameters themselves.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use plugd_protocol::plugin::Question;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use crate::contract::Contract;
use crate::document::{Document, Located, pointer_segment, unescaped};
use crate::mend::Fault;
use crate::place::Place;
use crate::words;

/// So many values are asked for at once.
pub(crate) const QUESTIONS_MAX: usize = 5;

/// A description is quoted up to this many characters.
const PHRASE_MAX_CHARS: usize = 200;

/// A question's schema with all its definitions has at most so many bytes; else it goes without them.
const SCHEMA_MAX_BYTES: usize = 64 * 1024;

/// A value that is not there.
#[derive(Clone)]
pub(crate) struct Missing<'a> {
    /// A JSON Pointer to where it belongs.
    pub(crate) at: String,
    /// What is said of it, the nearest first.
    schemas: Vec<Located<'a>>,
}

/// What somebody has to give.
pub(crate) enum Want<'a> {
    /// This value.
    Value(Missing<'a>),
    /// All the values of one of these.
    OneOf(Vec<Vec<Missing<'a>>>),
}

impl<'a> Want<'a> {
    /// All values it speaks of.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Missing<'a>> {
        let (value, alternatives) = match self {
            Want::Value(value) => (Some(value), [].as_slice()),
            Want::OneOf(alternatives) => (None, alternatives.as_slice()),
        };
        value.into_iter().chain(alternatives.iter().flatten())
    }
}

impl<'a> Want<'a> {
    /// What is left of it where only values that are declared may be given; none where nothing is.
    pub(crate) fn among_declared(self, is_declared: impl Fn(&str) -> bool) -> Option<Vec<Want<'a>>> {
        let mut alternatives = match self {
            Want::Value(value) => vec![vec![value]],
            Want::OneOf(alternatives) => alternatives,
        };
        alternatives.retain(|values| values.iter().all(|value| is_declared(&value.at)));
        match alternatives.len() {
            0 => None,
            1 => Some(alternatives.into_iter().flatten().map(Want::Value).collect()),
            _ => Some(vec![Want::OneOf(alternatives)]),
        }
    }
}

/// What is missing, where nothing else is wrong.
pub(crate) fn wants<'a>(errors: &[ValidationError<'_>], document: &Document<'a>) -> Option<Vec<Want<'a>>> {
    let mut wants: Vec<Want<'a>> = Vec::new();
    for error in errors {
        let fault = Fault::of(error);
        match fault.alternatives() {
            None => wants.push(Want::Value(missing(error, document)?)),
            Some(alternatives) => wants.extend(wanted_by_one(alternatives, document)?),
        }
    }
    Some(each_once(wants))
}

fn missing<'a>(error: &ValidationError<'_>, document: &Document<'a>) -> Option<Missing<'a>> {
    let Kind::Required { property } = error.kind() else { return None };
    let name = property.as_str()?;
    let at = format!("{}/{}", error.instance_path(), pointer_segment(name));
    Some(Missing { at, schemas: Place::of(error, document).property(document, name) })
}

/// What alternatives lack that would fit otherwise: what all of them lack comes first.
fn wanted_by_one<'a>(
    alternatives: &[Vec<ValidationError<'static>>],
    document: &Document<'a>,
) -> Option<Vec<Want<'a>>> {
    let lacking = |errors: &Vec<ValidationError<'static>>| {
        errors.iter().map(|error| missing(error, document)).collect::<Option<Vec<Missing<'a>>>>()
    };
    let lacking: Vec<Vec<Missing<'a>>> = alternatives.iter().filter_map(lacking).collect();
    let by_all =
        |value: &&Missing<'a>| lacking.iter().all(|values| values.iter().any(|other| other.at == value.at));
    let common: Vec<Want<'a>> = lacking
        .first()?
        .iter()
        .filter(by_all)
        .map(|value| {
            let same = lacking.iter().flatten().filter(|other| other.at == value.at);
            let schemas = same.flat_map(|other| other.schemas.iter().copied()).collect();
            Want::Value(Missing { at: value.at.clone(), schemas })
        })
        .collect();
    Some(if common.is_empty() { vec![Want::OneOf(lacking)] } else { common })
}

/// No value twice, and no choice that values asked for anyway make.
fn each_once(wants: Vec<Want<'_>>) -> Vec<Want<'_>> {
    let mut known: Vec<String> = Vec::new();
    let mut kept: Vec<Want<'_>> = Vec::new();
    let (values, choices): (Vec<Want<'_>>, Vec<Want<'_>>) =
        wants.into_iter().partition(|want| matches!(want, Want::Value(_)));
    for want in values.into_iter().chain(choices) {
        let is_known = |value: &Missing<'_>| known.contains(&value.at);
        let is_made = match &want {
            Want::Value(value) => is_known(value),
            Want::OneOf(alternatives) => alternatives.iter().any(|values| values.iter().all(is_known)),
        };
        if !is_made {
            if let Want::Value(value) = &want {
                known.push(value.at.clone());
            }
            kept.push(want);
        }
    }
    kept
}

/// The questions for as much as is asked at once, and all of them in one sentence.
pub(crate) fn asked(
    contract: &Contract,
    document: &Document<'_>,
    wants: &[Want<'_>],
) -> (Vec<Question>, String) {
    let mut questions = Vec::new();
    let mut sentences = Vec::new();
    for want in wants {
        let count = want.values().count();
        if !questions.is_empty() && questions.len() + count > QUESTIONS_MAX {
            break;
        }
        let asking = Asking { contract, document };
        match want {
            Want::Value(value) => {
                questions.push(asking.question(value, asking.phrase(value)));
                sentences.push(asking.sentence(value));
            }
            Want::OneOf(alternatives) => {
                let choice = in_keys(alternatives);
                for value in want.values().take(QUESTIONS_MAX) {
                    let is_new = |question: &Question| question.name != name_of(&value.at);
                    if questions.iter().all(is_new) {
                        let prompt = format!("{} ({choice})", asking.phrase(value));
                        questions.push(asking.question(value, prompt));
                    }
                }
                sentences.push(format!("{choice}: {}", asking.alternatives(alternatives)));
            }
        }
    }
    let chinese = sentences.iter().any(|sentence| sentence.chars().any(is_han));
    let (lead, between) = if chinese { ("请提供：", "；") } else { ("Please give: ", "; ") };
    (questions, format!("{lead}{}", sentences.join(between)))
}

/// How a value is called in a question: its JSON Pointer without the first slash.
pub(crate) fn name_of(at: &str) -> &str {
    at.strip_prefix('/').unwrap_or(at)
}

/// `order_id or user_id`.
fn in_keys(alternatives: &[Vec<Missing<'_>>]) -> String {
    let keys = |values: &Vec<Missing<'_>>| {
        values.iter().map(|value| name_of(&value.at)).collect::<Vec<_>>().join(" and ")
    };
    alternatives.iter().map(keys).collect::<Vec<_>>().join(" or ")
}

struct Asking<'d, 'a> {
    contract: &'d Contract,
    document: &'d Document<'a>,
}

impl Asking<'_, '_> {
    fn question(&self, value: &Missing<'_>, prompt: String) -> Question {
        let schema = self.schema(value).and_then(|schema| to_raw_value(&schema).ok());
        let sensitive = self.contract.is_sensitive(&value.at);
        Question { name: name_of(&value.at).to_owned(), schema, prompt, sensitive }
    }

    /// What a value is called by its declaration: its description, its title, or its key.
    fn phrase(&self, value: &Missing<'_>) -> String {
        let parts = || value.schemas.iter().flat_map(|schema| self.document.together(*schema));
        let said = |keyword: &str| {
            let mut texts = parts().filter_map(|part| part.value.get(keyword)?.as_str());
            texts.find(|text| !text.trim().is_empty())
        };
        let text = match said("description").or_else(|| said("title")) {
            Some(text) => text.to_owned(),
            None => unescaped(value.at.rsplit('/').next().unwrap_or_default()).replace(['_', '-'], " "),
        };
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.trim_end_matches(['.', '。', ':', '：', ' ']);
        match line.char_indices().nth(PHRASE_MAX_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line.to_owned(),
        }
    }

    /// The phrase, with what may be given where that is not just any text.
    fn sentence(&self, value: &Missing<'_>) -> String {
        let phrase = self.phrase(value);
        if value.schemas.is_empty() {
            return phrase;
        }
        match words::expected_of(&value.schemas, self.document).as_str() {
            "a string" | "any value" | "a value" => phrase,
            expected => format!("{phrase} ({expected})"),
        }
    }

    fn alternatives(&self, alternatives: &[Vec<Missing<'_>>]) -> String {
        let all = |values: &Vec<Missing<'_>>| {
            values.iter().map(|value| self.sentence(value)).collect::<Vec<_>>().join(" and ")
        };
        alternatives.iter().map(all).collect::<Vec<_>>().join(", or ")
    }

    /// The schema of an answer, closed in itself.
    fn schema(&self, value: &Missing<'_>) -> Option<Value> {
        let options = |schema: &Located<'_>| match (schema.value.get("enum"), schema.value.get("const")) {
            (Some(Value::Array(options)), _) => Some(options.clone()),
            (_, Some(only)) => Some(vec![only.clone()]),
            _ => None,
        };
        // What each alternative fixes for itself is a choice among all of them.
        let choices: Option<Vec<Vec<Value>>> = value.schemas.iter().map(options).collect();
        if let Some(choices) = choices.filter(|choices| choices.len() > 1) {
            let mut options: Vec<Value> = Vec::new();
            for option in choices.into_iter().flatten() {
                if !options.contains(&option) {
                    options.push(option);
                }
            }
            return Some(json!({ "enum": options }));
        }
        let said = value.schemas.iter().filter_map(|schema| schema.members());
        let mut members =
            said.clone().find(|members| tells(members)).or_else(|| said.clone().next())?.clone();
        members.remove("default");
        Some(Value::Object(self.closed(members)))
    }

    fn closed(&self, members: Map<String, Value>) -> Map<String, Value> {
        let mut bundle = members.clone();
        for keyword in ["$schema", "$defs", "definitions"] {
            let defined = self.contract.schema.get(keyword).filter(|_| !members.contains_key(keyword));
            bundle.extend(defined.map(|defined| (keyword.to_owned(), defined.clone())));
        }
        let bundle = Value::Object(bundle);
        let own = Value::Object(members.clone());
        let resolves = |reference: &str| {
            let defined = reference.starts_with("#/$defs/") || reference.starts_with("#/definitions/");
            defined && bundle.pointer(&reference[1..]).is_some()
        };
        let small = || bundle.to_string().len() <= SCHEMA_MAX_BYTES;
        if references(&own).is_empty() {
            return members;
        }
        match bundle {
            Value::Object(ref all) if references(&bundle).into_iter().all(resolves) && small() => all.clone(),
            _ => members.into_iter().filter(|(_, value)| references(value).is_empty()).collect(),
        }
    }
}

/// Whether a schema says anything of what a value is.
fn tells(members: &Map<String, Value>) -> bool {
    const TELLING: &[&str] = &["type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "$dynamicRef"];
    TELLING.iter().any(|keyword| members.contains_key(*keyword))
}

/// The references in a schema, and anything that looks like one.
fn references(schema: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                let refers = ["$ref", "$dynamicRef"].into_iter().filter_map(|keyword| members.get(keyword));
                found.extend(refers.filter_map(Value::as_str));
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

fn is_han(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{9FFF}')
}
