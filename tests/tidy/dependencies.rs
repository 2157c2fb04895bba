//! Which crate may depend on which: decisions below, drivers above, nothing sideways.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use crate::source::lines_with_word;
use crate::{Findings, root, rust_files};

/// The crates of ours that each crate may depend on, whatever the kind of dependency.
const ALLOWED: &[(&str, &[&str])] = &[
    ("plugd-protocol", &[]),
    ("plugd-contract", &["plugd-protocol"]),
    ("plugd-launcher", &[]),
    ("plugd-supervisor", &["plugd-protocol", "plugd-launcher"]),
    ("plugd-conformance", &["plugd-protocol", "plugd-contract", "plugd-supervisor"]),
    ("plugd-store", &["plugd-protocol"]),
    ("plugd-dialogue", &["plugd-protocol"]),
    ("plugd-mcp", &["plugd-protocol"]),
    (
        "plugd-engine",
        &[
            "plugd-protocol",
            "plugd-contract",
            "plugd-supervisor",
            "plugd-store",
            "plugd-dialogue",
            "plugd-mcp",
        ],
    ),
    ("plugd-daemon", &["plugd-protocol", "plugd-engine"]),
    ("plugd", &["plugd-protocol", "plugd-conformance", "plugd-engine", "plugd-daemon"]),
    ("plugd-sdk", &["plugd-protocol", "plugd-sdk-macros"]),
    ("plugd-sdk-macros", &[]),
];

/// Crates that nothing pure may depend on: they bring I/O, clocks, threads or randomness.
const IMPURE: &[&str] =
    &["tokio", "rand", "fastrand", "getrandom", "uuid", "rustix", "nix", "libc", "chrono", "tempfile"];

/// Our crates, each with the names of what it depends on.
fn crates() -> BTreeMap<String, Vec<String>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let name_of = |value: &Value| value["name"].as_str().expect("a package has a name").to_owned();
    let packages = metadata["packages"].as_array().expect("cargo lists the packages");
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("a package lists dependencies");
            (name_of(package), dependencies.iter().map(name_of).collect())
        })
        .collect()
}

#[test]
fn crates_depend_in_one_direction_only() {
    let crates = crates();
    let mut findings = Findings::of(
        "example-plugins → plugin-sdk → protocol ← contract, supervisor, store, dialogue, mcp ← engine ← daemon ← cli",
    );
    for (name, dependencies) in &crates {
        let allowed: &[&str] = match ALLOWED.iter().find(|(crate_name, _)| crate_name == name) {
            Some((_, allowed)) => allowed,
            None if name.starts_with("plugd-example-") => &["plugd-sdk"],
            // Nothing depends on tests and benches, so they may use whatever they test.
            None if ["plugd-tests", "plugd-chaos", "plugd-cost"].contains(&&**name)
                || name.starts_with("plugd-bench") =>
            {
                continue;
            }
            None => {
                findings.found.push(format!("{name}: a new crate; say in tests/tidy what it may depend on"));
                continue;
            }
        };
        for dependency in dependencies.iter().filter(|dependency| crates.contains_key(*dependency)) {
            if !allowed.contains(&dependency.as_str()) {
                findings.found.push(format!("{name} depends on {dependency}; allowed: {allowed:?}"));
            }
        }
    }
    findings.none();
}

#[test]
fn pure_crates_depend_on_nothing_that_acts() {
    let mut findings = Findings::of("protocol and contract have no dependency with I/O, clock or randomness");
    let crates = crates();
    for name in ["plugd-protocol", "plugd-contract"] {
        let dependencies = crates.get(name).unwrap_or_else(|| panic!("there is no crate {name}"));
        for dependency in dependencies.iter().filter(|dependency| IMPURE.contains(&dependency.as_str())) {
            findings.found.push(format!("{name} depends on {dependency}"));
        }
    }
    findings.none();
}

#[test]
fn running_plugins_knows_nothing_of_dialogue() {
    let mut findings =
        Findings::of("supervisor and contract do not know dialogue: no session flow, no agent loop");
    for source in rust_files(&["runtime/supervisor", "runtime/contract"]) {
        let code = source.code_and_strings();
        for word in ["dialogue", "Dialogue", "plugd_dialogue", "AgentLoop", "agent_loop"] {
            for line in lines_with_word(&code, word) {
                findings.at(&source.path, line, format!("knows {word:?}"));
            }
        }
    }
    findings.none();
}
