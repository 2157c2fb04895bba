//! Errors of plugins as their callers may see them; the log has the full text.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use plugd_contract::Contract;
use plugd_protocol::control::{LogEntry, LogStream};
use plugd_protocol::error::{Cause, ErrorClass, ErrorKind, MESSAGE_MAX_CHARS, clip};
use plugd_protocol::plugin::LogLevel;
use plugd_protocol::{CallError, PluginName};
use plugd_supervisor::driver::unix_now;
use serde_json::Value;
use serde_json::value::RawValue;

use super::record::trace_id;
use super::scrub::{HIDDEN, hidden, names_a_secret, scrubbed};
use crate::call::Trail;
use crate::config::{Config, Environment, PluginConfig};
use crate::engine::Shared;
use crate::registry::Registered;

/// A value of a variable, or a key, that a secret goes by is hidden from this length on.
const SECRET_LEAST_BYTES: usize = 4;

/// Any other variable's from this one: shorter ones are words that stand everywhere.
const VALUE_LEAST_BYTES: usize = 6;

/// A word of letters only is told from a secret by its length.
const WORD_MAX_BYTES: usize = 12;

/// Of an error's text so much is looked at: what is beyond is clipped in any case.
const LOOKED_AT_MAX_CHARS: usize = 16 * MESSAGE_MAX_CHARS;

/// The log has a long text in pieces of so many characters.
const LOG_PIECE_CHARS: usize = 2_000;

/// And so many pieces.
const LOG_PIECES_MAX: usize = 32;

/// Causes within causes are looked at so deeply; deeper ones are dropped.
const CAUSES_DEPTH_MAX: usize = 16;

/// What is secret about each plugin, for as long as configuration and manifest are the same.
#[derive(Default)]
pub(crate) struct Redactors(Mutex<HashMap<PluginName, Known>>);

struct Known {
    config: Arc<Config>,
    declared: Option<Arc<Registered>>,
    secrets: Arc<[String]>,
}

impl Redactors {
    /// The values that no caller of a plugin may see, longest first.
    fn secrets(&self, shared: &Shared, plugin: &PluginName) -> Arc<[String]> {
        let config = shared.config.borrow().clone();
        let declared = shared.registry.snapshot().plugin(plugin).cloned();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |one: &Option<Arc<Registered>>| match (one, &declared) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if let Some(known) = known.get(plugin)
            && Arc::ptr_eq(&known.config, &config)
            && same(&known.declared)
        {
            return Arc::clone(&known.secrets);
        }
        let schema = declared.as_ref().and_then(|declared| declared.manifest.config_schema.as_deref());
        let secrets: Arc<[String]> =
            config.plugins.get(plugin).map(|plugin| secrets_of(plugin, schema)).unwrap_or_default().into();
        known.insert(plugin.clone(), Known { config, declared, secrets: Arc::clone(&secrets) });
        secrets
    }
}

/// The error of a run or an admission as its caller may see it; others come back as they are.
///
/// Where something was taken out, the plugin's log gets the full text, without the secrets that
/// plugd itself knows.
pub(crate) fn for_caller(trail: &Trail, error: CallError) -> CallError {
    match error.class() {
        ErrorClass::Plugin | ErrorClass::Process | ErrorClass::Time | ErrorClass::Protocol => {}
        ErrorClass::Request
        | ErrorClass::Argument
        | ErrorClass::Interaction
        | ErrorClass::Permission
        | ErrorClass::Internal => return error,
    }
    // It says where in the data something is wrong, which looks like paths.
    if error.code == ErrorKind::OutputMismatch.code() {
        return error;
    }
    let shared = trail.engine.shared();
    let operation = trail.operation.as_deref();
    // Without an operation it is a plugin that cannot say what it has.
    let named = || trail.engine.configured(trail.request.operation.split('.').next()?);
    let plugin = operation.map(|operation| operation.id.plugin.clone()).or_else(named);
    let mut secrets = match &plugin {
        Some(plugin) => shared.outcomes.redactors.secrets(shared, plugin).to_vec(),
        None => Vec::new(),
    };
    let contract = operation.and_then(|operation| operation.contract().ok());
    if let (Some(arguments), Some(contract)) = (trail.run_as().or_else(|| trail.given()), contract) {
        secrets.extend(declared_secrets(contract, arguments));
        longest_first(&mut secrets);
    }
    let said = trail.given().map(RawValue::get).unwrap_or_default();
    let full = error.message.clone();
    let (error, changed) = Redaction { secrets: &secrets, said, changed: false }.of(error);
    // What a process said at its end is in the log already, line by line.
    if let Some(plugin) = plugin.filter(|_| changed && error.class() == ErrorClass::Plugin) {
        log(trail, &plugin, &hidden(&full, &secrets));
    }
    error
}

struct Redaction<'a> {
    secrets: &'a [String],
    said: &'a str,
    changed: bool,
}

impl Redaction<'_> {
    fn of(mut self, error: CallError) -> (CallError, bool) {
        let error = self.error(error, CAUSES_DEPTH_MAX);
        (error, self.changed)
    }

    fn error(&mut self, mut error: CallError, depth_left: usize) -> CallError {
        error.message = self.text(error.message);
        if error.message.is_empty() {
            error.message = "it failed in words that cannot be shown; the log has them".to_owned();
        }
        error.hint = error.hint.map(|hint| self.text(hint));
        for problem in &mut error.details {
            problem.got = problem.got.take().map(|got| hidden(&got, self.secrets).into_owned());
        }
        error.cause = error.cause.filter(|_| depth_left > 0).map(|cause| {
            let Cause { operation, call_id, error } = *cause;
            Box::new(Cause { operation, call_id, error: self.error(error, depth_left - 1) })
        });
        error
    }

    fn text(&mut self, mut text: String) -> String {
        if text.len() > LOOKED_AT_MAX_CHARS {
            text = clip(text, LOOKED_AT_MAX_CHARS);
            self.changed = true;
        }
        let shown = scrubbed(&text, self.secrets, self.said);
        let shown = clip(shown.into_owned(), MESSAGE_MAX_CHARS);
        self.changed |= shown != text;
        shown
    }
}

/// The full text of an error, in the log of its plugin.
fn log(trail: &Trail, plugin: &PluginName, full: &str) {
    let mut rest = full;
    let traceparent = trail.request.traceparent.as_deref();
    for piece in 0..LOG_PIECES_MAX {
        let end = rest.char_indices().nth(LOG_PIECE_CHARS).map_or(rest.len(), |(end, _)| end);
        let begins = if piece == 0 { "the error in full: " } else { "… " };
        trail.engine.shared().logs.append(LogEntry {
            at: unix_now(),
            plugin: plugin.clone(),
            generation: trail.generation.unwrap_or(0),
            stream: LogStream::Runtime,
            level: LogLevel::Error,
            call_id: Some(trail.call_id.clone()),
            session_id: trail.request.session.as_deref().map(ToOwned::to_owned),
            trace_id: traceparent.and_then(trace_id).map(ToOwned::to_owned),
            text: format!("{begins}{}", &rest[..end]),
        });
        rest = &rest[end..];
        if rest.is_empty() {
            return;
        }
    }
}

/// What a plugin is given that is nobody else's: its variables, and what is secret in its configuration.
fn secrets_of(plugin: &PluginConfig, schema: Option<&RawValue>) -> Vec<String> {
    let environment = Environment::of_process();
    let variables = secret_variables(plugin, &environment);
    let mut secrets: Vec<String> = variables.map(|(_, value)| value).collect();
    collect_named(&plugin.config, "", &mut secrets);
    let declared = schema.and_then(|schema| Contract::compile(schema).ok());
    if let (Some(contract), Ok(config)) = (declared, serde_json::value::to_raw_value(&plugin.config)) {
        secrets.extend(declared_secrets(&contract, &config));
    }
    longest_first(&mut secrets);
    secrets
}

/// The variables that are configured for a plugin and whose values must not be told.
pub(crate) fn secret_variables(
    plugin: &PluginConfig,
    environment: &Environment,
) -> impl Iterator<Item = (String, String)> {
    let own = |name: &String| plugin.env.contains_key(name) || plugin.pass_env.contains(name);
    let passed = plugin.environment(environment).into_iter();
    passed.filter(move |(name, value)| own(name) && tells(name, value))
}

/// Whether the value of a variable is one that must not be told.
fn tells(name: &str, value: &str) -> bool {
    let is_word = value.len() < WORD_MAX_BYTES && value.bytes().all(|byte| byte.is_ascii_alphabetic());
    let long_enough = value.len() >= VALUE_LEAST_BYTES && !is_word;
    long_enough || (names_a_secret(name) && value.len() >= SECRET_LEAST_BYTES)
}

/// The texts under keys that secrets go by.
fn collect_named(value: &Value, name: &str, secrets: &mut Vec<String>) {
    match value {
        Value::String(text) if names_a_secret(name) && text.len() >= SECRET_LEAST_BYTES => {
            secrets.push(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_named(item, name, secrets)),
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| collect_named(member, name, secrets));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The texts that a contract declares sensitive.
fn declared_secrets(contract: &Contract, value: &RawValue) -> Vec<String> {
    let mut secrets = Vec::new();
    if !contract.has_sensitive() {
        return secrets;
    }
    let masked = contract.mask(value);
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    if let (Some(value), Some(masked)) = (read(value.get()), read(&masked)) {
        collect_masked(&value, &masked, &mut secrets);
    }
    secrets
}

/// The texts of a value that are hidden in the other.
fn collect_masked(value: &Value, masked: &Value, secrets: &mut Vec<String>) {
    match (value, masked) {
        (Value::Object(members), Value::Object(masked)) => {
            let both = members.iter().filter_map(|(name, member)| Some((member, masked.get(name)?)));
            both.for_each(|(member, masked)| collect_masked(member, masked, secrets));
        }
        (Value::Array(items), Value::Array(masked)) => {
            items.iter().zip(masked).for_each(|(item, masked)| collect_masked(item, masked, secrets));
        }
        (value, Value::String(mask)) if mask == HIDDEN => collect_texts(value, secrets),
        (_, _) => {}
    }
}

/// Every text and number within a value, as far as it is long enough to be told from others.
fn collect_texts(value: &Value, secrets: &mut Vec<String>) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => return items.iter().for_each(|item| collect_texts(item, secrets)),
        Value::Object(members) => return members.values().for_each(|member| collect_texts(member, secrets)),
        Value::Null | Value::Bool(_) => return,
    };
    if text.len() >= SECRET_LEAST_BYTES {
        secrets.push(text);
    }
}

/// In this order: a secret that is part of another one would leave the rest of that.
fn longest_first(secrets: &mut Vec<String>) {
    secrets.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    secrets.dedup();
    mem::take(secrets).into_iter().filter(|secret| secret != HIDDEN).for_each(|secret| secrets.push(secret));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redacted(error: CallError, secrets: &[&str]) -> (CallError, bool) {
        let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        Redaction { secrets: &secrets, said: "", changed: false }.of(error)
    }

    fn plugin_error(message: &str) -> CallError {
        let mut error = CallError::new(ErrorKind::PluginError, "");
        message.clone_into(&mut error.message);
        error
    }

    /// Row E6.
    #[test]
    fn r_e6_a_message_of_a_megabyte_is_clipped_and_marked() {
        let (error, changed) = redacted(plugin_error(&"x".repeat(1_000_000)), &[]);
        assert!(changed && error.message.chars().count() < MESSAGE_MAX_CHARS + 100);
        assert!(error.message.contains("more characters]"), "{}", error.message);
        let (error, changed) = redacted(plugin_error("no order TK-1"), &[]);
        assert_eq!((error.message.as_str(), changed), ("no order TK-1", false));
    }

    /// Row E5.
    #[test]
    fn r_e5_secrets_are_taken_out_of_hints_and_causes_too() {
        let mut error = plugin_error("the ledger said: token s3cr3t-XYZ is wrong");
        error.hint = Some("look at /srv/shop/ledger.toml".to_owned());
        let inner = plugin_error("postgres://shop:hunter2@db/orders: s3cr3t-XYZ");
        let operation = plugd_protocol::OperationId::parse("ledger.book").expect("an operation");
        let call_id = plugd_protocol::CallId::new("c2");
        error.cause = Some(Box::new(Cause { operation, call_id, error: inner }));
        let (error, changed) = redacted(error, &["s3cr3t-XYZ"]);
        let told = format!("{error:?}");
        for secret in ["s3cr3t", "hunter2", "/srv"] {
            assert!(!told.contains(secret), "{told}");
        }
        assert!(changed && error.message == "the ledger said: token *** is wrong", "{told}");
        let trace = "Traceback (most recent call last):\n  File \"/srv/a.py\", line 1";
        assert!(redacted(plugin_error(trace), &[]).0.message.starts_with("it failed in words"));
    }

    #[test]
    fn values_of_variables_are_secrets_and_plain_words_are_not() {
        for (name, value) in
            [("API_TOKEN", "s3cr"), ("DB", "10.0.0.7:5432"), ("MODE", "averylongsinglewordvalue")]
        {
            assert!(tells(name, value), "{name}");
        }
        for (name, value) in [("LOG", "debug"), ("MODE", "production"), ("API_TOKEN", "abc"), ("N", "12345")]
        {
            assert!(!tells(name, value), "{name}");
        }
        let mut secrets = Vec::new();
        collect_named(
            &json!({"a": {"api_key": "k-123"}, "passwords": ["p-123"], "name": "n-123"}),
            "",
            &mut secrets,
        );
        assert_eq!(secrets, ["k-123", "p-123"]);
        let mut secrets = vec!["ab".to_owned(), "abcd".to_owned(), "***".to_owned(), "abcd".to_owned()];
        longest_first(&mut secrets);
        assert_eq!(secrets, ["abcd", "ab"]);
    }

    #[test]
    fn what_is_masked_is_what_is_secret() {
        let (given, masked) = (
            json!({"user": "ada", "card": {"number": 41111111, "pin": "12"}, "keys": ["k-123", "k-124"]}),
            json!({"user": "ada", "card": "***", "keys": ["***", "***"]}),
        );
        let mut secrets = Vec::new();
        collect_masked(&given, &masked, &mut secrets);
        secrets.sort();
        assert_eq!(secrets, ["41111111", "k-123", "k-124"]);
    }
}
