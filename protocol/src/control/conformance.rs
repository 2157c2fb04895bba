//! What a plugin did under the conformance kit of `plugd check`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a plugin's program kept to the protocol, scenario by scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConformanceReport {
    /// Whether no scenario failed; warnings do not count.
    pub ok: bool,
    /// How long all of it took, in milliseconds.
    pub took_ms: u64,
    /// Each scenario, in the order of `docs/checking.md`.
    pub scenarios: Vec<ScenarioReport>,
}

impl ConformanceReport {
    /// How many scenarios came out so.
    pub fn count(&self, outcome: ScenarioOutcome) -> usize {
        self.scenarios.iter().filter(|scenario| scenario.outcome == outcome).count()
    }
}

/// One scenario: what was tried, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioReport {
    /// Its name, which stays the same.
    pub name: String,
    /// What a plugin shows that passes it.
    pub shows: String,
    /// How it came out.
    pub outcome: ScenarioOutcome,
    /// Where the specification says so.
    pub spec: String,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// What was measured, or why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What is wrong; none where it passed or was skipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ScenarioFinding>,
}

/// How a scenario came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioOutcome {
    /// As the protocol says.
    Passed,
    /// plugd copes with it, but its author should know.
    Warned,
    /// Not as the protocol says.
    Failed,
    /// It was not tried, or says nothing; the note says why.
    Skipped,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioFinding {
    /// Whether it makes its scenario fail; otherwise it is a warning.
    pub fails: bool,
    /// What is wrong: what was expected, and what came.
    pub message: String,
    /// What was sent (`→`), what came (`←`), and other traces, clipped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What to do about it.
    pub fix: String,
}
