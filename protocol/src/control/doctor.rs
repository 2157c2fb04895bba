//! What is wrong, why, and what to do about it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::name::PluginName;

/// The answer to `doctor`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DoctorReport {
    /// What was looked at and found, the worst first.
    pub findings: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The plugin it is about; absent where it is about plugd itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginName>,
    /// What was found, in a sentence.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What supports it: last words, lines of a log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something does not work.
    Problem,
    /// It works, and something about it should be known.
    Warning,
    /// Fine.
    Ok,
}
