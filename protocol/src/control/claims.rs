//! What stands behind the claims of a plugin, and what it claims otherwise than before.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::UnixMillis;
use crate::name::OperationName;

/// What stands behind the effects that a plugin declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectsBacking {
    /// Its word alone: nothing verifies them.
    Claimed,
    /// All its operations are declared read-only, and its process can write no file.
    Enforced,
}

/// What a plugin declares otherwise than before, though its version is the same.
///
/// It stands until the version changes, the plugin declares again what it did before, an operator
/// agrees by `reload` of the plugin, or the new manifest is pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimsChanged {
    /// The version under which both were declared.
    pub version: String,
    /// When the latest change was seen.
    pub since: UnixMillis,
    /// What is different, by operation; at most 50.
    pub changes: Vec<ClaimChange>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

/// One thing that is declared otherwise than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimChange {
    /// Of which operation.
    pub operation: OperationName,
    /// Which part of its declaration.
    pub part: ClaimPart,
    /// What was declared, where that is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// What is declared now, where that is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// A part of a declaration that callers go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClaimPart {
    /// The operation is new.
    #[serde(rename = "added")]
    Added,
    /// The operation is gone.
    #[serde(rename = "removed")]
    Removed,
    /// Whether it changes nothing.
    #[serde(rename = "effects.read_only")]
    ReadOnly,
    /// Whether it may destroy something.
    #[serde(rename = "effects.destructive")]
    Destructive,
    /// Whether running it twice is as good as once.
    #[serde(rename = "effects.idempotent")]
    Idempotent,
    /// Whether it reaches beyond this machine.
    #[serde(rename = "effects.open_world")]
    OpenWorld,
    /// Whether a person must agree to it.
    #[serde(rename = "confirm")]
    Confirm,
    /// What a caller's profile must hold.
    #[serde(rename = "scope")]
    Scope,
    /// What its arguments are.
    #[serde(rename = "input_schema")]
    InputSchema,
    /// What its data is.
    #[serde(rename = "output_schema")]
    OutputSchema,
}

impl ClaimPart {
    /// The part in a sentence.
    fn words(self) -> &'static str {
        match self {
            ClaimPart::Added => "added",
            ClaimPart::Removed => "removed",
            ClaimPart::ReadOnly => "read_only",
            ClaimPart::Destructive => "destructive",
            ClaimPart::Idempotent => "idempotent",
            ClaimPart::OpenWorld => "open_world",
            ClaimPart::Confirm => "confirm",
            ClaimPart::Scope => "scope",
            ClaimPart::InputSchema => "input schema",
            ClaimPart::OutputSchema => "output schema",
        }
    }
}

impl fmt::Display for ClaimChange {
    /// Such as `wipe: read_only true → false`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.operation, self.part.words())?;
        match (self.part, &self.from, &self.to) {
            (ClaimPart::Added | ClaimPart::Removed, _, _) => Ok(()),
            (_, Some(from), Some(to)) => write!(formatter, " {from} → {to}"),
            (_, None, _) | (_, _, None) => formatter.write_str(" changed"),
        }
    }
}

impl ClaimsChanged {
    /// The first so many changes on one line, and how many more there are.
    pub fn in_words(&self, shown: usize) -> String {
        let told: Vec<String> = self.changes.iter().take(shown).map(ToString::to_string).collect();
        let left_out = self.changes.len().saturating_sub(shown);
        match u64::try_from(left_out).unwrap_or(u64::MAX).saturating_add(self.more) {
            0 => told.join("; "),
            more => format!("{}; and {more} more", told.join("; ")),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(part: ClaimPart, from: Option<&str>, to: Option<&str>) -> ClaimChange {
        let operation = OperationName::new("wipe").expect("a name");
        ClaimChange { operation, part, from: from.map(Into::into), to: to.map(Into::into) }
    }

    #[test]
    fn a_change_is_told_in_words_and_has_a_name_on_the_wire() {
        for (change, told, part) in [
            (
                change(ClaimPart::ReadOnly, Some("true"), Some("false")),
                "wipe: read_only true → false",
                "effects.read_only",
            ),
            (change(ClaimPart::InputSchema, None, None), "wipe: input schema changed", "input_schema"),
            (change(ClaimPart::Removed, None, None), "wipe: removed", "removed"),
        ] {
            assert_eq!(change.to_string(), told);
            assert_eq!(serde_json::to_value(&change).expect("JSON")["part"], part);
        }
    }

    #[test]
    fn more_changes_than_are_shown_are_counted() {
        let changed = ClaimsChanged {
            version: "1.0.0".to_owned(),
            since: UnixMillis(0),
            changes: vec![change(ClaimPart::Added, None, None); 4],
            more: 7,
        };
        assert_eq!(changed.in_words(1), "wipe: added; and 10 more");
        let all = ClaimsChanged { more: 0, ..changed };
        assert_eq!(all.in_words(4), "wipe: added; wipe: added; wipe: added; wipe: added");
    }
}
