//! Text from a plugin's stderr and stray lines from its stdout, as bounded log entries.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plugd_protocol::CallId;
use plugd_protocol::control::UnixMillis;

use super::telling::{goes_on, is_mark, is_of_stack};

/// A line longer than this is cut.
pub(crate) const LINE_MAX: usize = 8 * 1024;

/// How many of the last lines on stderr are kept for the report of an exit.
const TAIL_LINES: usize = 20;

/// A line of that tail is cut to this many characters.
const TAIL_LINE_CHARS: usize = 500;

/// Lines a second that a run may log before the rest is only counted.
const LINES_PER_SECOND: u32 = 1_000;

/// The second that is meant.
const BUDGET_PERIOD: Duration = Duration::from_secs(1);

/// Cuts a byte stream into lines of bounded length, whatever its bytes.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    partial: Vec<u8>,
    /// Inside a line that was cut.
    skipping: bool,
}

impl LineSplitter {
    /// The lines that are complete now. A carriage return ends a line too, as progress bars use it.
    pub(crate) fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        for chunk in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, ended) = match chunk.split_last() {
                Some((b'\n' | b'\r', text)) => (text, true),
                _ => (chunk, false),
            };
            if !self.skipping {
                let room = LINE_MAX.saturating_sub(self.partial.len());
                self.partial.extend_from_slice(&text[..text.len().min(room)]);
                if text.len() > room {
                    self.partial.extend_from_slice("…".as_bytes());
                    self.skipping = true;
                }
            }
            if ended {
                self.skipping = false;
                if !self.partial.is_empty() {
                    line(&self.partial);
                    self.partial.clear();
                }
            }
        }
    }

    /// Whether a line is begun and not ended.
    pub(crate) fn is_begun(&self) -> bool {
        !self.partial.is_empty()
    }

    /// What is left at the end of the stream, or is to stand for a line of its own.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.partial)).filter(|rest| !rest.is_empty())
    }
}

/// The last lines on stderr, as bytes: of a flood only these few become text.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    last: VecDeque<Line>,
    /// What a stack is about that is too long for them: the line, and what of it stands in the next one.
    above: Vec<Line>,
}

/// A line and the call that it belongs to.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    of: Whose,
}

/// What a line on stderr was written in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Whose {
    /// No call had come yet.
    Before,
    /// This one, which was the only one.
    Call(CallId),
    /// One of several, or a call that had ended: it may hold what is not for others.
    #[default]
    Unclear,
}

impl Tail {
    pub(crate) fn push(&mut self, line: &[u8], of: Whose) {
        let mut kept = Vec::new();
        if self.last.len() == TAIL_LINES {
            let gone = self.last.pop_front().unwrap_or_default();
            self.let_go(&gone);
            kept = gone.bytes;
        }
        kept.clear();
        // A character has at most four bytes.
        kept.extend_from_slice(&line[..line.len().min(TAIL_LINE_CHARS * 4)]);
        self.last.push_back(Line { bytes: kept, of });
    }

    /// Keeps a line all the same that says what the stack after it is about, until that stack is over.
    fn let_go(&mut self, line: &Line) {
        let text = String::from_utf8_lossy(&line.bytes);
        let copy = || Line { bytes: line.bytes.clone(), of: line.of.clone() };
        if is_mark(&text) {
            self.above = vec![copy()];
        } else if let [mark] = self.above.as_slice()
            && goes_on(&String::from_utf8_lossy(&mark.bytes))
        {
            self.above.push(copy());
        } else if !self.above.is_empty() {
            let next = self.last.front().map(|next| String::from_utf8_lossy(&next.bytes)).unwrap_or_default();
            if !is_of_stack(&text, &next) {
                self.above.clear();
            }
        }
    }

    /// All of them.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.those(|_| true)
    }

    /// Those from before any call: they hold nothing that a caller gave.
    pub(crate) fn before_calls(&self) -> Vec<String> {
        self.those(|of| *of == Whose::Before)
    }

    /// Those that whoever made a call may read: of that call, or of no call where it has none.
    pub(crate) fn for_call(&self, call_id: &CallId) -> Vec<String> {
        let own = self.those(|of| matches!(of, Whose::Call(own) if own == call_id));
        if own.is_empty() { self.before_calls() } else { own }
    }

    fn those(&self, wanted: impl Fn(&Whose) -> bool) -> Vec<String> {
        let text = |line: &Line| text_of(&line.bytes).chars().take(TAIL_LINE_CHARS).collect();
        self.above.iter().chain(&self.last).filter(|line| wanted(&line.of)).map(text).collect()
    }
}

/// How many lines a run may still log in this second.
#[derive(Debug)]
pub(crate) struct LineBudget {
    second: Instant,
    left: u32,
    suppressed: u64,
}

/// What to do with a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Spend {
    /// Log it.
    Log,
    /// Log it, and that so many were not.
    LogAfterGap(u64),
    /// Only count it.
    Suppress,
}

impl LineBudget {
    /// When those that were not logged are told of, where nothing is logged before.
    pub(crate) fn due(&self) -> Option<Instant> {
        (self.suppressed > 0).then(|| self.second + BUDGET_PERIOD)
    }

    /// How many were not logged and are told of by then.
    pub(crate) fn gap(&mut self, now: Instant) -> Option<u64> {
        self.due().filter(|due| *due <= now).map(|_| std::mem::take(&mut self.suppressed))
    }

    /// How many were not logged, at the end of the run.
    pub(crate) fn last_gap(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.suppressed)).filter(|count| *count > 0)
    }

    pub(crate) fn new(now: Instant) -> LineBudget {
        LineBudget { second: now, left: LINES_PER_SECOND, suppressed: 0 }
    }

    pub(crate) fn spend(&mut self, now: Instant) -> Spend {
        if now.duration_since(self.second) >= BUDGET_PERIOD {
            self.second = now;
            self.left = LINES_PER_SECOND;
        }
        match self.left.checked_sub(1) {
            None => {
                self.suppressed += 1;
                Spend::Suppress
            }
            Some(left) => {
                self.left = left;
                match std::mem::take(&mut self.suppressed) {
                    0 => Spend::Log,
                    count => Spend::LogAfterGap(count),
                }
            }
        }
    }
}

/// Bytes as text of bounded length; what is no UTF-8 is shown as U+FFFD.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    if bytes.len() <= LINE_MAX + 3 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    format!("{}…", String::from_utf8_lossy(&bytes[..LINE_MAX]))
}

/// The time of the wall clock.
pub fn unix_now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(chunks: &[&[u8]], expected: &[&str]) {
        let mut splitter = LineSplitter::default();
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, |line| lines.push(text_of(line)));
        }
        lines.extend(splitter.finish().map(|rest| text_of(&rest)));
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_are_cut_at_line_ends_of_every_kind() {
        check(&[b"a\nb\r\nc"], &["a", "b", "c"]);
        check(&[b"10%\r20%\r", b"30%\r"], &["10%", "20%", "30%"]);
        check(&["é".as_bytes().split_at(1).0, "é".as_bytes().split_at(1).1, b"\n"], &["é"]);
    }

    #[test]
    fn an_endless_line_is_cut_once() {
        let mut splitter = LineSplitter::default();
        let mut lines = Vec::new();
        for _ in 0..100 {
            splitter.push(&[b'x'; 4096], |line| lines.push(text_of(line)));
            assert!(splitter.partial.len() <= LINE_MAX + 3);
        }
        splitter.push(b"\nnext\n", |line| lines.push(text_of(line)));
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with('…'));
        assert_eq!(lines[1], "next");
    }

    #[test]
    fn what_a_long_stack_is_about_is_kept_until_something_else_is_said() {
        let mut tail = Tail::default();
        let mut push = |lines: &[&str]| {
            lines.iter().for_each(|line| tail.push(line.as_bytes(), Whose::Before));
            tail.lines()
        };
        push(&["thread 'main' panicked at a.rs:1:5:", "no such pet", "stack backtrace:"]);
        let frames = vec!["   0: a::main"; 60];
        let lines = push(&frames);
        assert_eq!(lines.len(), TAIL_LINES + 2);
        assert_eq!(lines[..2], ["thread 'main' panicked at a.rs:1:5:", "no such pet"]);
        assert_eq!(push(&["going on"; 60]), vec!["going on"; TAIL_LINES]);
        push(&["panic: no such pet", "goroutine 1 [running]:"]);
        let lines = push(&["main.f(...)", "\t/p/a.go:2"].repeat(30));
        assert_eq!((lines.len(), &*lines[0]), (TAIL_LINES + 1, "panic: no such pet"));
    }

    #[test]
    fn a_flood_is_counted_and_told_once() {
        let start = Instant::now();
        let mut budget = LineBudget::new(start);
        let logged = (0..5_000).filter(|_| budget.spend(start) == Spend::Log).count();
        assert_eq!(logged, LINES_PER_SECOND as usize);
        assert_eq!(budget.spend(start + BUDGET_PERIOD), Spend::LogAfterGap(4_000));
        assert_eq!((budget.due(), budget.last_gap()), (None, None), "it has been told");
    }

    #[test]
    fn a_flood_that_ends_is_told_of_by_the_end_of_its_second() {
        let start = Instant::now();
        let mut budget = LineBudget::new(start);
        let logged = (0..LINES_PER_SECOND + 7).filter(|_| budget.spend(start) == Spend::Log).count();
        assert_eq!(logged, LINES_PER_SECOND as usize);
        assert_eq!((budget.due(), budget.gap(start)), (Some(start + BUDGET_PERIOD), None));
        assert_eq!(budget.gap(start + BUDGET_PERIOD), Some(7));
        assert_eq!((budget.due(), budget.last_gap()), (None, None));
    }
}
