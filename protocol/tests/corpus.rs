//! What must hold of every byte a plugin can write, over the corpus, every cut and seeded mutations.
//!
//! `make fuzz` looks for inputs that are not among them; see `protocol/fuzz`.
#![allow(clippy::print_stderr, reason = "a failure names its input")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod properties;

/// Mutants tried of each target: about half a second without optimisation.
const MUTANTS: usize = 4_000;

/// Longer inputs are not cut at every byte: that takes their length squared.
const CUT_MAX: usize = 700;

/// A mutant is no longer than this, so that a run of copies does not grow without end.
const MUTANT_MAX: usize = 4_096;

/// Pieces that parsers stumble over.
const PIECES: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b" ",
    b"null",
    b"true",
    b"-",
    b"-0",
    b"1e999",
    b"18446744073709551616",
    b"0.1",
    b"\xEF\xBB\xBF",
    b"\xC3",
    b"\xED\xA0\x80",
    b"\xFF",
    b"\\ud800",
    b"\\u0000",
    b"\"id\":1",
    b"\"id\":1.0",
    b"\"method\":\"log\"",
    b"\"jsonrpc\":\"2.0\"",
    b"\"result\":{}",
    b"\"error\":{\"code\":1,\"message\":\"\"}",
    b"\"data\":null",
    b"\"name\":\"a\"",
    b"\"input_schema\":{}",
    b"\"version\":\"*\"",
    b"\"concurrency\":0",
    b"\"on_loss\":\"restart\"",
];

/// One input and where it comes from.
type Named = (String, Vec<u8>);

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn files(path: &str) -> Vec<Named> {
    let entries = fs::read_dir(folder(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut files: Vec<Named> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .map(|file| (file.display().to_string(), fs::read(&file).expect("a file can be read")))
        .collect();
    files.sort();
    files
}

/// The written corpus of a target, and all that was ever released.
fn corpus(target: &str) -> Vec<Named> {
    let mut all = files(&format!("fuzz/corpus/{target}"));
    assert!(all.len() > 10, "the corpus of {target} was not found");
    all.extend(files("wire/v1"));
    all
}

/// What is too long to be kept as a file.
fn endless() -> Vec<Named> {
    let deep = |open: &str, count: usize| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}", open.repeat(count))
    };
    vec![
        ("a line without end".to_owned(), vec![b'a'; 200_000]),
        ("blanks without end".to_owned(), vec![b' '; 200_000]),
        ("lines without end".to_owned(), b"a\r\n".repeat(30_000)),
        ("arrays without end".to_owned(), deep("[", 100_000).into_bytes()),
        ("objects without end".to_owned(), deep("{\"data\":", 30_000).into_bytes()),
        ("arrays that end".to_owned(), (deep("[", 100_000) + &"]".repeat(100_000) + "}").into_bytes()),
        ("members without end".to_owned(), deep("{\"a\":1,", 1).into_bytes().repeat(3_000)),
    ]
}

/// The same numbers every time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).expect("below a usize")
    }

    fn mutant(&mut self, corpus: &[Named]) -> Vec<u8> {
        let mut bytes = corpus[self.below(corpus.len())].1.clone();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + 1 + self.below(12)).min(bytes.len());
            match self.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 => drop(bytes.drain(at.min(end)..end)),
                2 => {
                    let copy = bytes[at.min(end)..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                3 => {
                    let other = &corpus[self.below(corpus.len())].1;
                    let from = self.below(other.len());
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[from..]);
                }
                _ => drop(bytes.splice(at..at, PIECES[self.below(PIECES.len())].iter().copied())),
            }
        }
        bytes.truncate(MUTANT_MAX);
        bytes
    }
}

/// Runs a check over the corpus of a target, what is endless, and mutants; a failure names its input.
fn holds(target: &str, check: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let corpus = corpus(target);
    let tried = |name: &str, bytes: &[u8]| {
        if let Err(panic) = std::panic::catch_unwind(|| check(bytes)) {
            eprintln!("{target}: {name}: {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]));
            std::panic::resume_unwind(panic);
        }
    };
    for (name, bytes) in corpus.iter().chain(&endless()) {
        tried(name, bytes);
    }
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    for number in 0..MUTANTS {
        tried(&format!("mutant {number}"), &numbers.mutant(&corpus));
    }
}

#[test]
fn frames_are_the_same_however_the_bytes_come() {
    holds("decoder", properties::decoder);
}

#[test]
fn frames_are_the_same_at_every_cut() {
    for (_, bytes) in corpus("decoder").iter().filter(|(_, bytes)| bytes.len() <= CUT_MAX) {
        properties::decoder_at_every_cut(bytes);
    }
}

#[test]
fn a_message_is_never_taken_for_stray_output_and_reads_as_it_was_written() {
    holds("message", properties::message);
}

#[test]
fn every_released_message_is_one() {
    for (name, bytes) in files("wire/v1") {
        let line = bytes.strip_suffix(b"\n").expect("a file ends with its newline");
        assert!(plugd_protocol::message::Message::parse(line).is_ok(), "{name}");
    }
}

#[test]
fn a_manifest_is_usable_or_refused_and_reads_as_it_was_written() {
    holds("manifest", properties::manifest);
}
