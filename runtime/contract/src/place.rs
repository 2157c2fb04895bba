//! Where in a schema a problem was found: the schemas that look at the value, the innermost first.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use crate::document::{Document, Located, unescaped};

/// The way a validator went from the root of a schema to what failed.
pub(crate) struct Place<'a> {
    /// The schemas that look at the value which failed, in the order they were met.
    looking: Vec<Located<'a>>,
    /// What stands under the keyword that failed.
    keyword: Option<Located<'a>>,
}

/// What a segment of the way is.
enum Segment {
    /// A keyword of a schema.
    Keyword,
    /// A name or number below a keyword; whether the schema there sees the same value.
    Below { same_value: bool },
}

impl<'a> Place<'a> {
    /// Where an error was found, as far as its way can be understood, references included.
    pub(crate) fn of(error: &ValidationError<'_>, document: &Document<'a>) -> Place<'a> {
        let way = error.evaluation_path().as_str();
        // A schema that is `false` fails itself; everything else fails at a keyword.
        let (way, keyword) = match error.kind() {
            ValidationErrorKind::FalseSchema => (way, None),
            _ => way.rsplit_once('/').map_or((way, None), |(way, keyword)| (way, Some(keyword))),
        };
        let mut place = Place { looking: vec![document.root()], keyword: None };
        if place.follow(document, way).is_some() {
            let innermost = place.innermost();
            place.keyword =
                innermost.zip(keyword).and_then(|(schema, keyword)| step(schema, &unescaped(keyword)));
        }
        place
    }

    fn follow(&mut self, document: &Document<'a>, way: &str) -> Option<()> {
        let mut at = document.root();
        let mut expects = Segment::Keyword;
        for raw in way.split('/').skip(1) {
            let name = unescaped(raw);
            let keyword = matches!(expects, Segment::Keyword);
            if keyword && matches!(name.as_ref(), "$ref" | "$dynamicRef") {
                let reference = at.value.get(name.as_ref())?.as_str()?;
                // Which of several was meant cannot be told any more.
                let [target] = document.resolve(at, reference).ok()?[..] else { return None };
                at = target;
                self.looking.push(at);
                continue;
            }
            at = step(at, &name)?;
            let same_value;
            (expects, same_value) = match expects {
                Segment::Keyword => after_keyword(&name, at.value),
                Segment::Below { same_value } => (Segment::Keyword, same_value),
            };
            if matches!(expects, Segment::Keyword) {
                if !same_value {
                    self.looking.clear();
                }
                self.looking.push(at);
            }
        }
        Some(())
    }

    /// The schemas that look at the value, the innermost first.
    pub(crate) fn schemas(&self) -> Vec<Located<'a>> {
        self.looking.iter().rev().copied().collect()
    }

    /// The schema that holds the keyword which failed.
    pub(crate) fn innermost(&self) -> Option<Located<'a>> {
        self.looking.last().copied()
    }

    /// What stands under the keyword which failed.
    pub(crate) fn keyword(&self) -> Option<Located<'a>> {
        self.keyword
    }

    /// What the schemas say of a member of the value.
    pub(crate) fn property(&self, document: &Document<'a>, name: &str) -> Vec<Located<'a>> {
        let parts = self.schemas().into_iter().flat_map(|schema| document.together(schema));
        parts.filter_map(|part| Some(part.child(part.value.get("properties")?.get(name)?))).collect()
    }
}

fn step<'a>(at: Located<'a>, name: &str) -> Option<Located<'a>> {
    let value = match at.value {
        Value::Object(members) => members.get(name)?,
        Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    Some(at.child(value))
}

/// What follows a keyword, and whether a schema right under it sees the same value.
fn after_keyword(keyword: &str, value: &Value) -> (Segment, bool) {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
            (Segment::Below { same_value: true }, true)
        }
        "properties" | "patternProperties" | "prefixItems" => (Segment::Below { same_value: false }, false),
        "items" if value.is_array() => (Segment::Below { same_value: false }, false),
        "if" | "then" | "else" | "not" => (Segment::Keyword, true),
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "items"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => (Segment::Keyword, false),
        _ => (Segment::Below { same_value: true }, true),
    }
}
