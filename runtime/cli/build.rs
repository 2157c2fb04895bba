//! Puts what `plugd new` writes into the program: the templates, and of each SDK the files that are shipped.
//!
//! What lies in these folders decides; there is no list of files to keep.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the SDKs and their licences lie, from this crate on.
const ROOT: &str = "../..";

/// The crates that a plugin in Rust is built from, as they stand in the workspace.
const RUST_CRATES: &[&str] = &["protocol", "plugin-sdk/rust", "plugin-sdk/rust-macros"];

/// A folder as it is to be written: names with what they hold.
type Files = Vec<(String, PathBuf)>;

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = here.join(ROOT);
    let out = PathBuf::from(variable("OUT_DIR"));
    let mut text = String::new();
    for lang in ["python", "node", "go", "rust", "sh"] {
        let template = files(&here.join("templates").join(lang), &|_| true);
        declare(&mut text, &format!("TEMPLATE_{}", lang.to_uppercase()), &template);
    }
    let sdk = root.join("plugin-sdk");
    let python = files(&sdk.join("python/src/plugd_sdk"), &|name| !name.contains("__pycache__"));
    declare(&mut text, "SDK_PYTHON", &python);
    let mut node = below("src/", files(&sdk.join("node/src"), &|_| true));
    node.push(("package.json".to_owned(), watched(sdk.join("node/package.json"))));
    declare(&mut text, "SDK_NODE", &node);
    // What lies under `internal` is there for the SDK's own tests.
    let is_shipped = |name: &str| !name.starts_with("internal/") && !name.ends_with("_test.go");
    let go = files(&sdk.join("go"), &|name| is_shipped(name) && (name.ends_with(".go") || name == "go.mod"));
    declare(&mut text, "SDK_GO", &go);
    declare(&mut text, "SDK_RUST", &rust(&root, &out));
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"];
    let licences: Files = licences.map(|name| (name.to_owned(), watched(root.join(name)))).into();
    declare(&mut text, "LICENCES", &licences);
    fs::write(out.join("embedded.rs"), text).expect("OUT_DIR can be written");
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo sets it")
}

/// The crates of the Rust SDK, in a workspace of their own that says what ours says of them.
fn rust(root: &Path, out: &Path) -> Files {
    let mut all = Vec::new();
    for name in RUST_CRATES {
        let folder = root.join(name);
        all.push((format!("{name}/Cargo.toml"), watched(folder.join("Cargo.toml"))));
        all.extend(below(&format!("{name}/src/"), files(&folder.join("src"), &|_| true)));
        let readme = folder.join("README.md");
        if readme.is_file() {
            all.push((format!("{name}/README.md"), watched(readme)));
        }
    }
    let ours = fs::read_to_string(watched(root.join("Cargo.toml"))).expect("the workspace has a Cargo.toml");
    let manifest = out.join("rust-workspace.toml");
    fs::write(&manifest, workspace(&ours, &needed(root))).expect("OUT_DIR can be written");
    all.push(("Cargo.toml".to_owned(), manifest));
    all
}

/// The dependencies that these crates name.
fn needed(root: &Path) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    for name in RUST_CRATES {
        let text = fs::read_to_string(root.join(name).join("Cargo.toml")).expect("a crate has a Cargo.toml");
        let manifest: toml::Table = text.parse().expect("Cargo.toml is TOML");
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let named = manifest.get(kind).and_then(toml::Value::as_table);
            needed.extend(named.into_iter().flat_map(toml::Table::keys).cloned());
        }
    }
    needed
}

/// The workspace's manifest with these crates alone, and what they need.
fn workspace(ours: &str, needed: &BTreeSet<String>) -> String {
    let mut whole: toml::Table = ours.parse().expect("Cargo.toml is TOML");
    let mut workspace = match whole.remove("workspace") {
        Some(toml::Value::Table(workspace)) => workspace,
        _ => panic!("Cargo.toml has no [workspace]"),
    };
    workspace.remove("default-members");
    workspace.insert("members".to_owned(), RUST_CRATES.to_vec().into());
    let dependencies = workspace.get_mut("dependencies").and_then(toml::Value::as_table_mut);
    dependencies.expect("the workspace has dependencies").retain(|name, _| needed.contains(name));
    let manifest = toml::Table::from_iter([("workspace".to_owned(), workspace.into())]);
    toml::to_string(&manifest).expect("what was read can be written")
}

/// The files in a folder and below it that are wanted, by their paths in it; what is hidden is not.
fn files(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Files {
    let mut found = Vec::new();
    let mut open = vec![watched(folder.to_owned())];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
            let path = entry.expect("a folder can be read").path();
            let name =
                path.strip_prefix(folder).expect("it lies there").to_str().expect("our names are UTF-8");
            if name.rsplit('/').next().is_some_and(|name| name.starts_with('.')) {
                continue;
            }
            match path.is_dir() {
                true => open.push(path),
                false if wanted(name) => found.push((name.to_owned(), path)),
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn below(prefix: &str, files: Files) -> Files {
    files.into_iter().map(|(name, path)| (format!("{prefix}{name}"), path)).collect()
}

/// A file or a folder whose changes are to be taken up.
fn watched(path: PathBuf) -> PathBuf {
    println!("cargo::rerun-if-changed={}", path.display());
    path
}

fn declare(text: &mut String, name: &str, files: &Files) {
    let _ = writeln!(text, "pub(super) const {name}: &[(&str, &str)] = &[");
    for (name, path) in files {
        let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let _ = writeln!(text, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    text.push_str("];\n");
}
