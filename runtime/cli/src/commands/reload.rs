//! `plugd reload`: applies the config file, or takes up one plugin anew.

use plugd_protocol::PluginName;
use plugd_protocol::control::ReloadParams;

use super::plugin_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Apply the config file, or take up one plugin anew
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a name only what changed is touched. A configuration that cannot be read changes nothing.

Examples:
  plugd reload
  plugd reload mailbox                 even if nothing about it changed")]
pub(crate) struct Args {
    /// Only this plugin
    #[arg(value_parser = plugin_name)]
    plugin: Option<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let report = context.daemon().await?.reload(&ReloadParams { plugin: args.plugin }).await?;
    context.output.report(&report, |_| render::reloaded(&report))?;
    Ok(0)
}
