//! The lines that are typed to `plugd dev`: at a prompt, or from a pipe.

use std::io::{self, BufRead, IsTerminal};
use std::sync::mpsc as std_mpsc;
use std::thread;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{CompletionType, Config, Editor};
use tokio::sync::mpsc;

use super::{Known, Screen};
use crate::ask;
use crate::failure::Failure;

/// What came of waiting for a line.
#[derive(Debug)]
pub(crate) enum Line {
    Typed(String),
    /// No more come.
    End,
    /// Ctrl-C at the prompt.
    Interrupted,
}

/// Where lines come from: one is read each time that somebody waits for one.
pub(crate) struct Lines {
    wanted: std_mpsc::Sender<()>,
    lines: mpsc::Receiver<Line>,
    waits: bool,
    /// How the terminal was, to be left so; none where lines come from a pipe.
    before: Option<Termios>,
}

impl Lines {
    /// A prompt where somebody sits at a terminal and stdout is for people, otherwise stdin as it comes, and
    /// the screen that goes with it.
    pub(crate) fn open(prompt: String, known: Known, for_people: bool) -> Result<(Lines, Screen), Failure> {
        let (wanted, orders) = std_mpsc::channel();
        let (sender, lines) = mpsc::channel(1);
        let has_prompt = for_people && ask::somebody_is_there() && io::stdout().is_terminal();
        let (screen, before) = match has_prompt {
            true => {
                let before = tcgetattr(io::stdin()).ok();
                let mut editor = editor(known).map_err(unusable)?;
                let screen = Screen::of_prompt(editor.create_external_printer().map_err(unusable)?);
                read_on(orders, sender, move || typed(&mut editor, &prompt))?;
                (screen, before)
            }
            false => {
                read_on(orders, sender, piped)?;
                (Screen::to_stderr(), None)
            }
        };
        Ok((Lines { wanted, lines, waits: false, before }, screen))
    }

    /// Whether somebody types at a prompt.
    pub(crate) fn are_typed(&self) -> bool {
        self.before.is_some()
    }

    /// The next line; cancel safe, for one that comes later is the next one's.
    pub(crate) async fn next(&mut self) -> Line {
        if !self.waits && self.wanted.send(()).is_err() {
            return Line::End;
        }
        self.waits = true;
        let line = self.lines.recv().await;
        self.waits = false;
        line.unwrap_or(Line::End)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // A prompt that nobody answered has the terminal in a state of its own.
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn unusable(error: ReadlineError) -> Failure {
    let hint = "with its input from a pipe, `plugd dev` needs no terminal";
    Failure::environment(format!("this terminal cannot be used: {error}"), hint)
}

fn editor(known: Known) -> rustyline::Result<Editor<Known, MemHistory>> {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .auto_add_history(true)
        // Each line that is pasted is a command.
        .bracketed_paste(false)
        .build();
    let mut editor = Editor::with_history(config, MemHistory::new())?;
    editor.set_helper(Some(known));
    Ok(editor)
}

/// Reads a line whenever one is wanted, on a thread of its own: reading waits.
fn read_on(
    orders: std_mpsc::Receiver<()>,
    lines: mpsc::Sender<Line>,
    mut read: impl FnMut() -> Line + Send + 'static,
) -> Result<(), Failure> {
    let serve = move || {
        while orders.recv().is_ok() {
            let line = read();
            let is_last = !matches!(line, Line::Typed(_));
            if lines.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("plugd-prompt".to_owned()).spawn(serve);
    thread.map(drop).map_err(|error| Failure::environment(format!("cannot start: {error}"), "try again"))
}

fn typed(editor: &mut Editor<Known, MemHistory>, prompt: &str) -> Line {
    match editor.readline(prompt) {
        Ok(line) => Line::Typed(line),
        Err(ReadlineError::Interrupted) => Line::Interrupted,
        Err(_) => Line::End,
    }
}

fn piped() -> Line {
    let mut line = Vec::new();
    match io::stdin().lock().read_until(b'\n', &mut line) {
        Ok(1..) => Line::Typed(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        Ok(0) | Err(_) => Line::End,
    }
}
