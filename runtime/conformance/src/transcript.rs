//! The latest lines of a conversation, to be shown where something is wrong.

use std::collections::VecDeque;

/// So many lines are kept: enough for what was asked, what came, and what went before.
const LINES_MAX: usize = 5;

/// So many characters of a line are shown.
const LINE_CHARS: usize = 200;

/// Of a clipped line so many characters are those of its end.
const END_CHARS: usize = 40;

/// More bytes of a line are not looked at: it may be 16 MiB long.
const LOOKED_AT: usize = 4 * 1024;

/// The latest lines of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    lines: VecDeque<String>,
}

impl Transcript {
    /// What was sent.
    pub(crate) fn sent(&mut self, line: &[u8]) {
        self.note(format!("→ {}", clipped(line)));
    }

    /// What came on stdout.
    pub(crate) fn came(&mut self, line: &[u8]) {
        self.note(format!("← {}", clipped(line)));
    }

    /// What else happened.
    pub(crate) fn note(&mut self, line: String) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.lines.iter().cloned()
    }
}

/// A line as it is shown: the beginning, and the end where it is long.
pub(crate) fn clipped(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line.len() <= LOOKED_AT {
        let text = String::from_utf8_lossy(line);
        let characters: Vec<char> = text.chars().collect();
        if characters.len() <= LINE_CHARS {
            return text.into_owned();
        }
        let (begin, end) = (LINE_CHARS - END_CHARS, characters.len() - END_CHARS);
        let head: String = characters[..begin].iter().collect();
        let tail: String = characters[end..].iter().collect();
        return format!("{head} … {tail} ({} bytes)", line.len());
    }
    let begin = String::from_utf8_lossy(&line[..LOOKED_AT]);
    let end = String::from_utf8_lossy(&line[line.len() - END_CHARS..]).into_owned();
    let head: String = begin.chars().take(LINE_CHARS - END_CHARS).collect();
    format!("{head} … {end} ({} bytes)", line.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_shows_its_beginning_and_its_end() {
        assert_eq!(clipped(b"{\"id\":1}\n"), "{\"id\":1}");
        let middle = format!("begin{}end\n", "検".repeat(300));
        let shown = clipped(middle.as_bytes());
        assert!(shown.starts_with("begin検") && shown.ends_with("検end (908 bytes)"), "{shown}");
        let long = format!("begin{}end\n", "検".repeat(9_000));
        let shown = clipped(long.as_bytes());
        assert!(shown.starts_with("begin検") && shown.ends_with("end (27008 bytes)"), "{shown}");
        assert!(shown.chars().count() < 250, "{shown}");
    }

    #[test]
    fn only_the_latest_lines_are_kept() {
        let mut transcript = Transcript::default();
        (0..20).for_each(|number| transcript.sent(format!("{number}\n").as_bytes()));
        let lines: Vec<String> = transcript.lines().collect();
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (LINES_MAX, Some("→ 19")));
    }
}
