//! A digest, as a person copies it from where plugd shows it.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::form::{Found, Layer, Read, Reader};

/// So many digits has a SHA-256 in hexadecimal.
const DIGITS: usize = 64;

/// The SHA-256 of a manifest, in lower-case hexadecimal.
#[derive(Clone)]
pub(super) struct ManifestDigest(pub(super) String);

impl Read for ManifestDigest {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<ManifestDigest> {
        let is_digest =
            |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match value.get_ref().as_str().map(str::trim) {
            Some(text) if is_digest(text) => Some(ManifestDigest(text.to_ascii_lowercase())),
            _ => reader.expected(
                value,
                key,
                "64 hexadecimal digits, the manifest sha256 that `plugd describe NAME` shows",
            ),
        }
    }
}

impl Layer for ManifestDigest {}

impl JsonSchema for ManifestDigest {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "ManifestDigest".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9A-Fa-f]{64}$"})
    }
}
