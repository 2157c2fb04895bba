//! `plugd list`: the plugins and operations there are.

use plugd_engine::Opening;
use plugd_protocol::control::{ListParams, PluginState};
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// The plugins and operations there are
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Shows where each plugin came from, and where was looked when there is none. Works with and \
without a daemon.

Examples:
  plugd list
  plugd list --state failed
  plugd list --output json")]
pub(crate) struct Args {
    /// Only plugins in this state, such as ready, idle or failed
    #[arg(long, value_parser = state)]
    state: Option<PluginState>,
}

fn state(text: &str) -> Result<PluginState, String> {
    PluginState::deserialize(StrDeserializer::<Error>::new(text)).map_err(|error| error.to_string())
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let runtime = context.runtime(Opening::Everything).await?;
    let params = ListParams { state: args.state, caller: context.global.caller.clone() };
    let shown = match runtime.list(&params).await {
        Ok(report) => context.output.report(&report, |paint| render::list(&report, args.state, paint)),
        Err(failure) => Err(failure),
    };
    runtime.finish().await;
    shown.map(|()| 0)
}
