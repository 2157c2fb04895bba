//! Params from JSON text, with errors that name the field.

use jsonrpsee::types::{ErrorObjectOwned, Params};
use plugd_protocol::control::CallParams;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// A key this much like a known one is probably meant to be it.
const SIMILAR: f64 = 0.7;

/// The params of a method that takes none.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Reads a method's params; absent ones are `{}`.
///
/// # Errors
/// -32602 with a message that names the field, and the nearest one where it is unknown.
pub(crate) fn read<T: DeserializeOwned>(params: &Params<'_>) -> Result<T, ErrorObjectOwned> {
    let text = match params.as_str().map(str::trim_ascii) {
        // What clients send that always send params.
        None | Some("[]" | "null") => "{}",
        Some(text) => text,
    };
    if !text.starts_with('{') {
        return Err(invalid(format!("expected params by name, an object, got {}", kind(text))));
    }
    serde_json::from_str(text).map_err(|error| invalid(explain(text, &error)))
}

/// Reads the params of `call`, whose arguments are an object or null.
///
/// # Errors
/// -32602, as [`read`], and for arguments of another type.
pub(crate) fn read_call(params: &Params<'_>) -> Result<CallParams, ErrorObjectOwned> {
    let call: CallParams = read(params)?;
    match call.arguments.as_deref().map(RawValue::get) {
        Some(arguments) if !arguments.starts_with('{') => {
            Err(invalid(format!("arguments: expected an object or null, got {}", kind(arguments))))
        }
        _ => Ok(call),
    }
}

fn invalid(message: String) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(jsonrpsee::types::error::INVALID_PARAMS_CODE, message, None::<()>)
}

/// The error in words: the field it is about, what is wrong, and the nearest field.
fn explain(text: &str, error: &serde_json::Error) -> String {
    let full = error.to_string();
    // The position is one in the params, of which the sender has no text of its own.
    let what = full.rsplit_once(" at line ").map_or(full.as_str(), |(what, _)| what);
    if let Some(unknown) = quoted(what, "unknown field ") {
        let known: Vec<&str> = what.split('`').skip(3).step_by(2).collect();
        let near = known
            .iter()
            .map(|known| (strsim::jaro_winkler(unknown, known), known))
            .filter(|(likeness, _)| *likeness >= SIMILAR)
            .max_by(|left, right| left.0.total_cmp(&right.0));
        return match near {
            Some((_, near)) => format!("{what}; did you mean `{near}`?"),
            None => what.to_owned(),
        };
    }
    match field_at(text, error) {
        Some(field) => format!("{field}: {what}"),
        None => what.to_owned(),
    }
}

fn quoted<'a>(message: &'a str, before: &str) -> Option<&'a str> {
    message.strip_prefix(before)?.split('`').nth(1)
}

/// The member whose value the error's position lies in.
fn field_at(text: &str, error: &serde_json::Error) -> Option<String> {
    let members: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let line_start: usize = text.split_inclusive('\n').take(error.line().checked_sub(1)?).map(str::len).sum();
    let position = line_start + error.column();
    let starts_at = |value: &RawValue| value.get().as_ptr() as usize - text.as_ptr() as usize;
    // An error a type of our own raised is placed behind its value: the last one begun is meant.
    members
        .into_iter()
        .map(|(name, value)| (starts_at(value), name))
        .filter(|(start, _)| *start < position)
        .max()
        .map(|(_, name)| name)
}

fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plugd_protocol::control::LogsParams;

    fn message(json: &'static str) -> String {
        read_call(&Params::new(Some(json))).expect_err(json).message().to_owned()
    }

    #[test]
    fn a_misspelt_field_gets_the_nearest_one() {
        let said = message(r#"{"operation":"times.now","argments":{}}"#);
        assert!(said.starts_with("unknown field `argments`"), "{said}");
        assert!(said.ends_with("did you mean `arguments`?"), "{said}");
    }

    #[test]
    fn a_value_of_the_wrong_type_names_its_field() {
        let said = message("{\"operation\":\"times.now\",\n \"timeout_ms\": \"5\"}");
        assert!(said.starts_with("timeout_ms: invalid type: string"), "{said}");
        let bad_name =
            read::<LogsParams>(&Params::new(Some(r#"{"plugin":"a b","tail":3}"#))).expect_err("bad name");
        assert!(bad_name.message().starts_with("plugin: \"a b\" is not a plugin name"), "{bad_name}");
        assert!(message("{}").contains("missing field `operation`"));
    }

    #[test]
    fn arguments_are_an_object_or_nothing() {
        for bad in ["[1]", "3", "\"x\"", "true"] {
            let json = format!(r#"{{"operation":"a.b","arguments": {bad}}}"#);
            let error = read_call(&Params::new(Some(&json))).expect_err(bad);
            assert_eq!(error.code(), -32602);
            assert!(error.message().starts_with("arguments: expected an object or null"), "{error}");
        }
        for good in [r#"{"operation":"a.b"}"#, r#"{"operation":"a.b","arguments":null}"#] {
            assert!(read_call(&Params::new(Some(good))).expect("good").arguments.is_none());
        }
    }

    #[test]
    fn digits_of_arguments_are_kept() {
        let json = r#"{"operation":"a.b","arguments": {"n": 9007199254740993.000000001}}"#;
        let call = read_call(&Params::new(Some(json))).expect("good");
        assert_eq!(call.arguments.expect("given").get(), r#"{"n": 9007199254740993.000000001}"#);
    }

    #[test]
    fn no_params_are_an_empty_object() {
        for nothing in [None, Some("[]"), Some("null"), Some("{}")] {
            assert!(read::<LogsParams>(&Params::new(nothing)).is_ok(), "{nothing:?}");
        }
        assert!(message("[\"a.b\"]").contains("by name"));
    }
}
