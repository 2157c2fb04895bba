//! Values with a least: below it a plugin could not live, or would be started over and over.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::form::{Found, Layer, Read, Reader};
use super::value::{Count, Period, Size, duration_text, integer};

/// A duration of at least so many milliseconds.
#[derive(Clone, Copy)]
pub(super) struct PeriodFrom<const MILLIS: u64>(pub(super) Duration);

/// At least so many bytes.
#[derive(Clone, Copy)]
pub(super) struct SizeFrom<const BYTES: u64>(pub(super) u64);

/// Whether there is to be one, as a number: 0 or 1.
#[derive(Clone, Copy)]
pub(super) struct OneAtMost(pub(super) bool);

/// A whole number of at least so much.
#[derive(Clone, Copy)]
pub(super) struct CountFrom<const LEAST: u32>(pub(super) u32);

impl<const MILLIS: u64> Read for PeriodFrom<MILLIS> {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<PeriodFrom<MILLIS>> {
        let Period(period) = Period::read(value, key, reader)?;
        let least = Duration::from_millis(MILLIS);
        if period < least {
            let expected = format!("a duration of at least {:?}", duration_text(least));
            return reader.expected(value, key, &expected);
        }
        Some(PeriodFrom(period))
    }
}

impl<const BYTES: u64> Read for SizeFrom<BYTES> {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<SizeFrom<BYTES>> {
        let Size(size) = Size::read(value, key, reader)?;
        if size < BYTES {
            let least = match BYTES {
                mebibytes if mebibytes % (1 << 20) == 0 => format!("\"{}MiB\"", mebibytes >> 20),
                kibibytes if kibibytes % (1 << 10) == 0 => format!("\"{}KiB\"", kibibytes >> 10),
                bytes => bytes.to_string(),
            };
            return reader.expected(value, key, &format!("a size of at least {least}"));
        }
        Some(SizeFrom(size))
    }
}

impl<const LEAST: u32> Read for CountFrom<LEAST> {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<CountFrom<LEAST>> {
        let expected = || format!("a whole number of at least {LEAST}");
        // The kind's own message would name another least.
        let mut unsaid = Vec::new();
        let mut quiet = Reader { file: reader.file, text: reader.text, problems: &mut unsaid };
        match Count::read(value, key, &mut quiet) {
            Some(Count(count)) if count >= LEAST => Some(CountFrom(count)),
            _ => reader.expected(value, key, &expected()),
        }
    }
}

impl Read for OneAtMost {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<OneAtMost> {
        match integer(value.get_ref()) {
            Some(count @ (0 | 1)) => Some(OneAtMost(count == 1)),
            _ => reader.expected(value, key, "0 or 1"),
        }
    }
}

impl JsonSchema for OneAtMost {
    fn schema_name() -> Cow<'static, str> {
        "OneAtMost".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": 0, "maximum": 1})
    }
}

impl Layer for OneAtMost {}
impl<const MILLIS: u64> Layer for PeriodFrom<MILLIS> {}
impl<const BYTES: u64> Layer for SizeFrom<BYTES> {}
impl<const LEAST: u32> Layer for CountFrom<LEAST> {}

/// Describes one kind to editors as another, with its least where a schema can say it.
macro_rules! described_as {
    ($($kind:ident<$least:ident: $number:ty> as $other:ty, $with:expr;)*) => {$(
        impl<const $least: $number> JsonSchema for $kind<$least> {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                format!("{}{}", stringify!($kind), $least).into()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut schema = <$other>::json_schema(generator);
                $with(&mut schema, $least.into());
                schema
            }
        }
    )*};
}
described_as! {
    PeriodFrom<MILLIS: u64> as Period, unchanged;
    SizeFrom<BYTES: u64> as Size, with_least_integer;
    CountFrom<LEAST: u32> as Count, with_minimum;
}

/// Text has no order that a schema knows.
fn unchanged(_: &mut Schema, _: u64) {}

fn with_minimum(schema: &mut Schema, least: u64) {
    schema.insert("minimum".to_owned(), least.into());
}

fn with_least_integer(schema: &mut Schema, least: u64) {
    if let Some(integer) = schema.get_mut("anyOf").and_then(|kinds| kinds.get_mut(1)) {
        integer["minimum"] = least.into();
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Environment, schema};
    use std::path::Path;

    fn error(line: &str) -> String {
        let text = format!("[plugins.w]\ncommand = [\"w\"]\n{line}\n");
        let environment = Environment::of_process();
        match Config::parse(&text, Path::new("/w/plugd.toml"), &environment) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_no_plugin_can_live_with_is_refused() {
        let cases = [
            (
                "restart = { probe_interval = \"0s\" }",
                "restart.probe_interval: expected a duration of at least \"100ms\"",
            ),
            ("restart = { window = \"999ms\" }", "restart.window: expected a duration of at least \"1s\""),
            ("restart = { backoff = \"0s\" }", "restart.backoff: expected a duration of at least \"1ms\""),
            ("restart = { backoff_cap = \"0s\" }", "backoff_cap: expected a duration of at least \"1ms\""),
            ("ping_interval = \"0s\"", "ping_interval: expected a duration of at least \"100ms\""),
            ("describe_timeout = \"0s\"", "describe_timeout: expected a duration of at least \"1ms\""),
            ("init_timeout = \"0s\"", "init_timeout: expected"),
            ("start_timeout_max = \"0s\"", "start_timeout_max: expected"),
            ("queue_timeout = \"0s\"", "queue_timeout: expected"),
            ("cancel_grace = \"0ms\"", "cancel_grace: expected"),
            ("frame_limit = 10", "frame_limit: expected a size of at least \"1KiB\", got the integer 10"),
            ("rlimits = { cpu_time = \"0s\" }", "rlimits.cpu_time: expected a duration of at least \"1s\""),
            (
                "rlimits = { open_files = 2 }",
                "open_files: expected a whole number of at least 8, got the integer 2",
            ),
            (
                "rlimits = { address_space = \"1MiB\" }",
                "address_space: expected a size of at least \"16MiB\"",
            ),
            ("token_ttl = \"0s\"", "token_ttl: expected a duration of at least \"1s\""),
            ("[record]\nkeep_for = \"59m\"", "record.keep_for: expected a duration of at least \"1h\""),
            ("[record]\nkeep_size = \"1B\"", "record.keep_size: expected a size of at least \"4MiB\""),
            ("drain_timeout = \"99999999h\"", "drain_timeout: expected a duration of at most \"365d\""),
            ("idle_timeout = \"366d\"", "idle_timeout: expected a duration of at most \"365d\""),
            (
                "log_size = 0",
                "log_size: expected a size of more than nothing, such as \"16MiB\", got the integer 0",
            ),
        ];
        for (line, expected) in cases {
            let error = error(line);
            assert!(error.contains(expected) && error.lines().count() == 1, "{line}: {error}");
        }
    }

    #[test]
    fn the_least_itself_will_do() {
        for line in [
            "restart = { probe_interval = \"100ms\", window = \"1s\", backoff = \"1ms\", backoff_cap = \"1ms\" }",
            "ping_interval = \"100ms\"\nframe_limit = \"1KiB\"\ndrain_timeout = \"365d\"",
            "token_ttl = \"1s\"\n[record]\nkeep_for = \"1h\"\nkeep_size = \"4MiB\"",
            "rlimits = { cpu_time = \"1s\", open_files = 8, address_space = \"16MiB\" }",
        ] {
            assert_eq!(error(line), "", "{line}");
        }
    }

    #[test]
    fn editors_are_told_the_least() {
        let schema = schema().to_string();
        for part in ["\"minimum\":8", "\"minimum\":1024", "\"minimum\":16777216"] {
            assert!(schema.contains(part), "{part}");
        }
    }
}
