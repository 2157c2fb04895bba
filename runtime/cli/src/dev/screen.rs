//! What happens by itself, written so that it disturbs neither a prompt nor a question.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustyline::ExternalPrinter;

use crate::ask;

/// So much is kept while somebody is being asked; what is older goes.
const HELD_MAX: usize = 1_000;

/// Whoever has one may say something at any time; all are the same screen.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Mutex<State>>);

struct State {
    sheet: Sheet,
    /// What was said while a question stood there.
    held: VecDeque<String>,
    /// Whether the last line may hold a bar, which what is said takes the place of.
    drawn: bool,
}

/// Where lines go.
enum Sheet {
    /// A terminal with a prompt, by way of whoever draws that.
    Prompt(Box<dyn ExternalPrinter + Send>),
    /// Nobody types here.
    Stderr,
    #[cfg(test)]
    Memory(Vec<String>),
}

impl Screen {
    /// Lines above a prompt.
    pub(crate) fn of_prompt(printer: impl ExternalPrinter + Send + 'static) -> Screen {
        Screen::of(Sheet::Prompt(Box::new(printer)))
    }

    /// Lines on stderr.
    pub(crate) fn to_stderr() -> Screen {
        Screen::of(Sheet::Stderr)
    }

    fn of(sheet: Sheet) -> Screen {
        Screen(Arc::new(Mutex::new(State { sheet, held: VecDeque::new(), drawn: false })))
    }

    /// Says something, a line or several; later where somebody is just being asked.
    pub(crate) fn say(&self, text: &str) {
        let mut state = self.state();
        if ask::question_stands() {
            if state.held.len() == HELD_MAX {
                state.held.pop_front();
            }
            state.held.push_back(text.to_owned());
            return;
        }
        state.release();
        state.write(text);
    }

    /// Says whether a call goes on, whose bar may be on the last line.
    pub(crate) fn calling(&self, calling: bool) {
        let mut state = self.state();
        state.drawn = calling;
        if !calling {
            state.release();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn release(&mut self) {
        while let Some(text) = self.held.pop_front() {
            self.write(&text);
        }
    }

    fn write(&mut self, text: &str) {
        let text = text.trim_end_matches('\n');
        match &mut self.sheet {
            Sheet::Prompt(printer) => {
                let clear = if self.drawn { "\r\u{1b}[K" } else { "" };
                // A terminal that is gone shows nothing anyway.
                let _ = printer.print(format!("{clear}{text}\n"));
            }
            Sheet::Stderr => {
                let _ = writeln!(std::io::stderr().lock(), "{text}");
            }
            #[cfg(test)]
            Sheet::Memory(lines) => lines.push(text.to_owned()),
        }
    }
}

#[cfg(test)]
impl Screen {
    /// Lines that a test looks at.
    pub(crate) fn to_memory() -> Screen {
        Screen::of(Sheet::Memory(Vec::new()))
    }

    /// What was said so far.
    pub(crate) fn said(&self) -> Vec<String> {
        match &self.state().sheet {
            Sheet::Memory(lines) => lines.clone(),
            Sheet::Prompt(_) | Sheet::Stderr => Vec::new(),
        }
    }
}
