//! What a plugin declares about itself.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::name::{NameError, OperationName, PluginName};
use crate::negotiation::PROTOCOL_VERSIONS;
use crate::plain::{in_plain_words, plain_at};

/// A plugin may run at most this many calls at once.
pub const CONCURRENCY_MAX: u32 = 256;

/// No call runs for longer, in milliseconds, whatever is declared.
pub const TIMEOUT_MS_MAX: u64 = 3_600_000;

/// Data of fewer bytes is never given in pages.
pub const RESULT_LIMIT_MIN: u64 = 256;

/// What a plugin declares; unknown members are tolerated.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest {
    /// The protocol version it picked.
    pub protocol: u32,
    /// Its own name; the configured one counts.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The plugins it uses.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requires: BTreeMap<PluginName, Requirement>,
    /// Larger starts earlier within a level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// What it can do beyond the least.
    pub features: Features,
    /// JSON Schema of its configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Box<RawValue>>,
    /// What it offers, without the quarantined.
    pub operations: Vec<Operation>,
    /// Operations whose declaration is unusable, and why.
    #[serde(skip)]
    pub quarantined: Vec<Quarantined>,
}

/// One operation of a plugin.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Its name, unique within the plugin.
    pub name: OperationName,
    /// A short title for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it is the right choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_to_use: Option<String>,
    /// When it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_not_to_use: Option<String>,
    /// Sentences users say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// What kind of operation it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Who it is for.
    #[serde(default)]
    pub audience: Audience,
    /// JSON Schema of its arguments.
    #[schemars(with = "serde_json::Value")]
    pub input_schema: Box<RawValue>,
    /// JSON Schema of its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub output_schema: Option<Box<RawValue>>,
    /// What it does to the world; claims, not proof.
    #[serde(default)]
    pub effects: Effects,
    /// How long it may run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long it may go without progress, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_timeout_ms: Option<u64>,
    /// Whether it runs in the background.
    #[serde(default)]
    pub long_running: bool,
    /// For how many seconds a read-only operation's answer may be given again to the same caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_ttl: Option<u64>,
    /// Whether a person must agree to it.
    #[serde(default, skip_serializing_if = "Confirm::is_auto")]
    pub confirm: Confirm,
    /// What a caller's profile must hold to see and use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Data of more than so many bytes is kept and given in pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_limit: Option<u64>,
}

/// Whether a person must agree before an operation runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// As its effects say: what is declared destructive is agreed to.
    #[default]
    Auto,
    /// Every time.
    Always,
    /// Never, whatever its effects.
    Never,
}

impl Confirm {
    /// Whether it is the default.
    pub fn is_auto(&self) -> bool {
        *self == Confirm::Auto
    }
}

/// Who an operation is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// A tool: scripts, programs, models.
    #[default]
    Callers,
    /// A service: dependents' `host/call` and operators.
    Plugins,
}

/// What an operation does to the world; absent means not declared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Effects {
    /// It changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// It may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Running it twice is as good as once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It reaches beyond this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// What a plugin can do beyond the least; unknown features are tolerated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Features {
    /// It takes a new configuration while running.
    #[serde(default)]
    pub reload: bool,
    /// It answers `ping`.
    #[serde(default)]
    pub ping: bool,
    /// It stops early when a call is cancelled.
    #[serde(default)]
    pub cancel: bool,
    /// How many calls it takes at once.
    #[serde(default = "one_lane")]
    pub concurrency: u32,
}

fn one_lane() -> u32 {
    1
}

impl Default for Features {
    fn default() -> Features {
        Features { reload: false, ping: false, cancel: false, concurrency: one_lane() }
    }
}

/// A plugin another one uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "RequirementForm")]
#[schemars(!from)]
pub struct Requirement {
    /// The versions that will do.
    #[schemars(with = "String")]
    pub version: semver::VersionReq,
    /// Whether the plugin can do without it.
    #[serde(default)]
    pub optional: bool,
    /// What becomes of the plugin when the other one is lost while both run.
    #[serde(default, skip_serializing_if = "OnLoss::is_stay")]
    pub on_loss: OnLoss,
}

/// What becomes of a running plugin when one that it requires is lost: fails, stops or is stopped.
///
/// To replace a plugin by a new run of it is no loss.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnLoss {
    /// It stays up; its own calls to the lost one fail or wait.
    #[default]
    Stay,
    /// It is stopped, and starts again by itself once the lost one is back.
    Restart,
    /// It is stopped, and starts again when it is wanted next.
    Stop,
}

impl OnLoss {
    /// Whether it is the default.
    pub fn is_stay(&self) -> bool {
        *self == OnLoss::Stay
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a range of versions, such as \"^1.2\", or an object {version, optional, on_loss}"
)]
enum RequirementForm {
    Range(semver::VersionReq),
    Full {
        #[serde(default)]
        version: semver::VersionReq,
        #[serde(default)]
        optional: bool,
        #[serde(default)]
        on_loss: OnLoss,
    },
}

impl From<RequirementForm> for Requirement {
    fn from(form: RequirementForm) -> Requirement {
        match form {
            RequirementForm::Range(version) => {
                Requirement { version, optional: false, on_loss: OnLoss::Stay }
            }
            RequirementForm::Full { version, optional, on_loss } => {
                Requirement { version, optional, on_loss }
            }
        }
    }
}

/// An operation that is not offered, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quarantined {
    /// What it calls itself, as far as that can be told.
    pub name: String,
    /// Why it is not offered.
    pub reason: String,
}

/// Why a manifest is unusable as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not of the expected form: where, and why.
    #[error("the manifest is unreadable: {0}")]
    Unreadable(String),
    /// A required member is missing.
    #[error("the manifest has no {member:?}: add {example}")]
    Missing {
        /// Which.
        member: &'static str,
        /// What to write.
        example: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Written {
    #[serde(default, deserialize_with = "protocol_version")]
    protocol: Option<u32>,
    name: Option<String>,
    version: Option<String>,
    description: Option<String>,
    #[serde(default)]
    requires: BTreeMap<PluginName, Requirement>,
    priority: Option<i32>,
    #[serde(default)]
    features: Features,
    config_schema: Option<Box<RawValue>>,
    operations: Option<Vec<Box<RawValue>>>,
}

/// Reads the version; of what is none it says which ones there are.
fn protocol_version<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    Option::<u32>::deserialize(value).map_err(|error| {
        let ours = PROTOCOL_VERSIONS.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        let said = in_plain_words("protocol", said).unwrap_or_else(|| said.to_owned());
        serde::de::Error::custom(format!("{said}; this host speaks {ours}"))
    })
}

impl Manifest {
    /// Parses a manifest as `describe` answers it.
    ///
    /// One unusable operation does not spoil the rest: it is quarantined with its reason.
    ///
    /// # Errors
    /// [`ManifestError`] when the manifest as a whole is unusable.
    pub fn parse(json: &str) -> Result<Manifest, ManifestError> {
        let written: Written = read(json).map_err(ManifestError::Unreadable)?;
        let missing = |member, example| ManifestError::Missing { member, example };
        let mut manifest = Manifest {
            protocol: written.protocol.ok_or_else(|| missing("protocol", "\"protocol\": 1"))?,
            name: written.name.ok_or_else(|| missing("name", "\"name\": \"…\""))?,
            version: written.version.ok_or_else(|| missing("version", "\"version\": \"1.0.0\""))?,
            description: written.description,
            requires: written.requires,
            priority: written.priority,
            features: written.features,
            config_schema: written.config_schema,
            operations: Vec::new(),
            quarantined: Vec::new(),
        };
        manifest.features.concurrency = manifest.features.concurrency.clamp(1, CONCURRENCY_MAX);
        let operations = written
            .operations
            .ok_or_else(|| missing("operations", "\"operations\": [{\"name\": …, \"input_schema\": …}]"))?;
        let mut seen = BTreeSet::new();
        for raw in operations {
            match operation(&raw) {
                Ok(operation) if seen.insert(operation.name.to_string()) => {
                    manifest.operations.push(operation);
                }
                Ok(operation) => manifest.quarantine(operation.name.as_str(), "declared twice".to_owned()),
                Err(reason) => {
                    let name = declared_name(&raw);
                    manifest.quarantine(&name, reason);
                    // Whichever comes first, it is offered from neither.
                    seen.insert(name);
                }
            }
        }
        Ok(manifest)
    }

    /// Takes an operation out of what is offered.
    pub fn quarantine(&mut self, name: &str, reason: String) {
        self.operations.retain(|operation| operation.name.as_str() != name);
        self.quarantined.push(Quarantined { name: name.to_owned(), reason });
    }

    /// The version as semver, its missing parts read as 0.
    pub fn semver(&self) -> Option<semver::Version> {
        let parts = self.version.trim_start_matches('v');
        let dots = parts.split(['-', '+']).next().unwrap_or_default().matches('.').count();
        semver::Version::parse(&match dots {
            0 => format!("{parts}.0.0"),
            1 => format!("{parts}.0"),
            _ => parts.to_owned(),
        })
        .ok()
    }
}

fn operation(raw: &RawValue) -> Result<Operation, String> {
    #[derive(Deserialize)]
    struct NameOnly {
        name: Option<String>,
    }
    let NameOnly { name } = read(raw.get())?;
    let name = name.ok_or("it has no \"name\"")?;
    OperationName::new(&name).map_err(|error: NameError| error.to_string())?;
    read(raw.get()).map_err(|reason: String| match spelt_otherwise(raw, "input_schema") {
        Some(written) => format!("{reason}: it has {written:?}, did you mean input_schema?"),
        None => reason,
    })
}

/// A member as another protocol spells it, where the one that is meant is missing.
fn spelt_otherwise(raw: &RawValue, wanted: &str) -> Option<String> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).ok()?;
    let folded = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let mut alike = members.into_keys().filter(|name| folded(name) == folded(wanted));
    alike.next().filter(|name| name != wanted)
}

/// Reads a declaration; what is wrong is said with the member it is about.
fn read<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, String> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let member = path.rsplit('.').next().unwrap_or_default();
        let said = plain_at(member, error.inner());
        if path == "." { said } else { format!("{path}: {said}") }
    })
}

fn declared_name(raw: &RawValue) -> String {
    let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap_or_default();
    value.get("name").and_then(|name| name.as_str()).unwrap_or("(unnamed)").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_members_are_enough() {
        let manifest = Manifest::parse(
            r#"{"protocol":1,"name":"t","version":"1","operations":[{"name":"a","input_schema":{}}],"later":{}}"#,
        )
        .expect("enough");
        assert_eq!(manifest.features, Features::default());
        assert_eq!(manifest.semver(), Some(semver::Version::new(1, 0, 0)));
        assert_eq!(manifest.operations.len(), 1);
    }

    #[test]
    fn a_missing_version_is_refused_with_what_to_write() {
        let error = Manifest::parse(r#"{"protocol":1,"name":"t","operations":[]}"#).expect_err("no version");
        assert_eq!(error.to_string(), "the manifest has no \"version\": add \"version\": \"1.0.0\"");
    }

    #[test]
    fn one_bad_operation_does_not_spoil_the_rest() {
        let manifest = Manifest::parse(
            r#"{"protocol":1,"name":"t","version":"1.2","operations":[
                {"name":"queryStatus","input_schema":{}}, {"input_schema":{}}, {"name":"no_schema"},
                {"name":"good","input_schema":{}}, {"name":"good","input_schema":{}}, 3]}"#,
        )
        .expect("usable");
        let reasons: Vec<String> =
            manifest.quarantined.iter().map(|bad| format!("{}: {}", bad.name, bad.reason)).collect();
        assert_eq!(manifest.operations.len(), 0, "a name declared twice is offered from neither");
        assert!(reasons[0].contains("did you mean \"query_status\""), "{reasons:?}");
        assert!(reasons[1].contains("no \"name\""), "{reasons:?}");
        assert!(reasons[2].contains("input_schema"), "{reasons:?}");
        let raw = RawValue::from_string(r#"{"name":"a","inputSchema":{}}"#.to_owned()).unwrap();
        let reason = operation(&raw).unwrap_err();
        assert!(reason.contains("\"inputSchema\", did you mean input_schema?"), "{reason}");
        assert_eq!(reasons[3], "good: declared twice");
    }

    #[test]
    fn a_wrong_type_is_told_with_its_member() {
        let operation = |member: &str| {
            let json = format!(
                r#"{{"protocol":1,"name":"t","version":"1","operations":[{{"name":"a","input_schema":{{}},{member}}}]}}"#
            );
            Manifest::parse(&json).expect("usable as a whole").quarantined[0].reason.clone()
        };
        assert_eq!(
            operation(r#""timeout_ms":"1s""#),
            "timeout_ms: expected whole milliseconds, such as 5000, got string \"1s\""
        );
        assert_eq!(
            operation(r#""audience":"all""#),
            "audience: expected \"callers\" or \"plugins\", got \"all\""
        );
        let whole = |json: &str| Manifest::parse(json).expect_err("unusable").to_string();
        let said = whole(r#"{"protocol":1,"name":"t","version":1.0,"operations":[]}"#);
        assert_eq!(said, "the manifest is unreadable: version: expected a string, got 1.0");
        let said = whole(r#"{"protocol":1,"name":"t","version":"1","operations":{}}"#);
        assert_eq!(said, "the manifest is unreadable: operations: expected an array, got an object");
        let said = whole(r#"{"protocol":1,"name":"t","version":"1","operations":[],"requires":{"b":3}}"#);
        assert!(said.contains("requires.b: expected a range of versions, such as \"^1.2\", or"), "{said}");
    }

    #[test]
    fn requirements_come_short_or_long() {
        let manifest = Manifest::parse(
            r#"{"protocol":1,"name":"t","version":"1.2","operations":[],
                "requires":{"auth":">=1.0","cities":{"version":"^2","optional":true},"any":{}}}"#,
        )
        .expect("usable");
        let optional: Vec<bool> =
            manifest.requires.values().map(|requirement| requirement.optional).collect();
        assert_eq!(optional, [false, false, true]);
    }
}
