//! Changes that an operator makes to what is configured; they survive restarts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Exported, LintFinding, PluginStatus};
use crate::name::{OperationId, PluginName};

/// Params of `add`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddParams {
    /// Its name, which nothing else may have.
    pub name: PluginName,
    /// What a `[plugins.NAME]` table of the config file would say; paths are absolute, or relative to `cwd`.
    pub plugin: serde_json::Map<String, serde_json::Value>,
}

/// The answer to `add`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AddReport {
    /// The plugin, in the state it came to.
    pub plugin: PluginStatus,
    /// What it offers, by the names it is called by.
    pub operations: Vec<OperationId>,
    /// Each operation that it declares: what models know it by, and whether it can be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exported: Vec<Exported>,
    /// What its declarations could say better.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<LintFinding>,
}

/// The answer to `remove`, `enable` and `disable`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChangeReport {
    /// The plugins that are as asked now and were not before.
    pub changed: Vec<PluginName>,
    /// The plugins that were so already.
    pub unchanged: Vec<PluginName>,
}
