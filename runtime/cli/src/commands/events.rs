//! `plugd events`: what happened, and what happens.

use plugd_protocol::PluginName;
use plugd_protocol::control::EventsParams;

use super::{follow, plugin_name};
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// What happened, and what happens
#[derive(Debug, clap::Args)]
#[command(after_help = "\
With -f and --output json: one JSON document a line.

Examples:
  plugd events
  plugd events -f mailbox
  plugd events -f --output json | jq .kind")]
pub(crate) struct Args {
    /// Only this plugin's
    #[arg(value_parser = plugin_name)]
    plugin: Option<PluginName>,
    /// Go on with new events as they happen
    #[arg(long, short)]
    follow: bool,
    /// At most this many, the latest [default: 200; with -f none]
    #[arg(long, short = 'n', value_name = "COUNT")]
    tail: Option<u32>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let params = EventsParams { plugin: args.plugin, tail: args.tail };
    let client = context.daemon().await?;
    if !args.follow {
        let events = client.events(&params).await?;
        context
            .output
            .report(&events, |paint| events.iter().map(|event| render::event(event, paint)).collect())?;
        return Ok(0);
    }
    let events = client.follow_events(&params).await?;
    follow(events, context.socket_file(), context, render::event).await
}
