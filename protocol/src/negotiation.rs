//! Versions and features: what the host offers and what a manifest picks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The newest protocol version spoken here.
pub const PROTOCOL_VERSION: u32 = 1;

/// Every protocol version spoken here, newest last.
pub const PROTOCOL_VERSIONS: &[u32] = &[1];

/// What the host offers beyond the calls every plugin gets.
pub const HOST_FEATURES: &[&str] = &["host_calls", "host_asks", "progress", "partial", "log"];

/// The host's offer, in `describe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    /// Protocol versions the host speaks.
    pub versions: Vec<u32>,
    /// Features the host has; unknown ones are to be ignored.
    #[serde(default)]
    pub features: Vec<String>,
}

/// Why two sides cannot talk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the plugin speaks protocol version {theirs} and this host speaks {ours}: {}",
    if self.plugin_is_newer() { "upgrade plugd, or use an older build of the plugin" } else { "upgrade the plugin" }
)]
pub struct VersionMismatch {
    /// The versions spoken here, as text.
    pub ours: String,
    /// The version the manifest picked.
    pub theirs: u32,
}

impl VersionMismatch {
    fn plugin_is_newer(&self) -> bool {
        self.theirs > PROTOCOL_VERSION
    }
}

impl Offer {
    /// What this host offers.
    pub fn of_host() -> Offer {
        Offer {
            versions: PROTOCOL_VERSIONS.to_vec(),
            features: HOST_FEATURES.iter().map(|feature| (*feature).to_owned()).collect(),
        }
    }

    /// The newest version both sides speak, for a plugin's use.
    pub fn pick(&self, spoken: &[u32]) -> Option<u32> {
        spoken.iter().copied().filter(|version| self.versions.contains(version)).max()
    }
}

/// Accepts the version a manifest picked.
///
/// # Errors
/// [`VersionMismatch`], saying which side is too old, for any version not offered.
pub fn accept(picked: u32) -> Result<u32, VersionMismatch> {
    if PROTOCOL_VERSIONS.contains(&picked) {
        return Ok(picked);
    }
    let ours = PROTOCOL_VERSIONS.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Err(VersionMismatch { ours, theirs: picked })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_wins() {
        let offer = Offer { versions: vec![1, 2, 3], features: vec![] };
        assert_eq!(offer.pick(&[1, 2]), Some(2));
        assert_eq!(offer.pick(&[4]), None);
    }

    #[test]
    fn a_mismatch_says_which_side_is_too_old() {
        assert!(accept(2).expect_err("unknown").to_string().contains("upgrade plugd"));
        assert!(accept(0).expect_err("unknown").to_string().contains("upgrade the plugin"));
        assert_eq!(accept(1), Ok(1));
    }
}
