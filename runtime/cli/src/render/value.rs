//! Data in layers: single facts first, then what is nested, then lists, clipped.

use std::fmt::Write;

use serde_json::value::RawValue;

use super::json::pretty;
use super::text::{Paint, visible, visible_line};
use crate::arguments::Members;

/// So many items of a list are shown.
const ITEMS_SHOWN: usize = 10;

/// A single value within others is clipped to so many characters.
const FACT_CHARS: usize = 1_000;

/// An item of a list is clipped to so many characters.
const ITEM_CHARS: usize = 200;

/// What is nested deeper than this is shown on one line.
const DEPTH_MAX: usize = 3;

/// Data as text, and whether anything of it was left out.
pub(super) struct Layers {
    pub(super) text: String,
    pub(super) clipped: bool,
}

impl Layers {
    /// Lays out data, which is JSON text.
    pub(super) fn of(data: &str, paint: Paint) -> Layers {
        let mut layers = Layers { text: String::new(), clipped: false };
        match Kind::of(data) {
            Kind::Fact if data.starts_with('"') => {
                let text = serde_json::from_str::<String>(data).unwrap_or_else(|_| data.to_owned());
                layers.text = format!("{}\n", visible(&text));
            }
            Kind::Fact => layers.text = format!("{}\n", visible_line(data)),
            Kind::Object => layers.object(data, 0, paint),
            Kind::List => {
                let items = items(data);
                let _ = writeln!(layers.text, "{}", counted(items.len()));
                layers.list(&items, 0);
            }
        }
        layers
    }

    fn object(&mut self, data: &str, depth: usize, paint: Paint) {
        let indent = "  ".repeat(depth);
        let Ok(Members(members)) = serde_json::from_str(data) else {
            // A key that is no text cannot be shown as one.
            let _ = writeln!(self.text, "{indent}{}", pretty(data));
            return;
        };
        if members.is_empty() {
            let _ = writeln!(self.text, "{indent}{{}}");
        }
        // Each layer in the order that the plugin wrote.
        let of_kind = |kind: Kind| members.iter().filter(move |(_, value)| Kind::of(value.get()) == kind);
        for (key, value) in of_kind(Kind::Fact) {
            let fact = self.clip(&fact(value.get()), FACT_CHARS).replace('\n', &format!("\n{indent}    "));
            let _ = writeln!(self.text, "{indent}{}: {fact}", paint.bold(&visible_line(key)));
        }
        for (key, value) in of_kind(Kind::Object) {
            let key = paint.bold(&visible_line(key));
            if depth + 1 < DEPTH_MAX && value.get() != "{}" {
                let _ = writeln!(self.text, "{indent}{key}:");
                self.object(value.get(), depth + 1, paint);
            } else {
                let line = self.one_line(value.get());
                let _ = writeln!(self.text, "{indent}{key}: {line}");
            }
        }
        for (key, value) in of_kind(Kind::List) {
            let items = items(value.get());
            let count = counted(items.len());
            let _ = writeln!(self.text, "{indent}{}: {count}", paint.bold(&visible_line(key)));
            self.list(&items, depth + 1);
        }
    }

    fn list(&mut self, items: &[&RawValue], depth: usize) {
        let indent = "  ".repeat(depth);
        for item in items.iter().take(ITEMS_SHOWN) {
            let line = self.one_line(item.get());
            let _ = writeln!(self.text, "{indent}- {line}");
        }
        if let Some(more) = items.len().checked_sub(ITEMS_SHOWN).filter(|more| *more > 0) {
            self.clipped = true;
            let _ = writeln!(self.text, "{indent}… {more} more");
        }
    }

    /// A value on one line: a fact as it is, anything else as JSON.
    fn one_line(&mut self, data: &str) -> String {
        let text = match Kind::of(data) {
            Kind::Fact => visible_line(&fact(data)).into_owned(),
            Kind::Object | Kind::List => visible_line(&on_one_line(data)).into_owned(),
        };
        self.clip(&text, ITEM_CHARS)
    }

    fn clip(&mut self, text: &str, chars: usize) -> String {
        match text.char_indices().nth(chars) {
            None => text.to_owned(),
            Some((end, _)) => {
                self.clipped = true;
                format!("{}…", &text[..end])
            }
        }
    }
}

/// What layer a value belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fact,
    Object,
    List,
}

impl Kind {
    fn of(data: &str) -> Kind {
        match data.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            _ => Kind::Fact,
        }
    }
}

/// A single value as people write it; a text without its quotes.
fn fact(data: &str) -> String {
    match serde_json::from_str::<String>(data) {
        Ok(text) if text.is_empty() => "\"\"".to_owned(),
        Ok(text) => visible(&text).into_owned(),
        Err(_) => visible_line(data).into_owned(),
    }
}

fn items(data: &str) -> Vec<&RawValue> {
    serde_json::from_str(data).unwrap_or_default()
}

fn counted(items: usize) -> String {
    if items == 1 { "1 item".to_owned() } else { format!("{items} items") }
}

/// JSON text without the line ends that a plugin may have laid it out with.
fn on_one_line(data: &str) -> String {
    let mut out = String::with_capacity(data.len().min(ITEM_CHARS * 8));
    let (mut quoted, mut escaped) = (false, false);
    for character in data.chars().take(ITEM_CHARS * 8) {
        if !quoted && character.is_ascii_whitespace() {
            // One space stands for all that follow one another.
            if !out.ends_with(' ') {
                out.push(' ');
            }
            continue;
        }
        quoted = match character {
            '"' if !escaped => !quoted,
            _ => quoted,
        };
        escaped = character == '\\' && !escaped;
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(data: &str, expected: &str) {
        assert_eq!(Layers::of(data, Paint::never()).text, expected);
    }

    #[test]
    fn facts_come_first_then_what_is_nested_then_lists() {
        check(
            r#"{"steps":[{"at":1.10},"done"],"owner":{"name":"Ada","tags":[]},"status":"in review","n":9007199254740993,"none":null}"#,
            "status: in review\nn: 9007199254740993\nnone: null\nowner:\n  name: Ada\n  tags: 0 items\n\
             steps: 2 items\n  - {\"at\":1.10}\n  - done\n",
        );
    }

    #[test]
    fn data_that_is_one_value_is_shown_as_it_is() {
        check(r#""two\nlines""#, "two\nlines\n");
        check("1.10", "1.10\n");
        check("null", "null\n");
        check("{}", "{}\n");
        check(r#"{"\ud800":1}"#, "{\n  \"\\ud800\": 1\n}\n");
        check(r#"["a",{"b":  1}]"#, "2 items\n- a\n- {\"b\": 1}\n");
    }

    #[test]
    fn lists_and_long_values_are_clipped_and_that_is_known() {
        let long: Vec<u32> = (0..13).collect();
        let layers = Layers::of(&serde_json::json!({ "n": long }).to_string(), Paint::never());
        assert!(layers.clipped && layers.text.ends_with("  - 9\n  … 3 more\n"), "{}", layers.text);
        let layers = Layers::of(&serde_json::json!(["x".repeat(300)]).to_string(), Paint::never());
        assert!(layers.clipped && layers.text.chars().count() < 250, "{}", layers.text);
        assert!(!Layers::of("{\"n\":[1]}", Paint::never()).clipped);
    }

    #[test]
    fn nothing_in_data_is_obeyed_by_a_terminal_and_depth_is_no_matter() {
        check(r#"{"a\u001b[2J":"\u001b[2J\nb"}"#, "a\\u{1b}[2J: \\u{1b}[2J\n    b\n");
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Layers::of(&deep, Paint::never()).text.starts_with("a: 1 item\n  - [[["));
        let deep = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
        assert!(Layers::of(&deep, Paint::never()).text.len() < 1_000);
    }
}
