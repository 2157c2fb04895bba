//! How a Rust file reads: its opening line, its length, its functions, what it must not contain.

use std::path::Path;

use crate::source::{Source, line_of, lines_with_word};
use crate::{CODE, Findings, files_below, root, rust_files};

/// The most lines a file may have; around 300 is comfortable.
const FILE_LINES_MAX: usize = 500;

/// The most lines a function may have, its signature included: one screen.
const FUNCTION_LINES_MAX: usize = 70;

/// Words that mark work left undone.
const UNDONE: &[&str] = &["TODO", "FIXME", "XXX"];

/// Names that say nothing about what a thing is.
const EMPTY_NAMES: &[&str] = &["Manager", "Helper", "Helpers", "Util", "Utils", "Common", "Misc"];

#[test]
fn every_file_opens_by_saying_what_lives_in_it() {
    let mut findings = Findings::of("a .rs file opens with one `//!` sentence");
    for source in rust_files(CODE) {
        let first = source.lines().next().map(|(_, line)| line.to_owned()).unwrap_or_default();
        if !first.starts_with("//! ") || first.len() < 15 {
            findings.at(&source.path, 1, format!("opens with {first:?}"));
        }
    }
    findings.none();
}

#[test]
fn no_file_grows_beyond_its_limit() {
    let mut findings = Findings::of("a .rs file has at most 500 lines: ask what else moved in");
    for source in rust_files(CODE) {
        let lines = source.lines().count();
        if lines > FILE_LINES_MAX {
            findings.at(&source.path, lines, format!("{lines} lines"));
        }
    }
    findings.none();
}

#[test]
fn a_function_fits_on_a_screen() {
    let mut findings = Findings::of("a function has at most 70 lines");
    for source in rust_files(CODE) {
        let code = source.code();
        for (line, length) in functions(&code) {
            if length > FUNCTION_LINES_MAX {
                findings.at(&source.path, line, format!("a function of {length} lines"));
            }
        }
    }
    findings.none();
}

/// Each function of some code with a body: the line it begins in, and its length in lines.
fn functions(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back().unwrap_or('\n');
        let named = code[at + 3..].starts_with(|first: char| first.is_alphabetic() || first == '_');
        if before.is_alphanumeric() || before == '_' || !named {
            continue;
        }
        if let Some(end) = end_of_function(code, at) {
            let line = line_of(code, at);
            found.push((line, line_of(code, end) - line + 1));
        }
    }
    found
}

fn end_of_function(code: &str, start: usize) -> Option<usize> {
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (offset, byte) in code[start..].bytes().enumerate() {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b';' if round == 0 && curly == 0 => return None,
            b'{' => curly += 1,
            b'}' => {
                curly -= 1;
                if curly == 0 {
                    return Some(start + offset);
                }
            }
            _ => {}
        }
    }
    None
}

#[test]
fn no_unsafe_code() {
    let mut findings = Findings::of("no `unsafe`");
    for source in rust_files(CODE) {
        for line in lines_with_word(&source.code(), "unsafe") {
            findings.at(&source.path, line, "unsafe");
        }
    }
    findings.none();
}

#[test]
fn no_example_plugin_is_known_to_the_runtime() {
    // `logs` is also one of the command line's own verbs and a method of the control API; the others are everyday
    // words, of patterns, of the synonyms that lint knows, of plugins that tests and help make up.
    const ALSO_OUR_WORDS: &[&str] = &["logs", "cities", "hello", "mail", "orders", "search", "vocabulary"];
    let mut findings =
        Findings::of("no example plugin's name occurs under runtime/: the core knows one interface only");
    let entries = std::fs::read_dir(root().join("example-plugins")).expect("there are example plugins");
    let folders = entries.map(|entry| entry.expect("readable").path()).filter(|path| path.is_dir());
    let names: Vec<String> = folders
        .map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .filter(|name| !matches!(name.as_str(), "state" | "run") && !ALSO_OUR_WORDS.contains(&name.as_str()))
        .collect();
    assert!(names.len() >= 2, "found no example plugins: {names:?}");
    for source in rust_files(&["runtime"]) {
        let code = source.code_and_strings();
        for name in &names {
            for line in lines_with_word(&code, name) {
                findings.at(&source.path, line, format!("{name:?} is an example plugin"));
            }
        }
    }
    findings.none();
}

#[test]
fn no_test_is_switched_off_and_none_sleeps() {
    let mut findings = Findings::of("no #[ignore]; tests wait on conditions, never on a sleep");
    for source in rust_files(CODE) {
        let code = source.code();
        for (at, _) in code.match_indices("#[ignore") {
            findings.at(&source.path, line_of(&code, at), "an ignored test protects nothing");
        }
        if !source.path.starts_with(root().join("tests/it")) {
            continue;
        }
        for sleep in ["thread::sleep", "time::sleep"] {
            for (at, _) in code.match_indices(sleep) {
                findings.at(
                    &source.path,
                    line_of(&code, at),
                    format!("{sleep}: wait on the condition instead"),
                );
            }
        }
    }
    findings.none();
}

#[test]
fn nothing_is_left_undone() {
    let mut findings = Findings::of("no TODO, FIXME or XXX: do it, or write an issue");
    for folder in CODE.iter().chain(&[".ci"]) {
        for file in files_below(folder) {
            let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            let text = match extension {
                "rs" => Source::read(&file).code_and_comments(),
                "py" | "js" | "mjs" | "sh" | "pl" | "toml" => read(&file),
                _ if file.ends_with(".ci/run") => read(&file),
                _ => continue,
            };
            // This file names the words in comments as well.
            if file.ends_with("tidy/text.rs") {
                continue;
            }
            for word in UNDONE {
                for line in lines_with_word(&text, word) {
                    findings.at(&file, line, *word);
                }
            }
        }
    }
    findings.none();
}

#[test]
fn names_say_what_a_thing_is() {
    let mut findings = Findings::of("no Manager, Helper, Util, Common or Misc: name what it is");
    for source in rust_files(CODE) {
        let code = source.code();
        for (index, line) in code.lines().enumerate() {
            let mut words = line.split(|character: char| !character.is_alphanumeric() && character != '_');
            while let Some(word) = words.next() {
                if !matches!(word, "struct" | "enum" | "trait" | "type" | "mod") {
                    continue;
                }
                let name = words.next().unwrap_or_default();
                if EMPTY_NAMES.iter().any(|empty| name.ends_with(empty) || name == empty.to_lowercase()) {
                    findings.at(&source.path, index + 1, format!("{word} {name}"));
                }
            }
        }
    }
    findings.none();
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).expect("a text file can be read")
}

#[test]
fn functions_are_measured_from_signature_to_closing_brace() {
    let code = "trait A {\n    fn none(&self, x: [u8; 4]);\n    fn some() {\n        { }\n    }\n}\nasync fn two(\n) {\n}\n";
    assert_eq!(functions(code), [(3, 3), (7, 3)]);
}
