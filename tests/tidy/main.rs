//! What the layout of the repository promises, checked: `cargo test -p plugd-tests --test tidy`.
//!
//! Each rule is one test. A failure names `file:line` and the rule, for every breach at once.

mod dependencies;
mod layout;
mod links;
mod purity;
mod source;
mod text;

use std::path::{Path, PathBuf};

/// The breaches of one rule.
struct Findings {
    rule: &'static str,
    found: Vec<String>,
}

impl Findings {
    fn of(rule: &'static str) -> Findings {
        Findings { rule, found: Vec::new() }
    }

    /// Notes a breach in a line; lines count from 1.
    fn at(&mut self, file: &Path, line: usize, what: impl AsRef<str>) {
        self.found.push(format!("{}:{line}: {}", shown(file), what.as_ref()));
    }

    /// Fails with all breaches, if there are any.
    #[track_caller]
    fn none(self) {
        assert!(
            self.found.is_empty(),
            "\nrule: {}\n  {}\n{} found\n",
            self.rule,
            self.found.join("\n  "),
            self.found.len()
        );
    }
}

/// The top of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository").to_owned()
}

/// A path as it reads from the top of the repository.
fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// Every file below a folder of the repository, by name; built and installed ones are left out, and what links
/// lead to.
fn files_below(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(path) = open.pop() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if matches!(&*name, "target" | "node_modules" | "__pycache__" | ".git" | "bin") && path.is_dir() {
            // A crate's src/bin holds sources like any other folder.
            if !(name == "bin" && path.parent().is_some_and(|parent| parent.ends_with("src"))) {
                continue;
            }
        }
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a folder can be read");
            open.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every Rust file below some folders.
fn rust_files(folders: &[&str]) -> Vec<source::Source> {
    let mut sources = Vec::new();
    for folder in folders {
        for file in files_below(folder) {
            if file.extension().is_some_and(|extension| extension == "rs") {
                sources.push(source::Source::read(&file));
            }
        }
    }
    sources
}

/// The folders that hold code.
const CODE: &[&str] = &["protocol", "runtime", "plugin-sdk", "example-plugins", "tests"];
