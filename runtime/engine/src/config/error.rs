//! What is wrong with a configuration: every problem at once, each where it stands.

use std::fmt;
use std::path::{Path, PathBuf};

use plugd_protocol::error::clip;

/// More is not told at once, in bytes: it passes through the control socket, and somebody is to read it.
const TOLD_MAX: usize = 64 * 1024;

/// Everything wrong with a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Each problem, in the order of the files and their lines.
    pub problems: Vec<ConfigProblem>,
}

/// One thing wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The file or folder it is about, where there is one.
    pub file: Option<PathBuf>,
    /// The line in that file, from 1.
    pub line: Option<usize>,
    /// The key, from the top: `plugins.mailbox.timeout`; empty for the whole file.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// The nearest thing that would be right.
    pub suggestion: Option<String>,
}

impl ConfigProblem {
    /// A problem of a file as a whole.
    pub(super) fn of_file(file: &Path, message: impl Into<String>) -> ConfigProblem {
        ConfigProblem {
            file: Some(file.to_owned()),
            line: None,
            key: String::new(),
            message: message.into(),
            suggestion: None,
        }
    }
}

impl ConfigError {
    /// Every problem on a line; of very many the first ones, and how many there are besides.
    pub(crate) fn told(&self) -> String {
        let mut told = String::new();
        for (index, problem) in self.problems.iter().enumerate() {
            let (line, left) = (problem.to_string(), self.problems.len() - index);
            if index > 0 && told.len() + line.len() > TOLD_MAX {
                told.push_str(&format!("\nand {left} more problems: `plugd config check` names them all"));
                break;
            }
            told.push_str(if index > 0 { "\n" } else { "" });
            // The first one is told whatever its length.
            told.push_str(&clip(line, TOLD_MAX));
        }
        told
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(formatter, "{}: ", file.display())?;
        }
        if let Some(line) = self.line {
            write!(formatter, "line {line}: ")?;
        }
        formatter.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(formatter, ": did you mean {suggestion}?"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            problem.fmt(formatter)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
