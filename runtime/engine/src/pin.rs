//! Manifests that the configuration pins: what a plugin declares is the one thing, or it is refused.

use std::collections::BTreeMap;

use plugd_contract::{canonical, changed_claims};
use plugd_protocol::Manifest;
use plugd_protocol::control::{ClaimsChanged, UnixMillis};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::config::PluginConfig;
use crate::digests::hex;

/// So many changes are named where a manifest is refused.
const SHOWN: usize = 5;

/// SHA-256 of a manifest in its canonical form, in hexadecimal.
pub(crate) fn digest(manifest: &RawValue) -> String {
    hex(&Sha256::digest(canonical(manifest)))
}

/// Whether a plugin may declare this: it is what is pinned, or nothing is.
pub(crate) fn allows(plugin: &PluginConfig, manifest: &RawValue) -> bool {
    plugin.manifest_sha256.as_ref().is_none_or(|pinned| *pinned == digest(manifest))
}

/// Why a plugin may not declare this; `known` are manifests of it, of which one may be the pinned one.
pub(crate) fn refusal<'a>(
    plugin: &PluginConfig,
    manifest: &RawValue,
    known: impl IntoIterator<Item = &'a RawValue>,
) -> Option<String> {
    let pinned = plugin.manifest_sha256.as_ref()?;
    let digest = digest(manifest);
    if *pinned == digest {
        return None;
    }
    let was = known.into_iter().find(|known| self::digest(known) == *pinned);
    let what = was.and_then(|was| difference(was, manifest));
    let what = what.map(|what| format!("what changed: {what}; ")).unwrap_or_default();
    Some(format!(
        "what it declares is not what is pinned: manifest_sha256 is {pinned}, and its manifest has {digest}; \
         {what}if you agree to it, set manifest_sha256 = \"{digest}\""
    ))
}

/// What is different, in words; none where one of them cannot be read.
fn difference(was: &RawValue, is: &RawValue) -> Option<String> {
    let (was, is) = (Manifest::parse(was.get()).ok()?, Manifest::parse(is.get()).ok()?);
    let changes = changed_claims(&was, &is);
    let told = match changes.is_empty() {
        true => texts(&was, &is),
        false => {
            let version = is.version.clone();
            ClaimsChanged { version, since: UnixMillis(0), changes, more: 0 }.in_words(SHOWN)
        }
    };
    match was.version == is.version {
        true => Some(told),
        false => Some(format!("version {} → {}; {told}", was.version, is.version)),
    }
}

/// Which texts differ between manifests that claim the same, by operation.
fn texts(was: &Manifest, is: &Manifest) -> String {
    let before: BTreeMap<_, _> =
        was.operations.iter().map(|operation| (&operation.name, operation)).collect();
    let mut changed = Vec::new();
    for operation in &is.operations {
        let Some(before) = before.get(&operation.name) else { continue };
        let parts = [
            ("title", before.title != operation.title),
            ("description", before.description != operation.description),
            ("when_to_use", before.when_to_use != operation.when_to_use),
            ("when_not_to_use", before.when_not_to_use != operation.when_not_to_use),
        ];
        let parts: Vec<&str> =
            parts.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect();
        if !parts.is_empty() {
            changed.push(format!("{}: {}", operation.name, parts.join(", ")));
        }
    }
    if changed.is_empty() {
        return "no operation, effect, schema, confirmation or scope, and no description of an operation"
            .to_owned();
    }
    let more = changed.len().saturating_sub(SHOWN);
    changed.truncate(SHOWN);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("only texts: {}{more}", changed.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment};

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn plugin(lines: &str) -> PluginConfig {
        let text = format!("[daemon]\nstate_dir = \"s\"\n[plugins.p]\ncommand = [\"./p\"]\n{lines}");
        let environment = Environment::of([("PATH", "/bin")]);
        let config = Config::parse(&text, "/none/plugd.toml".as_ref(), &environment).unwrap();
        config.plugins.into_values().next().unwrap()
    }

    /// Row D19.
    #[test]
    fn d19_only_the_pinned_manifest_is_allowed_however_it_is_written_down() {
        let one = raw(
            r#"{"protocol":1,"name":"p","version":"1","operations":[{"name":"a","input_schema":{},"effects":{"read_only":true}}]}"#,
        );
        let anew = raw(
            r#"{ "version":"1", "operations":[{"effects":{"read_only":true},"name":"a","input_schema":{}}],"name":"p","protocol":1}"#,
        );
        let pinned = plugin(&format!("manifest_sha256 = \"{}\"", digest(&one)));
        assert!(allows(&pinned, &one) && allows(&pinned, &anew));
        assert_eq!(refusal(&pinned, &anew, []), None);
        let other = raw(&one.get().replace("true", "false"));
        assert!(!allows(&pinned, &other) && allows(&plugin(""), &other));
        assert_eq!(refusal(&plugin(""), &other, []), None);
        let reason = refusal(&pinned, &other, [&*one]).unwrap();
        let (was, is) = (digest(&one), digest(&other));
        assert_eq!(
            reason,
            format!(
                "what it declares is not what is pinned: manifest_sha256 is {was}, and its manifest has {is}; \
                 what changed: a: read_only true → false; if you agree to it, set manifest_sha256 = \"{is}\""
            )
        );
    }

    #[test]
    fn a_text_that_changed_is_named() {
        let manifest = |description: &str| {
            raw(&format!(
                r#"{{"protocol":1,"name":"p","version":"1","operations":[{{"name":"a","description":"{description}","input_schema":{{}}}}]}}"#
            ))
        };
        let (one, two) = (manifest("Reads."), manifest("Reads all."));
        let pinned = plugin(&format!("manifest_sha256 = \"{}\"", digest(&one)));
        let reason = refusal(&pinned, &two, [&*one]).unwrap();
        assert!(reason.contains("; what changed: only texts: a: description; if you agree"), "{reason}");
    }

    #[test]
    fn what_changed_is_told_where_the_pinned_manifest_is_known() {
        let one = raw(r#"{"protocol":1,"name":"p","version":"1","operations":[]}"#);
        let pinned = plugin(&format!("manifest_sha256 = \"{}\"", digest(&one)));
        let two = raw(r#"{"protocol":1,"name":"p","version":"2","operations":[]}"#);
        let unknown = refusal(&pinned, &two, [&*two]).unwrap();
        assert!(!unknown.contains("what changed"), "{unknown}");
        let known = refusal(&pinned, &two, [&*two, &*one]).unwrap();
        assert!(known.contains("; what changed: version 1 → 2; no operation, effect, schema"), "{known}");
    }
}
