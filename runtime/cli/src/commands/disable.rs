//! `plugd disable`: lets plugins no longer be used.

use plugd_engine::Opening;
use plugd_protocol::PluginName;
use plugd_protocol::control::PluginsParams;

use super::plugin_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Let plugins no longer be used, whatever their files say
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ends their processes: they are listed as disabled, and calls to them are refused. Outlives the daemon. \
Works with and without one.

Examples:
  plugd disable mailbox
  plugd disable mailbox archive --output json")]
pub(crate) struct Args {
    /// Which plugins
    #[arg(required = true, value_name = "PLUGIN", value_parser = plugin_name)]
    plugins: Vec<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let runtime = context.runtime(Opening::OnDemand).await?;
    let changed = runtime.disable(&PluginsParams { plugins: args.plugins }).await;
    runtime.finish().await;
    let report = changed?;
    context.output.report(&report, |_| render::changed("disabled", "disabled already", &report))?;
    Ok(0)
}
