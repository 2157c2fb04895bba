//! What stands at the top of the repository, and nothing else.

use crate::{Findings, root};

/// Entries that are always there.
const REQUIRED: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "Makefile",
    "README.md",
    "README.zh-CN.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "deny.toml",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "clippy.toml",
    "protocol",
    "runtime",
    "plugin-sdk",
    "example-plugins",
    "tests",
    "docs",
    ".ci",
];

#[test]
fn the_top_level_holds_what_it_should_and_no_more() {
    let mut findings =
        Findings::of("the top level is a table of contents: nothing is added to it in passing");
    for name in REQUIRED {
        if !root().join(name).exists() {
            findings.found.push(format!("{name} is missing"));
        }
    }
    for entry in std::fs::read_dir(root()).expect("the repository can be read") {
        let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
        let built = name == "target" || name.starts_with("mutants.out");
        if !REQUIRED.contains(&name.as_str()) && !name.starts_with('.') && !name.ends_with(".md") && !built {
            findings.found.push(format!("{name} does not belong at the top level"));
        }
    }
    findings.none();
}

#[test]
fn the_architecture_page_stays_short() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("there is ARCHITECTURE.md");
    let lines = text.lines().count();
    assert!(lines <= 120, "ARCHITECTURE.md has {lines} lines: two pages are 120");
}
