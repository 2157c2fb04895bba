//! Text from plugins made safe to show, colours, times.

use std::borrow::Cow;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plugd_protocol::control::{PluginState, UnixMillis};

/// Whether to colour, decided once for each stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Colours where a terminal shows them and `NO_COLOR` does not forbid it.
    pub(crate) fn when(terminal: bool) -> Paint {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Paint { on: terminal && !forbidden && std::env::var_os("TERM").is_none_or(|term| term != "dumb") }
    }

    /// No colours.
    pub(crate) fn plain() -> Paint {
        Paint { on: false }
    }

    #[cfg(test)]
    pub(crate) fn never() -> Paint {
        Paint::plain()
    }

    fn sgr(self, code: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.sgr("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.sgr("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.sgr("31", text)
    }

    pub(crate) fn state(self, state: PluginState, text: &str) -> String {
        match state {
            PluginState::Ready | PluginState::Busy => self.sgr("32", text),
            PluginState::Starting | PluginState::Backoff | PluginState::Stopping => self.sgr("33", text),
            PluginState::Blocked | PluginState::Disabled | PluginState::Failed => self.sgr("31", text),
            PluginState::Registered | PluginState::Idle | PluginState::Stopped => text.to_owned(),
        }
    }
}

/// Whether a character does something to a terminal, or to the order of the text around it.
pub(super) fn is_active(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Text whose active characters are shown instead of obeyed; line ends and tabs are kept.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |character| is_active(character) && character != '\n' && character != '\t')
}

/// As [`visible`], further lines indented by so many spaces: none of them can pass for one of ours.
pub(super) fn indented(text: &str, spaces: usize) -> String {
    let further = format!("\n{}", " ".repeat(spaces));
    visible(text.trim_end_matches('\n')).replace('\n', &further)
}

/// As [`visible`], on one line: what parts lines or columns is a space.
pub(crate) fn visible_line(text: &str) -> Cow<'_, str> {
    let parts = |character: char| character == '\n' || character == '\t';
    if !text.contains(parts) {
        return escape(text, is_active);
    }
    let line = text.trim_end_matches(['\n', '\r']).replace("\r\n", " ").replace(parts, " ");
    Cow::Owned(escape(&line, is_active).into_owned())
}

/// A description, which its author may have written over several lines, on one: the rest as [`visible_line`].
pub(crate) fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    visible_line(&lines.collect::<Vec<_>>().join(" ")).into_owned()
}

fn escape(text: &str, active: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&active) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if active(character) {
            let _ = write!(shown, "{}", character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// A time as RFC 3339 in UTC, to the millisecond.
pub(super) fn time(at: UnixMillis) -> String {
    match UNIX_EPOCH.checked_add(Duration::from_millis(at.0)) {
        // Beyond the year 9999 there is no such form.
        Some(time) if at.0 < 253_402_300_800_000 => humantime::format_rfc3339_millis(time).to_string(),
        _ => format!("{} ms", at.0),
    }
}

/// How long ago something was, in whole seconds.
pub(super) fn since(at: UnixMillis) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let elapsed = now.saturating_sub(Duration::from_millis(at.0));
    humantime::format_duration(Duration::from_secs(elapsed.as_secs())).to_string()
}

/// How long until something happens, in whole seconds.
pub(super) fn until(at: UnixMillis) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_millis(at.0).saturating_sub(now);
    humantime::format_duration(Duration::from_secs(left.as_secs())).to_string()
}

/// The name a value has on the wire, such as a state's.
pub(crate) fn wire_name<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_a_cursor_or_turn_text_round_is_shown_instead() {
        assert_eq!(visible("\u{1b}[2Jbye\r\u{202e}evil\u{9b}"), "\\u{1b}[2Jbye\\u{d}\\u{202e}evil\\u{9b}");
        assert_eq!(visible("two\nlines\tand 三"), "two\nlines\tand 三");
        assert_eq!(indented("two\r\nli\u{1b}nes\n\n", 2), "two\\u{d}\n  li\\u{1b}nes");
        assert_eq!(visible_line("two\nlines,\r\nthree\tx\r\n"), "two lines, three x");
        assert_eq!(in_one_line("two\r\n lines\n\n\u{1b}[2J\rx"), "two lines \\u{1b}[2J\\u{d}x");
    }

    #[test]
    fn times_are_readable_and_never_panic() {
        assert_eq!(time(UnixMillis(1_734_220_800_123)), "2024-12-15T00:00:00.123Z");
        assert_eq!(time(UnixMillis(u64::MAX)), "18446744073709551615 ms");
        assert_eq!(since(UnixMillis(u64::MAX)), "0s");
    }
}
