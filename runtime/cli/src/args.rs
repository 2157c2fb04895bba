//! The command line as clap reads it: global options and one variant a command.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::commands::{
    add, answer, call, calls, cancel, check, completions, config, describe, dev, disable, doctor, enable,
    events, graph, jobs, lint, list, logs, new, reload, remove, restart, result, serve, shutdown, start,
    status, stop, tools,
};
use crate::output::Format;

/// Plugins for agents: any language, one contract, supervised.
#[derive(Debug, Parser)]
#[command(name = "plugd", version, propagate_version = true, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  plugd list                                     what there is
  plugd call greet.hello name=Ada
  plugd call ./plugin.py greet name=Ada          one executable, no configuration
  plugd serve --detach                           keep plugins running between calls
  plugd status                                   how they are
  plugd calls                                    what was called, and how it went

Exit codes:
  0 ok   1 the tool failed   2 usage   3 arguments   4 not found   5 timed out
  6 plugin unavailable   7 refused   8 needs input or confirmation   9 daemon or internal
  130 interrupted";

/// Options that stand anywhere on the command line.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The config file; otherwise $PLUGD_CONFIG, ./plugd.toml, then the XDG folders
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The daemon's socket; otherwise the one the config names
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// For people, as one JSON document, or the bare data
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(crate) output: Format,
    /// Say nothing on stderr but errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Call as this profile of those under `[callers]`, which only narrows what is allowed
    // Its own name: `calls` has a filter `--caller` beside it.
    #[arg(id = "as", long = "as", global = true, env = "PLUGD_AS", value_name = "CALLER")]
    pub(crate) caller: Option<String>,
    /// What to log on stderr, such as `debug` or `plugd_engine=trace`
    #[arg(long, global = true, env = "PLUGD_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Args),
    Shutdown(shutdown::Args),
    Status(status::Args),
    List(list::Args),
    Doctor(doctor::Args),
    Describe(describe::Args),
    Tools(tools::Args),
    New(new::Args),
    Dev(dev::Args),
    Check(check::Args),
    Lint(lint::Args),
    Call(call::Args),
    Calls(calls::Args),
    Result(result::Args),
    Jobs(jobs::Args),
    Cancel(cancel::Args),
    Answer(answer::Args),
    Start(start::Args),
    Stop(stop::Args),
    Restart(restart::Args),
    Reload(reload::Args),
    Add(add::Args),
    Remove(remove::Args),
    Enable(enable::Args),
    Disable(disable::Args),
    Logs(logs::Args),
    Events(events::Args),
    Graph(graph::Args),
    Config(config::Args),
    Completions(completions::Args),
}

/// Whether a word names a command.
pub(crate) fn is_command(word: &str) -> bool {
    Cli::command().find_subcommand(word).is_some()
}

/// Whether a command line that could not be read asks for JSON.
pub(crate) fn wants_json(mut args: impl Iterator<Item = OsString>) -> bool {
    while let Some(arg) = args.next() {
        if arg == "--output=json" || (arg == "--output" && args.next().is_some_and(|value| value == "json")) {
            return true;
        }
    }
    false
}

/// clap's message without its layout.
pub(crate) fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let kept: Vec<&str> = lines.take_while(|line| !line.starts_with("For more information")).collect();
    // A line that ends in a colon announces the next.
    kept.join("; ").replace(":; ", ": ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_stand_anywhere() {
        for line in [
            "plugd --output json --socket /s call a.b x=1",
            "plugd call --output json a.b --socket /s x=1",
            "plugd call a.b x=1 --socket=/s --output=json",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!((cli.global.output, cli.global.socket), (Format::Json, Some("/s".into())), "{line}");
            let Command::Call(call) = cli.command else { panic!("{line}") };
            assert_eq!(call.words, ["x=1"], "{line}");
        }
    }

    #[test]
    fn who_calls_and_whose_calls_are_shown_are_two_options() {
        let line = "plugd calls --as ci --caller ada";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(cli.global.caller.as_deref(), Some("ci"));
        let Command::Calls(calls) = cli.command else { panic!("{line}") };
        assert!(format!("{calls:?}").contains("caller: Some(\"ada\")"), "{calls:?}");
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands().filter(|command| command.get_name() != "help") {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{}", command.get_name());
        }
    }

    #[test]
    fn an_unreadable_line_may_still_ask_for_json() {
        let asks = |line: &str| wants_json(line.split(' ').map(OsString::from));
        assert!(asks("plugd --output json clal"));
        assert!(asks("plugd clal --output=json"));
        assert!(!asks("plugd clal --output text json"));
    }
}
