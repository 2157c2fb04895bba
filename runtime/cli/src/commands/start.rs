//! `plugd start`: starts plugins.

use plugd_protocol::PluginName;
use plugd_protocol::control::PluginsParams;

use super::{plugin_name, started_code};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Start plugins and wait until they are up
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Clears what kept them down: a stop, the count of failures. Exits 6 if one did not come up.

Examples:
  plugd start mailbox
  plugd start mailbox archive --output json")]
pub(crate) struct Args {
    /// Which plugins
    #[arg(required = true, value_name = "PLUGIN", value_parser = plugin_name)]
    plugins: Vec<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let report = context.daemon().await?.start(&PluginsParams { plugins: args.plugins }).await?;
    context.output.report(&report, |paint| render::started(&report, paint))?;
    Ok(started_code(&report))
}
