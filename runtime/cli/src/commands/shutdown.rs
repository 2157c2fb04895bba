//! `plugd shutdown`: stops every plugin and the daemon.

use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// Stop every plugin and the daemon
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Returns when all plugins are down and the socket is free. Calls in flight may end first; a \
second `plugd shutdown`, or SIGTERM to the daemon, skips that grace.

Examples:
  plugd shutdown
  plugd shutdown && plugd serve --detach")]
pub(crate) struct Args {}

pub(crate) async fn run(_args: Args, context: &Context) -> Result<u8, Failure> {
    let report = context.daemon().await?.shutdown().await?;
    context.output.report(&report, |paint| render::stopped(&report, paint) + "the daemon has stopped\n")?;
    Ok(0)
}
