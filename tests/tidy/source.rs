//! Rust text taken apart just far enough to tell code, comments and strings from each other.

use std::path::{Path, PathBuf};

/// What a byte of a Rust file belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Text,
}

/// A Rust file and what each of its bytes is.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    text: String,
    parts: Vec<Part>,
}

impl Source {
    pub(crate) fn read(path: &Path) -> Source {
        let text = std::fs::read_to_string(path).expect("a source file can be read");
        Source::new(path, text)
    }

    pub(crate) fn new(path: &Path, text: String) -> Source {
        let parts = parts_of(text.as_bytes());
        Source { path: path.to_owned(), text, parts }
    }

    /// The file as it is, by lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The code alone: comments and the insides of strings are blank.
    pub(crate) fn code(&self) -> String {
        self.only(|part| part == Part::Code)
    }

    /// Code and strings: comments are blank.
    pub(crate) fn code_and_strings(&self) -> String {
        self.only(|part| part != Part::Comment)
    }

    /// Code and comments: the insides of strings are blank.
    pub(crate) fn code_and_comments(&self) -> String {
        self.only(|part| part != Part::Text)
    }

    fn only(&self, keep: impl Fn(Part) -> bool) -> String {
        let kept = self.text.bytes().zip(&self.parts);
        let bytes = kept.map(|(byte, part)| if byte == b'\n' || keep(*part) { byte } else { b' ' });
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }
}

fn parts_of(text: &[u8]) -> Vec<Part> {
    let mut parts = vec![Part::Code; text.len()];
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let (part, length) = if rest.starts_with(b"//") {
            (Part::Comment, rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()))
        } else if rest.starts_with(b"/*") {
            (Part::Comment, block_comment(rest))
        } else if let Some(length) = raw_string(text, at) {
            (Part::Text, length)
        } else if rest[0] == b'"' {
            (Part::Text, quoted(rest, b'"'))
        } else if rest[0] == b'\'' && is_character(rest) {
            (Part::Text, quoted(rest, b'\''))
        } else {
            (Part::Code, 1)
        };
        parts[at..at + length].fill(part);
        at += length;
    }
    parts
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The length of a raw string that begins here, such as `r#"…"#`.
fn raw_string(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at..];
    let in_a_word = at > 0 && (text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
    if rest[0] != b'r' || (in_a_word && text[at - 1] != b'b') {
        return None;
    }
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let body = 2 + hashes;
    let end = rest[body..].windows(close.len()).position(|window| window == close);
    Some(end.map_or(rest.len(), |end| body + end + close.len()))
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Whether a `'` opens a character rather than a lifetime.
fn is_character(rest: &[u8]) -> bool {
    let after = rest.get(1).copied().unwrap_or_default();
    if after == b'\\' {
        return true;
    }
    let length = match after {
        0x00..=0x7F => 1,
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    rest.get(1 + length) == Some(&b'\'')
}

/// The numbers of the lines that hold a word; a word ends where no letter, digit or `_` follows.
pub(crate) fn lines_with_word(text: &str, word: &str) -> Vec<usize> {
    let part_of_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let whole = |(at, _): (usize, &str)| {
            let before = line[..at].chars().next_back().is_some_and(part_of_word);
            let after = line[at + word.len()..].chars().next().is_some_and(part_of_word);
            !before && !after
        };
        if line.match_indices(word).any(whole) {
            found.push(index + 1);
        }
    }
    found
}

/// The number of the line a byte stands in.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

#[test]
fn comments_strings_and_code_are_told_apart() {
    let text = r##"let a = "s1 // s2"; // c1 "c2"
/* c3 /* c4 */ c5 */ let g = '\''; fn i<'j>(k: &'j str) {} let l = r#"s3 " s4"#; let o = '"'; let p = b"\"s5";"##;
    let source = Source::new(Path::new("x.rs"), text.to_owned());
    let code = source.code();
    for gone in ["s1", "s2", "s3", "s4", "s5", "c1", "c2", "c3", "c4", "c5"] {
        assert!(!code.contains(gone), "{gone:?} is not code: {code}");
    }
    for kept in ["let a", "let g", "fn i<'j>(k: &'j str)", "let l", "let o", "let p"] {
        assert!(code.contains(kept), "{kept:?} is code: {code}");
    }
    let (with_strings, with_comments) = (source.code_and_strings(), source.code_and_comments());
    assert!(with_strings.contains("s1 // s2") && !with_strings.contains("c1"), "{with_strings}");
    assert!(with_comments.contains("c5") && !with_comments.contains("s3"), "{with_comments}");
    assert_eq!(code.lines().count(), text.lines().count());
}

#[test]
fn a_word_is_not_found_inside_another() {
    assert_eq!(lines_with_word("round_trip\ntrip\n\"trip.plan\" trips", "trip"), [2, 3]);
}
