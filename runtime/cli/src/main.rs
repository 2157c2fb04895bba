//! `plugd`: plugins for agents, from the command line.

mod again;
mod alone;
mod args;
mod arguments;
mod ask;
mod attend;
mod commands;
mod context;
mod detach;
mod dev;
mod failure;
mod kept;
mod output;
mod progress;
mod render;
mod runtime;
mod scaffold;
mod settings;
#[cfg(test)]
mod shapes;
mod trial;
mod typing;

use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Parser;
use rustix::fs::Mode;

use crate::args::Cli;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Format, Output};

fn main() -> ExitCode {
    plugd_engine::launcher::take_over();
    unmask_owner();
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(refuse(&error)),
    };
    // PLUGD_AS that is set to nothing names nobody.
    cli.global.caller.take_if(|caller| caller.is_empty());
    let output = Output::new(cli.global.output, cli.global.quiet);
    let context = Context { global: cli.global, output, log: OnceLock::new() };
    let code = match run(cli.command, &context) {
        Ok(code) => code,
        Err(failure) => {
            context.output.failure(&failure);
            failure.exit
        }
    };
    ExitCode::from(code)
}

/// What is written for a user is there for that user, whatever the shell masks: a state folder that its owner
/// cannot enter is of no use. What others may do stays masked, here and in plugins.
fn unmask_owner() {
    let masked = rustix::process::umask(Mode::empty());
    rustix::process::umask(masked.difference(Mode::RWXU));
}

/// One thread is enough, and starts soonest: all real work is in the plugins' processes.
fn run(command: args::Command, context: &Context) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("cannot start: {error}")))?;
    let code = runtime.block_on(commands::run(command, context));
    // A thread that still reads stdin must not hold up the exit.
    runtime.shutdown_background();
    code
}

/// Says what clap has to say: help on stdout, mistakes on stderr, or as the one JSON document.
fn refuse(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        let _ = error.print();
        return 0;
    }
    if error.kind() == clap::error::ErrorKind::InvalidUtf8 {
        let format = if args::wants_json(std::env::args_os()) { Format::Json } else { Format::Text };
        let word = std::env::args_os().find(|word| word.to_str().is_none()).unwrap_or_default();
        let failure = Failure::unreadable_arguments(format!(
            "{:?} on the command line is no UTF-8 text",
            word.to_string_lossy()
        ));
        Output::new(format, false).failure(&failure);
        return failure.exit;
    }
    if args::wants_json(std::env::args_os()) {
        Output::new(Format::Json, false).failure(&Failure::usage(args::one_line(error)));
    } else {
        let _ = error.print();
    }
    2
}
