//! `plugd enable`: lets plugins be used.

use plugd_engine::Opening;
use plugd_protocol::PluginName;
use plugd_protocol::control::PluginsParams;

use super::plugin_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Let plugins be used, whatever their files say
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Outlives the daemon. Works with and without one.

Examples:
  plugd enable mailbox
  plugd enable mailbox archive --output json")]
pub(crate) struct Args {
    /// Which plugins
    #[arg(required = true, value_name = "PLUGIN", value_parser = plugin_name)]
    plugins: Vec<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let runtime = context.runtime(Opening::OnDemand).await?;
    let changed = runtime.enable(&PluginsParams { plugins: args.plugins }).await;
    runtime.finish().await;
    let report = changed?;
    context.output.report(&report, |_| render::changed("enabled", "enabled already", &report))?;
    Ok(0)
}
