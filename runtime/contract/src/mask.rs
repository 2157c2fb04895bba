//! Sensitive values taken out of what is kept or shown; everything else stays as it was written.

use std::borrow::Cow;

use plugd_protocol::error::ArgumentProblem;
use serde_json::value::RawValue;

use crate::contract::Contract;
use crate::shape::{HIDDEN, Shape, Shapes, Step};

impl Contract {
    /// Whether the schema declares anything sensitive.
    ///
    /// Sensitive is what is marked `writeOnly: true`, `format: "password"` or `"x-sensitive": true`.
    pub fn has_sensitive(&self) -> bool {
        self.shapes.has_sensitive()
    }

    /// Whether the value at a JSON Pointer, or something around it, is sensitive.
    pub fn is_sensitive(&self, pointer: &str) -> bool {
        self.has_sensitive() && self.shapes.hiding(pointer).whole
    }

    /// The value with `"***"` in place of whatever is sensitive; borrowed where nothing is.
    ///
    /// Digits, order and spaces stay as they were. Hidden too is what may be sensitive: a key nobody
    /// declared beside a sensitive one, and a value of another type than the one that holds it.
    pub fn mask<'v>(&self, value: &'v RawValue) -> Cow<'v, str> {
        let text = value.get();
        if !self.has_sensitive() {
            return Cow::Borrowed(text);
        }
        let mut masking = Masking { shapes: &self.shapes, text, masked: String::new(), copied: 0 };
        masking.run();
        if masking.copied == 0 {
            return Cow::Borrowed(text);
        }
        masking.masked.push_str(&text[masking.copied..]);
        Cow::Owned(masking.masked)
    }

    /// Takes sensitive values out of problems with arguments.
    pub fn conceal(&self, problems: &mut [ArgumentProblem]) {
        if !self.has_sensitive() {
            return;
        }
        for problem in problems {
            let hiding = self.shapes.hiding(&problem.path);
            if let Some(got) = problem.got.as_mut().filter(|_| hiding.whole || hiding.within) {
                let kind = got.split(' ').next().unwrap_or_default();
                *got = if kind == "null" { kind.to_owned() } else { format!("{kind} {HIDDEN}") };
            }
            problem.path = hiding.path;
        }
    }
}

/// What surrounds the place in the text: one for each object and list.
enum Frame<'s> {
    Object { shape: Option<&'s Shape>, key: Cow<'s, str>, awaits_key: bool },
    List { shape: Option<&'s Shape>, index: usize },
}

/// One pass over a text that is known to be JSON, without recursion.
struct Masking<'s> {
    shapes: &'s Shapes,
    text: &'s str,
    masked: String,
    /// Up to where the text has been copied.
    copied: usize,
}

impl<'s> Masking<'s> {
    fn run(&mut self) {
        let text = self.text;
        let mut frames: Vec<Frame<'s>> = Vec::new();
        let mut at = 0;
        while let Some(&byte) = text.as_bytes().get(at) {
            match (byte, frames.last_mut()) {
                (b' ' | b'\t' | b'\r' | b'\n' | b':', _) => at += 1,
                (b'}' | b']', _) => {
                    frames.pop();
                    at += 1;
                }
                (b',', Some(Frame::Object { awaits_key, .. })) => {
                    *awaits_key = true;
                    at += 1;
                }
                (b',', Some(Frame::List { index, .. })) => {
                    *index += 1;
                    at += 1;
                }
                (b'"', Some(Frame::Object { key, awaits_key, .. })) if *awaits_key => {
                    let end = string_end(text, at);
                    *key = unquoted(&text[at..end]);
                    *awaits_key = false;
                    at = end;
                }
                _ => at = self.value(at, byte, &mut frames),
            }
        }
    }

    /// Hides the value that starts here, or steps into it; gives where to go on.
    fn value(&mut self, start: usize, first: u8, frames: &mut Vec<Frame<'s>>) -> usize {
        let step = match frames.last() {
            None => self.shapes.entered(self.shapes.root),
            Some(Frame::Object { shape: Some(shape), key, .. }) => self.shapes.member(shape, key),
            Some(Frame::List { shape: Some(shape), index }) => self.shapes.entered(shape.item(*index)),
            Some(Frame::Object { shape: None, .. } | Frame::List { shape: None, .. }) => Step::Into(None),
        };
        let shape = match step {
            Step::Into(inner) => self.shapes.get(inner).filter(|shape| shape.guarded),
            Step::Hidden(_) => return self.hide(start),
        };
        match (first, shape) {
            (b'{', Some(shape)) if !shape.is_object() => self.hide(start),
            (b'[', Some(shape)) if !shape.is_list() => self.hide(start),
            // It may be what it should have been, written as text.
            (b'"', Some(_)) => self.hide(start),
            (b'{', shape) => {
                frames.push(Frame::Object { shape, key: Cow::Borrowed(""), awaits_key: true });
                start + 1
            }
            (b'[', shape) => {
                frames.push(Frame::List { shape, index: 0 });
                start + 1
            }
            _ => value_end(self.text, start),
        }
    }

    fn hide(&mut self, start: usize) -> usize {
        let end = value_end(self.text, start);
        if &self.text[start..end] != "null" {
            self.masked.push_str(&self.text[self.copied..start]);
            self.masked.push('"');
            self.masked.push_str(HIDDEN);
            self.masked.push('"');
            self.copied = end;
        }
        end
    }
}

/// A JSON string as the text it stands for.
fn unquoted(quoted: &str) -> Cow<'_, str> {
    let inside = quoted.trim_matches('"');
    if inside.contains('\\') {
        Cow::Owned(serde_json::from_str(quoted).unwrap_or_default())
    } else {
        Cow::Borrowed(inside)
    }
}

/// Where the value ends that starts here.
fn value_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(text, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Where the string ends that starts here, its quotes included.
pub(crate) fn string_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
