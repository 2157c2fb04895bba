//! The figures as a table in `docs/reliability.md`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::{Plan, Report};

const BEGIN: &str = "<!-- figures: written by `make chaos` -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Puts the figures of a trial between the marks of a page.
///
/// # Errors
/// When the page cannot be read or written, or has no marks.
pub fn write(page: &Path, plan: &Plan, report: &Report) -> io::Result<()> {
    let text = std::fs::read_to_string(page)?;
    let marks = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = marks.ok_or_else(|| {
        io::Error::other(format!("{} has no place for the figures: {BEGIN}", page.display()))
    })?;
    std::fs::write(page, format!("{before}{BEGIN}{}{END}{after}", table(plan, report)))
}

fn table(plan: &Plan, report: &Report) -> String {
    let Plan { seed, peace, trouble, clients, kills_per_second, .. } = plan;
    let mut text = format!(
        "\n{} s in peace, half before and half after {} s in trouble: {clients} clients, {kills_per_second} kills a second, seed {seed}. \
         {} of what must hold was broken.\n\n| figure | value |\n|---|---|\n",
        peace.as_secs(),
        trouble.as_secs(),
        if report.broken.is_empty() { "Nothing".to_owned() } else { report.broken.len().to_string() },
    );
    for (name, value) in &report.figures {
        let _written = writeln!(text, "| `{name}` | {value} |");
    }
    text + "\n"
}
