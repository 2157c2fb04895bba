//! Names and ids: what a plugin, an operation and a call are called.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names are at most this many bytes long.
pub const NAME_MAX: usize = 64;

/// A plugin's configured name: a letter or digit, then letters, digits, `_` and `-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct PluginName(Arc<str>);

/// An operation's name within its plugin: `[a-z0-9_]{1,64}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct OperationName(Arc<str>);

/// An operation's identity everywhere: `plugin.operation`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    /// The plugin that offers it.
    pub plugin: PluginName,
    /// Its name there.
    pub operation: OperationName,
}

/// One call's id, plugd's own (a UUIDv7); plugins treat it as opaque text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String")]
#[schemars(with = "String")]
pub struct CallId(Arc<str>);

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not a plugin's name.
    #[error(
        "{given:?} is not a plugin name: expected 1 to 64 letters, digits, '_' or '-', beginning with a letter or digit"
    )]
    Plugin {
        /// What was given.
        given: String,
    },
    /// Not an operation's name.
    #[error("{given:?} is not an operation name: expected 1 to 64 of a-z, 0-9 and '_'{}", suggestion.as_ref().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default())]
    Operation {
        /// What was given.
        given: String,
        /// The nearest legal spelling, if there is one.
        suggestion: Option<String>,
    },
    /// Not of the form `plugin.operation`.
    #[error("{given:?} is not an operation: expected plugin.operation")]
    Identity {
        /// What was given.
        given: String,
    },
}

impl PluginName {
    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`NameError::Plugin`] when it is not one.
    pub fn new(name: &str) -> Result<PluginName, NameError> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let well_formed = !name.is_empty()
            && name.len() <= NAME_MAX
            && name.as_bytes()[0].is_ascii_alphanumeric()
            && name.bytes().all(legal);
        if well_formed {
            Ok(PluginName(name.into()))
        } else {
            Err(NameError::Plugin { given: name.to_owned() })
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OperationName {
    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`NameError::Operation`], with the nearest legal spelling, when it is not one.
    pub fn new(name: &str) -> Result<OperationName, NameError> {
        let well_formed = !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(operation_byte);
        if well_formed {
            Ok(OperationName(name.into()))
        } else {
            Err(NameError::Operation { given: name.to_owned(), suggestion: snake_case(name) })
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OperationId {
    /// Parses `plugin.operation`.
    ///
    /// # Errors
    /// [`NameError`] naming the part that is wrong.
    pub fn parse(text: &str) -> Result<OperationId, NameError> {
        let (plugin, operation) =
            text.split_once('.').ok_or_else(|| NameError::Identity { given: text.to_owned() })?;
        Ok(OperationId { plugin: PluginName::new(plugin)?, operation: OperationName::new(operation)? })
    }
}

impl CallId {
    /// Wraps an id.
    pub fn new(id: impl Into<Arc<str>>) -> CallId {
        CallId(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn operation_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

/// `queryTicketStatus` and `query-ticket-status` as `query_ticket_status`.
fn snake_case(name: &str) -> Option<String> {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            if !snake.is_empty() && !snake.ends_with('_') {
                snake.push('_');
            }
            snake.push(character.to_ascii_lowercase());
        } else if character.is_ascii_lowercase() || character.is_ascii_digit() {
            snake.push(character);
        } else if !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
    }
    let snake = snake.trim_end_matches('_').to_owned();
    (!snake.is_empty() && snake.len() <= NAME_MAX).then_some(snake)
}

impl TryFrom<String> for PluginName {
    type Error = NameError;
    fn try_from(name: String) -> Result<PluginName, NameError> {
        PluginName::new(&name)
    }
}

impl TryFrom<String> for OperationName {
    type Error = NameError;
    fn try_from(name: String) -> Result<OperationName, NameError> {
        OperationName::new(&name)
    }
}

impl From<String> for CallId {
    fn from(id: String) -> CallId {
        CallId(id.into())
    }
}

impl Serialize for OperationId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for OperationId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<OperationId, D::Error> {
        let text = String::deserialize(deserializer)?;
        OperationId::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for OperationId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OperationId".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

macro_rules! shown_as_text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{:?}", self.0)
            }
        }
    )*};
}
shown_as_text!(PluginName, OperationName, CallId);

impl fmt::Display for OperationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.plugin, self.operation)
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_operation_name_gets_its_legal_spelling() {
        let suggest = |name: &str| match OperationName::new(name) {
            Err(NameError::Operation { suggestion, .. }) => suggestion,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(suggest("queryTicketStatus").as_deref(), Some("query_ticket_status"));
        assert_eq!(suggest("query-status").as_deref(), Some("query_status"));
        assert_eq!(suggest("查询"), None);
        assert!(OperationName::new("query_status2").is_ok());
    }

    #[test]
    fn plugin_names_hold_no_dot_space_or_control_character() {
        for bad in ["", "a.b", "a b", "-a", "_a", "a\u{1b}[2J", &"a".repeat(65)] {
            assert!(PluginName::new(bad).is_err(), "{bad:?}");
        }
        assert!(PluginName::new("my-Plugin_2").is_ok());
    }

    #[test]
    fn an_identity_is_plugin_dot_operation() {
        let id = OperationId::parse("tickets.query_status").expect("well formed");
        assert_eq!(id.to_string(), "tickets.query_status");
        assert!(OperationId::parse("tickets").is_err());
        assert!(OperationId::parse("tickets.query.status").is_err());
    }
}
