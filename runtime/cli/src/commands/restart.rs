//! `plugd restart`: stops and starts plugins.

use plugd_protocol::PluginName;
use plugd_protocol::control::PluginsParams;

use super::{plugin_name, started_code};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Stop and start plugins
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Calls in flight may end first; new ones wait for the start. Exits 6 if one did not come up.

Examples:
  plugd restart mailbox
  plugd restart mailbox archive --output json")]
pub(crate) struct Args {
    /// Which plugins
    #[arg(required = true, value_name = "PLUGIN", value_parser = plugin_name)]
    plugins: Vec<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let report = context.daemon().await?.restart(&PluginsParams { plugins: args.plugins }).await?;
    context.output.report(&report, |paint| render::started(&report, paint))?;
    Ok(started_code(&report))
}
