//! `plugd status`: how the daemon and its plugins are.

use plugd_protocol::PluginName;
use plugd_protocol::control::StatusParams;

use super::plugin_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::render;

/// How the daemon and its plugins are
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  plugd status
  plugd status mailbox                 one plugin in full: why, since when, how it ended
  plugd status --output json")]
pub(crate) struct Args {
    /// Only this plugin
    #[arg(value_parser = plugin_name)]
    plugin: Option<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let client = context.daemon().await?;
    let report = client.status(&StatusParams { plugin: args.plugin.clone() }).await?;
    let [plugin] = report.plugins.as_slice() else {
        context.output.report(&report, |paint| render::status(&report, paint))?;
        return Ok(0);
    };
    if args.plugin.is_none() {
        context.output.report(&report, |paint| render::status(&report, paint))?;
    } else if context.output.format == Format::Text && !plugin.waits_for.is_empty() {
        // What it waits for may wait itself: the way to the root is in the others.
        let all = client.status(&StatusParams::default()).await?;
        context.output.text(&render::plugin_status(plugin, &all, context.output.paint()))?;
    } else {
        context.output.report(&report, |paint| render::plugin_status(plugin, &report, paint))?;
    }
    Ok(0)
}
