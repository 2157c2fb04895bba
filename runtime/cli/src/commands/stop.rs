//! `plugd stop`: stops plugins and keeps them stopped.

use plugd_protocol::PluginName;
use plugd_protocol::control::PluginsParams;

use super::plugin_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Stop plugins and keep them stopped
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Calls in flight may end first. `plugd start` brings a stopped plugin back.

Examples:
  plugd stop mailbox
  plugd stop mailbox archive --output json")]
pub(crate) struct Args {
    /// Which plugins
    #[arg(required = true, value_name = "PLUGIN", value_parser = plugin_name)]
    plugins: Vec<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let report = context.daemon().await?.stop(&PluginsParams { plugins: args.plugins }).await?;
    context.output.report(&report, |paint| render::stopped(&report, paint))?;
    Ok(0)
}
