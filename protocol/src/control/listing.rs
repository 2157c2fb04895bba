//! What there is: plugins, operations, and where they came from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Exported, PluginState};
use crate::manifest::{Features, Operation, Quarantined, Requirement};
use crate::name::{OperationId, PluginName};

/// Params of `list`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListParams {
    /// Only plugins in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PluginState>,
    /// For which caller: only what that profile may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// The answer to `list`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListReport {
    /// Every plugin, by name.
    pub plugins: Vec<PluginListing>,
    /// The config file in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Each folder that was scanned.
    pub looked_in: Vec<String>,
    /// What was found there and passed over.
    pub skipped: Vec<Skipped>,
}

/// A file that a scan passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Which.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// One plugin in a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PluginListing {
    /// Its name.
    pub name: PluginName,
    /// Its state.
    pub state: PluginState,
    /// Why it is in that state, where it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the configuration allows it.
    pub enabled: bool,
    /// Larger starts earlier within a level.
    pub priority: i32,
    /// Its version, once it was described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where it came from.
    pub source: Source,
    /// Its program.
    pub path: String,
    /// SHA-256 of the program, in hexadecimal, where it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What it offers.
    pub operations: Vec<OperationListing>,
    /// Operations it declares that are not offered, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<Quarantined>,
}

/// Where a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// A table in the config file.
    Config {
        /// The file.
        file: String,
    },
    /// Found in a scanned folder.
    Scan {
        /// The folder.
        dir: String,
    },
    /// Added by `plugd add`.
    Added {
        /// The file that remembers it.
        file: String,
    },
    /// Given by the program that embeds the engine.
    Embedded,
}

/// One operation in a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OperationListing {
    /// Its identity.
    pub id: OperationId,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Params of `describe`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DescribeParams {
    /// A plugin's name, or an operation's.
    pub name: String,
    /// For which caller: only what that profile may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

impl DescribeParams {
    /// A plugin or an operation, seen by the owner.
    pub fn new(name: impl Into<String>) -> DescribeParams {
        DescribeParams { name: name.into(), caller: None }
    }
}

/// The answer to `describe`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Description {
    /// The plugin.
    pub plugin: PluginListing,
    /// SHA-256 of all that it declares, as `manifest_sha256` pins it; of a whole plugin, once described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_sha256: Option<String>,
    /// Whether the configuration pins that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manifest_pinned: bool,
    /// What it requires, its manifest and the configuration taken together.
    pub requires: BTreeMap<PluginName, Requirement>,
    /// What it can do beyond the least.
    pub features: Features,
    /// JSON Schema of its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub config_schema: Option<Box<RawValue>>,
    /// Its operations, or the one asked for.
    pub operations: Vec<Operation>,
    /// Operations it declares that are not offered.
    pub quarantined: Vec<Quarantined>,
    /// By which names each operation is found, and what models read about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exported: Vec<Exported>,
}
