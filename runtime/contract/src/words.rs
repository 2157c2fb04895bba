//! Schemas and values in words: what would have been right, and what was given.

use serde_json::{Map, Value};

use crate::document::{Document, Located, is_schema};

/// What was given is shown up to this many characters.
const SHOWN_MAX_CHARS: usize = 80;

/// So many values of an `enum` are listed; the rest are counted.
const LISTED_MAX: usize = 24;

/// So many alternatives are named; the rest are counted.
const ALTERNATIVES_MAX: usize = 8;

/// Alternatives and items are described this many levels deep.
const DESCRIBED_DEPTH: usize = 2;

/// What a value is, with the value itself: `integer 15`, `string "x"`.
pub(crate) fn given(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(boolean) => format!("boolean {boolean}"),
        Value::Number(number) if number.is_f64() => format!("number {number}"),
        Value::Number(number) => format!("integer {number}"),
        Value::String(_) => format!("string {}", clip(&value.to_string())),
        Value::Array(_) => format!("array {}", clip(&value.to_string())),
        Value::Object(_) => format!("object {}", clip(&value.to_string())),
    }
}

/// A text of at most [`SHOWN_MAX_CHARS`] characters.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a schema asks for, in words: `an integer from 1 to 14`.
pub(crate) fn expected<'a>(schema: &'a Value, document: &Document<'a>) -> String {
    described(document.at(schema), document, DESCRIBED_DEPTH)
}

/// What schemas that look at one value ask for together, the most telling one first.
pub(crate) fn expected_of<'a>(schemas: &[Located<'a>], document: &Document<'a>) -> String {
    match schemas {
        [] => "another value".to_owned(),
        [schema, around @ ..] => Facts::of(*schema, around, document).described(document, DESCRIBED_DEPTH),
    }
}

fn described<'a>(schema: Located<'a>, document: &Document<'a>, depth: usize) -> String {
    Facts::of(schema, &[], document).described(document, depth)
}

/// `A or B`, each alternative named once.
pub(crate) fn alternatives_of<'a>(branches: &[Located<'a>], document: &Document<'a>) -> String {
    alternatives(branches, document, DESCRIBED_DEPTH)
}

fn alternatives<'a>(branches: &[Located<'a>], document: &Document<'a>, depth: usize) -> String {
    let mut names: Vec<String> = Vec::new();
    for branch in branches {
        let name = only_required(branch.value).unwrap_or_else(|| described(*branch, document, depth));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let rest = names.len().saturating_sub(ALTERNATIVES_MAX);
    if rest > 0 {
        names.truncate(ALTERNATIVES_MAX);
        names.push(format!("{rest} more"));
    }
    names.join(" or ")
}

/// The keys a branch asks for, where asking for keys is all it does.
pub(crate) fn only_required(branch: &Value) -> Option<String> {
    let members = branch.as_object()?;
    let keys = members.get("required")?.as_array()?;
    let silent = |key: &str| matches!(key, "required" | "title" | "description" | "type");
    let names: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
    (members.keys().all(|key| silent(key)) && !names.is_empty()).then(|| names.join(" and "))
}

/// The values of an `enum`.
pub(crate) fn one_of<'v>(options: impl ExactSizeIterator<Item = &'v Value>) -> String {
    let rest = options.len().saturating_sub(LISTED_MAX);
    let listed: Vec<String> = options.take(LISTED_MAX).map(plain).collect();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    match listed.as_slice() {
        [only] if rest == 0 => only.clone(),
        _ => format!("one of {}{more}", listed.join(", ")),
    }
}

/// A value as a person would write it; a text without quotes where that is clear.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text.trim() != text || reads_as_another(text) => {
            clip(&value.to_string())
        }
        Value::String(text) => clip(text),
        other => clip(&other.to_string()),
    }
}

fn reads_as_another(text: &str) -> bool {
    matches!(text, "true" | "false" | "null") || text.parse::<f64>().is_ok()
}

/// What several schemas say of one value together; of equal keywords the first is heard.
struct Facts<'a> {
    said: Vec<(Located<'a>, &'a Map<String, Value>)>,
    /// How many of them belong to the schema itself, and not only stand around it.
    own: usize,
    /// Whether no value at all is right.
    nothing: bool,
}

impl<'a> Facts<'a> {
    fn of(schema: Located<'a>, around: &[Located<'a>], document: &Document<'a>) -> Facts<'a> {
        let mut facts = Facts { said: Vec::new(), own: 0, nothing: schema.value == &Value::Bool(false) };
        facts.hear(schema, document);
        facts.own = facts.said.len();
        around.iter().for_each(|schema| facts.hear(*schema, document));
        facts
    }

    fn hear(&mut self, schema: Located<'a>, document: &Document<'a>) {
        for part in document.together(schema) {
            let Some(members) = part.members() else { continue };
            if !self.said.iter().any(|(_, known)| std::ptr::eq(*known, members)) {
                self.said.push((part, members));
            }
        }
    }

    /// Every value of a keyword, with the schema that says so.
    fn all(&self, keyword: &str) -> impl Iterator<Item = (Located<'a>, &'a Value)> {
        self.said.iter().filter_map(move |(schema, members)| Some((*schema, members.get(keyword)?)))
    }

    fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.all(keyword).next().map(|(_, value)| value)
    }

    fn text(&self, keyword: &str) -> Option<&'a str> {
        self.get(keyword).and_then(Value::as_str)
    }

    /// The tightest of all the numbers under a keyword.
    fn bound(&self, keyword: &str, tighter: impl Fn(f64, f64) -> bool) -> Option<&'a Value> {
        let numbers = self.all(keyword).map(|(_, value)| value).filter(|number| number.is_number());
        numbers.reduce(|tightest, other| {
            let (one, two) = (tightest.as_f64().unwrap_or_default(), other.as_f64().unwrap_or_default());
            if tighter(two, one) { other } else { tightest }
        })
    }

    fn least(&self, keyword: &str) -> Option<&'a Value> {
        self.bound(keyword, |one, other| one > other)
    }

    fn most(&self, keyword: &str) -> Option<&'a Value> {
        self.bound(keyword, |one, other| one < other)
    }

    fn described(&self, document: &Document<'a>, depth: usize) -> String {
        if self.nothing {
            return "nothing".to_owned();
        }
        if let Some(only) = self.get("const") {
            return plain(only);
        }
        if let Some(options) = self.get("enum").and_then(Value::as_array) {
            return one_of(options.iter());
        }
        if let Some(branches) = self.branches().filter(|_| depth > 0) {
            return alternatives(&branches, document, depth - 1);
        }
        let kinds: Vec<String> =
            self.kinds().into_iter().map(|kind| self.kind_in_words(kind, document, depth)).collect();
        let mut words = if kinds.is_empty() { "any value".to_owned() } else { kinds.join(" or ") };
        if let Some(example) = self.example() {
            words.push_str(&format!(", e.g. {example}"));
        }
        words
    }

    /// The alternatives, where they are all that is said of the type.
    fn branches(&self) -> Option<Vec<Located<'a>>> {
        if self.get("type").is_some() {
            return None;
        }
        let own = self.said.iter().take(self.own);
        let listed = |(schema, members): &(Located<'a>, &'a Map<String, Value>)| {
            let branches = members.get("anyOf").or_else(|| members.get("oneOf"))?.as_array()?;
            Some(branches.iter().map(|branch| schema.child(branch)).collect())
        };
        own.filter_map(listed).next()
    }

    /// The types allowed, the narrowest list of them; without one what the other keywords are about.
    fn kinds(&self) -> Vec<&'a str> {
        let listed = self.all("type").filter_map(|(_, kinds)| match kinds {
            Value::String(kind) => Some(vec![kind.as_str()]),
            Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
            _ => None,
        });
        let narrowest = listed.reduce(|known, other| {
            let narrower = other.len() < known.len() || (other == ["integer"] && known == ["number"]);
            if narrower { other } else { known }
        });
        let keywords = self.said.iter().flat_map(|(_, members)| members.keys());
        narrowest.unwrap_or_else(|| keywords.filter_map(|keyword| kind_of_keyword(keyword)).take(1).collect())
    }

    fn kind_in_words(&self, kind: &str, document: &Document<'a>, depth: usize) -> String {
        match kind {
            "integer" => format!("an integer{}", self.range(true)),
            "number" => format!("a number{}", self.range(false)),
            "object" => format!("an object{}{}", self.count("Properties", "key"), self.keys()),
            "array" => {
                let twice = self.get("uniqueItems") == Some(&Value::Bool(true));
                let twice = if twice { " without duplicates" } else { "" };
                format!("an array{}{twice}{}", self.count("Items", "item"), self.each(document, depth))
            }
            "boolean" => "true or false".to_owned(),
            "null" => "null".to_owned(),
            "string" => {
                let noun = self.text("format").map_or("a string".to_owned(), format_in_words);
                let pattern = self.text("pattern").map(|pattern| format!(" matching {}", clip(pattern)));
                format!("{noun}{}{}", self.count("Length", "character"), pattern.unwrap_or_default())
            }
            other => format!("a {other}"),
        }
    }

    /// The bounds of a number, as they follow the noun.
    fn range(&self, whole: bool) -> String {
        let least = tightest(whole, self.least("minimum"), self.least("exclusiveMinimum"), 1);
        let most = tightest(whole, self.most("maximum"), self.most("exclusiveMaximum"), -1);
        let mut words = match (least, most) {
            (Some(Bound::At(least)), Some(Bound::At(most))) => format!(" from {least} to {most}"),
            (None, None) => String::new(),
            (least, most) => {
                let least = least.map(|bound| bound.in_words("at least", "above"));
                let most = most.map(|bound| bound.in_words("at most", "below"));
                let both: Vec<String> = least.into_iter().chain(most).collect();
                format!(", {}", both.join(" and "))
            }
        };
        if let Some(step) = self.get("multipleOf").filter(|step| step.is_number()) {
            words.push_str(&format!(", a multiple of {step}"));
        }
        words
    }

    /// How long or how many, as it follows the noun.
    fn count(&self, of: &str, unit: &str) -> String {
        let units =
            |count: &Value| if count.as_f64() == Some(1.0) { unit.to_owned() } else { format!("{unit}s") };
        match (self.least(&format!("min{of}")), self.most(&format!("max{of}"))) {
            (Some(least), Some(most)) if least == most => format!(" of exactly {least} {}", units(least)),
            (Some(least), Some(most)) => format!(" of {least} to {most} {}", units(most)),
            (Some(least), None) => format!(" of at least {least} {}", units(least)),
            (None, Some(most)) => format!(" of at most {most} {}", units(most)),
            (None, None) => String::new(),
        }
    }

    fn keys(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        let required = self.all("required").filter_map(|(_, names)| names.as_array());
        for name in required.flatten().filter_map(Value::as_str) {
            if !names.contains(&name) && names.len() < LISTED_MAX {
                names.push(name);
            }
        }
        if !names.is_empty() {
            return format!(" with {}", names.join(", "));
        }
        let declared = self.all("properties").filter_map(|(_, members)| members.as_object());
        let any: Vec<&str> = declared.flat_map(Map::keys).map(String::as_str).take(LISTED_MAX).collect();
        if any.is_empty() { String::new() } else { format!(" with any of {}", any.join(", ")) }
    }

    fn each(&self, document: &Document<'a>, depth: usize) -> String {
        let items = self.all("items").find(|(_, items)| is_schema(items) && depth > 0);
        match items.map(|(schema, items)| described(schema.child(items), document, depth - 1)) {
            Some(item) if item != "any value" && item != "nothing" => format!(", each {item}"),
            _ => String::new(),
        }
    }

    fn example(&self) -> Option<String> {
        let examples = self.get("examples").and_then(Value::as_array);
        examples.and_then(|examples| examples.first()).or_else(|| self.get("example")).map(plain)
    }
}

/// One end of a range.
enum Bound {
    /// The end itself is in the range.
    At(String),
    /// It is not.
    Beyond(String),
}

impl Bound {
    fn in_words(self, at: &str, beyond: &str) -> String {
        match self {
            Bound::At(end) => format!("{at} {end}"),
            Bound::Beyond(end) => format!("{beyond} {end}"),
        }
    }
}

/// The bound that counts: of whole numbers the first one within it, so that it can be named.
fn tightest(whole: bool, at: Option<&Value>, beyond: Option<&Value>, inward: i64) -> Option<Bound> {
    let exclusive = beyond.map(|end| match end.as_i64().and_then(|end| end.checked_add(inward)) {
        Some(within) if whole => (Bound::At(within.to_string()), within as f64),
        _ => (Bound::Beyond(end.to_string()), end.as_f64().unwrap_or_default()),
    });
    let inclusive = at.map(|end| (Bound::At(end.to_string()), end.as_f64().unwrap_or_default()));
    match (inclusive, exclusive) {
        (Some((one, at)), Some((other, beyond))) => {
            let further_in = if inward > 0 { beyond >= at } else { beyond <= at };
            Some(if further_in { other } else { one })
        }
        (one, other) => one.or(other).map(|(bound, _)| bound),
    }
}

/// What a keyword without a `type` beside it is about.
fn kind_of_keyword(keyword: &str) -> Option<&'static str> {
    match keyword {
        "properties" | "required" | "additionalProperties" | "minProperties" | "maxProperties" => {
            Some("object")
        }
        "items" | "prefixItems" | "minItems" | "maxItems" | "uniqueItems" | "contains" => Some("array"),
        "pattern" | "format" | "minLength" | "maxLength" => Some("string"),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Some("number"),
        _ => None,
    }
}

fn format_in_words(format: &str) -> String {
    match format {
        "date" => "a date such as 2024-12-31",
        "time" => "a time such as 14:30:00Z",
        "date-time" => "a date and time such as 2024-12-31T14:30:00Z",
        "duration" => "an ISO 8601 duration such as PT1H30M",
        "email" | "idn-email" => "an e-mail address such as name@example.org",
        "uri" | "iri" => "a URI such as https://example.org/",
        "uri-reference" | "iri-reference" => "a URI or a relative reference such as ../page",
        "uuid" => "a UUID such as 123e4567-e89b-12d3-a456-426614174000",
        "ipv4" => "an IPv4 address such as 192.0.2.1",
        "ipv6" => "an IPv6 address such as 2001:db8::1",
        "hostname" | "idn-hostname" => "a host name such as www.example.org",
        "json-pointer" => "a JSON Pointer such as /a/0",
        "regex" => "a regular expression",
        "password" => "a string",
        other => return format!("a string in the format {other}"),
    }
    .to_owned()
}

/// A message of another library on one line, cut where it grows long.
pub(crate) fn clip_sentence(text: &str) -> String {
    const SENTENCE_MAX_CHARS: usize = 300;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SENTENCE_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What a schema asks for, its references left as they are.
pub(crate) fn plain_schema(schema: &Value) -> String {
    expected(schema, &Document::new(schema))
}
