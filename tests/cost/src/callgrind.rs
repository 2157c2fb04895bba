//! Instructions, counted by valgrind's callgrind.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mark;
use crate::process::run;

/// What was counted between two dumps, or to the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first is 1.
    pub(crate) number: u32,
    /// The first thread is 1.
    pub(crate) thread: u32,
    pub(crate) instructions: u64,
    pub(crate) file: PathBuf,
}

/// Instructions of a function, or of what was put into it from one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) instructions: u64,
}

/// The oldest that lets a program hold its children by descriptors: 3.19 does not know pidfd_open.
const VERSION_MIN: (u32, u32) = (3, 24);

/// The version of valgrind's tools, such as `valgrind-3.24.0`.
///
/// # Errors
/// It cannot be run or is too old.
pub(crate) fn version() -> io::Result<String> {
    // Its program may be older than its tools, which VALGRIND_LIB may name.
    let output = run(Command::new("valgrind").args(["--tool=none", "true"]))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let version = version_in(&said)
        .ok_or_else(|| io::Error::other(format!("valgrind does not say its version: {said}")))?;
    match number_of(version) >= Some(VERSION_MIN) {
        true => Ok(format!("valgrind-{version}")),
        false => Err(io::Error::other(format!(
            "valgrind {version} is too old, {}.{} at least is needed; `make cost` finds one where it can",
            VERSION_MIN.0, VERSION_MIN.1
        ))),
    }
}

/// The version in what a tool says first.
fn version_in(said: &str) -> Option<&str> {
    said.split_once("Using Valgrind-")?.1.split([' ', '\n']).next()
}

fn number_of(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Runs a program under callgrind, which writes what it counts into the folder; its children run free.
///
/// A mark ends a part of the thread that it is in; the other threads have one part, to the end.
pub(crate) fn count<A: AsRef<OsStr>>(words: &[A], folder: &Path) -> io::Result<Vec<Part>> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--separate-threads=yes", "--trace-children=no", "--quiet"]);
    command.arg(format!("--dump-before={}", mark::FUNCTION));
    command.arg(format!("--callgrind-out-file={}", folder.join("out").display()));
    command.args(words);
    run(&mut command)?;
    let mut parts = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.path();
        let text = std::fs::read(&file)?;
        parts.extend(read(&String::from_utf8_lossy(&text), file));
    }
    parts.sort_by_key(|part| (part.number, part.thread));
    if parts.is_empty() { Err(io::Error::other("callgrind has written nothing")) } else { Ok(parts) }
}

/// A file of callgrind's; without a thread or a count it is one of those that tell only what belongs together.
fn read(text: &str, file: PathBuf) -> Option<Part> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().into());
    let number = |name: &str| field(name)?.parse().ok();
    let instructions =
        text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()?;
    // A run that dumps nothing before its end has one part, which has no number.
    Some(Part { number: number("part").unwrap_or(1), thread: number("thread")?, instructions, file })
}

/// The functions of a part by their own instructions, one for each file that they come from.
pub(crate) fn by_own(file: &Path) -> io::Result<Vec<Function>> {
    let text = std::fs::read(file)?;
    let part = read(&String::from_utf8_lossy(&text), file.to_owned());
    let all = part.map_or(u64::MAX, |part| part.instructions);
    let mut functions = annotate(file, "--inclusive=no")?;
    // To those that the part began within, all of it is ascribed.
    functions.retain(|function| function.instructions < all);
    Ok(functions)
}

/// The functions of a part with what they call, each once, the most expensive first.
pub(crate) fn by_all(file: &Path) -> io::Result<Vec<Function>> {
    Ok(merged(annotate(file, "--inclusive=yes")?, u64::max))
}

/// One of each name, the most expensive first.
pub(crate) fn merged(functions: Vec<Function>, by: fn(u64, u64) -> u64) -> Vec<Function> {
    let mut merged = BTreeMap::<String, Function>::new();
    for function in functions {
        let more = function.instructions;
        merged
            .entry(function.name.clone())
            .and_modify(|known| known.instructions = by(known.instructions, more))
            .or_insert(function);
    }
    let mut functions: Vec<Function> = merged.into_values().collect();
    functions.sort_by_key(|function| std::cmp::Reverse(function.instructions));
    functions
}

fn annotate(file: &Path, how: &str) -> io::Result<Vec<Function>> {
    let mut command = Command::new("callgrind_annotate");
    let output = run(command.args(["--threshold=100", "--show-percs=no", "--auto=no", how]).arg(file))?;
    Ok(annotated(&String::from_utf8_lossy(&output.stdout)).collect())
}

/// Lines such as `1,234  file.rs:name [object]`, as callgrind_annotate writes them.
fn annotated(text: &str) -> impl Iterator<Item = Function> {
    text.lines().filter_map(|line| {
        let (count, place) = line.trim_start().split_once(' ')?;
        let instructions = count.replace(',', "").parse().ok()?;
        let place = place.trim();
        let place = place.rsplit_once(" [").map_or(place, |(place, _object)| place);
        // No path has a colon, and every name may.
        let (file, name) = place.split_once(':')?;
        Some(Function { file: file.to_owned(), name: without_hash(name).to_owned(), instructions })
    })
}

/// The name without what the compiler appends to tell equal ones apart.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((before, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            before
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_by_its_header_and_its_last_line() {
        let text = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: ./cost drive engine\n\
                    part: 2\nthread: 1\n\ndesc: Trigger: --dump-before=plugd_cost_mark\n\npositions: line\n\
                    events: Ir\nsummary: 99\n\n\nfn=(1) main\n1 90\n\ntotals: 90\n";
        let file = PathBuf::from("out.2-01");
        let expected = Part { number: 2, thread: 1, instructions: 90, file: file.clone() };
        assert_eq!(read(text, file), Some(expected));
    }

    #[test]
    fn a_run_without_marks_is_one_part() {
        let part = read("thread: 3\nfn=(1) main\ntotals: 5\n", PathBuf::new()).expect("a part");
        assert_eq!((part.number, part.thread, part.instructions), (1, 3, 5));
    }

    #[test]
    fn what_holds_no_counts_is_no_part() {
        for text in ["", "# callgrind format\nparts: 4\n", "part: 1\nthread: 1\ntotals: many\n"] {
            assert_eq!(read(text, PathBuf::new()), None, "{text}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_tool() {
        let said = "==7== Nulgrind, the minimal Valgrind tool\n==7== Using Valgrind-3.24.0 and LibVEX; rerun with -h\n";
        assert_eq!(version_in(said), Some("3.24.0"));
        assert_eq!(version_in("valgrind: cannot"), None);
        assert!(number_of("3.19.0") < Some(VERSION_MIN) && number_of("4.0") > Some(VERSION_MIN));
        assert_eq!(number_of("3.x"), None);
    }

    #[test]
    fn functions_are_read_from_an_annotation() {
        let text = "--------\nIr         \n--------\n12,345  PROGRAM TOTALS\n\n--------\nIr      file:function\n--------\n\
                    10,000  src/run.rs:plugd::run::h0123456789abcdef [/a/plugd]\n\
                    \x20 2,300  ???:core::ptr::drop_in_place<a::B> [/a/plugd]\n\
                    \x20    45  ./malloc/malloc.c:malloc [/lib/libc.so.6]\n";
        let found: Vec<(String, String, u64)> =
            annotated(text).map(|function| (function.file, function.name, function.instructions)).collect();
        let expected = [
            ("src/run.rs", "plugd::run", 10_000),
            ("???", "core::ptr::drop_in_place<a::B>", 2_300),
            ("./malloc/malloc.c", "malloc", 45),
        ];
        assert_eq!(found, expected.map(|(file, name, count)| (file.to_owned(), name.to_owned(), count)));
    }

    #[test]
    fn a_function_of_several_files_counts_once() {
        let function = |file: &str, name: &str, instructions| Function {
            file: file.to_owned(),
            name: name.to_owned(),
            instructions,
        };
        let functions = vec![function("a.rs", "f", 3), function("b.rs", "g", 4), function("b.rs", "f", 2)];
        let counts = |by| -> Vec<(String, u64)> {
            let functions = merged(functions.clone(), by).into_iter();
            functions.map(|function| (function.name, function.instructions)).collect()
        };
        assert_eq!(counts(|a, b| a + b), [("f".to_owned(), 5), ("g".to_owned(), 4)]);
        assert_eq!(counts(u64::max), [("g".to_owned(), 4), ("f".to_owned(), 3)]);
    }
}
