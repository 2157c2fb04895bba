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
Without a name only what changed is touched. A configuration that cannot be read, or an empty file,
changes nothing. A plugin whose new run fails goes on as it was, and this exits 6; so does nobody who
is left alone because of on_change = \"manual\": `plugd restart` applies what changed.

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
    let failed = |plugin: &PluginStatus| {
        plugin.restart_required.as_ref().is_some_and(|required| required.reason != render::MANUAL)
    };
    Ok(if kept.iter().any(failed) { PLUGIN_UNAVAILABLE } else { 0 })
}

/// How the plugins are that go on as they were.
async fn kept(report: &ReloadReport, client: &Client) -> Result<Vec<PluginStatus>, Failure> {
    if report.restart_required.is_empty() {
        return Ok(Vec::new());
    }
    let status = client.status(&StatusParams::default()).await?;
    Ok(status.plugins.into_iter().filter(|plugin| report.restart_required.contains(&plugin.name)).collect())
}
