//! What is offered to models, and what could be said better.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConformanceReport, PluginListing, PluginState, ScenarioOutcome};
use crate::name::{OperationId, PluginName};

/// Whose form tools are exported in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// OpenAI's function tools.
    Openai,
    /// Anthropic's tools.
    Anthropic,
    /// MCP's `tools/list`.
    Mcp,
}

/// Params of `tools`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolsParams {
    /// Whose form; none gives plugd's own.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// Only the categories and how many tools each has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub categories: bool,
    /// Only the tools of this category; what has none is in `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Only this tool, by any of its spellings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Also what is not offered, with the reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// For which caller: only what that profile may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// The answer to `tools`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolsReport {
    /// The tools, by name.
    pub tools: Vec<Tool>,
    /// The categories, where those were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Category>,
    /// What is not offered, where all was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_offered: Vec<NotOffered>,
    /// Bytes of all declarations together.
    pub bytes: u64,
}

/// One tool, as a model gets it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// What it is called in plugd.
    pub id: OperationId,
    /// What it is called in the dialect; `call` accepts that, too.
    pub name: String,
    /// Its category.
    pub category: String,
    /// The declaration, in the dialect's form.
    pub declaration: serde_json::Value,
    /// Bytes of the declaration; of one in plugd's own form, which no model gets, those in the form of OpenAI.
    pub bytes: u64,
}

/// A category of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Category {
    /// Its name.
    pub name: String,
    /// How many tools.
    pub tools: u64,
}

/// An operation that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotOffered {
    /// Which.
    pub id: String,
    /// Its plugin's state.
    pub state: PluginState,
    /// Why.
    pub reason: String,
}

/// How one operation stands for callers: by which names it is found, and what models are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    /// Which, also where its declaration cannot be used.
    pub id: String,
    /// What it is called in the dialects of models; absent where it is not offered to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What models read about it, byte for byte.
    pub description: String,
    /// Bytes of its declaration, in the form of OpenAI.
    pub bytes: u64,
    /// Every name that `call` finds it by.
    pub found_by: Vec<String>,
    /// Why it cannot be called; absent where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
}

/// What `plugd check` prints.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Whether everything that is declared can be called, and nothing is wrong with the configuration.
    pub ok: bool,
    /// Each plugin that was looked at.
    pub plugins: Vec<CheckedPlugin>,
    /// What is wrong with the configuration, where that was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// One plugin that was looked at.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckedPlugin {
    /// How it is.
    pub plugin: PluginListing,
    /// Each operation that it declares.
    pub operations: Vec<CheckedOperation>,
    /// What its declarations could say better.
    pub findings: Vec<LintFinding>,
    /// Plugins that it requires and that were not given with it: calls that need them were not tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<PluginName>,
    /// How its program keeps to the protocol, where that was looked at: of a path alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformance: Option<ConformanceReport>,
}

impl CheckedPlugin {
    /// Whether it cannot run; that what it requires was not given with it is no fault of its own.
    pub fn is_down(&self) -> bool {
        let is_up = match self.plugin.state {
            PluginState::Failed | PluginState::Disabled => false,
            PluginState::Blocked => !self.absent.is_empty(),
            PluginState::Registered
            | PluginState::Starting
            | PluginState::Ready
            | PluginState::Busy
            | PluginState::Idle
            | PluginState::Backoff
            | PluginState::Stopping
            | PluginState::Stopped => true,
        };
        !is_up || self.plugin.version.is_none()
    }
}

/// One operation that was looked at: how it is found, filled, and how it fails.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CheckedOperation {
    /// By which names it is found, and whether it can be called.
    #[serde(flatten)]
    pub exported: Exported,
    /// What people say who want it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// Arguments that must be given, or are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Arguments that may be left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional: Vec<String>,
    /// Whether a person must agree before it runs.
    pub confirmed: bool,
    /// Whether it is tried a second time after a crash.
    pub retried: bool,
    /// Arguments that must be given within objects where those are given, such as `owner.mail`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<String>,
    /// How long it may run, in milliseconds, as configured; absent where it cannot be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether it runs in the background, as a job.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// What came of calling it with its own examples, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
}

impl CheckedOperation {
    /// What counts against it: why it cannot be called, or how its call with its own examples failed.
    pub fn fault(&self, strict: bool) -> Option<String> {
        let counts = |tried: &&Tried| match tried.outcome {
            ScenarioOutcome::Failed => true,
            ScenarioOutcome::Warned => strict,
            ScenarioOutcome::Passed | ScenarioOutcome::Skipped => false,
        };
        let tried = self.tried.as_ref().filter(counts).map(|tried| tried.remarks.join("; "));
        self.exported.unreachable.clone().or(tried)
    }
}

/// What came of calling an operation with its own examples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// The arguments; absent where it was not called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// How it came out: an error in the operation's own words is a warning, any other a failure.
    pub outcome: ScenarioOutcome,
    /// Whether it answered with data.
    pub answered: bool,
    /// What is to be said about the answer, or why there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// Params of `lint`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LintParams {
    /// Only these plugins; overlaps are looked for among all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<PluginName>,
}

/// The answer to `lint`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct LintReport {
    /// What could be said better, by operation.
    pub findings: Vec<LintFinding>,
    /// How many operations were looked at.
    pub operations: u64,
}

/// One thing that could be said better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintFinding {
    /// The operation, or the plugin where it is about that.
    pub subject: String,
    /// The rule, such as `vague_name`.
    pub rule: String,
    /// Where in the declaration: a JSON Pointer, empty for the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}
