//! The kinds of values the file has: durations, sizes, commands, and how each is written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use plugd_protocol::manifest::{OnLoss, Requirement};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::de::DeValue;

use super::form::{Found, Layer, Read, Reader, join};

/// A call may run at most this long, whoever asks for it.
pub const TIMEOUT_MAX: Duration = Duration::from_millis(plugd_protocol::manifest::TIMEOUT_MS_MAX);

/// Longer waits than this are slips of the pen.
const PERIOD_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const DURATION: &str = "a duration such as \"5s\", \"250ms\", \"10m\" or \"1m30s\"";
const SIZE: &str = "a size such as \"16MiB\" or a number of bytes";

/// A duration as text.
#[derive(Clone, Copy)]
pub(super) struct Period(pub(super) Duration);

/// A duration, or `false` for never.
#[derive(Clone, Copy)]
pub(super) struct PeriodOrOff(pub(super) Option<Duration>);

/// A duration a call may take: more than nothing, at most [`TIMEOUT_MAX`].
#[derive(Clone, Copy)]
pub(super) struct CallTime(pub(super) Duration);

/// A number of bytes.
#[derive(Clone, Copy)]
pub(super) struct Size(pub(super) u64);

/// A number of bytes, which may be none at all.
#[derive(Clone, Copy)]
pub(super) struct SizeOrNone(pub(super) u64);

/// A whole number of at least one.
#[derive(Clone, Copy)]
pub(super) struct Count(pub(super) u32);

/// A share between 0 and 1.
#[derive(Clone, Copy)]
pub(super) struct Share(pub(super) f64);

/// A program and its arguments.
#[derive(Clone)]
pub(super) struct Words(pub(super) Vec<String>);

/// A variable's value, or `false` to take it away.
#[derive(Clone)]
pub(super) struct Variables(pub(super) BTreeMap<String, Option<String>>);

/// Any table, as JSON.
#[derive(Clone)]
pub(super) struct JsonTable(pub(super) serde_json::Map<String, serde_json::Value>);

/// A version range, or a table with `version`, `optional` and `on_loss`.
#[derive(Clone)]
pub(super) struct Need(pub(super) Requirement);

/// Parses `5s`, `250ms`, `1m30s`; `None` for anything else.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let amount: u64 = rest[..digits].parse().ok()?;
        let after = &rest[digits..];
        let unit = after.find(|character: char| character.is_ascii_digit()).unwrap_or(after.len());
        let part = match after[..unit].trim() {
            "ms" => Duration::from_millis(amount),
            "s" => Duration::from_secs(amount),
            "m" | "min" => Duration::from_secs(amount.checked_mul(60)?),
            "h" => Duration::from_secs(amount.checked_mul(60 * 60)?),
            "d" => Duration::from_secs(amount.checked_mul(24 * 60 * 60)?),
            _ => return None,
        };
        total = total.checked_add(part)?;
        rest = &after[unit..];
    }
    Some(total)
}

/// A duration as the file would have it: `1m30s`.
pub(super) fn duration_text(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    let parts =
        [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s"), (u64::from(millis), "ms")];
    let text: String = parts
        .iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, unit)| format!("{amount}{unit}"))
        .collect();
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Parses `16MiB`, `10 MB`, `512`; `None` for anything else.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let amount: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    amount.checked_mul(unit)
}

pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

impl Read for Period {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Period> {
        match value.get_ref().as_str().and_then(parse_duration) {
            Some(duration) if duration <= PERIOD_MAX => Some(Period(duration)),
            Some(_) => reader.expected(value, key, "a duration of at most \"365d\""),
            None => reader.expected(value, key, DURATION),
        }
    }
}

impl Read for PeriodOrOff {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<PeriodOrOff> {
        match value.get_ref().as_bool() {
            Some(false) => Some(PeriodOrOff(None)),
            _ => Period::read(value, key, reader).map(|period| PeriodOrOff(Some(period.0))),
        }
    }
}

impl Read for CallTime {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<CallTime> {
        let Period(time) = Period::read(value, key, reader)?;
        if time.is_zero() || time > TIMEOUT_MAX {
            return reader.expected(value, key, "a duration of more than nothing and at most \"1h\"");
        }
        Some(CallTime(time))
    }
}

fn bytes(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::String(text) => parse_size(text),
        other => integer(other).and_then(|bytes| u64::try_from(bytes).ok()),
    }
}

impl Read for Size {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Size> {
        match bytes(value.get_ref()) {
            Some(0) => reader.expected(value, key, "a size of more than nothing, such as \"16MiB\""),
            Some(bytes) => Some(Size(bytes)),
            None => reader.expected(value, key, SIZE),
        }
    }
}

impl Read for SizeOrNone {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<SizeOrNone> {
        match bytes(value.get_ref()) {
            Some(bytes) => Some(SizeOrNone(bytes)),
            None => reader.expected(value, key, SIZE),
        }
    }
}

impl Read for Count {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Count> {
        let written = integer(value.get_ref());
        match written.and_then(|count| u32::try_from(count).ok()) {
            Some(count) if count > 0 => Some(Count(count)),
            None if written.is_some_and(|count| count > 0) => {
                reader.expected(value, key, &format!("a whole number from 1 to {}", u32::MAX))
            }
            _ => reader.expected(value, key, "a whole number of at least 1"),
        }
    }
}

impl Read for u32 {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<u32> {
        match integer(value.get_ref()).and_then(|count| u32::try_from(count).ok()) {
            Some(count) => Some(count),
            None => reader.expected(value, key, "a whole number of at least 0"),
        }
    }
}

impl Read for i32 {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<i32> {
        match integer(value.get_ref()).and_then(|number| i32::try_from(number).ok()) {
            Some(number) => Some(number),
            None => reader.expected(value, key, "a whole number such as 10 or -5"),
        }
    }
}

impl Read for bool {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<bool> {
        match value.get_ref().as_bool() {
            Some(boolean) => Some(boolean),
            None => reader.expected(value, key, "true or false"),
        }
    }
}

impl Read for Share {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Share> {
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            other => integer(other).and_then(|whole| i32::try_from(whole).ok()).map(f64::from),
        };
        match number {
            Some(share) if (0.0..=1.0).contains(&share) => Some(Share(share)),
            _ => reader.expected(value, key, "a share between 0 and 1, such as 0.2"),
        }
    }
}

impl Read for String {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<String> {
        match value.get_ref().as_str() {
            Some(text) => Some(text.to_owned()),
            None => reader.expected(value, key, "a string"),
        }
    }
}

impl Read for Vec<String> {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Vec<String>> {
        let items = value.get_ref().as_array();
        let texts = items.map(|items| items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)));
        match texts.and_then(|texts| texts.collect::<Option<Vec<String>>>()) {
            Some(texts) => Some(texts),
            None => reader.expected(value, key, "an array of strings, such as [\"a\", \"b\"]"),
        }
    }
}

impl Read for Words {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Words> {
        const COMMAND: &str = "a program and its arguments, such as [\"python3\", \"mailbox.py\"]";
        let items = value.get_ref().as_array();
        let words = items.map(|items| items.iter().map(|item| item.get_ref().as_str().map(str::to_owned)));
        match words.and_then(|words| words.collect::<Option<Vec<String>>>()) {
            Some(words) if words.first().is_none_or(|program| program.trim().is_empty()) => {
                reader.wrong(value, key, &format!("the command is empty: expected {COMMAND}"));
                None
            }
            Some(words) if words.iter().any(|word| word.contains('\0')) => {
                reader.wrong(
                    value,
                    key,
                    "a word of the command holds a NUL character, which no program can be given",
                );
                None
            }
            Some(words) => Some(Words(words)),
            None => reader.expected_unshown(value, key, COMMAND),
        }
    }
}

impl Read for Variables {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Variables> {
        let Some(table) = value.get_ref().as_table() else {
            return reader.expected_unshown(value, key, "a table such as { LOG = \"debug\" }");
        };
        let mut variables = BTreeMap::new();
        for (name, value) in table {
            let name: &str = name.get_ref();
            let full = join(key, name);
            if name.is_empty() || name.contains(['=', '\0']) {
                reader.wrong(value, &full, "no environment variable can be called that");
                continue;
            }
            match value.get_ref() {
                DeValue::String(text) if text.contains('\0') => {
                    reader.wrong(value, &full, "the value holds a NUL character, which no variable can");
                }
                DeValue::String(text) => drop(variables.insert(name.to_owned(), Some(text.to_string()))),
                DeValue::Boolean(false) => drop(variables.insert(name.to_owned(), None)),
                _ => {
                    let expected = "a string, or false to unset the variable";
                    reader.expected_unshown::<()>(value, &full, expected);
                }
            }
        }
        Some(Variables(variables))
    }
}

impl Read for JsonTable {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<JsonTable> {
        match json(value, key, reader)? {
            serde_json::Value::Object(members) => Some(JsonTable(members)),
            _ => reader.expected_unshown(value, key, "a table"),
        }
    }
}

impl Read for Need {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Need> {
        const RANGE: &str = "a version range such as \">=1.0\", \"^2\" or \"*\"";
        if let Some(table) = value.get_ref().as_table() {
            let mut fields = super::form::Fields::new(table, key);
            let version = fields.take::<Need>("version", reader);
            let optional = fields.take::<bool>("optional", reader);
            let on_loss = fields.take::<OnLoss>("on_loss", reader);
            fields.finish(reader);
            let version = version.map_or(semver::VersionReq::STAR, |need| need.0.version);
            return Some(Need(Requirement {
                version,
                optional: optional.unwrap_or(false),
                on_loss: on_loss.unwrap_or_default(),
            }));
        }
        match value.get_ref().as_str().map(semver::VersionReq::parse) {
            Some(Ok(version)) => Some(Need(Requirement { version, optional: false, on_loss: OnLoss::Stay })),
            _ => reader.expected(value, key, RANGE),
        }
    }
}

impl Read for OnLoss {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<OnLoss> {
        match value.get_ref().as_str() {
            Some("stay") => Some(OnLoss::Stay),
            Some("restart") => Some(OnLoss::Restart),
            Some("stop") => Some(OnLoss::Stop),
            _ => reader.expected(value, key, "\"stay\" or \"restart\" or \"stop\""),
        }
    }
}

pub(super) fn json(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<serde_json::Value> {
    Some(match value.get_ref() {
        DeValue::String(text) => text.to_string().into(),
        DeValue::Boolean(boolean) => (*boolean).into(),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Integer(_) => match integer(value.get_ref()) {
            Some(integer) => integer.into(),
            None => return reader.expected_unshown(value, key, "an integer within 64 bits"),
        },
        DeValue::Float(float) => {
            let number = float.as_str().parse().ok().and_then(serde_json::Number::from_f64);
            match number {
                Some(number) => number.into(),
                None => return reader.expected_unshown(value, key, "a finite number"),
            }
        }
        DeValue::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| json(item, key, reader)).collect();
            items.into_iter().collect::<Option<Vec<_>>>()?.into()
        }
        DeValue::Table(table) => {
            let mut members = serde_json::Map::new();
            for (name, value) in table {
                let member = json(value, &join(key, name.get_ref()), reader);
                members.extend(member.map(|member| (name.get_ref().to_string(), member)));
            }
            members.into()
        }
    })
}

impl Layer for Variables {
    fn over(self, base: Variables) -> Variables {
        Variables(self.0.over(base.0))
    }
}

impl Layer for JsonTable {
    /// Key by key, also within tables: a person sets the one value they mean.
    fn over(self, base: JsonTable) -> JsonTable {
        let mut merged = base.0;
        for (key, value) in self.0 {
            let value = match (value, merged.remove(&key)) {
                (serde_json::Value::Object(this), Some(serde_json::Value::Object(base))) => {
                    JsonTable(this).over(JsonTable(base)).0.into()
                }
                (value, _) => value,
            };
            merged.insert(key, value);
        }
        JsonTable(merged)
    }
}

macro_rules! replaced_as_a_whole {
    ($($kind:ty),*) => { $(impl Layer for $kind {})* };
}
replaced_as_a_whole!(
    Period,
    PeriodOrOff,
    CallTime,
    Size,
    SizeOrNone,
    Count,
    Share,
    Words,
    Need,
    u32,
    i32,
    bool,
    String,
    Vec<String>
);

macro_rules! described_as {
    ($($kind:ident: $schema:tt,)*) => {$(
        impl JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($kind).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}
described_as! {
    Period: {"type": "string", "pattern": "^ *([0-9]+ *(ms|s|m|min|h|d) *)+$", "examples": ["5s", "250ms", "1m30s"]},
    PeriodOrOff: {"anyOf": [
        {"type": "string", "pattern": "^ *([0-9]+ *(ms|s|m|min|h|d) *)+$", "examples": ["10m"]},
        {"const": false}
    ]},
    CallTime: {"type": "string", "pattern": "^ *([0-9]+ *(ms|s|m|min|h) *)+$", "examples": ["30s"]},
    Size: {"anyOf": [
        {"type": "string", "pattern": "^ *[0-9]+ *(B|K|M|G|KiB|MiB|GiB|kB|KB|MB|GB)? *$", "examples": ["16MiB"]},
        {"type": "integer", "minimum": 1}
    ]},
    SizeOrNone: {"anyOf": [
        {"type": "string", "pattern": "^ *[0-9]+ *(B|K|M|G|KiB|MiB|GiB|kB|KB|MB|GB)? *$", "examples": ["1MiB"]},
        {"type": "integer", "minimum": 0}
    ]},
    Count: {"type": "integer", "minimum": 1, "maximum": 4_294_967_295u32},
    Share: {"type": "number", "minimum": 0, "maximum": 1},
    Words: {"type": "array", "items": {"type": "string"}, "minItems": 1, "examples": [["python3", "mailbox.py"]]},
    Variables: {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, {"const": false}]}},
    JsonTable: {"type": "object"},
    Need: {"anyOf": [
        {"type": "string", "examples": [">=1.0"]},
        {
            "type": "object",
            "properties": {
                "version": {"type": "string"},
                "optional": {"type": "boolean"},
                "on_loss": {"enum": ["stay", "restart", "stop"]}
            },
            "additionalProperties": false
        }
    ]},
}
