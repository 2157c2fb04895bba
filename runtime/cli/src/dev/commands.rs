//! A line that was typed to `plugd dev`, as what it means.

use clap::Parser;
use serde::Serialize;

use crate::args;
use crate::commands::call;

/// The words that are no operations, with what they do; these can still be called as `PLUGIN.help`.
pub(super) const COMMANDS: &[(&str, &str)] = &[
    ("help", "what can be typed"),
    ("list", "the operations"),
    ("describe", "an operation in full: describe OPERATION; without one the plugin"),
    ("lint", "what the declarations could say better"),
    ("logs", "the latest log lines: logs 50"),
    ("reload", "build and start it anew, whether or not something changed"),
    ("quit", "leave; so do Ctrl-D and Ctrl-C"),
];

/// How an operation is called, and with what.
const CALL: (&str, &str) = (
    "OPERATION name=value …",
    "call it, as with `plugd call`: key:=json, key=@file, --timeout 5s, --yes, --explain",
);

/// What can be typed.
#[derive(Debug, Serialize)]
pub(crate) struct Help {
    commands: Vec<HelpLine>,
}

/// One thing to type.
#[derive(Debug, Serialize)]
struct HelpLine {
    line: &'static str,
    does: &'static str,
}

impl Help {
    pub(crate) fn new() -> Help {
        let all = std::iter::once(&CALL).chain(COMMANDS);
        Help { commands: all.map(|(line, does)| HelpLine { line, does }).collect() }
    }

    /// A line for each.
    pub(crate) fn text(&self) -> String {
        let width = COMMANDS.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
        let lines = self.commands.iter().map(|HelpLine { line, does }| format!("{line:width$}  {does}\n"));
        lines.collect()
    }
}

/// What is wrong with a command as a shell takes it.
const WITHOUT_PLUGD: &str = "this is a prompt of plugd: expected OPERATION name=value, without plugd before it; `help` has what can be typed";

/// How many lines of the log are shown unless somebody says.
const LOGS_SHOWN: u32 = 20;

/// What a line means.
#[derive(Debug)]
pub(crate) enum Command {
    /// It was empty, or a remark.
    Nothing,
    Help,
    List,
    Describe(Option<String>),
    Lint,
    Logs(u32),
    Reload,
    Quit,
    Call(Box<call::Args>),
}

/// The line as the options and arguments of a call.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, override_usage = "OPERATION name=value …")]
struct CallLine {
    #[command(flatten)]
    args: call::Args,
}

impl Command {
    /// Reads a line: words as a shell takes them apart, without anything being filled in.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub(crate) fn read(line: &str) -> Result<Command, String> {
        if line.trim_start().starts_with('#') {
            return Ok(Command::Nothing);
        }
        let words = shell_words::split(line).map_err(|error| format!("{error}: {line}"))?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Ok(Command::Nothing),
            ["help"] => Ok(Command::Help),
            ["list"] => Ok(Command::List),
            ["describe"] => Ok(Command::Describe(None)),
            ["describe" | "help", operation] | [operation, "--help" | "-h"] => {
                Ok(Command::Describe(Some((*operation).to_owned())))
            }
            ["lint"] => Ok(Command::Lint),
            ["logs"] => Ok(Command::Logs(LOGS_SHOWN)),
            ["logs", count] => count
                .parse()
                .map(Command::Logs)
                .map_err(|_| format!("expected a number of lines, got {count}")),
            ["reload"] => Ok(Command::Reload),
            ["quit" | "exit"] => Ok(Command::Quit),
            ["plugd", ..] => Err(WITHOUT_PLUGD.to_owned()),
            [command, ..] if COMMANDS.iter().any(|(known, _)| known == command) => {
                Err(format!("{command} takes nothing more here: `help` has what can be typed"))
            }
            _ => call(&words),
        }
    }
}

fn call(words: &[&str]) -> Result<Command, String> {
    let args = CallLine::try_parse_from(words).map_err(|error| args::one_line(&error))?.args;
    let from_stdin = args.words.iter().any(|word| word == "@-" || word.ends_with("=@-"))
        || args.json.as_deref().is_some_and(|json| json == "-" || json == "@-");
    match from_stdin {
        true => {
            Err("stdin has the commands here: take the arguments from a file, as in key=@file".to_owned())
        }
        false => Ok(Command::Call(Box::new(args))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_or_a_call() {
        let read = |line: &str| format!("{:?}", Command::read(line).unwrap());
        assert_eq!(read("  "), "Nothing");
        assert_eq!(read("# hello"), "Nothing");
        assert_eq!(read("describe hello"), "Describe(Some(\"hello\"))");
        assert_eq!(read("logs 3"), "Logs(3)");
        assert_eq!(read("help hello"), "Describe(Some(\"hello\"))");
        assert_eq!(read("hello --help"), "Describe(Some(\"hello\"))");
        let Command::Call(args) = Command::read("hello name='Ada the first' n:=3 --timeout 5s").unwrap()
        else {
            panic!("a call")
        };
        assert_eq!(
            (args.target.as_str(), args.words.join("|")),
            ("hello", "name=Ada the first|n:=3".to_owned())
        );
        assert_eq!(args.timeout, Some(std::time::Duration::from_secs(5)));
    }

    #[test]
    fn what_cannot_be_meant_is_said() {
        for (line, expected) in [
            ("hello name='Ada", "missing closing quote"),
            ("list all", "list takes nothing more here"),
            ("logs many", "expected a number of lines, got many"),
            ("hello --nope", "unexpected argument '--nope' found"),
            ("plugd call ./greet hello name=Ada", "expected OPERATION name=value, without plugd"),
            ("hello text=@-", "stdin has the commands here"),
            ("hello --json -", "stdin has the commands here"),
        ] {
            let error = Command::read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
