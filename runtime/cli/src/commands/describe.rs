//! `plugd describe`: one plugin or operation in full.

use plugd_engine::Opening;
use plugd_protocol::control::DescribeParams;

use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// One plugin or operation in full
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  plugd describe archive                  the plugin and all its operations
  plugd describe archive.search           one operation and its arguments
  plugd describe archive.search --output json")]
pub(crate) struct Args {
    /// A plugin's name, or an operation's
    name: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<u8, Failure> {
    let runtime = context.runtime(Opening::Everything).await?;
    let params = DescribeParams { caller: context.global.caller.clone(), ..DescribeParams::new(args.name) };
    let shown = match runtime.describe(&params).await {
        Ok(report) => context.output.report(&report, |paint| render::description(&report, paint)),
        Err(failure) => Err(failure),
    };
    runtime.finish().await;
    shown.map(|()| 0)
}
