//! Pure code stays pure: `protocol`, `contract` and every `machine/` touch no clock and no system.

use std::path::{Path, PathBuf};

use crate::source::{Source, line_of};
use crate::{Findings, files_below, root, rust_files};

/// What pure code must not name, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("tokio", "no async runtime"),
    ("::now(", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("std::fs", "no files"),
    ("std::net", "no network"),
    ("std::process", "no processes"),
    ("std::thread", "no threads"),
    ("std::env", "no environment"),
    ("std::io", "no I/O"),
    ("rustix", "no system calls"),
    ("rand::", "no randomness"),
    ("fastrand", "no randomness"),
    ("getrandom", "no randomness"),
    ("tracing", "facts are returned, not logged"),
];

/// The files that are pure, tests of their own left out.
fn pure_files() -> Vec<Source> {
    let mut folders = vec!["protocol/src".to_owned(), "runtime/contract/src".to_owned()];
    for file in files_below("runtime") {
        let machine = file.ancestors().find(|folder| folder.ends_with("machine"));
        if let Some(folder) = machine.and_then(|folder| folder.strip_prefix(root()).ok()) {
            folders.push(folder.display().to_string());
        }
    }
    folders.sort();
    folders.dedup();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let sources = rust_files(&folders);
    let test_modules: Vec<PathBuf> = sources.iter().flat_map(test_modules_of).collect();
    let is_test = |path: &Path| test_modules.iter().any(|module| path.starts_with(module));
    sources.into_iter().filter(|source| !is_test(&source.path)).collect()
}

/// The files and folders of modules that a file declares for tests only.
fn test_modules_of(source: &Source) -> Vec<PathBuf> {
    let code = source.code();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("#[cfg(test)]") {
        let declared = code[at + "#[cfg(test)]".len()..].trim_start();
        let declared = declared.strip_prefix("mod ").and_then(|rest| rest.split_once([';', '{']));
        let Some((name, _)) = declared else { continue };
        let stem = source.path.file_stem().unwrap_or_default();
        let parent = source.path.parent().unwrap_or(Path::new(""));
        let folder = if matches!(stem.to_str(), Some("lib" | "main" | "mod")) {
            parent.to_owned()
        } else {
            parent.join(stem)
        };
        found.push(folder.join(format!("{}.rs", name.trim())));
        found.push(folder.join(name.trim()));
    }
    found
}

/// Where a file's own test module begins, or its end.
fn end_of_code(code: &str) -> usize {
    let test_module = |at: &usize| code[at + "#[cfg(test)]".len()..].trim_start().starts_with("mod ");
    let starts = code.match_indices("#[cfg(test)]").map(|(at, _)| at);
    starts.filter(test_module).find(|at| code[*at..].contains('{')).unwrap_or(code.len())
}

#[test]
fn decisions_touch_no_clock_and_no_system() {
    let mut findings =
        Findings::of("protocol, contract and machine/ are pure: no clock, I/O, thread or randomness");
    let files = pure_files();
    assert!(files.len() > 5, "the pure folders were not found");
    for source in files {
        let code = source.code();
        let code = &code[..end_of_code(&code)];
        for (forbidden, why) in FORBIDDEN {
            for (at, _) in code.match_indices(forbidden) {
                let before = code[..at].chars().next_back();
                let inside_a_word = forbidden.starts_with(|first: char| first.is_alphabetic())
                    && before.is_some_and(|character| character.is_alphanumeric() || character == '_');
                if !inside_a_word {
                    findings.at(&source.path, line_of(code, at), format!("{forbidden:?}: {why}"));
                }
            }
        }
    }
    findings.none();
}

#[test]
fn the_supervisor_keeps_its_decisions_in_a_machine() {
    let machine = root().join("runtime/supervisor/src/machine");
    assert!(machine.is_dir(), "{} holds the pure state machines", crate::shown(&machine));
}
