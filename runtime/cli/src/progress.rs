//! How far a call is, drawn on the last line of a terminal.

use std::io::{IsTerminal, Write};

use plugd_protocol::control::JobProgress;
use rustix::termios::tcgetwinsize;

use crate::render::visible_line;

/// How wide a terminal is that does not say.
const COLUMNS_DEFAULT: usize = 80;

/// How many characters the bar itself has.
const BAR: usize = 20;

/// One line of stderr that is drawn over and over, and gone in the end.
#[derive(Debug)]
pub(crate) struct Bar {
    /// Whether anybody sees it.
    on: bool,
    drawn: bool,
}

impl Bar {
    /// A bar where stderr is a terminal and nobody asked for quiet; nothing otherwise.
    pub(crate) fn new(quiet: bool) -> Bar {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Bar { on: !quiet && !dumb && std::io::stderr().is_terminal(), drawn: false }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Draws how far it is, in place of what was drawn before.
    pub(crate) fn draw(&mut self, what: &str, progress: &JobProgress) {
        if !self.on {
            return;
        }
        let columns = tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let columns = if columns == 0 { COLUMNS_DEFAULT } else { columns };
        let mut stderr = std::io::stderr().lock();
        // Where stderr is gone nobody looks.
        let drawn = write!(stderr, "\r\u{1b}[K{}", line(what, progress, columns.saturating_sub(1)));
        let _ = drawn.and_then(|()| stderr.flush());
        self.drawn = true;
    }

    /// Takes it away, so that something else can be written.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "\r\u{1b}[K").and_then(|()| stderr.flush());
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The bar as text, no wider than that.
fn line(what: &str, progress: &JobProgress, columns: usize) -> String {
    let done = progress.done.max(0.0);
    let far = match progress.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (done / total).clamp(0.0, 1.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
            let (filled, percent) = ((part * BAR as f64) as usize, (part * 100.0) as u32);
            format!("[{}{}] {percent:3} %", "#".repeat(filled), ".".repeat(BAR - filled))
        }
        None => format!("{done}"),
    };
    let message = progress.message.as_deref().map(|message| format!("  {message}")).unwrap_or_default();
    clip(&visible_line(&format!("{what} {far}{message}")), columns)
}

/// The beginning of a text that is no wider than that, counting what may be wide as wide.
fn clip(text: &str, columns: usize) -> String {
    let mut left = columns;
    let fits = |character: &char| {
        let width = if *character < '\u{1100}' { 1 } else { 2 };
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(done: f64, total: Option<f64>, message: Option<&str>, columns: usize, expected: &str) {
        let progress = JobProgress { done, total, message: message.map(ToOwned::to_owned) };
        assert_eq!(line("a.b", &progress, columns), expected);
    }

    #[test]
    fn a_bar_says_how_far_it_is_and_fits_its_line() {
        check(1.0, Some(2.0), Some("half"), 80, "a.b [##########..........]  50 %  half");
        check(9.0, Some(2.0), None, 80, "a.b [####################] 100 %");
        check(3.0, None, Some("pages"), 80, "a.b 3  pages");
        check(3.0, Some(0.0), Some("一二三四"), 13, "a.b 3  一二三");
        check(0.0, None, Some("\u{1b}[2J\rgone"), 80, "a.b 0  \\u{1b}[2J\\u{d}gone");
    }
}
