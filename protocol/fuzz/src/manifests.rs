//! Manifests: usable or refused, never half; what is registered is read back the same.

use std::collections::BTreeSet;

use plugd_protocol::Manifest;
use plugd_protocol::manifest::CONCURRENCY_MAX;

/// Checks what a plugin answers `describe` with.
pub fn manifest(json: &[u8]) {
    let Ok(text) = std::str::from_utf8(json) else { return };
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "a refusal has its reason");
            return;
        }
    };
    assert!((1..=CONCURRENCY_MAX).contains(&manifest.features.concurrency), "its lanes are bounded");
    let _never_panics = manifest.semver();
    let names: Vec<&str> = manifest.operations.iter().map(|operation| operation.name.as_str()).collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len(), "no name is offered twice");
    for bad in &manifest.quarantined {
        assert!(!distinct.contains(bad.name.as_str()), "{} is quarantined and offered", bad.name);
        assert!(!bad.reason.is_empty(), "a quarantine has its reason");
    }
    let written = serde_json::to_string(&manifest).expect("a manifest can be written");
    let again = Manifest::parse(&written).expect("what was written can be read");
    assert!(again.quarantined.is_empty(), "what was offered is offered again: {:?}", again.quarantined);
    assert_eq!(serde_json::to_string(&again).expect("a manifest can be written"), written);
}
