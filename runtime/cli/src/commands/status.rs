//! `plugd status`: how the daemon and its plugins are.

use plugd_protocol::PluginName;
use plugd_protocol::control::StatusParams;

use super::plugin_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// How the daemon and its plugins are
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  plugd status
  plugd status mailbox                 one plugin in full, with its last exit
  plugd status --output json")]
pub(crate) struct Args {
    /// Only this plugin
    #[arg(value_parser = plugin_name)]
    plugin: Option<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let report = context.daemon().await?.status(&StatusParams { plugin: args.plugin.clone() }).await?;
    context.output.report(&report, |paint| render::status(&report, args.plugin.is_some(), paint))?;
    Ok(0)
}
