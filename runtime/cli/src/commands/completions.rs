//! `plugd completions`: what a shell needs to complete commands and options.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::context::Context;
use crate::failure::Failure;

/// What a shell needs to complete commands and options
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  plugd completions bash > ~/.local/share/bash-completion/completions/plugd
  plugd completions zsh > ~/.zfunc/_plugd
  plugd completions fish > ~/.config/fish/completions/plugd.fish")]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "plugd", &mut script);
    context.output.text(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
