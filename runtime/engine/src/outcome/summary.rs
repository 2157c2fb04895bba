//! The one line about a call's data: the plugin's own, or one made from what the data is.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A summary that is made up has at most this many characters: one line of a model's context.
const MADE_MAX_CHARS: usize = 200;

/// A plugin's own summary is clipped to this many characters.
const GIVEN_MAX_CHARS: usize = 1_000;

/// So many keys, or items, are shown.
const SHOWN_MAX: usize = 5;

/// One item or key is clipped to this many characters.
const SHOWN_MAX_CHARS: usize = 40;

/// A line about data: its kind, how much it is, and its first keys.
///
/// Nothing is kept of the data but what is shown; the rest is only counted.
pub(crate) fn made_of(data: &RawValue) -> String {
    // A number is said as it is written: no digit is lost.
    if data.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return clipped(data.get(), MADE_MAX_CHARS);
    }
    let mut json = serde_json::Deserializer::from_str(data.get());
    // Data is JSON: it was read from a message.
    let line = json.deserialize_any(WholeLine).unwrap_or_default();
    if is_plain(&line, MADE_MAX_CHARS) { line } else { clipped(&line, MADE_MAX_CHARS) }
}

/// A plugin's own summary as a line: clipped, and without what would break it.
pub(crate) fn given(summary: String) -> String {
    let is_a_line = || summary.len() <= GIVEN_MAX_CHARS && !summary.contains(char::is_control);
    if is_plain(&summary, GIVEN_MAX_CHARS) || is_a_line() {
        return summary;
    }
    let line: Vec<&str> = summary.split(char::is_control).filter(|part| !part.is_empty()).collect();
    clipped(&line.join(" "), GIVEN_MAX_CHARS)
}

/// Whether a text can stand as it is; most can, and this is seen at a glance.
fn is_plain(text: &str, max_chars: usize) -> bool {
    text.len() <= max_chars && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// The text with what could break or forge a line escaped, at most so long.
fn clipped(text: &str, max_chars: usize) -> String {
    if is_plain(text, max_chars) {
        return text.to_owned();
    }
    let mut line = String::new();
    for (length, character) in text.chars().enumerate() {
        if length == max_chars {
            line.push('…');
            return line;
        }
        match character {
            '\n' | '\t' | '\r' => line.extend(character.escape_default()),
            character if breaks_lines(character) => line.extend(character.escape_unicode()),
            character => line.push(character),
        }
    }
    line
}

/// Control characters, and those that turn the direction of text or end a line in some terminals.
fn breaks_lines(character: char) -> bool {
    let turns =
        ('\u{202a}'..='\u{202e}').contains(&character) || ('\u{2066}'..='\u{2069}').contains(&character);
    character.is_control() || turns || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}')
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// What is shown of several things, and how many there are.
#[derive(Default)]
struct Listed {
    text: String,
    shown: usize,
    count: usize,
}

impl Listed {
    fn has_room(&self) -> bool {
        self.shown < SHOWN_MAX
    }

    fn show(&mut self, text: &str) {
        if self.shown > 0 {
            self.text.push_str(", ");
        }
        self.text.push_str(text);
        self.shown += 1;
        self.count += 1;
    }

    /// What is shown; that there are more is said, too.
    fn line(mut self) -> String {
        if self.count > self.shown {
            self.text.push_str(", …");
        }
        self.text
    }
}

/// The line for a whole value.
struct WholeLine;

impl<'de> Visitor<'de> for WholeLine {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok("nothing".to_owned())
    }

    fn visit_bool<E>(self, value: bool) -> Result<String, E> {
        Ok(value.to_string())
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        if text.is_empty() {
            return Ok("empty text".to_owned());
        }
        // One character more than is shown tells that there are more.
        Ok(text.chars().take(MADE_MAX_CHARS + 1).collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<String, A::Error> {
        let Some(first) = items.next_element::<&RawValue>()? else { return Ok("no items".to_owned()) };
        let keys = keys_of(first);
        let mut listed = Listed::default();
        listed.show(&short(first));
        while listed.has_room() {
            let Some(item) = items.next_element::<&RawValue>()? else { break };
            listed.show(&short(item));
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            listed.count += 1;
        }
        let count = listed.count;
        let what = match keys {
            Some(keys) if keys.count == 0 => "{}".to_owned(),
            Some(keys) => keys.line(),
            None => listed.line(),
        };
        Ok(format!("{}: {what}", counted(count, "item")))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<String, A::Error> {
        let keys = KeysOnly.visit_map(members)?;
        Ok(match keys.count {
            0 => "an empty object".to_owned(),
            count => format!("an object with {}: {}", counted(count, "key"), keys.line()),
        })
    }
}

/// The first keys of an object, and how many it has; none of another value.
fn keys_of(value: &RawValue) -> Option<Listed> {
    if !value.get().starts_with('{') {
        return None;
    }
    serde_json::Deserializer::from_str(value.get()).deserialize_map(KeysOnly).ok()
}

struct KeysOnly;

impl<'de> Visitor<'de> for KeysOnly {
    type Value = Listed;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Listed, A::Error> {
        let mut keys = Listed::default();
        while keys.has_room() {
            let Some(key) = members.next_key::<KeyText<'_>>()? else { return Ok(keys) };
            members.next_value::<IgnoredAny>()?;
            keys.show(&clipped(&key.0, SHOWN_MAX_CHARS));
        }
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            keys.count += 1;
        }
        Ok(keys)
    }
}

/// A key, borrowed where it is written without escapes.
struct KeyText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for KeyText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyText<'a>, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Text).map(KeyText)
    }
}

/// An item of an array in a few characters.
fn short(item: &RawValue) -> String {
    let text = item.get();
    match text.as_bytes().first() {
        Some(b'{') => "{…}".to_owned(),
        Some(b'[') => "[…]".to_owned(),
        _ => clipped(text, SHOWN_MAX_CHARS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("JSON")
    }

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(made_of(&raw(json)), expected);
    }

    /// Row O4.
    #[test]
    fn r_o4_a_made_up_summary_says_kind_count_and_first_five_keys() {
        check(r#"[{"id":1,"total":2},{"id":2,"total":3}]"#, "2 items: id, total");
        check(r#"[{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}]"#, "1 item: a, b, c, d, e, …");
        check(
            r#"{"a":1,"b":[1,2],"c":{},"d":1,"e":1,"f":1,"g":1}"#,
            "an object with 7 keys: a, b, c, d, e, …",
        );
        check(r#"{"status":"in review"}"#, "an object with 1 key: status");
        check("[1, 2, 3]", "3 items: 1, 2, 3");
        check(r#"["x","y",[1],1,2,3,4]"#, r#"7 items: "x", "y", […], 1, 2, …"#);
        for (json, expected) in [
            ("null", "nothing"),
            ("true", "true"),
            ("-42", "-42"),
            ("12345678901234567890123", "12345678901234567890123"),
            ("1e300", "1e300"),
            ("[]", "no items"),
            ("{}", "an empty object"),
            ("[{}]", "1 item: {}"),
            (r#""""#, "empty text"),
            (r#""in review""#, "in review"),
        ] {
            check(json, expected);
        }
    }

    /// Row D17.
    #[test]
    fn r_d17_a_summary_is_one_line_of_bounded_length() {
        check(r#""one\ntwo\u001b[2J\u202e""#, r"one\ntwo\u{1b}[2J\u{202e}");
        check(r#"{"a\nb":1}"#, r"an object with 1 key: a\nb");
        let long = made_of(&raw(&format!("\"{}\"", "三".repeat(100_000))));
        assert_eq!(long.chars().count(), MADE_MAX_CHARS + 1, "{long}");
        let keys: Vec<String> = (0..5).map(|key| format!("\"{}{key}\":1", "k".repeat(1_000))).collect();
        let long = made_of(&raw(&format!("{{{}}}", keys.join(","))));
        assert!(long.chars().count() <= MADE_MAX_CHARS + 1, "{long}");
    }

    #[test]
    fn a_plugins_own_summary_stays_as_it_is_where_it_is_a_line() {
        assert_eq!(given("TK-1 is in review".to_owned()), "TK-1 is in review");
        assert_eq!(given("two\r\nlines\u{7}".to_owned()), "two lines");
        assert_eq!(given("x".repeat(5_000)).chars().count(), GIVEN_MAX_CHARS + 1);
    }
}
