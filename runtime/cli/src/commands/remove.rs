//! `plugd remove`: takes plugins away.

use plugd_engine::Opening;
use plugd_engine::config::Config;
use plugd_protocol::control::{ChangeReport, PluginsParams};
use plugd_protocol::{ErrorKind, PluginName};

use super::plugin_name;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Take plugins away
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ends their processes. A plugin that was added is forgotten. One that is configured stays in its file and \
is as good as not there; `plugd add NAME` restores it. Works with and without a daemon.

Examples:
  plugd remove greet
  plugd remove greet mailbox --output json")]
pub(crate) struct Args {
    /// Which plugins
    #[arg(required = true, value_name = "PLUGIN", value_parser = plugin_name)]
    plugins: Vec<PluginName>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let params = PluginsParams { plugins: args.plugins };
    let report = match context.runtime(Opening::OnDemand).await {
        Ok(runtime) => {
            let removed = runtime.remove(&params).await;
            runtime.finish().await;
            removed?
        }
        Err(failure) => despite(failure, &params, context)?,
    };
    context.output.report(&report, |_| render::changed("removed", "not there", &report))?;
    Ok(0)
}

/// Removes what was added although the config file is wrong: perhaps because of that.
fn despite(failure: Failure, params: &PluginsParams, context: &Context) -> Result<ChangeReport, Failure> {
    let file = Config::find(context.global.config.as_deref()).file;
    let Some(file) = file.filter(|_| failure.error.code == ErrorKind::InvalidConfig.code()) else {
        return Err(failure);
    };
    let mut report = ChangeReport { changed: Vec::new(), unchanged: Vec::new() };
    for name in &params.plugins {
        let removed = Config::forget_added(&file, name)
            .map_err(|error| Failure::environment(format!("cannot remove {name}: {error}"), "try again"))?;
        if removed { &mut report.changed } else { &mut report.unchanged }.push(name.clone());
    }
    if report.changed.is_empty() { Err(failure) } else { Ok(report) }
}
