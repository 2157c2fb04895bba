//! `[callers]`: the profiles of who calls, and what each may use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use plugd_protocol::error::ErrorKind;
use plugd_protocol::manifest::Audience;
use plugd_protocol::{CallError, Operation, OperationId, PluginName};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::de::DeValue;

use super::file::CallerFile;
use super::form::{At, Found, Layer, Read, Reader, join};
use crate::outcome::builtin::is_builtin;

/// What one caller may use; a call without a profile is the owner's, who may use everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    name: Arc<str>,
    /// None allows everything.
    allow: Option<Vec<Glob>>,
    deny: Vec<Glob>,
    scopes: BTreeSet<String>,
}

/// A pattern of operation ids: `*` stands for any characters, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob(String);

/// Patterns as written.
#[derive(Clone)]
pub(super) struct Globs(Vec<Glob>);

/// A profile's name: of the same form as a plugin's, so that it is never taken for `plugin:NAME`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallerName(String);

impl Profile {
    /// The profile's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether an operation that declares this scope may be used: what is denied never, nor what is
    /// not allowed, nor what wants a scope that the profile does not hold.
    ///
    /// # Errors
    /// 7004, or 7005 where only the scope is missing.
    pub fn allows(&self, id: &OperationId, scope: Option<&str>) -> Result<(), CallError> {
        self.allows_name(&id.to_string())?;
        match scope {
            Some(scope) if !self.scopes.contains(scope) => {
                let message = format!("{} lacks the scope {scope:?} that {id} declares", self.name);
                Err(CallError::new(ErrorKind::ScopeMissing, message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The same by name alone, while what the operation declares is not known.
    pub(crate) fn allows_name(&self, id: &str) -> Result<(), CallError> {
        self.does_not_deny(id)?;
        match &self.allow {
            Some(allowed) if !allowed.iter().any(|glob| glob.matches(id)) => {
                Err(self.refused(id, "its profile does not allow it"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn does_not_deny(&self, id: &str) -> Result<(), CallError> {
        match self.deny.iter().find(|glob| glob.matches(id)) {
            Some(Glob(denied)) => Err(self.refused(id, &format!("its profile denies {denied:?}"))),
            None => Ok(()),
        }
    }

    fn refused(&self, id: &str, why: &str) -> CallError {
        CallError::new(ErrorKind::NotAllowed, format!("{} may not use {id}: {why}", self.name))
    }

    /// Whether an operation may be used, all it declares counted: services are for plugins and the
    /// owner, what plugd offers itself is for all who are not denied it.
    ///
    /// # Errors
    /// As [`Profile::allows`].
    pub fn may_use(&self, id: &OperationId, operation: &Operation) -> Result<(), CallError> {
        if is_builtin(id) {
            return self.does_not_deny(&id.to_string());
        }
        self.allows(id, operation.scope.as_deref())?;
        match operation.audience {
            Audience::Callers => Ok(()),
            Audience::Plugins => Err(self.refused(&id.to_string(), "it is a service for plugins")),
        }
    }

    pub(super) fn show(&self) -> serde_json::Value {
        let texts = |globs: &[Glob]| globs.iter().map(|Glob(text)| text.clone()).collect::<Vec<_>>();
        serde_json::json!({
            "allow": self.allow.as_deref().map(texts),
            "deny": texts(&self.deny),
            "scopes": self.scopes,
        })
    }
}

impl Glob {
    fn new(text: &str) -> Option<Glob> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.*".contains(&byte);
        let reaches_an_operation = text.contains(['.', '*']);
        (reaches_an_operation && text.bytes().all(plain)).then(|| Glob(text.to_owned()))
    }

    fn matches(&self, id: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == id };
        let Some(mut left) = id.strip_prefix(first) else { return false };
        let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in between.split('*') {
            match left.find(part) {
                Some(at) => left = &left[at + part.len()..],
                None => return false,
            }
        }
        left.ends_with(last)
    }
}

/// The profiles as the program uses them, by name.
pub(super) fn profiles(written: BTreeMap<CallerName, At<CallerFile>>) -> BTreeMap<String, Arc<Profile>> {
    let profile = |(CallerName(name), At { value: file, .. }): (CallerName, At<CallerFile>)| {
        let profile = Profile {
            name: name.as_str().into(),
            allow: file.allow.map(|globs| globs.0),
            deny: file.deny.map(|globs| globs.0).unwrap_or_default(),
            scopes: file.scopes.unwrap_or_default().into_iter().collect(),
        };
        (name, Arc::new(profile))
    };
    written.into_iter().map(profile).collect()
}

impl Read for Globs {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<Globs> {
        const GLOBS: &str = "a list of patterns such as [\"orders.*\"]";
        let Some(items) = value.get_ref().as_array() else { return reader.expected(value, key, GLOBS) };
        let mut globs = Vec::new();
        // Every wrong one is told of, not the first alone.
        for item in items {
            match item.get_ref().as_str() {
                Some(text) => match Glob::new(text) {
                    Some(glob) => globs.push(glob),
                    None => {
                        let near = format!("\"{text}.*\"");
                        let example = if PluginName::new(text).is_ok() { &near } else { "\"orders.*\"" };
                        let expected = format!("plugin.operation, or a pattern such as {example}");
                        reader.expected::<Globs>(item, key, &expected);
                    }
                },
                None => drop(reader.expected::<Globs>(item, key, "a string such as \"orders.*\"")),
            }
        }
        (globs.len() == items.len()).then_some(Globs(globs))
    }
}

impl Layer for Globs {}

impl JsonSchema for Globs {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Globs".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": {"type": "string", "pattern": "^[A-Za-z0-9_*-]*[.*][A-Za-z0-9_.*-]*$", "examples": ["orders.*"]}
        })
    }
}

impl<T: Read> Read for BTreeMap<CallerName, T> {
    fn read(value: &Found<'_>, key: &str, reader: &mut Reader<'_>) -> Option<BTreeMap<CallerName, T>> {
        let DeValue::Table(table) = value.get_ref() else {
            return reader.expected(value, key, "a table with a caller's name for each key");
        };
        let mut map = BTreeMap::new();
        for (name, value) in table {
            let read = T::read(value, &join(key, name.get_ref()), reader);
            if PluginName::new(name.get_ref()).is_ok() {
                map.extend(read.map(|read| (CallerName(name.get_ref().to_string()), read)));
            } else {
                let message = format!(
                    "{:?} is not a caller's name: expected 1 to 64 letters, digits, '_' or '-', \
                     beginning with a letter or digit",
                    name.get_ref()
                );
                reader.wrong(value, key, &message);
            }
        }
        Some(map)
    }
}

impl JsonSchema for CallerName {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CallerName".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(glob: &str, matching: &[&str], others: &[&str]) {
        let glob = Glob::new(glob).unwrap();
        for id in matching {
            assert!(glob.matches(id), "{glob:?} {id}");
        }
        for id in others {
            assert!(!glob.matches(id), "{glob:?} {id}");
        }
    }

    #[test]
    fn a_star_stands_for_anything_and_nothing() {
        check("orders.*", &["orders.query", "orders."], &["ticket.query", "my_tickets.query"]);
        check("*", &["a.b", "orders.query"], &[]);
        check("*.query_*", &["a.query_x", "b.query_"], &["a.close", "a.requery"]);
        check("a.b", &["a.b"], &["a.bc", "xa.b"]);
        check("a*.b*c", &["a.bc", "ax.bxxc", "a.bcc"], &["a.b", "a.bcd"]);
        check("*b*b", &["bb", "a.bab"], &["b", "ab", "bba"]);
        for bad in ["orders", "", "a b.*", "a.?", "天气.*"] {
            assert_eq!(Glob::new(bad), None, "{bad}");
        }
    }

    fn profile(allow: Option<&[&str]>, deny: &[&str], scopes: &[&str]) -> Profile {
        let globs = |texts: &[&str]| texts.iter().map(|text| Glob::new(text).unwrap()).collect();
        Profile {
            name: "ci".into(),
            allow: allow.map(globs),
            deny: globs(deny),
            scopes: scopes.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn what_is_denied_is_denied_whatever_is_allowed() {
        let code = |profile: &Profile, id: &str, scope: Option<&str>| {
            profile.allows(&OperationId::parse(id).unwrap(), scope).map_err(|error| error.code)
        };
        let all = profile(None, &[], &["read"]);
        assert_eq!(code(&all, "a.b", None), Ok(()));
        assert_eq!(code(&all, "a.b", Some("read")), Ok(()));
        assert_eq!(code(&all, "a.b", Some("write")), Err(7005));
        let some = profile(Some(&["a.*"]), &["*.delete"], &[]);
        assert_eq!(code(&some, "a.b", None), Ok(()));
        assert_eq!(code(&some, "a.delete", None), Err(7004));
        assert_eq!(code(&some, "b.b", None), Err(7004));
        assert_eq!(code(&some, "b.b", Some("read")), Err(7004));
        assert_eq!(
            code(&profile(Some(&[]), &[], &[]), "a.b", None),
            Err(7004),
            "an empty list allows nothing"
        );
    }

    #[test]
    fn a_service_is_for_plugins_and_the_owner() {
        let operation: Operation =
            serde_json::from_str(r#"{"name":"b","audience":"plugins","input_schema":{}}"#).unwrap();
        let id = OperationId::parse("a.b").unwrap();
        assert_eq!(profile(None, &[], &[]).may_use(&id, &operation).unwrap_err().code, 7004);
    }

    #[test]
    fn what_plugd_offers_itself_is_for_all_but_those_who_are_denied_it() {
        let operation: Operation = serde_json::from_str(r#"{"name":"read","input_schema":{}}"#).unwrap();
        let id = OperationId::parse("plugd.read").unwrap();
        assert!(profile(Some(&["a.*"]), &[], &[]).may_use(&id, &operation).is_ok());
        assert_eq!(profile(None, &["plugd.*"], &[]).may_use(&id, &operation).unwrap_err().code, 7004);
    }
}
