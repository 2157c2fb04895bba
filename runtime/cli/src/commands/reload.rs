//! `plugd reload`: applies the config file, or takes up one plugin anew.

use plugd_daemon::client::Client;
use plugd_protocol::PluginName;
use plugd_protocol::control::{PluginStatus, ReloadParams, ReloadReport, StatusParams};

use super::{PLUGIN_UNAVAILABLE, plugin_name};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Apply the config file, or take up one plugin anew
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a name only what changed is touched. A configuration that cannot be read, or an empty file, \
changes nothing. It waits until what is taken up is described, and up where it is to be. Exits 6 where \
that failed: a plugin whose new run fails goes on as it was. One with on_change = \"manual\" is left \
alone on purpose: `plugd restart` applies what changed.

Examples:
  plugd reload
  plugd reload mailbox                 even if nothing about it changed")]
pub(crate) struct Args {
    /// Only this plugin
    #[arg(value_parser = plugin_name)]
    plugin: Option<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let client = context.daemon().await?;
    let report = client.reload(&ReloadParams { plugin: args.plugin }).await?;
    let kept = kept(&report, &client).await?;
    context.output.report(&report, |_| render::reloaded(&report, &kept))?;
    Ok(if report.failed.is_empty() { 0 } else { PLUGIN_UNAVAILABLE })
}

/// How the plugins are that go on as they were.
async fn kept(report: &ReloadReport, client: &Client) -> Result<Vec<PluginStatus>, Failure> {
    if report.restart_required.is_empty() {
        return Ok(Vec::new());
    }
    let status = client.status(&StatusParams::default()).await?;
    Ok(status.plugins.into_iter().filter(|plugin| report.restart_required.contains(&plugin.name)).collect())
}
