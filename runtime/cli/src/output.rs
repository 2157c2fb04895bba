//! What goes to stdout and stderr: one document or readable text, and never a panic about a pipe.

use std::cell::Cell;
use std::io::{ErrorKind, IsTerminal, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::render::{self, Paint};

/// How to answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// The data alone, exactly as the plugin wrote it.
    Data,
}

/// Where a command's words go.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) quiet: bool,
    /// Set once whoever read our stdout has gone.
    closed: Cell<bool>,
}

impl Output {
    pub(crate) fn new(format: Format, quiet: bool) -> Output {
        Output { format, quiet, closed: Cell::new(false) }
    }

    /// Whether nobody reads stdout any more, as after `| head`.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// How to paint text on stdout.
    pub(crate) fn paint(&self) -> Paint {
        Paint::when(std::io::stdout().is_terminal())
    }

    /// A report: as a JSON document, or as the text made for people.
    pub(crate) fn report<T: Serialize>(
        &self,
        report: &T,
        text: impl FnOnce(Paint) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Text => self.text(&text(self.paint())),
            Format::Json | Format::Data => self.document(report),
        }
    }

    /// One JSON document on a line of its own.
    pub(crate) fn document<T: Serialize>(&self, document: &T) -> Result<(), Failure> {
        let json = serde_json::to_string(document)
            .map_err(|error| Failure::internal(format!("cannot write the answer as JSON: {error}")))?;
        self.text(&json)
    }

    /// Data exactly as it came.
    pub(crate) fn raw(&self, data: &RawValue) -> Result<(), Failure> {
        self.text(data.get())
    }

    /// Text on stdout, a newline added where there is none.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        self.write(text, if text.is_empty() || text.ends_with('\n') { "" } else { "\n" })
    }

    /// A piece of what goes on: text on stdout as it is.
    pub(crate) fn piece(&self, text: &str) -> Result<(), Failure> {
        self.write(text, "")
    }

    fn write(&self, text: &str, end: &str) -> Result<(), Failure> {
        if text.is_empty() || self.is_closed() {
            return Ok(());
        }
        let mut stdout = std::io::stdout().lock();
        let written = stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.write_all(end.as_bytes()))
            .and_then(|()| stdout.flush());
        match written {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed.set(true);
                Ok(())
            }
            Err(error) => Err(Failure::environment(
                format!("cannot write to stdout: {error}"),
                "the command itself ran; make room and look at `plugd status`",
            )),
        }
    }

    /// A remark on stderr, unless asked to be quiet.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            complain(text);
        }
    }

    /// What a person must know, on stderr, quiet or not.
    pub(crate) fn say(&self, text: &str) {
        complain(text);
    }

    /// How to paint text on stderr.
    pub(crate) fn paint_aside(&self) -> Paint {
        Paint::when(std::io::stderr().is_terminal())
    }

    /// A failure: the document under `--output json`, words on stderr otherwise.
    pub(crate) fn failure(&self, failure: &Failure) {
        match self.format {
            Format::Json => {
                let document = serde_json::json!({ "error": failure.error });
                if let Err(unwritable) = self.document(&document) {
                    self.error(&unwritable.error);
                }
            }
            Format::Text | Format::Data => self.error(&failure.error),
        }
    }

    /// An error in words on stderr.
    pub(crate) fn error(&self, error: &plugd_protocol::CallError) {
        complain(&render::error(error, self.paint_aside()));
    }
}

/// Writes a line to stderr; where even that is gone there is nobody left to tell.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text.trim_end());
}
