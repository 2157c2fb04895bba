//! What is wrong with a JSON text, in the words of whoever wrote it instead of the reader's.

/// What was expected and what came, without the types of the program that read it.
///
/// Lines and columns are left out: they count in a text that its author never sees.
pub fn plain(error: &serde_json::Error) -> String {
    plain_at("", error)
}

/// As [`plain`], of the member of that name: it may say more of what is expected.
pub(crate) fn plain_at(member: &str, error: &serde_json::Error) -> String {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    in_plain_words(member, said).unwrap_or_else(|| said.to_owned())
}

/// What the reader said, where that is of a kind that can be said better.
pub(crate) fn in_plain_words(member: &str, said: &str) -> Option<String> {
    if let Some(rest) = said.strip_prefix("missing field ") {
        return Some(format!("{} is missing", rest.replace('`', "\"")));
    }
    if let Some(rest) = said.strip_prefix("unknown variant ") {
        let (got, options) = rest.split_once(", expected ")?;
        return Some(format!("expected {}, got {}", options.replace('`', "\""), got.replace('`', "\"")));
    }
    let rest = said.strip_prefix("invalid type: ").or_else(|| said.strip_prefix("invalid value: "))?;
    // What came is the author's own text, and may hold these words too.
    let (got, wanted) = rest.rsplit_once(", expected ")?;
    Some(format!("expected {}, got {}", wanted_in_words(member, wanted), got_in_words(got)))
}

fn wanted_in_words<'a>(member: &str, wanted: &'a str) -> &'a str {
    match (member, wanted) {
        ("timeout_ms" | "stall_timeout_ms", "u64") => "whole milliseconds, such as 5000",
        ("cache_ttl", "u64") => "whole seconds, such as 60",
        ("result_limit", "u64") => "a whole number of bytes, such as 65536",
        (_, "u8" | "u16" | "u32" | "u64" | "usize") => "a whole number from 0 on",
        (_, "i8" | "i16" | "i32" | "i64" | "isize") => "a whole number",
        (_, "f32" | "f64") => "a number",
        (_, "a boolean") => "true or false",
        (_, "a sequence") => "an array",
        (_, "a map") => "an object",
        (_, "string or map") => "one of its names",
        (_, wanted) if wanted.starts_with("struct ") => "an object",
        (_, wanted) => wanted,
    }
}

fn got_in_words(got: &str) -> String {
    match got {
        "map" => "an object".to_owned(),
        "sequence" => "an array".to_owned(),
        "unit" | "unit value" => "null".to_owned(),
        _ => {
            let number = got.strip_prefix("integer ").or_else(|| got.strip_prefix("floating point "));
            number.or_else(|| got.strip_prefix("boolean ")).unwrap_or(got).replace('`', "")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::manifest::{Confirm, Features};

    #[derive(Debug, Deserialize)]
    struct Named {
        #[serde(rename = "name")]
        _name: String,
    }

    #[track_caller]
    fn check<T: DeserializeOwned + std::fmt::Debug>(member: &str, json: &str, expected: &str) {
        let error = serde_json::from_str::<T>(json).expect_err("not of that type");
        assert_eq!(plain_at(member, &error), expected);
    }

    #[test]
    fn what_was_expected_is_said_without_the_readers_types() {
        check::<u64>("timeout_ms", "\"5s\"", "expected whole milliseconds, such as 5000, got string \"5s\"");
        check::<u64>("cache_ttl", "1.5", "expected whole seconds, such as 60, got 1.5");
        check::<u32>("protocol", "\"1\"", "expected a whole number from 0 on, got string \"1\"");
        check::<u32>("protocol", "-1", "expected a whole number from 0 on, got -1");
        check::<i32>("priority", "{}", "expected a whole number, got an object");
        check::<bool>("", "null", "expected true or false, got null");
        check::<Vec<u8>>("examples", "\"a, expected b\"", "expected an array, got string \"a, expected b\"");
        check::<String>("version", "[1]", "expected a string, got an array");
        check::<Features>("features", "true", "expected an object, got true");
        check::<Confirm>(
            "confirm",
            "\"ask\"",
            "expected one of \"auto\", \"always\", \"never\", got \"ask\"",
        );
        check::<Named>("", "{}", "\"name\" is missing");
        check::<Named>("", "{", "EOF while parsing an object");
    }
}
