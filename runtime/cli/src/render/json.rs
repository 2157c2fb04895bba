//! JSON text laid out for people, its numbers, strings and order untouched.

use std::fmt::Write;

use super::text::is_active;

/// Below this depth everything stays on one line: indenting a very deep value would take its square.
const INDENT_MAX: usize = 32;

/// Lays out JSON text, which must be valid.
///
/// Numbers keep every digit, keys their order. Characters a terminal would obey are written as
/// JSON escapes, so that the text is still the same JSON.
pub(crate) fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    let mut depth = 0_usize;
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => string(&mut characters, &mut out),
            '{' | '[' => {
                out.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(closing) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(closing);
                } else {
                    depth += 1;
                    new_line(depth, &mut out);
                }
            }
            '}' | ']' => {
                let inner = depth;
                depth = depth.saturating_sub(1);
                if inner <= INDENT_MAX {
                    new_line(depth, &mut out);
                }
                out.push(character);
            }
            ',' => {
                out.push(',');
                if depth > INDENT_MAX {
                    out.push(' ');
                }
                new_line(depth, &mut out);
            }
            ':' => out.push_str(": "),
            character if character.is_ascii_whitespace() => {}
            character => out.push(character),
        }
    }
    out
}

/// The rest of a string after its opening quote.
fn string(characters: &mut impl Iterator<Item = char>, out: &mut String) {
    out.push('"');
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                out.push('\\');
                out.extend(characters.next());
            }
            '"' => {
                out.push('"');
                return;
            }
            character if is_active(character) => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            character => out.push(character),
        }
    }
}

fn new_line(depth: usize, out: &mut String) {
    if depth <= INDENT_MAX {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_digits_are_kept() {
        let json = r#"{"z":9007199254740993,"a":[1.10,-0e0, 1E400],"e":{},"l":[ ]}"#;
        let expected = "{\n  \"z\": 9007199254740993,\n  \"a\": [\n    1.10,\n    -0e0,\n    1E400\n  ],\n  \"e\": {},\n  \"l\": []\n}";
        assert_eq!(pretty(json), expected);
    }

    #[test]
    fn strings_pass_through_but_for_what_a_terminal_obeys() {
        let json = "{\"a\":\"x, {y}: \\\" \\u001b \u{202e}\u{9b} 三\"}";
        assert_eq!(pretty(json), "{\n  \"a\": \"x, {y}: \\\" \\u001b \\u202e\\u009b 三\"\n}");
    }

    #[test]
    fn a_deep_value_stays_small_and_the_same() {
        let json = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let laid_out = pretty(&json);
        assert!(laid_out.len() < 30_000, "{}", laid_out.len());
        assert_eq!(laid_out.split_whitespace().collect::<String>(), json);
    }

    #[test]
    fn what_is_laid_out_reads_back_as_it_was() {
        let json = r#"{"a":{"b":[{"c":null},{"d":[[],[1,[2,{"e":"f"}]]]}]},"g":true}"#;
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(pretty(json), serde_json::to_string_pretty(&value).unwrap());
    }
}
